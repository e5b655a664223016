//! Problems of a scenario.

use std::fmt::Display;

use thiserror::Error;

/// A problem of a scenario, with its position.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{path}: {what}")]
pub struct Problem {
    /// The dotted name of the field: `thin.game.traffic`.
    pub path: String,
    /// The problem and the expected values.
    pub what: String,
}

impl Problem {
    /// The problem `what` at `path`.
    pub(super) fn of(path: &str, what: impl Display) -> Self {
        Self { path: path.to_owned(), what: what.to_string() }
    }
}

/// Collects problems.
#[derive(Debug, Default)]
pub(super) struct Problems {
    pub(super) found: Vec<Problem>,
    place: String,
}

impl Problems {
    /// Sets the table to which fields belong from now on.
    pub(super) fn set_place(&mut self, place: String) {
        self.place = place;
    }

    /// The problem `what` at `field`, which may be empty.
    pub(super) fn add(&mut self, field: &str, what: impl Display) {
        self.push(Problem::of(field, what));
    }

    /// Adds a problem whose path is relative to the current table.
    pub(super) fn push(&mut self, problem: Problem) {
        let parts = [self.place.as_str(), problem.path.as_str()];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let problem = Problem { path: parts.join("."), what: problem.what };
        if !self.found.contains(&problem) {
            self.found.push(problem);
        }
    }

    /// Adds the error of `result`, if it is one, as a problem of `field`.
    pub(super) fn check<T, E: Display>(&mut self, field: &str, result: Result<T, E>) {
        if let Err(error) = result {
            self.add(field, error);
        }
    }

    /// As [`check`](Self::check), for the two ends of a connection; an error of both ends is
    /// reported for the flow.
    pub(super) fn check_ends<E: Display + PartialEq>(
        &mut self,
        sender: Result<(), E>,
        receiver: Result<(), E>,
    ) {
        if sender != receiver {
            self.check("receiver", receiver);
        }
        self.check("", sender);
    }

    /// The number of problems.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    pub(super) fn into_first(self) -> Option<Problem> {
        self.found.into_iter().next()
    }
}
