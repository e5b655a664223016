//! The RTT samples of a path, and the probe timeout computed from them.
//!
//! A packet of a thin stream is retransmitted when its ACK is late: after the time it was sent, plus a round
//! trip, plus a margin. ACKs of later packets, which usually show a loss, come too late or never on a thin
//! stream. The margin follows the distribution of the samples ([`RttSamples`]): on a steady path it is close
//! to zero, and on a path with jitter it covers all but a configured share of the samples.
//!
//! # How many probes may be early
//! [`ProbeConfig::late_per_mille`] is the share of packets that may be retransmitted while their ACK is on its way. Every first
//! transmission has this risk, a retransmission only when there is one: if the share r of packets is retransmitted, early
//! shares a and b cost a + r·b. A message that is lost twice waits for both timeouts, w(a) + w(b). If the tail of round trip
//! times falls exponentially, w is c·ln(1/a), and at a given cost the sum is least for a = r·b, that is, half of the cost for
//! each, whatever c and r are. (With a normal distribution, whose tail is thinner, the optimum has less for the first: with 5
//! ms of jitter each way and r = 5 % that would save 0.3 of 27 ms.) So a first transmission may be early with half of the
//! share, and a retransmission with that half divided by r: its timeout is far shorter at the same cost.
//!
//! # Lost and delayed ACKs
//! An ACK is counted as missed if a packet is acknowledged only together with a later one, or a duplicate
//! report proves that it had arrived. If ACKs are lost, a few are missed, which changes nothing: waiting
//! longer would cost more than the spurious retransmissions. If the receiver delays ACKs, most are missed.
//! From [`DELAYED_SHARE`] on the receiver is assumed to delay ACKs, and any ACK of a packet makes a sample.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::ProbeConfig;
use rexmit_congestion::blend;

/// Samples that are remembered.
const REMEMBERED: usize = 256;
/// With fewer samples than this, the default quantile would be the slowest sample.
const FEW: usize = 200;
/// The share of lost or delayed ACKs, in 65,536ths, from which the receiver is assumed to delay ACKs.
const DELAYED_SHARE: u32 = 65_536 * 35 / 100;
/// The divisor of the smoothed mean: a new sample has at least this weight, 1/16.
const WEIGHT: u32 = 16;
/// The divisor of the smoothed mean deviation while it falls: it falls more slowly than it rises, so that it
/// survives a time without late samples.
const FALLING_WEIGHT: u32 = 32;
/// A path with fewer samples than this is "cold": its timeout has a larger margin.
const COLD_SAMPLES: u32 = 5;
/// Part of the least margin on a cold path: half of the mean round trip, and this.
const COLD_MARGIN: Duration = Duration::from_millis(10);
/// The least margin on a cold path, however short the round trip: a server's first answers come before other
/// clients connect, the next ones behind those of all clients that connected at once.
const LEAST_COLD_MARGIN: Duration = Duration::from_millis(60);
/// A sample is an outlier, and not jitter, if it exceeds the second largest by more than this many times what
/// that one exceeds the median by.
const ISOLATED: u32 = 4;
/// The least number of samples among which one can be found to be an outlier.
const ISOLATED_AMONG: usize = 3;
const FIRST_SAMPLES: u32 = 8;
/// The least margin above the slowest sample that is waited for: the resolution of clocks.
const LEAST_MARGIN: Duration = Duration::from_micros(100);
/// The margin is at most this many mean deviations, which limits the effect of a few very late samples.
const MOST_DEVIATIONS: u32 = 8;
/// The largest share of retransmissions that may be sent too early, in millionths. A larger share would gain
/// little, because the timeout is then near the mean.
const MOST_EARLY_AGAIN: u32 = MILLION / 4;
const MILLION: u32 = 1_000_000;
/// The divisor of the smoothed share of packets that were retransmitted.
const REPEATED_WEIGHT: u32 = 256;

/// The kind of transmission whose ACK is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// A unit that was never declared lost.
    First,
    /// A retransmission of a unit that was declared lost.
    Again,
}

impl Round {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Again];
}

/// The round trips of the packets of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct RttSamples {
    /// The latest samples in microseconds, as a ring buffer.
    recent: Vec<u32>,
    /// The index of the oldest sample, once the ring is full.
    oldest: usize,
    /// The samples in ascending order.
    sorted: Vec<u32>,
    mean: Duration,
    deviation: Duration,
    /// The slowest of the first [`FIRST_SAMPLES`] samples, in microseconds.
    slowest_at_first: u32,
    /// The number of samples so far.
    count: u32,
    /// Packets of which it is known whether their own ACK arrived.
    known_acks: u32,
    /// The smoothed share of packets without an ACK of their own, in 65,536ths.
    missed: u32,
    /// First transmissions whose outcome is known, in time or not, up to [`REPEATED_WEIGHT`].
    awaited: u32,
    /// The smoothed share of first transmissions that were not acknowledged in time, in 65,536ths.
    repeated: u32,
}

