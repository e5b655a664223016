use super::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
const UNLIMITED: Budget = Budget { packets: f64::INFINITY, bytes: f64::INFINITY };
const RTT: RoundTrip = RoundTrip {
    is_cold: false,
    least: Duration::from_millis(99),
    mean: Duration::from_millis(100),
    timeout: Duration::from_micros(101_500),
};

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn due(now_ms: u64, within_ms: u64, probability: f64) -> Due {
    let deadline = Deadline::new(MS(within_ms), probability);
    Due { at: at(now_ms) + deadline.within(), deadline }
}

fn new(unit: u64, due: Due) -> NewPlanned {
    NewPlanned { unit, due, is_ordered: false }
}

fn plans(planner: &Planner) -> &Plans {
    planner.0.as_deref().expect("a unit had a deadline")
}

/// A planner that has seen one packet in `every` lost.
fn after_losses(every: u64) -> Planner {
    let mut planner = Planner(Some(Box::default()));
    let losses = &mut planner.0.as_mut().expect("it is new").losses;
    for n in 0..8000 {
        losses.on_fate(at(1000 * n), f64::from(u8::from(n % every == 0)));
    }
    planner
}

/// Of a message with 60 ms left, less than a round trip.
fn schedule(planner: &Planner) -> Schedule<'_> {
    let left = TimeLeft::of(at(0), due(0, 110, 0.5), Some(RTT.into())).expect("it is in time");
    Schedule { left, losses: &plans(planner).losses }
}

/// The plan for copies that are sent at once, if `late` may be late.
fn wanted(planner: &Planner, late: f64) -> Wanted {
    schedule(planner).wanted(AIM * late)
}

/// The mean copies that follow messages every `interval_ms`, none of which is acknowledged before the next.
fn mean_copies(planner: &mut Planner, interval_ms: u64, within_ms: u64, probability: f64) -> f64 {
    const MESSAGES: u64 = 1000;
    let copies = (1..=MESSAGES).map(|unit| {
        let now_ms = 1000 + unit * interval_ms;
        let due = due(now_ms, within_ms, probability);
        let copies = planner.on_new(at(now_ms), new(unit, due), Some(RTT.into()), UNLIMITED);
        planner.clear();
        f64::from(copies.count)
    });
    copies.sum::<f64>() / MESSAGES as f64
}

/// By hand: pⁿ, and of two numbers the lot whose mean is what may be late.
#[test]
fn what_is_wanted_leaves_in_the_mean_what_may_be_late() {
    for (every, late) in [(20, 0.01), (20, 0.001), (100, 0.01), (1000, 0.01), (10, 1e-4)] {
        let planner = after_losses(every);
        let p = plans(&planner).losses.share();
        let found = schedule(&planner).wanted(late);
        let n: f64 = f64::from(found.transmissions);
        let left = p.powf(n) * (1.0 - found.share_of_one_more * (1.0 - p));
        assert!(left <= late + 1e-12, "{left} at {p} and {late}");
        let is_least = (p.powf(n) > late || found.share_of_one_more == 0.0)
            && (n == 1.0 || p.powf(n - 1.0) > late);
        assert!(
            is_least && (found.late - left).abs() < 1e-12 || p <= late,
            "{found:?} at {p} and {late}"
        );
    }
    let planner = after_losses(2);
    let found = schedule(&planner).wanted(1e-6);
    assert_eq!(found.mean(), f64::from(schedule::MOST_TRANSMISSIONS));
}

#[test]
fn without_time_for_an_ack_copies_follow_at_once() {
    let mut planner = after_losses(20);
    let expected = wanted(&planner, 0.01).mean() - 1.0;
    for within in [60, 110, 150] {
        let mean = mean_copies(&mut planner, 250, within, 0.99);
        assert!((mean - expected).abs() < 0.01, "{mean} and {expected} within {within} ms");
    }
}

