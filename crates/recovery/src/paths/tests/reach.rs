use crate::paths::*;

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
fn an_ambiguous_ack_revives_no_failed_path() {
    for (errors, is_certain, left) in [(3, false, 0), (6, false, 6), (3, true, 0), (6, true, 0)] {
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
