//! Deadlines that cannot be met, of which the application hears once.

use std::time::Duration;

use rexmit_core::Instant;

use super::config::Deadline;

/// A deadline is reported as infeasible if at best so many times as many messages are late as may be.
const TOLERANCE: f64 = 1.25;
/// The time after which a deadline that could not be met is reported again.
const FEASIBLE_AGAIN: Duration = Duration::from_secs(10);
/// Different deadlines of which it is remembered that they could not be met; the latest ones count.
pub(super) const MAX_INFEASIBLE: usize = 8;

/// The deadlines that could not be met lately.
#[derive(Debug, Default)]
pub(super) struct Infeasible {
    /// Each with the last time, the latest at the end.
    lately: Vec<(Deadline, Instant)>,
    /// The probability that is possible instead, until it is reported.
    achievable: Option<f64>,
}

impl Infeasible {
    /// Of messages with this deadline the share `least` is late at best.
    pub(super) fn judge(&mut self, now: Instant, deadline: Deadline, least: f64) {
        let known = self.lately.iter().position(|(it, _)| *it == deadline);
        let last = known.map(|place| self.lately[place].1);
        let was_infeasible = last.is_some_and(|last| now - last < FEASIBLE_AGAIN);
        let may_be = if was_infeasible { 1.0 } else { TOLERANCE } * deadline.late();
        if least <= may_be {
            return;
        }
        if let Some(place) = known {
            self.lately.remove(place);
        } else if self.lately.len() == MAX_INFEASIBLE {
            self.lately.remove(0);
        }
        self.lately.push((deadline, now));
        if !was_infeasible {
            self.achievable = Some(1.0 - least.min(1.0));
        }
    }

    /// The probability with which the latest deadline can be met that is to be reported: once.
    pub(super) fn take(&mut self) -> Option<f64> {
        self.achievable.take()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lately.len()
    }
}
