//! Sending user data: from the application's message to what loss recovery keeps, and back from
//! the peer's SACK to what the application is told (RFC 9260 §6.1, §6.2.1).

use std::collections::VecDeque;
use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_core::serial::unwrap_u32;
use rexmit_core::trace::{TraceEvent, TraceSink, Tracer};
use rexmit_recovery::{AckOutcome, LossRecovery, RecoveryConfig, TimeoutKind, Unit, UnitState};

use super::partial::ForwardState;
use super::thin::ThinStreams;
use super::window_probe::Probe;
use super::{AbortCause, Association, Context, Surroundings, unwrapped_initial_tsn};
use crate::config::AssociationConfig;
use crate::error::SendError;
use crate::event::{Event, FailReason};
use crate::message::{MessageId, OutboundMessage};
use crate::streams::{Fragment, SendQueue};
use crate::wire::Sack;

/// DATA chunks beyond the cumulative point at most: half the space of stream sequence numbers, so
/// that the peer can tell an SSN ahead from one behind (RFC 9260 §6.1, §6.5).
const MAX_OUTSTANDING: u64 = i16::MAX as u64;

/// The sending half of an association.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Messages, or the rest of one, that have not left.
    pub(super) queue: SendQueue,
    /// Chunks that have left and are not cumulatively acknowledged; a unit's number is its TSN.
    pub(super) recovery: LossRecovery<Fragment>,
    /// Streams with mechanisms of their own.
    pub(super) thin_streams: ThinStreams,
    /// Messages of several chunks of which one has left, in the order of their TSNs.
    divided: VecDeque<Divided>,
    next_message: u64,
    streams: u16,
    /// The window that the peer offered last.
    pub(super) peer_a_rwnd: u64,
    /// The largest that it ever was: what the peer's buffer holds.
    peer_buffer: u64,
    /// The largest payload of a chunk: what fits a packet, and a window that was never used.
    pub(super) max_fragment: usize,
    /// Payload bytes in `recovery`.
    outstanding_bytes: usize,
    /// The application was told that the buffer is full.
    is_writer_waiting: bool,
    pub(super) probe_is_due: bool,
    pub(super) probe: Option<Probe>,
    pub(super) forward: ForwardState,
}

#[derive(Debug)]
struct Divided {
    id: MessageId,
    first_tsn: u64,
    message: OutboundMessage,
}

impl Outbound {
    pub(super) fn new(
        config: &AssociationConfig,
        recovery: Arc<RecoveryConfig>,
        initial_tsn: u32,
    ) -> Self {
        let first = unwrapped_initial_tsn(initial_tsn);
        Self {
            queue: SendQueue::new(config.scheduling),
            recovery: LossRecovery::new(recovery, first, config.pmdcs()),
            thin_streams: ThinStreams::default(),
            divided: VecDeque::new(),
            next_message: 0,
            streams: config.outbound_streams,
            peer_a_rwnd: 0,
            peer_buffer: 0,
            max_fragment: config.max_fragment(),
            outstanding_bytes: 0,
            is_writer_waiting: false,
            probe_is_due: false,
            probe: None,
            forward: ForwardState::new(first - 1),
        }
    }

    /// Goes on counting messages where `before` stopped, with the mechanisms that it had.
    pub(super) fn continuing(mut self, before: &Self) -> Self {
        self.take_over_thin(before);
        Self {
            next_message: before.next_message,
            is_writer_waiting: before.is_writer_waiting,
            ..self
        }
    }

    pub(super) fn on_peer_known(&mut self, streams: u16, a_rwnd: u32) {
        self.streams = streams;
        self.set_peer_a_rwnd(a_rwnd);
        self.max_fragment = self.max_fragment.min(a_rwnd as usize);
    }

    fn set_peer_a_rwnd(&mut self, a_rwnd: u32) {
        self.peer_a_rwnd = a_rwnd.into();
        self.peer_buffer = self.peer_buffer.max(self.peer_a_rwnd);
    }

    pub(super) const fn streams(&self) -> u16 {
        self.streams
    }

    pub(super) fn begin_opportunity(&mut self) {
        self.recovery.begin_opportunity();
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.queue.buffered_bytes() + self.outstanding_bytes
    }

