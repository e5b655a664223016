//! Laws of the path model: for every packet, and for long runs.

use std::collections::BTreeSet;
use std::time::Duration;

use rexmit_core::{BitRate, Ecn, Instant, Seed};
use rexmit_netsim::path::{
    BurstLoss, Delay, Fate, Hold, Jitter, Loss, LossCause, Offered, Outcome, PathConfig, PathModel,
    PathStats, Pipe, QueueLimit, Red, Reorder,
};

const MS: Duration = Duration::from_millis(1);
const LEN: usize = 1500;

fn model(config: PathConfig, seed: u64) -> PathModel {
    PathModel::new(config, &Seed::from_u64(seed)).expect("a valid configuration")
}

/// Offers `count` packets of `LEN` bytes, one every `gap`.
fn offer_all(model: &mut PathModel, count: u64, gap: Duration) -> Vec<Outcome> {
    (0..count).map(|n| model.offer(Instant::from_nanos(n * gap.as_nanos() as u64), LEN)).collect()
}

fn losses(config: PathConfig, seed: u64, count: u64) -> Vec<bool> {
    let mut model = model(config, seed);
    offer_all(&mut model, count, MS)
        .iter()
        .map(|outcome| matches!(outcome.fate, Fate::Lost(_)))
        .collect()
}

fn burst(burst: BurstLoss) -> PathConfig {
    PathConfig { loss: Loss { burst: Some(burst), ..Loss::default() }, ..PathConfig::default() }
}

fn uniform(p: f64) -> PathConfig {
    PathConfig { loss: Loss { uniform: p, ..Loss::default() }, ..PathConfig::default() }
}

/// Mean length of the runs of `true`.
fn mean_run(lost: &[bool]) -> f64 {
    let runs = lost.split(|&is_lost| !is_lost).filter(|run| !run.is_empty());
    let (count, sum) = runs.fold((0, 0), |(count, sum), run| (count + 1, sum + run.len()));
    sum as f64 / f64::from(count)
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|&&is_lost| is_lost).count() as f64 / lost.len() as f64
}

#[test]
fn uniform_loss_is_within_binomial_bounds() {
    let n = 200_000;
    for (seed, p) in [(1, 0.001), (2, 0.05), (3, 0.5)] {
        let deviation = (p * (1.0 - p) / n as f64).sqrt();
        let share = share(&losses(uniform(p), seed, n));
        assert!((share - p).abs() < 4.0 * deviation, "asked {p}, got {share}");
    }
    assert_eq!(share(&losses(uniform(1.0), 1, 1000)), 1.0);
    assert_eq!(share(&losses(uniform(0.0), 1, 1000)), 0.0);
}

#[test]
fn bursts_per_packet_have_their_share_and_length() {
    for (seed, p, length) in [(1, 0.05, 3.0), (2, 0.2, 10.0), (3, 0.01, 1.0)] {
        let config = burst(BurstLoss::Packets { mean_loss: p, mean_burst: length });
        let lost = losses(config, seed, 1_000_000);
        // Correlation over about two burst lengths widens the bounds of the share.
        let deviation = (p * (1.0 - p) * 2.0 * length / 1e6).sqrt();
        assert!((share(&lost) - p).abs() < 4.0 * deviation, "share {}", share(&lost));
        let bursts = 1e6 * p / length;
        let deviation = length / bursts.sqrt();
        assert!((mean_run(&lost) - length).abs() < 4.0 * deviation + 1e-9, "{}", mean_run(&lost));
    }
}

#[test]
fn netems_chain_loses_in_both_states() {
    let chain =
        BurstLoss::Gemodel { to_bad: 0.01, to_good: 0.1, loss_in_bad: 0.7, loss_in_good: 0.02 };
    let expected = (0.01 * 0.7 + 0.1 * 0.02) / 0.11;
    let share = share(&losses(burst(chain), 5, 1_000_000));
    assert!((share - expected).abs() < 0.005, "expected {expected}, got {share}");
}

