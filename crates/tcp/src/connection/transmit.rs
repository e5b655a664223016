//! Writing segments: the next one, and the fields of every segment.

use rexmit_core::trace::TraceEvent;

use super::owed::Reset;
use super::piece::Piece;
use super::segment::SegmentRoom;
use super::timestamps::timestamp_clock;
use super::{Connection, Context, State, Timer};
use crate::wire::{Flags, Header, Options, Timestamps};

impl Connection {
    /// Writes the next segment into `packet`; returns whether there was one.
    pub(crate) fn poll_transmit(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> bool {
        let has_written = self.write_reset(cx, packet)
            || self.write_syn(cx, packet)
            || self.write_data(cx, packet)
            || self.write_ack(cx, packet)
            || self.write_keep_alive(cx, packet);
        if has_written {
            self.traffic.segments_sent += 1;
            self.traffic.bytes_sent += packet.len() as u64;
            cx.tracer().emit(|| TraceEvent::Transmitted { bytes: packet.len() as u32 });
        }
        has_written
    }

    fn write_reset(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        let Some(reset) = self.owed.reset.take() else { return false };
        let header = match reset {
            Reset::Now => self.header(cx, self.out.next_acceptable(), Flags::RST.and(Flags::ACK)),
            Reset::At(sequence) => Header {
                source_port: self.identity.local.port(),
                destination_port: self.identity.remote.port(),
                sequence,
                flags: Flags::RST,
                ..Header::default()
            },
        };
        header.write_between(self.addresses, (&[], &[]), packet);
        true
    }

    fn write_syn(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.owed.syn) {
            return false;
        }
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        let agreed = self.handshake.agreed.as_ref();
        let mut header = super::syn_header(&self.config, &self.identity, agreed, clock);
        if agreed.is_some() {
            header.acknowledgment = self.inbound.rcv_nxt() as u32;
            self.inbound.last_ack_sent = self.inbound.rcv_nxt();
            self.owed.ack = false;
        }
        if let (Some(state), Some(timestamps)) = (&self.timestamps, &mut header.options.timestamps)
        {
            timestamps.echo_reply = state.recent();
        }
        self.handshake.on_sent(cx.now, &self.config, &mut self.timers);
        header.write_between(self.addresses, (&[], &[]), packet);
        true
    }

    fn write_data(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> bool {
        // A receiver of data has nothing to send or to repeat.
        if !self.state.may_send_data() || self.out.is_empty() {
            return false;
        }
        let room = SegmentRoom {
            retransmission: self.out.segment_bytes,
            new: self.out.segment_bytes
                - self.inbound.report_len(self.out.sack_limit(self.timestamps.is_some())),
            nagle: self.out.nagles(self.config.nagle),
        };
        let (from, redundant) = (self.out.snd_nxt, self.out.recovery.statistics().redundant_bytes);
        let Some(piece) = self.out.cut_segment(cx.now, room, &mut cx.tracer()) else {
            return false;
        };
        let has_copies = self.out.recovery.statistics().redundant_bytes > redundant;
        let is_redundant = has_copies && piece.end() > from && piece.start < from;
        self.traffic.redundant_segments_sent += u64::from(is_redundant);
        self.write_piece(cx, piece, packet);
        true
    }

    fn write_piece(&mut self, cx: &Context<'_>, piece: Piece, packet: &mut Vec<u8>) {
        let fin = if piece.has_fin { Flags::FIN } else { Flags::default() };
        // Whether the segment ends with the last byte written by the application so far.
        let is_end = piece.len > 0 && piece.start + u64::from(piece.len) == self.out.buffer.end();
        let push = if is_end { Flags::PSH } else { Flags::default() };
        let mut header = self.header(cx, piece.start, Flags::ACK.and(fin).and(push));
        let (limit, room) =
            (self.out.sack_limit(self.timestamps.is_some()), self.out.segment_bytes - piece.len);
        let is_told = self.inbound.report(&mut header.options, limit, room);
        self.on_ack_sent(is_told);
        self.traffic.zero_windows.probes_sent += u64::from(piece.end() > self.out.window.end);
        let slices = self.out.buffer.slices(piece.start, piece.len as usize);
        header.write_between(self.addresses, slices, packet);
    }

    fn write_ack(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !self.owed.must_acknowledge() || self.state == State::SynSent {
            return false;
        }
        let mut header = self.header(cx, self.out.next_acceptable(), Flags::ACK);
        self.inbound.report(
            &mut header.options,
            self.out.sack_limit(self.timestamps.is_some()),
            u32::MAX,
        );
        self.on_ack_sent(true);
        self.owed.duplicate_acks = self.owed.duplicate_acks.saturating_sub(1);
        self.traffic.acks_sent += 1;
        header.write_between(self.addresses, (&[], &[]), packet);
        true
    }

    /// Writes a keep-alive probe, which the peer must answer: an empty segment whose sequence number is one less than
    /// the peer expects (RFC 9293 §3.8.4).
    fn write_keep_alive(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.owed.keep_alive) {
            return false;
        }
        let header = self.header(cx, self.out.snd_nxt - 1, Flags::ACK);
        header.write_between(self.addresses, (&[], &[]), packet);
        true
    }

    /// The header of a segment after the handshake.
    fn header(&mut self, cx: &Context<'_>, sequence: u64, flags: Flags) -> Header {
        let room = self.inbound.room(self.out.segment_bytes);
        let window = self.inbound.window.offer(room);
        if (window == 0) != std::mem::replace(&mut self.inbound.is_closed, window == 0) {
            self.traffic.zero_windows.sent += u64::from(window == 0);
        }
        let clock = || timestamp_clock(cx.now, self.identity.timestamp_offset);
        let stamp = |state: &super::TimestampState| Timestamps {
            value: clock(),
            echo_reply: state.recent(),
        };
        Header {
            source_port: self.identity.local.port(),
            destination_port: self.identity.remote.port(),
            sequence: sequence as u32,
            acknowledgment: room.rcv_nxt as u32,
            flags,
            window,
            urgent_pointer: 0,
            options: Options {
                timestamps: self.timestamps.as_ref().map(stamp),
                ..Options::default()
            },
        }
    }

    /// Called when an acknowledgement was sent with a segment; if it could not report everything, another has
    /// to follow.
    fn on_ack_sent(&mut self, is_told: bool) {
        self.inbound.last_ack_sent = self.inbound.rcv_nxt();
        self.owed.ack &= !is_told;
        self.timers.stop(Timer::Ack);
    }
}