    /// Gives back memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.queue.release_memory();
        self.recovery.release_memory();
        self.divided.shrink_to_fit();
    }

    /// Whether nothing is queued or outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.recovery.is_empty()
    }

    /// What the peer's window still takes (RFC 9260 §6.2.1).
    pub(super) fn peer_rwnd(&self) -> u64 {
        self.peer_a_rwnd.saturating_sub(self.recovery.user_bytes_to_arrive())
    }

    /// The payload length of the next new chunk, if the peer's window takes it, or it may leave as
    /// a probe of the window (RFC 9260 §6.1 A).
    ///
    /// A chunk is never made shorter to fit a window: a small window is left unused until it holds
    /// the whole chunk, which is the sender's part against silly windows.
    pub(super) fn next_new_len(&self) -> Option<usize> {
        let len = self.queue.peek_len(self.max_fragment)?;
        let is_probe = self.probe_is_due && self.recovery.is_empty();
        let is_near = self.recovery.next_unit() - self.recovery.cumulative() <= MAX_OUTSTANDING;
        (is_near && (len as u64 <= self.peer_rwnd() || is_probe)).then_some(len)
    }

    /// The same for a packet over `path`, which may have to leave its part of the window to others.
    pub(super) fn next_new_len_over(&self, path: u8) -> Option<usize> {
        let may_leave = |len: &usize| {
            let bytes = *len as u64;
            self.recovery.has_share(path, bytes, self.peer_a_rwnd)
                && !self.recovery.may_block(path, bytes, self.peer_buffer)
        };
        self.next_new_len().filter(may_leave)
    }

    /// The rest of the message `id`, if it is begun, will never leave. One TSN is spent on it, so
    /// that the FORWARD-TSN passes more than the peer may already have acknowledged and the peer
    /// drops the half it holds.
    pub(super) fn skip_rest(&mut self, id: MessageId) {
        if let Some(rest) = self.queue.abandon_begun(id) {
            self.recovery.skip_new(rest);
        }
    }

    /// Cuts the next chunk and hands it to loss recovery; returns its TSN.
    pub(super) fn cut_next(&mut self, now: Instant, wants_sack: bool) -> Option<u64> {
        let rwnd = self.peer_rwnd();
        let mut fragment = self.queue.next(self.max_fragment)?;
        if fragment.beginning && !fragment.ending {
            let message = self.queue.begun_message()?.clone();
            let first_tsn = self.recovery.next_unit();
            self.divided.push_back(Divided { id: fragment.message, first_tsn, message });
        }
        fragment.immediate |= wants_sack && fragment.ending && self.queue.is_empty();
        let user_bytes = fragment.payload.len();
        let bytes = crate::wire::padded(crate::wire::DATA_HEADER_LEN + user_bytes) as u32;
        self.outstanding_bytes += user_bytes;
        self.recovery.set_group(self.thin_streams.group_of(fragment.stream));
        let tsn = self.recovery.send_new(now, bytes, user_bytes as u32, fragment);
        if user_bytes as u64 > rwnd {
            self.probe_is_due = false;
            self.probe = Some(Probe::new(tsn, user_bytes as u64, now));
            self.recovery.on_probe_sent(tsn);
        }
        Some(tsn)
    }
}

