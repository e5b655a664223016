//! Programs of the user's own, compared with profiles over the same link.
//!
//! A [`Comparison`] becomes a [`Study`] whose axis has the user's programs and the profiles; [`Compared`] reads the page of
//! its results, and checks them against limits.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use rexmit_core::words::parse_duration;
use serde::Serialize;

use crate::advice::{Candidate, candidates};
use crate::document::RunDocument;
use crate::estimate::Estimate;
use crate::file::Study;
use crate::mistake::Mistakes;
use crate::page::{Cell, StudyPage};

/// The label of the user's programs.
pub const YOURS: &str = "yours";

/// The flow in names of quantities.
pub const FLOW: &str = "flow";

/// The link, the traffic, and the profiles that the programs are compared with.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Title of the page.
    pub title: String,
    /// A sentence below it.
    pub about: String,
    /// Both directions of the link, in netem's notation.
    pub link: String,
    /// The traffic, in the notation of scenarios.
    pub traffic: String,
    /// How long messages are sent.
    pub duration: Duration,
    /// Runs of each.
    pub seeds: u64,
    /// The profiles, by their labels; see [`labels`].
    pub against: Vec<String>,
    /// Whether the profiles deliver in order.
    pub is_ordered: bool,
}

/// The labels of everything that programs can be compared with.
pub fn labels(is_ordered: bool) -> impl Iterator<Item = &'static str> {
    candidates(is_ordered).map(|candidate| candidate.label)
}

impl Comparison {
    /// The study. The caller executes the runs of [`YOURS`], which [`is_of_yours`] detects.
    ///
    /// # Errors
    /// If the link, the traffic or a label is not valid.
    pub fn study(&self) -> Result<Study, Mistakes> {
        // A string of JSON is one of TOML, but for this character.
        let quoted = |text: &str| serde_json::Value::from(text.replace('\u{7f}', "")).to_string();
        let found = |label: &String| candidates(self.is_ordered).find(|it| it.label == label);
        let points: String = self.against.iter().filter_map(found).map(Candidate::point).collect();
        let text = format!(
            "title = {title}\nabout = {about}\nseeds = {seeds}\n\
             costs = [\"{FLOW}.two_way.packets_per_message\", \"{FLOW}.two_way.wire_bytes_per_payload_byte\"]\n\n\
             [scenario]\nduration = \"{micros}us\"\nnetwork.forward = {link}\n\n\
             [scenario.thin.{FLOW}]\nunordered = {unordered}\ntraffic = {traffic}\n\n\
             [[axis]]\nname = \"system\"\n\n[[axis.point]]\nlabel = \"{YOURS}\"\n{points}\n\
             [[figure]]\ntitle = \"Latency\"\nabout = \"Share of messages with at least this latency.\"\nkind = \"ccdf\"\n\
             x = \"{FLOW}.latency\"\nx_axis = {{ log = true }}\n",
            title = quoted(&self.title),
            about = quoted(&self.about),
            seeds = self.seeds,
            micros = self.duration.as_micros(),
            link = quoted(&self.link),
            unordered = !self.is_ordered,
            traffic = quoted(&self.traffic),
        );
        Study::parse("compare", &text)
    }
}

/// Whether a run is one of the user's programs.
#[must_use]
pub fn is_of_yours(document: &RunDocument) -> bool {
    document.point.first().is_some_and(|it| it.label == YOURS)
}

/// A limit for a figure of the user's programs: `p99=250ms`, or `p99=120%` of the first profile's value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Limit {
    /// `mean`, `p50`, `p90`, `p99`, `p999`, `p9999` or `max`.
    pub figure: &'static str,
    /// The largest value that passes.
    pub most: Most,
}

/// The largest value that passes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Most {
    /// Milliseconds.
    Ms(f64),
    /// A part of the value of the first profile: 1.2 are 120 %.
    OfFirst(f64),
}

/// The figures that can have a limit.
const FIGURES: [&str; 7] = ["mean", "p50", "p90", "p99", "p999", "p9999", "max"];

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            let known = FIGURES.join(", ");
            format!(
                "expected FIGURE=TIME or FIGURE=PERCENT, such as p99=250ms or p99=120%; figures: {known}"
            )
        };
        let (figure, most) = text.split_once('=').ok_or_else(expected)?;
        let figure = FIGURES.into_iter().find(|name| *name == figure).ok_or_else(expected)?;
        let most = match most.strip_suffix('%') {
            Some(percent) => {
                let percent: f64 = percent.parse().map_err(|_| expected())?;
                if !(percent.is_finite() && percent > 0.0) {
                    return Err(expected());
                }
                Most::OfFirst(percent / 100.0)
            }
            None => Most::Ms(parse_duration(most).map_err(|_| expected())?.as_secs_f64() * 1e3),
        };
        Ok(Self { figure, most })
    }
}

