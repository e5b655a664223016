//! Complete messages: their order within each stream (RFC 9260 §6.6, RFC 8260 §2.1), and the queue for the
//! application.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rexmit_core::serial::{unwrap_u16, unwrap_u32};

use super::by_stream::ByStream;
use super::piece::ReassemblyError;
use crate::message::InboundMessage;

/// The unwrapped form of the first number of a stream, 0. So far up that its neighbourhood does
/// not reach below zero.
pub(super) const FIRST: u64 = 1 << 32;

/// A message all of whose pieces have arrived.
pub(super) struct Complete {
    pub(super) stream: u16,
    /// The MID or, without I-DATA, the SSN.
    pub(super) mid: u32,
    pub(super) ppid: u32,
    pub(super) unordered: bool,
    /// `None` if it was dropped: delivery continues with the next message.
    pub(super) payload: Option<Bytes>,
}

#[derive(Debug)]
struct Waiting {
    ppid: u32,
    payload: Option<Bytes>,
}

/// The unwrapped number that a stream delivers next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected(u64);

impl Default for Expected {
    fn default() -> Self {
        Self(FIRST)
    }
}

#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Whether messages have MIDs instead of SSNs.
    has_mids: bool,
    expected: ByStream<Expected>,
    /// Ordered messages ahead of their turn, by stream and unwrapped number.
    waiting: BTreeMap<(u16, u64), Waiting>,
    ready: VecDeque<InboundMessage>,
    held_bytes: usize,
}

impl Delivery {
    /// The state for messages that are numbered by MIDs.
    pub(super) fn of_mids() -> Self {
        Self { has_mids: true, ..Self::default() }
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.ready.shrink_to_fit();
        if self.waiting.is_empty() {
            self.waiting.clear(); // Or it keeps a node.
        }
    }

    pub(super) fn held_messages(&self) -> usize {
        self.waiting.len() + self.ready.len()
    }

    pub(super) fn waiting_messages(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether `mid` is the next of its stream.
    pub(super) fn is_expected(&self, stream: u16, mid: u32) -> bool {
        let expected = self.expected(stream);
        self.unwrap(expected, mid) == expected
    }

    /// Whether the ordered message of this unwrapped number was delivered, or waits for its turn.
    pub(super) fn has(&self, stream: u16, mid: u64) -> bool {
        mid < self.expected(stream) || self.waiting.contains_key(&(stream, mid))
    }

    /// Unwraps `number`, an SSN or MID, to the number nearest to `near`.
    fn unwrap(&self, near: u64, number: u32) -> u64 {
        if self.has_mids { unwrap_u32(near, number) } else { unwrap_u16(near, number as u16) }
    }

    pub(super) fn pop(&mut self) -> Option<InboundMessage> {
        let message = self.ready.pop_front()?;
        self.held_bytes -= message.payload.len();
        Some(message)
    }

    /// Makes `message` ready, or lets it wait for its turn.
    pub(super) fn on_complete(&mut self, message: Complete) -> Result<(), ReassemblyError> {
        let Complete { stream, mid, ppid, unordered, payload } = message;
        let bytes = payload.as_ref().map_or(0, Bytes::len);
        if unordered {
            self.make_ready(stream, unordered, Waiting { ppid, payload });
        } else {
            let expected = self.expected(stream);
            let mid = self.unwrap(expected, mid);
            if mid < expected {
                return Err(ReassemblyError::ProtocolViolation("an SSN comes a second time"));
            }
            if mid > expected {
                return self.wait((stream, mid), Waiting { ppid, payload });
            }
            self.make_ready(stream, unordered, Waiting { ppid, payload });
            self.deliver_from(stream, mid + 1);
        }
        self.held_bytes += bytes;
        Ok(())
    }

    /// Skips messages of `stream` up to `mid`: delivers the complete ones among them, then those that follow
    /// without a gap.
    pub(super) fn skip(&mut self, stream: u16, mid: u32) {
        let expected = self.expected(stream);
        let mid = self.unwrap(expected, mid);
        if mid < expected {
            return;
        }
        self.expected.get_mut(stream).0 = mid + 1;
        // A FORWARD-TSN may name thousands of streams in which nothing waits.
        if !self.waiting.is_empty() {
            self.deliver_stranded(stream, mid);
            self.deliver_from(stream, mid + 1);
        }
    }

    /// Resets `streams`, or all, to sequence number 0, after delivering the complete messages that wait in
    /// them.
    pub(super) fn reset(&mut self, streams: Option<&[u16]>) {
        if let Some(streams) = streams {
            for &stream in streams {
                self.deliver_stranded(stream, u64::MAX);
                self.expected.reset(stream);
            }
            return;
        }
        while let Some(((stream, _), waiting)) = self.waiting.pop_first() {
            self.make_ready(stream, false, waiting);
        }
        self.expected.clear();
    }

    /// The unwrapped number of the next message of `stream`.
    pub(super) fn expected(&self, stream: u16) -> u64 {
        self.expected.get(stream).0
    }

    fn wait(&mut self, place: (u16, u64), message: Waiting) -> Result<(), ReassemblyError> {
        let bytes = message.payload.as_ref().map_or(0, Bytes::len);
        if self.waiting.contains_key(&place) {
            return Err(ReassemblyError::ProtocolViolation("two messages have the same SSN"));
        }
        self.waiting.insert(place, message);
        self.held_bytes += bytes;
        Ok(())
    }

    /// Makes every complete message of `stream` up to `last` readable, also those that wait for an earlier
    /// one.
    fn deliver_stranded(&mut self, stream: u16, last: u64) {
        while let Some((&place, _)) = self.waiting.range((stream, 0)..=(stream, last)).next()
            && let Some(waiting) = self.waiting.remove(&place)
        {
            self.make_ready(stream, false, waiting);
        }
    }

    /// Makes the complete messages of `stream` from `next` on readable, up to the first gap, and expects the
    /// next one.
    fn deliver_from(&mut self, stream: u16, mut next: u64) {
        while let Some(waiting) = self.waiting.remove(&(stream, next)) {
            self.make_ready(stream, false, waiting);
            next += 1;
        }
        self.expected.get_mut(stream).0 = next;
    }

    /// Makes a message readable. Its bytes were counted before.
    fn make_ready(&mut self, stream: u16, unordered: bool, Waiting { ppid, payload }: Waiting) {
        let message = payload.map(|payload| InboundMessage { stream, ppid, unordered, payload });
        self.ready.extend(message);
    }
}

#[cfg(test)]
impl Delivery {
    /// The correct value of `held_bytes`, for checks.
    pub(super) fn counted_bytes(&self) -> usize {
        let payloads = self.waiting.values().filter_map(|message| message.payload.as_ref());
        let waiting: usize = payloads.map(Bytes::len).sum();
        waiting + self.ready.iter().map(|message| message.payload.len()).sum::<usize>()
    }

    pub(super) fn ready_places(&self) -> usize {
        self.ready.capacity()
    }
}
