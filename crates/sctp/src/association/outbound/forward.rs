//! Partial reliability: which messages are abandoned, and the FORWARD-TSN that lets the peer skip them (RFC
//! 3758, RFC 7496, RFC 8260 §2.3.1).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_recovery::{Skipped, T3Event, Unit, UnitState};

use super::super::context::Recovery;
use crate::event::FailReason;
use crate::message::Reliability;
use crate::streams::Fragment;
use crate::wire::{PacketWriter, SkippedMid, forward_tsn_len, i_forward_tsn_len};

/// The TSNs and messages that a FORWARD-TSN skips.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    /// Whether both sides support RFC 3758.
    is_supported: bool,
    /// Whether a FORWARD-TSN is to be sent.
    is_owed: bool,
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5).
    advanced: u64,
    sent_at: Option<Instant>,
    /// The TSNs that a FORWARD-TSN has skipped.
    told: Skipped,
    /// The last TSN that was assigned before the latest reset that the peer has performed.
    reset_through: u64,
}

impl Forward {
    pub(super) const fn new(cumulative: u64) -> Self {
        Self {
            is_supported: false,
            is_owed: false,
            advanced: cumulative,
            sent_at: None,
            told: Skipped::NONE,
            reset_through: 0,
        }
    }

    pub(super) const fn on_peer_known(&mut self, is_supported: bool) {
        self.is_supported = is_supported;
    }

    pub(super) const fn is_supported(&self) -> bool {
        self.is_supported
    }

    /// The TSNs that a FORWARD-TSN has skipped.
    pub(super) const fn told(&self) -> Skipped {
        self.told
    }

    pub(super) const fn is_owed(&self) -> bool {
        self.is_owed
    }

    /// Called when the peer has performed a reset of streams, before which the last TSN was `last`.
    pub(super) const fn on_streams_reset(&mut self, last: u64) {
        self.reset_through = last;
    }

    /// Why the message of `unit`, which is about to be retransmitted, has to be abandoned instead; `None` if
    /// it has not.
    pub(super) fn reason_to_abandon(
        &self,
        now: Instant,
        unit: &Unit<Fragment>,
    ) -> Option<FailReason> {
        if !self.is_supported {
            return None;
        }
        if unit.payload.expires.is_some_and(|at| at <= now) {
            return Some(FailReason::Expired);
        }
        match unit.payload.reliability {
            Reliability::MaxRetransmissions(limit) if unit.transmissions() > limit => {
                Some(FailReason::RetransmissionLimit)
            }
            _ => None,
        }
    }

    /// Called when T3-rtx expired: schedules another FORWARD-TSN if the peer is behind the
    /// Advanced.Peer.Ack.Point. Returns whether it is.
    pub(super) const fn on_timeout(&mut self, cumulative: u64) -> bool {
        let is_behind = self.advanced > cumulative;
        self.is_owed |= is_behind;
        is_behind
    }

    /// Moves Advanced.Peer.Ack.Point over abandoned chunks, and requests a FORWARD-TSN while the peer is
    /// behind it (RFC 3758 §3.5 C1–C3): at once when it has moved, otherwise once per round trip of `path`,
    /// which carries it.
    pub(super) fn advance(&mut self, now: Instant, path: u8, recovery: &mut Recovery) {
        let outstanding = recovery.outstanding();
        let before = self.advanced;
        self.advanced = before.max(outstanding.cumulative());
        let is_abandoned =
            |tsn| outstanding.unit(tsn).is_some_and(|unit| unit.state() == UnitState::Abandoned);
        while is_abandoned(self.advanced + 1) {
            self.advanced += 1;
        }
        if self.advanced <= outstanding.cumulative() {
            self.sent_at = None;
            self.is_owed = false;
            return;
        }
        let srtt = recovery.paths()[path].timer().rtt().srtt();
        let round_trip = srtt.unwrap_or(Duration::from_secs(1));
        let has_moved = self.advanced > before;
        self.is_owed |= has_moved || self.sent_at.is_none_or(|at| now - at >= round_trip);
        recovery.on_t3_event(now, path, T3Event::Needed);
    }

    /// Writes FORWARD-TSN (RFC 3758 §3.2): the largest skipped SSN of each stream concerned. If messages are
    /// interleaved, I-FORWARD-TSN with their MIDs, also of unordered messages. Returns whether it was
    /// written; if it does not fit, it waits for the next packet.
    ///
    /// Around a stream reset, an SSN could be mistaken for one assigned after the reset. So the FORWARD-TSN
    /// does not go beyond `last_before_reset`, the last TSN before an unanswered reset, and lists no SSN from
    /// before a performed one.
    pub(super) fn write(
        &mut self,
        now: Instant,
        last_before_reset: Option<u64>,
        is_interleaved: bool,
        recovery: &Recovery,
        writer: &mut PacketWriter<'_>,
    ) -> bool {
        let cumulative = recovery.outstanding().cumulative();
        let last = last_before_reset.filter(|&last| last > cumulative);
        let until = last.unwrap_or(u64::MAX).min(self.advanced);
        let mut advanced = cumulative;
        let mut skipped: Vec<SkippedMid> = Vec::new();
        let room = writer.room();
        let len = if is_interleaved { i_forward_tsn_len } else { forward_tsn_len };
        for (tsn, unit) in recovery.outstanding().units_from(0) {
            if tsn > until {
                break;
            }
            let &Fragment { stream, unordered, mid, .. } = &unit.payload;
            if (is_interleaved || !unordered) && tsn > self.reset_through {
                let is_full = len(skipped.len() + 1) > room;
                let is_same = |s: &&mut SkippedMid| s.stream == stream && s.unordered == unordered;
                match skipped.iter_mut().find(is_same) {
                    Some(skipped) => skipped.mid = mid,
                    None if is_full => break,
                    None => skipped.push(SkippedMid { stream, unordered, mid }),
                }
            }
            advanced = tsn;
        }
        let tsn = advanced as u32;
        let is_written = advanced > cumulative
            && if is_interleaved {
                writer.i_forward_tsn(tsn, skipped)
            } else {
                writer.forward_tsn(tsn, skipped.iter().map(|s| (s.stream, s.mid as u16)))
            };
        if is_written {
            self.is_owed = false;
            self.sent_at = Some(now);
            if advanced > self.told.latest.0 {
                self.told = Skipped { before: self.told.latest.0, latest: (advanced, now) };
            }
        }
        is_written
    }
}