#[test]
fn bursts_in_time_match_the_closed_form_and_ignore_the_traffic() {
    let (pi, bad) = (0.05, Duration::from_millis(100));
    let config = burst(BurstLoss::Time { mean_loss: pi, mean_bad: bad });
    let dense = losses(config.clone(), 9, 2_000_000);
    assert!((share(&dense) - pi).abs() < 0.006, "{}", share(&dense));
    // P(lost | lost d earlier) = π + (1−π)·exp(−d/(B(1−π))), for d of 50 and 200 ms.
    for d in [50usize, 200] {
        let pairs = dense.windows(d + 1).filter(|pair| pair[0]);
        let (both, all) = pairs.fold((0, 0), |(b, n), pair| (b + u32::from(pair[d]), n + 1));
        let expected = pi + (1.0 - pi) * (-(d as f64) / (100.0 * (1.0 - pi))).exp();
        let got = f64::from(both) / f64::from(all);
        assert!((got - expected).abs() < 0.04, "after {d} ms: expected {expected}, got {got}");
    }
    // A sparse stream encounters the same bad periods.
    let mut sparse = model(config, 9);
    for n in (0..2_000_000).step_by(250) {
        let lost = sparse.offer(Instant::from_millis(n), LEN).fate == Fate::Lost(LossCause::Burst);
        assert_eq!(lost, dense[n as usize], "at {n} ms");
    }
}

#[test]
fn long_silence_costs_no_work_and_keeps_the_share() {
    let config = burst(BurstLoss::Time { mean_loss: 0.3, mean_bad: BurstLoss::MIN_MEAN_BAD });
    let mut model = model(config, 4);
    let day = Duration::from_secs(86_400);
    let lost = (0..20_000u64)
        .filter(|&n| model.offer(Instant::ZERO + day * n as u32, LEN).fate != Fate::Passed)
        .count();
    assert!((5_700..6_300).contains(&lost), "{lost}");
    model.offer(Instant::FAR_FUTURE, LEN);
}

#[test]
fn exactly_the_listed_packets_are_lost() {
    let listed = vec![7, 0, 3, 4, 4, 99];
    let config = PathConfig {
        loss: Loss { packets: listed.clone(), ..Loss::default() },
        ..PathConfig::default()
    };
    let lost = losses(config, 1, 50);
    let numbers: Vec<u64> = (0..50).filter(|&n| lost[n as usize]).collect();
    assert_eq!(numbers, [0, 3, 4, 7]);
}

#[test]
fn one_impairment_does_not_disturb_the_draws_of_another() {
    let plain = PathConfig {
        delay: Delay { mean: 50 * MS, jitter: Jitter::Normal(5 * MS) },
        ..uniform(0.1)
    };
    let busy = PathConfig {
        reorder: Reorder { probability: 0.3, extra: Delay::constant(7 * MS) },
        duplicate: 0.2,
        corrupt: 0.2,
        ..plain.clone()
    };
    let quiet = PathConfig { delay: Delay::constant(50 * MS), ..busy.clone() };
    assert_eq!(losses(plain.clone(), 1, 5000), losses(busy.clone(), 1, 5000));
    assert_eq!(losses(plain.clone(), 1, 5000), losses(quiet, 1, 5000));

    // Packets that were not lost have the same delays on the path without loss.
    let lossless = PathConfig { loss: Loss::default(), ..plain.clone() };
    let with = offer_all(&mut model(plain, 1), 5000, MS);
    let without = offer_all(&mut model(lossless, 1), 5000, MS);
    let kept = with.iter().zip(&without).filter(|(with, _)| with.fate == Fate::Passed);
    assert!(kept.clone().count() > 4000);
    assert!(kept.clone().all(|(with, without)| with.deliveries == without.deliveries));
}

