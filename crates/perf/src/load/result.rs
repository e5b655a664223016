//! The measurements of the two programs of a load: one JSON document each, and a table.

use std::fmt::Write;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use rexmit_lab::measure::{Counters, LatencySummary, millis};
use serde::Serialize;

use super::Target;
use super::connections::Ended;

/// The counters of the sender. In JSON, the members of `counters` appear among the other fields.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Sent {
    /// Connections.
    pub connections: u32,
    /// Connections that did not end gracefully.
    pub broken: u32,
    /// Connections that could not be set up, not included in `connections`.
    pub not_set_up: u32,
    /// Messages that were due.
    pub messages: u64,
    /// Messages that were due but not, or possibly not, delivered.
    pub undelivered: u64,
    /// Bytes of the messages that were accepted for sending.
    pub payload_bytes: u64,
    /// From the first message to the end of the last connection; `duration_ms` in JSON.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Packets and bytes sent by the sender by cause, UDP and IP headers included.
    #[serde(flatten)]
    pub counters: Counters,
    /// Bytes on the wire per byte of payload; `null` without payload.
    pub wire_bytes_per_payload_byte: Option<f64>,
    /// Payload bits per second of `duration`.
    pub goodput_bits_per_second: f64,
    /// Bytes of the headers in front of an SCTP packet.
    #[serde(skip)]
    header_bytes: u64,
}

impl Sent {
    pub(super) fn new(target: &Target, not_set_up: u32) -> Self {
        let ip = if target.remote.is_ipv4() { 20 } else { 40 };
        Self {
            connections: 0,
            broken: 0,
            not_set_up,
            messages: 0,
            undelivered: 0,
            payload_bytes: 0,
            duration: Duration::ZERO,
            counters: Counters::default(),
            wire_bytes_per_payload_byte: None,
            goodput_bits_per_second: 0.0,
            header_bytes: ip + if target.raw { 0 } else { 8 },
        }
    }

    /// Adds a connection that has ended, on which `due` messages were due.
    pub(super) fn add(&mut self, due: u64, ended: &Ended) {
        let (traffic, recovery) = (&ended.statistics.traffic, &ended.statistics.recovery);
        self.connections += 1;
        self.broken += u32::from(!ended.is_graceful());
        self.messages += due;
        self.undelivered += due.saturating_sub(traffic.messages_accepted) + ended.failed;
        self.payload_bytes += traffic.payload_accepted_bytes;
        let bytes = traffic.bytes_sent + traffic.packets_sent * self.header_bytes;
        self.counters += Counters {
            retransmissions: recovery.retransmitted,
            spurious: recovery.spurious,
            packets: traffic.packets_sent,
            wire_bytes: bytes,
        };
    }

    /// Sets the time from the first message to the end of the last connection.
    pub(super) fn ended(mut self, duration: Duration) -> Self {
        self.duration = duration;
        let payload = self.payload_bytes as f64;
        if self.payload_bytes > 0 {
            self.wire_bytes_per_payload_byte = Some(self.counters.wire_bytes as f64 / payload);
        }
        self.goodput_bits_per_second = rate(self.payload_bytes, duration);
        self
    }

    /// The figures as a table for a terminal; with the goodput if it was a bulk load.
    #[must_use]
    pub fn table(&self, is_bulk: bool) -> String {
        let price = self.wire_bytes_per_payload_byte;
        let mut rows = vec![
            ("connections", self.connections.to_string()),
            ("messages", self.messages.to_string()),
            ("payload bytes", self.payload_bytes.to_string()),
            ("duration (s)", format!("{:.3}", self.duration.as_secs_f64())),
        ];
        if is_bulk {
            rows.push(("goodput (Mbit/s)", megabits(self.goodput_bits_per_second)));
        }
        let (again, spurious) = (&self.counters.retransmissions, &self.counters.spurious);
        rows.extend([
            ("packets sent", self.counters.packets.to_string()),
            ("wire bytes per payload byte", price.map_or_else(none, |price| format!("{price:.3}"))),
            ("retransmitted: timeout", again.timeout.to_string()),
            ("retransmitted: fast retransmit", again.fast_retransmit.to_string()),
            ("retransmitted: bundled", again.bundled.to_string()),
            ("retransmitted: window probe", again.window_probe.to_string()),
        ]);
        let rare = [
            ("retransmitted: early", again.early),
            ("retransmitted: probe", again.probe),
            ("of these spurious", spurious.total()),
        ];
        rows.extend(
            rare.iter()
                .filter(|(name, count)| *count > 0 || name.starts_with("of"))
                .map(|&(name, count)| (name, count.to_string())),
        );
        if again.redundant > 0 {
            rows.push(("copied redundantly", again.redundant.to_string()));
        }
        let mut text = aligned(rows);
        if self.undelivered > 0 || self.broken > 0 {
            let Self { undelivered, broken, .. } = self;
            let _ = writeln!(
                text,
                "{undelivered} messages were not delivered: {broken} connections failed."
            );
        }
        if self.not_set_up > 0 {
            let _ = writeln!(text, "{} connections could not be set up.", self.not_set_up);
        }
        text
    }
}

