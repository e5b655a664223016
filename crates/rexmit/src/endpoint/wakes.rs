//! The tasks that are woken once the lock is released, so that none of them has to wait for it.

use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::association::Cell;
use crate::turns;

/// The condition that a task waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiting {
    /// A message, or the end.
    Readable,
    /// Room for a message, or the end of the association.
    Writable,
    /// An event that can be read.
    Event,
    /// The beginning or the end of the association; the end concerns all waiting tasks.
    Change,
}

/// Wake-ups that are due.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    associations: SmallVec<[(Arc<Cell>, Waiting); 8]>,
    endpoint: bool,
    pub(super) driver: Option<Waker>,
}

impl Wakes {
    pub(crate) fn association(&mut self, cell: &Arc<Cell>, waiting: Waiting) {
        self.associations.push((Arc::clone(cell), waiting));
    }

    /// Wakes the tasks that wait for the endpoint: to accept, or for its end.
    pub(crate) fn endpoint(&mut self) {
        self.endpoint = true;
    }
}

impl turns::Wakes for Wakes {
    fn wake(self, changed: &Notify) {
        if let Some(driver) = self.driver {
            driver.wake();
        }
        for (cell, waiting) in self.associations {
            match waiting {
                Waiting::Readable => cell.readable.notify_waiters(),
                Waiting::Writable => cell.writable.notify_waiters(),
                Waiting::Event => cell.event.notify_waiters(),
                Waiting::Change => cell.notify_everybody(),
            }
        }
        if self.endpoint {
            changed.notify_waiters();
        }
    }
}