#[test]
fn a_rate_is_never_exceeded_over_any_window() {
    let rate = BitRate::new(8_000_000).unwrap(); // a byte per microsecond
    let config = PathConfig {
        rate: Some(rate),
        queue: QueueLimit::Packets(20),
        delay: Delay::constant(5 * MS),
        ..PathConfig::default()
    };
    let mut model = model(config, 1);
    let mut rng = Seed::from_u64(8).rng();
    let mut now = Instant::ZERO;
    let mut arrivals = Vec::new();
    for _ in 0..5000 {
        now += Duration::from_nanos(rng.below(1_500_000));
        let len = 40 + rng.below(1460) as usize;
        let outcome = model.offer(now, len);
        arrivals.extend(outcome.deliveries.iter().map(|delivery| (delivery.at, len)));
    }
    assert!(model.stats().lost_queue > 100, "the test needs an overload");
    // The bytes of a window's packets after the first fit into the time between the first and the last.
    for from in 0..arrivals.len() {
        let mut bytes = 0;
        for to in from + 1..(from + 200).min(arrivals.len()) {
            bytes += arrivals[to].1;
            let window = arrivals[to].0 - arrivals[from].0;
            assert!(bytes as u128 * 1000 <= window.as_nanos(), "{bytes} B in {window:?}");
        }
    }
}

#[test]
fn the_queue_is_never_over_its_limit_and_drops_only_when_full() {
    for limit in [QueueLimit::Packets(5), QueueLimit::Bytes(6000), QueueLimit::Packets(0)] {
        let config = PathConfig {
            rate: BitRate::new(12_000_000), // 1500 B per millisecond
            queue: limit,
            ..PathConfig::default()
        };
        let mut model = model(config, 1);
        let mut rng = Seed::from_u64(2).rng();
        let mut now = Instant::ZERO;
        for _ in 0..2000 {
            now += Duration::from_nanos(rng.below(1_400_000));
            let outcome = model.offer(now, LEN);
            let (packets, bytes) = model.queue_depth();
            let room = match limit {
                QueueLimit::Packets(most) => most - packets,
                QueueLimit::Bytes(most) => (most - bytes) / LEN,
            };
            assert!(outcome.fate == Fate::Passed || room == 0, "dropped with room for {room}");
        }
        assert!(model.stats().lost_queue > 0);
    }
}

/// The queue depth in the mean, and the counters, where `load` packets per transmission time are offered at random times.
fn loaded(red: Option<Red>, load: f64) -> (f64, PathStats) {
    let config = PathConfig {
        rate: BitRate::new(12_000_000), // 1500 B per millisecond
        queue: QueueLimit::Packets(100),
        red,
        ..PathConfig::default()
    };
    let mut model = model(config, 1);
    let mut rng = Seed::from_u64(3).rng();
    let (mut now, mut depths) = (Instant::ZERO, 0);
    for _ in 0..50_000 {
        now += MS.mul_f64(2.0 * rng.unit() / load);
        model.offer(now, LEN);
        depths += model.queue_depth().0;
    }
    (depths as f64 / 50_000.0, *model.stats())
}

#[test]
fn random_early_detection_keeps_an_overloaded_queue_short() {
    let red = Red { weight: 0.02, ..Red::new(5.0, 15.0) };
    let (depth, stats) = loaded(Some(red), 1.25);
    assert!((5.0..30.0).contains(&depth), "{depth}");
    assert_eq!((stats.lost_queue, stats.lost()), (0, stats.lost_red));
    // A fifth of the load is more than the link sends.
    let share = stats.lost_red as f64 / stats.offered as f64;
    assert!((0.19..0.21).contains(&share), "{share}");
    let (drop_tail, stats) = loaded(None, 1.25);
    assert!(drop_tail > 90.0 && stats.lost_red == 0, "{drop_tail}");
    // Without overload the average stays below the lower threshold.
    let (_, stats) = loaded(Some(red), 0.5);
    assert_eq!(stats.lost(), 0);
}

#[test]
fn queueing_delays_are_exact() {
    let config = PathConfig {
        rate: BitRate::new(12_000_000),
        queue: QueueLimit::Packets(2),
        delay: Delay::constant(10 * MS),
        ..PathConfig::default()
    };
    let mut model = model(config, 1);
    let at = |outcome: &Outcome| outcome.deliveries.first().map(|d| d.at);
    let four: Vec<_> = (0..4).map(|_| at(&model.offer(Instant::ZERO, LEN))).collect();
    // One is sent, two wait, the fourth finds the queue full.
    let expected = [Some(11), Some(12), Some(13), None];
    assert_eq!(four, expected.map(|ms| ms.map(Instant::from_millis)));
    // At 1 ms the second packet is in transmission, and the queue has room for one.
    assert_eq!(at(&model.offer(Instant::from_millis(1), LEN)), Some(Instant::from_millis(14)));
    assert_eq!(at(&model.offer(Instant::from_millis(1), LEN)), None);
    assert_eq!((model.stats().max_queue_packets, model.stats().max_queue_bytes), (2, 3000));
}

