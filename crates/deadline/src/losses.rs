//! The share of packets that are lost, and how long losses last.
//!
//! The share is the mean over all packets since it changed last, up to [`MEMORY`]. Two CUSUM tests (Page 1954) find a change: each
//! adds the logarithm of how much more likely an outcome is at the share that it looks for, is zero at least, and at its limit the
//! share is that of the packets since the test was zero.
//!
//! Losses come in bursts if a packet is lost more often when one shortly before was lost: at a time t after that, with probability
//! r(t) = p + (1 − p)·exp(−t/τ). That is the model of Gilbert and Elliott with a state that loses all packets, and one that loses none.

use std::time::Duration;

use rexmit_core::Instant;

/// The share is the mean over as many packets.
const MEMORY: f64 = 8192.0;
/// The share begins as if so many packets had been sent, with this share of losses.
const AT_FIRST: (f64, f64) = (12.0, 0.03);
/// With more than this, copies do not help.
const MOST: f64 = 0.5;
/// The least share that the test for a rise compares with. A larger one than the estimate lets a loss after a long time
/// without losses show a rise at once.
const LEAST_BEFORE: f64 = 0.0005;
/// How many times the share of losses a rise looks for; [`LEAST_RISEN`] at least.
const RISE: f64 = 3.0;
const LEAST_RISEN: f64 = 0.05;
const RISE_LIMIT: f64 = 6.5;
/// A share below this is next to nothing: then one loss or two show a rise.
const NEXT_TO_NOTHING: f64 = 0.002;
const RISE_LIMIT_FROM_NOTHING: f64 = 3.5;
/// After a rise the share counts as if so many packets without loss had been sent besides.
const BESIDE_RISE: f64 = 20.0;
/// The test for a fall looks for the share divided by this.
const FALL: f64 = 8.0;
/// A false alarm is rare, and the next loss after it is a rise.
const FALL_LIMIT: f64 = 7.0;
/// After a fall the share counts as if this part of a packet had been lost.
const BESIDE_FALL: f64 = 0.1;
/// The share exceeds the mean by this part of its standard error.
const CAUTION: f64 = 0.3;
/// Pairs of packets are counted by the time between them: up to 1, 2, 4, … milliseconds.
const BINS: usize = 11;
/// The number of latest losses among which a pair counts for the length of bursts.
const PAIRS: f64 = 256.0;

/// The fate of a packet, as far as it is known: the probability that it was lost.
pub(super) type Fate = f64;

/// Packets with new data, and their losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Losses {
    share: f64,
    packets: f64,
    rise: Cusum,
    fall: Cusum,
    bins: [Pairs; BINS],
    last: Option<(Instant, Fate)>,
}

/// A test for a change of the share, and what was sent and lost since its sum was zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cusum {
    sum: f64,
    packets: f64,
    lost: f64,
}

/// Pairs of packets of which the first was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Pairs {
    count: f64,
    both_lost: f64,
    /// How many both would be if losses were independent, by the share at that time.
    expected: f64,
    /// The sum of the times between them, in seconds.
    apart: f64,
}

impl Default for Losses {
    fn default() -> Self {
        let (packets, share) = AT_FIRST;
        let (rise, fall) = (Cusum::default(), Cusum::default());
        Self { share, packets, rise, fall, bins: [Pairs::default(); BINS], last: None }
    }
}

impl Cusum {
    fn add(&mut self, fate: Fate, before: f64, after: f64) {
        let if_lost = (after / before).ln();
        let if_not = ((1.0 - after) / (1.0 - before)).ln();
        self.sum += fate * if_lost + (1.0 - fate) * if_not;
        if self.sum <= 0.0 {
            *self = Self::default();
            return;
        }
        self.packets += 1.0;
        self.lost += fate;
    }
}

