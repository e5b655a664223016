//! Reassembly of I-DATA: a chunk names its message and its place in it; the TSN is not used (RFC 8260
//! §2.2.3).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use bytes::Bytes;
use rexmit_core::serial::unwrap_u32;

use super::by_stream::ByStream;
use super::delivery::FIRST;
use super::messages::{Assembly, Messages};
use super::piece::{DroppedMessage, Piece, ReassemblyError};
use crate::wire::SkippedMid;

/// A message: its stream, whether it is unordered, and its unwrapped MID.
type Key = (u16, bool, u64);

/// A message whose beginning has arrived.
#[derive(Debug)]
struct Begun {
    assembly: Assembly,
    /// The unwrapped FSN of its next piece; that of the first piece is [`FIRST`].
    next_fsn: u64,
}

/// A piece whose predecessor has not arrived.
#[derive(Debug)]
struct Loose {
    ending: bool,
    payload: Bytes,
}

/// The MIDs of a stream, beyond the order of delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamMids {
    /// The first ordered and the first unordered message that were not skipped.
    not_skipped: [u64; 2],
    /// The newest unordered message.
    newest_unordered: u64,
}

impl Default for StreamMids {
    fn default() -> Self {
        Self { not_skipped: [FIRST; 2], newest_unordered: FIRST }
    }
}

/// The pieces of incomplete messages.
#[derive(Debug, Default)]
pub(super) struct ByMid {
    begun: BTreeMap<Key, Begun>,
    /// Pieces that do not continue a message yet, by message and unwrapped FSN. One map for all messages,
    /// because a map per message would allocate a node for each.
    loose: BTreeMap<(Key, u64), Loose>,
    /// State of the streams that have unordered or skipped messages.
    streams: ByStream<StreamMids>,
    /// The begun messages of which something is held, by its size. Made when the first message has to be dropped, and kept
    /// while any has begun: a peer that fills the buffer again and again would otherwise cause a search of all each time.
    #[expect(clippy::box_collection, reason = "8 bytes of each association instead of 24")]
    by_size: Option<Box<BTreeSet<(usize, Key)>>>,
}

impl ByMid {
    pub(super) fn on_data(
        &mut self,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        let key = self.key_of(piece.stream, piece.unordered, piece.mid, messages);
        if self.is_skipped(key) {
            return Ok(());
        }
        if !piece.unordered && messages.delivery.has(piece.stream, key.2) {
            return Err(ReassemblyError::ProtocolViolation("a message comes a second time"));
        }
        if piece.unordered {
            let mids = self.streams.get_mut(piece.stream);
            mids.newest_unordered = mids.newest_unordered.max(key.2);
        }
        if !piece.beginning {
            return self.on_continuation(key, piece, messages);
        }
        if self.begun.contains_key(&key) {
            return Err(ReassemblyError::ProtocolViolation("a message begins a second time"));
        } else if !piece.ending {
            let assembly = messages.assemble(piece, self.begun.len())?;
            return self.advance(key, Begun { assembly, next_fsn: FIRST + 1 }, messages);
        }
        self.refuse_rest(key, messages)?;
        messages.on_whole_message(piece, self.loose.len())
    }

    /// Pieces and messages that are held.
    pub(super) fn held(&self) -> usize {
        self.begun.len() + self.loose.len()
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        if self.held() == 0 {
            // They keep a node each until they are cleared.
            self.begun.clear();
            self.loose.clear();
            self.by_size = None;
        }
    }

    /// Drops the message of which most has arrived.
    pub(super) fn drop_largest(&mut self, messages: &mut Messages) -> Option<DroppedMessage> {
        let begun = &self.begun;
        let all = || {
            let sizes = begun.iter().map(|(key, begun)| (begun.assembly.buffer.len(), *key));
            Box::new(sizes.filter(|(size, _)| *size > 0).collect::<BTreeSet<_>>())
        };
        let (_, key) = self.by_size.get_or_insert_with(all).pop_last()?;
        messages.drop_message(&mut self.begun.get_mut(&key)?.assembly)
    }

    /// Holds a message that has begun.
    fn hold(&mut self, key: Key, begun: Begun) {
        let size = begun.assembly.buffer.len();
        if let Some(by_size) = &mut self.by_size
            && size > 0
        {
            by_size.insert((size, key));
        }
        self.begun.insert(key, begun);
    }

    /// Returns a message that has begun, and holds it no longer.
    fn release(&mut self, key: Key) -> Option<Begun> {
        let begun = self.begun.remove(&key)?;
        if let Some(by_size) = &mut self.by_size {
            by_size.remove(&(begun.assembly.buffer.len(), key));
        }
        if self.begun.is_empty() {
            self.by_size = None;
        }
        Some(begun)
    }

    /// Called when the peer has abandoned the messages up to `skipped`.
    pub(super) fn on_skipped(&mut self, skipped: SkippedMid, messages: &mut Messages) {
        let SkippedMid { stream, unordered, mid } = skipped;
        let key = self.key_of(stream, unordered, mid, messages);
        let mids = self.streams.get_mut(stream);
        let not_skipped = &mut mids.not_skipped[usize::from(unordered)];
        *not_skipped = (*not_skipped).max(key.2 + 1);
        if unordered {
            mids.newest_unordered = mids.newest_unordered.max(key.2);
        } else {
            messages.delivery.skip(stream, mid);
        }
        self.drop_all((stream, unordered, 0)..=key, messages);
    }

