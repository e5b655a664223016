//! The connections of an endpoint, found by id and by addresses and ports, and the order in which
//! their timers are due. No operation costs more for the connections it is not about.

use std::collections::{BTreeSet, HashMap, VecDeque};

use rexmit_core::{Instant, Seed};

use super::four_tuple::{FourTuple, SecretKey};
use super::id::ConnectionId;
use crate::connection::{Connection, State};

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: ConnectionId,
    pub(super) connection: Box<Connection>,
    pub(super) tuple: FourTuple,
    /// Whether segments for `tuple` are this connection's.
    pub(super) is_entered: bool,
    /// The listening port whose backlog it counts against.
    pub(super) half_open_at: Option<u16>,
    /// Whether the application has heard, or will hear, of it.
    pub(super) is_announced: bool,
    /// Whether the last event was taken by the application.
    pub(super) is_closed_told: bool,
    /// Whether it stands in `ready`.
    is_ready: bool,
    /// When it stands in `deadlines`: not later than its earliest timer.
    scheduled: Option<Instant>,
}

impl Slot {
    /// Whether it is unused.
    fn is_done(&self) -> bool {
        let is_handed_over = !self.is_entered && self.connection.state() == State::TimeWait;
        (self.is_closed_told || !self.is_announced) && (is_handed_over || self.connection.is_over())
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Option<Slot>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    by_tuple: HashMap<FourTuple, u32, SecretKey>,
    /// The connection of the last segment: most segments are for the same one as the one before.
    latest: u32,
    deadlines: BTreeSet<(Instant, u32)>,
    /// May name connections that are gone: taking them out of the middle would take time.
    ready: VecDeque<ConnectionId>,
    len: usize,
}

impl Table {
    pub(super) fn new(seed: &Seed) -> Self {
        Self {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            by_tuple: HashMap::with_hasher(SecretKey::new(seed, "connection table")),
            latest: 0,
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The id that the next connection gets.
    pub(super) fn next_id(&self) -> ConnectionId {
        let fresh = || u32::try_from(self.slots.len()).expect("max_connections is below 2³²");
        let index = self.free.last().copied().unwrap_or_else(fresh);
        let generation = self.generations.get(index as usize).copied().unwrap_or(0);
        ConnectionId::new(index, generation)
    }

    /// Enters a connection, made for [`Self::next_id`].
    pub(super) fn insert(&mut self, connection: Connection, tuple: FourTuple) -> &mut Slot {
        let id = self.next_id();
        if self.free.pop().is_none() {
            self.slots.push(None);
            self.generations.push(0);
        }
        self.by_tuple.insert(tuple, id.index());
        self.len += 1;
        self.slots[id.index() as usize].insert(Slot {
            id,
            connection: Box::new(connection),
            tuple,
            is_entered: true,
            half_open_at: None,
            is_announced: false,
            is_closed_told: false,
            is_ready: false,
            scheduled: None,
        })
    }

    pub(super) fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)?.as_ref()
    }

    pub(super) fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// The slot of `id`, if the connection is still there.
    pub(super) fn find(&self, id: ConnectionId) -> Option<&Slot> {
        self.slot(id.index()).filter(|slot| slot.id == id)
    }

    pub(super) fn by_tuple(&self, tuple: &FourTuple) -> Option<u32> {
        self.by_tuple.get(tuple).copied()
    }

    /// As [`Self::by_tuple`], for a segment that arrived.
    pub(super) fn of_segment(&mut self, tuple: &FourTuple) -> Option<u32> {
        let is_its_own = |slot: &Slot| slot.is_entered && slot.tuple == *tuple;
        if self.slot(self.latest).is_some_and(is_its_own) {
            return Some(self.latest);
        }
        self.latest = self.by_tuple(tuple)?;
        Some(self.latest)
    }

    /// Every connection, in the order of their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten()
    }

    /// The connection `index` was called: it may have something to send, and another deadline.
    pub(super) fn update(&mut self, index: u32) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(index as usize)?.as_mut()?;
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(slot.id);
        }
        let next = slot.connection.next_timeout();
        // A deadline that moved away stays: finding nothing due then is cheaper than moving it
        // with every segment.
        if next.is_some_and(|next| slot.scheduled.is_none_or(|at| next < at)) {
            if let Some(at) = slot.scheduled.take() {
                self.deadlines.remove(&(at, index));
            }
            slot.scheduled = next;
            self.deadlines.extend(next.map(|at| (at, index)));
        }
        Some(slot)
    }

    /// Segments for the addresses and ports of the connection `index` are no longer its own.
    pub(super) fn release_tuple(&mut self, index: u32) {
        if let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_mut)
            && std::mem::take(&mut slot.is_entered)
        {
            self.by_tuple.remove(&slot.tuple);
        }
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Takes a connection whose deadline has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, index) = self.deadlines.first().filter(|&&(at, _)| at <= now)?;
        self.deadlines.remove(&(at, index));
        if let Some(slot) = self.slot_mut(index) {
            slot.scheduled = None;
        }
        Some(index)
    }

    /// A connection that may have something to send; it stays so until
    /// [`Self::has_nothing_to_send`].
    pub(super) fn first_ready(&mut self) -> Option<u32> {
        loop {
            let id = *self.ready.front()?;
            if self.find(id).is_some() {
                return Some(id.index());
            }
            self.ready.pop_front();
        }
    }

    /// The first ready connection has sent a segment: the others come before its next.
    pub(super) fn rotate_ready(&mut self) {
        if self.ready.len() > 1 {
            self.ready.rotate_left(1);
        }
    }

    /// The first ready connection has nothing (more) to send.
    pub(super) fn has_nothing_to_send(&mut self) {
        let Some(id) = self.ready.pop_front() else { return };
        if let Some(slot) = self.slot_mut(id.index()) {
            slot.is_ready = false;
        }
    }

    /// Removes the connection if it is over and the application was told.
    pub(super) fn remove_if_over(&mut self, index: u32) {
        if self.slot(index).is_some_and(Slot::is_done) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: u32) {
        self.release_tuple(index);
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::take) else { return };
        if let Some(at) = slot.scheduled {
            self.deadlines.remove(&(at, index));
        }
        self.generations[index as usize] = slot.id.generation().wrapping_add(1);
        self.free.push(index);
        self.len -= 1;
    }
}
