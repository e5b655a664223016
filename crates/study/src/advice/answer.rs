//! The recommendation derived from the results of a comparison.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use rexmit_lab::rivals::{ARE_BUILT, HOW_TO_BUILD};
use serde::{Deserialize, Serialize};

use super::candidate::is_rival;
use crate::page::{Cell, StudyPage};

/// The most bytes that the recommended profile may send per byte of the standard one.
pub const DEFAULT_MAX_COST: f64 = 2.0;

/// The relative difference below which 99.9th percentiles count as equal: then the cheaper profile is recommended.
const SAME: f64 = 0.05;

/// The gain and the cost of each profile.
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
    /// The profile; for a rival, its name and its profile.
    pub profile: String,
    /// Whether it is another implementation, which is shown for comparison and never recommended.
    pub is_rival: bool,
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
        let profile = cell.point.first()?.label.clone();
        Some(Self {
            is_rival: is_rival(&profile),
            profile,
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
    /// Reads the page of a [`Question::study`](super::Question::study). Among the profiles that send at most `max_cost`
    /// times the bytes of the standard one, it finds the lowest 99.9th percentile of latency, and recommends the
    /// profile within 5 % of it that sends the fewest bytes.
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
    let cheap = || rows.iter().filter(|row| !row.is_rival && row.bytes_per_byte <= limit);
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
            "\npackets: per message; bytes: per byte of payload; both directions, headers included"
        )?;
        if !ARE_BUILT {
            writeln!(f, "Other implementations are not compared: {HOW_TO_BUILD}.")?;
        }
        writeln!(f)?;
        let (Some(standard), Some(best)) = (self.rows.first(), self.best()) else {
            return writeln!(
                f,
                "{}",
                match self.rows.is_empty() {
                    true => "No profile delivered a message: is the loss 100 %?",
                    false => "No profile sends as little as is allowed: allow a higher cost.",
                }
            );
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

    fn row(profile: &str, p999_ms: f64, bytes_per_byte: f64) -> AdviceRow {
        let (profile, is_rival) = (profile.to_owned(), is_rival(profile));
        AdviceRow {
            profile,
            is_rival,
            p50_ms: 50.0,
            p99_ms: 60.0,
            p999_ms,
            max_ms: 900.0,
            packets_per_message: 2.0,
            bytes_per_byte,
        }
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
        let rows = [row("standard", 1000.0, 2.0), row("kcp tuned", 200.0, 2.0)];
        assert_eq!(recommended(&rows, 2.0).as_deref(), Some("standard"), "no rival");
        let (title, about) = ("title".to_owned(), "about".to_owned());
        let rows = rows.to_vec();
        let none = Advice { title, about, rows, recommended: None, max_cost: 0.5 };
        assert!(none.to_string().contains("sends as little as is allowed"), "{none}");
    }
}
