//! The connections of an endpoint, found by addresses and ports. The cost of an operation does not grow with the number
//! of other connections.

use std::collections::HashMap;

use rexmit_core::table::{Table, Timed};
use rexmit_core::{Instant, Seed};
use rexmit_recovery::Share;

use super::four_tuple::{FourTuple, SecretKey};
use crate::connection::{Connection, State};

/// A connection, with the endpoint's state of it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) connection: Box<Connection>,
    pub(super) tuple: FourTuple,
    /// Whether the table directs segments of `tuple` to this connection.
    pub(super) is_entered: bool,
    /// The listening port whose backlog it counts against.
    pub(super) half_open_at: Option<u16>,
    /// Whether the application got an event of the connection, or will get one.
    pub(super) is_announced: bool,
    pub(super) unanswered: Share,
}

impl Timed for Slot {
    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        self.connection.next_timeout()
    }
}

impl Slot {
    pub(super) fn new(connection: Connection, tuple: FourTuple) -> Self {
        Self {
            connection: Box::new(connection),
            tuple,
            is_entered: true,
            half_open_at: None,
            is_announced: false,
            unanswered: Share::default(),
        }
    }

    /// Whether the connection can be removed.
    pub(super) fn is_over(&self) -> bool {
        let is_handed_over = !self.is_entered && self.connection.state() == State::TimeWait;
        is_handed_over || self.connection.is_over()
    }
}

/// The table that finds the connections of an endpoint by addresses and ports.
#[derive(Debug)]
pub(super) struct Lookup {
    by_tuple: HashMap<FourTuple, u32, SecretKey>,
    /// The connection of the last segment: most segments belong to the same connection as the previous one.
    latest: u32,
}

impl Lookup {
    pub(super) fn new(seed: &Seed) -> Self {
        Self { by_tuple: HashMap::with_hasher(SecretKey::new(seed, "connection table")), latest: 0 }
    }

    pub(super) fn by_tuple(&self, tuple: &FourTuple) -> Option<u32> {
        self.by_tuple.get(tuple).copied()
    }

    /// As [`Self::by_tuple`], for a received segment; `table` has the connections.
    pub(super) fn of_segment(&mut self, table: &Table<Slot>, tuple: &FourTuple) -> Option<u32> {
        let is_its_own = |slot: &Slot| slot.is_entered && slot.tuple == *tuple;
        if table.get(self.latest).is_some_and(is_its_own) {
            return Some(self.latest);
        }
        self.latest = self.by_tuple(tuple)?;
        Some(self.latest)
    }

    /// Enters a new connection.
    pub(super) fn insert(&mut self, index: u32, slot: &Slot) {
        self.by_tuple.insert(slot.tuple, index);
    }

    /// Removes the addresses and ports of the connection from the table.
    pub(super) fn release(&mut self, slot: &mut Slot) {
        if std::mem::take(&mut slot.is_entered) {
            self.by_tuple.remove(&slot.tuple);
        }
    }
}
