//! The order of the runs.

use std::collections::VecDeque;

use crate::{RunDocument, RunKey};

/// A run to be executed.
#[derive(Debug)]
pub(super) struct Job<'d> {
    pub(super) key: RunKey,
    pub(super) document: &'d RunDocument,
    /// The relative duration of the run.
    pub(super) weight: f64,
    /// Whether another process was executing the job when it was tried here.
    pub(super) is_elsewhere: bool,
}

impl<'d> Job<'d> {
    pub(super) fn new(document: &'d RunDocument, weight: f64) -> Self {
        Self { key: document.key(), document, weight, is_elsewhere: false }
    }
}

/// Runs to be executed: in descending order of weight, with runs of other processes last.
#[derive(Debug)]
pub(super) struct Queue<'d> {
    jobs: VecDeque<Job<'d>>,
}

impl<'d> Queue<'d> {
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn new(mut jobs: Vec<Job<'d>>) -> Self {
        // Among equal weights by key, so that the order does not depend on the thread that found a job.
        jobs.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.key.cmp(&b.key)));
        Self { jobs: jobs.into() }
    }

    pub(super) fn next(&mut self) -> Option<Job<'d>> {
        self.jobs.pop_front()
    }

    /// Moves a job that another process executes to the end.
    pub(super) fn put_back(&mut self, job: Job<'d>) {
        self.jobs.push_back(Job { is_elsewhere: true, ..job });
    }

    pub(super) fn clear(&mut self) {
        self.jobs.clear();
    }
}