/// A round-trip time in four bytes: whole microseconds, from one to 71 minutes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Micros(NonZeroU32);

impl From<Duration> for Micros {
    fn from(rtt: Duration) -> Self {
        let micros = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        Self(NonZeroU32::new(micros).unwrap_or(NonZeroU32::MIN))
    }
}

impl From<Micros> for Duration {
    fn from(rtt: Micros) -> Self {
        Self::from_micros(rtt.0.get().into())
    }
}

impl RttSamples {
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        let micros = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        if self.recent.len() < REMEMBERED {
            self.recent.push(micros);
        } else {
            let forgotten = std::mem::replace(&mut self.recent[self.oldest], micros);
            self.oldest = (self.oldest + 1) % REMEMBERED;
            self.sorted.remove(self.sorted.partition_point(|&known| known < forgotten));
        }
        self.sorted.insert(self.sorted.partition_point(|&known| known < micros), micros);
        self.count = self.count.saturating_add(1);
        if self.count <= FIRST_SAMPLES {
            self.slowest_at_first = self.slowest_at_first.max(micros);
        }
        let weight = |most| self.count.min(most);
        if self.count == 1 {
            (self.mean, self.deviation) = (rtt, rtt / 2);
        }
        let deviation = self.mean.abs_diff(rtt);
        let falling = weight(if deviation < self.deviation { FALLING_WEIGHT } else { WEIGHT });
        self.deviation = blend(self.deviation, deviation, falling);
        self.mean = blend(self.mean, rtt, weight(WEIGHT));
    }

    /// Records whether a packet had an ACK of its own; `is_missed` if not, because its ACK was delayed, or lost.
    pub(crate) fn on_ack_outcome(&mut self, is_missed: bool) {
        self.known_acks = self.known_acks.saturating_add(1);
        let weight = self.known_acks.saturating_add(4).min(WEIGHT);
        self.missed -= self.missed / weight;
        self.missed += if is_missed { 65_536 / weight } else { 0 };
    }

    /// Whether the receiver is taken to delay ACKs.
    pub(crate) const fn are_delayed(&self) -> bool {
        self.missed > DELAYED_SHARE
    }

    /// Whether there are too few samples to know the path.
    pub(crate) const fn is_cold(&self) -> bool {
        self.count < COLD_SAMPLES
    }

    /// Called when a first transmission was acknowledged in time, or the timer expired over it.
    pub(crate) fn on_first_awaited(&mut self, has_expired: bool) {
        self.awaited = (self.awaited + 1).min(REPEATED_WEIGHT);
        let weight = (self.awaited + 16).min(REPEATED_WEIGHT);
        self.repeated -= self.repeated / weight;
        self.repeated += if has_expired { 65_536 / weight } else { 0 };
    }

    /// The probe timeout; `None` before the first sample.
    ///
    /// While there are few samples the margin is wider: half a round trip after the first, as RTTVAR is, and
    /// less with each. A single one of the first samples that is far from all others does not count until there are
    /// many: an address was resolved, a radio or a server woke up.
    pub(crate) fn timeout(&self, timer: &ProbeConfig, round: Round) -> Option<Duration> {
        let (late, mean) = match self.without_isolated() {
            Some((slowest, median)) => (slowest, median),
            None => (self.exceeded_by(self.early_share(timer, round))?, self.mean),
        };
        let most = mean + MOST_DEVIATIONS * self.deviation;
        let at_first = mean / self.count.saturating_mul(2);
        let within = late.min(most) + LEAST_MARGIN.max(at_first);
        let timeout = within.max(mean + timer.min_margin.max(at_first));
        let cold_margin = (mean / 2 + COLD_MARGIN).max(LEAST_COLD_MARGIN);
        Some(if self.is_cold() { timeout.max(mean + cold_margin) } else { timeout })
    }

    /// The slowest and the median of few samples, if one is far beyond that.
    fn without_isolated(&self) -> Option<(Duration, Duration)> {
        let known = self.sorted.len();
        if !(ISOLATED_AMONG..FEW).contains(&known) {
            return None;
        }
        let [second, slowest] = [2, 1].map(|k| self.sorted[known - k]);
        let median = self.sorted[(known - 1) / 2];
        let usual = ISOLATED.saturating_mul(second - median).saturating_add(second / 8);
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let is_isolated = slowest - second > usual && slowest == self.slowest_at_first;
        is_isolated.then(|| (micros(second), micros(median)))
    }

    /// How many retransmissions may be early, in a million.
    fn early_share(&self, timer: &ProbeConfig, round: Round) -> u32 {
        let half = u32::from(timer.late_per_mille) * (MILLION / 1000 / 2);
        match round {
            Round::First => half,
            Round::Again => {
                let among_repeated = u64::from(half) * 65_536 / u64::from(self.repeated.max(1));
                among_repeated.min(MOST_EARLY_AGAIN.max(half).into()) as u32
            }
        }
    }

    /// The round trip that `share` samples in a million exceed: of n samples the k-th slowest is exceeded by
    /// k in n + 1, with linear interpolation between two.
    fn exceeded_by(&self, share: u32) -> Option<Duration> {
        let known = self.sorted.len();
        let exceeding = (known as u64 + 1) * u64::from(share);
        let whole = (exceeding / u64::from(MILLION)) as usize;
        let slowest = |k: usize| self.sorted.get(known.checked_sub(k.min(known).max(1))?).copied();
        let (slower, faster) = (slowest(whole)?, slowest(whole + 1)?);
        let part = u64::from(slower - faster) * (exceeding % u64::from(MILLION));
        Some(Duration::from_micros(u64::from(slower) - part / u64::from(MILLION)))
    }

    /// The smoothed mean round trip; zero before the first sample.
    pub(crate) const fn mean(&self) -> Duration {
        self.mean
    }

    /// The shortest round trip remembered.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.sorted.first().map(|&micros| Duration::from_micros(micros.into()))
    }

    /// A lower bound of the round trip time: an ACK that comes sooner after a retransmission is for the
    /// original. The bound is below the shortest sample by as much as that is below the mean, but at least
    /// half of it. The shortest sample itself would be wrong for one ACK in n + 1, with n samples.
    pub(crate) fn rtt_lower_bound(&self) -> Option<Duration> {
        let shortest = self.shortest()?;
        let below = self.mean.saturating_sub(shortest);
        Some(shortest.saturating_sub(below).max(shortest / 2))
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn after(answers: impl IntoIterator<Item = Duration>) -> RttSamples {
        let mut times = RttSamples::default();
        answers.into_iter().for_each(|time| times.on_sample(time));
        times
    }

    fn timeout(times: &RttSamples) -> Duration {
        times.timeout(&ProbeConfig::DEFAULT, Round::First).expect("there was an answer")
    }

    #[test]
    fn the_margin_narrows_to_the_least_on_a_steady_path() {
        for round in Round::BOTH {
            assert_eq!(RttSamples::default().timeout(&ProbeConfig::DEFAULT, round), None);
        }
        for (count, margin_us) in [(1, 60_000), (2, 60_000), (10, 5000), (34, 1500), (1000, 1500)] {
            let times = after(vec![MS(100); count]);
            assert_eq!(timeout(&times), MS(100) + Duration::from_micros(margin_us), "{count}");
        }
    }

    /// The mean of the waits for a first sending and for a repetition, and how many of a thousand sent
    /// were repeated early: jitter of 5 ms each way, with a normal distribution, and a loss of 5 %.
    fn with_jitter(timer: &ProbeConfig) -> ([f64; 2], f64) {
        let mut rng = Seed::from_u64(1).rng();
        let mut times = RttSamples::default();
        let (mut early, mut waits, mut lost) = (0, [Duration::ZERO; 2], [0, 0]);
        const SENT: u32 = 50_000;
        for _ in 0..SENT {
            for round in Round::BOTH {
                let timeout = times.timeout(timer, round).unwrap_or(MS(200));
                let vary = (0..24).map(|_| rng.unit()).sum::<f64>() - 12.0;
                let time = Duration::from_secs_f64(0.1 + 0.005 * vary);
                let is_lost = rng.chance(0.05);
                early += u32::from(!is_lost && time > timeout);
                waits[round as usize] += timeout;
                lost[round as usize] += 1;
                if round == Round::First {
                    times.on_first_awaited(is_lost || time > timeout);
                    if !is_lost {
                        times.on_sample(time);
                        break; // It answers what was repeated early, too.
                    }
                }
            }
        }
        let mean = |round: usize| waits[round].as_secs_f64() / f64::from(lost[round]);
        ([mean(0), mean(1)], f64::from(early) * 1000.0 / f64::from(SENT))
    }

    /// The two timeouts are as close to 20 + 27 ms as 256 samples allow: 2.58 and 1.28 deviations of 7.07 ms.
    #[test]
    fn data_that_is_retransmitted_early_keeps_within_the_stated_share() {
        let ([first, again], early) = with_jitter(&ProbeConfig::DEFAULT);
        assert!((6.5..10.0).contains(&early), "{early} of 1000");
        assert!((0.117..0.1195).contains(&first), "{first}");
        assert!((0.108..0.111).contains(&again), "{again}");
        let twice = ProbeConfig { late_per_mille: 20, ..ProbeConfig::DEFAULT };
        let (waits, early) = with_jitter(&twice);
        assert!((13.0..20.0).contains(&early), "{early} of 1000");
        assert!(waits[0] < first && waits[1] < again, "{waits:?}");
    }

    /// As many repetitions as there are first sendings: nothing is gained by a shorter wait.
    #[test]
    fn the_more_is_repeated_the_longer_a_retransmission_is_waited_for() {
        let mut times =
            after((0..1000).map(|n| MS(100) + Duration::from_micros(n * 37 % 1000 * 20)));
        let again = |times: &RttSamples| times.timeout(&ProbeConfig::DEFAULT, Round::Again);
        let (least, first) = (again(&times), times.timeout(&ProbeConfig::DEFAULT, Round::First));
        (0..200).for_each(|n| times.on_first_awaited(n % 20 == 0));
        let few = again(&times);
        (0..1000).for_each(|_| times.on_first_awaited(true));
        assert!(least < few && few < again(&times), "{least:?} {few:?}");
        assert!(first.unwrap().abs_diff(again(&times).unwrap()) < MS(1));
    }

    #[test]
    fn a_few_very_late_acks_are_not_waited_for_long() {
        let mut times = after(vec![MS(100); 1000]);
        for _ in 0..5 {
            times.on_sample(MS(400));
        }
        assert!(timeout(&times) > MS(390));
        (0..150).for_each(|_| times.on_sample(MS(100)));
        assert!(timeout(&times) < MS(120), "{:?}", timeout(&times));
    }

    /// One packet in ten takes another route, whose round trip is 30 ms longer.
    #[test]
    fn acks_that_are_late_now_and_then_are_waited_for() {
        let mut rng = Seed::from_u64(2).rng();
        let mut times = RttSamples::default();
        let late = (0..10_000)
            .filter(|&n| {
                let time = if rng.chance(0.1) { MS(130) } else { MS(100) };
                let is_late = n > 100 && time > timeout(&times);
                times.on_sample(time);
                is_late
            })
            .count();
        assert!(late < 60, "{late} of 10,000");
    }

    /// 200 ms, as the address was resolved, and 100 ms from then on.
    #[test]
    fn a_slow_ack_among_the_first_is_not_waited_for() {
        for slow in 0..4 {
            for known in 6..300 {
                let answers = (0..known).map(|n| if n == slow { MS(200) } else { MS(100) });
                let timeout = timeout(&after(answers));
                assert!(timeout < MS(120), "{timeout:?} with {known}, of which {slow} was late");
            }
        }
        // Two of them are no exception, and neither is jitter.
        let two = after((0..20).map(|n| if n < 2 { MS(200) } else { MS(100) }));
        assert!(timeout(&two) >= MS(200));
        let jitter = after((0..20).map(|n| MS(100 + n * 7 % 20)));
        assert!(timeout(&jitter) >= MS(119));
    }

    /// The first answers of a server are those that no other client's delay.
    #[test]
    fn a_cold_path_has_a_margin_of_half_a_round_trip_and_ten_milliseconds_and_sixty_at_least() {
        for (rtt, count, least) in [(150, 1, 235), (150, 4, 235), (150, 5, 165), (20, 4, 80)] {
            assert_eq!(timeout(&after(vec![MS(rtt); count])), MS(least), "{count} of {rtt} ms");
        }
        assert_eq!(timeout(&after([Duration::from_micros(200)])), Duration::from_micros(60_200));
    }

    #[test]
    fn a_path_that_became_longer_is_known_at_once() {
        let mut times = after(vec![MS(100); 1000]);
        (0..4).for_each(|_| times.on_sample(MS(150)));
        assert!(timeout(&times) > MS(150), "{:?}", timeout(&times));
    }

    #[test]
    fn lost_acks_are_few_and_delayed_ones_are_not() {
        let is_delayed = |missed: fn(u32) -> bool| {
            let mut times = RttSamples::default();
            (0..200).for_each(|n| times.on_ack_outcome(missed(n)));
            times.are_delayed()
        };
        assert!(!is_delayed(|n| n % 10 == 0));
        assert!(is_delayed(|n| n % 2 == 0));
        let mut times = RttSamples::default();
        (0..3).for_each(|_| times.on_ack_outcome(true));
        assert!(times.are_delayed(), "the first ones are enough");
    }

    #[test]
    fn memory_is_bounded() {
        let times = after((0..10_000).map(MS));
        assert_eq!((times.recent.len(), times.sorted.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(times.shortest(), Some(MS(10_000 - REMEMBERED as u64)));
    }
}
