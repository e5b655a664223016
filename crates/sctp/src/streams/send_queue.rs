//! Messages accepted from the application and not yet entirely cut into DATA or I-DATA chunks.
//!
//! Owns the outgoing message numbers, the order of messages within and between streams,
//! fragmentation (RFC 9260 §6.9), and the lifetime of messages whose transmission has not begun.
//! Fragments belong to the association.

mod begun;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rexmit_core::Instant;
use rexmit_recovery::{Deadline, Due};

pub(crate) use self::begun::BegunExpiry;
use self::begun::{Begun, BegunMessages};
use super::message_lists::{List, MessageLists};
use super::scheduler::{Claim, DEFAULT_PRIORITY, Place, Scheduler, Scheduling};
use crate::message::{MessageId, OutboundMessage, Reliability};

/// The content of a DATA or I-DATA chunk, without its TSN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fragment {
    /// The message it is part of.
    pub(crate) message: MessageId,
    pub(crate) stream: u16,
    /// Message identifier, of the ordered or of the unordered messages of the stream.
    pub(crate) mid: u32,
    /// Fragment sequence number.
    pub(crate) fsn: u32,
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
    /// The I bit, set on the last fragment of a message sent with it.
    pub(crate) immediate: bool,
    pub(crate) beginning: bool,
    pub(crate) ending: bool,
    /// A slice of the message, not a copy.
    pub(crate) payload: Bytes,
    /// When the whole message is to be abandoned.
    pub(crate) expires: Option<Instant>,
    /// The reliability that the application chose for the whole message.
    pub(crate) reliability: Reliability,
    /// When the peer must have the whole message.
    pub(crate) due: Option<Due>,
}

impl Fragment {
    /// Stream sequence number of a DATA chunk; 0 in unordered messages, which have none.
    pub(crate) const fn ssn(&self) -> u16 {
        if self.unordered { 0 } else { self.mid as u16 }
    }

    /// The message as the application passed it, if this fragment is all of it.
    pub(crate) fn to_message(&self) -> OutboundMessage {
        OutboundMessage {
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            immediate: self.immediate,
            reliability: self.reliability,
            deadline: self.due.map(|due| due.deadline),
            payload: self.payload.clone(),
        }
    }
}

#[derive(Debug)]
struct Queued {
    id: MessageId,
    /// Counts accepted messages; orders them across streams.
    arrival: u64,
    expires: Option<Instant>,
    due: Option<Due>,
    message: OutboundMessage,
}

/// Whether a stream is in the scheduler's line: it has messages and is not paused, or, with interleaving,
/// a message that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Idle,
    Waiting,
    Begun,
}

#[derive(Debug)]
struct OutgoingStream {
    messages: List,
    /// The stream's rank in the scheduler; while it is not scheduled, the tag at which its last chunk or
    /// message ended.
    rank: u64,
    line: Line,
    /// The MIDs of the next ordered and of the next unordered message (RFC 8260 §2.1).
    next_mids: [u32; 2],
    priority: u16,
    paused: bool,
}

impl Default for OutgoingStream {
    fn default() -> Self {
        Self {
            messages: List::EMPTY,
            rank: 0,
            line: Line::Idle,
            next_mids: [0; 2],
            priority: DEFAULT_PRIORITY,
            paused: false,
        }
    }
}

/// The chunk that is cut next.
#[derive(Clone, Copy)]
enum Upcoming {
    /// The rest of the message of this stream that has begun.
    Rest(u16),
    /// The beginning of this message, the oldest of this stream.
    Beginning(u16, u32),
}

/// The outgoing side of all streams of an association.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Streams used so far.
    streams: BTreeMap<u16, OutgoingStream>,
    messages: MessageLists<Queued>,
    scheduler: Scheduler,
    /// The lifetimes of messages in `messages`: when, arrival, key.
    deadlines: BTreeSet<(Instant, u64, u32)>,
    begun: BegunMessages,
    /// If messages are interleaved, the size of the peer's buffer in bytes. With `None` one message is cut after the
    /// other: its chunks need consecutive TSNs (RFC 9260 §6.9).
    interleaving: Option<usize>,
    arrivals: u64,
    buffered_bytes: usize,
    all_paused: bool,
}

