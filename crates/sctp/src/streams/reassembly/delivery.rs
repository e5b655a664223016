//! Complete messages on their way to the application: the order within each stream
//! (RFC 9260 §6.6), and what is ready to be read.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use rexmit_core::serial::unwrap_u16;

use super::ReassemblyError;
use crate::message::InboundMessage;

/// The unwrapped form of the first SSN of a stream, 0. Above 2¹⁶, so that its neighbourhood does
/// not reach below zero.
const FIRST_SSN: u64 = 1 << 16;

/// A message all of whose pieces have arrived.
pub(super) struct Complete {
    pub(super) stream: u16,
    pub(super) ssn: u16,
    pub(super) ppid: u32,
    pub(super) unordered: bool,
    pub(super) payload: Bytes,
}

#[derive(Debug)]
struct Waiting {
    ppid: u32,
    payload: Bytes,
}

#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// The unwrapped SSN that each stream delivers next; streams not listed are at [`FIRST_SSN`].
    expected: BTreeMap<u16, u64>,
    /// Ordered messages ahead of their turn, by stream and unwrapped SSN.
    waiting: BTreeMap<(u16, u64), Waiting>,
    ready: VecDeque<InboundMessage>,
    held_bytes: usize,
}

impl Delivery {
    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Gives back memory that is not in use.
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

    /// Whether `ssn` is the next of its stream.
    pub(super) fn is_expected(&self, stream: u16, ssn: u16) -> bool {
        self.expected(stream) as u16 == ssn
    }

    pub(super) fn pop(&mut self) -> Option<InboundMessage> {
        let message = self.ready.pop_front()?;
        self.held_bytes -= message.payload.len();
        Some(message)
    }

    /// Makes `message` ready, or lets it wait for its turn.
    pub(super) fn on_complete(&mut self, message: Complete) -> Result<(), ReassemblyError> {
        let Complete { stream, ssn, ppid, unordered, payload } = message;
        let bytes = payload.len();
        if unordered {
            self.ready.push_back(InboundMessage { stream, ppid, unordered, payload });
        } else {
            let expected = self.expected(stream);
            let ssn = unwrap_u16(expected, ssn);
            if ssn < expected {
                return Err(ReassemblyError::ProtocolViolation("an SSN comes a second time"));
            }
            if ssn > expected {
                return self.wait((stream, ssn), Waiting { ppid, payload });
            }
            self.ready.push_back(InboundMessage { stream, ppid, unordered, payload });
            self.deliver_from(stream, ssn + 1);
        }
        self.held_bytes += bytes;
        Ok(())
    }

    /// Lets `stream` continue after `ssn`: delivers what waits up to it, then what follows.
    pub(super) fn skip(&mut self, stream: u16, ssn: u16) {
        let ssn = match self.expected.entry(stream) {
            Entry::Occupied(mut expected) => {
                let ssn = unwrap_u16(*expected.get(), ssn);
                if ssn < *expected.get() {
                    return;
                }
                expected.insert(ssn + 1);
                ssn
            }
            Entry::Vacant(expected) => {
                let ssn = unwrap_u16(FIRST_SSN, ssn);
                if ssn < FIRST_SSN {
                    return;
                }
                expected.insert(ssn + 1);
                ssn
            }
        };
        // A FORWARD-TSN may name thousands of streams in which nothing waits.
        if !self.waiting.is_empty() {
            self.deliver_stranded(stream, ssn);
            self.deliver_from(stream, ssn + 1);
        }
    }

    /// Lets these streams, or all, start again, after delivering what waits in them.
    pub(super) fn reset(&mut self, streams: Option<&[u16]>) {
        if let Some(streams) = streams {
            for &stream in streams {
                self.deliver_stranded(stream, u64::MAX);
                self.expected.remove(&stream);
            }
            return;
        }
        while let Some(((stream, _), waiting)) = self.waiting.pop_first() {
            self.make_ready(stream, waiting);
        }
        self.expected.clear();
    }

    fn expected(&self, stream: u16) -> u64 {
        self.expected.get(&stream).copied().unwrap_or(FIRST_SSN)
    }

    fn wait(&mut self, place: (u16, u64), message: Waiting) -> Result<(), ReassemblyError> {
        let bytes = message.payload.len();
        if self.waiting.contains_key(&place) {
            return Err(ReassemblyError::ProtocolViolation("two messages have the same SSN"));
        }
        self.waiting.insert(place, message);
        self.held_bytes += bytes;
        Ok(())
    }

    /// Makes ready what waits in `stream` up to `last`, gaps or not.
    fn deliver_stranded(&mut self, stream: u16, last: u64) {
        while let Some((&place, _)) = self.waiting.range((stream, 0)..=(stream, last)).next()
            && let Some(waiting) = self.waiting.remove(&place)
        {
            self.make_ready(stream, waiting);
        }
    }

    /// Makes ready what waits in `stream` from `next` on without a gap, and expects what follows.
    fn deliver_from(&mut self, stream: u16, mut next: u64) {
        while let Some(waiting) = self.waiting.remove(&(stream, next)) {
            self.make_ready(stream, waiting);
            next += 1;
        }
        self.expected.insert(stream, next);
    }

    /// Its bytes are counted already.
    fn make_ready(&mut self, stream: u16, Waiting { ppid, payload }: Waiting) {
        self.ready.push_back(InboundMessage { stream, ppid, unordered: false, payload });
    }
}

#[cfg(test)]
impl Delivery {
    /// What `held_bytes` must be.
    pub(super) fn counted_bytes(&self) -> usize {
        let waiting: usize = self.waiting.values().map(|message| message.payload.len()).sum();
        waiting + self.ready.iter().map(|message| message.payload.len()).sum::<usize>()
    }

    pub(super) fn ready_places(&self) -> usize {
        self.ready.capacity()
    }
}
