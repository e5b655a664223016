//! Whether a path works, as far as is known (RFC 9260 §5.4, §8.2; RFC 7829 §3.2).

use serde::{Deserialize, Serialize};

/// The state of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathState {
    /// The peer has not proved to be there: no data (RFC 9260 §5.4).
    Unconfirmed,
    /// It works.
    Active,
    /// It may have failed: no data while another path is active (RFC 7829 §3.1).
    PotentiallyFailed,
    /// It does not work (RFC 9260 §8.2).
    Inactive,
    /// It is no more: one of its addresses was deleted (RFC 5061). Its number may be given to another.
    Removed,
}

/// How many errors in a row make a path fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailureLimits {
    /// PotentiallyFailed.Max.Retrans (RFC 7829 §3.2); `None` leaves the state out.
    pub potentially_failed: Option<u32>,
    /// Path.Max.Retrans (RFC 9260 §8.2).
    pub inactive: u32,
}

impl FailureLimits {
    /// Errors are counted up to here. They go on beyond the limit, so that of paths that are all
    /// inactive the one can be told that worked last (RFC 7829 §4.1 rule 3).
    const fn most(self) -> u32 {
        self.inactive.saturating_add(1).saturating_mul(10)
    }
}

/// The state of a path, and the errors behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    is_confirmed: bool,
    failure: Failure,
    errors: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    None,
    Potential,
    Certain,
    Removed,
}

impl Reach {
    /// A path of which nothing is known.
    pub const UNCONFIRMED: Self = Self { is_confirmed: false, failure: Failure::None, errors: 0 };
    /// A path that works.
    pub const ACTIVE: Self = Self { is_confirmed: true, ..Self::UNCONFIRMED };

    /// A path that is no more.
    pub(crate) const REMOVED: Self = Self { failure: Failure::Removed, ..Self::UNCONFIRMED };

    /// Its state.
    #[must_use]
    pub const fn state(self) -> PathState {
        match (self.is_confirmed, self.failure) {
            (_, Failure::Removed) => PathState::Removed,
            (false, _) => PathState::Unconfirmed,
            (true, Failure::None) => PathState::Active,
            (true, Failure::Potential) => PathState::PotentiallyFailed,
            (true, Failure::Certain) => PathState::Inactive,
        }
    }

    /// Whether the peer has proved to be there, whatever happened since.
    pub(crate) const fn is_confirmed(self) -> bool {
        self.is_confirmed
    }

    /// Timeouts and unanswered probes in a row.
    #[must_use]
    pub const fn errors(self) -> u32 {
        self.errors
    }

    /// Whether there were too many errors, confirmed or not.
    #[must_use]
    pub const fn has_failed(self) -> bool {
        matches!(self.failure, Failure::Certain)
    }

    /// Something that was sent over it was not answered in time.
    pub(crate) fn on_error(&mut self, limits: FailureLimits) {
        if self.failure == Failure::Removed {
            return;
        }
        self.errors = (self.errors + 1).min(limits.most());
        if self.errors > limits.inactive {
            self.failure = Failure::Certain;
        } else if self.failure == Failure::None
            && limits.potentially_failed.is_some_and(|limit| self.errors > limit)
        {
            self.failure = Failure::Potential;
        }
    }

    /// Something was answered that was sent over this path, and if it `is_certain`, over no other
    /// (RFC 7829 §3.2 rules 9 and 10).
    pub(crate) fn on_answer(&mut self, is_certain: bool) {
        let is_revived = is_certain && self.failure != Failure::Removed;
        if is_revived || self.failure == Failure::None {
            *self = Self { is_confirmed: self.is_confirmed, ..Self::UNCONFIRMED };
        }
    }

    /// A probe with a random number in it was answered: the peer is there (RFC 9260 §5.4).
    pub(crate) fn on_probe_answered(&mut self) {
        if self.failure != Failure::Removed {
            *self = Self::ACTIVE;
        }
    }

    #[cfg(test)]
    pub(crate) fn of(state: PathState, errors: u32) -> Self {
        let failure = match state {
            PathState::Unconfirmed | PathState::Active => Failure::None,
            PathState::PotentiallyFailed => Failure::Potential,
            PathState::Inactive => Failure::Certain,
            PathState::Removed => Failure::Removed,
        };
        Self { is_confirmed: state != PathState::Unconfirmed, failure, errors }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: FailureLimits = FailureLimits { potentially_failed: None, inactive: 5 };

    fn after_errors(errors: u32, limits: FailureLimits) -> Reach {
        let mut reach = Reach::ACTIVE;
        (0..errors).for_each(|_| reach.on_error(limits));
        reach
    }

    #[test]
    fn a_path_is_inactive_beyond_path_max_retrans() {
        assert_eq!(after_errors(5, LIMITS).state(), PathState::Active);
        assert_eq!(after_errors(6, LIMITS).state(), PathState::Inactive);
        assert_eq!(after_errors(6, LIMITS).errors(), 6);
    }

    #[test]
    fn errors_go_on_up_to_a_bound() {
        assert_eq!(after_errors(20, LIMITS).errors(), 20);
        assert_eq!(after_errors(1000, LIMITS).errors(), 60);
    }

    #[test]
    fn a_path_is_potentially_failed_between_the_limits() {
        let limits = |pfmr| FailureLimits { potentially_failed: Some(pfmr), ..LIMITS };
        let state = |errors, pfmr| after_errors(errors, limits(pfmr)).state();
        assert_eq!(state(1, 0), PathState::PotentiallyFailed);
        assert_eq!(state(5, 0), PathState::PotentiallyFailed);
        assert_eq!(state(6, 0), PathState::Inactive);
        assert_eq!(state(2, 2), PathState::Active);
        assert_eq!(state(3, 2), PathState::PotentiallyFailed);
        // At Path.Max.Retrans or above there is no such state.
        assert_eq!([5, 6].map(|errors| state(errors, 5)), [PathState::Active, PathState::Inactive]);
    }

    #[test]
    fn an_ambiguous_answer_revives_no_failed_path() {
        for (errors, is_certain, left) in [(3, false, 0), (6, false, 6), (3, true, 0), (6, true, 0)]
        {
            let mut reach = after_errors(errors, LIMITS);
            reach.on_answer(is_certain);
            assert_eq!(reach.errors(), left);
        }
    }

    #[test]
    fn a_removed_path_does_not_come_back() {
        let mut reach = Reach::REMOVED;
        reach.on_answer(true);
        reach.on_probe_answered();
        (0..20).for_each(|_| reach.on_error(LIMITS));
        assert_eq!((reach, reach.has_failed()), (Reach::REMOVED, false));
    }

    #[test]
    fn only_a_probe_confirms_a_path() {
        let mut reach = Reach::UNCONFIRMED;
        reach.on_answer(true);
        assert_eq!(reach.state(), PathState::Unconfirmed);
        (0..6).for_each(|_| reach.on_error(LIMITS));
        assert!(reach.has_failed());
        assert_eq!(reach.state(), PathState::Unconfirmed);
        reach.on_probe_answered();
        assert_eq!(reach, Reach::ACTIVE);
    }
}
