//! What the handles and the driver of an endpoint share.

use std::sync::{Mutex, MutexGuard};

use rexmit_core::Instant;
use rexmit_sctp::{AssociationId, MessageId, OutboundMessage, SendError};
use tokio::sync::Notify;

use super::state::State;
use crate::clock;

/// The lock, and the waiting room of the endpoint.
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Something to accept, or the end.
    pub(crate) changed: Notify,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// Takes a turn: does `act`, sends what it made due, wakes up whom it concerns.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut state = self.lock();
        // Read under the lock, so that time never goes back between turns.
        let now = clock::now();
        let result = act(&mut state, now);
        let wakes = state.settle(now);
        drop(state);
        wakes.wake(self);
        result
    }

    /// Takes a turn to send a message, which may be left to the driver.
    pub(crate) fn send(
        &self,
        id: AssociationId,
        message: OutboundMessage,
    ) -> Result<MessageId, SendError> {
        let mut state = self.lock();
        let (result, wakes) = state.send(clock::now(), id, message);
        drop(state);
        wakes.wake(self);
        result
    }

    /// As [`with`](Self::with), for destructors: does nothing after a panic under the lock.
    pub(crate) fn with_on_drop(&self, act: impl FnOnce(&mut State, Instant)) {
        if !self.state.is_poisoned() {
            self.with(act);
        }
    }

    /// The state, to look at only.
    ///
    /// # Panics
    /// After a panic under the lock: the state is not to be trusted any more.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("the endpoint panicked before")
    }
}