    /// Called when these streams, or all, were reset: their MIDs begin at 0 again.
    pub(super) fn on_streams_reset(&mut self, streams: Option<&[u16]>, messages: &mut Messages) {
        let Some(streams) = streams else {
            self.drop_all((0, false, 0)..=(u16::MAX, true, u64::MAX), messages);
            return self.streams.clear();
        };
        for &stream in streams {
            self.drop_all((stream, false, 0)..=(stream, true, u64::MAX), messages);
            self.streams.reset(stream);
        }
    }

    /// The message `mid`, unwrapped next to the newest of its stream.
    fn key_of(&self, stream: u16, unordered: bool, mid: u32, messages: &Messages) -> Key {
        let near = if unordered {
            self.streams.get(stream).newest_unordered
        } else {
            messages.delivery.expected(stream)
        };
        (stream, unordered, unwrap_u32(near, mid))
    }

    /// Whether the message was abandoned, so that further pieces of it are discarded.
    fn is_skipped(&self, (stream, unordered, mid): Key) -> bool {
        let not_skipped = self.streams.get(stream).not_skipped[usize::from(unordered)];
        not_skipped > FIRST && mid < not_skipped
    }

    fn on_continuation(
        &mut self,
        key: Key,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        let next = self.begun.get(&key).map(|begun| begun.next_fsn);
        let fsn = unwrap_u32(next.unwrap_or(FIRST), piece.fsn);
        if fsn < next.unwrap_or(FIRST + 1) || self.loose.contains_key(&(key, fsn)) {
            return Err(ReassemblyError::ProtocolViolation("a fragment comes a second time"));
        } else if next == Some(fsn) {
            return self.append(key, piece, messages);
        }
        messages.admit_aside(self.loose.len())?;
        let payload = Bytes::copy_from_slice(piece.payload);
        self.loose.insert((key, fsn), Loose { ending: piece.ending, payload });
        messages.incomplete_bytes += piece.payload.len();
        Ok(())
    }

    /// Appends the next piece to the message `key`.
    fn append(
        &mut self,
        key: Key,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        if piece.ending && messages.must_wait(piece) {
            messages.admit_aside(self.loose.len())?;
        }
        let Some(mut begun) = self.release(key) else { return Ok(()) };
        messages.append(&mut begun.assembly, piece.payload);
        begun.next_fsn += 1;
        if piece.ending {
            return self.complete(key, begun, messages);
        }
        self.advance(key, begun, messages)
    }

    /// Appends to `begun` the pieces put aside that follow.
    fn advance(
        &mut self,
        key: Key,
        mut begun: Begun,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        while let Some(loose) = self.loose.remove(&(key, begun.next_fsn)) {
            messages.incomplete_bytes -= loose.payload.len();
            messages.append(&mut begun.assembly, &loose.payload);
            begun.next_fsn += 1;
            if loose.ending {
                return self.complete(key, begun, messages);
            }
        }
        self.hold(key, begun);
        Ok(())
    }

    fn complete(
        &mut self,
        key: Key,
        begun: Begun,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        if let Err(error) = self.refuse_rest(key, messages) {
            messages.incomplete_bytes -= begun.assembly.buffer.len();
            return Err(error);
        }
        messages.complete(begun.assembly)
    }

    /// Fails if pieces beyond the end of the message `key` have arrived.
    fn refuse_rest(&mut self, key: Key, messages: &mut Messages) -> Result<(), ReassemblyError> {
        if self.drop_all(key..=key, messages) {
            return Err(ReassemblyError::ProtocolViolation("a fragment is beyond its message"));
        }
        Ok(())
    }

    /// Drops the received pieces of these messages; returns whether there were any.
    fn drop_all(&mut self, keys: RangeInclusive<Key>, messages: &mut Messages) -> bool {
        let mut has_dropped = false;
        while let Some((&key, _)) = self.begun.range(keys.clone()).next()
            && let Some(begun) = self.release(key)
        {
            messages.incomplete_bytes -= begun.assembly.buffer.len();
            has_dropped = true;
        }
        let pieces = (*keys.start(), 0)..=(*keys.end(), u64::MAX);
        while let Some((&place, _)) = self.loose.range(pieces.clone()).next()
            && let Some(loose) = self.loose.remove(&place)
        {
            messages.incomplete_bytes -= loose.payload.len();
            has_dropped = true;
        }
        has_dropped
    }
}

#[cfg(test)]
impl ByMid {
    /// Payload bytes that are held.
    pub(super) fn counted_bytes(&self) -> usize {
        if let Some(by_size) = &self.by_size {
            let sizes = self.begun.iter().map(|(key, begun)| (begun.assembly.buffer.len(), *key));
            assert_eq!(**by_size, sizes.filter(|(size, _)| *size > 0).collect());
        }
        let assembled: usize = self.begun.values().map(|b| b.assembly.buffer.len()).sum();
        assembled + self.loose.values().map(|l| l.payload.len()).sum::<usize>()
    }

    /// Messages that have begun, and pieces put aside.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.begun.len(), self.loose.len())
    }
}
