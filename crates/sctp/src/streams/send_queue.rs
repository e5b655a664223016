//! Messages accepted from the application and not yet entirely cut into DATA chunks.
//!
//! Owns the outgoing stream sequence numbers, the order of messages within and between streams,
//! fragmentation (RFC 9260 §6.9), and the lifetime of messages whose transmission has not begun.
//! Fragments belong to the association.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rexmit_core::Instant;

use super::Scheduling;
use super::message_lists::{List, MessageLists};
use super::scheduler::Scheduler;
use crate::message::{MessageId, OutboundMessage, Reliability};

/// What one DATA chunk carries, but for its TSN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fragment {
    /// The message it is part of.
    pub(crate) message: MessageId,
    pub(crate) stream: u16,
    /// Stream sequence number; 0 in unordered messages, where it means nothing.
    pub(crate) ssn: u16,
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
    /// The I bit: on the last fragment of a message that asked for it.
    pub(crate) immediate: bool,
    pub(crate) beginning: bool,
    pub(crate) ending: bool,
    /// A slice of the message, not a copy.
    pub(crate) payload: Bytes,
    /// When the whole message is to be given up.
    pub(crate) expires: Option<Instant>,
    /// When the application wants the whole message to be given up.
    pub(crate) reliability: Reliability,
}

