//! One unit of data: its state and its transmissions.

use rexmit_core::trace::SendCause;

use super::repeats::{FirstTransmission, Repeats};
use super::{NewUnit, PacketNumber};

/// The state of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitState {
    /// Its last transmission is in flight.
    InFlight,
    /// Reported as received above the cumulative point.
    Acknowledged,
    /// Declared lost, and waiting to be retransmitted.
    Lost(SendCause),
    /// Abandoned (partial reliability): it is not retransmitted.
    Abandoned,
}

/// A transmission of a unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) packet: PacketNumber,
    pub(crate) path: u8,
    pub(crate) cause: SendCause,
}

/// How a unit was last sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastSent {
    pub(super) path: u8,
    pub(super) cause: SendCause,
}

/// A unit that was sent and is not cumulatively acknowledged.
#[derive(Clone, Debug)]
pub struct Unit<P> {
    /// Data of the protocol for a retransmission.
    pub payload: P,
    pub(super) bytes: u32,
    pub(super) user_bytes: u32,
    pub(super) group: u8,
    pub(super) path: u8,
    pub(super) state: UnitState,
    /// Its last transmission, in parts so that a unit with an SCTP fragment stays within the size that moves
    /// without a call (128 bytes).
    pub(super) last_sent: LastSent,
    pub(super) last_packet: PacketNumber,
    pub(super) transmissions: u16,
    /// Of the transmissions, those that were redundant copies.
    pub(super) redundant: u16,
    pub(super) is_fast_retransmitted: bool,
    pub(super) is_copied: bool,
    pub(super) is_on_several_paths: bool,
    pub(super) is_probe: bool,
    /// Set once it was declared lost or copied.
    pub(super) repeats: Option<Box<Repeats>>,
}

/// A unit that was abandoned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownAbandoned {
    pub(crate) group: u8,
    /// The path over which it was last sent.
    pub(crate) path: u8,
    /// Its transmission, if there was only one, that was declared lost, and round trips are measured by it.
    pub(crate) only_transmission: Option<FirstTransmission>,
}

impl<P> Unit<P> {
    /// In flight over `path`, in `packet`.
    #[inline]
    pub(super) const fn new(payload: P, new: NewUnit, path: u8, packet: PacketNumber) -> Self {
        Self {
            payload,
            bytes: new.bytes,
            user_bytes: new.user_bytes,
            group: new.group,
            path,
            state: UnitState::InFlight,
            last_sent: LastSent { path, cause: SendCause::New },
            last_packet: packet,
            transmissions: 1,
            redundant: 0,
            is_fast_retransmitted: false,
            is_copied: false,
            is_on_several_paths: false,
            is_probe: new.is_probe,
            repeats: None,
        }
    }

    /// The group that it was sent in.
    #[must_use]
    pub const fn group(&self) -> u8 {
        self.group
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> UnitState {
        self.state
    }

    /// How often it was sent because it was new or declared lost: redundant copies do not count.
    #[must_use]
    pub const fn transmissions(&self) -> u16 {
        self.transmissions.saturating_sub(self.redundant)
    }

    /// Bytes that congestion control counts: with header and padding.
    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The path on which it is outstanding: in flight over it, or waiting to be retransmitted over it.
    pub(crate) const fn path(&self) -> u8 {
        self.path
    }

    /// Its last transmission; copies bundled into other packets do not count.
    pub(crate) const fn last(&self) -> Transmission {
        let LastSent { path, cause } = self.last_sent;
        Transmission { packet: self.last_packet, path, cause }
    }

    /// It was sent once more.
    pub(super) const fn set_last(&mut self, last: Transmission) {
        self.last_packet = last.packet;
        self.last_sent = LastSent { path: last.path, cause: last.cause };
    }

    /// Whether it is in flight.
    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.state == UnitState::InFlight
    }

    /// Whether it is in flight in `packet`.
    pub(crate) fn is_in_flight_in(&self, packet: PacketNumber) -> bool {
        self.last_packet == packet && self.is_in_flight()
    }

    /// Whether it is in flight or waits to be retransmitted.
    #[inline]
    pub(crate) const fn is_outstanding(&self) -> bool {
        matches!(self.state, UnitState::InFlight | UnitState::Lost(_))
    }

    /// Whether it was sent once, redundant copies bundled into other packets aside.
    pub(crate) const fn is_first_transmission(&self) -> bool {
        self.transmissions == 1
    }

    /// The unit, if it was abandoned.
    pub(crate) fn abandoned(&self) -> Option<KnownAbandoned> {
        if self.state != UnitState::Abandoned {
            return None;
        }
        let is_only = self.is_first_transmission() && !self.is_copied;
        let first = self.repeats().and_then(Repeats::first).filter(|_| is_only);
        Some(KnownAbandoned { group: self.group, path: self.last().path, only_transmission: first })
    }

    /// How often it was sent, redundant copies in packets of their own included.
    pub(crate) const fn all_transmissions(&self) -> u16 {
        self.transmissions
    }

    /// Whether it was retransmitted as lost: it is ineligible for another fast retransmit
    /// (RFC 9260 §7.2.4 rule 5).
    pub(crate) const fn is_fast_retransmitted(&self) -> bool {
        self.is_fast_retransmitted
    }

    /// Whether missing reports of it count (RFC 9260 §7.2.4 rule 5).
    pub(crate) fn may_be_fast_retransmitted(&self) -> bool {
        self.is_in_flight() && !self.is_fast_retransmitted
    }

    /// Whether a redundant copy of it was sent.
    pub(crate) const fn is_copied(&self) -> bool {
        self.is_copied
    }

    /// Whether it probes a closed window: only T3-rtx repeats it.
    pub(crate) const fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// Its repeated transmissions.
    pub(crate) fn repeats(&self) -> Option<&Repeats> {
        self.repeats.as_deref()
    }
}
