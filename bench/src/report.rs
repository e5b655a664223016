//! The table: one ratio per row, with its target.

use comfy_table::presets;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::{Deserialize, Serialize};

/// The required ratio.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This much, or more.
    AtLeast(f64),
    /// This much, or less.
    AtMost(f64),
    /// Within this relative difference of 1: both should be equal.
    Within(f64),
    /// No target: the ratio is only reported.
    None,
}

/// One line of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The measurements.
    pub what: String,
    /// Ours, with its unit.
    pub ours: String,
    /// The reference of the comparison: a rival, or a limit.
    pub against: String,
    /// Theirs, with its unit.
    pub theirs: String,
    /// Ours relative to theirs; `None` if it could not be measured.
    pub ratio: Option<f64>,
    /// The required ratio.
    pub target: Target,
    /// A remark needed to interpret it, or the reason why it was not measured.
    pub note: String,
}

impl Row {
    /// A row that could not be measured here.
    #[must_use]
    pub fn not_run(what: &str, against: &str, why: &str) -> Self {
        Self {
            what: what.into(),
            ours: "-".into(),
            against: against.into(),
            theirs: "-".into(),
            ratio: None,
            target: Target::None,
            note: format!("not run: {why}"),
        }
    }

    /// Whether the target is met; `None` without a target or a ratio.
    #[must_use]
    pub fn is_met(&self) -> Option<bool> {
        match (self.ratio?, self.target) {
            (ratio, Target::AtLeast(least)) => Some(ratio >= least),
            (ratio, Target::AtMost(most)) => Some(ratio <= most),
            (ratio, Target::Within(share)) => Some((ratio - 1.0).abs() <= share),
            (_, Target::None) => None,
        }
    }

    fn verdict(&self) -> &'static str {
        match self.is_met() {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "-",
        }
    }

    fn target_in_words(&self) -> String {
        match self.target {
            Target::AtLeast(least) => format!("≥ {least}"),
            Target::AtMost(most) => format!("≤ {most}"),
            Target::Within(share) => format!("1 ± {share}"),
            Target::None => "-".into(),
        }
    }

    /// Whether both should be equal and are not: that is an error, not only a slow result.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        matches!(self.target, Target::Within(_)) && self.is_met() == Some(false)
    }
}

/// The rows as a table, followed by their notes.
#[must_use]
pub fn in_words(rows: &[Row]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["", "rexmit", "against", "", "ratio", "target", "", "note"]);
    let mut notes: Vec<&str> = Vec::new();
    for row in rows {
        let note = match notes.iter().position(|&note| note == row.note) {
            _ if row.note.is_empty() => String::new(),
            Some(known) => (known + 1).to_string(),
            None => {
                notes.push(&row.note);
                notes.len().to_string()
            }
        };
        let ratio = row.ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        table.add_row([
            &row.what,
            &row.ours,
            &row.against,
            &row.theirs,
            &ratio,
            &row.target_in_words(),
            row.verdict(),
            &note,
        ]);
    }
    for column in [1, 3, 4, 5] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let notes = notes.iter().enumerate().map(|(n, note)| format!("\n{}  {note}", n + 1));
    format!("{table}{}", notes.collect::<String>())
}