impl Association {
    /// Accepts a message from the application.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context<'_>,
        message: OutboundMessage,
    ) -> Result<MessageId, SendError> {
        let len = message.payload.len();
        let limit = self.config.max_message_bytes;
        if !self.state.may_accept_messages() {
            return Err(SendError::Closing);
        } else if message.stream >= self.out.streams {
            return Err(SendError::InvalidStream { streams: self.out.streams });
        } else if len == 0 {
            return Err(SendError::Empty);
        } else if len > limit {
            return Err(SendError::TooLarge { limit });
        }
        let buffered = self.out.buffered_bytes();
        if buffered > 0 && buffered + len > self.config.send_buffer_bytes {
            self.out.is_writer_waiting = true;
            return Err(SendError::BufferFull);
        }
        let id = MessageId(self.out.next_message);
        self.out.next_message += 1;
        self.traffic.messages_accepted += 1;
        self.traffic.payload_accepted_bytes += len as u64;
        self.out.queue.push(cx.now, id, message);
        self.out.begin_opportunity();
        self.watch_window(cx);
        Ok(id)
    }

    /// SACK (RFC 9260 §6.2.1).
    pub(super) fn on_sack(&mut self, cx: &mut Context<'_>, sack: &Sack<'_>) {
        if !self.state.may_process_sack() {
            return;
        }
        self.traffic.sacks_received += 1;
        let known = self.out.recovery.cumulative();
        let cumulative = unwrap_u32(known, sack.cumulative_tsn_ack);
        for duplicate in sack.duplicate_tsns() {
            let tsn = unwrap_u32(cumulative, duplicate);
            self.out.recovery.on_duplicate_report(cx.now, tsn, &mut cx.tracer());
        }
        if self.out.recovery.asks_for_new() {
            self.out.recovery.tell_new(self.out.next_new_len().is_some());
        }
        let blocks = sack
            .gap_ack_blocks()
            .map(move |(start, end)| (cumulative + u64::from(start), cumulative + u64::from(end)));
        self.out.recovery.set_packets_answered(sack.packets);
        let Some(outcome) = self.take_ack(cx, cumulative, blocks) else { return };
        if !outcome.is_stale {
            self.out.set_peer_a_rwnd(sack.a_rwnd);
            self.check_probe(cx);
        }
        if outcome.has_acked_resent && !outcome.has_sampled {
            self.ask_for_round_trip(cx);
        }
        self.after_ack(cx);
    }

    /// The Cumulative TSN Ack of a SHUTDOWN (RFC 9260 §9.2). Some peers fill in something else, so
    /// one that cannot be is not held against them.
    pub(super) fn on_shutdown_ack_point(&mut self, cx: &mut Context<'_>, cumulative_tsn_ack: u32) {
        let cumulative = unwrap_u32(self.out.recovery.cumulative(), cumulative_tsn_ack);
        if cumulative < self.out.recovery.next_unit()
            && self.take_ack(cx, cumulative, std::iter::empty()).is_some()
        {
            self.after_ack(cx);
        }
    }

    /// Hands an acknowledgement to loss recovery, and what it passes to the application's events.
    /// `None` if the association ended over it.
    fn take_ack(
        &mut self,
        cx: &mut Context<'_>,
        cumulative: u64,
        blocks: impl Iterator<Item = (u64, u64)> + Clone,
    ) -> Option<AckOutcome> {
        let (now, id) = (cx.now, cx.id);
        let recovery = &self.out.recovery;
        if (recovery.cumulative()..recovery.next_unit()).contains(&cumulative) {
            let gaps = || blocks.clone().collect();
            cx.tracer().emit(|| TraceEvent::AckReceived { cumulative, gaps: gaps() });
        }
        let Surroundings { events, sink, .. } = &mut *cx.around;
        let sink = sink.as_mut().map(|sink| &mut **sink as &mut dyn TraceSink);
        let mut tracer = Tracer::new(now, id.index(), sink);
        let Outbound { recovery, divided, outstanding_bytes, .. } = &mut self.out;
        let report = self.config.report_acknowledged;
        let result = recovery.on_ack(now, (cumulative, blocks), &mut tracer, |unit| {
            let acknowledged = on_delivered(unit, divided, outstanding_bytes);
            if let Some(message) = acknowledged.filter(|_| report) {
                events.push_back((id, Event::MessageAcknowledged(message)));
            }
        });
        match result {
            Ok(outcome) => {
                // A FORWARD-TSN was taken: that shows a living peer, too.
                if outcome.has_advanced && outcome.newly_acked == 0 {
                    self.clear_errors(cx, self.control_path, self.paths.len() == 1);
                }
                let mut paths = outcome.paths;
                while paths != 0 {
                    let path = paths.trailing_zeros();
                    paths &= paths - 1;
                    let is_certain = outcome.certain_paths & (1 << path) != 0;
                    self.clear_errors(cx, path as u8, is_certain);
                }
                Some(outcome)
            }
            Err(_) => {
                self.abort(cx, AbortCause::Violation("a TSN was acknowledged that was never sent"));
                None
            }
        }
    }

    fn after_ack(&mut self, cx: &mut Context<'_>) {
        self.advance_peer_ack_point(cx);
        self.watch_window(cx);
        self.tell_writable(cx);
    }

    /// Tells the application that there is room again, if it waits for that.
    pub(super) fn tell_writable(&mut self, cx: &mut Context<'_>) {
        let has_room = self.out.buffered_bytes() <= self.config.send_buffer_bytes / 2;
        if has_room && !self.state.is_closed() && std::mem::take(&mut self.out.is_writer_waiting) {
            cx.event(Event::Writable);
        }
    }

    /// T3-rtx of any path that is due (RFC 9260 §6.3.3).
    pub(super) fn on_retransmission_timeouts(&mut self, cx: &mut Context<'_>) {
        while !self.state.is_setting_up()
            && !self.state.is_closed()
            && let Some(path) = self.out.recovery.due_path(cx.now)
        {
            let is_probing = self.out.is_probing();
            let kind = if is_probing { TimeoutKind::WindowProbe } else { TimeoutKind::Loss };
            let is_answered = is_probing && self.renew_probe(cx.now);
            let has_backed_off = self.out.recovery.on_timeout(path, kind, &mut cx.tracer());
            if self.out.forward.is_owed(self.out.recovery.cumulative()) {
                self.owed.forward_tsn = true;
                self.turn_control_path();
            }
            if !is_answered && has_backed_off {
                self.count_path_error(cx, path);
                if self.count_error(cx) {
                    return;
                }
            }
        }
    }

    /// A chunk has left for the first time.
    pub(super) fn on_first_sent(&mut self, cx: &mut Context<'_>, tsn: u64) {
        let Some(fragment) = self.out.recovery.unit(tsn).map(|unit| &unit.payload) else { return };
        if !fragment.ending {
            return;
        }
        let (id, stream) = (fragment.message, fragment.stream);
        let divided = self.out.divided.back().filter(|divided| divided.id == id);
        let first = divided.map_or(tsn, |divided| divided.first_tsn);
        cx.tracer().emit(|| TraceEvent::MessageNumbered {
            message: id.0,
            stream,
            sequence: (first, tsn),
        });
        if self.config.report_sent {
            cx.event(Event::MessageSent(id));
        }
    }

    /// Tells the application of every message that is not acknowledged that it failed.
    pub(super) fn fail_everything(&mut self, cx: &mut Context<'_>, reason: FailReason) {
        let mut failed = Vec::new();
        let divided = &mut self.out.divided;
        self.out.recovery.drain(|unit| {
            let fragment = &unit.payload;
            let is_whole = fragment.beginning && fragment.ending;
            if unit.state() != UnitState::Abandoned && is_whole {
                failed.push((fragment.message, true, fragment.to_message()));
            }
        });
        failed.extend(divided.drain(..).map(|d| (d.id, true, d.message)));
        self.out.queue.drain(|id, message, was_begun| {
            if !was_begun {
                failed.push((id, false, message));
            }
        });
        failed.sort_unstable_by_key(|(id, ..)| *id);
        self.out.outstanding_bytes = 0;
        self.out.probe = None;
        for (id, was_begun, message) in failed {
            self.fail_message(cx, (id, message), reason, was_begun);
        }
    }

    pub(super) fn fail_message(
        &mut self,
        cx: &mut Context<'_>,
        (id, message): (MessageId, OutboundMessage),
        reason: FailReason,
        was_begun: bool,
    ) {
        self.traffic.messages_failed += 1;
        cx.event(Event::MessageFailed { id, reason, was_begun, message });
        self.tell_writable(cx);
    }

    /// Messages that were accepted before the peer said that it takes fewer streams.
    pub(super) fn fail_messages_to_missing_streams(&mut self, cx: &mut Context<'_>) {
        let mut failed = Vec::new();
        self.out
            .queue
            .drop_streams_from(self.out.streams, |id, message| failed.push((id, message)));
        for failed in failed {
            self.fail_message(cx, failed, FailReason::NoSuchStream, false);
        }
    }

    /// The message of several chunks called `id`, which is not tracked any further.
    pub(super) fn take_divided(&mut self, id: MessageId) -> Option<OutboundMessage> {
        let at = self.out.divided.iter().position(|divided| divided.id == id)?;
        self.out.divided.remove(at).map(|divided| divided.message)
    }

    pub(super) fn trace_dropped(cx: &mut Context<'_>, reason: &'static str) {
        cx.tracer().emit(|| TraceEvent::Dropped { reason });
    }
}

/// The cumulative point has passed `unit`: its bytes are free; returns the message it completes.
fn on_delivered(
    unit: Unit<Fragment>,
    divided: &mut VecDeque<Divided>,
    outstanding_bytes: &mut usize,
) -> Option<MessageId> {
    let is_abandoned = unit.state() == UnitState::Abandoned;
    let Fragment { message, beginning, ending, payload, .. } = unit.payload;
    *outstanding_bytes -= payload.len();
    if is_abandoned || !ending {
        return None;
    }
    if beginning {
        return Some(message);
    }
    // A divided message that is not tracked any more was given up, though its end had arrived.
    let _is_tracked = divided.front().filter(|front| front.id == message)?;
    divided.pop_front().map(|divided| divided.id)
}
