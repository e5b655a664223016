//! Connections in TIME-WAIT (RFC 9293 §3.3.2, §3.10.7.4), stored in few bytes: enough to acknowledge the
//! peer's FIN again, and to distinguish a new SYN from an old one.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rexmit_core::serial::Serial;
use rexmit_core::{Instant, Seed};

use super::four_tuple::{FourTuple, SecretKey};
use super::listener::Listener;
use super::{Endpoint, Reply};
use crate::connection::{TimeWaitSeed, timestamp_clock};
use crate::wire::{Flags, Header, Options, Segment, Timestamps};

/// One connection.
#[derive(Debug)]
pub(super) struct TimeWait {
    seed: TimeWaitSeed,
    timestamp_offset: u32,
    /// Twice the maximum segment lifetime.
    life: Duration,
    until: Instant,
    /// The entry's key in `deadlines`, never later than `until`.
    scheduled: (Instant, u64),
}

/// The reply to a segment for a connection in TIME-WAIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Nothing,
    /// Send an ACK with the final sequence numbers.
    Acknowledge,
    /// The SYN begins a new connection, whose initial sequence number must be at least this.
    Reopen(u32),
}

/// The connections in TIME-WAIT. The cost of an operation does not grow with the number of connections that
/// it does not concern.
#[derive(Debug)]
pub(super) struct TimeWaits {
    entries: HashMap<FourTuple, TimeWait, SecretKey>,
    deadlines: BTreeMap<(Instant, u64), FourTuple>,
    /// Distinguishes entries with the same deadline.
    next_number: u64,
    max: usize,
}

impl TimeWaits {
    pub(super) fn new(seed: &Seed, max: usize) -> Self {
        Self {
            entries: HashMap::with_hasher(SecretKey::new(seed, "time-wait table")),
            deadlines: BTreeMap::new(),
            next_number: 0,
            max,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn contains(&self, tuple: &FourTuple) -> bool {
        self.entries.contains_key(tuple)
    }

    /// Adds a connection that has entered TIME-WAIT. Returns whether one was forgotten early: the oldest, if
    /// the table is full, or this one, if the table may have no entries.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        tuple: FourTuple,
        seed: TimeWaitSeed,
        timestamp_offset: u32,
    ) -> bool {
        if self.max == 0 {
            return true;
        }
        let is_full = self.entries.len() >= self.max;
        if is_full && let Some((_, oldest)) = self.deadlines.pop_first() {
            self.entries.remove(&oldest);
        }
        let scheduled = (seed.until, self.next_number);
        self.next_number += 1;
        let (life, until) = (seed.until - now, seed.until);
        self.deadlines.insert(scheduled, tuple);
        let entry = TimeWait { seed, timestamp_offset, life, until, scheduled };
        self.entries.insert(tuple, entry);
        is_full
    }

    pub(super) fn remove(&mut self, tuple: &FourTuple) {
        if let Some(entry) = self.entries.remove(tuple) {
            self.deadlines.remove(&entry.scheduled);
        }
    }

    /// When [`Self::expire`] is to be called.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Forgets connections whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(first) = self.deadlines.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, number), tuple) = first.remove_entry();
            match self.entries.get_mut(&tuple) {
                // It was restarted: its deadline is moved only now.
                Some(entry) if entry.until > now => {
                    entry.scheduled = (entry.until, number);
                    self.deadlines.insert(entry.scheduled, tuple);
                }
                _ => drop(self.entries.remove(&tuple)),
            }
        }
    }

    /// The reply to `segment`, with the ACK to send if that is the reply; `None` if no connection in TIME-WAIT has this
    /// tuple. `takes_timestamps`: whether a new connection would use timestamps.
    pub(super) fn on_segment(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        segment: &Segment<'_>,
        takes_timestamps: bool,
    ) -> Option<(Verdict, Header)> {
        let entry = self.entries.get_mut(tuple)?;
        Some((entry.on_segment(now, segment, takes_timestamps), entry.acknowledgement(now, tuple)))
    }
}

impl Endpoint {
    /// Replaces the connection `index` by a smaller entry, if it is in TIME-WAIT and has nothing else to do.
    pub(super) fn hand_over(&mut self, now: Instant, index: u32) {
        let Some((_, slot)) = self.table.get_mut(index) else { return };
        let Some(seed) = slot.connection.time_wait() else { return };
        let offset = slot.connection.identity().timestamp_offset;
        let was_full = self.time_waits.insert(now, slot.tuple, seed, offset);
        self.around.statistics.time_wait.evicted += u64::from(was_full);
        self.lookup.release(slot);
    }