#[test]
fn order_is_kept_when_asked_and_delay_is_never_below_the_minimum() {
    let jitter = Delay { mean: 20 * MS, jitter: Jitter::Uniform(15 * MS) };
    for keep_order in [true, false] {
        let config =
            PathConfig { delay: jitter, keep_order, duplicate: 0.1, ..PathConfig::default() };
        let outcomes = offer_all(&mut model(config, 3), 10_000, MS);
        let mut arrivals = Vec::new();
        for outcome in &outcomes {
            for delivery in &outcome.deliveries {
                let delay = delivery.at - Instant::from_millis(outcome.packet);
                assert!(delay >= 5 * MS, "{delay:?}");
                arrivals.push(delivery.at);
            }
        }
        assert_eq!(arrivals.is_sorted(), keep_order);
    }
}

#[test]
fn random_reordering_delays_its_share_and_lets_others_overtake() {
    let config = PathConfig {
        delay: Delay::constant(10 * MS),
        keep_order: true,
        reorder: Reorder { probability: 0.1, extra: Delay::constant(Duration::from_micros(3500)) },
        ..PathConfig::default()
    };
    let mut pipe = Pipe::new(model(config, 6));
    for n in 0..10_000 {
        pipe.offer(Instant::from_millis(n), LEN, n);
    }
    let mut late = 0;
    while let Some(arrival) = pipe.poll_arrival(Instant::FAR_FUTURE) {
        let delay = arrival.at - Instant::from_millis(arrival.packet);
        assert!(delay == 10 * MS || delay == Duration::from_micros(13_500), "{delay:?}");
        late += u64::from(delay > 10 * MS);
    }
    assert!((880..1120).contains(&late), "{late}");
    // A late packet is overtaken unless the three after it are late too.
    let reordered = pipe.arrivals().reordered;
    assert!(reordered <= late && reordered > late * 99 / 100, "{reordered} of {late}");
}

#[test]
fn packets_are_conserved_and_copies_counted() {
    let config = PathConfig {
        delay: Delay { mean: 10 * MS, jitter: Jitter::Pareto(5 * MS) },
        loss: Loss {
            uniform: 0.05,
            burst: Some(BurstLoss::Packets { mean_loss: 0.05, mean_burst: 4.0 }),
            packets: vec![5, 6],
        },
        reorder: Reorder { probability: 0.1, extra: Delay::constant(5 * MS) },
        holds: vec![Hold { packet: 100, by: 3 }, Hold { packet: 49_999, by: 1 }],
        duplicate: 0.03,
        corrupt: 0.02,
        rate: BitRate::new(12_500_000),
        queue: QueueLimit::Packets(3),
        ..PathConfig::default()
    };
    let n = 50_000;
    let mut model = model(config, 1);
    let outcomes = offer_all(&mut model, n, MS);
    let stats = *model.stats();
    assert_eq!(stats.offered, n);
    assert_eq!(stats.offered_bytes, n * LEN as u64);
    assert_eq!(stats.offered, stats.passed + stats.held + stats.lost());
    assert_eq!(stats.held, u64::from(outcomes[49_999].fate == Fate::Held));
    let all: Vec<_> = outcomes.iter().flat_map(|outcome| outcome.deliveries.iter()).collect();
    let unique: BTreeSet<_> = all.iter().map(|delivery| delivery.packet).collect();
    assert_eq!(unique.len() as u64, stats.passed);
    assert_eq!(all.len() - unique.len(), all.iter().filter(|d| d.is_copy).count());
    // A held packet and its copy may still be waiting.
    let waiting_copies = stats.duplicated - (all.len() - unique.len()) as u64;
    assert!(waiting_copies <= stats.held);
    let passed = n as f64 - stats.lost() as f64;
    assert!((stats.duplicated as f64 / passed - 0.03).abs() < 0.004);
    assert!((stats.corrupted as f64 / passed - 0.02).abs() < 0.004);
    assert!(stats.lost_burst > 0 && stats.lost_uniform > 0 && stats.lost_listed == 2);
}

