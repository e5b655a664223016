//! Sending user data: from the application's message to outstanding data, and from the peer's SACK to events
//! of the application (RFC 9260 §6.1, §6.2.1).

mod divided;
mod forward;
mod thin;
mod window_probe;
mod write;

use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_core::serial::unwrap_u32;
use rexmit_core::trace::{TraceEvent, TraceSink, Tracer};
use rexmit_recovery::{
    Abandoned, Ack, AckError, AckOutcome, LossRecovery, NewUnit, Next, OpenPacket, PeerWindow,
    RecoveryConfig, T3Event, ThinConfig, Thinness, Timeout, TimeoutKind, Unit, UnitState,
};

use super::context::{Context, Recovery, Surroundings};
use super::identity::unwrapped_initial_tsn;
use super::timers::Deadline;
use crate::config::AssociationConfig;
use crate::error::{PriorityError, SendError, ThinError};
use crate::event::{Event, FailReason};
use crate::message::{MessageId, OutboundMessage};
use crate::statistics::Traffic;
use crate::streams::{BegunExpiry, Fragment, Scheduling, SendQueue};
use crate::wire::{DATA_HEADER_LEN, I_DATA_HEADER_LEN, PacketWriter, Sack, padded};

use divided::{Divided, DividedMessages};
use forward::Forward;
use thin::ThinStreams;
use window_probe::WindowProbe;

/// The most DATA chunks beyond the cumulative point: half of the space of stream sequence numbers, so that
/// the peer can distinguish an SSN ahead from one behind (RFC 9260 §6.1, §6.5).
const MAX_OUTSTANDING: u64 = i16::MAX as u64;

/// The least charge to the send buffer for a queued message, or for a chunk sent and not acknowledged: it bounds the
/// bookkeeping for small messages.
const MIN_CHARGE_BYTES: usize = 64;
/// The number of messages and chunks that are charged their payload alone, even in a small buffer.
const UNCHARGED: usize = 16_384;

/// The least payload of a chunk that is cut to fill a packet larger than the base size.
const MIN_PIECE_BYTES: usize = 128;

/// A packet that was filled with DATA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Filled {
    /// Whether it contains new data: retransmissions do not measure the path (RFC 9260 §8.3).
    pub(super) has_new: bool,
    /// Whether there was no room for the next new chunk.
    pub(super) is_full: bool,
    /// The last new TSN, if the packet is larger than the base size.
    pub(super) last_of_large: Option<u64>,
}

/// The sending half of an association.
#[derive(Debug)]
pub(crate) struct Outbound {
    config: Arc<AssociationConfig>,
    /// Messages, or the rest of one, that were not sent.
    pub(super) queue: SendQueue,
    /// Chunks sent and not cumulatively acknowledged; a unit's number is its TSN.
    pub(crate) recovery: Recovery,
    /// Streams with mechanisms of their own.
    thin_streams: ThinStreams,
    /// Messages of several chunks of which one was sent.
    divided: DividedMessages,
    next_message: u64,
    streams: u16,
    /// The window that the peer offered last, and the largest that it ever did.
    peer_window: PeerWindow,
    /// The largest payload of a chunk: limited by the packet size and by the largest window that the peer has offered.
    max_fragment: usize,
    /// Payload bytes in `recovery`.
    outstanding_bytes: usize,
    /// With CMT: the path that is tried first for the next new data.
    turn: u8,
    /// Whether the application waits for room in the buffer.
    is_writer_waiting: bool,
    probe: WindowProbe,
    forward: Forward,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    messages_accepted: u64,
    payload_accepted_bytes: u64,
    messages_failed: u64,
    sacks_received: u64,
}

/// The state of the association that decides what may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Whether DATA may be sent in packets without control chunks.
    pub(super) may_send: bool,
    /// Whether the application has finished sending: the last chunk asks for an immediate SACK.
    pub(super) is_ending: bool,
    /// The path of FORWARD-TSN.
    pub(super) control: u8,
}

/// A timer of loss recovery has expired.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expired {
    pub(super) path: u8,
    /// Whether the expiry counts as an error of the path and the association.
    pub(super) is_error: bool,
    /// Whether FORWARD-TSN is retransmitted.
    pub(super) repeats_forward: bool,
}