#[test]
fn copies_are_spread_over_the_time_that_the_deadline_leaves() {
    let mut planner = after_losses(10);
    let copies = planner.on_new(at(0), new(1, due(0, 110, 0.99999)), Some(RTT.into()), UNLIMITED);
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
        let copies = planner.on_new(at(0), new(1, due), Some(RTT.into()), UNLIMITED);
        assert_eq!(copies.count, 0, "{within} ms");
        let needed = plans(&planner).units[0].needed;
        let counts = (1..=rounds).map(|round| {
            let now = at(0) + RTT.timeout * round;
            planner.on_retransmitted(now, 1, Some(RTT.into())).expect("it has a deadline").count
        });
        let counts: Vec<u8> = counts.collect();
        let missing = needed - 1 - rounds as u8;
        assert!(missing > 0 && counts.iter().sum::<u8>() == missing, "{counts:?} of {needed}");
        assert_eq!(counts.last(), Some(&missing), "{within} ms");
        let late = planner.on_retransmitted(at(250), 1, Some(RTT.into()));
        assert_eq!(late.map(|copies| copies.count), Some(0), "the deadline is over");
    }
    assert_eq!(after_losses(10).on_retransmitted(at(0), 1, Some(RTT.into())), None);
}

#[test]
fn later_messages_carry_copies_until_there_are_enough() {
    let mut planner = after_losses(20);
    planner.on_new(at(0), new(1, due(0, 110, 0.9999)), Some(RTT.into()), UNLIMITED);
    let missing = planner.missing(1).expect("it has a deadline");
    assert!(missing >= 2);
    for left in (0..missing).rev() {
        assert!(planner.is_bundling() && planner.wants_bundled(at(1), 1, Some(RTT)));
        assert!(!planner.wants_bundled(at(80), 1, Some(RTT)), "it would be late");
        planner.on_copied(at(1), 1);
        assert_eq!(planner.missing(1), Some(left));
    }
    assert!(!planner.is_bundling() && !planner.wants_bundled(at(1), 1, Some(RTT)));
    // With time for a retransmission, nothing is copied before that.
    planner.on_new(at(2), new(2, due(2, 210, 0.9999)), Some(RTT.into()), UNLIMITED);
    assert!(!planner.wants_bundled(at(3), 2, Some(RTT)));
}

/// At a time when the next message's ACK would come in time, the retransmission waits for it; not if a round is lost by that, nor if
/// that ACK has come.
#[test]
fn a_retransmission_waits_for_the_ack_of_the_next_message() {
    let mut planner = after_losses(20);
    let send = |planner: &mut Planner, unit, ms, within| {
        planner.on_new(at(ms), new(unit, due(ms, within, 0.999)), Some(RTT.into()), UNLIMITED);
    };
    send(&mut planner, 1, 0, 210);
    send(&mut planner, 2, 50, 210);
    assert_eq!(planner.waits_until(at(102), 1, Some(RTT.into())), Some(at(50) + RTT.timeout));
    assert_eq!(planner.waits_until(at(152), 1, Some(RTT.into())), None, "it was due");
    planner.on_acked(at(150), 2, false, Some(RTT));
    assert_eq!(planner.waits_until(at(150), 1, Some(RTT.into())), None, "it has come");
    send(&mut planner, 3, 1000, 160);
    send(&mut planner, 4, 1050, 160);
    assert_eq!(
        planner.waits_until(at(1102), 3, Some(RTT.into())),
        None,
        "the deadline is too near"
    );
    let ordered = NewPlanned { is_ordered: true, ..new(5, due(2000, 210, 0.999)) };
    planner.on_new(at(2000), ordered, Some(RTT.into()), UNLIMITED);
    send(&mut planner, 6, 2050, 210);
    assert_eq!(planner.waits_until(at(2102), 5, Some(RTT.into())), None, "others wait for it");
}

