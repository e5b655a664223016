//! Receiving user data: DATA, FORWARD-TSN, the window, and what the application reads
//! (RFC 9260 §6.2, §6.5–6.7, §6.9).

use std::collections::VecDeque;

use rexmit_core::serial::unwrap_u32;

use super::received::{Arrival, Received, SackDue};
use super::state::State;
use super::transmit::OwedError;
use super::{AbortCause, Association, Context, Timer, unwrapped_initial_tsn};
use crate::config::AssociationConfig;
use crate::event::Event;
use crate::message::InboundMessage;
use crate::streams::{Piece, Reassembly, ReassemblyError, ReassemblyLimits};
use crate::wire::{Data, ForwardTsn};

/// The receiving half of an association.
#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) received: Received,
    pub(super) reassembly: Reassembly,
    /// Read before what `reassembly` has: left from before the peer restarted.
    leftover: VecDeque<InboundMessage>,
    leftover_bytes: usize,
    streams: u16,
    /// The application knows that there is something to read.
    is_readable_told: bool,
    /// The window that the last SACK offered.
    advertised: usize,
    /// The path of the last packet, if it is confirmed: where replies go (RFC 9260 §6.4).
    pub(super) reply_path: u8,
}

impl Inbound {
    pub(super) fn new(config: &AssociationConfig) -> Self {
        let limits = ReassemblyLimits {
            max_message_bytes: config.max_message_bytes,
            max_held_chunks: config.max_held_chunks,
        };
        Self {
            received: Received::new(unwrapped_initial_tsn(0)),
            reassembly: Reassembly::new(limits),
            leftover: VecDeque::new(),
            leftover_bytes: 0,
            streams: config.max_inbound_streams,
            is_readable_told: false,
            advertised: config.receive_buffer_bytes,
            reply_path: 0,
        }
    }

    /// Keeps what the application has not read of `before`.
    pub(super) fn continuing(mut self, before: &mut Self) -> Self {
        self.leftover = std::mem::take(&mut before.leftover);
        self.leftover.extend(std::iter::from_fn(|| before.reassembly.pop()));
        self.leftover_bytes = self.leftover.iter().map(|message| message.payload.len()).sum();
        self.is_readable_told = before.is_readable_told;
        self
    }

    pub(super) fn on_peer_known(&mut self, initial_tsn: u32, streams: u16) {
        self.received = Received::new(unwrapped_initial_tsn(initial_tsn));
        self.streams = streams;
    }

    pub(super) const fn streams(&self) -> u16 {
        self.streams
    }

    pub(super) fn begin_packet(&mut self) {
        self.received.begin_packet();
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.leftover_bytes + self.reassembly.held_bytes()
    }

    /// Whether as many chunks and messages are held as may be.
    fn is_full(&self, config: &AssociationConfig) -> bool {
        self.reassembly.is_full() || self.leftover.len() >= config.max_held_chunks
    }

    fn pop(&mut self) -> Option<InboundMessage> {
        let Some(message) = self.leftover.pop_front() else { return self.reassembly.pop() };
        self.leftover_bytes -= message.payload.len();
        Some(message)
    }

    pub(super) fn has_message(&self) -> bool {
        !self.leftover.is_empty() || self.reassembly.has_ready()
    }

    /// The window to offer: what is left of the buffer, or nothing when less than a packet (or
    /// half of a small buffer) is left, against silly windows (RFC 9260 §6.2, RFC 1122 §4.2.3.3).
    fn window(&self, config: &AssociationConfig) -> usize {
        let left = config.receive_buffer_bytes.saturating_sub(self.held_bytes());
        let least = config.max_packet_bytes.min(config.receive_buffer_bytes / 2);
        if self.is_full(config) || left < least { 0 } else { left }
    }

    /// Whether a new chunk of `len` bytes is taken. A closed window takes only what closes a gap,
    /// up to twice the buffer: nothing acknowledged is ever dropped again (instead of the drop
    /// that RFC 9260 §6.2 suggests), so the missing chunk must find room.
    fn admits(&self, tsn: u64, len: usize, config: &AssociationConfig) -> bool {
        let held = self.held_bytes();
        if held < config.receive_buffer_bytes && !self.is_full(config) {
            return true;
        }
        let is_next = tsn == self.received.cumulative() + 1;
        let closes_gap = tsn < self.received.highest();
        (is_next && self.received.has_gap() || closes_gap && !self.is_full(config))
            && held + len <= 2 * config.receive_buffer_bytes
    }
}

impl Association {
    /// DATA (RFC 9260 §6.2).
    pub(super) fn on_data(&mut self, cx: &mut Context<'_>, data: &Data<'_>) {
        if !self.state.may_receive_data() {
            return;
        }
        let received = &mut self.inbound.received;
        let tsn = unwrap_u32(received.cumulative(), data.tsn);
        match received.on_tsn(tsn, data.flags.immediate, &self.config) {
            Arrival::New => {}
            Arrival::Duplicate => {
                self.traffic.duplicates_received += 1;
                return;
            }
            Arrival::BeyondLimit => {
                self.traffic.chunks_dropped += 1;
                return Self::trace_dropped(cx, "DATA beyond the limit of gaps");
            }
        }
        if data.stream >= self.inbound.streams {
            // Acknowledged, reported and discarded (RFC 9260 §6.5).
            received.record(tsn);
            return self.owed.error(OwedError::InvalidStream(data.stream));
        }
        if !self.inbound.admits(tsn, data.payload.len(), &self.config)
            || self.reset.holds_back(tsn, data.stream)
        {
            self.traffic.chunks_dropped += 1;
            self.inbound.received.note_refused();
            return Self::trace_dropped(cx, "DATA beyond the receive window");
        }
        self.take_piece(cx, tsn, data);
    }

