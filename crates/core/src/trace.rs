//! The event stream of an endpoint: one value per thing that happened, with its reason.
//!
//! The lab turns it into latency by cause, captures and pictures; tests read it; nothing else pays
//! for it: an endpoint without a sink records nothing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Instant;

/// Receives the events of one endpoint in the order in which they happened.
pub trait TraceSink: Send {
    /// `event` happened at `now` in association number `association` of the endpoint.
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent);
}

/// Hands events to a sink, if there is one; the cost without a sink is one branch.
pub struct Tracer<'a> {
    now: Instant,
    association: u32,
    sink: Option<&'a mut dyn TraceSink>,
}

impl<'a> Tracer<'a> {
    /// A tracer for what happens in `association` at `now`.
    pub fn new(now: Instant, association: u32, sink: Option<&'a mut dyn TraceSink>) -> Self {
        Self { now, association, sink }
    }

    /// A tracer without a sink.
    #[must_use]
    pub const fn off() -> Self {
        Self { now: Instant::ZERO, association: 0, sink: None }
    }

    /// Records what `event` makes; does not call it without a sink.
    pub fn emit(&mut self, event: impl FnOnce() -> TraceEvent) {
        if let Some(sink) = self.sink.as_deref_mut() {
            sink.record(self.now, self.association, &event());
        }
    }
}

/// Why a data unit was sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendCause {
    /// Data for the first time.
    New,
    /// The retransmission timer expired (RFC 9260 §6.3.3).
    Timeout,
    /// Enough missing reports (RFC 9260 §7.2.4).
    FastRetransmit,
    /// Outstanding data bundled with a retransmission that had room.
    Bundled,
    /// A probe of a closed receive window (RFC 9260 §6.1 A).
    WindowProbe,
    /// The timer of Early Fast Retransmit expired while the window was not full.
    Early,
    /// A redundant copy of outstanding data, bundled with new data or in a packet of its own. As the cause of
    /// a loss: a copy repaired it.
    Redundant,
    /// The probe timer of a thin stream expired (PTO, as in RFC 9002 §6.2).
    Probe,
}

impl SendCause {
    /// Every cause, in the order of declaration.
    pub const ALL: [Self; 8] = [
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SentRun {
    /// The lowest sequence number (unwrapped).
    pub lowest: u64,
    /// The highest.
    pub highest: u64,
    /// Why they were sent.
    pub cause: SendCause,
}

/// What told that a retransmission event was spurious.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detector {
    /// Every copy that was sent in it was reported as a duplicate (RFC 3708).
    Duplicates,
    /// The acknowledgement echoes a timestamp from before it (RFC 3522).
    Timestamps,
    /// What had left before it was acknowledged after it (RFC 5682).
    FRto,
}

/// What happened.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceEvent {
    /// The association went to another state of RFC 9260 §4.
    State {
        /// The new state, in the RFC's words.
        state: &'static str,
    },
    /// A message of the local application got the sequence numbers of its data units.
    MessageNumbered {
        /// Its number in the association, as the sending application knows it.
        message: u64,
        /// The stream it goes over.
        stream: u16,
        /// Its lowest and highest sequence number (unwrapped).
        sequence: (u64, u64),
    },
    /// A packet that carries data left.
    PacketSent {
        /// Its number in the ledger.
        packet: u64,
        /// The path's index.
        path: u8,
        /// Data units in it.
        units: u16,
        /// User data in it, in bytes.
        bytes: u32,
        /// The runs of data units in it, ascending.
        runs: Vec<SentRun>,
    },
    /// The packet told of just before also carries copies ([`SendCause::Redundant`]) of data units
    /// that are in flight with others.
    CopiesSent {
        /// Its number in the ledger.
        packet: u64,
        /// The path's index.
        path: u8,
        /// The sequence numbers (unwrapped) of the copies: lowest and highest of each run, ascending.
        runs: Vec<(u64, u64)>,
    },
    /// An acknowledgement arrived and was not stale (RFC 9260 §6.2.1 i).
    AckReceived {
        /// Everything up to this sequence number (unwrapped) has arrived.
        cumulative: u64,
        /// Data received beyond it: lowest and highest sequence number of each run, ascending.
        gaps: Vec<(u64, u64)>,
    },
    /// Every data unit of the packet is acknowledged.
    PacketAcked {
        /// Its number in the ledger.
        packet: u64,
    },
    /// The packet was declared lost.
    PacketLost {
        /// Its number in the ledger.
        packet: u64,
        /// What gave it away.
        cause: SendCause,
    },
    /// A packet that was declared lost had arrived after all.
    PacketSpurious {
        /// Its number in the ledger.
        packet: u64,
    },
    /// A retransmission event began: the timer of a path expired, or its window is reduced because
    /// something was declared lost by what acknowledgements say. What is retransmitted for the same cause
    /// until the next one belongs to it.
    RetransmissionEvent {
        /// The path's index: that over which the units declared lost had left.
        path: u8,
        /// A timeout, or a fast retransmit.
        kind: SendCause,
    },
    /// All that the latest retransmission event of a path declared lost had arrived.
    EventSpurious {
        /// The path's index.
        path: u8,
        /// What began the event: a timeout, or a fast retransmit.
        kind: SendCause,
        /// What told it.
        by: Detector,
    },
    /// The window goes back to where it was before a retransmission event that was spurious.
    Undone {
        /// The path's index.
        path: u8,
        /// Congestion window, in bytes.
        cwnd: u64,
        /// Slow start threshold, in bytes: the window before the event.
        ssthresh: u64,
    },
    /// Loss is detected by another number of missing reports from here on.
    LossThreshold {
        /// The path's index.
        path: u8,
        /// Missing reports that make a loss.
        missing_reports: u16,
        /// The fraction of reordered packets that this is to spare a retransmission.
        percentile: f64,
    },
    /// A round-trip time was measured.
    RttSample {
        /// The path's index.
        path: u8,
        /// The measurement.
        rtt: Duration,
        /// The smoothed value after it.
        srtt: Duration,
        /// The retransmission timeout after it.
        rto: Duration,
    },
    /// The retransmission timer of a path expired.
    RetransmissionTimeout {
        /// The path's index.
        path: u8,
        /// The timeout that applies from here on.
        rto: Duration,
    },
    /// A stream became thin, or is no longer, or was judged for the first time. Told only where
    /// something depends on it.
    Thin {
        /// The group of data units: 0, or one that the application singled out.
        group: u8,
        /// Whether it is thin now.
        is_thin: bool,
        /// Packets in flight.
        in_flight: u32,
        /// The fraction of packets declared lost.
        loss_rate: f64,
        /// The most packets in flight of a thin stream.
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
    /// A packet was dropped on arrival.
    Dropped {
        /// The reason.
        reason: &'static str,
    },
}
