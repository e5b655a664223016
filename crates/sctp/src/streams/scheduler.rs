//! The stream schedulers of RFC 8260 §3, which choose the stream of the next chunk.

#[cfg(feature = "serde")]
use serde::Serialize;
use std::collections::BTreeSet;

/// The default priority of a stream, "normal" of data channels (RFC 8831 §6.4).
pub const DEFAULT_PRIORITY: u16 = 256;

/// How much the tag of a stream of priority 1 advances per byte: the resolution of weights.
const TAG_PER_BYTE: u64 = 1 << 16;

/// Bits of the turn in the rank of a stream; its priority is in the bits above.
const TURN_BITS: u32 = 48;

/// The order in which streams send (the stream scheduler, RFC 8260 §3). Within a stream, messages are sent in
/// the order in which they were accepted. Default [`RoundRobin`](Self::RoundRobin).
///
/// With I-DATA ([`interleaving`](crate::AssociationConfig::interleaving)) a stream is chosen for each chunk,
/// so that a large message delays other streams by one chunk. Otherwise it is chosen for each message, and a
/// message that has begun is finished first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Scheduling {
    /// One chunk (without I-DATA, one message) of each stream with data, in turn (SCTP_SS_RR, RFC 8260 §3.2).
    #[default]
    RoundRobin,
    /// As [`RoundRobin`](Self::RoundRobin), with new data of one stream only in each packet: a lost packet
    /// delays one stream (SCTP_SS_RR_PKT, RFC 8260 §3.3).
    RoundRobinPerPacket,
    /// The order in which messages were accepted (SCTP_SS_FCFS, RFC 8260 §3.1).
    FirstComeFirstServed,
    /// The stream with the highest priority that has data; streams of equal priority in turn (SCTP_SS_PRIO,
    /// RFC 8260 §3.4). A stream waits while any of higher priority has data.
    Priority,
    /// The same number of bytes for each stream with data (SCTP_SS_FC, RFC 8260 §3.5).
    FairBandwidth,
    /// Bytes in proportion to the priorities of the streams with data (SCTP_SS_WFQ, RFC 8260 §3.6): a stream
    /// with 512 gets twice as many as one with 256.
    WeightedFairQueueing,
}

/// The place of a stream in line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The rank; the lowest is served first. Depending on the scheduler: the turn in a round, the number of a
    /// message, or a start tag.
    pub(super) rank: u64,
    /// Whether its next chunk continues a message.
    pub(super) is_begun: bool,
}

/// The values from which the place of a stream is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// The number of the message that the stream sends or continues next.
    pub(super) arrival: u64,
    /// Whether its next chunk continues a message.
    pub(super) is_begun: bool,
    pub(super) priority: u16,
    /// The tag at which its last chunk or message ends.
    pub(super) finish: u64,
}

/// New data of the packet that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpenPacket {
    None,
    Empty,
    Of(u16),
}

/// The streams that have something to send, in the order of their turns.
///
/// A stream with something to send stores its [`Place`]. Each scheduler is a rule for ranks. The fair ones are
/// start-time fair queueing (Goyal 1997): a stream is served in the order of the tag at which its next chunk starts,
/// and the tag of the chunk in service is the virtual time, at which streams that were idle begin.
#[derive(Debug)]
pub(super) struct Scheduler {
    scheduling: Scheduling,
    turns: u64,
    virtual_time: u64,
    /// Streams that begin a message next.
    waiting: BTreeSet<(u64, u16)>,
    /// Streams that continue one.
    begun: BTreeSet<(u64, u16)>,
    packet: OpenPacket,
}

impl Scheduler {
    pub(super) const fn new(scheduling: Scheduling) -> Self {
        Self {
            scheduling,
            turns: 0,
            virtual_time: 0,
            waiting: BTreeSet::new(),
            begun: BTreeSet::new(),
            packet: OpenPacket::None,
        }
    }

    pub(super) const fn scheduling(&self) -> Scheduling {
        self.scheduling
    }

    /// The stream that sends next, and whether it continues a message.
    pub(super) fn first(&self) -> Option<(u16, bool)> {
        let first = match (self.begun.first(), self.waiting.first()) {
            (Some(begun), Some(waiting)) if waiting < begun => (waiting.1, false),
            (Some(begun), _) => (begun.1, true),
            (None, waiting) => (waiting?.1, false),
        };
        Some(first)
    }

    /// The streams that continue a message, in the order of their turns.
    pub(super) fn begun(&self) -> impl Iterator<Item = u16> {
        self.begun.iter().map(|&(_, stream)| stream)
    }

