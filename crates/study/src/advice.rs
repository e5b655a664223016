//! Advice for traffic of the user's own: which profile to choose, what it gains and what it costs.
//!
//! A [`Question`] becomes a [`Study`] whose axis is the profile; [`Advice`] reads the page of its results.

use std::fmt;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use rexmit_lab::traffic::{Sender, Trace};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::file::{MAX_BYTES, Study};
use crate::mistake::Mistakes;
use crate::page::{Cell, StudyPage};

/// The profile that others are compared with.
pub const STANDARD: &str = "rfc9260";
/// The profiles that are compared.
pub const COMPARED: [&str; 5] = [STANDARD, "linux", "thin", "interactive", "interactive-redundant"];
/// Runs per profile.
pub const DEFAULT_SEEDS: u64 = 5;
/// The longest part of a capture that is replayed.
pub const MAX_DURATION: Duration = Duration::from_secs(600);
/// The bytes of the recommended profile per byte of the standard one, at most.
pub const DEFAULT_MAX_COST: f64 = 2.0;

/// 99.9th percentiles that differ by less are the same: the cheaper profile is recommended.
const SAME: f64 = 0.05;

/// Traffic, and the path over which it is sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// The name of the traffic.
    pub name: String,
    /// Microseconds and bytes of each message.
    messages: Vec<(u64, u32)>,
    /// How much of the traffic was taken.
    about: String,
    /// Both directions, in netem's notation.
    pub link: String,
    /// Whether messages are delivered in order.
    pub is_ordered: bool,
    /// Runs per profile.
    pub seeds: u64,
}

/// Why a question has no answer.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum QuestionError {
    /// No message in this direction.
    #[error("{0} has no message {1}: choose the other direction, or another flow of {2}")]
    Silent(String, &'static str, String),
    /// Only one message, or all at once.
    #[error("{0} is too short: at least two messages at different times are needed")]
    TooShort(String),
    /// An invalid link.
    #[error("the link is not valid: {0}")]
    Link(#[from] Mistakes),
}

/// The path of one direction of a link with this round-trip time and this loss rate (0 to 1) each way, in netem's
/// notation.
#[must_use]
pub fn link(rtt: Duration, loss: f64) -> String {
    let percent = (loss * 1e8).round() / 1e6;
    format!("delay {}us loss {percent}%", rtt.as_micros() / 2)
}

impl Question {
    /// The traffic of `sender` in `trace`: of `flow`, or of the flow with most messages; at most [`MAX_DURATION`] of it, and
    /// no more than a study can contain.
    ///
    /// # Errors
    /// If there is no such traffic.
    pub fn new(
        trace: &Trace,
        flow: Option<u32>,
        sender: Sender,
        link: String,
    ) -> Result<Self, QuestionError> {
        let name = trace.name.clone();
        let flows = trace.flows.iter().filter(|it| flow.is_none_or(|id| it.id == id));
        let busiest = flows.max_by_key(|flow| flow.messages(sender).len());
        let side = match sender {
            Sender::Client => "from the side that connected (c2s)",
            Sender::Server => "from the side that accepted (s2c)",
        };
        let all = busiest.map(|flow| flow.messages(sender)).filter(|all| !all.is_empty());
        let (Some(flow), Some(all)) = (busiest, all) else {
            let known: Vec<_> = trace.flows.iter().map(|flow| flow.id.to_string()).collect();
            return Err(QuestionError::Silent(name, side, known.join(", ")));
        };
        let begin = all[0].at;
        let within = all.iter().map(|it| (it.at - begin, it.bytes));
        let within = within.take_while(|(at, _)| *at < MAX_DURATION);
        let mut messages: Vec<(u64, u32)> =
            within.map(|(at, bytes)| (at.as_micros() as u64, bytes)).collect();
        // The remainder is for the rest of the study.
        let room = MAX_BYTES - MAX_BYTES / 16;
        let ends = messages.iter().scan(0, |end, message| {
            *end += word(*message).len() + 1;
            Some(*end)
        });
        let count = ends.take_while(|end| *end <= room).count();
        messages.truncate(count);
        if messages.last().is_none_or(|last| last.0 == 0) {
            return Err(QuestionError::TooShort(name));
        }
        let seconds = messages[messages.len() - 1].0 as f64 / 1e6;
        let (taken, of) = (messages.len(), all.len());
        let about = format!("flow {}, {side}: {taken} of {of} messages, {seconds:.0} s", flow.id);
        Ok(Self { name, messages, about, link, is_ordered: false, seeds: DEFAULT_SEEDS })
    }

    /// The study that answers it.
    ///
    /// # Errors
    /// If the link is not valid.
    pub fn study(&self) -> Result<Study, QuestionError> {
        let seconds = self.messages.last().map_or(1, |last| last.0 / 1_000_000 + 1);
        let words: Vec<String> = self.messages.iter().copied().map(word).collect();
        // A string of JSON is one of TOML, but for this character.
        let quoted = |text: &str| serde_json::Value::from(text.replace('\u{7f}', "")).to_string();
        let profiles: Vec<String> = COMPARED.iter().map(|name| quoted(name)).collect();
        let text = format!(
            "title = {title}\nabout = {about}\nseeds = {seeds}\n\
             costs = [\"flow.two_way.packets_per_message\", \"flow.two_way.wire_bytes_per_payload_byte\"]\n\n\
             [scenario]\nduration = \"{seconds}s\"\nnetwork.forward = {link}\n\n\
             [scenario.thin.flow]\nunordered = {unordered}\ntraffic = \"messages {words}\"\n\n\
             [[axis]]\nname = \"profile\"\nvalues = [{profiles}]\nset.thin.flow.profile = \"{{}}\"\n\n\
             [[figure]]\ntitle = \"Latency\"\nabout = \"Share of messages with at least this latency.\"\nkind = \"ccdf\"\n\
             x = \"flow.latency\"\nx_axis = {{ log = true }}\n\n\
             [[figure]]\ntitle = \"Gain and cost\"\nabout = \"One point per run; lower left is better.\"\nkind = \"scatter\"\n\
             x = \"flow.two_way.wire_bytes_per_payload_byte\"\ny = \"flow.latency.p999\"\n",
            title = quoted(&format!("{} over {}", self.name, self.link)),
            about = quoted(&self.about),
            seeds = self.seeds,
            link = quoted(&self.link),
            unordered = !self.is_ordered,
            words = words.join(" "),
            profiles = profiles.join(", "),
        );
        Ok(Study::parse("advice", &text)?)
    }
}

fn word((at, bytes): (u64, u32)) -> String {
    format!("{at}:{bytes}")
}

/// What each profile would gain and cost.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Advice {
    /// The traffic and the path.
    pub title: String,
    /// The part of the traffic that was replayed.
    pub about: String,
    /// A row per profile, the standard first.
    pub rows: Vec<AdviceRow>,
    /// The recommended profile; `None` if no profile was measured.
    pub recommended: Option<String>,
    /// The bytes per byte of the standard profile that were allowed.
    pub max_cost: f64,
}