impl Fragment {
    /// The message as the application gave it, if this is all of it.
    pub(crate) fn to_message(&self) -> OutboundMessage {
        OutboundMessage {
            stream: self.stream,
            ppid: self.ppid,
            unordered: self.unordered,
            immediate: self.immediate,
            reliability: self.reliability,
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
    message: OutboundMessage,
}

/// The message that is being cut. Its chunks need consecutive TSNs, so it is alone.
#[derive(Debug)]
struct Begun {
    queued: Queued,
    ssn: u16,
    sent_bytes: usize,
}

#[derive(Debug)]
struct OutgoingStream {
    messages: List,
    /// Its place in the scheduler's line, if it is in line: it has messages and is not paused.
    rank: Option<u64>,
    next_ssn: u16,
    paused: bool,
}

impl Default for OutgoingStream {
    fn default() -> Self {
        Self { messages: List::EMPTY, rank: None, next_ssn: 0, paused: false }
    }
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
    begun: Option<Begun>,
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
            begun: None,
            arrivals: 0,
            buffered_bytes: 0,
            all_paused: false,
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
        let queued = Queued { id, arrival, expires, message };
        let key = self.messages.push_back(&mut stream.messages, queued);
        if let Some(at) = expires {
            self.deadlines.insert((at, arrival, key));
        }
        if stream.rank.is_none() && !stream.paused {
            stream.rank = Some(self.scheduler.enter(number, arrival));
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

    /// Gives back memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.messages.release_memory();
    }

    /// Whether nothing is left to cut, now or after a pause.
    pub(crate) fn is_empty(&self) -> bool {
        self.begun.is_none() && self.messages.is_empty()
    }

    /// The payload length of the fragment that [`SendQueue::next`] would cut; `None` if it would
    /// cut nothing.
    pub(crate) fn peek_len(&self, max_payload: usize) -> Option<usize> {
        let rest = match &self.begun {
            Some(begun) => begun.rest_bytes(),
            None => self.messages.at(self.upcoming()?.1)?.message.payload.len(),
        };
        (max_payload > 0).then_some(rest.min(max_payload))
    }

    /// The stream of the fragment that [`SendQueue::next`] would cut.
    pub(crate) fn peek_stream(&self) -> Option<u16> {
        let message = match &self.begun {
            Some(begun) => &begun.queued.message,
            None => &self.messages.at(self.upcoming()?.1)?.message,
        };
        Some(message.stream)
    }

    /// Cuts the next fragment, of at most `max_payload` bytes. A message once begun is finished
    /// before another begins, even if its stream is paused.
    pub(crate) fn next(&mut self, max_payload: usize) -> Option<Fragment> {
        if max_payload == 0 {
            return None;
        }
        let mut begun = match self.begun.take() {
            Some(begun) => begun,
            None => self.begin()?,
        };
        let fragment = begun.cut(max_payload);
        self.buffered_bytes -= fragment.payload.len();
        if !fragment.ending {
            self.begun = Some(begun);
        }
        Some(fragment)
    }

    /// Drops the messages not begun whose lifetime is over, and hands them to `on_expired`.
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

    /// When the next message that is not begun expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, ..)| at)
    }

    /// Drops the part of the begun message that is not fragmented yet, if it is `id`, and returns a fragment that
    /// ends it and holds nothing.
    ///
    /// The association then skips the message by a FORWARD-TSN. What it sent of it ends without an
    /// E bit and may be acknowledged already, so it spends one further TSN on that fragment, never
    /// sent and abandoned at once; the FORWARD-TSN that passes it is what ends the message at the
    /// peer.
    pub(crate) fn abandon_begun(&mut self, id: MessageId) -> Option<Fragment> {
        let mut begun = self.begun.take_if(|begun| begun.queued.id == id)?;
        self.buffered_bytes -= begun.rest_bytes();
        let rest = begun.cut(usize::MAX);
        Some(Fragment { payload: Bytes::new(), ..rest })
    }

    /// Holds the messages of `stream` that are not begun, while its SSN reset is pending
    /// (RFC 6525 §5.1.2).
    pub(crate) fn pause(&mut self, stream: u16) {
        let state = self.streams.entry(stream).or_default();
        state.paused = true;
        if let Some(rank) = state.rank.take() {
            self.scheduler.leave(stream, rank);
        }
    }

    /// Ends [`SendQueue::pause`].
    pub(crate) fn resume(&mut self, stream: u16) {
        let Some(state) = self.streams.get_mut(&stream) else { return };
        state.paused = false;
        let head = state.messages.head().and_then(|key| self.messages.at(key));
        if let (None, Some(head)) = (state.rank, head) {
            state.rank = Some(self.scheduler.enter(stream, head.arrival));
        }
    }

    /// Holds the messages of every stream that are not begun, on top of what
    /// [`SendQueue::pause`] holds.
    pub(crate) fn pause_all(&mut self) {
        self.all_paused = true;
    }

    /// Ends [`SendQueue::pause_all`].
    pub(crate) fn resume_all(&mut self) {
        self.all_paused = false;
    }

    /// Whether a message of `stream` is cut in part.
    pub(crate) fn has_begun_message_on(&self, stream: u16) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.queued.message.stream == stream)
    }

    /// Whether a message of any stream is cut in part.
    pub(crate) fn has_begun_message(&self) -> bool {
        self.begun.is_some()
    }

    /// The message that is cut in part.
    pub(crate) fn begun_message(&self) -> Option<&OutboundMessage> {
        self.begun.as_ref().map(|begun| &begun.queued.message)
    }

    /// The message that is cut in part, if it expires, and when.
    pub(crate) fn begun_expiry(&self) -> Option<(Instant, MessageId)> {
        self.begun.as_ref().and_then(|begun| Some((begun.queued.expires?, begun.queued.id)))
    }

    /// Makes 0 the next stream sequence number of `stream`.
    pub(crate) fn reset_ssn(&mut self, stream: u16) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.next_ssn = 0;
        }
    }

    /// Makes 0 the next stream sequence number of every stream.
    pub(crate) fn reset_all_ssns(&mut self) {
        for stream in self.streams.values_mut() {
            stream.next_ssn = 0;
        }
    }

    /// Drops the messages not begun of every stream from `first` on, which the peer does not take,
    /// and hands them to `f` in the order in which they were accepted.
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

    /// Empties the queue at the end of the association: hands every message that is not cut
    /// entirely to `f`, whole, with whether it was begun; the begun one first, the others in the
    /// order in which they were accepted.
    pub(crate) fn drain(&mut self, mut f: impl FnMut(MessageId, OutboundMessage, bool)) {
        if let Some(Begun { queued, .. }) = self.begun.take() {
            f(queued.id, queued.message, true);
        }
        let mut rest: Vec<Queued> = self.messages.drain().collect();
        rest.sort_unstable_by_key(|queued| queued.arrival);
        for queued in rest {
            f(queued.id, queued.message, false);
        }
        self.messages = MessageLists::new();
        self.streams.clear();
        self.scheduler.clear();
        self.deadlines.clear();
        self.buffered_bytes = 0;
    }

    /// The stream and key of the message that begins next.
    fn upcoming(&self) -> Option<(u16, u32)> {
        if self.all_paused {
            return None;
        }
        let number = self.scheduler.first()?;
        Some((number, self.streams.get(&number)?.messages.head()?))
    }

    /// Takes the next message out of its stream and gives it its SSN.
    fn begin(&mut self) -> Option<Begun> {
        let (number, key) = self.upcoming()?;
        let stream = self.streams.get_mut(&number)?;
        let queued = self.messages.remove(&mut stream.messages, key)?;
        if let Some(at) = queued.expires {
            self.deadlines.remove(&(at, queued.arrival, key));
        }
        let head = stream.messages.head().and_then(|key| self.messages.at(key));
        if let Some(rank) = stream.rank {
            stream.rank = self.scheduler.on_served(number, rank, head.map(|head| head.arrival));
        }
        let ssn = if queued.message.unordered { 0 } else { stream.take_ssn() };
        Some(Begun { queued, ssn, sent_bytes: 0 })
    }

    /// Removes a message that will not be sent.
    fn remove(&mut self, key: u32) -> Option<Queued> {
        let number = self.messages.at(key)?.message.stream;
        let stream = self.streams.get_mut(&number)?;
        let was_oldest = stream.messages.head() == Some(key);
        let removed = self.messages.remove(&mut stream.messages, key)?;
        if let (true, Some(rank)) = (was_oldest, stream.rank) {
            let head = stream.messages.head().and_then(|key| self.messages.at(key));
            stream.rank = match head {
                Some(head) => Some(self.scheduler.on_oldest_gone(number, rank, head.arrival)),
                None => {
                    self.scheduler.leave(number, rank);
                    None
                }
            };
        }
        Some(removed)
    }
}

impl OutgoingStream {
    fn take_ssn(&mut self) -> u16 {
        let ssn = self.next_ssn;
        self.next_ssn = ssn.wrapping_add(1);
        ssn
    }
}

impl Begun {
    fn rest_bytes(&self) -> usize {
        self.queued.message.payload.len() - self.sent_bytes
    }

    fn cut(&mut self, max_payload: usize) -> Fragment {
        let start = self.sent_bytes;
        let end = start + self.rest_bytes().min(max_payload);
        let Queued { id, expires, message, .. } = &mut self.queued;
        let ending = end == message.payload.len();
        self.sent_bytes = end;
        let payload = if start == 0 && ending {
            std::mem::take(&mut message.payload) // A slice would share it, which allocates.
        } else {
            message.payload.slice(start..end)
        };
        Fragment {
            message: *id,
            stream: message.stream,
            ssn: self.ssn,
            ppid: message.ppid,
            unordered: message.unordered,
            immediate: message.immediate && ending,
            beginning: start == 0,
            ending,
            payload,
            expires: *expires,
            reliability: message.reliability,
        }
    }
}