impl Outbound {
    pub(super) fn new(
        config: Arc<AssociationConfig>,
        recovery: Arc<RecoveryConfig>,
        initial_tsn: u32,
    ) -> Self {
        let first = unwrapped_initial_tsn(initial_tsn);
        Self {
            queue: SendQueue::new(config.streams.scheduling),
            recovery: LossRecovery::new(recovery, first, config.pmdcs()),
            thin_streams: ThinStreams::default(),
            divided: DividedMessages::default(),
            next_message: 0,
            streams: config.streams.outbound,
            peer_window: PeerWindow { a_rwnd: 0, buffer: 0 },
            max_fragment: config.max_fragment(),
            outstanding_bytes: 0,
            turn: 0,
            is_writer_waiting: false,
            probe: WindowProbe::new(),
            forward: Forward::new(first - 1),
            counters: Counters::default(),
            config,
        }
    }

    /// Takes over the counters and mechanisms of `before`.
    pub(super) fn continuing(mut self, before: &Self) -> Self {
        before.thin_streams.continue_in(&mut self.recovery, &before.recovery);
        Self {
            queue: self.queue.continuing(&before.queue),
            thin_streams: before.thin_streams.clone(),
            next_message: before.next_message,
            turn: before.turn,
            is_writer_waiting: before.is_writer_waiting,
            counters: before.counters,
            ..self
        }
    }

    /// Called when the handshake is known: the peer accepts `streams` outgoing streams and offers a window;
    /// no chunk is to be larger than that window.
    pub(super) fn on_peer_known(
        &mut self,
        streams: u16,
        a_rwnd: u32,
        is_interleaved: bool,
        supports_forward: bool,
    ) {
        self.streams = streams;
        self.set_peer_a_rwnd(a_rwnd);
        if is_interleaved {
            self.queue.interleave(a_rwnd as usize);
            self.limit_chunks(self.config.pmdcs() as usize);
        }
        self.max_fragment = self.max_fragment.min(a_rwnd as usize);
        self.forward.on_peer_known(supports_forward);
    }

    /// Bytes of a DATA or I-DATA chunk with `payload_len` bytes of user data, padding included.
    pub(super) const fn chunk_len(&self, payload_len: usize) -> usize {
        padded(self.data_header_len() + payload_len)
    }

    const fn data_header_len(&self) -> usize {
        if self.queue.is_interleaved() { I_DATA_HEADER_LEN } else { DATA_HEADER_LEN }
    }

    /// Sets the priority of an outgoing stream.
    pub(crate) fn set_priority(&mut self, stream: u16, priority: u16) -> Result<(), PriorityError> {
        let streams = self.streams;
        if stream >= streams {
            return Err(PriorityError::InvalidStream { streams });
        }
        self.queue.set_priority(stream, priority);
        Ok(())
    }

    /// Schedules streams by another rule from now on.
    pub(crate) fn set_scheduling(&mut self, scheduling: Scheduling) {
        self.queue.set_scheduling(scheduling);
    }

    /// Limits new chunks to `len` bytes, header included.
    pub(super) fn limit_chunks(&mut self, len: usize) {
        self.max_fragment = self.max_fragment.min(len - self.data_header_len());
    }

    fn set_peer_a_rwnd(&mut self, a_rwnd: u32) {
        self.peer_window.a_rwnd = a_rwnd.into();
        self.peer_window.buffer = self.peer_window.buffer.max(self.peer_window.a_rwnd);
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

    /// The charge of the send buffer: payload, or [`MIN_CHARGE_BYTES`] for each message and chunk where that is more.
    /// It is 0 if there is no payload: the application does not wait for abandoned chunks.
    fn charged_bytes(&self) -> usize {
        let buffered = self.buffered_bytes();
        if buffered == 0 {
            return 0;
        }
        let outstanding = self.recovery.outstanding();
        let chunks = (outstanding.next_unit() - 1 - outstanding.cumulative()) as usize;
        let count = self.queue.waiting_messages() + chunks;
        if count < UNCHARGED { buffered } else { buffered.max(count * MIN_CHARGE_BYTES) }
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.queue.release_memory();
        self.recovery.release_memory();
        self.divided.release_memory();
    }

    /// Whether nothing is queued or outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.recovery.outstanding().is_empty()
    }

    /// The free part of the peer's window (RFC 9260 §6.2.1).
    fn peer_rwnd(&self) -> u64 {
        self.peer_window.a_rwnd.saturating_sub(self.recovery.outstanding().user_bytes_to_arrive())
    }

