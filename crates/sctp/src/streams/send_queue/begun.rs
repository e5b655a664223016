//! Messages of which a part is cut: at most one without interleaving, otherwise at most one of each stream (RFC 8260
//! §2.2.2).

use std::collections::{BTreeMap, BTreeSet};

use rexmit_core::Instant;

use super::{Fragment, Queued};
use crate::message::{MessageId, OutboundMessage};

/// The most messages that are cut in part at one time. A peer may limit the incomplete messages that it holds; this
/// number is the smallest `max_held_chunks` that our own configuration allows.
const MOST_BEGUN: usize = 12;

/// When the lifetime of a partly sent message ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunExpiry {
    pub(crate) at: Instant,
    pub(crate) stream: u16,
    pub(crate) id: MessageId,
}

/// A message that is being cut.
#[derive(Debug)]
pub(super) struct Begun {
    queued: Queued,
    mid: u32,
    next_fsn: u32,
    sent_bytes: usize,
}

impl Begun {
    pub(super) const fn new(queued: Queued, mid: u32) -> Self {
        Self { queued, mid, next_fsn: 0, sent_bytes: 0 }
    }

    pub(super) const fn id(&self) -> MessageId {
        self.queued.id
    }

    pub(super) const fn arrival(&self) -> u64 {
        self.queued.arrival
    }

    pub(super) const fn message(&self) -> &OutboundMessage {
        &self.queued.message
    }

    pub(super) fn rest_bytes(&self) -> usize {
        self.queued.message.payload.len() - self.sent_bytes
    }

    pub(super) fn cut(&mut self, max_payload: usize) -> Fragment {
        let start = self.sent_bytes;
        let end = start + self.rest_bytes().min(max_payload);
        let Queued { id, expires, due, message, .. } = &mut self.queued;
        let ending = end == message.payload.len();
        self.sent_bytes = end;
        let payload = if start == 0 && ending {
            std::mem::take(&mut message.payload) // A slice would share it, which allocates.
        } else {
            message.payload.slice(start..end)
        };
        let fsn = self.next_fsn;
        self.next_fsn = fsn.wrapping_add(1);
        Fragment {
            message: *id,
            stream: message.stream,
            mid: self.mid,
            fsn,
            ppid: message.ppid,
            unordered: message.unordered,
            immediate: message.immediate && ending,
            beginning: start == 0,
            ending,
            payload,
            expires: *expires,
            reliability: message.reliability,
            due: *due,
        }
    }
}

/// All begun messages, by stream.
#[derive(Debug, Default)]
pub(super) struct BegunMessages {
    messages: BTreeMap<u16, Begun>,
    /// The times at which messages with a lifetime expire, with their streams.
    deadlines: BTreeSet<(Instant, u16)>,
    /// The size of each message in bytes, with its stream.
    sizes: BTreeSet<(usize, u16)>,
    /// The sum of the sizes of all messages.
    bytes: usize,
}

impl BegunMessages {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn of(&self, stream: u16) -> Option<&Begun> {
        self.messages.get(&stream)
    }

    /// The lowest stream that has a begun message.
    pub(super) fn first(&self) -> Option<u16> {
        self.messages.first_key_value().map(|(&stream, _)| stream)
    }

    /// The message that expires first.
    pub(super) fn next_expiry(&self) -> Option<BegunExpiry> {
        let &(at, stream) = self.deadlines.first()?;
        Some(BegunExpiry { at, stream, id: self.of(stream)?.id() })
    }

    /// Whether a message of `len` bytes may begin in addition to these, if the peer has a buffer of `most` bytes.
    ///
    /// Incomplete messages must not fill the peer's buffer, or none of them would ever be complete. So the buffer
    /// always has room for all begun messages except the largest, which waits for the others ([`Self::may_go_on`]), and
    /// for the part of the largest that was sent. All except the largest take at most half of the buffer, and at most
    /// [`MOST_BEGUN`] messages are begun.
    pub(super) fn may_add(&self, len: usize, most: usize) -> bool {
        let Some(&(largest, stream)) = self.sizes.last() else { return true };
        let sent = if len > largest { 0 } else { self.sent_bytes(stream) };
        let others = self.bytes + len - largest.max(len);
        self.messages.len() < MOST_BEGUN && others <= most / 2 && sent + others <= most
    }

    /// Whether `len` more bytes of the message of `stream` leave room for the other begun messages in the peer's buffer
    /// of `most` bytes.
    pub(super) fn may_go_on(&self, stream: u16, len: usize, most: usize) -> bool {
        let Some(&(largest, largest_stream)) = self.sizes.last() else { return true };
        let others = self.bytes - largest;
        stream != largest_stream || others == 0 || self.sent_bytes(stream) + len + others <= most
    }

    fn sent_bytes(&self, stream: u16) -> usize {
        self.of(stream).map_or(0, |begun| begun.sent_bytes)
    }

    pub(super) fn insert(&mut self, stream: u16, begun: Begun) {
        self.bytes += begun.queued.message.payload.len();
        self.sizes.insert((begun.queued.message.payload.len(), stream));
        if let Some(at) = begun.queued.expires {
            self.deadlines.insert((at, stream));
        }
        self.messages.insert(stream, begun);
    }

    /// Cuts the next fragment of the message of `stream`, which is removed after its last one.
    pub(super) fn cut(&mut self, stream: u16, max_payload: usize) -> Option<Fragment> {
        let begun = self.messages.get_mut(&stream)?;
        let fragment = begun.cut(max_payload);
        if fragment.ending {
            self.bytes -= begun.queued.message.payload.len();
            self.sizes.remove(&(begun.queued.message.payload.len(), stream));
            if let Some(at) = begun.queued.expires {
                self.deadlines.remove(&(at, stream));
            }
            self.messages.remove(&stream);
        }
        Some(fragment)
    }

    /// Removes all begun messages, and passes them to `f` in the order in which they were accepted.
    pub(super) fn drain(&mut self, mut f: impl FnMut(MessageId, OutboundMessage)) {
        let mut all: Vec<Begun> = std::mem::take(&mut self.messages).into_values().collect();
        all.sort_unstable_by_key(Begun::arrival);
        for Begun { queued, .. } in all {
            f(queued.id, queued.message);
        }
        self.deadlines.clear();
        self.sizes.clear();
        self.bytes = 0;
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        if self.messages.is_empty() {
            self.messages.clear(); // Or it keeps a node.
            self.deadlines.clear();
            self.sizes.clear();
        }
    }
}
