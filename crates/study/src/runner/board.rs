//! Progress of the runs, and an estimate of the remaining time.

use std::sync::Mutex;
use std::time::Duration;

use rexmit_core::Instant;

use super::locked;
use super::queue::Job;

/// The progress of the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Number of runs.
    pub runs: usize,
    /// Number of runs with a result, found or computed.
    pub done: usize,
    /// Number of failed runs.
    pub failed: usize,
    /// The estimated remaining time, from the durations of finished runs; `None` before the first.
    pub left: Option<Duration>,
}

/// Progress shared by the threads.
pub(super) struct Board<'a> {
    state: Mutex<State>,
    now: fn() -> Instant,
    watch: &'a (dyn Fn(&Progress) + Sync),
}

struct State {
    progress: Progress,
    /// The total weight of runs that are neither done nor failed.
    left: f64,
    /// The total weight of runs executed here.
    run: f64,
    /// When the first run began.
    began: Option<Instant>,
}

impl<'a> Board<'a> {
    pub(super) fn new(
        jobs: &[Job<'_>],
        now: fn() -> Instant,
        watch: &'a (dyn Fn(&Progress) + Sync),
    ) -> Self {
        let progress = Progress { runs: jobs.len(), ..Progress::default() };
        let left = jobs.iter().map(|job| job.weight).sum();
        Self { state: Mutex::new(State { progress, left, run: 0.0, began: None }), now, watch }
    }

    pub(super) fn progress(&self) -> Progress {
        locked(&self.state).progress
    }

    /// Records that a result was found in the store.
    pub(super) fn on_found(&self, job: &Job<'_>) {
        self.tell(|state| {
            state.progress.done += 1;
            state.left -= job.weight;
        });
    }

    /// Records that execution begins.
    pub(super) fn on_begin(&self) {
        self.tell(|state| state.began = Some((self.now)()));
    }

    /// Records that a run was executed.
    pub(super) fn on_done(&self, job: &Job<'_>) {
        self.tell(|state| {
            state.progress.done += 1;
            state.on_end(job.weight, (self.now)());
        });
    }

    /// Records that a run failed.
    pub(super) fn on_failed(&self, job: &Job<'_>) {
        self.tell(|state| {
            state.progress.failed += 1;
            state.on_end(job.weight, (self.now)());
        });
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        let mut state = locked(&self.state);
        change(&mut state);
        (self.watch)(&state.progress);
    }
}

impl State {
    fn on_end(&mut self, weight: f64, now: Instant) {
        self.left -= weight;
        self.run += weight;
        let taken = self.began.map(|began| (now - began).as_secs_f64());
        let left = taken.map(|taken| taken * self.left.max(0.0) / self.run);
        self.progress.left = left.and_then(|left| Duration::try_from_secs_f64(left).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_estimated_by_weight() {
        let began = Instant::ZERO + Duration::from_secs(5);
        let progress = Progress::default();
        let mut state = State { progress, left: 100.0, run: 0.0, began: Some(began) };
        state.on_end(10.0, began + Duration::from_secs(20));
        assert_eq!(state.progress.left, Some(Duration::from_secs(180)));
        state.on_end(30.0, began + Duration::from_secs(60));
        assert_eq!(state.progress.left, Some(Duration::from_secs(90)));
        state.on_end(60.0, began + Duration::from_secs(90));
        assert_eq!(state.progress.left, Some(Duration::ZERO));
    }

    #[test]
    fn runs_of_no_weight_are_no_division_by_zero() {
        let progress = Progress::default();
        let mut state = State { progress, left: 0.0, run: 0.0, began: Some(Instant::ZERO) };
        state.on_end(0.0, Instant::ZERO + Duration::from_secs(1));
        assert_eq!(state.progress.left, None);
    }
}
