//! Receiving user data: DATA and I-DATA, FORWARD-TSN and I-FORWARD-TSN, the receive window, and reading by
//! the application (RFC 9260 §6.2, §6.5–6.7, §6.9, RFC 8260 §2.2.3).

mod ack_copies;
mod held_back;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::serial::unwrap_u32;

use super::context::Context;
use super::identity::unwrapped_initial_tsn;
use super::received::{Arrival, Received, SackDue};
use super::timers::Deadline;
use crate::config::{self, AssociationConfig, OversizedMessages};
use crate::event::Event;
use crate::message::InboundMessage;
use crate::statistics::Traffic;
use crate::streams::{DroppedMessage, Piece, Reassembly, ReassemblyError, ReassemblyLimits};
use crate::wire::{Data, ForwardTsn, IData, IForwardTsn, PacketWriter, sack_len};

use ack_copies::AckCopies;
use held_back::HeldBack;

/// The receiving half of an association.
#[derive(Debug)]
pub(crate) struct Inbound {
    config: Arc<AssociationConfig>,
    received: Received,
    reassembly: Reassembly,
    /// The DATA held back while a stream reset waits for earlier DATA; `None` otherwise.
    held_back: Option<Box<HeldBack>>,
    /// Messages from before a restart or the end, read before those of `reassembly`; `None` once they are read.
    leftover: Option<Box<Leftover>>,
    streams: u16,
    /// What the endpoint leaves to this association of its budget, in bytes that are charged.
    room: u32,
    /// Whether the application was notified that there is something to read.
    is_readable_told: bool,
    /// The window that the last SACK offered.
    advertised: u32,
    /// The rest of the advertised window, after the data accepted since.
    offered: u32,
    is_sack_owed: bool,
    /// The delayed acknowledgement.
    sack_timer: Deadline,
    /// Second copies of the SACKs of thin streams; `None` if disabled.
    ack_copies: Option<Box<AckCopies>>,
    counters: Counters,
    /// The streams of dropped messages whose reset the peer is to be asked for.
    to_reset: BTreeSet<u16>,
}

/// What an association may hold whatever the others do, in bytes that are charged: the bursts of a thin stream.
const RESERVED_BYTES: usize = 16 * 1024;
/// What is charged for each chunk and message beside its payload: the most that it takes (docs/security.md).
const OVERHEAD_BYTES: usize = 256;

/// Messages that were received before the peer's restart, or before the end.
#[derive(Debug)]
struct Leftover {
    messages: VecDeque<InboundMessage>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    messages_delivered: u64,
    payload_delivered_bytes: u64,
    duplicates_received: u64,
    /// Like `messages_dropped`, stays at the largest number instead of wrapping.
    chunks_dropped: u32,
    messages_dropped: u32,
    sacks_sent: u64,
}

/// A DATA or I-DATA chunk, as it was read.
pub(super) struct UserData<'a> {
    tsn: u32,
    immediate: bool,
    is_interleaved: bool,
    /// The chunk, whose TSN is not unwrapped yet.
    piece: Piece<'a>,
}

impl UserData<'_> {
    pub(super) const fn tsn(&self) -> u32 {
        self.tsn
    }
}

