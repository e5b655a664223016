//! Received DATA becomes messages again, in delivery order (RFC 9260 §6.5, §6.6, §6.9).
//!
//! Owns what arrived and was not read: pieces of incomplete messages, ordered messages that wait
//! for an earlier one, and messages ready to be read. Which TSNs arrived is the association's
//! knowledge; it passes each TSN on once.
//!
//! A message is assembled by appending to one buffer from its beginning on. A piece whose
//! predecessor is missing is put aside and appended when its turn comes, so each byte is copied
//! twice at most, whatever the order of arrival.
//!
//! Every payload has an allocation of its own. Sharing blocks would cost less, but one byte that is held would hold
//! a block, which the counters do not show.

mod delivery;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;

use self::delivery::{Complete, Delivery};
use crate::message::InboundMessage;

/// The largest buffer that is reserved ahead for a message of which only the beginning is known.
const MOST_RESERVED_BYTES: usize = 64 * 1024;

/// What one received DATA chunk carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) tsn: u64,
    pub(crate) stream: u16,
    /// Stream sequence number; without meaning if `unordered`.
    pub(crate) ssn: u16,
    pub(crate) ppid: u32,
    pub(crate) unordered: bool,
    pub(crate) beginning: bool,
    pub(crate) ending: bool,
    pub(crate) payload: &'a [u8],
}

/// How much [`Reassembly`] holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReassemblyLimits {
    /// The largest message, in payload bytes. A message must fit into the receive buffer, since
    /// there is no partial delivery. Default 256 KiB.
    pub(crate) max_message_bytes: usize,
    /// How many pieces put aside and messages waiting for their order are held together, and how
    /// many messages of which the beginning arrived: it bounds the bookkeeping for tiny chunks, of
    /// which a receive buffer takes very many. Default 16,384.
    pub(crate) max_held_chunks: usize,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self { max_message_bytes: 256 * 1024, max_held_chunks: 16 * 1024 }
    }
}

/// Why a piece was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ReassemblyError {
    /// The message would be larger than [`ReassemblyLimits::max_message_bytes`].
    #[error("message too large")]
    MessageTooLarge,
    /// The piece would have to be held, and [`ReassemblyLimits::max_held_chunks`] are. Nothing has
    /// changed: the association may discard the chunk as if it had not arrived.
    #[error("too many chunks held")]
    TooManyHeldChunks,
    /// The peer's chunks contradict each other.
    #[error("protocol violation: {0}")]
    ProtocolViolation(&'static str),
}

/// A message whose beginning, and what follows it without a gap, has arrived.
#[derive(Debug)]
struct Assembly {
    stream: u16,
    ssn: u16,
    ppid: u32,
    unordered: bool,
    buffer: Vec<u8>,
}

/// A piece whose predecessor has not arrived.
#[derive(Debug)]
struct Loose {
    stream: u16,
    ssn: u16,
    unordered: bool,
    ending: bool,
    payload: Bytes,
}

/// The incoming side of all streams of an association.
#[derive(Debug)]
pub(crate) struct Reassembly {
    limits: ReassemblyLimits,
    /// Whether the peer may abandon messages (RFC 3758).
    may_abandon: bool,
    /// By the TSN that each needs next.
    assemblies: BTreeMap<u64, Assembly>,
    /// By TSN.
    loose: BTreeMap<u64, Loose>,
    /// Payload bytes in `assemblies` and `loose`.
    incomplete_bytes: usize,
    /// The highest TSN skipped by FORWARD-TSN, and after it the TSNs that continue the message
    /// skipped: what follows it without a beginning belongs to nothing.
    orphaned_by: Option<u64>,
    /// The size of the latest message of several pieces: a guess at that of the next.
    latest_bytes: usize,
    delivery: Delivery,
}