    /// The reply to a segment for the connection of `tuple`, if that is in TIME-WAIT.
    pub(super) fn ask_time_wait(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        segment: &Segment<'_>,
    ) -> Option<(Verdict, Header)> {
        let listener = self.listeners.get(&tuple.local.1);
        let takes_timestamps = listener.is_some_and(Listener::takes_timestamps);
        self.time_waits.on_segment(now, tuple, segment, takes_timestamps)
    }

    /// Called when a segment arrived for a connection in TIME-WAIT.
    pub(super) fn on_time_wait(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        segment: &Segment<'_>,
        verdict: Verdict,
        header: Header,
    ) {
        let is_listening = self.listeners.contains_key(&tuple.local.1);
        match verdict {
            Verdict::Nothing => {}
            Verdict::Reopen(_) if is_listening && !self.has_room() => {
                self.around.statistics.refused_for_limit += 1;
            }
            Verdict::Reopen(floor) if is_listening => {
                self.time_waits.remove(tuple);
                self.around.statistics.time_wait.reopened += 1;
                self.accept(now, tuple, segment, Some(floor));
            }
            Verdict::Reopen(_) | Verdict::Acknowledge => {
                let may = self.time_wait_answers.grant(now, &mut self.around.rng);
                if self.answer(may, Reply { tuple: *tuple, header }) {
                    self.around.statistics.time_wait.acks_sent += 1;
                }
            }
        }
    }
}

impl TimeWait {
    fn on_segment(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        takes_timestamps: bool,
    ) -> Verdict {
        let header = &segment.header;
        let flags = header.flags;
        if flags.has(Flags::RST) {
            // Else an old RST could end the wait early (RFC 1337 §3).
            return Verdict::Nothing;
        }
        if flags.has(Flags::SYN) {
            let is_new =
                !flags.has(Flags::ACK) && self.is_of_new_connection(header, takes_timestamps);
            let after = self.seed.snd_nxt.wrapping_add(1);
            return if is_new { Verdict::Reopen(after) } else { Verdict::Acknowledge };
        }
        let end = header.sequence.wrapping_add(segment.sequence_len());
        if flags.has(Flags::FIN) && end == self.seed.rcv_nxt {
            // The peer has not got our last acknowledgement.
            self.until = now + self.life;
            return Verdict::Acknowledge;
        }
        let beyond = header.sequence.wrapping_sub(self.seed.rcv_nxt);
        let is_bare = segment.sequence_len() == 0;
        // As any unacceptable segment (RFC 9293 §3.10.7.4, first step); there is no more to accept.
        if is_bare && beyond <= u32::from(self.seed.window) {
            Verdict::Nothing
        } else {
            Verdict::Acknowledge
        }
    }

    /// Whether the SYN is later than everything of this connection (RFC 6191 §2).
    fn is_of_new_connection(&self, syn: &Header, takes_timestamps: bool) -> bool {
        let is_later = Serial(syn.sequence).is_after(Serial(self.seed.rcv_nxt));
        let offered = syn.options.timestamps.filter(|_| takes_timestamps);
        match (self.seed.ts_recent, offered) {
            (Some(recent), Some(stamps)) if stamps.value == recent => is_later,
            (Some(recent), Some(stamps)) => Serial(stamps.value).is_after(Serial(recent)),
            // Late segments of this connection would be dropped by the new one.
            (None, Some(_)) => true,
            (_, None) => is_later,
        }
    }

    fn acknowledgement(&self, now: Instant, tuple: &FourTuple) -> Header {
        let timestamps = self.seed.ts_recent.map(|echo_reply| Timestamps {
            value: timestamp_clock(now, self.timestamp_offset),
            echo_reply,
        });
        Header {
            source_port: tuple.local.1,
            destination_port: tuple.remote.1,
            sequence: self.seed.snd_nxt,
            acknowledgment: self.seed.rcv_nxt,
            flags: Flags::ACK,
            window: self.seed.window,
            urgent_pointer: 0,
            options: Options { timestamps, ..Options::default() },
        }
    }
}