impl Losses {
    /// The fate of the first transmission of a unit that was sent at `sent_at` is known. Of units that were sent together, in one
    /// packet or not, the first one counts.
    pub(super) fn on_fate(&mut self, sent_at: Instant, fate: Fate) {
        if self.last.is_some_and(|(last, _)| last == sent_at) {
            return;
        }
        self.packets = (self.packets + 1.0).min(MEMORY);
        self.share += (fate - self.share) / self.packets;
        self.find_change(fate);
        if let Some((before, fate_before)) = self.last.replace((sent_at, fate)) {
            self.on_pair(sent_at - before, fate_before, fate);
        }
    }

    /// Of two packets sent so far `apart`, each was lost with this probability.
    pub(super) fn on_pair(&mut self, apart: Duration, first: Fate, second: Fate) {
        if first <= 0.0 {
            return;
        }
        let millis = apart.as_millis().max(1).ilog2() as usize;
        let share = self.share.min(MOST);
        let Some(pairs) = self.bins.get_mut(millis) else { return };
        pairs.count += first;
        pairs.both_lost += first * second;
        pairs.expected += first * share;
        pairs.apart += first * apart.as_secs_f64();
        if pairs.count > PAIRS {
            let sums =
                [&mut pairs.count, &mut pairs.both_lost, &mut pairs.expected, &mut pairs.apart];
            sums.into_iter().for_each(|sum| *sum /= 2.0);
        }
    }

    fn find_change(&mut self, fate: Fate) {
        let before = self.share.clamp(LEAST_BEFORE, MOST);
        let risen = (RISE * before).clamp(LEAST_RISEN, 0.75);
        self.rise.add(fate, before, risen);
        let is_from_nothing = before < NEXT_TO_NOTHING;
        let limit = if is_from_nothing { RISE_LIMIT_FROM_NOTHING } else { RISE_LIMIT };
        if self.rise.sum >= limit {
            let packets = self.rise.packets + BESIDE_RISE;
            let share = self.rise.lost / packets;
            if share > self.share {
                self.restart(share, packets);
            }
            self.rise = Cusum::default();
            return;
        }
        self.fall.add(fate, before, before / FALL);
        if self.fall.sum >= FALL_LIMIT {
            let packets = self.fall.packets;
            self.restart((self.fall.lost + BESIDE_FALL) / packets, packets);
        }
    }

    fn restart(&mut self, share: f64, packets: f64) {
        (self.share, self.packets) = (share, packets.min(MEMORY));
        (self.rise, self.fall) = (Cusum::default(), Cusum::default());
    }

    /// Whether the share is that of the beginning rather than of packets sent.
    pub(super) fn is_assumed(&self) -> bool {
        self.packets < 4.0 * AT_FIRST.0
    }

    /// The probability that the next packet is lost.
    pub(super) fn share(&self) -> f64 {
        let error = (self.share * (1.0 - self.share) / self.packets).sqrt();
        (self.share + CAUTION * error).min(MOST)
    }

    /// How likely a packet is lost if one `apart` before was: r.
    pub(super) fn share_after_loss(&self, apart: Duration) -> f64 {
        let p = self.share();
        let tau = self.burst();
        if tau <= 0.0 { p } else { p + (1.0 - p) * (-apart.as_secs_f64() / tau).exp() }
    }

    /// How long bursts last: τ, in seconds; zero if losses are independent, as far as is known.
    fn burst(&self) -> f64 {
        let of = |pairs: &Pairs| {
            let expected = pairs.expected;
            let is_more = pairs.both_lost > expected + 4.0 * expected.sqrt() + 3.0;
            let beyond = (pairs.both_lost - expected) / (pairs.count - expected);
            let apart = pairs.apart / pairs.count;
            is_more.then(|| (pairs.count, apart / -beyond.min(0.99).ln()))
        };
        let known = self.bins.iter().filter_map(of);
        let (weight, sum) = known
            .fold((0.0, 0.0), |(weight, sum), (count, tau)| (weight + count, sum + count * tau));
        if weight > 0.0 { sum / weight } else { 0.0 }
    }

