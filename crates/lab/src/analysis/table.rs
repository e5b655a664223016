//! An analysis as tables for a terminal.

use std::fmt::{self, Write as _};

use comfy_table::{CellAlignment, Table, presets};
use rexmit_netsim::traffic::trace::Sender;

use super::{Analysis, Cause, DirectionAnalysis};
use crate::measure::LatencySummary;

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\nSent, and sent again", self.capture)?;
        f.write_str(&table(
            &[
                "flow", "dir", "proto", "packets", "bytes", "again", "fast", "early", "timer",
                "spurious", "copies", "hits", "dupACKs", "3+", "lost %", "burst", "RTT ms",
            ],
            self.directions.iter().map(sent),
        ))?;
        writeln!(f, "\nLatency per byte in ms, from the first transmission")?;
        f.write_str(&table(
            &["flow", "dir", "to the", "bytes", "p50", "p90", "p99", "p99.9", "max"],
            self.directions.iter().flat_map(latencies),
        ))?;
        f.write_str(&self.notes())
    }
}

impl Analysis {
    fn notes(&self) -> String {
        let mut notes = String::from(
            "\ndir: c2s from the side that connected, s2c from the other. again: packets that repeat data. fast, early,\n\
             timer: retransmitted ranges by cause: after 3 reports of later data, after 1 or 2, after none.\n\
             copies: ranges sent redundantly, bundled with new data (RDB) or alone; hits: those that arrived first.\n\
             3+: series of at least three duplicate ACKs. burst: mean number of lost packets in a row. 0×, 1×: bytes\n\
             retransmitted so many times.\n",
        );
        if self.directions.iter().any(|it| !it.is_exact) {
            let _ = write!(
                notes,
                "Spurious retransmissions, hits and losses are estimated from ACKs: the receiver's packets were not captured\n\
                 (--other-end).\n"
            );
        }
        notes
    }
}

fn direction(analysis: &DirectionAnalysis) -> [String; 2] {
    let side = match analysis.direction {
        Sender::Client => "c2s",
        Sender::Server => "s2c",
    };
    [analysis.flow.to_string(), side.to_owned()]
}

fn optional<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

fn sent(analysis: &DirectionAnalysis) -> Vec<String> {
    let cause = |cause| analysis.repeated.get(&cause).map_or(0, |it| it.ranges);
    let numbers = [
        analysis.sent.packets,
        analysis.sent.bytes,
        analysis.sent.repeating_packets,
        cause(Cause::Fast),
        cause(Cause::Early),
        cause(Cause::Timer),
        analysis.spurious(),
        analysis.redundancy.copies,
    ];
    let mut row = direction(analysis).to_vec();
    row.push(analysis.protocol.to_owned());
    row.extend(numbers.iter().map(u64::to_string));
    let has_copies = analysis.redundancy.copies > 0;
    row.push(if has_copies {
        optional(analysis.redundancy.hits, |hits| hits.to_string())
    } else {
        "0".to_owned()
    });
    row.push(analysis.acks.duplicates.to_string());
    row.push(analysis.acks.series_of_3.to_string());
    row.push(format!("{:.2}", analysis.path.loss * 100.0));
    row.push(optional(analysis.path.burst, |burst| format!("{burst:.1}")));
    row.push(optional(analysis.path.rtt_ms, |rtt| format!("{rtt:.1}")));
    row
}

fn latencies(analysis: &DirectionAnalysis) -> Vec<Vec<String>> {
    let all = [
        ("ACK", analysis.latency.ack),
        ("arrival", analysis.latency.arrival),
        ("delivery", analysis.latency.delivery),
    ];
    let mut rows = Vec::new();
    for (what, summary) in all {
        rows.extend(summary.map(|it| latency(analysis, what, analysis.sent.new_bytes, &it)));
    }
    let has_retransmissions = analysis.retransmissions() > 0;
    for number in analysis.by_retransmissions.iter().filter(|_| has_retransmissions) {
        let what = format!("ACK, {}×", number.retransmissions);
        rows.extend(number.ack.map(|it| latency(analysis, &what, number.bytes, &it)));
    }
    rows
}

fn latency(
    analysis: &DirectionAnalysis,
    what: &str,
    bytes: u64,
    summary: &LatencySummary,
) -> Vec<String> {
    let mut row = direction(analysis).to_vec();
    row.extend([what.to_owned(), bytes.to_string()]);
    let times = [summary.p50, summary.p90, summary.p99, summary.p999, summary.max];
    row.extend(times.map(|time| format!("{:.1}", time.as_secs_f64() * 1e3)));
    row
}

fn table(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(headings);
    rows.for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index > 2 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
