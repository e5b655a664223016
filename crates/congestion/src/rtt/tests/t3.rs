use crate::rtt::*;

#[test]
fn a_running_timer_has_one_deadline_if_both_are_the_same() {
    let [started_at, standard, thin] = [0, 1000, 300].map(Instant::from_millis);
    let mut t3 = T3::default();
    assert!(!t3.is_running() && t3.running().is_none());
    t3.start(RunningT3 { started_at, standard, thin });
    assert_eq!(t3.running().map(RunningT3::only), Some(None));
    t3.start(RunningT3 { started_at, standard, thin: standard });
    assert_eq!(t3.running().map(RunningT3::only), Some(Some(standard)));
    t3.stop();
    assert!(!t3.is_running());
}

/// Petlund 2009 §5.3: per unit, and only while thin.
#[test]
fn linear_timeouts_are_bounded_per_unit() {
    let expire = |t3: &mut T3, unit, is_thin| {
        let is_linear = t3.take_linear(unit, is_thin, NonZeroU8::new(2).expect("above zero"));
        t3.on_expired_over(unit);
        is_linear
    };
    let mut t3 = T3::default();
    assert_eq!([7, 7, 7, 7].map(|unit| expire(&mut t3, unit, true)), [true, true, false, false]);
    assert!(t3.has_expired_over(7) && !t3.has_expired_over(8));
    assert!(expire(&mut t3, 8, true), "another unit");
    assert!(!expire(&mut t3, 8, false), "thick");
    assert!(expire(&mut t3, 8, true), "that did not count");
}

#[test]
fn another_route_forgets_expiries_and_runs_on() {
    let at = Instant::from_millis(9);
    let mut t3 = T3::default();
    t3.start(RunningT3 { started_at: at, standard: at, thin: at });
    t3.on_expired_over(7);
    t3.forget_expiries();
    assert!(t3.is_running() && !t3.has_expired_over(7));
}
