//! Pieces of DATA chunks: the TSNs of a message are consecutive, so the next TSN is the next piece
//! (RFC 9260 §6.9).

use std::collections::BTreeMap;

use bytes::Bytes;

use super::messages::{Assembly, Messages};
use super::piece::{Piece, ReassemblyError};

/// A piece whose predecessor has not arrived.
#[derive(Debug)]
struct Loose {
    stream: u16,
    ssn: u32,
    unordered: bool,
    ending: bool,
    payload: Bytes,
}

/// The pieces of incomplete messages.
#[derive(Debug, Default)]
pub(super) struct ByTsn {
    /// Incomplete messages, by the TSN that each needs next.
    assemblies: BTreeMap<u64, Assembly>,
    /// Pieces that do not continue a message yet, by TSN.
    loose: BTreeMap<u64, Loose>,
    /// The highest TSN skipped by FORWARD-TSN or, after it, of the skipped message's continuation: pieces
    /// that follow it without a beginning are discarded.
    orphaned_by: Option<u64>,
}

impl ByTsn {
    pub(super) fn on_data(
        &mut self,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        match (piece.beginning, piece.ending) {
            (true, true) => {
                self.refuse_beginning_inside(piece, messages)?;
                messages.on_whole_message(piece, self.loose.len())
            }
            (true, false) => {
                self.refuse_beginning_inside(piece, messages)?;
                let assembly = messages.assemble(piece, self.assemblies.len())?;
                self.advance(piece.tsn.wrapping_add(1), assembly, messages)
            }
            (false, _) => self.on_continuation(piece, messages),
        }
    }

    /// Pieces and messages that are held.
    pub(super) fn held(&self) -> usize {
        self.assemblies.len() + self.loose.len()
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        if self.assemblies.is_empty() && self.loose.is_empty() {
            // They keep a node each until they are cleared.
            self.assemblies.clear();
            self.loose.clear();
        }
    }

    pub(super) fn has_contradiction(&self, cumulative_tsn: u64) -> bool {
        let waits = |first: Option<&u64>| first.is_some_and(|&tsn| tsn <= cumulative_tsn);
        waits(self.assemblies.keys().next()) || waits(self.loose.keys().next())
    }

    pub(super) fn abandon_cut_short(&mut self, cumulative_tsn: u64, messages: &mut Messages) {
        while let Some(entry) = self.assemblies.first_entry()
            && *entry.key() <= cumulative_tsn
        {
            let assembly = entry.remove();
            messages.incomplete_bytes -= assembly.buffer.len();
            if !assembly.unordered {
                messages.delivery.skip(assembly.stream, assembly.mid);
            }
        }
    }

    pub(super) fn on_forward_tsn(&mut self, new_cumulative_tsn: u64, messages: &mut Messages) {
        while let Some(entry) = self.assemblies.first_entry()
            && *entry.key() <= new_cumulative_tsn
        {
            messages.incomplete_bytes -= entry.remove().buffer.len();
        }
        while let Some(entry) = self.loose.first_entry()
            && *entry.key() <= new_cumulative_tsn
        {
            messages.incomplete_bytes -= entry.remove().payload.len();
        }
        self.discard_orphans(new_cumulative_tsn, messages);
    }

    fn on_continuation(
        &mut self,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        if let Some(assembly) = self.assemblies.remove(&piece.tsn) {
            return self.append(assembly, piece, messages);
        }
        if self.orphaned_by.is_some_and(|tsn| tsn.wrapping_add(1) == piece.tsn) {
            self.orphaned_by = None;
            if !piece.ending {
                self.discard_orphans(piece.tsn, messages);
            }
            return Ok(());
        }
        self.put_aside(piece, messages)
    }

    fn append(
        &mut self,
        mut assembly: Assembly,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        let may_append = assembly.accepts(piece.stream, piece.mid, piece.unordered);
        if let Err(error) = may_append {
            messages.incomplete_bytes -= assembly.buffer.len();
            return Err(error);
        }
        if piece.ending
            && messages.must_wait(piece)
            && let Err(error) = messages.admit_aside(self.loose.len())
        {
            self.assemblies.insert(piece.tsn, assembly);
            return Err(error);
        }
        messages.append(&mut assembly, piece.payload);
        if piece.ending {
            return messages.complete(assembly);
        }
        self.advance(piece.tsn.wrapping_add(1), assembly, messages)
    }

    fn put_aside(
        &mut self,
        piece: &Piece<'_>,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        messages.admit_aside(self.loose.len())?;
        let loose = Loose {
            stream: piece.stream,
            ssn: piece.mid,
            unordered: piece.unordered,
            ending: piece.ending,
            payload: Bytes::copy_from_slice(piece.payload),
        };
        messages.incomplete_bytes += piece.payload.len();
        if let Some(replaced) = self.loose.insert(piece.tsn, loose) {
            messages.incomplete_bytes -= replaced.payload.len();
        }
        Ok(())
    }

    /// Appends to `assembly`, which needs `next`, the pieces put aside that follow.
    fn advance(
        &mut self,
        mut next: u64,
        mut assembly: Assembly,
        messages: &mut Messages,
    ) -> Result<(), ReassemblyError> {
        while let Some(loose) = self.loose.remove(&next) {
            let may_append = assembly.accepts(loose.stream, loose.ssn, loose.unordered);
            messages.incomplete_bytes -= loose.payload.len();
            if let Err(error) = may_append {
                messages.incomplete_bytes -= assembly.buffer.len();
                return Err(error);
            }
            messages.append(&mut assembly, &loose.payload);
            if loose.ending {
                return messages.complete(assembly);
            }
            next = next.wrapping_add(1);
        }
        if let Some(replaced) = self.assemblies.insert(next, assembly) {
            messages.incomplete_bytes -= replaced.buffer.len();
        }
        Ok(())
    }

    /// Fails if a message begins inside another. If the peer may abandon messages, [`Self::abandon_cut_short`] drops
    /// the other one instead.
    fn refuse_beginning_inside(
        &self,
        piece: &Piece<'_>,
        messages: &Messages,
    ) -> Result<(), ReassemblyError> {
        if !messages.may_abandon && self.assemblies.contains_key(&piece.tsn) {
            return Err(ReassemblyError::ProtocolViolation("a message begins inside another"));
        }
        Ok(())
    }

    /// Discards stored pieces that continue a message abandoned at `tsn`, and remembers where more of it may
    /// arrive.
    fn discard_orphans(&mut self, tsn: u64, messages: &mut Messages) {
        let mut last = tsn;
        while let Some(loose) = self.loose.remove(&last.wrapping_add(1)) {
            messages.incomplete_bytes -= loose.payload.len();
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
    fn accepts(&self, stream: u16, ssn: u32, unordered: bool) -> Result<(), ReassemblyError> {
        let same_ssn = unordered || self.mid == ssn;
        if self.stream == stream && self.unordered == unordered && same_ssn {
            return Ok(());
        }
        Err(ReassemblyError::ProtocolViolation("a message continues as part of another"))
    }
}

#[cfg(test)]
impl ByTsn {
    /// Payload bytes that are held.
    pub(super) fn counted_bytes(&self) -> usize {
        let assembled: usize = self.assemblies.values().map(|a| a.buffer.len()).sum();
        assembled + self.loose.values().map(|l| l.payload.len()).sum::<usize>()
    }

    /// Messages that have begun, and pieces put aside.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.assemblies.len(), self.loose.len())
    }
}
