//! A comparison as a plain table for a terminal.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

use crate::measure::{Comparison, ProfileOutcome};

const MESSAGES: [&str; 2] = ["profile", "messages"];
const LATENCIES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];
const AGAIN: [&str; 3] = ["timeout", "fast", "bundled"];
const PRICE: [&str; 3] = ["spurious", "pkt/msg", "wire B/B"];

/// A column that is left out if all its values are zero.
type Rare = (&'static str, fn(&ProfileOutcome) -> u64);
const UNDELIVERED: Rare = ("undelivered", |run| run.undelivered);
const RARE: [Rare; 4] = [
    ("window", |run| run.retransmissions.window_probe),
    ("early", |run| run.retransmissions.early),
    ("probe", |run| run.retransmissions.probe),
    ("copies", |run| run.retransmissions.redundant),
];

/// The table: a row per profile with latencies in milliseconds and costs, followed by an
/// explanation of the columns. Ends with a newline; independent of the terminal.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let has = |rare: &Rare| comparison.runs.iter().any(|run| rare.1(run) > 0);
    let undelivered = Some(UNDELIVERED).filter(has);
    let mut rare = RARE.to_vec();
    rare.retain(has);
    let messages = MESSAGES.into_iter().chain(undelivered.map(|(name, _)| name));
    let names = rare.iter().map(|(name, _)| *name);
    table.set_header(messages.chain(LATENCIES).chain(AGAIN).chain(names).chain(PRICE));
    for run in &comparison.runs {
        table.add_row(row(run, undelivered, &rare));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{lines}{}", legend(comparison))
}

fn row(run: &ProfileOutcome, undelivered: Option<Rare>, rare: &[Rare]) -> Vec<String> {
    let latency = |pick: fn(&crate::measure::LatencySummary) -> Duration| {
        run.latency.as_ref().map_or_else(|| "–".into(), |summary| millis(pick(summary)))
    };
    let again = run.retransmissions;
    let price = run.wire_bytes_per_payload_byte;
    let mut row = vec![run.profile.clone(), run.messages.to_string()];
    row.extend(undelivered.map(|(_, count)| count(run).to_string()));
    row.extend([
        latency(|l| l.p50),
        latency(|l| l.p90),
        latency(|l| l.p99),
        latency(|l| l.p999),
        latency(|l| l.max),
        again.timeout.to_string(),
        again.fast_retransmit.to_string(),
        again.bundled.to_string(),
    ]);
    row.extend(rare.iter().map(|(_, count)| count(run).to_string()));
    row.push(run.spurious.total().to_string());
    row.push(match run.messages {
        0 => "–".into(),
        messages => format!("{:.2}", run.packets as f64 / messages as f64),
    });
    row.push(price.map_or_else(|| "–".into(), |price| format!("{price:.2}")));
    row
}

fn millis(duration: Duration) -> String {
    format!("{:.1}", crate::measure::millis::from_duration(duration))
}

fn legend(comparison: &Comparison) -> String {
    let mut legend = String::from(
        "p50 … max: delivery latency in ms, from the intended sending. timeout … spurious:\n\
         retransmitted data units (chunks, segments) by cause, and the spurious ones among them.\n\
         pkt/msg, wire B/B: packets per message and bytes per byte of payload on the wire, in\n\
         both directions, acknowledgements and headers included.\n",
    );
    if comparison.runs.iter().any(|run| run.retransmissions.redundant > 0) {
        legend.push_str(
            "copies: redundant copies of data units in flight, sent before any loss is known.\n",
        );
    }
    for run in comparison.runs.iter().filter(|run| run.undelivered > 0) {
        legend.push_str(&format!(
            "{}: {} of {} messages were not delivered; the latencies are those of the others.\n",
            run.profile, run.undelivered, run.messages
        ));
    }
    legend
}

#[cfg(test)]
mod tests {
    use rexmit_core::Instant;

    use super::*;
    use crate::measure::{MessageRecord, Run};

    fn run(profile: &str, delivered: [Option<u64>; 2]) -> Run {
        let record = |(sequence, delivered): (usize, Option<u64>)| MessageRecord {
            connection: 0,
            stream: 0,
            sequence: sequence as u64,
            payload_bytes: 100,
            intended: Instant::ZERO,
            delivered: delivered.map(Instant::from_millis),
            transmissions: None,
        };
        let messages = delivered.into_iter().enumerate().map(record).collect();
        let mut run = Run { profile: profile.into(), messages, ..Run::default() };
        run.counters.retransmissions.timeout = 3;
        run.counters.spurious.timeout = 1;
        run.counters.on_wire(12, 512);
        run
    }

    #[test]
    fn columns_line_up_and_undelivered_messages_are_named() {
        let comparison = Comparison::new("t", 1)
            .with_run(&run("rfc9260", [Some(50), Some(1050)]))
            .with_run(&run("thin", [None, None]));
        let text = render(&comparison);
        let lines: Vec<&str> = text.lines().collect();
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert_eq!(
            words,
            [
                "rfc9260", "2", "0", "50.0", "1050.0", "1050.0", "1050.0", "1050.0", "3", "0", "0",
                "1", "6.00", "2.56"
            ]
        );
        let ends: Vec<usize> = lines[..3].iter().map(|line| line.chars().count()).collect();
        assert!(ends.iter().all(|&end| end == ends[0]), "{text}");
        assert!(text.contains("thin: 2 of 2 messages were not delivered"), "{text}");
        assert!(!text.contains("rfc9260: "), "{text}");
        let thin: Vec<&str> = lines[2].split_whitespace().take(4).collect();
        assert_eq!(thin, ["thin", "2", "2", "–"]);
        assert!(lines[0].contains("messages  undelivered"), "{text}");
        let delivered = Comparison::new("t", 1).with_run(&run("rfc9260", [Some(50), Some(50)]));
        assert!(!render(&delivered).contains("undelivered"));
    }
}
