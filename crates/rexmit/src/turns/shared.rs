//! State shared by the handles and the driver of an endpoint.

use std::sync::{Arc, Mutex, MutexGuard};

use rexmit_core::Instant;
use tokio::sync::Notify;

use super::{Served, Wakes as _};
use crate::clock;

/// The locked state, and the notification for tasks that wait for an event of the endpoint.
pub(crate) struct Shared<S> {
    state: Mutex<S>,
    /// Notified when there is a connection to accept, and at the end.
    pub(crate) changed: Arc<Notify>,
}

impl<S: Served> Shared<S> {
    /// Several may have the notification `changed` in common.
    pub(crate) fn new(state: S, changed: Arc<Notify>) -> Self {
        Self { state: Mutex::new(state), changed }
    }

    /// Takes a turn: runs `act`, sends the packets that are due after it, and wakes the tasks concerned.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut S, Instant) -> R) -> R {
        self.take_turn(|state, now| {
            let result = act(state, now);
            (result, state.settle(now))
        })
    }

    /// Takes a turn whose packets may be left to the driver: `act` returns the tasks to wake.
    pub(crate) fn take_turn<R>(&self, act: impl FnOnce(&mut S, Instant) -> (R, S::Wakes)) -> R {
        let mut state = self.lock();
        // Read under the lock, so that time never goes back between turns.
        let (result, wakes) = act(&mut state, clock::now());
        drop(state);
        wakes.wake(&self.changed);
        result
    }

    /// As [`with`](Self::with), for destructors: does nothing after a panic under the lock.
    pub(crate) fn with_on_drop(&self, act: impl FnOnce(&mut S, Instant)) {
        if !self.state.is_poisoned() {
            self.with(act);
        }
    }

    /// The state, for reading only.
    ///
    /// # Panics
    /// After a panic under the lock, because the state may be inconsistent.
    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        self.state.lock().expect("the endpoint panicked before")
    }
}
