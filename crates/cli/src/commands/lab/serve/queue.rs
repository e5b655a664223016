//! The order of questions: one is run at a time, on all cores, and few wait.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most questions that run or wait; further ones are refused.
pub(super) const MAX_QUESTIONS: usize = 16;

/// The queue: its places, and the right to run of one question at a time.
#[derive(Clone)]
pub(super) struct Queue {
    places: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// A place in the queue, until it is dropped.
pub(super) struct Place {
    turn: Arc<Semaphore>,
    _place: OwnedSemaphorePermit,
}

/// The right to run, until it is dropped.
pub(super) struct Turn {
    _turn: OwnedSemaphorePermit,
    _place: Place,
}

impl Queue {
    pub(super) fn new() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { places: semaphore(MAX_QUESTIONS), turn: semaphore(1) }
    }

    /// A place, or `None` if all are taken.
    pub(super) fn enter(&self) -> Option<Place> {
        let _place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        Some(Place { turn: Arc::clone(&self.turn), _place })
    }
}

impl Place {
    /// Whether the question would have to wait now.
    pub(super) fn waits(&self) -> bool {
        self.turn.available_permits() == 0
    }

    /// Waits for the right to run, which is granted in the order of the calls.
    pub(super) async fn turn(self) -> Turn {
        let turn = Arc::clone(&self.turn).acquire_owned().await;
        Turn { _turn: turn.expect("the semaphore is never closed"), _place: self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runs_a_few_wait_and_others_are_refused() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let queue = Queue::new();
            let first = queue.enter().unwrap();
            assert!(!first.waits());
            let first = first.turn().await;
            let mut others: Vec<Place> = (1..MAX_QUESTIONS).map_while(|_| queue.enter()).collect();
            assert_eq!(others.len(), MAX_QUESTIONS - 1);
            assert!(queue.enter().is_none());
            // One that is left waits no longer.
            drop(others.pop());
            let second = queue.enter().unwrap();
            assert!(second.waits());
            let second = tokio::spawn(second.turn());
            tokio::task::yield_now().await;
            assert!(!second.is_finished());
            drop(first);
            second.await.unwrap();
        });
    }
}