    fn take_piece(&mut self, cx: &mut Context<'_>, tsn: u64, data: &Data<'_>) {
        let piece = Piece {
            tsn,
            stream: data.stream,
            ssn: data.ssn,
            ppid: data.ppid,
            unordered: data.flags.unordered,
            beginning: data.flags.beginning,
            ending: data.flags.ending,
            payload: data.payload,
        };
        match self.inbound.reassembly.on_data(&mut cx.around.arena, &piece) {
            Ok(()) => {
                self.inbound.received.record(tsn);
            }
            Err(ReassemblyError::TooManyHeldChunks) => {
                self.traffic.chunks_dropped += 1;
                self.inbound.received.note_refused();
                Self::trace_dropped(cx, "DATA beyond max_held_chunks");
            }
            Err(ReassemblyError::MessageTooLarge) => {
                self.abort(cx, AbortCause::Violation("a message is larger than max_message_bytes"));
            }
            Err(ReassemblyError::ProtocolViolation(what)) => {
                self.abort(cx, AbortCause::Violation(what));
            }
        }
    }

    /// FORWARD-TSN (RFC 3758 §3.6).
    pub(super) fn on_forward_tsn(&mut self, _cx: &mut Context<'_>, forward: &ForwardTsn<'_>) {
        if !self.state.may_receive_data() {
            return;
        }
        let cumulative = self.inbound.received.cumulative();
        let new_cumulative = unwrap_u32(cumulative, forward.new_cumulative_tsn);
        if self.inbound.received.skip_to(new_cumulative) {
            let streams = self.inbound.streams;
            let skipped = forward.skipped().filter(|&(stream, _)| stream < streams);
            self.inbound.reassembly.on_forward_tsn(new_cumulative, skipped);
        }
    }

    /// The DATA of a packet are processed: what is contradictory ends the association, the rest is
    /// acknowledged and told to the application.
    pub(super) fn after_data(&mut self, cx: &mut Context<'_>) {
        let has_dac = self.has_dac();
        let due = self.inbound.received.end_packet(&self.config, has_dac);
        if due == SackDue::No {
            return;
        }
        if self.inbound.reassembly.has_contradiction(self.inbound.received.cumulative()) {
            return self.abort(cx, AbortCause::Violation("fragments contradict each other"));
        }
        self.perform_deferred_reset(cx);
        if due == SackDue::Now || matches!(self.state, State::ShutdownSent) {
            self.owed.sack = true;
        } else if !self.timers.is_armed(Timer::Sack) {
            self.timers.arm(Timer::Sack, cx.now + self.config.sack_delay);
        }
        if matches!(self.state, State::ShutdownSent) {
            // Each packet with DATA is answered with SHUTDOWN (RFC 9260 §9.2).
            self.owed.shutdown = true;
        }
        self.tell_readable(cx);
    }

    fn tell_readable(&mut self, cx: &mut Context<'_>) {
        if !self.inbound.is_readable_told && self.inbound.has_message() {
            self.inbound.is_readable_told = true;
            cx.event(Event::Readable);
        }
    }

    /// The next message for the application.
    pub(crate) fn receive(&mut self) -> Option<InboundMessage> {
        let message = self.inbound.pop();
        let Some(message) = message else {
            self.inbound.is_readable_told = false;
            return None;
        };
        self.traffic.messages_delivered += 1;
        self.traffic.payload_delivered_bytes += message.payload.len() as u64;
        if !self.inbound.has_message() {
            self.inbound.is_readable_told = false;
        }
        self.update_window();
        Some(message)
    }

    /// A SACK is owed when a window that was closed can be opened by a quarter of the buffer: only
    /// then does the peer wait for it (RFC 9260 §6.2).
    fn update_window(&mut self) {
        let was_closed = self.inbound.advertised < self.config.max_packet_bytes;
        if was_closed
            && self.state.may_receive_data()
            && self.inbound.window(&self.config)
                >= self.inbound.advertised + self.config.receive_buffer_bytes / 4
        {
            self.owed.sack = true;
        }
    }

    /// DAC: packets come over several paths, so their order says little.
    fn has_dac(&self) -> bool {
        self.paths.len() > 1 && self.config.recovery.cmt.delayed_ack
    }

    /// Writes SACK with as many gap blocks and duplicates as fit (RFC 9260 §6.2, §6.7). Returns
    /// whether it fit.
    pub(super) fn write_sack(&mut self, writer: &mut crate::wire::PacketWriter<'_>) -> bool {
        let received = &self.inbound.received;
        let room = writer.room();
        if room < crate::wire::sack_len(0, 0) {
            return false;
        }
        let entries = (room - crate::wire::sack_len(0, 0)) / 4;
        let blocks = received.gap_block_count().min(entries);
        let duplicates = received.duplicates();
        let duplicates = &duplicates[..duplicates.len().min(entries - blocks)];
        let blocks = received.gap_ack_blocks().take(blocks);
        let window = self.inbound.window(&self.config);
        let a_rwnd = u32::try_from(window).unwrap_or(u32::MAX);
        let cumulative = received.cumulative() as u32;
        let packets = if self.has_dac() { received.unacknowledged_packets() } else { 0 };
        let duplicates = duplicates.iter().copied();
        if !writer.sack_of(packets, (cumulative, a_rwnd), blocks, duplicates) {
            return false;
        }
        self.inbound.received.on_sack_sent();
        self.inbound.advertised = window;
        self.owed.sack = false;
        self.timers.stop(Timer::Sack);
        self.traffic.sacks_sent += 1;
        true
    }
}
