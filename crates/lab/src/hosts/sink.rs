//! Receives everything.

use std::time::Duration;

use rexmit_core::Instant;
use rustc_hash::FxHashMap;

use super::content;
use super::goodput::Goodput;
use super::running::Program;
use super::transport::{ConnectionEvent, ReadResult, Transport};

/// Counts bytes as they arrive.
pub trait Counter: Send + 'static {
    /// Adds `bytes` that arrived at `now`.
    fn add(&mut self, now: Instant, bytes: u64);
}

impl Counter for Goodput {
    fn add(&mut self, now: Instant, bytes: u64) {
        Self::add(self, now, bytes);
    }
}

/// Receives the data of [`BulkSender`](super::BulkSender)s on any number of connections, verifies
/// its content, and counts it over time.
#[derive(Debug)]
pub struct Sink<T: Transport, C = Goodput> {
    /// Number of bytes received on each connection.
    open: FxHashMap<T::Id, u64>,
    goodput: C,
    accepted: u64,
    finished: u64,
    broken: u64,
    damaged: u64,
}

impl<T: Transport> Sink<T> {
    /// A sink with bins of length `bin`.
    #[must_use]
    pub fn new(bin: Duration) -> Self {
        Self::with_counter(Goodput::new(bin))
    }
}

impl<T: Transport, C: Counter> Sink<T, C> {
    /// A sink that counts bytes with `goodput`.
    #[must_use]
    pub fn with_counter(goodput: C) -> Self {
        Self {
            open: FxHashMap::default(),
            goodput,
            accepted: 0,
            finished: 0,
            broken: 0,
            damaged: 0,
        }
    }

    /// The bytes of all connections over time.
    #[must_use]
    pub fn goodput(&self) -> &C {
        &self.goodput
    }

    /// Number of connections established.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Number of connections that ended gracefully.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// Number of connections that failed.
    #[must_use]
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// Number of received pieces with wrong content. Not zero only if the transport is faulty or
    /// unordered.
    #[must_use]
    pub fn damaged_pieces(&self) -> u64 {
        self.damaged
    }
}

impl<T: Transport, C: Counter> Program<T> for Sink<T, C> {
    fn next_at(&self) -> Option<Instant> {
        None
    }

    fn on_time(&mut self, _: Instant, _: &mut T) {}

    fn on_event(&mut self, now: Instant, transport: &mut T, id: T::Id, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected { .. } => {
                self.accepted += 1;
                self.open.insert(id, 0);
            }
            ConnectionEvent::Readable => {
                let Self { open, goodput, damaged, .. } = self;
                let Some(offset) = open.get_mut(&id) else { return };
                let taken = transport.read(now, id, &mut |bytes| {
                    *damaged += u64::from(!content::is_at(*offset, bytes));
                    *offset += bytes.len() as u64;
                    goodput.add(now, bytes.len() as u64);
                });
                if taken == ReadResult::End {
                    transport.finish(now, id);
                }
            }
            ConnectionEvent::Writable | ConnectionEvent::Infeasible => {}
            ConnectionEvent::Closed { is_graceful } => {
                if self.open.remove(&id).is_some() {
                    *(if is_graceful { &mut self.finished } else { &mut self.broken }) += 1;
                }
            }
        }
    }
}