/// Losses in one round trip of a stream, so that all messages after one wait for it.
#[test]
fn units_in_order_have_more_copies_the_more_wait_for_them() {
    let mean = |is_ordered| {
        let mut planner = after_losses(20);
        let copies = (0..100).map(|unit| {
            let (now, due) = (at(10 * unit), due(10 * unit, 110, 0.99));
            planner.on_acked(now, unit.saturating_sub(10), false, Some(RTT));
            planner.on_cumulative(unit.saturating_sub(10));
            let new = NewPlanned { unit, due, is_ordered };
            f64::from(planner.on_new(now, new, Some(RTT.into()), UNLIMITED).count)
        });
        copies.sum::<f64>() / 100.0
    };
    // Ten are in flight: a tenth of one in a hundred may be late.
    assert!(mean(true) > mean(false) + 0.3);
}

/// An ACK that comes when that of the copy is due shows whether the original was lost; others count in proportion.
#[test]
fn the_fate_of_the_original_is_known_from_the_ack_of_its_copy() {
    let fate = |acked_at, is_reported| {
        let mut planner = after_losses(20);
        planner.on_new(at(0), new(1, due(0, 110, 0.99)), Some(RTT.into()), UNLIMITED);
        planner.on_copied(at(20), 1);
        planner.on_acked(at(acked_at), 1, is_reported, Some(RTT));
        plans(&planner).units[0].outcome
    };
    assert_eq!(fate(100, false), Outcome::Known(0.0), "too soon for the copy");
    assert_eq!(fate(120, false), Outcome::Known(1.0));
    assert_eq!(fate(120, true), Outcome::Known(0.0));
    let mut planner = after_losses(20);
    planner.on_new(at(0), new(1, due(0, 110, 0.99)), Some(RTT.into()), UNLIMITED);
    planner.on_copied(at(1), 1);
    planner.on_acked(at(100), 1, false, Some(RTT));
    assert_eq!(plans(&planner).units[0].outcome, Outcome::Unknown, "it may be of either");
    assert_eq!(fate(150, false), Outcome::Known(0.5), "nothing is known of others");
}

#[test]
fn a_deadline_that_cannot_be_met_is_reported_once() {
    let mut planner = after_losses(20);
    let p = plans(&planner).losses.share();
    let mut send = |within, percent| {
        let packets = if percent == 0 { f64::INFINITY } else { f64::from(percent) / 100.0 };
        let (due, budget) = (due(0, within, 0.999), Budget { packets, ..UNLIMITED });
        planner.on_new(at(0), new(1, due), Some(RTT.into()), budget);
        planner.clear();
        planner.take_infeasible()
    };
    assert_eq!(send(40, 0), Some(0.0), "shorter than the delay");
    assert_eq!(send(40, 0), None);
    assert_eq!(send(60, 0), None);
    let found = send(60, 50).expect("half a copy for each message is not enough");
    assert!((found - (1.0 - p.powf(1.5))).abs() < 1e-9, "{found}");
    assert_eq!(send(60, 300), None);
    assert_eq!(send(160, 5), None, "retransmissions are no copies");
}

#[test]
fn units_are_forgotten_when_they_are_acknowledged() {
    let mut planner = Planner::default();
    for unit in 1..=100 {
        planner.on_new(at(unit), new(unit, due(unit, 60, 0.9)), None, UNLIMITED);
    }
    planner.on_cumulative(90);
    assert_eq!(plans(&planner).units.len(), 10);
    planner.clear();
    assert!(!planner.is_any() && plans(&planner).intervals.len() <= INTERVALS);
}

/// Another path with this round trip, which loses this share of what the first one has just lost.
fn ways(other_rtt_ms: u64, loss_after_loss: f64) -> Ways {
    let (mean, timeout) = (MS(other_rtt_ms), MS(other_rtt_ms) + Duration::from_micros(1500));
    let rtt = RoundTrip { is_cold: false, least: mean, mean, timeout };
    Ways { rtt: RTT, other: Some(OtherPath { rtt, loss_after_loss }) }
}

