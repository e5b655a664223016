//! The trace of an endpoint: one event per state change or packet, with its cause.
//!
//! The lab derives latency by cause, captures and graphs from it, and tests check it. An endpoint
//! without a sink records nothing.

use std::time::Duration;

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

use crate::Instant;

/// Receives the events of one endpoint in the order of their time.
pub trait TraceSink: Send {
    /// Called for each `event` at `now` in association number `association` of the endpoint.
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent);
}

/// Passes each event to every sink of the list.
impl TraceSink for Vec<Box<dyn TraceSink>> {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        self.iter_mut().for_each(|sink| sink.record(now, association, event));
    }
}

/// Passes events to a sink, if there is one; without a sink, an event costs one branch.
pub struct Tracer<'a> {
    now: Instant,
    association: u32,
    sink: Option<&'a mut dyn TraceSink>,
}

impl<'a> Tracer<'a> {
    /// A tracer for events in `association` at `now`.
    pub fn new(now: Instant, association: u32, sink: Option<&'a mut dyn TraceSink>) -> Self {
        Self { now, association, sink }
    }

    /// A tracer without a sink.
    #[must_use]
    pub const fn off() -> Self {
        Self { now: Instant::ZERO, association: 0, sink: None }
    }

    /// Records the event that `event` returns; without a sink, `event` is not called.
    pub fn emit(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(sink) = self.sink.as_deref_mut() {
            sink.record(self.now, self.association, &event());
        }
    }
}

/// Why a data unit was sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SendCause {
    /// Data was sent for the first time.
    New,
    /// The retransmission timer expired (RFC 9260 §6.3.3).
    Timeout,
    /// Fast retransmit: enough missing reports (RFC 9260 §7.2.4), duplicate ACKs, or RACK.
    FastRetransmit,
    /// Outstanding data that was bundled with a retransmission, because the packet had room.
    Bundled,
    /// A probe of a zero receive window (RFC 9260 §6.1 A).
    WindowProbe,
    /// The timer of Early Fast Retransmit expired while the window was not full.
    Early,
    /// A redundant copy of outstanding data, bundled with new data or in a packet of its own. As the cause of a lost
    /// packet: a copy delivered its data.
    Redundant,
    /// The probe timer of a thin stream expired (PTO, as in RFC 9002 §6.2).
    Probe,
}

impl SendCause {
    /// Every cause, in the order of declaration.
    pub const ALL: &[Self] = &[
        Self::New,
        Self::Timeout,
        Self::FastRetransmit,
        Self::Bundled,
        Self::WindowProbe,
        Self::Early,
        Self::Redundant,
        Self::Probe,
    ];

    /// The name in traces and JSON, such as `fast_retransmit`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Timeout => "timeout",
            Self::FastRetransmit => "fast_retransmit",
            Self::Bundled => "bundled",
            Self::WindowProbe => "window_probe",
            Self::Early => "early",
            Self::Redundant => "redundant",
            Self::Probe => "probe",
        }
    }
}

/// Data units in a packet whose sequence numbers follow each other and that were sent for the same
/// cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[non_exhaustive]
pub struct SentRun {
    /// The lowest sequence number (unwrapped).
    pub lowest: u64,
    /// The highest sequence number.
    pub highest: u64,
    /// Why the units were sent.
    pub cause: SendCause,
}

impl SentRun {
    /// The units `lowest` to `highest`, both included.
    #[must_use]
    pub const fn new(lowest: u64, highest: u64, cause: SendCause) -> Self {
        Self { lowest, highest, cause }
    }
}

/// The method that detected a spurious retransmission event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Detector {
    /// Every retransmission of the event was reported as a duplicate (RFC 3708).
    Duplicates,
    /// The acknowledgement echoes a timestamp older than the retransmission (RFC 3522).
    Timestamps,
    /// F-RTO: after the timeout, an ACK covered data that had not been retransmitted (RFC 5682).
    FRto,
}

