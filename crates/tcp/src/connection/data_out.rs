//! New data: what the application gives (RFC 9293 §3.10.2), and how much of it may leave as the next
//! segment (§3.7.4, §3.8.6.2.1).

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;

use super::outbound::{Fin, Outbound, PATH, Piece};
use super::{Connection, Context, State};
use crate::error::SendError;
use crate::event::Event;

/// Segments outstanding beyond which a small one waits for more data even without Nagle's
/// algorithm: each takes a hundred bytes beside its own.
const MAX_SMALL_OUTSTANDING: u64 = 2048;

impl Connection {
    /// Takes bytes from the application (RFC 9293 §3.10.2).
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Result<usize, SendError> {
        let is_open = matches!(
            self.state,
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
        );
        if !is_open || self.out.is_finishing() {
            return Err(SendError::Closing);
        }
        let taken = self.out.buffer.push(bytes, self.config.send_buffer_bytes);
        self.out.is_writer_waiting |= taken < bytes.len();
        self.traffic.payload_accepted_bytes += taken as u64;
        self.out.recovery.begin_opportunity();
        self.watch_window(cx);
        Ok(taken)
    }

    /// Tells the application that there is room again, if it waits for that.
    pub(super) fn tell_writable(&mut self, cx: &mut Context<'_>) {
        let limit = self.config.send_buffer_bytes;
        let has_room = self.out.buffer.len() <= limit - limit / 4;
        if has_room && !self.out.is_finishing() && std::mem::take(&mut self.out.is_writer_waiting) {
            cx.emit(Event::Writable);
        }
    }
}

impl Outbound {
    /// The payload length of the next new segment, if it may leave with `room` for payload: full
    /// segments at once; a small one if it takes all that is queued and nothing is outstanding or,
    /// without Nagle's algorithm, not too much; half of the largest window ever offered, if nothing
    /// is outstanding.
    pub(super) fn next_len(&self, nagle: bool, room: u32) -> Option<u32> {
        if self.fin == Fin::Sent {
            return None;
        }
        let (unsent, usable) = (self.unsent(), self.usable_window());
        if unsent == 0 {
            return (self.fin == Fin::Queued && usable > 0).then_some(0);
        }
        let len = unsent.min(usable).min(room.into());
        let is_quiet = self.recovery.is_empty();
        let is_full = len == u64::from(room);
        let outstanding = self.recovery.next_unit() - self.recovery.cumulative() - 1;
        let may_be_small = !nagle && outstanding < MAX_SMALL_OUTSTANDING;
        let is_all = len == unsent && (is_quiet || may_be_small || self.is_finishing());
        let is_much = is_quiet && len >= (self.max_window / 2).max(1);
        (is_full || is_all || is_much).then_some(len as u32)
    }

    /// The same, or as much as the window takes, but a byte (or the FIN) at least, if the probe is
    /// due.
    fn next_or_probe_len(&self, nagle: bool, room: u32) -> Option<u32> {
        self.next_len(nagle, room).or_else(|| {
            let is_probe = self.probe_is_due && self.recovery.is_empty() && self.has_unsent();
            let usable = self.usable_window().max(1);
            is_probe.then(|| self.unsent().min(usable).min(room.into()) as u32)
        })
    }

    /// Cuts the next new segment with `room` for payload, if one may leave, and hands it to loss
    /// recovery.
    pub(super) fn cut_new(
        &mut self,
        now: Instant,
        (nagle, room): (bool, u32),
        tracer: &mut Tracer<'_>,
    ) -> Option<Piece> {
        if !self.has_unsent() || !self.recovery.may_send_new(PATH) {
            return None;
        }
        let len = self.next_or_probe_len(nagle, room)?;
        let is_last = self.fin == Fin::Queued && u64::from(len) == self.unsent();
        // With nothing but the FIN to send it probes the window itself.
        let has_fin = is_last && (len == 0 || self.usable_window() > u64::from(len));
        let piece = Piece { start: self.snd_nxt, len, has_fin };
        self.recovery.begin_packet(PATH);
        let start = self.copy_before(now, piece, room);
        self.send_piece(now, piece);
        self.recovery.end_packet(now, tracer);
        let len = (piece.start - start) as u32 + len;
        Some(self.without_acknowledged(Piece { start, len, has_fin }))
    }

    /// A new unit goes into the packet being built.
    pub(super) fn send_piece(&mut self, now: Instant, piece: Piece) {
        let bytes = piece.len + u32::from(piece.has_fin);
        let unit = self.recovery.send_new(now, bytes, bytes, piece);
        if piece.end() > self.window_end {
            self.on_probe_sent(now, unit);
        }
        self.snd_nxt = piece.end();
        if piece.has_fin {
            self.fin = Fin::Sent;
        }
    }
}
