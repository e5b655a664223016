//! What leaves again, when loss recovery says so.

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;

use super::outbound::{Fin, Outbound, PATH, Piece};
use super::transmit::Reset;
use super::{Connection, Context};
use crate::event::CloseReason;

impl Connection {
    /// Consecutive timeouts end the connection (RFC 9293 §3.8.3, R2); a closed window that the peer
    /// confirms does not count (§3.8.6.1, MUST-37) until the application is gone: nobody else could
    /// end it then.
    pub(super) fn on_retransmission_timeouts(&mut self, cx: &mut Context<'_>) {
        self.out.recovery.on_early_timers(cx.now, &mut cx.tracer());
        while self.state.may_send_data()
            && let Some(path) = self.out.recovery.due_path(cx.now)
        {
            let (is_confirmed, has_backed_off) = self.on_timeout_kind(cx, path);
            if !has_backed_off || is_confirmed && !self.is_orphan {
                continue;
            }
            self.out.unanswered += 1;
            if self.out.unanswered > self.config.max_retransmits {
                // A peer that is there is to know.
                let reset = is_confirmed.then_some(Reset::Now);
                return self.end(cx, Some(CloseReason::TimedOut), reset);
            }
        }
    }
}

impl Outbound {
    /// The next segment to be sent again, if one may leave: lost units that follow each other go
    /// together as far as there is `room`.
    pub(super) fn cut_again(
        &mut self,
        now: Instant,
        room: u32,
        tracer: &mut Tracer<'_>,
    ) -> Option<Piece> {
        let mut unit = self.recovery.next_to_resend(PATH)?;
        if self.is_held_by_window(&self.recovery.unit(unit)?.payload) {
            return None;
        }
        self.recovery.begin_packet(PATH);
        let mut whole = *self.recovery.resend(now, unit)?;
        self.note_sent_again(whole, unit);
        while let Some(next) = self.next_beside(unit, whole, room) {
            self.recovery.resend(now, next);
            let piece = self.recovery.unit(next)?.payload;
            self.note_sent_again(piece, next);
            whole.len += piece.len;
            whole.has_fin |= piece.has_fin;
            unit = next;
        }
        if unit + 1 == self.recovery.next_unit() {
            self.add_new(now, &mut whole, room);
        }
        self.recovery.end_packet(now, tracer);
        Some(self.without_acknowledged(whole))
    }

    /// The lost unit right behind `unit`, or one that is bundled with it, if it fits into a segment
    /// with `whole`.
    fn next_beside(&self, unit: u64, whole: Piece, room: u32) -> Option<u64> {
        let beside = self.recovery.unit(unit + 1)?.payload;
        let len = whole.len + beside.len;
        let fits = !whole.has_fin && len <= room;
        let goes_along = fits
            && (self.recovery.next_lost_after(unit) == Some(unit + 1)
                || self.may_bundle_behind(unit, len));
        goes_along.then_some(unit + 1)
    }

    /// Behind the last that left before new data follow, if they fill the segment or are all there
    /// is: else a refused probe would travel alone, and what waits behind it for a round trip more.
    /// The window had room for the whole segment.
    fn add_new(&mut self, now: Instant, whole: &mut Piece, room: u32) {
        let left = u64::from(room - whole.len);
        let len = self.unsent().min(self.usable_window()).min(left);
        let is_last = len == self.unsent();
        let has_fin = is_last && self.fin == Fin::Queued && self.usable_window() > len;
        let is_worth_it = self.has_unsent() && (is_last || len == left) && (len > 0 || has_fin);
        if !is_worth_it {
            return;
        }
        let piece = Piece { start: self.snd_nxt, len: len as u32, has_fin };
        self.send_piece(now, piece);
        whole.len += piece.len;
        whole.has_fin = has_fin;
    }

    /// With nothing lost and nothing new: what a recovery repeats to keep acknowledgements coming.
    pub(super) fn cut_rescue(&mut self, now: Instant, tracer: &mut Tracer<'_>) -> Option<Piece> {
        let unit = self.recovery.next_to_rescue(PATH)?;
        self.recovery.begin_packet(PATH);
        let piece = self.recovery.rescue(now, unit).copied();
        self.recovery.end_packet(now, tracer);
        let piece = piece?;
        self.note_sent_again(piece, unit);
        Some(self.without_acknowledged(piece))
    }

    /// The next segment of nothing but copies that are due: of units that follow each other as far as
    /// there is `room`.
    pub(super) fn cut_copy(
        &mut self,
        now: Instant,
        room: u32,
        tracer: &mut Tracer<'_>,
    ) -> Option<Piece> {
        let mut unit = self.recovery.next_copy(PATH)?;
        if self.is_held_by_window(&self.recovery.unit(unit)?.payload) {
            return None;
        }
        self.recovery.begin_packet(PATH);
        let mut whole = *self.recovery.send_copy(now, unit)?;
        self.note_sent_again(whole, unit);
        while !whole.has_fin
            && self.recovery.next_copy(PATH) == Some(unit + 1)
            && let Some(next) = self.recovery.unit(unit + 1).map(|next| next.payload)
            && whole.len + next.len <= room
            && self.recovery.send_copy(now, unit + 1).is_some()
        {
            unit += 1;
            self.note_sent_again(next, unit);
            whole.len += next.len;
            whole.has_fin = next.has_fin;
        }
        self.recovery.end_packet(now, tracer);
        Some(self.without_acknowledged(whole))
    }

    /// An acknowledgement may have ended within it.
    pub(super) fn without_acknowledged(&self, piece: Piece) -> Piece {
        let passed = self.snd_una.saturating_sub(piece.start).min(piece.len.into()) as u32;
        Piece { start: piece.start + u64::from(passed), len: piece.len - passed, ..piece }
    }
}
