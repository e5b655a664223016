//! Reassembly of received DATA and I-DATA chunks into messages, in delivery order (RFC 9260 §6.5, §6.6, §6.9,
//! RFC 8260 §2.2.3).
//!
//! Owns received data that was not read: pieces of incomplete messages, ordered messages that wait for an
//! earlier one, and messages ready to be read. The association knows which TSNs arrived; it passes each TSN
//! once.
//!
//! A message is assembled by appending to one buffer. A piece whose predecessor is missing is stored
//! separately and appended later, so each byte is copied at most twice, whatever the order of arrival. Pieces
//! are put in order by TSN ([`by_tsn`]) or, if messages are interleaved, by message and fragment numbers
//! ([`by_mid`]).
//!
//! Every payload has an allocation of its own. Sharing blocks would be cheaper, but a single unread byte
//! could keep a whole block alive, which the counters would not show.

mod by_mid;
mod by_stream;
mod by_tsn;
mod delivery;
mod messages;
mod piece;
#[cfg(test)]
mod tests;

use self::by_mid::ByMid;
use self::by_tsn::ByTsn;
use self::delivery::Delivery;
use self::messages::Messages;
pub(crate) use self::piece::{DroppedMessage, Piece, ReassemblyError, ReassemblyLimits};
use crate::message::InboundMessage;
use crate::wire::SkippedMid;

/// The key by which the fragments of a message are grouped.
#[derive(Debug)]
enum Fragments {
    ByTsn(ByTsn),
    ByMid(ByMid),
}

/// The incoming side of all streams of an association.
#[derive(Debug)]
pub(crate) struct Reassembly {
    fragments: Fragments,
    messages: Messages,
}