#[test]
fn corruption_flips_one_bit_anywhere() {
    let config = PathConfig { corrupt: 1.0, ..PathConfig::default() };
    let mut model = model(config, 1);
    let mut places = BTreeSet::new();
    for _ in 0..2000 {
        let corruption = model.offer(Instant::ZERO, 16).deliveries[0].corruption.unwrap();
        let mut bytes = [0u8; 16];
        corruption.apply(&mut bytes);
        let number = u128::from_le_bytes(bytes);
        assert_eq!(number.count_ones(), 1);
        places.insert(number.trailing_zeros());
        corruption.apply(&mut []);
    }
    assert_eq!(places.len(), 128, "every bit of 16 bytes is hit in 2000 tries");
}

/// The order in which `count` packets arrive, offered one every millisecond.
fn arrival_order(config: PathConfig, count: u64) -> Vec<u64> {
    let mut pipe = Pipe::new(model(config, 1));
    for n in 0..count {
        pipe.offer(Instant::from_millis(n), LEN, n);
    }
    std::iter::from_fn(|| pipe.poll_arrival(Instant::FAR_FUTURE)).map(|a| a.packet).collect()
}

#[test]
fn held_packets_arrive_right_after_the_later_ones_they_wait_for() {
    let order = |holds: &[(u64, u32)], lost: &[u64]| {
        let holds = holds.iter().map(|&(packet, by)| Hold { packet, by }).collect();
        let loss = Loss { packets: lost.to_vec(), ..Loss::default() };
        let delay = Delay::constant(50 * MS);
        arrival_order(PathConfig { delay, holds, loss, ..PathConfig::default() }, 7)
    };
    assert_eq!(order(&[(1, 1)], &[]), [0, 2, 1, 3, 4, 5, 6]);
    assert_eq!(order(&[(1, 3)], &[]), [0, 2, 3, 4, 1, 5, 6]);
    assert_eq!(order(&[(1, 2)], &[2]), [0, 3, 4, 1, 5, 6], "lost ones do not count");
    assert_eq!(order(&[(1, 1), (2, 1)], &[]), [0, 3, 1, 2, 4, 5, 6]);
    assert_eq!(order(&[(1, 2), (2, 1)], &[]), [0, 3, 2, 1, 4, 5, 6], "a released one counts");
    assert_eq!(order(&[(5, 2)], &[]), [0, 1, 2, 3, 4, 6], "nothing follows it");
    assert_eq!(order(&[(1, 2)], &[1]), [0, 2, 3, 4, 5, 6], "it was lost itself");
}

#[test]
fn a_held_packet_keeps_its_copy_and_its_time() {
    let config = PathConfig {
        delay: Delay::constant(50 * MS),
        holds: vec![Hold { packet: 0, by: 2 }],
        duplicate: 1.0,
        ..PathConfig::default()
    };
    let mut pipe = Pipe::new(model(config, 1));
    for n in 0..3 {
        pipe.offer(Instant::from_millis(10 * n), LEN, n);
    }
    assert_eq!(pipe.in_flight(), 6);
    let arrivals: Vec<_> = std::iter::from_fn(|| pipe.poll_arrival(Instant::FAR_FUTURE))
        .map(|arrival| (arrival.packet, arrival.at.as_nanos() / 1_000_000))
        .collect();
    assert_eq!(arrivals, [(1, 60), (1, 60), (2, 70), (2, 70), (0, 70), (0, 70)]);
    assert_eq!(pipe.in_flight(), 0);
}

#[test]
fn a_change_takes_effect_exactly_at_its_time() {
    let far = PathConfig { delay: Delay::constant(80 * MS), ..PathConfig::default() };
    let near = PathConfig { delay: Delay::constant(20 * MS), ..PathConfig::default() };
    let mut model = model(far.clone(), 1);
    let change = Instant::from_millis(100);
    model.change_at(Instant::from_millis(200), far).unwrap();
    model.change_at(change, near).unwrap();
    let mut at = |now| model.offer(now, LEN).deliveries[0].at - now;
    assert_eq!(at(Instant::from_nanos(change.as_nanos() - 1)), 80 * MS);
    assert_eq!(at(change), 20 * MS);
    assert_eq!(at(Instant::from_millis(199)), 20 * MS);
    assert_eq!(at(Instant::from_millis(200)), 80 * MS);
}

