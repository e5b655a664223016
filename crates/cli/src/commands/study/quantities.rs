//! `rexmit study quantities`.

use clap::Args;
use rexmit_lab::scenario::Unit;
use rexmit_study::quantities::{Measurable, MeasurableKind, measurables, quantities};

use super::select::Selection;
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;

/// List what studies can measure, for claims and figures: names, units and meanings.
///
/// Without a NAME, everything that the kinds of flows have; with one, exactly what the runs of that study measure, under
/// the names of its own flows.
#[derive(Debug, Args)]
#[command(after_help = examples!(
    "  rexmit study quantities\n  rexmit study quantities --contains latency\n  \
    rexmit study quantities ./my-study.toml\n  rexmit study quantities --json | jq -r '.[].name'"))]
pub(super) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// List only those whose name or meaning contains TEXT.
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    #[command(flatten)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { selection, contains, format } = arguments;
    let mut all = if selection.is_empty() {
        quantities()
    } else {
        let chosen = selection.named()?.into_iter();
        chosen.flat_map(|one| measurables(&one.study.catalogue(), &one.study.name)).collect()
    };
    if let Some(text) = contains {
        let text = text.to_lowercase();
        all.retain(|one| {
            one.name.to_lowercase().contains(&text) || one.about.to_lowercase().contains(&text)
        });
        if all.is_empty() {
            let message = format!(
                "nothing that is measured has `{text}` in its name or meaning: leave out --contains for all"
            );
            return Err(Failure::new(Kind::Usage, message));
        }
    }
    format.print(&all, |all| text(all))
}

/// A section for what each group of entries is of, and for each kind.
fn text(all: &[Measurable]) -> String {
    let width = all.iter().map(|one| one.name.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    let mut heading = None;
    for one in all {
        if heading != Some((&one.of, one.kind)) {
            heading = Some((&one.of, one.kind));
            let gap = if text.is_empty() { "" } else { "\n" };
            text += &format!("{gap}{}, {}:\n", one.of, words(one.kind));
        }
        text += &format!("  {:width$}  {:5}  {}\n", one.name, unit(one.unit), one.about);
    }
    text
}

fn words(kind: MeasurableKind) -> &'static str {
    match kind {
        MeasurableKind::Quantity => "a number per run",
        MeasurableKind::Distribution => {
            "distributions, for `like` and figures of kind cdf and ccdf"
        }
        MeasurableKind::Series => "values over time, for figures of kind series",
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Milliseconds => "ms",
        Unit::Seconds => "s",
        Unit::Bytes => "bytes",
        Unit::BitsPerSecond => "bit/s",
        Unit::Count => "count",
        Unit::Share => "0..1",
        Unit::Ratio => "ratio",
    }
}