impl SendQueue {
    pub(crate) fn new(scheduling: Scheduling) -> Self {
        Self {
            streams: BTreeMap::new(),
            messages: MessageLists::new(),
            scheduler: Scheduler::new(scheduling),
            deadlines: BTreeSet::new(),
            begun: BegunMessages::default(),
            interleaving: None,
            arrivals: 0,
            buffered_bytes: 0,
            all_paused: false,
        }
    }

    /// Takes over the scheduler and the priorities of `before`.
    pub(crate) fn continuing(mut self, before: &Self) -> Self {
        self.scheduler = Scheduler::new(before.scheduler.scheduling());
        for (&number, stream) in &before.streams {
            if stream.priority != DEFAULT_PRIORITY {
                self.set_priority(number, stream.priority);
            }
        }
        self
    }

    /// Called when the peer supports interleaving: messages are sent in I-DATA chunks, with at most
    /// `peer_buffer_bytes` of unfinished messages at a time.
    pub(crate) const fn interleave(&mut self, peer_buffer_bytes: usize) {
        self.interleaving = Some(peer_buffer_bytes);
    }

    /// Whether messages are interleaved, in I-DATA chunks.
    pub(crate) const fn is_interleaved(&self) -> bool {
        self.interleaving.is_some()
    }

    /// Sets the priority or weight of a stream; see [`Scheduling`].
    pub(crate) fn set_priority(&mut self, number: u16, priority: u16) {
        let stream = self.streams.entry(number).or_default();
        stream.priority = priority;
        if self.scheduler.scheduling() == Scheduling::Priority {
            self.move_stream(number);
        }
    }

    /// Schedules by another rule from now on. Streams begin in the order of their messages.
    pub(crate) fn set_scheduling(&mut self, scheduling: Scheduling) {
        let mut in_line = Vec::new();
        for (&number, stream) in &mut self.streams {
            stream.rank = 0;
            if stream.place().is_some() {
                in_line.push(number);
            }
            stream.stand(None);
        }
        self.scheduler.restart(scheduling);
        in_line.sort_unstable_by_key(|&number| self.claim(number).map(|claim| claim.arrival));
        for number in in_line {
            self.enter(number);
        }
    }

    /// Accepts a message. Its payload must not be empty; its lifetime starts `now`.
    pub(crate) fn push(&mut self, now: Instant, id: MessageId, message: OutboundMessage) {
        debug_assert!(!message.payload.is_empty(), "a DATA chunk cannot be empty");
        let expires = match message.reliability {
            Reliability::Timed(lifetime) => Some(now + lifetime),
            Reliability::Full | Reliability::MaxRetransmissions(_) => None,
        };
        let number = message.stream;
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.buffered_bytes += message.payload.len();
        let stream = self.streams.entry(number).or_default();
        let due = |deadline: Deadline| Due { at: now + deadline.within(), deadline };
        let due = message.deadline.map(due);
        let queued = Queued { id, arrival, expires, due, message };
        let key = self.messages.push_back(&mut stream.messages, queued);
        if let Some(at) = expires {
            self.deadlines.insert((at, arrival, key));
        }
        if stream.line == Line::Idle && !stream.paused {
            self.enter(number);
        }
    }

