//! Building the next segment, as loss recovery directs.

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;
use rexmit_recovery::{BundleRoom, Next, OpenPacket};

use super::outbound::{GROUP, Outbound, PATH};
use super::owed::Reset;
use super::piece::Piece;
use super::{Connection, Context};
use crate::event::CloseReason;

impl Connection {
    /// Aborts the connection after too many consecutive timeouts (RFC 9293 §3.8.3, R2). A closed window that
    /// the peer acknowledges does not count (§3.8.6.1, MUST-37) until the application has closed the
    /// connection, because nothing else would end it then.
    pub(super) fn on_retransmission_timeouts(&mut self, cx: &mut Context<'_>) {
        cx.around.unanswered.put_off(cx.now, &mut self.out.recovery);
        while let Some((timeout, is_confirmed)) = self.out.expire_recovery(cx.now, &mut cx.tracer())
        {
            if !timeout.has_backed_off || is_confirmed && !self.application.is_gone {
                continue;
            }
            self.out.unanswered += 1;
            if self.out.unanswered > self.config.max_retransmits {
                // A peer that still answers is informed by a RST.
                let reset = is_confirmed.then_some(Reset::Now);
                return self.end(cx, Some(CloseReason::TimedOut), reset);
            }
        }
    }
}

/// The room in a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentRoom {
    /// Payload of a retransmission.
    pub(super) retransmission: u32,
    /// The most payload of new data, given the SACK blocks that are sent with it.
    pub(super) new: u32,
    /// Whether small segments wait for outstanding data.
    pub(super) nagle: bool,
}

impl Outbound {
    /// The next segment, if one may be sent: as many consecutive units as fit.
    pub(super) fn cut_segment(
        &mut self,
        now: Instant,
        room: SegmentRoom,
        tracer: &mut Tracer<'_>,
    ) -> Option<Piece> {
        let mut packet = self.recovery.packet(PATH, true, 0);
        let mut whole: Option<Piece> = None;
        while let Some(next) = packet.next(&self.recovery) {
            let added = match next {
                Next::New => self.add_new(now, &mut packet, whole, room),
                Next::Lost(unit)
                | Next::Bundled(unit)
                | Next::DelayedCopy(unit)
                | Next::BundledCopy(unit)
                | Next::Rescue(unit) => {
                    self.add_retransmission(now, &mut packet, next, unit, whole, room)
                }
            };
            match added {
                Some(piece) => whole = Some(whole.map_or(piece, |whole| whole.joined(piece))),
                None if next == Next::New && packet.is_bundling() => {}
                None => packet.refuse(),
            }
        }
        packet.end(&mut self.recovery, now, tracer);
        whole.map(|whole| self.without_acknowledged(whole))
    }

    /// Adds a unit that was sent before, if it fits behind `whole`.
    fn add_retransmission(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        next: Next,
        unit: u64,
        whole: Option<Piece>,
        room: SegmentRoom,
    ) -> Option<Piece> {
        let piece = self.recovery.outstanding().unit(unit)?.payload;
        let len = whole.map_or(0, |whole| whole.len) + piece.len;
        let limit = self.recovery.thin_config(GROUP).bundling.and_then(|it| it.bytes);
        let fits = match next {
            Next::Bundled(_) => {
                len <= room.retransmission && limit.is_none_or(|limit| len <= limit.get())
            }
            Next::BundledCopy(_) | Next::Rescue(_) => true,
            _ => whole.is_none() || len <= room.retransmission,
        };
        let is_held = whole.is_none() && self.is_held_by_window(&piece);
        if !fits || whole.is_some_and(|whole| whole.has_fin) || (is_held && next.is_due()) {
            return None;
        }
        packet.put(&mut self.recovery, now)?;
        self.note_retransmission(piece, unit);
        Some(piece)
    }

    /// Adds new data or, before it, copies of data in flight to be bundled with it.
    fn add_new(
        &mut self,
        now: Instant,
        packet: &mut OpenPacket,
        whole: Option<Piece>,
        room: SegmentRoom,
    ) -> Option<Piece> {
        if !packet.is_empty() {
            let piece =
                whole.and_then(|whole| self.next_behind(room.retransmission - whole.len))?;
            self.send_piece(now, piece, packet);
            return Some(piece);
        }
        let piece = self.next_new(room.nagle, room.new)?;
        if whole.is_none() && packet.may_bundle(&self.recovery, GROUP) {
            let new_bytes = piece.len + u32::from(piece.has_fin);
            let bundle = BundleRoom { new_bytes, room: room.new - piece.len, is_contiguous: true };
            if packet.bundle(&mut self.recovery, now, GROUP, bundle) {
                return None; // They come first.
            }
        }
        self.send_piece(now, piece, packet);
        Some(piece)
    }

    /// `piece` without the bytes that are already acknowledged: an acknowledgement may end in the middle of
    /// it.
    fn without_acknowledged(&self, piece: Piece) -> Piece {
        let passed = self.snd_una.saturating_sub(piece.start).min(piece.len.into()) as u32;
        Piece { start: piece.start + u64::from(passed), len: piece.len - passed, ..piece }
    }
}