/// A FORWARD-TSN or I-FORWARD-TSN chunk.
pub(super) enum Forwarding<'a> {
    Ssns(ForwardTsn<'a>),
    Mids(IForwardTsn<'a>),
}

/// Why a DATA chunk is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DataError {
    /// The stream does not exist, which is reported to the peer (RFC 9260 §6.5).
    InvalidStream(u16),
    /// A protocol violation: the association is aborted.
    Violation(&'static str),
}

impl Inbound {
    pub(super) fn new(config: Arc<AssociationConfig>) -> Self {
        let limits = ReassemblyLimits {
            max_message_bytes: config.messages.max_bytes,
            max_held_chunks: config.buffers.max_held_chunks,
        };
        Self {
            received: Received::new(unwrapped_initial_tsn(0)),
            reassembly: Reassembly::new(limits),
            held_back: None,
            leftover: None,
            streams: config.streams.max_inbound,
            room: u32::MAX,
            is_readable_told: false,
            advertised: config.a_rwnd(),
            offered: config.a_rwnd(),
            is_sack_owed: false,
            sack_timer: Deadline::OFF,
            ack_copies: None,
            counters: Counters::default(),
            to_reset: BTreeSet::new(),
            config,
        }
    }

    /// Called when the association has ended: only messages that can be read are kept.
    pub(super) fn end(&mut self) {
        if self.held_bytes() != 0 {
            self.leftover = self.take_messages();
            (self.reassembly, self.held_back) = (self.reassembly.emptied(), None);
        }
    }

    fn take_messages(&mut self) -> Option<Box<Leftover>> {
        let messages: VecDeque<_> = std::iter::from_fn(|| self.pop()).collect();
        let bytes = messages.iter().map(|message| message.payload.len()).sum();
        (!messages.is_empty()).then(|| Box::new(Leftover { messages, bytes }))
    }

    /// Takes over the unread messages and the counters of `before`.
    pub(super) fn continuing(mut self, before: &mut Self) -> Self {
        self.leftover = before.take_messages();
        self.is_readable_told = before.is_readable_told;
        self.counters = before.counters;
        if let Some(before) = before.ack_copies.take() {
            self.ack_copies = Some(AckCopies::continuing(self.ack_copies.take(), before));
        }
        self
    }

    pub(super) fn on_peer_known(
        &mut self,
        initial_tsn: u32,
        streams: u16,
        is_interleaved: bool,
        may_abandon: bool,
    ) {
        self.received = Received::new(unwrapped_initial_tsn(initial_tsn));
        self.reassembly.on_peer_known(is_interleaved, may_abandon);
        self.streams = streams;
    }

    /// Called when the handshake has shown whether the peer `wants_ack_copies`: enables second copies of SACKs if the
    /// configuration allows them.
    pub(super) fn on_ack_copies_known(&mut self, wants_ack_copies: bool) {
        let config = self.config.sack.ack_copies;
        let is_on = match config.send {
            config::AckCopies::Off => false,
            config::AckCopies::OnRequest => wants_ack_copies,
            config::AckCopies::Always => true,
        };
        self.ack_copies = is_on.then(|| Box::new(AckCopies::new(config)));
    }

    pub(super) const fn streams(&self) -> u16 {
        self.streams
    }

    pub(super) fn begin_packet(&mut self) {
        self.received.begin_packet();
    }

    /// The bytes of received data that the application has not read.
    pub(crate) fn held_bytes(&self) -> usize {
        let held_back = self.held_back.as_ref().map_or(0, |held| held.bytes());
        let leftover = self.leftover.as_ref().map_or(0, |leftover| leftover.bytes);
        leftover + self.reassembly.held_bytes() + held_back
    }

    pub(crate) const fn set_room(&mut self, room: u32) {
        self.room = room;
    }

    /// Whether the endpoint leaves less room than the receive buffer.
    fn is_short(&self) -> bool {
        (self.room as usize) < self.config.buffers.receive_bytes
    }

    /// The bytes for which the endpoint's budget is charged.
    pub(crate) fn charged_bytes(&self) -> usize {
        let count = self.reassembly.held_count() + self.held_beside();
        self.held_bytes() + count * OVERHEAD_BYTES
    }

    /// The chunks that are held back, and the messages from before a restart or the end.
    fn held_beside(&self) -> usize {
        let held_back = self.held_back.as_ref().map_or(0, |held| held.len());
        let leftover = self.leftover.as_ref().map_or(0, |leftover| leftover.messages.len());
        held_back + leftover
    }

    /// Whether the limit of held chunks and messages is reached.
    fn is_full(&self) -> bool {
        self.reassembly.is_full() || self.held_beside() >= self.config.buffers.max_held_chunks
    }

    pub(super) fn has_message(&self) -> bool {
        self.leftover.is_some() || self.reassembly.has_ready()
    }

    /// The cumulative TSN: every TSN up to this one has arrived.
    pub(super) const fn cumulative(&self) -> u64 {
        self.received.cumulative()
    }

    /// Adds the counters of received data to `traffic`.
    pub(super) fn count(&self, traffic: &mut Traffic) {
        traffic.messages_delivered += self.counters.messages_delivered;
        traffic.payload_delivered_bytes += self.counters.payload_delivered_bytes;
        traffic.duplicates_received += self.counters.duplicates_received;
        traffic.messages_dropped += u64::from(self.counters.messages_dropped);
        traffic.chunks_dropped += u64::from(self.counters.chunks_dropped);
        traffic.sacks_sent += self.counters.sacks_sent;
        traffic.ack_copies_sent += self.ack_copies.as_ref().map_or(0, |copies| copies.sent());
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.reassembly.release_memory();
    }

    /// The window to advertise: the free part of the buffer, or of what the endpoint leaves of it. If that is less than a
    /// packet (or half of a small buffer), the window only shrinks, to avoid silly windows: small room that the application
    /// has made is not advertised (RFC 9260 §6.2, RFC 1122 §4.2.3.3). But if there is nothing to read, only the
    /// rest of an incomplete message can free the buffer, and a window of one packet is advertised.
    fn window(&self) -> usize {
        let buffer = self.config.buffers.receive_bytes;
        let room = (self.room as usize).max(RESERVED_BYTES);
        let left = buffer.saturating_sub(self.held_bytes());
        let left = left.min(room.saturating_sub(self.charged_bytes()));
        let least = self.config.max_packet_bytes.min(buffer / 2);
        match left {
            _ if self.is_full() => 0,
            left if left >= least => left,
            1.. if !self.has_message() => least,
            // Incomplete messages must not hold each other up, whether they are of one association or of several.
            0 if !self.has_message() && self.held_bytes() + least <= buffer => least,
            0 if self.is_stuck() && self.held_bytes() + least <= 2 * buffer => least,
            left => left.min(self.offered as usize),
        }
    }

    /// Whether there are only incomplete interleaved messages. If they fill the buffer, twice the buffer is used, and
    /// after that the largest is dropped. False while a TSN is missing: then the second half is reserved for the chunk
    /// that closes the gap.
    fn is_stuck(&self) -> bool {
        self.reassembly.is_interleaved() && !self.has_message() && !self.received.has_gap()
    }

    /// Whether a new chunk of `len` bytes is accepted. With a window of zero only chunks that close a gap are (RFC 9260
    /// §6.2), up to twice the buffer: acknowledged data is never dropped later, unlike RFC 9260 §6.2 suggests, so the
    /// missing chunk must find room.
    fn admits(&self, tsn: u64, len: usize) -> bool {
        let (held, buffer) = (self.held_bytes(), self.config.buffers.receive_bytes);
        if self.window() > 0 {
            return held < buffer || held + len <= 2 * buffer;
        }
        let is_next = tsn == self.received.cumulative() + 1;
        let closes_gap = tsn < self.received.highest();
        (is_next && self.received.has_gap() || closes_gap && !self.is_full())
            && held + len <= 2 * buffer
    }

    /// Processes DATA or I-DATA (RFC 9260 §6.2). With `is_held_back`, it waits for the reset of its stream.
    pub(super) fn on_data(
        &mut self,
        cx: &mut Context<'_>,
        data: &UserData<'_>,
        is_held_back: impl FnOnce(u64) -> bool,
    ) -> Result<(), DataError> {
        if data.is_interleaved != self.reassembly.is_interleaved() {
            return Err(DataError::Violation(if data.is_interleaved {
                "I-DATA that was not negotiated"
            } else {
                "DATA where I-DATA was negotiated"
            }));
        }
        let tsn = unwrap_u32(self.received.cumulative(), data.tsn);
        match self.received.on_tsn(tsn, data.immediate, &self.config) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.counters.duplicates_received += 1;
                return Ok(());
            }
            Arrival::BeyondLimit => {
                self.counters.chunks_dropped = self.counters.chunks_dropped.saturating_add(1);
                cx.trace_dropped("DATA beyond the limit of gaps");
                return Ok(());
            }
        }
        let piece = Piece { tsn, ..data.piece };
        if piece.stream >= self.streams {
            // Acknowledged, reported and discarded (RFC 9260 §6.5).
            self.received.record(tsn);
            return Err(DataError::InvalidStream(piece.stream));
        }
        while !self.admits(tsn, piece.payload.len()) {
            let may_make_room = self.is_stuck() && !self.is_full();
            let dropped = if may_make_room { self.reassembly.drop_largest() } else { None };
            let Some(dropped) = dropped else {
                self.refuse(cx, "DATA beyond the receive window");
                return Ok(());
            };
            self.on_dropped(cx, dropped)?;
        }
        self.take_piece(cx, &piece, is_held_back(tsn))
    }

    fn refuse(&mut self, cx: &mut Context<'_>, reason: &'static str) {
        self.counters.chunks_dropped = self.counters.chunks_dropped.saturating_add(1);
        self.received.note_refused();
        cx.trace_dropped(reason);
    }

    fn take_piece(
        &mut self,
        cx: &mut Context<'_>,
        piece: &Piece<'_>,
        is_held_back: bool,
    ) -> Result<(), DataError> {
        let taken = if is_held_back {
            self.held_back.get_or_insert_default().push(piece);
            Ok(())
        } else {
            self.reassembly.on_data(piece)
        };
        match taken {
            Ok(()) => {
                self.received.record(piece.tsn);
                // A chunk has no more than 65,535 bytes.
                self.offered = self.offered.saturating_sub(piece.payload.len() as u32);
                self.reassembly
                    .take_dropped()
                    .map_or(Ok(()), |dropped| self.on_dropped(cx, dropped))
            }
            Err(ReassemblyError::TooManyHeldChunks) => {
                self.refuse(cx, "DATA beyond max_held_chunks");
                Ok(())
            }
            Err(error) => Err(violation(error)),
        }
    }

    /// Reports a dropped message to the application, or aborts the association if the configuration says so.
    fn on_dropped(
        &mut self,
        cx: &mut Context<'_>,
        DroppedMessage { stream, ppid, unordered }: DroppedMessage,
    ) -> Result<(), DataError> {
        match self.config.messages.oversized {
            OversizedMessages::Drop => {}
            OversizedMessages::ResetStream => {
                self.to_reset.insert(stream);
            }
            OversizedMessages::Abort => {
                return Err(DataError::Violation("a message is larger than max_message_bytes"));
            }
        }
        self.counters.messages_dropped = self.counters.messages_dropped.saturating_add(1);
        cx.event(Event::MessageDropped { stream, ppid, unordered });
        Ok(())
    }

    /// The streams of messages dropped since the last call, if the peer is to be asked to reset them; `None` without any.
    pub(super) fn take_streams_to_reset(&mut self) -> Option<BTreeSet<u16>> {
        (!self.to_reset.is_empty()).then(|| std::mem::take(&mut self.to_reset))
    }

    /// Processes the chunks that waited for a stream reset, now that it was performed (RFC 6525 §5.2.2 E4).
    pub(super) fn release_held_back(&mut self, cx: &mut Context<'_>) -> Result<(), DataError> {
        let Some(held_back) = self.held_back.take() else { return Ok(()) };
        for held in held_back.chunks() {
            let taken = self.reassembly.on_data(&held.piece());
            taken.map_err(violation)?;
            if let Some(dropped) = self.reassembly.take_dropped() {
                self.on_dropped(cx, dropped)?;
            }
        }
        Ok(())
    }

    /// Processes FORWARD-TSN (RFC 3758 §3.6) or I-FORWARD-TSN (RFC 8260 §2.3.1).
    pub(super) fn on_forward_tsn(&mut self, forward: &Forwarding<'_>) -> Result<(), DataError> {
        let (tsn, has_mids) = match forward {
            Forwarding::Ssns(forward) => (forward.new_cumulative_tsn, false),
            Forwarding::Mids(forward) => (forward.new_cumulative_tsn, true),
        };
        if has_mids != self.reassembly.is_interleaved() {
            return Err(DataError::Violation(if has_mids {
                "I-FORWARD-TSN that was not negotiated"
            } else {
                "FORWARD-TSN where I-FORWARD-TSN was negotiated"
            }));
        }
        let new_cumulative = unwrap_u32(self.received.cumulative(), tsn);
        if !self.received.skip_to(new_cumulative) {
            return Ok(());
        }
        let streams = self.streams;
        match forward {
            Forwarding::Ssns(forward) => {
                let skipped = forward.skipped().filter(|&(stream, _)| stream < streams);
                self.reassembly.on_forward_tsn(new_cumulative, skipped);
            }
            Forwarding::Mids(forward) => {
                let skipped = forward.skipped().filter(|skipped| skipped.stream < streams);
                self.reassembly.on_i_forward_tsn(skipped);
            }
        }
        if let Some(held_back) = &mut self.held_back {
            held_back.on_forward_tsn(new_cumulative);
        }
        Ok(())
    }

    /// Called when the peer has reset its outgoing streams; none means all.
    pub(super) fn on_streams_reset(&mut self, streams: &[u16]) {
        self.reassembly.on_streams_reset((!streams.is_empty()).then_some(streams));
    }

    /// Called after the chunks of a packet were processed: its DATA is acknowledged now, if it `is_urgent` or the rules
    /// require it, or later. Returns whether the packet contained DATA. The error reports chunks that contradict each
    /// other.
    ///
    /// `has_dac`: packets come over several paths, so a gap hardly indicates a loss.
    pub(super) fn end_packet(
        &mut self,
        now: Instant,
        is_urgent: bool,
        has_dac: bool,
        bytes: usize,
        rtt: Option<Duration>,
    ) -> Result<bool, DataError> {
        let due = self.received.end_packet(&self.config, has_dac);
        if due == SackDue::No {
            return Ok(false);
        }
        if let Some(copies) = &mut self.ack_copies {
            copies.on_data(now, bytes, rtt);
        }
        self.reassembly.abandon_cut_short(self.received.cumulative());
        if self.reassembly.has_contradiction(self.received.cumulative()) {
            return Err(DataError::Violation("fragments contradict each other"));
        }
        // A window for one packet is used up by each: no second one would come for which a SACK is sent at once.
        let is_used_up =
            self.is_short() && (self.advertised as usize) < 2 * self.config.max_packet_bytes;
        if due == SackDue::Now || is_urgent || is_used_up {
            self.is_sack_owed = true;
        } else if !self.sack_timer.is_armed() {
            self.sack_timer = Deadline::at(now + self.config.sack.delay);
        }
        Ok(true)
    }

    /// Emits [`Event::Readable`] once; again only after the application has received everything.
    pub(super) fn emit_readable(&mut self, cx: &mut Context<'_>) {
        if !self.is_readable_told && self.has_message() {
            self.is_readable_told = true;
            cx.event(Event::Readable);
        }
    }

    /// The next message for the application. If the peer `may_send` more, a SACK that reports the freed
    /// buffer may become due.
    pub(super) fn receive(&mut self, may_send: bool) -> Option<InboundMessage> {
        let Some(message) = self.pop() else {
            self.is_readable_told = false;
            return None;
        };
        self.counters.messages_delivered += 1;
        self.counters.payload_delivered_bytes += message.payload.len() as u64;
        if !self.has_message() {
            self.is_readable_told = false;
        }
        // A SACK is due when a window that was closed can be opened by a quarter of the buffer, or by a packet if the
        // endpoint leaves little room: only then does the peer wait for it (RFC 9260 §6.2).
        let (advertised, packet) = (self.advertised as usize, self.config.max_packet_bytes);
        let was_closed = advertised < packet;
        let quarter = self.config.buffers.receive_bytes / 4;
        let opened = advertised + if self.is_short() { packet.min(quarter) } else { quarter };
        self.is_sack_owed |= was_closed && may_send && self.window() >= opened;
        Some(message)
    }

    fn pop(&mut self) -> Option<InboundMessage> {
        let Some(leftover) = &mut self.leftover else { return self.reassembly.pop() };
        let message = leftover.messages.pop_front()?;
        leftover.bytes -= message.payload.len();
        if leftover.messages.is_empty() {
            self.leftover = None;
        }
        Some(message)
    }

    /// The timer of the delayed acknowledgement, or of the copy of one.
    pub(super) fn sack_timer(&self) -> Deadline {
        let copy = self.ack_copies.as_ref().map_or(Deadline::OFF, |copies| copies.deadline());
        self.sack_timer.min(copy)
    }

    /// Called when the delay of an acknowledgement, or of the copy of one, is over.
    pub(super) fn on_sack_timer(&mut self, now: Instant) {
        if self.sack_timer.instant() <= now {
            self.sack_timer = Deadline::OFF;
            self.is_sack_owed = true;
        }
        if let Some(copies) = &mut self.ack_copies {
            self.is_sack_owed |= copies.on_timeout(now);
        }
    }

    pub(super) const fn owe_sack(&mut self) {
        self.is_sack_owed = true;
    }

    pub(super) const fn is_sack_owed(&self) -> bool {
        self.is_sack_owed
    }

    /// Cancels a delayed SACK, because another chunk carries the acknowledgement.
    pub(super) const fn stop_delaying(&mut self) {
        self.sack_timer = Deadline::OFF;
    }

    /// Called when the peer has nothing more to send: an acknowledgement that is due or delayed is not sent
    /// anymore.
    pub(super) fn stop_acknowledging(&mut self) {
        self.is_sack_owed = false;
        self.stop_delaying();
        if let Some(copies) = &mut self.ack_copies {
            copies.stop();
        }
    }

    /// Whether received data waits for its first acknowledgement or a repeated one.
    pub(super) fn is_unacknowledged(&self) -> bool {
        let has_copy = self.ack_copies.as_ref().is_some_and(|copies| copies.is_pending());
        has_copy || self.received.is_unacknowledged()
    }

    /// Writes SACK with as many gap blocks and duplicates as fit (RFC 9260 §6.2, §6.7), and with DAC the number of
    /// packets that it acknowledges.
    pub(super) fn write_sack(
        &mut self,
        now: Instant,
        has_dac: bool,
        writer: &mut PacketWriter<'_>,
    ) {
        let received = &self.received;
        let room = writer.room();
        if room < sack_len(0, 0) {
            return;
        }
        let entries = (room - sack_len(0, 0)) / 4;
        let blocks = received.gap_block_count().min(entries);
        let duplicates = received.duplicates();
        let duplicates = &duplicates[..duplicates.len().min(entries - blocks)];
        let blocks = received.gap_ack_blocks().take(blocks);
        let window = self.window();
        let a_rwnd = u32::try_from(window).unwrap_or(u32::MAX);
        let cumulative = received.cumulative() as u32;
        let packets = if has_dac { received.unacknowledged_packets() } else { 0 };
        let duplicates = duplicates.iter().copied();
        if writer.sack_of(packets, cumulative, a_rwnd, blocks, duplicates) {
            if let Some(copies) = &mut self.ack_copies {
                copies.on_sack_written(now, !has_dac && self.received.is_unacknowledged());
            }
            self.received.on_sack_sent();
            (self.advertised, self.offered) = (a_rwnd, a_rwnd);
            self.is_sack_owed = false;
            self.sack_timer = Deadline::OFF;
            self.counters.sacks_sent += 1;
        }
    }
}

impl<'a> From<Data<'a>> for UserData<'a> {
    fn from(data: Data<'a>) -> Self {
        let i_data = IData {
            flags: data.flags,
            tsn: data.tsn,
            stream: data.stream,
            mid: data.ssn.into(),
            ppid: data.ppid,
            fsn: 0,
            payload: data.payload,
        };
        Self { is_interleaved: false, ..i_data.into() }
    }
}

impl<'a> From<IData<'a>> for UserData<'a> {
    fn from(data: IData<'a>) -> Self {
        Self {
            tsn: data.tsn,
            immediate: data.flags.immediate,
            is_interleaved: true,
            piece: Piece {
                tsn: data.tsn.into(),
                stream: data.stream,
                mid: data.mid,
                fsn: data.fsn,
                ppid: data.ppid,
                unordered: data.flags.unordered,
                beginning: data.flags.beginning,
                ending: data.flags.ending,
                payload: data.payload,
            },
        }
    }
}

/// The peer's chunks cannot be reassembled into messages.
const fn violation(error: ReassemblyError) -> DataError {
    DataError::Violation(match error {
        ReassemblyError::TooManyHeldChunks => "too many chunks beyond a stream reset",
        ReassemblyError::ProtocolViolation(what) => what,
    })
}
