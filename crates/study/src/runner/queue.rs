//! Which run is next.

use std::collections::VecDeque;

use crate::{RunDocument, RunKey};

/// A run that is asked for.
#[derive(Debug)]
pub(super) struct Job<'d> {
    pub(super) key: RunKey,
    pub(super) document: &'d RunDocument,
    /// How long it takes, compared with others.
    pub(super) weight: f64,
    /// Whether another process was running it when its turn came.
    pub(super) is_elsewhere: bool,
}

impl<'d> Job<'d> {
    pub(super) fn new(document: &'d RunDocument, weight: f64) -> Self {
        Self { key: document.key(), document, weight, is_elsewhere: false }
    }
}

/// Runs that are to be done: the heaviest first, and jobs of other processes when nothing else is
/// left.
#[derive(Debug)]
pub(super) struct Queue<'d> {
    jobs: VecDeque<Job<'d>>,
}

impl<'d> Queue<'d> {
    pub(super) fn new(mut jobs: Vec<Job<'d>>) -> Self {
        // By key among equals, whatever thread has found them to be missing.
        jobs.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.key.cmp(&b.key)));
        Self { jobs: jobs.into() }
    }

    pub(super) fn next(&mut self) -> Option<Job<'d>> {
        self.jobs.pop_front()
    }

    /// Puts a job that another process runs to the end.
    pub(super) fn put_back(&mut self, job: Job<'d>) {
        self.jobs.push_back(Job { is_elsewhere: true, ..job });
    }

    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }
}
