//! The tasks that are woken once the lock is released.

use std::sync::Arc;
use std::task::Waker;

use smallvec::SmallVec;
use tokio::sync::Notify;

use super::entry::{Cell, Entry};
use crate::turns;

/// The condition that a task waits for.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    Readable,
    Writable,
    /// The beginning or the end of a connection, which all waiting tasks need.
    Change,
}

/// Wake-ups that are due.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    tasks: SmallVec<[Waker; 8]>,
    connections: SmallVec<[(Arc<Cell>, Waiting); 8]>,
    listeners: SmallVec<[Arc<Notify>; 2]>,
    stack: bool,
    pub(super) driver: Option<Waker>,
}

impl Wakes {
    /// Marks the connection as readable, and wakes the tasks that wait to read.
    pub(super) fn readable(&mut self, entry: &mut Entry) {
        entry.is_readable = true;
        self.tasks.extend(entry.reader.take());
        self.connections.push((Arc::clone(&entry.cell), Waiting::Readable));
    }

    /// Marks the connection as writable, and wakes the tasks that wait to write.
    pub(super) fn writable(&mut self, entry: &mut Entry) {
        entry.is_writable = true;
        self.tasks.extend(entry.writer.take());
        self.connections.push((Arc::clone(&entry.cell), Waiting::Writable));
    }

    /// Called when the connection was established or has ended: wakes all its tasks.
    pub(super) fn changed(&mut self, entry: &mut Entry) {
        self.tasks.extend(entry.reader.take());
        self.tasks.extend(entry.writer.take());
        self.connections.push((Arc::clone(&entry.cell), Waiting::Change));
    }

    /// Wakes a listener: a connection can be accepted, or none will come any more.
    pub(super) fn listener(&mut self, waiting: &Arc<Notify>) {
        self.listeners.push(Arc::clone(waiting));
    }

    /// Wakes the tasks that wait for the end of the stack.
    pub(super) fn stack(&mut self) {
        self.stack = true;
    }
}

impl turns::Wakes for Wakes {
    fn wake(self, changed: &Notify) {
        if let Some(driver) = self.driver {
            driver.wake();
        }
        self.tasks.into_iter().for_each(Waker::wake);
        for (cell, waiting) in self.connections {
            match waiting {
                Waiting::Readable => cell.readable.notify_waiters(),
                Waiting::Writable => cell.writable.notify_waiters(),
                Waiting::Change => {
                    for waiting in [&cell.readable, &cell.writable, &cell.changed] {
                        waiting.notify_waiters();
                    }
                }
            }
        }
        self.listeners.iter().for_each(|listener| listener.notify_waiters());
        if self.stack {
            changed.notify_waiters();
        }
    }
}