/// The results.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Compared {
    /// The title of the comparison.
    pub title: String,
    /// A row for each, the user's programs first.
    pub rows: Vec<ComparedRow>,
    /// The limits, and whether each was kept.
    pub checks: Vec<Check>,
}

/// The means over all seeds; the maximum is the largest of all.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ComparedRow {
    /// `yours`, or the profile.
    pub system: String,
    /// Latency from the intended sending to the delivery, in milliseconds, by the names of [`Limit::figure`].
    /// Undelivered messages count as later than any other; a figure that falls on one of them is missing.
    pub latency_ms: BTreeMap<&'static str, f64>,
    /// Messages of a run.
    pub messages: f64,
    /// The share of messages that were not delivered.
    pub undelivered: f64,
    /// IP packets of both directions per message.
    pub packets_per_message: f64,
    /// Bytes of IP packets of both directions per byte of the messages; `None` if these are not known.
    pub bytes_per_byte: Option<f64>,
}

/// A limit, and what was measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Check {
    /// The figure.
    pub figure: &'static str,
    /// The value of the user's programs; `None` if too many messages were not delivered.
    pub value_ms: Option<f64>,
    /// The largest value that passes.
    pub most_ms: f64,
    /// Whether it was kept.
    pub is_kept: bool,
}

impl ComparedRow {
    fn of(cell: &Cell) -> Option<Self> {
        let estimate = |name: &str| cell.quantities.get(&format!("{FLOW}.{name}"));
        let mean = |name: &str| estimate(name).map(|it| it.mean);
        let sent = estimate("messages").filter(|messages| messages.mean > 0.0)?;
        let messages = sent.mean;
        let system = cell.point.first()?.label.clone();
        // A profile loses no message, unless the run ends before it is repaired.
        let latencies = if system == YOURS { "of_all" } else { "latency" };
        let is_complete = system == YOURS || mean("undelivered")? == 0.0;
        let latency = |name: &'static str| {
            // Missing in one run, it is missing.
            let of_all_runs = |it: &&Estimate| it.seeds == sent.seeds;
            let estimate = estimate(&format!("{latencies}.{name}")).filter(of_all_runs)?;
            let value = if name == "max" { estimate.range.1 } else { estimate.mean };
            Some((name, value)).filter(|_| is_complete || name != "max")
        };
        Some(Self {
            system,
            messages,
            latency_ms: FIGURES.into_iter().filter_map(latency).collect(),
            undelivered: mean("undelivered")? / messages,
            packets_per_message: mean("two_way.packets_per_message").unwrap_or_default(),
            bytes_per_byte: mean("two_way.wire_bytes_per_payload_byte"),
        })
    }
}

impl Compared {
    /// Reads the page of a [`Comparison::study`].
    #[must_use]
    pub fn new(page: &StudyPage, limits: &[Limit]) -> Self {
        let rows: Vec<ComparedRow> = page.cells.iter().filter_map(ComparedRow::of).collect();
        let check = |limit: &Limit| {
            let value_ms = rows
                .first()
                .filter(|row| row.system == YOURS)?
                .latency_ms
                .get(limit.figure)
                .copied();
            let most_ms = match limit.most {
                Most::Ms(most) => most,
                Most::OfFirst(share) => share * rows.get(1)?.latency_ms.get(limit.figure)?,
            };
            let is_kept = value_ms.is_some_and(|value| value <= most_ms);
            Some(Check { figure: limit.figure, value_ms, most_ms, is_kept })
        };
        let failed = |limit: &Limit| Check {
            figure: limit.figure,
            value_ms: None,
            most_ms: 0.0,
            is_kept: false,
        };
        let checks = limits.iter().map(|limit| check(limit).unwrap_or_else(|| failed(limit)));
        Self { title: page.study.title.clone(), checks: checks.collect(), rows }
    }

    /// Whether every limit was kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.checks.iter().all(|check| check.is_kept)
    }
}

