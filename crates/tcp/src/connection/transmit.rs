//! Writing segments: what leaves next, and what every segment bears.

use super::outbound::Piece;
use super::timestamps::timestamp_clock;
use super::{Connection, Context, State, Timer};
use crate::wire::{Flags, Header, MAX_SACK_BLOCKS, Options, Timestamps};

/// Segments that are owed to the peer beside data.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) reset: Option<Reset>,
    /// A SYN, or in SYN-RECEIVED a SYN-ACK.
    pub(super) syn: bool,
    pub(super) ack: bool,
    /// Acknowledgements without data to a peer that counts them (RFC 5681 §4.2), as it does not
    /// understand reports: one for each segment beyond a gap, also if several arrive at once.
    pub(super) duplicate_acks: u32,
    pub(super) keep_alive: bool,
}

impl Owed {
    pub(super) const fn is_any(&self) -> bool {
        self.reset.is_some() || self.syn || self.must_acknowledge() || self.keep_alive
    }

    const fn must_acknowledge(&self) -> bool {
        self.ack || self.duplicate_acks > 0
    }
}

/// Which RST.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reset {
    /// <SEQ=SND.NXT><ACK=RCV.NXT><CTL=RST,ACK>: this connection is over.
    Now,
    /// <SEQ=SEG.ACK><CTL=RST>: the acknowledgement that came is of another one.
    At(u32),
}

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
        self.write(&header, (&[], &[]), packet);
        true
    }

    fn write_syn(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.owed.syn) {
            return false;
        }
        let clock = timestamp_clock(cx.now, self.identity.timestamp_offset);
        let agreed = self.agreed.as_ref();
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
        self.on_syn_sent(cx.now);
        self.write(&header, (&[], &[]), packet);
        true
    }

    fn write_data(&mut self, cx: &mut Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !self.state.may_send_data() {
            return false;
        }
        let room = self.out.segment_bytes;
        let again = self.out.cut_again(cx.now, room, &mut cx.tracer());
        let again = again.or_else(|| self.out.cut_copy(cx.now, room, &mut cx.tracer()));
        let piece = again.or_else(|| {
            let (room, from) = (room - self.report_len(), self.out.snd_nxt);
            let new = self.out.cut_new(cx.now, (self.nagles(), room), &mut cx.tracer());
            let is_redundant = new.is_some_and(|piece| piece.start < from);
            self.traffic.redundant_segments_sent += u64::from(is_redundant);
            new
        });
        let piece = piece.or_else(|| self.out.cut_rescue(cx.now, &mut cx.tracer()));
        let Some(piece) = piece else { return false };
        self.write_piece(cx, piece, packet);
        true
    }

    fn write_piece(&mut self, cx: &Context<'_>, piece: Piece, packet: &mut Vec<u8>) {
        let fin = if piece.has_fin { Flags::FIN } else { Flags::default() };
        // The end of what the application gave so far.
        let is_end = piece.len > 0 && piece.start + u64::from(piece.len) == self.out.buffer.end();
        let push = if is_end { Flags::PSH } else { Flags::default() };
        let mut header = self.header(cx, piece.start, Flags::ACK.and(fin).and(push));
        let is_told = self.report(&mut header.options, self.out.segment_bytes - piece.len);
        self.on_ack_sent(is_told);
        self.traffic.window_probes_sent += u64::from(piece.end() > self.out.window_end);
        let slices = self.out.buffer.slices(piece.start, piece.len as usize);
        header.write_between(self.addresses, slices, packet);
    }

    fn write_ack(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !self.owed.must_acknowledge() || self.state == State::SynSent {
            return false;
        }
        let mut header = self.header(cx, self.out.next_acceptable(), Flags::ACK);
        self.report(&mut header.options, u32::MAX);
        self.on_ack_sent(true);
        self.owed.duplicate_acks = self.owed.duplicate_acks.saturating_sub(1);
        self.traffic.acks_sent += 1;
        self.write(&header, (&[], &[]), packet);
        true
    }

    /// A segment that the peer must answer: before what it expects, and empty
    /// (RFC 9293 §3.8.4).
    fn write_keep_alive(&mut self, cx: &Context<'_>, packet: &mut Vec<u8>) -> bool {
        if !std::mem::take(&mut self.owed.keep_alive) {
            return false;
        }
        let header = self.header(cx, self.out.snd_nxt - 1, Flags::ACK);
        self.write(&header, (&[], &[]), packet);
        true
    }

    /// What every segment after the SYNs bears.
    fn header(&mut self, cx: &Context<'_>, sequence: u64, flags: Flags) -> Header {
        let room = self.inbound.room(self.out.segment_bytes);
        let window = self.inbound.window.offer(room);
        if (window == 0) != std::mem::replace(&mut self.inbound.is_closed, window == 0) {
            self.traffic.zero_windows_sent += u64::from(window == 0);
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

    /// Bytes of the SACK option that a segment would bear now.
    fn report_len(&self) -> u32 {
        if self.inbound.duplicate.is_none() && !self.inbound.buffer.has_gap() {
            return 0;
        }
        let mut options = Options::default();
        let is_told = self.fill_report(&mut options, u32::MAX);
        if is_told { options.wire_len() as u32 } else { 0 }
    }

    /// Adds the blocks that fit into `room` bytes; returns whether the peer knows then what there
    /// is to know.
    fn report(&mut self, options: &mut Options, room: u32) -> bool {
        if self.inbound.duplicate.is_none() && !self.inbound.buffer.has_gap() {
            return true;
        }
        let is_told = self.fill_report(options, room);
        if is_told {
            self.inbound.duplicate = None;
        }
        is_told
    }

    /// A duplicate first, and behind it the run that it lies in, if that is beyond a gap
    /// (RFC 2883 §4); then the runs beyond gaps (RFC 2018 §4).
    fn fill_report(&self, options: &mut Options, room: u32) -> bool {
        if !self.out.has_reports {
            return true;
        }
        let most = if self.timestamps.is_some() { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        let most = most.min(blocks_that_fit(room));
        if most == 0 {
            return false;
        }
        let inbound = &self.inbound;
        let mut left = most;
        if let Some((start, end)) = inbound.duplicate {
            options.sack.push(start as u32, end as u32);
            left -= 1;
        }
        inbound.buffer.report(left, &mut options.sack);
        true
    }

    /// An acknowledgement has left with a segment; if it could not tell everything, another has to
    /// follow.
    fn on_ack_sent(&mut self, is_told: bool) {
        self.inbound.last_ack_sent = self.inbound.rcv_nxt();
        self.owed.ack &= !is_told;
        self.timers.stop(Timer::Ack);
    }

    fn write(&self, header: &Header, payload: (&[u8], &[u8]), packet: &mut Vec<u8>) {
        header.write_between(self.addresses, payload, packet);
    }
}

/// SACK blocks that `room` bytes of options hold.
const fn blocks_that_fit(room: u32) -> usize {
    (room.saturating_sub(4) / 8) as usize
}