    /// The payload length of the next new chunk, if it fits the peer's window, or may be sent as a probe of
    /// the window (RFC 9260 §6.1 A).
    ///
    /// A chunk is never shortened to fit a window: a small window is not used until the whole chunk fits,
    /// which is the sender's part of silly window avoidance.
    pub(super) fn next_new_len(&self) -> Option<usize> {
        let len = self.queue.peek_len(self.max_fragment)?;
        let is_probe = self.probe.is_due() && self.recovery.outstanding().is_empty();
        let is_near = self.recovery.outstanding().next_unit()
            - self.recovery.outstanding().cumulative()
            <= MAX_OUTSTANDING;
        (is_near && (len as u64 <= self.peer_rwnd() || is_probe)).then_some(len)
    }

    /// The payload length of an outstanding chunk.
    pub(super) fn payload_len(&self, tsn: u64) -> usize {
        self.recovery.outstanding().unit(tsn).map_or(0, |unit| unit.payload.payload.len())
    }

    /// The length of the next new chunk for a packet over `path`, unless its part of the peer's window has to
    /// be left to other paths.
    fn next_new_len_over(&self, path: u8) -> Option<usize> {
        let may_leave = |len: &usize| {
            let bytes = *len as u64;
            self.recovery.may_take(path, bytes, self.peer_window)
        };
        self.next_new_len().filter(may_leave)
    }

    /// Drops the unsent rest of the message `id`, if it has begun. One TSN is used up for it, so that the
    /// FORWARD-TSN goes beyond what the peer may already have acknowledged, and the peer drops the part that
    /// it holds.
    fn skip_rest(&mut self, stream: u16, id: MessageId) {
        if let Some(rest) = self.queue.abandon_begun(stream, id) {
            self.recovery.abandon(Abandoned::Unsent(rest));
        }
    }

    /// Cuts the next chunk, of at most `max_payload` bytes, and puts it into `packet`; returns its TSN, and whether the peer is to be asked to
    /// acknowledge it at once.
    fn cut_next(
        &mut self,
        now: Instant,
        max_payload: usize,
        wants_sack: bool,
        packet: &mut OpenPacket,
    ) -> Option<(u64, bool)> {
        let rwnd = self.peer_rwnd();
        let mut fragment = self.queue.next(max_payload)?;
        let tsn = self.recovery.outstanding().next_unit();
        if fragment.beginning && !fragment.ending {
            let message = self.queue.begun_message(fragment.stream)?.clone();
            self.divided.begin(fragment.message, tsn, message);
        } else if !fragment.beginning {
            self.divided.go_on(fragment.message, tsn);
        }
        fragment.immediate |= wants_sack && fragment.ending && self.queue.is_empty();
        let user_bytes = fragment.payload.len();
        let bytes = self.chunk_len(user_bytes) as u32;
        self.outstanding_bytes += user_bytes;
        let new = NewUnit {
            bytes,
            user_bytes: user_bytes as u32,
            group: self.thin_streams.group_of(fragment.stream),
            is_probe: user_bytes as u64 > rwnd,
            is_ordered: !fragment.unordered,
            due: fragment.due,
        };
        let (tsn, wants_ack) = packet.put_new(&mut self.recovery, now, new, fragment);
        if new.is_probe {
            self.probe.on_sent(now, tsn, user_bytes as u64);
        }
        Some((tsn, wants_ack))
    }

    /// Accepts a message from the application.
    pub(super) fn send(
        &mut self,
        now: Instant,
        standing: Standing,
        message: OutboundMessage,
    ) -> Result<MessageId, SendError> {
        let len = message.payload.len();
        let limit = self.config.messages.max_bytes;
        if message.stream >= self.streams {
            return Err(SendError::InvalidStream { streams: self.streams });
        } else if len == 0 {
            return Err(SendError::Empty);
        } else if len > limit {
            return Err(SendError::TooLarge { limit });
        }
        let charged = self.charged_bytes();
        if charged > 0 && charged + len > self.config.buffers.send_bytes {
            self.is_writer_waiting = true;
            return Err(SendError::BufferFull);
        }
        self.thin_streams.on_used(message.stream, &mut self.recovery);
        let id = MessageId(self.next_message);
        self.next_message += 1;
        self.counters.messages_accepted += 1;
        self.counters.payload_accepted_bytes += len as u64;
        self.queue.push(now, id, message);
        self.begin_opportunity();
        self.watch_window(now, standing);
        Ok(id)
    }