#[test]
fn the_queue_carries_over_a_change_of_rate() {
    let slow = PathConfig { rate: BitRate::new(1_200_000), ..PathConfig::default() };
    let fast = PathConfig { rate: BitRate::new(12_000_000), ..PathConfig::default() };
    let mut model = model(slow, 1);
    model.change_at(Instant::from_millis(5), fast.clone()).unwrap();
    model.change_at(Instant::from_millis(6), PathConfig { rate: None, ..fast }).unwrap();
    let mut at = |ms| model.offer(Instant::from_millis(ms), LEN).deliveries[0].at;
    assert_eq!(at(0), Instant::from_millis(10));
    assert_eq!(at(0), Instant::from_millis(20));
    assert_eq!(at(5), Instant::from_millis(21), "waits for those before, then takes 1 ms");
    assert_eq!(at(6), Instant::from_millis(21), "without a rate still behind those before");
}

#[test]
fn an_invalid_change_does_not_change_the_path() {
    let mut model = model(PathConfig::default(), 1);
    assert!(model.change_at(Instant::ZERO, uniform(2.0)).is_err());
    assert_eq!(model.offer(Instant::ZERO, LEN).fate, Fate::Passed);
}

/// A path without random impairments uses a shortcut in the model, which a jitter of zero width disables.
#[test]
fn a_path_without_chance_behaves_as_one_whose_chance_has_no_effect() {
    let plain: PathConfig = "delay 7ms rate 10mbit limit 5".parse().unwrap();
    let holding = PathConfig { holds: vec![Hold { packet: 70, by: 9 }], ..plain.clone() };
    let delay = Delay { jitter: Jitter::Uniform(Duration::ZERO), ..plain.delay };
    let [short, long] = [plain.clone(), PathConfig { delay, ..plain.clone() }].map(|config| {
        let mut model = PathModel::new(config.clone(), &Seed::from_u64(1)).unwrap();
        model.change_at(Instant::from_millis(60), holding.clone()).unwrap();
        // While the packet is still held.
        model.change_at(Instant::from_millis(71), config).unwrap();
        let mut rng = Seed::from_u64(2).rng();
        let mut now = Instant::ZERO;
        let mut offer = |_| {
            now += Duration::from_micros(rng.below(2000));
            model.offer(now, 40 + rng.below(2) as usize * 1460)
        };
        let outcomes: Vec<_> = (0..10_000).map(&mut offer).collect();
        (outcomes, *model.stats())
    });
    assert!(short.1.lost_queue > 0 && short.0.iter().any(|outcome| outcome.fate == Fate::Held));
    assert_eq!(short, long);
}

/// This also holds with random losses, and from the first packet after a change.
#[test]
fn a_packet_larger_than_the_mtu_is_lost_and_no_other() {
    for uniform in [0.0, 1e-9] {
        let path = |mtu| PathConfig {
            mtu,
            loss: Loss { uniform, ..Loss::default() },
            ..PathConfig::default()
        };
        let mut model = PathModel::new(path(Some(1500)), &Seed::from_u64(1)).unwrap();
        model.change_at(Instant::from_millis(10), path(Some(1400))).unwrap();
        let mut fate = |ms, len| model.offer(Instant::from_millis(ms), len).fate;
        assert_eq!([fate(0, 1500), fate(1, 1400)], [Fate::Passed; 2]);
        assert_eq!(fate(2, 1501), Fate::Lost(LossCause::Mtu));
        assert_eq!([fate(10, 1401), fate(11, 1400)], [Fate::Lost(LossCause::Mtu), Fate::Passed]);
        assert_eq!((model.stats().lost_mtu, model.stats().lost()), (2, 2));
    }
}

/// The fates of packets in a pipe, by their numbers.
#[derive(PartialEq, Debug, Default)]
struct Told {
    /// With the time, and whether they are marked.
    arrivals: Vec<(u64, Instant, bool)>,
    drops: Vec<(u64, LossCause)>,
}