/// The means over all seeds for one profile; the maximum is the largest of all.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AdviceRow {
    /// The profile.
    pub profile: String,
    /// Latency from the intended sending to the delivery, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// The largest.
    pub max_ms: f64,
    /// Packets of both hosts per message, acknowledgements included.
    pub packets_per_message: f64,
    /// Bytes of both hosts, with headers, per byte of payload.
    pub bytes_per_byte: f64,
}

impl AdviceRow {
    fn of(cell: &Cell) -> Option<Self> {
        let estimate = |name: &str| cell.quantities.get(&format!("flow.{name}"));
        let mean = |name| estimate(name).map(|it| it.mean);
        Some(Self {
            profile: cell.point.first()?.label.clone(),
            p50_ms: mean("latency.p50")?,
            p99_ms: mean("latency.p99")?,
            p999_ms: mean("latency.p999")?,
            max_ms: estimate("latency.max")?.range.1,
            packets_per_message: mean("two_way.packets_per_message")?,
            bytes_per_byte: mean("two_way.wire_bytes_per_payload_byte")?,
        })
    }
}

impl Advice {
    /// Reads the page of a [`Question::study`]. Recommended is the profile with the lowest 99.9th percentile of latency among
    /// those that send at most `max_cost` times the bytes of the standard one; of those within 5 % of the lowest, the one
    /// that sends the fewest bytes.
    #[must_use]
    pub fn new(page: &StudyPage, max_cost: f64) -> Self {
        let rows: Vec<AdviceRow> = page.cells.iter().filter_map(AdviceRow::of).collect();
        let recommended = choose(&rows, max_cost).map(|row| row.profile.clone());
        let (title, about) = (page.study.title.clone(), page.study.about.clone());
        Self { title, about, rows, recommended, max_cost }
    }

    /// The row of the recommended profile.
    fn best(&self) -> Option<&AdviceRow> {
        self.rows.iter().find(|row| Some(&row.profile) == self.recommended.as_ref())
    }
}

fn choose(rows: &[AdviceRow], max_cost: f64) -> Option<&AdviceRow> {
    let limit = rows.first()?.bytes_per_byte * max_cost;
    let cheap = || rows.iter().filter(|row| row.bytes_per_byte <= limit);
    let lowest = cheap().map(|row| row.p999_ms).fold(f64::INFINITY, f64::min);
    let best = cheap().filter(|row| row.p999_ms <= lowest * (1.0 + SAME));
    best.min_by(|a, b| a.bytes_per_byte.total_cmp(&b.bytes_per_byte))
}