/// A table and a line per limit, for a terminal.
impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "worst ms", "lost", "packets", "bytes",
        ]);
        for row in &self.rows {
            let ms =
                |name| row.latency_ms.get(name).map_or("–".to_owned(), |it| format!("{it:.0}"));
            let times = ["p50", "p90", "p99", "p999", "max"].map(ms);
            let rest = [
                format!("{:.2} %", row.undelivered * 100.0),
                format!("{:.2}", row.packets_per_message),
                row.bytes_per_byte.map_or("–".to_owned(), |it| format!("{it:.2}")),
            ];
            table.add_row(std::iter::once(row.system.clone()).chain(times).chain(rest));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{}\n", self.title)?;
        for line in table.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(
            f,
            "\nlost: messages not delivered, which are later than any; packets: per message; bytes: per byte of payload; both directions, headers \
             included"
        )?;
        for check in &self.checks {
            let value =
                check.value_ms.map_or("too many lost".to_owned(), |it| format!("{it:.1} ms"));
            let verdict = if check.is_kept { "kept" } else { "EXCEEDED" };
            writeln!(f, "{}: {value}, at most {:.1} ms: {verdict}", check.figure, check.most_ms)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rexmit_lab::measure::LatencyDistribution;
    use rexmit_lab::scenario::{MeasuredCost, RunOutcome, execute};

    use super::*;

    fn comparison() -> Comparison {
        Comparison {
            title: "mine \"quoted\"".into(),
            about: "a test".into(),
            link: "delay 50ms loss 5%".into(),
            traffic: "every 51ms size 100".into(),
            duration: Duration::from_secs(20),
            seeds: 2,
            against: vec!["interactive".into(), "tcp-cubic".into()],
            is_ordered: true,
        }
    }

    /// Messages of equal latency, except that one in `slow_every` is slow, and one in `lost_every` is lost.
    fn outcome(slow_every: u64, lost_every: u64) -> RunOutcome {
        let mut latency = LatencyDistribution::new();
        for n in 1..=1000 {
            if n % lost_every != 0 {
                let ms = if n % slow_every == 0 { 900 } else { 60 };
                latency.record(Duration::from_millis(ms));
            }
        }
        let cost = MeasuredCost {
            messages: 1000,
            payload_bytes: 100_000,
            packets: 3000,
            wire_bytes: 500_000,
        };
        RunOutcome::measured(FLOW, &latency, cost)
    }

    fn compared(yours: &RunOutcome, limits: &[&str]) -> Compared {
        let study = comparison().study().unwrap();
        let page = study.page(|document| {
            if is_of_yours(document) {
                return Some(yours.clone());
            }
            Some(execute(&document.scenario, document.seed).unwrap())
        });
        let limits: Vec<Limit> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        Compared::new(&page, &limits)
    }

    #[test]
    fn programs_and_profiles_are_rows_with_their_costs() {
        let compared = compared(&outcome(50, 2000), &[]);
        let systems: Vec<_> = compared.rows.iter().map(|row| row.system.as_str()).collect();
        assert_eq!(systems, [YOURS, "interactive", "tcp-cubic"]);
        let (yours, profile) = (&compared.rows[0], &compared.rows[1]);
        assert!((yours.latency_ms["p50"] - 60.0).abs() < 0.1 && yours.undelivered == 0.0);
        assert_eq!((yours.packets_per_message, yours.bytes_per_byte), (3.0, Some(5.0)));
        assert!(profile.latency_ms["p99"] < 300.0 && profile.packets_per_message > 1.0);
        assert!(compared.to_string().contains("mine \"quoted\""));
    }

    #[test]
    fn limits_are_absolute_or_relative_and_a_lost_message_is_later_than_any() {
        let kept = |yours: &RunOutcome, limit: &str| compared(yours, &[limit]).is_kept();
        let slow = outcome(50, 2000);
        assert!(kept(&slow, "p50=61ms") && !kept(&slow, "p99=800ms") && kept(&slow, "p99=1s"));
        assert!(kept(&slow, "p90=100%") && !kept(&slow, "p99=150%"));
        let lossy = outcome(2000, 50);
        assert!(kept(&lossy, "p90=61ms") && !kept(&lossy, "p99=1h"), "2 % are lost");
        assert!(!kept(&RunOutcome::default(), "p50=1h"), "nothing was measured");
        // Of 1000 messages 5 are lost and 7 are slow: the 99th percentile is that of a slow one.
        let both = outcome(120, 200);
        assert!(!kept(&both, "p99=800ms") && kept(&both, "p99=1s"), "{both:?}");
    }

    #[test]
    fn limits_that_mean_nothing_are_refused() {
        for text in ["p99", "p98=1s", "p99=fast", "p99=-5%", "p99=0%", "p99=NaN%", ""] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