    /// Adds the counters of accepted data to `traffic`.
    pub(super) const fn count(&self, traffic: &mut Traffic) {
        traffic.messages_accepted += self.counters.messages_accepted;
        traffic.payload_accepted_bytes += self.counters.payload_accepted_bytes;
        traffic.messages_failed += self.counters.messages_failed;
        traffic.sacks_received += self.counters.sacks_received;
    }

    /// The streams that were singled out, and whether each is thin now.
    pub(super) fn thin_streams(&self) -> Vec<(u16, Thinness)> {
        self.thin_streams.thinness(&self.recovery)
    }

    /// Sets the thin-stream mechanisms of all streams without their own configuration.
    pub(crate) fn set_thin(&mut self, thin: ThinConfig) -> Result<(), ThinError> {
        if !thin.is_valid() {
            return Err(ThinError::Invalid);
        }
        self.recovery.set_thin(Some(0), thin).expect("group 0 exists");
        self.thin_streams.on_mechanisms_set(thin, &mut self.recovery);
        Ok(())
    }

    /// Singles `stream` out: gives it thin-stream mechanisms of its own. With `None`, ends that.
    pub(crate) fn set_stream_thin(
        &mut self,
        stream: u16,
        thin: Option<ThinConfig>,
    ) -> Result<(), ThinError> {
        let streams = self.streams;
        if stream >= streams {
            return Err(ThinError::InvalidStream { streams });
        } else if thin.is_some_and(|thin| !thin.is_valid()) {
            return Err(ThinError::Invalid);
        }
        self.thin_streams.set(stream, thin, &mut self.recovery)
    }

    /// Processes a SACK (RFC 9260 §6.2.1). The caller has to call [`Self::after_ack`] afterwards.
    pub(super) fn on_sack(
        &mut self,
        cx: &mut Context<'_>,
        sack: &Sack<'_>,
    ) -> Result<AckOutcome, AckError> {
        self.counters.sacks_received += 1;
        let cumulative =
            unwrap_u32(self.recovery.outstanding().cumulative(), sack.cumulative_tsn_ack);
        let blocks = sack
            .gap_ack_blocks()
            .map(move |(start, end)| (cumulative + u64::from(start), cumulative + u64::from(end)));
        let duplicates = sack.duplicate_tsns().map(|tsn| unwrap_u32(cumulative, tsn));
        let ack = Ack {
            packets_acked: sack.packets,
            has_new: self.next_new_len().is_some(),
            skipped: self.forward.told(),
            ..Ack::new(cumulative, blocks, duplicates)
        };
        let outcome = self.take_ack(cx, ack)?;
        if !outcome.is_stale {
            self.set_peer_a_rwnd(sack.a_rwnd);
        }
        Ok(outcome)
    }

    /// Called for the Cumulative TSN Ack of a SHUTDOWN (RFC 9260 §9.2). `None` if it acknowledges data that was never
    /// sent: some peers send a wrong number, so the SHUTDOWN is ignored instead of aborting the association. The caller
    /// has to call [`Self::after_ack`] afterwards.
    pub(super) fn on_shutdown(
        &mut self,
        cx: &mut Context<'_>,
        cumulative_tsn_ack: u32,
    ) -> Option<Result<AckOutcome, AckError>> {
        let outstanding = self.recovery.outstanding();
        let cumulative = unwrap_u32(outstanding.cumulative(), cumulative_tsn_ack);
        let ack = Ack {
            skipped: self.forward.told(),
            ..Ack::new(cumulative, std::iter::empty(), std::iter::empty())
        };
        (cumulative < outstanding.next_unit()).then(|| self.take_ack(cx, ack))
    }