impl Told {
    /// Adds what happens by `now`.
    fn poll(&mut self, pipe: &mut Pipe<u64>, now: Instant) {
        loop {
            let arrival = pipe.poll_arrival(now);
            self.drops.extend(std::iter::from_fn(|| pipe.poll_dropped()));
            let Some(arrival) = arrival else { return };
            self.arrivals.push((arrival.packet, arrival.at, arrival.is_marked));
        }
    }
}

/// The fates of packets of two flows in a pipe with FQ-CoDel, one of which overloads the link. It is polled each `period`, as by a
/// thread that is scheduled late.
fn polled_each(period: Duration) -> (Told, PathStats) {
    let config = "rate 12mbit delay 10ms fq_codel limit 100".parse().unwrap();
    let mut pipe = Pipe::new(model(config, 1));
    let mut told = Told::default();
    let mut polled = Instant::ZERO;
    for number in 0..20_000 {
        let now = Instant::ZERO + number as u32 * Duration::from_micros(600);
        while polled + period <= now {
            polled += period;
            told.poll(&mut pipe, polled);
        }
        let ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let offered = Offered { len: LEN, ecn, flow: u64::from(number % 20 == 0) };
        assert_eq!(pipe.offer_packet(now, offered, number), Fate::Queued);
        told.drops.extend(std::iter::from_fn(|| pipe.poll_dropped()));
    }
    while let Some(at) = pipe.next_arrival() {
        told.poll(&mut pipe, at);
    }
    assert_eq!(pipe.in_flight(), 0);
    (told, *pipe.model().stats())
}

#[test]
fn a_late_driver_changes_nothing_of_what_fq_codel_decides() {
    let (told, stats) = polled_each(Duration::from_micros(10));
    let Told { arrivals, drops } = &told;
    assert_eq!(arrivals.len() + drops.len(), 20_000, "each packet arrives or is dropped");
    let caused = |cause| drops.iter().filter(|drop| drop.1 == cause).count() as u64;
    assert_eq!(caused(LossCause::Codel), stats.aqm.lost_codel);
    assert_eq!(caused(LossCause::Queue), stats.lost_queue);
    assert!(stats.aqm.lost_codel > 10 && stats.lost_queue > 10, "{stats:?}");
    let marked: Vec<_> = arrivals.iter().filter(|arrival| arrival.2).collect();
    assert!(marked.len() as u64 == stats.aqm.marked && marked.len() > 10);
    assert!(marked.iter().all(|arrival| arrival.0 % 2 == 0), "only capable ones");
    assert!(drops.iter().all(|drop| drop.0 % 20 != 0), "the sparse flow loses nothing");
    assert_eq!(polled_each(Duration::from_millis(7)), (told, stats));
}

#[test]
fn a_change_of_discipline_keeps_the_order_and_the_packets() {
    let path = |text: &str| text.parse::<PathConfig>().unwrap();
    let fair = path("rate 12mbit fq_codel limit 10");
    let mut pipe = Pipe::new(model(fair.clone(), 1));
    let change = Instant::from_millis(3);
    pipe.model_mut().change_at(change, path("rate 12mbit limit 20")).unwrap();
    pipe.model_mut().change_at(Instant::from_millis(30), fair).unwrap();
    for number in 0..8 {
        pipe.offer(Instant::ZERO, LEN, number);
    }
    assert_eq!(pipe.model().queue_depth(), (7, 7 * LEN));
    // At 5 ms, 5 packets of the old queue and this one wait for the one in transmission.
    pipe.offer(Instant::from_millis(5), LEN, 8);
    let arrivals: Vec<_> = std::iter::from_fn(|| pipe.poll_arrival(Instant::FAR_FUTURE))
        .map(|arrival| (arrival.packet, arrival.at.as_nanos() / 1_000_000))
        .collect();
    assert_eq!(arrivals, (0..9).map(|number| (number, number + 1)).collect::<Vec<_>>());
    pipe.offer(Instant::from_millis(40), LEN, 9);
    assert_eq!(pipe.poll_arrival(Instant::from_millis(41)).unwrap().packet, 9);
}