/// The measurements of the receiver of a thin load.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Received {
    /// Connections that were accepted.
    pub connections: u64,
    /// Messages of the load that were delivered.
    pub messages: u64,
    /// Messages that were not delivered, although a later one of the same connection was.
    pub missing: u64,
    /// Messages that were delivered after one sent later on their connection.
    pub overtaken: u64,
    /// Messages without a stamp; no other figure includes them.
    pub foreign: u64,
    /// Bytes of the messages of the load.
    pub payload_bytes: u64,
    /// From the first delivery to the last; `duration_ms` in JSON.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Time from when a message was due until it was delivered; `null` without messages.
    pub latency: Option<LatencySummary>,
}

impl Received {
    /// The figures as a table for a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let latency = |pick: fn(&LatencySummary) -> Duration| {
            let ms = |summary: &LatencySummary| millis::from_duration(pick(summary));
            self.latency.as_ref().map_or_else(none, |summary| format!("{:.3}", ms(summary)))
        };
        aligned([
            ("connections", self.connections.to_string()),
            ("messages", self.messages.to_string()),
            ("missing", self.missing.to_string()),
            ("overtaken", self.overtaken.to_string()),
            ("latency p50 (ms)", latency(|l| l.p50)),
            ("latency p90 (ms)", latency(|l| l.p90)),
            ("latency p99 (ms)", latency(|l| l.p99)),
            ("latency p99.9 (ms)", latency(|l| l.p999)),
            ("latency max (ms)", latency(|l| l.max)),
            ("latency mean (ms)", latency(|l| l.mean)),
        ])
    }
}

/// The state of a thin load while it runs.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Progress {
    /// Connections that are open.
    pub open: usize,
    /// The measurements so far.
    #[serde(flatten)]
    pub received: Received,
}

/// The measurements of the receiver of a bulk load.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct BulkReceived {
    /// Connections that were accepted.
    pub connections: u64,
    /// Messages that were delivered.
    pub messages: u64,
    /// Bytes of these messages.
    pub payload_bytes: u64,
    /// From the first delivery to the last; `duration_ms` in JSON.
    #[serde(rename = "duration_ms", with = "millis")]
    pub duration: Duration,
    /// Payload bits per second of `duration`.
    pub goodput_bits_per_second: f64,
    /// Packets that arrived.
    pub packets_received: u64,
    /// Packets that the receiver sent, nearly all of them acknowledgements.
    pub packets_sent: u64,
}

impl BulkReceived {
    /// The figures as a table for a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        aligned([
            ("connections", self.connections.to_string()),
            ("messages", self.messages.to_string()),
            ("payload bytes", self.payload_bytes.to_string()),
            ("duration (s)", format!("{:.3}", self.duration.as_secs_f64())),
            ("goodput (Mbit/s)", megabits(self.goodput_bits_per_second)),
            ("packets received", self.packets_received.to_string()),
            ("packets sent", self.packets_sent.to_string()),
        ])
    }
}

/// Bits per second; zero if no time has passed.
pub(super) fn rate(bytes: u64, duration: Duration) -> f64 {
    if duration.is_zero() { 0.0 } else { bytes as f64 * 8.0 / duration.as_secs_f64() }
}

fn megabits(bits_per_second: f64) -> String {
    format!("{:.3}", bits_per_second / 1e6)
}

fn none() -> String {
    "–".into()
}

fn aligned<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (name, value) in rows {
        table.add_row([name.to_owned(), value]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}
