//! New data: writing by the application (RFC 9293 §3.10.2), and how much may be sent in the next segment
//! (§3.7.4, §3.8.6.2.1).

use rexmit_core::Instant;
use rexmit_recovery::{NewUnit, OpenPacket};

use super::outbound::{Fin, GROUP, Outbound};
use super::piece::Piece;
use super::{Connection, Context, State};
use crate::error::SendError;
use crate::event::Event;

/// The number of outstanding segments beyond which a small one waits for more data even without Nagle's algorithm: each
/// uses about a hundred bytes of memory in addition to its payload.
const MAX_SMALL_OUTSTANDING: u64 = 2048;

impl Connection {
    /// Accepts bytes from the application (RFC 9293 §3.10.2).
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
}

impl Outbound {
    /// Emits [`Event::Writable`] if the application waits for room and a buffer of `limit` bytes has enough of it.
    pub(super) fn emit_writable(&mut self, cx: &mut Context<'_>, limit: usize) {
        let has_room = self.buffer.len() <= limit - limit / 4;
        if has_room && !self.is_finishing() && std::mem::take(&mut self.is_writer_waiting) {
            cx.emit(Event::Writable);
        }
    }

    /// The payload length of the next new segment, if it may be sent with `room` for payload: full segments
    /// at once; a small one if it contains all queued data and nothing is outstanding or, without Nagle's
    /// algorithm, not too much is; half of the largest window ever advertised, if nothing is outstanding.
    pub(super) fn next_len(&self, nagle: bool, room: u32) -> Option<u32> {
        if self.fin == Fin::Sent {
            return None;
        }
        let (unsent, usable) = (self.unsent(), self.usable_window());
        if unsent == 0 {
            return (self.fin == Fin::Queued && usable > 0).then_some(0);
        }
        let len = unsent.min(usable).min(room.into());
        let is_quiet = self.recovery.outstanding().is_empty();
        let is_full = len == u64::from(room);
        let outstanding =
            self.recovery.outstanding().next_unit() - self.recovery.outstanding().cumulative() - 1;
        let may_be_small = !nagle && outstanding < MAX_SMALL_OUTSTANDING;
        let is_all = len == unsent && (is_quiet || may_be_small || self.is_finishing());
        let is_much = is_quiet && len >= (self.window.largest / 2).max(1);
        (is_full || is_all || is_much).then_some(len as u32)
    }

    /// The length of the next segment or, if a window probe is due, of the part that fits the window, but at
    /// least one byte (or the FIN).
    fn next_or_probe_len(&self, nagle: bool, room: u32) -> Option<u32> {
        self.next_len(nagle, room).or_else(|| {
            let is_probe =
                self.probing.is_due && self.recovery.outstanding().is_empty() && self.has_unsent();
            let usable = self.usable_window().max(1);
            is_probe.then(|| self.unsent().min(usable).min(room.into()) as u32)
        })
    }

    /// The next new segment with `room` for payload, if one may be sent.
    pub(super) fn next_new(&self, nagle: bool, room: u32) -> Option<Piece> {
        if !self.has_unsent() {
            return None;
        }
        let len = self.next_or_probe_len(nagle, room)?;
        let is_last = self.fin == Fin::Queued && u64::from(len) == self.unsent();
        // Without data, the FIN itself probes the window.
        let has_fin = is_last && (len == 0 || self.usable_window() > u64::from(len));
        Some(Piece { start: self.snd_nxt, len, has_fin })
    }

    /// New data to append to a retransmission that has `room` for more payload; `None` unless it fills the segment or is all
    /// unsent data. Without it, a refused window probe would be retransmitted alone, and the data behind it would wait for
    /// another round trip.
    pub(super) fn next_behind(&self, room: u32) -> Option<Piece> {
        let len = self.unsent().min(self.usable_window()).min(room.into());
        let is_last = len == self.unsent();
        let has_fin = is_last && self.fin == Fin::Queued && self.usable_window() > len;
        let is_worth_it = is_last || len == u64::from(room);
        let is_any = self.has_unsent() && (len > 0 || has_fin);
        (is_worth_it && is_any).then_some(Piece { start: self.snd_nxt, len: len as u32, has_fin })
    }

    /// Adds new data to `packet`.
    pub(super) fn send_piece(&mut self, now: Instant, piece: Piece, packet: &mut OpenPacket) {
        let bytes = piece.len + u32::from(piece.has_fin);
        let is_probe = piece.end() > self.window.end;
        let new = NewUnit {
            bytes,
            user_bytes: bytes,
            group: GROUP,
            is_probe,
            is_ordered: true,
            due: None,
        };
        let (unit, _) = packet.put_new(&mut self.recovery, now, new, piece);
        if is_probe {
            self.on_probe_sent(now, unit);
        }
        self.snd_nxt = piece.end();
        if piece.has_fin {
            self.fin = Fin::Sent;
        }
    }
}
