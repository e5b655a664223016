//! Filling a packet with DATA (RFC 9260 §6.1 C, E).

use rexmit_recovery::{BundleRoom, Next, OpenPacket};

use super::super::context::Context;
use super::{Filled, MIN_PIECE_BYTES, Outbound, Standing};
use crate::event::Event;
use crate::streams::Fragment;
use crate::wire::{Data, DataFlags, IData, PacketWriter};

impl Outbound {
    /// Fills a packet over `path` with DATA chosen by loss recovery: up to `most` bytes if all DATA in it is new.
    /// Retransmissions are sent in packets of the base size, which fits any path.
    pub(in super::super) fn write_data(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
        most: usize,
        standing: Standing,
        writer: &mut PacketWriter<'_>,
    ) -> Filled {
        self.queue.begin_packet();
        let mut packet = self.recovery.packet(path, false, self.next_group());
        let mut may_bundle = true;
        let is_large = most > self.config.max_packet_bytes;
        let mut is_full = false;
        // Half of a probe is for new data, if the next of it fits.
        let next_new = if packet.probes_silence() { self.next_new_len_over(path) } else { None };
        let half = writer.room() / 2;
        let kept = if next_new.is_some_and(|len| self.chunk_len(len) <= half) { half } else { 0 };
        while let Some(next) = packet.next(&self.recovery) {
            match next {
                Next::New => {
                    if is_large && packet.is_empty() {
                        writer.set_limit(most);
                    }
                    let is_bundled =
                        std::mem::take(&mut may_bundle) && self.bundle(cx, &mut packet, writer);
                    if is_bundled {
                        continue;
                    }
                    match self.write_new(cx, standing, &mut packet, writer) {
                        NextNew::Written => {}
                        refused => {
                            is_full = refused == NextNew::NoRoom;
                            packet.refuse();
                        }
                    }
                }
                Next::Lost(tsn)
                | Next::Bundled(tsn)
                | Next::DelayedCopy(tsn)
                | Next::BundledCopy(tsn)
                | Next::Rescue(tsn) => {
                    let reason = self.reason_to_abandon(cx.now, tsn);
                    if reason.is_none() {
                        self.write_retransmission(cx, &mut packet, tsn, kept, writer);
                        continue;
                    }
                    if let Some(reason) = reason.filter(|_| matches!(next, Next::Lost(_))) {
                        self.abandon_message(cx, standing.control, tsn, reason);
                    }
                    packet.pass(&mut self.recovery);
                }
            }
        }
        self.queue.end_packet();
        let has_new = packet.has_new();
        if let Some(probability) = packet.take_infeasible(&mut self.recovery) {
            cx.event(Event::Infeasible { achievable_ppm: (1e6 * probability) as u32 });
        }
        packet.end(&mut self.recovery, cx.now, &mut cx.tracer());
        if has_new {
            self.turn = path + 1;
        }
        self.watch_window(cx.now, standing);
        let is_large = has_new && writer.len() > self.config.max_packet_bytes;
        let last = self.recovery.outstanding().next_unit() - 1;
        Filled { has_new, is_full, last_of_large: is_large.then_some(last) }
    }

    /// Writes the retransmission of one chunk, if it fits; from the second one on `kept` bytes are left to new data.
    fn write_retransmission(
        &mut self,
        cx: &Context<'_>,
        packet: &mut OpenPacket,
        tsn: u64,
        kept: usize,
        writer: &mut PacketWriter<'_>,
    ) {
        let kept = if packet.is_empty() { 0 } else { kept };
        if self.chunk_len(self.payload_len(tsn)) + kept > writer.room() {
            packet.refuse();
        } else if let Some(written) = packet.put(&mut self.recovery, cx.now) {
            let is_interleaved = self.queue.is_interleaved();
            write_chunk((tsn, is_interleaved), written.payload, written.wants_ack, writer);
        }
    }

    /// Writes the next new chunk, if there is one that fits.
    fn write_new(
        &mut self,
        cx: &mut Context<'_>,
        standing: Standing,
        packet: &mut OpenPacket,
        writer: &mut PacketWriter<'_>,
    ) -> NextNew {
        let Some(len) = self.next_new_len_over(packet.path()) else { return NextNew::None };
        let Some(max_payload) = self.max_payload_in(len, writer) else { return NextNew::NoRoom };
        let cut = self.cut_next(cx.now, max_payload, standing.is_ending, packet);
        let Some((tsn, wants_ack)) = cut else { return NextNew::None };
        if let Some(unit) = self.recovery.outstanding().unit(tsn) {
            let is_interleaved = self.queue.is_interleaved();
            write_chunk((tsn, is_interleaved), &unit.payload, wants_ack, writer);
        }
        self.on_first_sent(cx, tsn);
        NextNew::Written
    }

    /// The largest payload of the next chunk, of `len` bytes, that fits the packet; `None` if none does. In a
    /// packet larger than the base size, a long message is cut to the room left.
    fn max_payload_in(&self, len: usize, writer: &PacketWriter<'_>) -> Option<usize> {
        if self.chunk_len(len) <= writer.room() {
            return Some(self.max_fragment);
        }
        let is_large = writer.len() + writer.room() > self.config.max_packet_bytes;
        let room = writer.room().checked_sub(self.data_header_len())?;
        let may_cut = is_large && len == self.max_fragment && room >= MIN_PIECE_BYTES;
        may_cut.then_some(room)
    }

    /// Bundles copies of data in flight with the next new chunk; returns whether there are any.
    fn bundle(
        &mut self,
        cx: &Context<'_>,
        packet: &mut OpenPacket,
        writer: &PacketWriter<'_>,
    ) -> bool {
        let group = self.next_group();
        if !packet.may_bundle(&self.recovery, group) {
            return false;
        }
        let Some(len) = self.next_new_len() else { return false };
        let new_bytes = self.chunk_len(len);
        let Some(room) = writer.room().checked_sub(new_bytes) else { return false };
        let room =
            BundleRoom { new_bytes: new_bytes as u32, room: room as u32, is_contiguous: false };
        packet.bundle(&mut self.recovery, cx.now, group, room)
    }

    /// The group of the next new chunk.
    #[inline]
    pub(super) fn next_group(&self) -> u8 {
        if self.thin_streams.is_empty() {
            return 0;
        }
        let stream = self.queue.peek_stream(self.max_fragment);
        stream.map_or(0, |stream| self.thin_streams.group_of(stream))
    }
}

/// The fate of the next new chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextNew {
    /// The chunk is in the packet.
    Written,
    /// There is a chunk, but no room for it in the packet.
    NoRoom,
    /// No chunk may be sent now.
    None,
}

/// Writes `fragment` as DATA, or as I-DATA if messages are interleaved.
fn write_chunk(
    (tsn, is_interleaved): (u64, bool),
    fragment: &Fragment,
    wants_ack: bool,
    writer: &mut PacketWriter<'_>,
) {
    let &Fragment { stream, mid, fsn, ppid, .. } = fragment;
    let (tsn, payload) = (tsn as u32, &fragment.payload);
    let flags = DataFlags {
        immediate: fragment.immediate || wants_ack,
        unordered: fragment.unordered,
        beginning: fragment.beginning,
        ending: fragment.ending,
    };
    if is_interleaved {
        writer.i_data(&IData { flags, tsn, stream, mid, ppid, fsn, payload });
    } else {
        writer.data(&Data { flags, tsn, stream, ssn: fragment.ssn(), ppid, payload });
    }
}