    /// The only stream that may put new data into the packet being written, with a round robin per packet;
    /// else `None`.
    pub(super) const fn only(&self) -> Option<u16> {
        match self.packet {
            OpenPacket::Of(stream) => Some(stream),
            OpenPacket::None | OpenPacket::Empty => None,
        }
    }

    pub(super) fn begin_packet(&mut self) {
        if self.scheduling == Scheduling::RoundRobinPerPacket {
            self.packet = OpenPacket::Empty;
        }
    }

    /// Called when the packet being written contains new data of `stream`.
    pub(super) fn on_sent(&mut self, stream: u16) {
        if self.packet != OpenPacket::None {
            self.packet = OpenPacket::Of(stream);
        }
    }

    /// Called when a packet is complete. With a round robin per packet, returns the stream whose data it carries, whose
    /// turn has ended; otherwise `None`.
    pub(super) const fn end_packet(&mut self) -> Option<u16> {
        let stream = self.only();
        self.packet = OpenPacket::None;
        stream
    }

    /// Puts a stream in line.
    pub(super) fn enter(&mut self, stream: u16, claim: Claim) -> Place {
        let rank = match self.scheduling {
            Scheduling::FirstComeFirstServed => claim.arrival,
            Scheduling::FairBandwidth | Scheduling::WeightedFairQueueing => {
                claim.finish.max(self.virtual_time)
            }
            Scheduling::RoundRobin | Scheduling::RoundRobinPerPacket => self.next_turn(),
            Scheduling::Priority => {
                u64::from(u16::MAX - claim.priority) << TURN_BITS | self.next_turn()
            }
        };
        self.insert(stream, Place { rank, is_begun: claim.is_begun })
    }

    const fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn insert(&mut self, stream: u16, place: Place) -> Place {
        let line = if place.is_begun { &mut self.begun } else { &mut self.waiting };
        line.insert((place.rank, stream));
        place
    }

    /// Called when the stream at `place` has had its turn; returns its new place if it has more to send.
    pub(super) fn on_served(
        &mut self,
        stream: u16,
        place: Place,
        next: Option<Claim>,
    ) -> Option<Place> {
        self.virtual_time = self.virtual_time.max(place.rank);
        // The only stream in line keeps its rank, since the next one joins behind it in any case. With a turn per
        // packet, a stream keeps its turn until the packet is complete.
        let is_alone = self.waiting.len() + self.begun.len() == 1;
        let keeps_turn = match self.scheduling {
            Scheduling::RoundRobin => is_alone,
            Scheduling::RoundRobinPerPacket => is_alone || self.packet != OpenPacket::None,
            _ => false,
        };
        if keeps_turn && let Some(claim) = next {
            return Some(self.move_to_line(stream, place, claim.is_begun));
        }
        self.leave(stream, place);
        next.map(|claim| self.enter(stream, claim))
    }

    /// Gives a stream its place among those that begin a message, or continue one, with its rank.
    fn move_to_line(&mut self, stream: u16, place: Place, is_begun: bool) -> Place {
        if place.is_begun == is_begun {
            return place;
        }
        self.leave(stream, place);
        self.insert(stream, Place { is_begun, ..place })
    }

    /// Takes a stream out of the line.
    pub(super) fn leave(&mut self, stream: u16, place: Place) {
        let line = if place.is_begun { &mut self.begun } else { &mut self.waiting };
        line.remove(&(place.rank, stream));
    }

    /// Called when the next message of a waiting stream was removed without being sent; returns the stream's new place.
    pub(super) fn on_oldest_gone(&mut self, stream: u16, place: Place, claim: Claim) -> Place {
        match self.scheduling {
            Scheduling::FirstComeFirstServed => {
                self.leave(stream, place);
                self.enter(stream, claim)
            }
            _ => self.move_to_line(stream, place, claim.is_begun), // The turn was not used.
        }
    }

    /// The tag at which `bytes` of the stream at `place` end.
    pub(super) fn finish(&self, place: Place, bytes: usize, priority: u16) -> u64 {
        let weight = match self.scheduling {
            Scheduling::WeightedFairQueueing => priority.max(1),
            _ => 1,
        };
        place.rank.saturating_add(bytes as u64 * TAG_PER_BYTE / u64::from(weight))
    }

    /// Schedules by another rule from now on. All places returned before become invalid, and no stream is waiting.
    pub(super) fn restart(&mut self, scheduling: Scheduling) {
        *self = Self::new(scheduling);
    }
}