    /// Passes an ACK to loss recovery, and reports the messages that it completes.
    fn take_ack(
        &mut self,
        cx: &mut Context<'_>,
        ack: Ack<impl Iterator<Item = (u64, u64)> + Clone, impl Iterator<Item = u64>>,
    ) -> Result<AckOutcome, AckError> {
        let (now, id, cumulative) = (cx.now, cx.id, ack.cumulative);
        let outstanding = self.recovery.outstanding();
        if (outstanding.cumulative()..outstanding.next_unit()).contains(&cumulative) {
            let gaps = || ack.blocks.clone().collect();
            cx.tracer().emit(|| TraceEvent::AckReceived { cumulative, gaps: gaps() });
        }
        let Surroundings { events, sink, .. } = &mut *cx.around;
        let sink = sink.as_mut().map(|sink| &mut **sink as &mut dyn TraceSink);
        let mut tracer = Tracer::new(now, id.index(), sink);
        let Self { recovery, divided, outstanding_bytes, .. } = self;
        let report = self.config.messages.report_acknowledged;
        recovery.on_ack(now, ack, &mut tracer, |unit| {
            let acknowledged = on_delivered(&unit, divided, outstanding_bytes);
            if let Some(message) = acknowledged.filter(|_| report) {
                events.push_back((id, Event::MessageAcknowledged(message)));
            }
        })
    }

    /// Completes the processing of an acknowledgement, after the error counters of its paths are cleared.
    /// `has_window`: it carried a new a_rwnd, which may answer a window probe.
    pub(super) fn after_ack(&mut self, cx: &mut Context<'_>, standing: Standing, has_window: bool) {
        if has_window {
            let a_rwnd = self.peer_window.a_rwnd;
            self.probe.on_sack(cx.now, a_rwnd, &mut self.recovery, &mut cx.tracer());
        }
        self.forward.advance(cx.now, standing.control, &mut self.recovery);
        self.watch_window(cx.now, standing);
        self.emit_writable(cx);
    }

    /// Emits [`Event::Writable`] if the application waits for room and the send buffer is at most half full.
    pub(super) fn emit_writable(&mut self, cx: &mut Context<'_>) {
        let has_room = self.charged_bytes() <= self.config.buffers.send_bytes / 2;
        if has_room && std::mem::take(&mut self.is_writer_waiting) {
            cx.event(Event::Writable);
        }
    }

    /// Arms the timer of the window probe if only the peer's window prevents sending, and no data is outstanding whose
    /// SACK could open it; otherwise stops it.
    pub(super) fn watch_window(&mut self, now: Instant, standing: Standing) {
        let is_closed = || {
            let next = self.queue.peek_len(self.max_fragment);
            next.is_some_and(|len| len as u64 > self.peer_rwnd())
        };
        let is_held_back =
            standing.may_send && self.recovery.outstanding().is_empty() && is_closed();
        let paths = self.recovery.paths();
        self.probe.watch(now, is_held_back, paths[paths.data_path()].timer().rto());
    }

    pub(super) const fn window_probe_timer(&self) -> Deadline {
        self.probe.timer()
    }

    /// Called when a closed window is to be probed now.
    pub(super) const fn on_window_probe_timer(&mut self) {
        self.probe.on_timer();
    }

