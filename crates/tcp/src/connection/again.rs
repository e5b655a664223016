//! What leaves again, when loss recovery says so.

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;

use super::outbound::{Outbound, PATH, Piece};

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
        self.recovery.end_packet(now, tracer);
        Some(self.without_acknowledged(whole))
    }

    /// The lost unit right behind `unit`, if it fits into a segment with `whole`.
    fn next_beside(&self, unit: u64, whole: Piece, room: u32) -> Option<u64> {
        let beside = self.recovery.unit(unit + 1)?.payload;
        let fits = !whole.has_fin && whole.len + beside.len <= room;
        let is_lost = fits && self.recovery.next_lost_after(unit) == Some(unit + 1);
        is_lost.then_some(unit + 1)
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

    /// An acknowledgement may have ended within it.
    fn without_acknowledged(&self, piece: Piece) -> Piece {
        let passed = self.snd_una.saturating_sub(piece.start).min(piece.len.into()) as u32;
        Piece { start: piece.start + u64::from(passed), len: piece.len - passed, ..piece }
    }
}
