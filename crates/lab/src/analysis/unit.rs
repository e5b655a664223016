//! The data of one direction of a connection, as packets in the capture show it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// Why a packet repeats data, as far as a capture shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// At least three reports of later data since it was last sent: duplicate ACKs (RFC 5681 §3.2), segments of TCP in SACK
    /// blocks (RFC 6675 §4), SACKs of SCTP (RFC 9260 §7.2.4).
    Fast,
    /// One or two: early retransmit (RFC 5827), RACK (RFC 8985), or a rule for thin streams.
    Early,
    /// No report: a retransmission timeout or a probe timer.
    Timer,
    /// The receiver had closed its window.
    WindowProbe,
    /// Redundant: in a packet with new data (RDB), before any ACK reported a loss.
    Bundled,
    /// Redundant: alone, and sent before any ACK could have reported a loss.
    Copy,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Fast, Self::Early, Self::Timer, Self::WindowProbe, Self::Bundled, Self::Copy];

    /// Whether the sender repeated the data without knowing of a loss.
    #[must_use]
    pub const fn is_redundant(self) -> bool {
        matches!(self, Self::Bundled | Self::Copy)
    }

    /// The name of the cause in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Early => "early",
            Self::Timer => "timer",
            Self::WindowProbe => "window_probe",
            Self::Bundled => "bundled",
            Self::Copy => "copy",
        }
    }
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// The packet was not seen at the receiver.
    Unseen,
    /// A comment in the capture marks it as lost.
    Lost,
    /// The packet arrived at this time.
    Arrived(Duration),
}

/// A packet with data, as captured at the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    pub(super) time: Duration,
    pub(super) fate: Fate,
}

/// One transmission of a unit: the number of its packet, and why it repeats the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) packet: usize,
    /// `None` for the first one.
    pub(super) cause: Option<Cause>,
}

/// The part of a message in a chunk of SCTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) stream: u16,
    pub(super) is_unordered: bool,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
}

/// Data that was always sent together: bytes of TCP, or the chunk of a TSN. Units are stored by their first number.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// The number after its last.
    pub(super) end: u64,
    pub(super) bytes: u32,
    /// In the order of sending; never empty.
    pub(super) sent: SmallVec<[Transmission; 1]>,
    /// When an ACK first covered all of it.
    pub(super) acked: Option<Duration>,
    /// How often the receiver reported that it arrived again.
    pub(super) duplicates: u32,
    /// The first arrival of the unit, and the packet that arrived.
    pub(super) arrived: Option<(Duration, usize)>,
    /// Whether data above it was captured earlier.
    pub(super) is_late: bool,
    /// Whether the sender abandoned it (RFC 3758).
    pub(super) is_abandoned: bool,
    /// The part of a message that the chunk has; `None` for TCP.
    pub(super) part: Option<Part>,
}

impl Unit {
    /// The last transmission of the unit.
    pub(super) fn last(&self) -> Transmission {
        self.sent[self.sent.len() - 1]
    }

    /// The number of its transmissions after the first that are not redundant.
    pub(super) fn retransmissions(&self) -> usize {
        self.sent.iter().filter(|it| it.cause.is_some_and(|cause| !cause.is_redundant())).count()
    }

    /// Splits off what begins at `at`, which is within it; only bytes of TCP can be split.
    pub(super) fn split(&mut self, start: u64, at: u64) -> Self {
        let rest = Self { bytes: (self.end - at) as u32, ..self.clone() };
        (self.end, self.bytes) = (at, (at - start) as u32);
        rest
    }
}