    /// Payload bytes that are not cut yet.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.buffered_bytes
    }

    /// Messages that are not begun.
    pub(crate) fn waiting_messages(&self) -> usize {
        self.messages.len()
    }

    /// Releases memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.messages.release_memory();
        self.begun.release_memory();
    }

    /// Whether the queue has nothing to send, now or after a pause.
    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.messages.is_empty()
    }

    /// Called before new data is cut for a packet; [`SendQueue::end_packet`] has to follow.
    pub(crate) fn begin_packet(&mut self) {
        self.scheduler.begin_packet();
    }

    /// Called when a packet is complete: ends the turn of its stream, with a round robin per packet.
    pub(crate) fn end_packet(&mut self) {
        if let Some(stream) = self.scheduler.end_packet() {
            self.move_stream(stream);
        }
    }

    /// The payload length of the fragment that [`SendQueue::next`] would cut; `None` if it would
    /// cut nothing.
    pub(crate) fn peek_len(&self, max_payload: usize) -> Option<usize> {
        let rest = match self.upcoming(max_payload)? {
            Upcoming::Rest(stream) => self.begun.of(stream)?.rest_bytes(),
            Upcoming::Beginning(_, key) => self.messages.at(key)?.message.payload.len(),
        };
        Some(rest.min(max_payload))
    }

    /// The stream of the fragment that [`SendQueue::next`] would cut.
    pub(crate) fn peek_stream(&self, max_payload: usize) -> Option<u16> {
        match self.upcoming(max_payload)? {
            Upcoming::Rest(stream) | Upcoming::Beginning(stream, _) => Some(stream),
        }
    }

    /// Cuts the next fragment, of at most `max_payload` bytes. A message that has begun is finished even if its stream
    /// is paused; without interleaving, it is finished before another begins.
    pub(crate) fn next(&mut self, max_payload: usize) -> Option<Fragment> {
        let (number, fragment, served_bytes) = match self.upcoming(max_payload)? {
            Upcoming::Rest(number) => {
                let fragment = self.begun.cut(number, max_payload)?;
                // Without interleaving, the turn of the stream ended when the message began.
                let served = self.interleaving.map(|_| fragment.payload.len());
                (number, fragment, served)
            }
            Upcoming::Beginning(number, key) => {
                let mut begun = self.begin(number, key)?;
                let whole = begun.rest_bytes();
                let fragment = begun.cut(max_payload);
                if !fragment.ending {
                    self.begun.insert(number, begun);
                }
                let len = fragment.payload.len();
                let served = if self.is_interleaved() { len } else { whole };
                (number, fragment, Some(served))
            }
        };
        self.buffered_bytes -= fragment.payload.len();
        if let Some(bytes) = served_bytes {
            self.on_served(number, bytes);
        }
        self.scheduler.on_sent(number);
        Some(fragment)
    }

    /// Drops the messages not begun whose lifetime is over, and passes them to `on_expired`.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        mut on_expired: impl FnMut(MessageId, OutboundMessage),
    ) {
        while let Some(&(at, _, key)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            let Some(queued) = self.remove(key) else { continue };
            self.buffered_bytes -= queued.message.payload.len();
            on_expired(queued.id, queued.message);
        }
    }

    /// The earliest expiry of a message of which nothing was cut.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, ..)| at)
    }

    /// Drops the part of the begun message of `stream` that is not fragmented yet, if it is `id`, and returns
    /// an empty fragment that ends it.
    ///
    /// The association then skips the message by a FORWARD-TSN. The part that was sent has no E bit and may
    /// already be acknowledged, so one more TSN is used up for the empty fragment, which is never sent and
    /// abandoned at once; the FORWARD-TSN over it ends the message at the peer.
    pub(crate) fn abandon_begun(&mut self, stream: u16, id: MessageId) -> Option<Fragment> {
        self.begun.of(stream).filter(|begun| begun.id() == id)?;
        let rest = self.begun.cut(stream, usize::MAX)?;
        self.buffered_bytes -= rest.payload.len();
        if self.is_interleaved() {
            self.on_next_gone(stream);
        }
        Some(Fragment { payload: Bytes::new(), ..rest })
    }

    /// Holds the messages of `stream` that are not begun, while its SSN reset is pending
    /// (RFC 6525 §5.1.2).
    pub(crate) fn pause(&mut self, stream: u16) {
        let state = self.streams.entry(stream).or_default();
        state.paused = true;
        if let Some(place) = state.place().filter(|place| !place.is_begun) {
            state.stand(None);
            self.scheduler.leave(stream, place);
        }
    }

    /// Ends [`SendQueue::pause`].
    pub(crate) fn resume(&mut self, stream: u16) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        state.paused = false;
        if state.line == Line::Idle {
            self.enter(stream);
        }
    }

    /// Holds the messages of every stream that are not begun, in addition to those held by [`SendQueue::pause`].
    pub(crate) fn pause_all(&mut self) {
        self.all_paused = true;
    }

    /// Ends [`SendQueue::pause_all`].
    pub(crate) fn resume_all(&mut self) {
        self.all_paused = false;
    }

    /// Whether a message of `stream` is cut in part.
    pub(crate) fn has_begun_message_on(&self, stream: u16) -> bool {
        self.begun.of(stream).is_some()
    }

    /// Whether a message of any stream was cut in part, so that its rest is still queued.
    pub(crate) fn has_begun_message(&self) -> bool {
        !self.begun.is_empty()
    }

    /// The message of `stream` that is cut in part.
    pub(crate) fn begun_message(&self, stream: u16) -> Option<&OutboundMessage> {
        self.begun.of(stream).map(Begun::message)
    }

    /// The begun message that expires first.
    pub(crate) fn begun_expiry(&self) -> Option<BegunExpiry> {
        self.begun.next_expiry()
    }

    /// Makes 0 the next message numbers of `stream`.
    pub(crate) fn reset_mids(&mut self, stream: u16) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.next_mids = [0; 2];
        }
    }

    /// Makes 0 the next message numbers of every stream.
    pub(crate) fn reset_all_mids(&mut self) {
        for stream in self.streams.values_mut() {
            stream.next_mids = [0; 2];
        }
    }

    /// Drops the messages not begun of all streams from `first` on, which the peer does not accept, and passes them to
    /// `f` in the order in which they were accepted.
    pub(crate) fn drop_streams_from(
        &mut self,
        first: u16,
        mut f: impl FnMut(MessageId, OutboundMessage),
    ) {
        let mut dropped = Vec::new();
        for stream in self.streams.range(first..).map(|(&number, _)| number).collect::<Vec<_>>() {
            while let Some(key) = self.streams.get(&stream).and_then(|s| s.messages.head()) {
                let Some(queued) = self.remove(key) else { break };
                if let Some(at) = queued.expires {
                    self.deadlines.remove(&(at, queued.arrival, key));
                }
                self.buffered_bytes -= queued.message.payload.len();
                dropped.push(queued);
            }
        }
        dropped.sort_unstable_by_key(|queued| queued.arrival);
        for queued in dropped {
            f(queued.id, queued.message);
        }
    }

    /// Empties the queue at the end of the association: passes every message that is not entirely cut to `f`, complete
    /// and with whether it was begun; first those begun, then the others in the order in which they were accepted.
    pub(crate) fn drain(&mut self, mut f: impl FnMut(MessageId, OutboundMessage, bool)) {
        self.begun.drain(|id, message| f(id, message, true));
        let mut rest: Vec<Queued> = self.messages.drain().collect();
        rest.sort_unstable_by_key(|queued| queued.arrival);
        for queued in rest {
            f(queued.id, queued.message, false);
        }
        self.messages = MessageLists::new();
        // Priorities outlive a restart of the peer.
        self.streams.retain(|_, stream| {
            let priority = stream.priority;
            *stream = OutgoingStream { priority, ..OutgoingStream::default() };
            priority != DEFAULT_PRIORITY
        });
        self.scheduler.restart(self.scheduler.scheduling());
        self.deadlines.clear();
        self.buffered_bytes = 0;
    }

    /// The chunk that is cut next, of at most `max_payload` bytes.
    fn upcoming(&self, max_payload: usize) -> Option<Upcoming> {
        if max_payload == 0 {
            return None;
        } else if !self.is_interleaved()
            && let Some(stream) = self.begun.first()
        {
            return Some(Upcoming::Rest(stream));
        }
        let only = self.scheduler.only();
        let (number, is_begun) = match only {
            Some(stream) => (stream, self.streams.get(&stream)?.place()?.is_begun),
            None => self.scheduler.first()?,
        };
        let most = self.interleaving.unwrap_or(usize::MAX);
        let may_go_on = |&stream: &u16| self.begun.may_go_on(stream, max_payload, most);
        if is_begun && may_go_on(&number) {
            return Some(Upcoming::Rest(number));
        } else if !is_begun {
            let key = self.streams.get(&number)?.messages.head()?;
            if self.may_begin(key, max_payload) {
                return Some(Upcoming::Beginning(number, key));
            }
        }
        // Every begun message but one may be continued.
        let other = || self.scheduler.begun().find(may_go_on).map(Upcoming::Rest);
        only.map_or_else(other, |_| None)
    }

    /// Whether the message `key` may begin now. One of a single chunk is complete at once.
    fn may_begin(&self, key: u32, max_payload: usize) -> bool {
        let fits = |most: usize| {
            let len = self.messages.at(key).map_or(0, |queued| queued.message.payload.len());
            len <= max_payload || self.begun.may_add(len, most)
        };
        !self.all_paused && (self.begun.is_empty() || self.interleaving.is_none_or(fits))
    }

    /// Takes a message out of its stream and gives it its MID.
    fn begin(&mut self, number: u16, key: u32) -> Option<Begun> {
        let stream = self.streams.get_mut(&number)?;
        let queued = self.messages.remove(&mut stream.messages, key)?;
        if let Some(at) = queued.expires {
            self.deadlines.remove(&(at, queued.arrival, key));
        }
        let mid = stream.take_mid(queued.message.unordered);
        Some(Begun::new(queued, mid))
    }

    /// The claim of a stream to its place; `None` if it has nothing to send.
    fn claim(&self, number: u16) -> Option<Claim> {
        let stream = self.streams.get(&number)?;
        let begun = self.begun.of(number).filter(|_| self.is_interleaved());
        let arrival = match begun {
            Some(begun) => begun.arrival(),
            None if stream.paused => return None,
            None => self.messages.at(stream.messages.head()?)?.arrival,
        };
        let (priority, finish) = (stream.priority, stream.rank);
        Some(Claim { arrival, is_begun: begun.is_some(), priority, finish })
    }

    /// Puts a stream that is not in line there, if it has anything to send.
    fn enter(&mut self, number: u16) {
        let place = self.claim(number).map(|claim| self.scheduler.enter(number, claim));
        self.stand(number, place);
    }

    fn stand(&mut self, number: u16, place: Option<Place>) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.stand(place);
        }
    }

    /// Gives a stream in line the place that it would get now.
    fn move_stream(&mut self, number: u16) {
        if let Some(place) = self.streams.get(&number).and_then(OutgoingStream::place) {
            self.scheduler.leave(number, place);
            self.enter(number);
        }
    }

    /// Called when a stream has had its turn, and sent `bytes`.
    fn on_served(&mut self, number: u16, bytes: usize) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        let Some(place) = stream.place() else { return };
        stream.rank = self.scheduler.finish(place, bytes, stream.priority);
        let next = self.claim(number);
        let place = self.scheduler.on_served(number, place, next);
        self.stand(number, place);
    }

    /// Called when the message that a stream would have sent next was removed.
    fn on_next_gone(&mut self, number: u16) {
        let Some(place) = self.streams.get(&number).and_then(OutgoingStream::place) else { return };
        let next = match self.claim(number) {
            Some(claim) => Some(self.scheduler.on_oldest_gone(number, place, claim)),
            None => {
                self.scheduler.leave(number, place);
                None
            }
        };
        self.stand(number, next);
    }

    /// Removes a message that will not be sent.
    fn remove(&mut self, key: u32) -> Option<Queued> {
        let number = self.messages.at(key)?.message.stream;
        let stream = self.streams.get_mut(&number)?;
        let was_oldest = stream.messages.head() == Some(key);
        let removed = self.messages.remove(&mut stream.messages, key)?;
        if was_oldest {
            self.on_next_gone(number);
        }
        Some(removed)
    }
}

impl OutgoingStream {
    const fn place(&self) -> Option<Place> {
        match self.line {
            Line::Idle => None,
            Line::Waiting => Some(Place { rank: self.rank, is_begun: false }),
            Line::Begun => Some(Place { rank: self.rank, is_begun: true }),
        }
    }

    const fn stand(&mut self, place: Option<Place>) {
        self.line = match place {
            None => Line::Idle,
            Some(place) => {
                self.rank = place.rank;
                if place.is_begun { Line::Begun } else { Line::Waiting }
            }
        };
    }

    fn take_mid(&mut self, unordered: bool) -> u32 {
        let next = &mut self.next_mids[usize::from(unordered)];
        let mid = *next;
        *next = mid.wrapping_add(1);
        mid
    }
}
