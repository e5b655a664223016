//! Received data (RFC 9293 §3.10.7.4, sixth and seventh check), when it is acknowledged (§3.8.6.3, RFC 5681
//! §4.2), and reading by the application (§3.10.3).

use super::inbound::Inbound;
use super::owed::Reset;
use super::{Arrival, Connection, Context, State, Timer};
use crate::error::ReceiveError;
use crate::event::{CloseReason, Event};
use crate::stream::Inserted;

/// Full segments after which an acknowledgement does not wait (RFC 9293 §3.8.6.3, SHLD-19).
const SEGMENTS_PER_ACK: u64 = 2;

impl Connection {
    /// The payload; urgent data is ordinary data.
    pub(super) fn on_text(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) {
        if arrival.payload.is_empty() || !self.state.may_receive_data() {
            return;
        }
        if self.application.is_gone
            && arrival.seq + arrival.payload.len() as u64 > self.inbound.rcv_nxt()
        {
            // RFC 9293 §3.6.1: it will never be read, and the peer is to know.
            return self.end(cx, Some(CloseReason::Aborted), Some(Reset::Now));
        }
        let edge = self.inbound.edge();
        let inserted = self.inbound.buffer.insert(arrival.seq, arrival.payload, edge);
        self.inbound.largest_payload =
            self.inbound.largest_payload.max(arrival.payload.len() as u64);
        let traffic = &mut self.traffic;
        traffic.out_of_order_received += u64::from(inserted.is_beyond_gap);
        traffic.duplicates_received += u64::from(inserted.is_known());
        traffic.dropped.for_limit += u64::from(inserted.is_dropped);
        if !self.out.has_reports {
            self.owed.count_duplicate_acks(&inserted, self.inbound.buffer.has_gap());
        }
        self.inbound.duplicate = inserted.duplicate.or(self.inbound.duplicate);
        self.acknowledge_later(cx, &inserted);
    }

    /// Decides when received data is acknowledged: at once if it is out of order, closes a gap, was known in part or
    /// refused in part, or is a second full segment; otherwise when the delay is over. PSH has no effect: if a peer
    /// sets it in every small message, each would be acknowledged at once.
    fn acknowledge_later(&mut self, cx: &Context<'_>, inserted: &Inserted) {
        let inbound = &self.inbound;
        let waiting = inbound.rcv_nxt() - inbound.last_ack_sent;
        let is_urgent = inserted.is_beyond_gap
            || inserted.has_filled
            || inserted.duplicate.is_some()
            || inserted.is_dropped
            || waiting >= SEGMENTS_PER_ACK * inbound.largest_payload
            || self.config.ack_delay.is_zero();
        if is_urgent {
            self.owed.ack = true;
        } else if !self.owed.ack && !self.timers.is_armed(Timer::Ack) {
            self.timers.arm(Timer::Ack, cx.now + self.config.ack_delay);
        }
    }

    /// Hands bytes to the application.
    pub(crate) fn receive(
        &mut self,
        _cx: &Context<'_>,
        into: &mut [u8],
    ) -> Result<usize, ReceiveError> {
        let count = if self.state.may_read() { self.inbound.buffer.read(into) } else { 0 };
        if count > 0 {
            if count < into.len() {
                self.inbound.is_readable_told = false;
            }
            self.on_read(count);
            return Ok(count);
        }
        if into.is_empty() {
            return Ok(0);
        }
        self.inbound.receive_nothing(self.state == State::Closed)
    }

    /// Passes received bytes to the application without copying them. If it consumes none, the result is that of an
    /// empty buffer.
    pub(crate) fn receive_with(
        &mut self,
        _cx: &Context<'_>,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, ReceiveError> {
        if self.state.may_read() && self.inbound.buffer.readable() > 0 {
            let count = self.inbound.buffer.lend(take);
            if count > 0 {
                self.on_read(count);
                return Ok(count);
            }
            self.inbound.is_readable_told = false;
            return Err(ReceiveError::Empty);
        }
        self.inbound.receive_nothing(self.state == State::Closed)
    }

    /// Called when the application has read bytes, which frees buffer space: the peer gets a window update if
    /// that is worth a segment.
    fn on_read(&mut self, count: usize) {
        self.traffic.payload_delivered_bytes += count as u64;
        let room = self.inbound.room(self.out.segment_bytes);
        if self.state.may_receive_data() && self.inbound.window.is_worth_an_update(room) {
            self.owed.ack = true;
        }
    }
}

impl Inbound {
    /// Emits [`Event::Readable`], once, if the application may read and has not closed the connection.
    pub(super) fn emit_readable(&mut self, cx: &mut Context<'_>, state: State, is_gone: bool) {
        if !self.is_readable_told && self.has_unread(is_gone) && state.may_read() {
            self.is_readable_told = true;
            cx.emit(Event::Readable);
        }
    }
}
