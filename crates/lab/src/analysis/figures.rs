//! The figures of one direction of a connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_netsim::traffic::packet::Protocol;
use rexmit_netsim::traffic::trace::Sender;
use serde::Serialize;

use super::connection::Connection;
use super::data::Data;
use super::latencies::{Latencies, Latency, LatencyByNumber, RangeRow};
use super::losses::Losses;
use super::unit::{Cause, Transmission, Unit};
use crate::measure::LatencySummary;

/// The data that one side of a connection sent, and its fate.
///
/// A *range* is data that was always sent together: bytes of TCP, or a chunk of SCTP.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DirectionAnalysis {
    /// The number of the connection, as in [`TraceStatistics`](crate::traffic::TraceStatistics).
    pub flow: u32,
    /// `tcp` or `sctp`.
    pub protocol: &'static str,
    /// The side that sent.
    pub direction: Sender,
    /// The address of that side.
    pub from: SocketAddr,
    /// The address of the other side.
    pub to: SocketAddr,
    /// From the first to the last packet of the connection.
    pub seconds: f64,
    /// Whether losses, spurious retransmissions and hits are known, because packets were captured at the receiver, too.
    /// Otherwise they are estimated from ACKs.
    pub is_exact: bool,
    /// Packets and bytes.
    pub sent: SentFigures,
    /// Repeated data, by cause.
    pub repeated: BTreeMap<Cause, CauseFigures>,
    /// Redundant copies (RDB).
    pub redundancy: RedundancyFigures,
    /// Acknowledgements.
    pub acks: AckFigures,
    /// The path.
    pub path: PathFigures,
    /// Latency per byte.
    pub latency: Latency,
    /// The same by the number of retransmissions of a range; the last entry includes all from number 5 on.
    pub by_retransmissions: Vec<LatencyByNumber>,
    /// Every range, in the order of its numbers.
    #[serde(skip)]
    pub ranges: Vec<RangeRow>,
}

/// Packets, ranges and bytes sent.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct SentFigures {
    /// Packets with data.
    pub packets: u64,
    /// Of these packets, those that repeat data.
    pub repeating_packets: u64,
    /// Payload of all packets.
    pub bytes: u64,
    /// Payload bytes without repetitions.
    pub new_bytes: u64,
    /// Ranges.
    pub ranges: u64,
    /// Keep-alives of TCP, which no other figure includes.
    pub keep_alives: u64,
    /// Ranges that the sender abandoned (RFC 3758).
    pub abandoned: u64,
    /// Packets that arrived more than once, if the receiver's were captured.
    pub doubled: u64,
}

/// Data repeated for one cause.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CauseFigures {
    /// Packets whose first repeated data has this cause.
    pub packets: u64,
    /// Transmissions of ranges.
    pub ranges: u64,
    /// Bytes.
    pub bytes: u64,
    /// Ranges of `ranges` before which another transmission of the range arrived; for redundant copies see
    /// [`RedundancyFigures`].
    pub spurious: u64,
}

/// Redundant copies, bundled with new data or alone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct RedundancyFigures {
    /// Packets with copies.
    pub packets: u64,
    /// Copies of ranges.
    pub copies: u64,
    /// The bytes of these copies.
    pub bytes: u64,
    /// Copies that delivered their range before any other transmission; `None` if the capture does not show it, because the
    /// receiver reports no data that arrived again (RFC 2883).
    pub hits: Option<u64>,
    /// The bytes of these copies.
    pub hit_bytes: Option<u64>,
}

/// ACKs to the side that sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct AckFigures {
    /// Packets that acknowledge.
    pub acks: u64,
    /// Duplicate ACKs; for SCTP, SACKs with gaps that do not advance the cumulative TSN.
    pub duplicates: u64,
    /// Series of one duplicate ACK.
    pub series_of_1: u64,
    /// Series of two.
    pub series_of_2: u64,
    /// Series of three or more.
    pub series_of_3: u64,
}

/// The path from the sender of the data.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PathFigures {
    /// The shortest round trip of the connection in milliseconds: of its first packets, or of data and ACKs.
    pub rtt_ms: Option<f64>,
    /// From the first transmission of data to the ACK, at the place of capture.
    pub ack: Option<LatencySummary>,
    /// Packets with data that were lost, before or after the place of capture.
    pub lost: u64,
    /// Share of packets that were lost.
    pub loss: f64,
    /// The mean number of lost packets in a row; `None` without losses.
    pub burst: Option<f64>,
}