/// Losses in bursts of 100 ms, for 5 % of the time.
fn in_bursts() -> Planner {
    let mut planner = Planner(Some(Box::default()));
    let losses = &mut planner.0.as_mut().expect("it is new").losses;
    for n in 0..8000 {
        losses.on_fate(at(20 * n), f64::from(u8::from(n % 100 < 5)));
    }
    assert!(losses.are_bursty());
    planner
}

/// A copy 8 ms later is lost in the same burst; over the other path it is not.
#[test]
fn in_bursts_copies_take_the_other_path_if_it_is_fast_enough() {
    let copies = |ways: Ways| {
        let mut planner = in_bursts();
        let (mut copies, mut infeasible) = (Copies::default(), None);
        for unit in 1..=20 {
            let due = due(unit, 60, 0.99);
            copies = planner.on_new(at(unit), new(unit, due), Some(ways), UNLIMITED);
            infeasible = infeasible.or(planner.take_infeasible());
            assert!(
                !planner.is_bundling() || !copies.is_elsewhere,
                "the next message is in the burst"
            );
        }
        (copies.is_elsewhere, copies.count, infeasible.is_some())
    };
    assert!(copies(RTT.into()).2, "one path cannot");
    assert_eq!(copies(ways(60, 0.05)), (true, 1, false));
    assert!(!copies(ways(140, 0.05)).0, "it would be late there");
    assert!(copies(ways(60, 0.9)).2, "it fails at the same time");
}

/// After a timeout of 101.5 ms a retransmission over a path of 30 or 100 ms each way is in time, or not.
#[test]
fn retransmissions_have_the_delay_of_the_path_that_they_take() {
    let rounds = |within, ways: Ways| {
        TimeLeft::of(at(0), due(0, within, 0.999), Some(ways)).expect("it is in time").rounds
    };
    assert_eq!(rounds(140, RTT.into()), 0);
    assert_eq!(rounds(140, ways(60, 0.05)), 1);
    assert_eq!(rounds(190, RTT.into()), 1);
    assert_eq!(rounds(190, ways(200, 0.05)), 0);
    // The second one follows a timeout of the other path: 101.5 + 61.5 + 31.5 ms.
    assert_eq!(rounds(196, ways(60, 0.05)), 2);
    assert_eq!(rounds(194, ways(60, 0.05)), 1);
}

/// The ACK of a copy over a faster path may come before that of the original.
#[test]
fn an_ack_over_a_faster_path_does_not_show_that_the_original_was_lost() {
    let fate = |other_rtt_ms, acked_at| {
        let (mut planner, ways) = (after_losses(20), ways(other_rtt_ms, 0.05));
        planner.on_new(at(0), new(1, due(0, 110, 0.99)), Some(ways), UNLIMITED);
        planner.on_copied(at(20), 1);
        planner.on_acked(at(acked_at), 1, false, ways.other.map(|other| other.rtt));
        plans(&planner).units[0].outcome
    };
    assert_eq!(fate(60, 80), Outcome::Unknown);
    assert_eq!(fate(100, 120), Outcome::Known(1.0));
}

#[test]
fn a_deadline_that_jitter_may_miss_has_its_copies_at_once() {
    let mut planner = after_losses(10);
    let send = |planner: &mut Planner, within| {
        planner.on_new(at(0), new(1, due(0, within, 0.999)), Some(RTT.into()), UNLIMITED)
    };
    // The mean delay is 50 ms, and the timeout allows 1.5 ms for jitter.
    let copies = send(&mut planner, 51);
    assert!(copies.count >= 2 && copies.spacing.is_zero(), "{copies:?}");
    planner.clear();
    assert_eq!(send(&mut planner, 49), Copies::default(), "it would be late");
}