/// A table and a sentence, for a terminal.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "profile", "p50 ms", "p99 ms", "p99.9 ms", "worst ms", "packets", "bytes",
        ]);
        for row in &self.rows {
            let times =
                [row.p50_ms, row.p99_ms, row.p999_ms, row.max_ms].map(|it| format!("{it:.0}"));
            let costs = [row.packets_per_message, row.bytes_per_byte].map(|it| format!("{it:.2}"));
            table.add_row(std::iter::once(row.profile.clone()).chain(times).chain(costs));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{}\n{}\n", self.title, self.about)?;
        for line in table.lines() {
            writeln!(f, "{}", line.trim_end())?;
        }
        writeln!(
            f,
            "\npackets: per message; bytes: per byte of payload; both directions, headers included\n"
        )?;
        let (Some(standard), Some(best)) = (self.rows.first(), self.best()) else {
            return writeln!(f, "No profile delivered a message: is the loss 100 %?");
        };
        if best.profile == standard.profile {
            return writeln!(
                f,
                "Choose {}: no other gains 5 % at the 99.9th percentile.",
                best.profile
            );
        }
        writeln!(
            f,
            "Choose {}: 99.9 % of the messages take at most {:.0} ms instead of {:.0} ms, for {:+.0} % bytes. It is the\n\
             fastest of those that send at most {} times the bytes of {}.",
            best.profile,
            best.p999_ms,
            standard.p999_ms,
            (best.bytes_per_byte / standard.bytes_per_byte - 1.0) * 100.0,
            self.max_cost,
            standard.profile,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_lab::scenario::execute;

    fn trace(messages: usize, gap_ms: u64) -> Trace {
        let row = |n: usize| {
            format!("mine,1,s2c,{},{}\n", 7_000_000 + n as u64 * gap_ms * 1000, 100 + n % 3)
        };
        let rows: String = (0..messages).map(row).collect();
        let text = format!("trace,flow_id,direction,time_us,payload_bytes\nmine,0,c2s,5,9\n{rows}");
        Trace::from_bytes("mine.csv", text.as_bytes()).unwrap()
    }

    fn question(trace: &Trace) -> Question {
        Question::new(trace, None, Sender::Server, link(Duration::from_millis(100), 0.05)).unwrap()
    }

    fn row(profile: &str, p999_ms: f64, bytes_per_byte: f64) -> AdviceRow {
        let profile = profile.into();
        AdviceRow {
            profile,
            p50_ms: 50.0,
            p99_ms: 60.0,
            p999_ms,
            max_ms: 900.0,
            packets_per_message: 2.0,
            bytes_per_byte,
        }
    }

    #[test]
    fn a_capture_is_replayed_under_every_profile() {
        let study = Question { seeds: 1, ..question(&trace(240, 250)) }.study().unwrap();
        let page = study.page(|document| execute(&document.scenario, document.seed).ok());
        let advice = Advice::new(&page, DEFAULT_MAX_COST);
        let profiles: Vec<_> = advice.rows.iter().map(|row| row.profile.as_str()).collect();
        assert_eq!(profiles, COMPARED);
        assert!(advice.about.contains("flow 1") && advice.about.contains("240 of 240"));
        let best = advice.best().unwrap();
        assert!(best.p999_ms < advice.rows[0].p999_ms);
        assert!(advice.to_string().contains(&format!("Choose {}: 99.9 %", best.profile)));
    }

    #[test]
    fn long_captures_are_cut_to_what_a_study_may_have() {
        let question = question(&trace(40_000, 16));
        assert!(question.messages.len() > 15_000);
        assert!(question.study().unwrap().text.len() <= MAX_BYTES);
        let question = self::question(&trace(2000, 1000));
        assert_eq!(question.messages.len(), 600, "ten minutes");
    }

    #[test]
    fn traffic_and_links_that_are_none_are_refused() {
        let of = |trace: &Trace, flow, sender| {
            Question::new(trace, flow, sender, link(Duration::ZERO, 0.0)).unwrap_err().to_string()
        };
        let trace = trace(5, 100);
        assert!(
            of(&trace, Some(0), Sender::Server).contains("no message from the side that accepted")
        );
        assert!(of(&trace, Some(9), Sender::Server).contains("another flow of 0, 1"));
        assert!(of(&trace, None, Sender::Client).contains("at least two messages"));
        let wrong = Question { link: "delay fast\"".into(), ..question(&trace) };
        assert!(wrong.study().unwrap_err().to_string().contains("fast"));
    }

    #[test]
    fn the_fastest_that_is_not_too_expensive_is_recommended() {
        let recommended = |rows: &[AdviceRow], max_cost: f64| {
            choose(rows, max_cost).map(|row| row.profile.clone())
        };
        let rows =
            [row("standard", 1000.0, 2.0), row("fast", 300.0, 3.0), row("faster", 200.0, 4.5)];
        assert_eq!(recommended(&rows, 2.0).as_deref(), Some("fast"));
        assert_eq!(recommended(&rows, 3.0).as_deref(), Some("faster"));
        assert_eq!(recommended(&rows, 1.0).as_deref(), Some("standard"));
        let rows =
            [row("standard", 1000.0, 2.0), row("dear", 300.0, 3.0), row("cheap", 310.0, 2.5)];
        assert_eq!(recommended(&rows, 2.0).as_deref(), Some("cheap"));
    }
}