impl DirectionAnalysis {
    /// The figures of the data from `sender`, which must have sent data.
    pub(super) fn new(flow: u32, connection: &Connection, sender: Sender) -> Self {
        let ends = connection.ends;
        let (data, from, to) = match sender {
            Sender::Client => (&connection.data[0], ends.client, ends.server),
            Sender::Server => (&connection.data[1], ends.server, ends.client),
        };
        let rtt = connection.rtt();
        let losses = Losses::of(data, connection.times.1, rtt);
        let (begin, end) = connection.times;
        let latencies = Latencies::of(data, begin);
        let repeated = repeated(data);
        Self {
            flow,
            protocol: if ends.protocol == Protocol::Tcp { "tcp" } else { "sctp" },
            direction: sender,
            from,
            to,
            seconds: end.saturating_sub(begin).as_secs_f64(),
            is_exact: data.arrivals.are_known,
            sent: sent(data),
            redundancy: redundancy(data, &repeated),
            repeated,
            acks: acks(data),
            path: PathFigures {
                rtt_ms: rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
                ack: data.acks.rtt.summary(),
                lost: losses.lost,
                loss: losses.share(),
                burst: losses.burst(),
            },
            latency: latencies.latency,
            by_retransmissions: latencies.by_number,
            ranges: latencies.ranges,
        }
    }

    /// Retransmissions of ranges, without redundant copies.
    #[must_use]
    pub fn retransmissions(&self) -> u64 {
        self.sum(|figures| figures.ranges)
    }

    /// Spurious retransmissions of ranges.
    #[must_use]
    pub fn spurious(&self) -> u64 {
        self.sum(|figures| figures.spurious)
    }

    fn sum(&self, of: impl Fn(&CauseFigures) -> u64) -> u64 {
        self.repeated.iter().filter(|(cause, _)| !cause.is_redundant()).map(|(_, it)| of(it)).sum()
    }
}

impl Connection {
    /// The shortest round trip of the connection.
    fn rtt(&self) -> Option<Duration> {
        let [client, server] = [&self.data[0], &self.data[1]].map(|data| data.acks.rtt_min);
        // Each has the part of the round trip on its side of the place of capture.
        let of_client = server.or(self.handshake.of_client);
        let both = client.zip(of_client).map(|(client, server)| client + server);
        match (self.handshake.rtt, both) {
            (Some(rtt), Some(both)) => Some(rtt.min(both)),
            (one, other) => one.or(other).or(client).or(server),
        }
    }
}

fn sent(data: &Data) -> SentFigures {
    let units = || data.units.values();
    SentFigures {
        packets: data.packets.len() as u64,
        repeating_packets: data.counts.packets_by_cause.iter().sum(),
        bytes: data.counts.bytes,
        new_bytes: units().map(|unit| u64::from(unit.bytes)).sum(),
        ranges: data.units.len() as u64,
        keep_alives: data.counts.keep_alives,
        abandoned: units().filter(|unit| unit.is_abandoned).count() as u64,
        doubled: data.arrivals.doubled,
    }
}

fn acks(data: &Data) -> AckFigures {
    let [series_of_1, series_of_2, series_of_3] = data.acks.series;
    let (acks, duplicates) = (data.acks.count, data.acks.duplicates);
    AckFigures { acks, duplicates, series_of_1, series_of_2, series_of_3 }
}

fn repeated(data: &Data) -> BTreeMap<Cause, CauseFigures> {
    let mut repeated: BTreeMap<Cause, CauseFigures> = BTreeMap::new();
    for unit in data.units.values() {
        for (number, transmission) in unit.sent.iter().enumerate() {
            let Some(cause) = transmission.cause else { continue };
            let figures = repeated.entry(cause).or_default();
            figures.ranges += 1;
            figures.bytes += u64::from(unit.bytes);
            figures.spurious +=
                u64::from(!cause.is_redundant() && Losses::is_spurious(data, unit, number));
        }
    }
    for (cause, figures) in &mut repeated {
        figures.packets = data.counts.packets_by_cause[*cause as usize];
    }
    repeated
}

fn redundancy(data: &Data, repeated: &BTreeMap<Cause, CauseFigures>) -> RedundancyFigures {
    let mut figures = RedundancyFigures::default();
    for (_, by_cause) in repeated.iter().filter(|(cause, _)| cause.is_redundant()) {
        figures.packets += by_cause.packets;
        figures.copies += by_cause.ranges;
        figures.bytes += by_cause.bytes;
    }
    if figures.copies == 0 || !(data.arrivals.are_known || data.acks.reports_duplicates) {
        return figures;
    }
    let hit: Vec<&Unit> = data.units.values().filter(|unit| is_hit(data, unit)).collect();
    figures.hits = Some(hit.len() as u64);
    figures.hit_bytes = Some(hit.iter().map(|unit| u64::from(unit.bytes)).sum());
    figures
}

/// Whether a redundant copy of a unit delivered it.
fn is_hit(data: &Data, unit: &Unit) -> bool {
    let is_copy = |it: &&Transmission| it.cause.is_some_and(Cause::is_redundant);
    if data.arrivals.are_known {
        let mut copies = unit.sent.iter().filter(is_copy);
        return unit.arrived.is_some_and(|(_, packet)| copies.any(|it| it.packet == packet));
    }
    unit.sent.iter().any(|it| is_copy(&it))
        && unit.acked.is_some()
        && unit.duplicates == 0
        && unit.retransmissions() == 0
}
