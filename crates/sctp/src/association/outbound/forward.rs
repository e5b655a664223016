//! Partial reliability: which messages are given up, and telling the peer to go on without them
//! (RFC 3758, RFC 7496, RFC 8260 §2.3.1).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_recovery::{Skipped, T3Event, Unit, UnitState};

use super::super::context::Recovery;
use crate::event::FailReason;
use crate::message::Reliability;
use crate::streams::Fragment;
use crate::wire::{PacketWriter, SkippedMid, forward_tsn_len, i_forward_tsn_len};

/// How far the peer is to go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forward {
    /// Whether both sides support RFC 3758.
    is_supported: bool,
    /// A FORWARD-TSN is to leave.
    is_owed: bool,
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5).
    advanced: u64,
    sent_at: Option<Instant>,
    /// How far the peer was told to go on.
    told: Skipped,
    /// SSNs up to this TSN were assigned before a reset that the peer has performed.
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

    /// How far the peer was told to go on.
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

    /// Why the message of `unit`, which is about to be sent again, is to be given up instead.
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

    /// T3-rtx expired: schedules another FORWARD-TSN if the peer is behind the Advanced.Peer.Ack.Point.
    /// Returns whether it is.
    pub(super) const fn on_timeout(&mut self, cumulative: u64) -> bool {
        let is_behind = self.advanced > cumulative;
        self.is_owed |= is_behind;
        is_behind
    }

    /// Moves Advanced.Peer.Ack.Point over what was given up, and owes a FORWARD-TSN while the peer
    /// is behind it (RFC 3758 §3.5 C1–C3): when it has moved, and otherwise once per round trip of
    /// `path`, over which it goes.
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
    /// interleaved, I-FORWARD-TSN with their MIDs, also of unordered messages. Returns whether it is written;
    /// without room for any of it, it waits for the next packet.
    ///
    /// Around a reset of streams an SSN may be taken for one that was assigned after it. So it goes no
    /// further than `last_before_reset`, the last TSN before one that is not answered, where it says
    /// nothing to a peer that has performed it, and skips no SSN from before one that was performed.
    pub(super) fn write(
        &mut self,
        now: Instant,
        (last_before_reset, is_interleaved): (Option<u64>, bool),
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
