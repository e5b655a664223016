//! Whose message goes next: stream schedulers by whole messages (RFC 8260 §3).

use std::collections::BTreeSet;

/// The order in which messages of different streams are sent. Within a stream it is always the
/// order in which they were accepted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scheduling {
    /// One message of each stream that has any, in turn (SCTP_SS_RR, RFC 8260 §3.2): a stream with
    /// much to send delays the others by one message at most.
    #[default]
    RoundRobin,
    /// The order in which messages were accepted (SCTP_SS_FCFS, RFC 8260 §3.1).
    FirstComeFirstServed,
}

/// The streams that have a message to begin, in the order of their turns.
///
/// A stream that is in line remembers its `rank`; the lowest rank is served first. Both schedulers
/// are a rule for ranks: that of the stream's oldest message, or the next turn of the ring.
#[derive(Debug)]
pub(super) struct Scheduler {
    scheduling: Scheduling,
    turns: u64,
    line: BTreeSet<(u64, u16)>,
}

impl Scheduler {
    pub(super) const fn new(scheduling: Scheduling) -> Self {
        Self { scheduling, turns: 0, line: BTreeSet::new() }
    }

    /// The stream whose turn it is.
    pub(super) fn first(&self) -> Option<u16> {
        self.line.first().map(|&(_, stream)| stream)
    }

    /// Puts a stream in line and returns its rank. `arrival` is the number of its oldest message.
    pub(super) fn enter(&mut self, stream: u16, arrival: u64) -> u64 {
        let rank = match self.scheduling {
            Scheduling::RoundRobin => {
                self.turns += 1;
                self.turns
            }
            Scheduling::FirstComeFirstServed => arrival,
        };
        self.line.insert((rank, stream));
        rank
    }

    /// The stream with `rank` had its turn; returns its new rank if it has another message, whose
    /// number is `next_arrival`.
    pub(super) fn on_served(
        &mut self,
        stream: u16,
        rank: u64,
        next_arrival: Option<u64>,
    ) -> Option<u64> {
        // Alone in the ring: the next stream is behind it, at either rank.
        let is_alone = self.scheduling == Scheduling::RoundRobin && self.line.len() == 1;
        if is_alone && next_arrival.is_some() {
            return Some(rank);
        }
        self.leave(stream, rank);
        next_arrival.map(|arrival| self.enter(stream, arrival))
    }

    /// Takes a stream out of the line.
    pub(super) fn leave(&mut self, stream: u16, rank: u64) {
        self.line.remove(&(rank, stream));
    }

    /// Returns the new rank of a stream in line whose oldest message vanished without being sent.
    pub(super) fn on_oldest_gone(&mut self, stream: u16, rank: u64, arrival: u64) -> u64 {
        match self.scheduling {
            Scheduling::RoundRobin => rank, // The turn was not used.
            Scheduling::FirstComeFirstServed => {
                self.leave(stream, rank);
                self.enter(stream, arrival)
            }
        }
    }

    /// Empties the line; every rank given out is void.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}