impl Reassembly {
    /// An empty one with the same limits.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.messages.limits)
    }

    pub(crate) fn new(limits: ReassemblyLimits) -> Self {
        Self { fragments: Fragments::ByTsn(ByTsn::default()), messages: Messages::new(limits) }
    }

    /// Called when the handshake is complete, before the first piece, with whether messages are interleaved and whether
    /// they may be abandoned.
    pub(crate) fn on_peer_known(&mut self, is_interleaved: bool, may_abandon: bool) {
        self.messages.may_abandon = may_abandon;
        self.fragments = if is_interleaved {
            self.messages.delivery = Delivery::of_mids();
            Fragments::ByMid(ByMid::default())
        } else {
            Fragments::ByTsn(ByTsn::default())
        };
    }

    /// Whether pieces are found by message identifiers: they come in I-DATA chunks.
    pub(crate) const fn is_interleaved(&self) -> bool {
        matches!(self.fragments, Fragments::ByMid(_))
    }

    /// Adds the content of a DATA or I-DATA chunk whose TSN is new.
    ///
    /// # Errors
    /// See [`ReassemblyError`]. A message whose number was delivered before, or is that of a waiting message,
    /// is a protocol violation: discarding it would lose data that the peer considers delivered. The piece in
    /// error and its message are dropped; all else is unaffected. Contradictions that a piece and its present
    /// neighbours do not show are found by [`Reassembly::has_contradiction`].
    pub(crate) fn on_data(&mut self, piece: &Piece<'_>) -> Result<(), ReassemblyError> {
        match &mut self.fragments {
            Fragments::ByTsn(fragments) => fragments.on_data(piece, &mut self.messages),
            Fragments::ByMid(fragments) => fragments.on_data(piece, &mut self.messages),
        }
    }

    /// Returns the message that the last piece made larger than [`ReassemblyLimits::max_message_bytes`].
    pub(crate) const fn take_dropped(&mut self) -> Option<DroppedMessage> {
        self.messages.take_dropped()
    }

    /// Drops the incomplete interleaved message of which most has arrived, if there is one.
    pub(crate) fn drop_largest(&mut self) -> Option<DroppedMessage> {
        match &mut self.fragments {
            Fragments::ByTsn(_) => None,
            Fragments::ByMid(fragments) => fragments.drop_largest(&mut self.messages),
        }
    }

    /// The next message in delivery order.
    pub(crate) fn pop(&mut self) -> Option<InboundMessage> {
        self.messages.delivery.pop()
    }

    /// Releases memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        match &mut self.fragments {
            Fragments::ByTsn(fragments) => fragments.release_memory(),
            Fragments::ByMid(fragments) => fragments.release_memory(),
        }
        self.messages.delivery.release_memory();
    }

    /// Whether a message can be read.
    pub(crate) fn has_ready(&self) -> bool {
        self.messages.delivery.has_ready()
    }

    /// Payload bytes held: in incomplete messages, waiting for their order, and ready but unread.
    pub(crate) fn held_bytes(&self) -> usize {
        self.messages.incomplete_bytes + self.messages.delivery.held_bytes()
    }

    /// Whether [`ReassemblyLimits::max_held_chunks`] pieces and messages are held, including those ready to be read.
    /// The association then advertises a window of zero and accepts only the first missing TSN.
    pub(crate) fn is_full(&self) -> bool {
        self.held_count() >= self.messages.limits.max_held_chunks
    }

    /// The pieces and messages that are held.
    pub(crate) fn held_count(&self) -> usize {
        let incomplete = match &self.fragments {
            Fragments::ByTsn(fragments) => fragments.held(),
            Fragments::ByMid(fragments) => fragments.held(),
        };
        incomplete + self.messages.delivery.held_messages()
    }

    /// Whether chunks contradict each other: every TSN up to `cumulative_tsn` arrived or was skipped, but a
    /// message at or below it still lacks a piece. Not for interleaved messages, whose TSNs do not show it.
    pub(crate) fn has_contradiction(&self, cumulative_tsn: u64) -> bool {
        match &self.fragments {
            Fragments::ByTsn(fragments) => fragments.has_contradiction(cumulative_tsn),
            Fragments::ByMid(_) => false,
        }
    }

    /// Drops messages that the peer abandoned after it had sent a part of them: the TSN of the next piece
    /// arrived and belongs to another message. A FORWARD-TSN also reports this, but it may be late or lost,
    /// and is not retransmitted once `cumulative_tsn` is beyond it. Since no TSN before is missing, neither
    /// is an earlier message of the stream.
    pub(crate) fn abandon_cut_short(&mut self, cumulative_tsn: u64) {
        if let Fragments::ByTsn(fragments) = &mut self.fragments
            && self.messages.may_abandon
        {
            fragments.abandon_cut_short(cumulative_tsn, &mut self.messages);
        }
    }

    /// Drops incomplete messages up to `new_cumulative_tsn`, and continues each listed stream after its
    /// listed SSN (RFC 3758 §3.6).
    ///
    /// The association has dropped FORWARD-TSNs at or below its cumulative TSN. Further pieces of dropped
    /// messages are discarded, now or when they arrive. An SSN that was already delivered has no effect.
    pub(crate) fn on_forward_tsn(
        &mut self,
        new_cumulative_tsn: u64,
        skipped: impl Iterator<Item = (u16, u16)>,
    ) {
        if let Fragments::ByTsn(fragments) = &mut self.fragments {
            fragments.on_forward_tsn(new_cumulative_tsn, &mut self.messages);
            for (stream, ssn) in skipped {
                self.messages.delivery.skip(stream, ssn.into());
            }
        }
    }

    /// Drops the interleaved messages up to those listed, and continues each listed stream after them (RFC
    /// 8260 §2.3.1). Further pieces of dropped messages are discarded when they arrive.
    pub(crate) fn on_i_forward_tsn(&mut self, skipped: impl Iterator<Item = SkippedMid>) {
        if let Fragments::ByMid(fragments) = &mut self.fragments {
            for skipped in skipped {
                fragments.on_skipped(skipped, &mut self.messages);
            }
        }
    }

    /// Makes 0 the next message number expected on these streams, `None` meaning all (RFC 6525 §5.2.2,
    /// RFC 8260 §2.3.2). The association calls it when every TSN assigned before the reset has arrived.
    ///
    /// Messages that still wait there for a number can only be a peer's mistake; they are delivered
    /// in their order, as after a FORWARD-TSN. Interleaved ones that are incomplete are dropped.
    pub(crate) fn on_streams_reset(&mut self, streams: Option<&[u16]>) {
        if let Fragments::ByMid(fragments) = &mut self.fragments {
            fragments.on_streams_reset(streams, &mut self.messages);
        }
        self.messages.delivery.reset(streams);
    }
}