impl Reassembly {
    pub(crate) fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            may_abandon: false,
            assemblies: BTreeMap::new(),
            loose: BTreeMap::new(),
            incomplete_bytes: 0,
            orphaned_by: None,
            latest_bytes: 0,
            delivery: Delivery::default(),
        }
    }

    pub(crate) fn on_peer_known(&mut self, may_abandon: bool) {
        self.may_abandon = may_abandon;
    }

    /// Takes the content of a DATA chunk whose TSN is new.
    ///
    /// # Errors
    /// See [`ReassemblyError`]. A message whose SSN was delivered or skipped before, or is that of
    /// a waiting message, is a protocol violation: to discard it would lose what the peer takes for
    /// delivered. The piece in error, and the message it belongs to, are dropped; everything else
    /// goes on. Contradictions that a piece and its present neighbours do not show are found by
    /// [`Reassembly::has_contradiction`].
    pub(crate) fn on_data(&mut self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        if piece.payload.len() > self.limits.max_message_bytes {
            return Err(ReassemblyError::MessageTooLarge);
        }
        match (piece.beginning, piece.ending) {
            (true, true) => self.on_whole_message(piece),
            (true, false) => self.on_beginning(piece),
            (false, _) => self.on_continuation(piece),
        }
    }

    /// The next message in delivery order.
    pub(crate) fn pop(&mut self) -> Option<InboundMessage> {
        self.delivery.pop()
    }

    /// Gives back memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        if self.assemblies.is_empty() && self.loose.is_empty() {
            // They keep a node each until they are cleared.
            self.assemblies.clear();
            self.loose.clear();
        }
        self.delivery.release_memory();
    }

    /// Whether a message can be read.
    pub(crate) fn has_ready(&self) -> bool {
        self.delivery.has_ready()
    }

    /// Payload bytes held: in incomplete messages, waiting for their order, and ready but unread.
    pub(crate) fn held_bytes(&self) -> usize {
        self.incomplete_bytes + self.delivery.held_bytes()
    }

    /// Whether as many pieces and messages are held, those ready to be read included, as
    /// [`ReassemblyLimits::max_held_chunks`] says. The association then announces a window of zero
    /// and takes only the TSN it misses first.
    pub(crate) fn is_full(&self) -> bool {
        let held = self.assemblies.len() + self.loose.len() + self.delivery.held_messages();
        held >= self.limits.max_held_chunks
    }

    /// Whether chunks contradict each other, given that every TSN up to `cumulative_tsn` arrived or
    /// was skipped: something at or below it still waits for a piece.
    pub(crate) fn has_contradiction(&self, cumulative_tsn: u64) -> bool {
        let waits = |first: Option<&u64>| first.is_some_and(|&tsn| tsn <= cumulative_tsn);
        waits(self.assemblies.keys().next()) || waits(self.loose.keys().next())
    }

    /// Gives up messages that the peer abandoned after it had sent a part of them: the TSN that each needs
    /// arrived and belongs to another. A FORWARD-TSN says so, too, but it may be late or lost, and is not
    /// repeated once `cumulative_tsn` is beyond it. As nothing before that TSN is missing, no earlier message of
    /// the stream is.
    pub(crate) fn abandon_cut_short(&mut self, cumulative_tsn: u64) {
        if !self.may_abandon {
            return;
        }
        while let Some(entry) = self.assemblies.first_entry()
            && *entry.key() <= cumulative_tsn
        {
            let assembly = entry.remove();
            self.incomplete_bytes -= assembly.buffer.len();
            if !assembly.unordered {
                self.delivery.skip(assembly.stream, assembly.ssn);
            }
        }
    }

    /// Gives up what is incomplete up to `new_cumulative_tsn`, and lets each stream listed continue
    /// after its SSN listed (RFC 3758 §3.6).
    ///
    /// The association has sorted out FORWARD-TSNs at or behind its cumulative TSN. A continuation
    /// of what was given up is discarded, now or when it arrives. An SSN that was delivered already
    /// is without effect.
    pub(crate) fn on_forward_tsn(
        &mut self,
        new_cumulative_tsn: u64,
        skipped: impl Iterator<Item = (u16, u16)>,
    ) {
        while let Some(entry) = self.assemblies.first_entry()
            && *entry.key() <= new_cumulative_tsn
        {
            self.incomplete_bytes -= entry.remove().buffer.len();
        }
        while let Some(entry) = self.loose.first_entry()
            && *entry.key() <= new_cumulative_tsn
        {
            self.incomplete_bytes -= entry.remove().payload.len();
        }
        self.discard_orphans(new_cumulative_tsn);
        for (stream, ssn) in skipped {
            self.delivery.skip(stream, ssn);
        }
    }

    /// Makes 0 the next SSN expected on these streams, `None` meaning all (RFC 6525 §5.2.2). The
    /// association calls it when every TSN assigned before the reset has arrived.
    ///
    /// Messages that still wait there for an SSN can only be a peer's mistake; they are delivered
    /// in their order, as after a FORWARD-TSN.
    pub(crate) fn on_streams_reset(&mut self, streams: Option<&[u16]>) {
        self.delivery.reset(streams);
    }

    /// Fails if nothing more may be put aside. Messages ready to be read do not count here: that
    /// the application is slow must not fail an association.
    fn admit_aside(&self) -> Result<(), ReassemblyError> {
        self.admit(self.loose.len() + self.delivery.waiting_messages())
    }

    fn admit(&self, held: usize) -> Result<(), ReassemblyError> {
        if held < self.limits.max_held_chunks {
            return Ok(());
        }
        Err(ReassemblyError::TooManyHeldChunks)
    }

    fn on_whole_message(&mut self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        self.refuse_beginning_inside(piece)?;
        if self.must_wait(piece) {
            self.admit_aside()?;
        }
        self.delivery.on_complete(Complete {
            stream: piece.stream,
            ssn: piece.ssn,
            ppid: piece.ppid,
            unordered: piece.unordered,
            payload: Bytes::copy_from_slice(piece.payload),
        })
    }

    fn on_beginning(&mut self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        self.refuse_beginning_inside(piece)?;
        // Counted apart from what is put aside: the beginning that all of that waits for must never
        // find its place taken.
        self.admit(self.assemblies.len())?;
        let mut assembly = Assembly {
            stream: piece.stream,
            ssn: piece.ssn,
            ppid: piece.ppid,
            unordered: piece.unordered,
            buffer: Vec::with_capacity(self.foreseen_bytes(piece.payload.len())),
        };
        assembly.buffer.extend_from_slice(piece.payload);
        self.incomplete_bytes += piece.payload.len();
        self.advance(piece.tsn.wrapping_add(1), assembly)
    }

    fn on_continuation(&mut self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        if let Some(assembly) = self.assemblies.remove(&piece.tsn) {
            return self.append(assembly, piece);
        }
        if self.orphaned_by.is_some_and(|tsn| tsn.wrapping_add(1) == piece.tsn) {
            self.orphaned_by = None;
            if !piece.ending {
                self.discard_orphans(piece.tsn);
            }
            return Ok(());
        }
        self.put_aside(piece)
    }

    fn append(&mut self, mut assembly: Assembly, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        let may_append = assembly.accepts(piece.stream, piece.ssn, piece.unordered);
        if let Err(error) = may_append.and(self.fits(&assembly, piece.payload.len())) {
            self.incomplete_bytes -= assembly.buffer.len();
            return Err(error);
        }
        if piece.ending
            && self.must_wait(piece)
            && let Err(error) = self.admit_aside()
        {
            self.assemblies.insert(piece.tsn, assembly);
            return Err(error);
        }
        assembly.buffer.extend_from_slice(piece.payload);
        self.incomplete_bytes += piece.payload.len();
        if piece.ending {
            return self.complete(assembly);
        }
        self.advance(piece.tsn.wrapping_add(1), assembly)
    }

    fn put_aside(&mut self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        self.admit_aside()?;
        let loose = Loose {
            stream: piece.stream,
            ssn: piece.ssn,
            unordered: piece.unordered,
            ending: piece.ending,
            payload: Bytes::copy_from_slice(piece.payload),
        };
        self.incomplete_bytes += piece.payload.len();
        if let Some(replaced) = self.loose.insert(piece.tsn, loose) {
            self.incomplete_bytes -= replaced.payload.len();
        }
        Ok(())
    }

    /// Appends to `assembly`, which needs `next`, the pieces put aside that follow.
    fn advance(&mut self, mut next: u64, mut assembly: Assembly) -> Result<(), ReassemblyError> {
        while let Some(loose) = self.loose.remove(&next) {
            let may_append = assembly.accepts(loose.stream, loose.ssn, loose.unordered);
            if let Err(error) = may_append.and(self.fits(&assembly, loose.payload.len())) {
                self.incomplete_bytes -= assembly.buffer.len() + loose.payload.len();
                return Err(error);
            }
            assembly.buffer.extend_from_slice(&loose.payload);
            if loose.ending {
                return self.complete(assembly);
            }
            next = next.wrapping_add(1);
        }
        if let Some(replaced) = self.assemblies.insert(next, assembly) {
            self.incomplete_bytes -= replaced.buffer.len();
        }
        Ok(())
    }

    fn complete(&mut self, mut assembly: Assembly) -> Result<(), ReassemblyError> {
        let bytes = assembly.buffer.len();
        self.incomplete_bytes -= bytes;
        self.latest_bytes = bytes;
        // A message must not pin more than twice its size.
        if assembly.buffer.capacity() / 2 > bytes {
            assembly.buffer.shrink_to_fit();
        }
        self.delivery.on_complete(Complete {
            stream: assembly.stream,
            ssn: assembly.ssn,
            ppid: assembly.ppid,
            unordered: assembly.unordered,
            payload: Bytes::from(assembly.buffer),
        })
    }

    /// How much to reserve for a message that begins with `first_bytes`. The guess is made for one
    /// message at a time, so that beginnings alone cannot claim memory.
    fn foreseen_bytes(&self, first_bytes: usize) -> usize {
        if self.assemblies.is_empty() {
            first_bytes.max(self.latest_bytes.min(MOST_RESERVED_BYTES))
        } else {
            first_bytes
        }
    }

    fn fits(&self, assembly: &Assembly, more_bytes: usize) -> Result<(), ReassemblyError> {
        if assembly.buffer.len() + more_bytes > self.limits.max_message_bytes {
            return Err(ReassemblyError::MessageTooLarge);
        }
        Ok(())
    }

    /// Whether the message of `piece`, were it complete, would have to wait for another.
    fn must_wait(&self, piece: &Piece<'_>) -> bool {
        !piece.unordered && !self.delivery.is_expected(piece.stream, piece.ssn)
    }

    /// Unless the peer may have abandoned the message: [`Reassembly::abandon_cut_short`] gives it up.
    fn refuse_beginning_inside(&self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        if !self.may_abandon && self.assemblies.contains_key(&piece.tsn) {
            return Err(ReassemblyError::ProtocolViolation("a message begins inside another"));
        }
        Ok(())
    }

    /// Discards the pieces put aside that continue a message given up at `tsn`, and remembers where
    /// more of it may arrive.
    fn discard_orphans(&mut self, tsn: u64) {
        let mut last = tsn;
        while let Some(loose) = self.loose.remove(&last.wrapping_add(1)) {
            self.incomplete_bytes -= loose.payload.len();
            last = last.wrapping_add(1);
            if loose.ending {
                self.orphaned_by = None;
                return;
            }
        }
        self.orphaned_by = Some(last);
    }
}

impl Assembly {
    /// Fails if a piece with these fields cannot continue the message. The payload protocol
    /// identifier that counts is that of its beginning.
    fn accepts(&self, stream: u16, ssn: u16, unordered: bool) -> Result<(), ReassemblyError> {
        let same_ssn = unordered || self.ssn == ssn;
        if self.stream == stream && self.unordered == unordered && same_ssn {
            return Ok(());
        }
        Err(ReassemblyError::ProtocolViolation("a message continues as part of another"))
    }
}
