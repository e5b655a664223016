//! Statistics of a trace or capture, per flow and direction and in total.

use comfy_table::{CellAlignment, Table, presets};
pub use rexmit_netsim::traffic::stats::{Interarrival, Row};
pub use rexmit_netsim::traffic::trace::{Sender, Trace, TraceError};
use serde::Serialize;

const HEADINGS: [&str; 14] = [
    "flow", "dir", "packets", "avg B", "min B", "max B", "avg ms", "med ms", "min ms", "max ms",
    "1% ms", "99% ms", "pkt/s", "bit/s",
];

/// The statistics of one trace, as in Table 1 of the thin-stream papers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceStatistics {
    /// The traffic in the trace.
    pub trace: String,
    /// A row for each direction of each flow that has messages.
    pub flows: Vec<FlowRow>,
    /// A row for each direction of all flows together.
    pub total: Vec<TotalRow>,
}

/// The row of one direction of one flow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowRow {
    /// The flow's number in the trace.
    pub flow: u32,
    /// The sender.
    pub direction: Sender,
    /// The figures.
    #[serde(flatten)]
    pub row: Row,
}

/// The row of one direction of all flows.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TotalRow {
    /// The sender.
    pub direction: Sender,
    /// The figures.
    #[serde(flatten)]
    pub row: Row,
}

impl TraceStatistics {
    /// The statistics of `trace`.
    #[must_use]
    pub fn new(trace: &Trace) -> Self {
        let mut statistics =
            Self { trace: trace.name.clone(), flows: Vec::new(), total: Vec::new() };
        for direction in [Sender::Client, Sender::Server] {
            for flow in &trace.flows {
                let row = Row::of_flows([flow.messages(direction)]);
                statistics.flows.extend(row.map(|row| FlowRow { flow: flow.id, direction, row }));
            }
            let row = Row::of_trace(trace, direction);
            statistics.total.extend(row.map(|row| TotalRow { direction, row }));
        }
        statistics
    }

    /// The rows as a table for a terminal, with the totals last, followed by an explanation of the
    /// columns.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(HEADINGS);
        for FlowRow { flow, direction, row } in &self.flows {
            table.add_row(cells(&flow.to_string(), *direction, row));
        }
        for TotalRow { direction, row } in &self.total {
            table.add_row(cells("all", *direction, row));
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
            if column.index > 1 {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        format!(
            "{}\n{lines}dir: c2s from the side that connected, s2c from the other. B: payload of a \
             packet.\nms: time between two packets of a flow. bit/s: with {} bytes of headers per \
             packet.\n",
            self.trace,
            rexmit_netsim::traffic::stats::HEADER_BYTES
        )
    }
}

fn cells(flow: &str, direction: Sender, row: &Row) -> Vec<String> {
    let gap = |pick: fn(&Interarrival) -> f64| {
        row.interarrival.as_ref().map_or_else(|| "–".into(), |gaps| format!("{:.3}", pick(gaps)))
    };
    let direction = match direction {
        Sender::Client => "c2s",
        Sender::Server => "s2c",
    };
    vec![
        flow.into(),
        direction.into(),
        row.packets.to_string(),
        format!("{:.0}", row.payload_mean),
        row.payload_min.to_string(),
        row.payload_max.to_string(),
        gap(|gaps| gaps.mean_ms),
        gap(|gaps| gaps.median_ms),
        gap(|gaps| gaps.min_ms),
        gap(|gaps| gaps.max_ms),
        gap(|gaps| gaps.p1_ms),
        gap(|gaps| gaps.p99_ms),
        format!("{:.3}", row.packets_per_second),
        format!("{:.0}", row.bits_per_second),
    ]
}