    /// The next timer of loss recovery that is due (RFC 9260 §6.3.3).
    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_>) -> Option<Expired> {
        let is_probing = self.probe.is_outstanding(self.peer_window.a_rwnd);
        let kind = if is_probing { TimeoutKind::WindowProbe } else { TimeoutKind::Loss };
        let expired = self.recovery.on_timeout(cx.now, kind, &mut cx.tracer());
        let Timeout { path, has_backed_off } = expired?;
        let is_answered = is_probing && self.probe.on_repeated(cx.now);
        let repeats_forward = self.forward.on_timeout(self.recovery.outstanding().cumulative());
        Some(Expired { path, is_error: !is_answered && has_backed_off, repeats_forward })
    }

    /// Called when a chunk was sent for the first time.
    fn on_first_sent(&self, cx: &mut Context<'_>, tsn: u64) {
        let Some(unit) = self.recovery.outstanding().unit(tsn) else { return };
        let fragment = &unit.payload;
        if !fragment.ending {
            return;
        }
        let (id, stream) = (fragment.message, fragment.stream);
        let first = self.divided.of(id).and_then(Divided::first_tsn).unwrap_or(tsn);
        cx.tracer().emit(|| TraceEvent::MessageNumbered {
            message: id.0,
            stream,
            sequence: (first, tsn),
        });
        if self.config.messages.report_sent {
            cx.event(Event::MessageSent(id));
        }
    }

    /// Called when the association is closed: reports unacknowledged messages as failed, and emits no more
    /// `Writable`.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        self.is_writer_waiting = false;
        self.fail_everything(cx);
    }

    /// Reports every unacknowledged message to the application as failed.
    pub(super) fn fail_everything(&mut self, cx: &mut Context<'_>) {
        let mut failed = Vec::new();
        self.recovery.drain(|unit| {
            let fragment = &unit.payload;
            let is_whole = fragment.beginning && fragment.ending;
            if unit.state() != UnitState::Abandoned && is_whole {
                failed.push((fragment.message, true, fragment.to_message()));
            }
        });
        failed.extend(self.divided.drain().map(|(id, d)| (id, true, d.into_message())));
        self.queue.drain(|id, message, was_begun| {
            if !was_begun {
                failed.push((id, false, message));
            }
        });
        failed.sort_unstable_by_key(|(id, ..)| *id);
        self.outstanding_bytes = 0;
        self.probe.forget();
        for (id, was_begun, message) in failed {
            self.fail_message(cx, id, message, FailReason::AssociationEnded, was_begun);
        }
    }

    fn fail_message(
        &mut self,
        cx: &mut Context<'_>,
        id: MessageId,
        message: OutboundMessage,
        reason: FailReason,
        was_begun: bool,
    ) {
        self.counters.messages_failed += 1;
        cx.event(Event::MessageFailed { id, reason, was_begun, message });
        self.emit_writable(cx);
    }

    /// Fails the messages to streams that the peer does not accept. They were queued before the handshake reported the
    /// number of streams.
    pub(super) fn fail_messages_to_missing_streams(&mut self, cx: &mut Context<'_>) {
        let mut failed = Vec::new();
        self.queue.drop_streams_from(self.streams, |id, message| failed.push((id, message)));
        for (id, message) in failed {
            self.fail_message(cx, id, message, FailReason::NoSuchStream, false);
        }
    }

    /// Why the message of `tsn`, which is about to be retransmitted, has to be abandoned instead; `None` if
    /// it has not.
    fn reason_to_abandon(&self, now: Instant, tsn: u64) -> Option<FailReason> {
        self.forward.reason_to_abandon(now, self.recovery.outstanding().unit(tsn)?)
    }

    /// Abandons the whole message of `tsn`; the FORWARD-TSN takes the path `control`.
    fn abandon_message(&mut self, cx: &mut Context<'_>, control: u8, tsn: u64, reason: FailReason) {
        let outstanding = self.recovery.outstanding();
        let Some(unit) = outstanding.unit(tsn) else { return };
        let (id, single) = (unit.payload.message, unit.payload.to_message());
        let cumulative = outstanding.cumulative();
        let divided = self.divided.remove(id);
        match &divided {
            Some(divided) => divided
                .tsns()
                .filter(|&tsn| tsn > cumulative)
                .for_each(|tsn| self.recovery.abandon(Abandoned::Sent(tsn))),
            None => self.recovery.abandon(Abandoned::Sent(tsn)),
        }
        self.skip_rest(single.stream, id);
        let message = divided.map_or(single, Divided::into_message);
        self.fail_message(cx, id, message, reason, true);
        self.forward.advance(cx.now, control, &mut self.recovery);
    }

    /// When the lifetime of the next unsent message ends, and that of the next partly sent one (RFC 3758 §4.1 TR4).
    pub(super) fn next_expiry(&self) -> [Option<Instant>; 2] {
        [self.queue.next_expiry(), self.rest_expiry().map(|expiry| expiry.at)]
    }

    fn rest_expiry(&self) -> Option<BegunExpiry> {
        self.queue.begun_expiry().filter(|_| self.forward.is_supported())
    }

    fn abandon_expired_rest(
        &mut self,
        cx: &mut Context<'_>,
        control: u8,
        BegunExpiry { stream, id, .. }: BegunExpiry,
    ) {
        let last = self.divided.of(id).and_then(Divided::last_tsn);
        if let Some(last) = last.filter(|&tsn| self.recovery.outstanding().unit(tsn).is_some()) {
            return self.abandon_message(cx, control, last, FailReason::Expired);
        }
        // All of it that was sent is acknowledged.
        self.skip_rest(stream, id);
        if let Some(divided) = self.divided.remove(id) {
            self.fail_message(cx, id, divided.into_message(), FailReason::Expired, true);
        }
        self.forward.advance(cx.now, control, &mut self.recovery);
    }

    /// Abandons messages whose lifetime is over and that were not sent completely.
    pub(super) fn expire_messages(&mut self, cx: &mut Context<'_>, standing: Standing) {
        while let Some(expiry) = self.rest_expiry().filter(|expiry| expiry.at <= cx.now) {
            self.abandon_expired_rest(cx, standing.control, expiry);
        }
        if self.queue.next_expiry().is_none_or(|at| at > cx.now) {
            return;
        }
        let mut expired = Vec::new();
        self.queue.expire(cx.now, |id, message| expired.push((id, message)));
        for (id, message) in expired {
            self.fail_message(cx, id, message, FailReason::Expired, false);
        }
        self.watch_window(cx.now, standing);
    }

    /// Called when the peer has performed a reset of streams, before which the last TSN was `last`: a FORWARD-TSN lists
    /// no SSN assigned before it.
    pub(super) const fn on_streams_reset(&mut self, last: u64) {
        self.forward.on_streams_reset(last);
    }

    pub(super) const fn supports_forward_tsn(&self) -> bool {
        self.forward.is_supported()
    }

    pub(super) const fn owes_forward_tsn(&self) -> bool {
        self.forward.is_owed()
    }

    /// Writes a pending FORWARD-TSN.
    pub(super) fn write_forward_tsn(
        &mut self,
        now: Instant,
        control: u8,
        last_before_reset: Option<u64>,
        writer: &mut PacketWriter<'_>,
    ) {
        let (is_interleaved, forward) = (self.queue.is_interleaved(), &mut self.forward);
        if forward.is_owed()
            && forward.write(now, last_before_reset, is_interleaved, &self.recovery, writer)
        {
            self.recovery.on_t3_event(now, control, T3Event::Needed);
        }
    }

    /// Called before a packet is written: abandons the messages of lost units that may not be retransmitted any more,
    /// so that the packet can carry the FORWARD-TSN and no path is chosen for DATA that will not be sent. Delayed
    /// copies of such units are dropped.
    pub(super) fn abandon_next(&mut self, cx: &mut Context<'_>, control: u8) {
        for path in 0..self.recovery.paths().count() {
            while let Some(next) = self.recovery.next_due(path)
                && let Next::Lost(tsn) | Next::DelayedCopy(tsn) = next
                && let Some(reason) = self.reason_to_abandon(cx.now, tsn)
            {
                if matches!(next, Next::Lost(_)) {
                    self.abandon_message(cx, control, tsn, reason);
                } else {
                    self.recovery.abandon(Abandoned::Copy { path, unit: tsn });
                }
            }
        }
    }

    /// The path over which a packet with DATA may be sent now, of those that are not `is_held`: first one
    /// with retransmissions, then one for new data (RFC 9260 §6.1 C).
    pub(super) fn path_with_data(&self, is_held: impl Fn(u8) -> bool) -> Option<u8> {
        let count = self.recovery.paths().count();
        let may_send_over = |path| !is_held(path) && self.has_data_for(path);
        if count == 1 {
            return may_send_over(0).then_some(0);
        }
        let uses_all = self.config.recovery.sctp.cmt.is_some();
        let turn = if uses_all { self.turn } else { self.recovery.paths().data_path() };
        (0..count).map(|n| (turn + n) % count).find(|&path| may_send_over(path))
    }

    /// Whether a packet with DATA has something to carry over `path` now.
    pub(super) fn has_data_for(&self, path: u8) -> bool {
        self.recovery.next_due(path).is_some()
            || (!self.queue.is_empty()
                && self.recovery.may_send_new(path, self.next_group())
                && self.next_new_len_over(path).is_some())
    }

    /// The payload length of the next DATA chunk on `path`; 0 without such a chunk.
    pub(super) fn next_len(&self, path: u8) -> usize {
        match self.recovery.next_due(path) {
            Some(Next::Lost(tsn)) => self.payload_len(tsn),
            _ => self.next_new_len().unwrap_or(0),
        }
    }
}

/// Called when the cumulative point has passed `unit`: frees its bytes, and returns the message that it completes.
fn on_delivered(
    unit: &Unit<Fragment>,
    divided: &mut DividedMessages,
    outstanding_bytes: &mut usize,
) -> Option<MessageId> {
    let is_abandoned = unit.state() == UnitState::Abandoned;
    let &Fragment { message, beginning, ending, ref payload, .. } = &unit.payload;
    *outstanding_bytes -= payload.len();
    if is_abandoned || !ending {
        return None;
    }
    if beginning {
        return Some(message);
    }
    // A divided message that is not tracked any more was given up, though its end had arrived.
    divided.remove(message).map(|_| message)
}
