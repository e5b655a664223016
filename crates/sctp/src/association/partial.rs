//! Partial reliability: giving messages up, and telling the peer to go on without them
//! (RFC 3758, RFC 7496).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_recovery::UnitState;

use super::{Association, Context};
use crate::event::FailReason;
use crate::message::Reliability;
use crate::wire::{PacketWriter, forward_tsn_len};

/// How far the peer is to go on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ForwardState {
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5).
    advanced: u64,
    sent_at: Option<Instant>,
    /// SSNs up to this TSN were assigned before a reset that the peer has performed.
    pub(super) reset_through: u64,
}

impl ForwardState {
    pub(super) const fn new(cumulative: u64) -> Self {
        Self { advanced: cumulative, sent_at: None, reset_through: 0 }
    }

    /// Whether the peer does not know yet that it is to go on.
    pub(super) const fn is_owed(&self, cumulative: u64) -> bool {
        self.advanced > cumulative
    }
}

impl Association {
    /// Why the message of `tsn`, which is about to be sent again, is to be given up instead.
    pub(super) fn reason_to_abandon(&self, now: Instant, tsn: u64) -> Option<FailReason> {
        let unit = self.out.recovery.unit(tsn).filter(|_| self.supports_forward_tsn)?;
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

    /// Gives up the message that `tsn` is a part of, all of it.
    pub(super) fn abandon_message(&mut self, cx: &mut Context<'_>, tsn: u64, reason: FailReason) {
        let recovery = &self.out.recovery;
        let Some(unit) = recovery.unit(tsn) else { return };
        let (id, single) = (unit.payload.message, unit.payload.to_message());
        let is_part = |tsn: u64| recovery.unit(tsn).is_some_and(|u| u.payload.message == id);
        let (mut first, mut last) = (tsn, tsn);
        while is_part(first - 1) {
            first -= 1;
        }
        while is_part(last + 1) {
            last += 1;
        }
        for tsn in first..=last {
            self.out.recovery.abandon(tsn);
        }
        self.out.skip_rest(id);
        let message = self.take_divided(id).unwrap_or(single);
        self.fail_message(cx, (id, message), reason, true);
        self.advance_peer_ack_point(cx);
    }

    /// When a message of which a part has left is to be given up, if the rest has not left by then
    /// (RFC 3758 §4.1 TR4).
    pub(super) fn rest_expiry(&self) -> Option<Instant> {
        self.out.queue.begun_expiry().filter(|_| self.supports_forward_tsn).map(|(at, _)| at)
    }

    fn abandon_expired_rest(&mut self, cx: &mut Context<'_>) {
        let Some((_, id)) = self.out.queue.begun_expiry() else { return };
        let last = self.out.recovery.next_unit() - 1;
        let unit = self.out.recovery.unit(last);
        if unit.is_some_and(|unit| unit.payload.message == id) {
            return self.abandon_message(cx, last, FailReason::Expired);
        }
        // All that left of it is acknowledged.
        self.out.skip_rest(id);
        if let Some(message) = self.take_divided(id) {
            self.fail_message(cx, (id, message), FailReason::Expired, true);
        }
        self.advance_peer_ack_point(cx);
    }

    /// Gives up messages whose lifetime is over and that have not left, or not entirely.
    pub(super) fn expire_queued_messages(&mut self, cx: &mut Context<'_>) {
        if self.rest_expiry().is_some_and(|at| at <= cx.now) {
            self.abandon_expired_rest(cx);
        }
        if self.out.queue.next_expiry().is_none_or(|at| at > cx.now) {
            return;
        }
        let mut expired = Vec::new();
        self.out.queue.expire(cx.now, |id, message| expired.push((id, message)));
        for failed in expired {
            self.fail_message(cx, failed, FailReason::Expired, false);
        }
        self.watch_window(cx);
    }

    /// Moves Advanced.Peer.Ack.Point over what was given up, and owes a FORWARD-TSN while the peer
    /// is behind it (RFC 3758 §3.5 C1–C3): when it has moved, and otherwise once per round trip.
    pub(super) fn advance_peer_ack_point(&mut self, cx: &mut Context<'_>) {
        let recovery = &self.out.recovery;
        let before = self.out.forward.advanced;
        let mut advanced = before.max(recovery.cumulative());
        let is_abandoned =
            |tsn| recovery.unit(tsn).is_some_and(|unit| unit.state() == UnitState::Abandoned);
        while is_abandoned(advanced + 1) {
            advanced += 1;
        }
        let round_trip =
            recovery.timer(self.control_path).rtt().srtt().unwrap_or(Duration::from_secs(1));
        let forward = &mut self.out.forward;
        forward.advanced = advanced;
        if !forward.is_owed(self.out.recovery.cumulative()) {
            forward.sent_at = None;
            self.owed.forward_tsn = false;
            return;
        }
        let has_moved = advanced > before;
        if has_moved || forward.sent_at.is_none_or(|at| cx.now - at >= round_trip) {
            self.owed.forward_tsn = true;
        }
        self.out.recovery.start_timer(cx.now, self.control_path);
    }

    /// Writes FORWARD-TSN (RFC 3758 §3.2): the largest skipped SSN of each stream concerned.
    ///
    /// Around a reset of streams an SSN may be taken for one that was assigned after it. So it goes no
    /// further than the last TSN before a reset that is not answered, where it says nothing to a peer
    /// that has performed it, and skips no SSN from before one that was performed.
    pub(super) fn write_forward_tsn(&mut self, now: Instant, writer: &mut PacketWriter<'_>) {
        let last = self.last_before_reset().filter(|&last| last > self.out.recovery.cumulative());
        let until = last.unwrap_or(u64::MAX).min(self.out.forward.advanced);
        let recovery = &self.out.recovery;
        let mut advanced = recovery.cumulative();
        let mut skipped: Vec<(u16, u16)> = Vec::new();
        let room = writer.room();
        for (tsn, unit) in recovery.units() {
            if tsn > until {
                break;
            }
            let fragment = &unit.payload;
            if !fragment.unordered && tsn > self.out.forward.reset_through {
                let is_full = forward_tsn_len(skipped.len() + 1) > room;
                match skipped.iter_mut().find(|(stream, _)| *stream == fragment.stream) {
                    Some((_, ssn)) => *ssn = fragment.ssn,
                    None if is_full => break,
                    None => skipped.push((fragment.stream, fragment.ssn)),
                }
            }
            advanced = tsn;
        }
        // Without room for any of it, it waits for the next packet.
        if advanced > recovery.cumulative() && writer.forward_tsn(advanced as u32, skipped) {
            self.owed.forward_tsn = false;
            self.out.forward.sent_at = Some(now);
            self.out.recovery.start_timer(now, self.control_path);
        }
    }
}
