//! Notes for readers of the results, of facts that no number shows.

use crate::page::shown::Cell;
use crate::sweep::place;

/// The most points that one note lists.
const LISTED: usize = 8;

/// A note per flow with messages that never arrived: they have no latency, so the percentiles are too good.
pub(super) fn of_undelivered(cells: &[Cell]) -> Vec<String> {
    let names = cells.iter().flat_map(|cell| cell.quantities.keys());
    let flows = names.filter_map(|name| name.strip_suffix(".undelivered"));
    let mut flows: Vec<&str> = flows.collect();
    flows.sort_unstable();
    flows.dedup();
    flows.into_iter().filter_map(|flow| of_flow(flow, cells)).collect()
}

fn of_flow(flow: &str, cells: &[Cell]) -> Option<String> {
    let mean = |cell: &Cell, name: &str| {
        cell.quantities.get(&format!("{flow}.{name}")).map_or(0.0, |estimate| estimate.mean)
    };
    let mut lost: Vec<(f64, f64, &Cell)> = cells
        .iter()
        .map(|cell| (mean(cell, "undelivered"), mean(cell, "messages"), cell))
        .filter(|(undelivered, ..)| *undelivered > 0.0)
        .collect();
    lost.sort_by(|one, other| other.0.total_cmp(&one.0));
    let line = |(undelivered, messages, cell): &(f64, f64, &Cell)| {
        format!("{} of {}{}", count(*undelivered), count(*messages), place(&cell.point))
    };
    let mut lines: Vec<String> = lost.iter().take(LISTED).map(line).collect();
    if lost.len() > LISTED {
        lines.push(format!("fewer at {} other points", lost.len() - LISTED));
    }
    (!lines.is_empty()).then(|| {
        format!(
            "Messages of `{flow}` that were never delivered have no latency: they are in no mean, percentile, maximum \
             or distribution of it (in `late_share` they count as late). Per run, on average: {}.",
            lines.join("; ")
        )
    })
}

/// A mean number of messages: whole, or with two digits if it is small.
fn count(mean: f64) -> String {
    if mean >= 10.0 || mean.fract() == 0.0 { format!("{mean:.0}") } else { format!("{mean:.2}") }
}

#[cfg(test)]
mod tests {
    use crate::document::Coordinate;
    use crate::estimate::Estimate;

    use super::*;

    fn cell(loss: &str, undelivered: &[f64]) -> Cell {
        let estimate = |values: &[f64]| Estimate::of(values.iter().copied()).unwrap();
        Cell {
            point: vec![Coordinate { axis: "loss".into(), label: loss.into() }],
            quantities: [
                ("game.messages".to_owned(), estimate(&[7200.0, 7200.0])),
                ("game.undelivered".to_owned(), estimate(undelivered)),
            ]
            .into(),
        }
    }

    #[test]
    fn undelivered_messages_are_counted_where_there_are_some() {
        assert!(of_undelivered(&[cell("1 %", &[0.0, 0.0])]).is_empty());
        let notes = of_undelivered(&[
            cell("1 %", &[0.0, 0.0]),
            cell("5 %", &[0.0, 1.0]),
            cell("50 %", &[100.0, 120.0]),
        ]);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("Messages of `game` that were never delivered"));
        let counts =
            "Per run, on average: 110 of 7200 at loss \"50 %\"; 0.50 of 7200 at loss \"5 %\".";
        assert!(notes[0].ends_with(counts), "{}", notes[0]);
    }

    #[test]
    fn a_note_lists_few_points() {
        let cells: Vec<Cell> = (1..=10).map(|n| cell(&format!("{n} %"), &[f64::from(n)])).collect();
        let note = &of_undelivered(&cells)[0];
        assert!(note.contains("10 of 7200 at loss \"10 %\"; 9 of"), "{note}");
        assert!(note.ends_with("3 of 7200 at loss \"3 %\"; fewer at 2 other points."), "{note}");
    }
}