    pub(super) fn are_bursty(&self) -> bool {
        self.burst() > 0.0
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    const EVERY: Duration = Duration::from_millis(50);

    /// Sends so many packets, 50 ms apart, of which the share `loss` is lost.
    fn send(losses: &mut Losses, packets: u32, loss: f64, seed: u64) {
        let mut rng = Seed::from_u64(seed).rng();
        for _ in 0..packets {
            let at = losses.last.map_or(Instant::ZERO, |(at, _)| at + EVERY);
            losses.on_fate(at, f64::from(u8::from(rng.chance(loss))));
        }
    }

    /// The mean over twenty seeds.
    fn mean(of: impl Fn(u64) -> f64) -> f64 {
        (0..20).map(of).sum::<f64>() / 20.0
    }

    #[test]
    fn a_rise_shows_within_fifty_packets() {
        let risen = mean(|seed| {
            let mut losses = Losses::default();
            send(&mut losses, 2000, 0.0, seed);
            assert!(losses.share() < 0.001, "{losses:?}");
            send(&mut losses, 50, 0.05, seed);
            losses.share()
        });
        assert!((0.03..0.1).contains(&risen), "{risen}");
    }

    /// 200 packets are ten seconds at 50 ms.
    #[test]
    fn a_fall_shows_within_two_hundred_packets() {
        for seed in 0..20 {
            let mut losses = Losses::default();
            send(&mut losses, 2000, 0.05, seed);
            send(&mut losses, 200, 0.0, seed);
            assert!(losses.share() < 0.01, "seed {seed}: {losses:?}");
        }
    }

    #[test]
    fn is_near_the_true_share() {
        for share in [0.01, 0.05, 0.1] {
            let found = mean(|seed| {
                let mut losses = Losses::default();
                send(&mut losses, 20_000, share, seed);
                losses.share()
            });
            assert!((0.95 * share..1.2 * share).contains(&found), "{found} at {share}");
        }
    }

    /// Losses from before a fall of the share do not look like bursts after it.
    #[test]
    fn after_a_fall_independent_losses_are_no_bursts() {
        let mut losses = Losses::default();
        send(&mut losses, 4000, 0.05, 0);
        send(&mut losses, 200, 0.0, 0);
        assert!(losses.share() < 0.01 && !losses.are_bursty(), "{losses:?}");
    }

    #[test]
    fn more_than_half_is_not_believed() {
        let mut losses = Losses::default();
        send(&mut losses, 1000, 1.0, 0);
        assert_eq!(losses.share(), MOST);
    }

    /// Packets every 10 ms, and bursts of 30 ms.
    #[test]
    fn bursts_are_measured_and_independent_losses_are_none() {
        let mut rng = Seed::from_u64(1).rng();
        let (mut bursty, mut independent) = (Losses::default(), Losses::default());
        let (mut is_bad, share) = (false, 0.05);
        let apart = Duration::from_millis(10);
        // Of the time that a state lasts in the mean, the share after which it has ended.
        let tau = 0.030 * (1.0 - share);
        let stays = (-0.010_f64 / tau).exp();
        let mut now = Instant::ZERO;
        for _ in 0..50_000 {
            now += apart;
            is_bad = if rng.chance(stays) { is_bad } else { rng.chance(share) };
            bursty.on_fate(now, f64::from(u8::from(is_bad)));
            independent.on_fate(now, f64::from(u8::from(rng.chance(share))));
        }
        assert!(!independent.are_bursty());
        assert_eq!(independent.share_after_loss(apart), independent.share());
        let found = bursty.burst();
        assert!((0.7 * tau..1.4 * tau).contains(&found), "{found} for {tau}");
        let soon = bursty.share_after_loss(apart);
        assert!((0.55..0.85).contains(&soon), "{soon}");
        assert!(bursty.share_after_loss(Duration::from_secs(1)) < 0.1);
    }
}