/// An event in the trace of an endpoint.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(tag = "event", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TraceEvent {
    /// The association changed to another state of RFC 9260 §4.
    State {
        /// The new state, in the RFC's words.
        state: &'static str,
    },
    /// The data units of a message of the local application were assigned their sequence numbers.
    MessageNumbered {
        /// The number of the message in the association, counted by the sending application.
        message: u64,
        /// The stream of the message.
        stream: u16,
        /// The lowest and the highest sequence number of the message (unwrapped).
        sequence: (u64, u64),
    },
    /// A packet with data was sent.
    PacketSent {
        /// The packet's number in the recovery state.
        packet: u64,
        /// The path's index.
        path: u8,
        /// Data units in the packet.
        units: u16,
        /// User data in the packet, in bytes.
        bytes: u32,
        /// The runs of data units in the packet, ascending.
        runs: Vec<SentRun>,
    },
    /// The packet of the preceding event also carries redundant copies ([`SendCause::Redundant`])
    /// of data units that are in flight in other packets.
    CopiesSent {
        /// The packet's number in the recovery state.
        packet: u64,
        /// The path's index.
        path: u8,
        /// The sequence numbers (unwrapped) of the copies: lowest and highest of each run, ascending.
        runs: Vec<(u64, u64)>,
    },
    /// A packet was written, of any kind. If it carries data, its [`PacketSent`](Self::PacketSent) precedes.
    Transmitted {
        /// Length of the packet from the protocol's own header on, in bytes.
        bytes: u32,
    },
    /// A packet of the peer arrived and belongs to the association. What it causes follows.
    Arrived {
        /// Length of the packet from the protocol's own header on, in bytes.
        bytes: u32,
    },
    /// An acknowledgement arrived and was not stale (RFC 9260 §6.2.1 i).
    AckReceived {
        /// The cumulative acknowledgement: the highest sequence number (unwrapped) up to which all
        /// data has arrived.
        cumulative: u64,
        /// Data received beyond it: lowest and highest sequence number of each run, ascending.
        gaps: Vec<(u64, u64)>,
    },
    /// Every data unit of the packet is acknowledged.
    PacketAcked {
        /// The packet's number in the recovery state.
        packet: u64,
    },
    /// The packet was declared lost.
    PacketLost {
        /// The packet's number in the recovery state.
        packet: u64,
        /// The mechanism that declared it lost.
        cause: SendCause,
    },
    /// A packet that was declared lost had arrived.
    PacketSpurious {
        /// The packet's number in the recovery state.
        packet: u64,
    },
    /// A retransmission event began: the retransmission timer of a path expired, or its window is
    /// reduced because acknowledgements show a loss. Retransmissions for the same cause belong to
    /// this event until the next one begins.
    RetransmissionEvent {
        /// The index of the path on which the units declared lost had been sent.
        path: u8,
        /// A timeout, or a fast retransmit.
        kind: SendCause,
    },
    /// The latest retransmission episode of a path proved spurious: none of the packets that it declared lost
    /// was lost.
    EventSpurious {
        /// The path's index.
        path: u8,
        /// The cause of the event: a timeout, or a fast retransmit.
        kind: SendCause,
        /// The method that detected it.
        by: Detector,
    },
    /// The congestion window is restored to its value before a spurious retransmission event.
    Undone {
        /// The path's index.
        path: u8,
        /// Congestion window, in bytes.
        cwnd: u64,
        /// Slow start threshold, in bytes: the congestion window before the event.
        ssthresh: u64,
    },
    /// The number of missing reports that declare a loss changed.
    LossThreshold {
        /// The path's index.
        path: u8,
        /// Missing reports after which a packet is declared lost.
        missing_reports: u16,
        /// The fraction of reordered packets that this threshold should tolerate, that is, that should not cause
        /// retransmissions.
        percentile: f64,
    },
    /// A round-trip time was measured.
    RttSample {
        /// The path's index.
        path: u8,
        /// The measurement.
        rtt: Duration,
        /// The smoothed RTT after the sample.
        srtt: Duration,
        /// The retransmission timeout after the sample.
        rto: Duration,
    },
    /// The retransmission timer of a path expired.
    RetransmissionTimeout {
        /// The path's index.
        path: u8,
        /// The timeout from now on.
        rto: Duration,
    },
    /// A stream became thin or ceased to be thin, or was classified for the first time. Recorded
    /// only if the configuration has mechanisms for thin streams.
    Thin {
        /// The group of data units: 0, or a group that the application defined.
        group: u8,
        /// Whether the stream is thin now.
        is_thin: bool,
        /// Packets in flight.
        in_flight: u32,
        /// The fraction of packets declared lost.
        loss_rate: f64,
        /// The largest number of packets in flight of a thin stream.
        bound: f64,
    },
    /// The congestion window or its threshold changed.
    Window {
        /// The path's index.
        path: u8,
        /// Congestion window, in bytes.
        cwnd: u64,
        /// Slow start threshold, in bytes.
        ssthresh: u64,
        /// User data in flight, in bytes.
        flight: u64,
    },
    /// A received packet was discarded.
    Dropped {
        /// The reason.
        reason: &'static str,
    },
}
