use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const UNLIMITED: Budget = Budget { packets: f64::INFINITY, bytes: f64::INFINITY };
const RTT: RoundTrip =
    RoundTrip { mean: Duration::from_millis(100), timeout: Duration::from_micros(101_500) };

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn due(now_ms: u64, within_ms: u64, probability: f64) -> Due {
    let deadline = Deadline::new(MS(within_ms), probability);
    Due { at: at(now_ms) + deadline.within(), deadline }
}

fn plans(planner: &Planner) -> &Plans {
    planner.0.as_deref().expect("a unit had a deadline")
}

/// A planner that has seen one packet in `every` lost.
fn after_losses(every: u32) -> Planner {
    let mut planner = Planner(Some(Box::default()));
    for n in 0..5000 {
        planner.on_first_sent();
        if n % every == 0 {
            planner.on_lost(0, true);
        }
    }
    planner
}

/// The mean copies that follow messages every `interval_ms`, none of which is acknowledged before the next.
fn mean_copies(planner: &mut Planner, interval_ms: u64, within_ms: u64, probability: f64) -> f64 {
    const MESSAGES: u64 = 1000;
    let copies = (1..=MESSAGES).map(|unit| {
        let now_ms = 1000 + unit * interval_ms;
        let due = due(now_ms, within_ms, probability);
        let copies = planner.on_new(at(now_ms), unit, due, Some(RTT), UNLIMITED);
        planner.on_cumulative(unit);
        f64::from(copies.count)
    });
    copies.sum::<f64>() / MESSAGES as f64
}

/// By hand: at 5 %, a mean of 1 % is left by two transmissions of 84.2 % and one of the others.
#[test]
fn what_is_wanted_leaves_in_the_mean_what_may_be_late() {
    for (p, late, expected) in [
        (0.05, 0.01, 1.0 + 0.04 / 0.0475),
        (0.05, 0.001, 2.0 + 0.0015 / 0.002_375),
        (0.01, 0.01, 1.0),
        (0.001, 0.01, 1.0),
        (0.1, 1e-4, 4.0),
    ] {
        let wanted = Wanted::of(p, late);
        assert!((wanted.mean() - expected).abs() < 1e-9, "{wanted:?} at {p} and {late}");
        let left = mixed(p, &wanted);
        assert!(left <= late + 1e-12, "{left} at {p} and {late}");
    }
    assert_eq!(Wanted::of(0.5, 1e-6).mean(), f64::from(MOST_TRANSMISSIONS));
}

#[test]
fn without_time_for_an_ack_copies_follow_at_once() {
    let mut planner = after_losses(20);
    let p = plans(&planner).losses.share();
    let expected = Wanted::of(p, 0.01).mean() - 1.0;
    for within in [60, 110, 150] {
        let mean = mean_copies(&mut planner, 250, within, 0.99);
        assert!((mean - expected).abs() < 0.01, "{mean} and {expected} within {within} ms");
    }
}

#[test]
fn copies_are_spread_over_the_time_that_the_deadline_leaves() {
    let mut planner = after_losses(10);
    let copies = planner.on_new(at(0), 1, due(0, 110, 0.99999), Some(RTT), UNLIMITED);
    assert!(copies.count >= 3, "{copies:?}");
    let last = copies.spacing * copies.count.into();
    // 110 ms less a delay of 50 ms, and what the timeout allows for jitter.
    assert!(last <= MS(59) && last > MS(50), "{last:?}");
}

#[test]
fn with_time_for_a_round_trip_the_last_retransmission_has_the_copies() {
    for (within, rounds) in [(160, 1), (210, 1), (260, 2)] {
        let mut planner = after_losses(10);
        let due = due(0, within, 0.99999);
        let copies = planner.on_new(at(0), 1, due, Some(RTT), UNLIMITED);
        assert_eq!(copies.count, 0, "{within} ms");
        let needed = plans(&planner).units[0].needed;
        let counts = (1..=rounds).map(|round| {
            let now = at(0) + RTT.timeout * round;
            planner.on_retransmitted(now, 1, Some(RTT)).expect("it has a deadline").count
        });
        let counts: Vec<u8> = counts.collect();
        let missing = needed - 1 - rounds as u8;
        assert!(missing > 0 && counts.iter().sum::<u8>() == missing, "{counts:?} of {needed}");
        assert_eq!(counts.last(), Some(&missing), "{within} ms");
        let late = planner.on_retransmitted(at(250), 1, Some(RTT));
        assert_eq!(late.map(|copies| copies.count), Some(0), "the deadline is over");
    }
    assert_eq!(after_losses(10).on_retransmitted(at(0), 1, Some(RTT)), None);
}

#[test]
fn later_messages_carry_copies_if_they_come_often_enough() {
    let mut planner = after_losses(20);
    let alone = mean_copies(&mut planner, 16, 60, 0.999);
    assert!(alone > 1.0, "8 ms are not enough for one: {alone}");
    // The first ones come before the interval is known.
    let mut planner = after_losses(20);
    assert!(mean_copies(&mut planner, 16, 110, 0.999) < 0.02);
    let due = due(17_016, 110, 0.9999);
    planner.on_new(at(17_016), 5000, due, Some(RTT), UNLIMITED);
    let needed = plans(&planner).units[0].needed;
    for _ in 1..needed {
        assert!(planner.is_bundling());
        assert!(planner.wants_bundled(at(17_036), 5000, Some(RTT)));
        assert!(!planner.wants_bundled(at(17_096), 5000, Some(RTT)), "it would be late");
        planner.on_copied(5000);
    }
    assert!(!planner.is_bundling() && !planner.wants_bundled(at(17_036), 5000, Some(RTT)));
}

#[test]
fn a_deadline_that_cannot_be_met_is_reported_once() {
    let mut planner = after_losses(20);
    let p = plans(&planner).losses.share();
    let mut send = |within, percent| {
        let packets = if percent == 0 { f64::INFINITY } else { f64::from(percent) / 100.0 };
        let (due, budget) = (due(0, within, 0.999), Budget { packets, ..UNLIMITED });
        planner.on_new(at(0), 1, due, Some(RTT), budget);
        planner.clear();
        planner.take_infeasible()
    };
    assert_eq!(send(40, 0), Some(0.0), "shorter than the delay");
    assert_eq!(send(40, 0), None);
    assert_eq!(send(60, 0), None);
    assert_eq!(send(60, 50), Some(1.0 - p.powf(1.5)), "half a copy for each message");
    assert_eq!(send(60, 300), None);
    assert_eq!(send(160, 5), None, "retransmissions are no copies");
}

#[test]
fn units_are_forgotten_when_they_are_acknowledged() {
    let mut planner = Planner::default();
    for unit in 1..=100 {
        planner.on_new(at(unit), unit, due(unit, 60, 0.9), None, UNLIMITED);
    }
    planner.on_cumulative(90);
    assert_eq!(plans(&planner).units.len(), 10);
    planner.clear();
    assert!(!planner.is_any() && plans(&planner).intervals.len() <= INTERVALS);
}