/// Two deadlines in turn, one of which cannot be met; after ten seconds in which it was not asked for it is reported again.
#[test]
fn of_several_deadlines_each_is_reported_once() {
    let mut planner = after_losses(20);
    let mut reported = Vec::new();
    for unit in 0..1000 {
        let now = 10 * unit + if unit < 900 { 0 } else { 20_000 };
        let within = if unit % 2 == 0 { 40 } else { 1000 };
        planner.on_new(at(now), new(unit, due(now, within, 0.999)), Some(RTT.into()), UNLIMITED);
        planner.clear();
        reported.extend(planner.take_infeasible().map(|_| unit));
    }
    assert_eq!(reported, [0, 900]);
    for within in 1..100 {
        planner.on_new(at(0), new(0, due(0, within, 0.999)), Some(RTT.into()), UNLIMITED);
        planner.clear();
    }
    assert_eq!(plans(&planner).infeasible.count(), infeasible::MAX_INFEASIBLE);
}

/// An hour leaves time for more retransmissions than are counted.
#[test]
fn deadlines_of_an_hour_have_no_copies() {
    let mut planner = Planner::default();
    for ways in [RTT.into(), ways(60, 0.05)] {
        for unit in 0..100 {
            let due = due(unit, 3_600_000, 0.9999);
            let copies = planner.on_new(at(unit), new(unit, due), Some(ways), UNLIMITED);
            assert_eq!(copies, Copies::default());
        }
        planner.clear();
    }
}

#[test]
fn achievable_is_a_probability() {
    let mut planner = after_losses(2);
    for unit in 0..1000 {
        let new = NewPlanned { is_ordered: true, ..new(unit, due(unit, 60, 0.999)) };
        planner.on_new(at(unit), new, Some(RTT.into()), UNLIMITED);
        let achievable = planner.take_infeasible();
        assert!(achievable.is_none_or(|it| (0.0..1.0).contains(&it)), "{achievable:?}");
    }
}

/// Nothing was sent: a loss of 3 % is assumed, for which 0.9999 would need three transmissions.
#[test]
fn a_new_path_has_one_copy_of_each() {
    let mut planner = Planner::default();
    let mut counts = Vec::new();
    for unit in 1..=300 {
        let due = due(100 * unit, 110, 0.999_999);
        let copies = planner.on_new(at(100 * unit), new(unit, due), Some(RTT.into()), UNLIMITED);
        counts.push(copies.count);
        let is_lost = unit % 10 == 0;
        let plans = planner.0.as_mut().expect("a unit had a deadline");
        plans.losses.on_fate(at(100 * unit), f64::from(u8::from(is_lost)));
        planner.clear();
    }
    assert!(counts[..30].iter().all(|&count| count == 1), "{counts:?}");
    assert!(counts[250..].iter().all(|&count| count > 2), "{counts:?}");
}

/// Where most messages are late although few are lost, copies pause, at first for ten seconds.
#[test]
fn copies_pause_where_messages_are_late_that_were_not_lost() {
    let mut planner = after_losses(20);
    let mut send = |second: u64, latency| {
        let now = 1000 * second;
        let new = new(second, due(now, 110, 0.999));
        let copies = planner.on_new(at(now), new, Some(RTT.into()), UNLIMITED);
        planner.on_acked(at(now + latency), second, false, Some(RTT));
        planner.on_cumulative(second);
        if second.is_multiple_of(20) {
            let plans = planner.0.as_mut().expect("a unit had a deadline");
            plans.losses.on_fate(at(now + 1), 1.0);
        }
        copies.count
    };
    let counts: Vec<u8> = (10_000..10_100).map(|second| send(second, 100)).collect();
    assert!(counts.iter().all(|&count| count > 0), "they are in time");
    let counts: Vec<u8> = (10_100..10_400).map(|second| send(second, 400)).collect();
    let pauses: Vec<usize> = counts
        .chunk_by(|a, b| (*a == 0) == (*b == 0))
        .filter(|run| run[0] == 0)
        .map(<[u8]>::len)
        .collect();
    assert_eq!(pauses[..4], [10, 20, 40, 60], "{counts:?}");
    let counts: Vec<u8> = (10_700..11_000).map(|second| send(second, 100)).collect();
    assert!(counts[200..].iter().all(|&count| count > 0), "{counts:?}");
}
