//! The recovery timer of a thin stream: what it waits for.
//!
//! A packet in flight is *overdue* when its acknowledgement should have come: when it left, plus how
//! long answers take, plus a margin. A thin stream has nothing better to go by: later packets, whose
//! acknowledgements would tell a loss, leave too late or never. The margin follows what was measured,
//! packet by packet ([`AnswerTimes`]): next to nothing on a steady path, and on one with jitter what
//! all but a stated share of the answers keep within.
//!
//! # Whose acknowledgement is late
//! An answer is missed when a packet is acknowledged only together with a later one, or proves to have
//! arrived only by the report of a duplicate. Where acknowledgements are lost, a few are missed, and
//! nothing is to be learned of them: to wait for what is lost would cost more than a needless copy.
//! Where the receiver delays acknowledgements, most are. So the share of missed answers tells which of
//! both it is, and from [`DELAYED_SHARE`] on whatever acknowledged a packet counts as its answer.

use std::time::Duration;

use rexmit_core::words;
use serde::{Deserialize, Serialize};

/// Answers that are remembered.
const REMEMBERED: usize = 256;
/// Missed answers, of 65,536, from which on the receiver is taken to delay them.
const DELAYED_SHARE: u32 = 65_536 * 35 / 100;
/// The weight of the old mean against a new answer is at most all but one part in so many.
const WEIGHT: u32 = 16;
/// The same of the mean deviation while it falls, so that it outlasts a while without late answers.
const FALLING_WEIGHT: u32 = 32;
/// A margin below this would repeat more often than anything can be answered.
const LEAST_MARGIN: Duration = Duration::from_micros(100);
/// The margin is at most so many mean deviations, for the time after a few very late answers.
const MOST_DEVIATIONS: u32 = 8;

/// The timer by which a thin stream repeats each packet that is not acknowledged when it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryTimer {
    /// Whether it runs. It finds every loss, of a repeated packet, too, within a round trip and the
    /// margin; a lost acknowledgement that no later one makes up for costs a needless copy.
    pub is_on: bool,
    /// The least time beyond that of answers, 0.1 ms at least. Less finds losses sooner, and takes what
    /// the measured times do not show for a loss.
    #[serde(with = "words::duration")]
    pub min_margin: Duration,
    /// Of a thousand answers, how many may come too late, each at the cost of a needless copy: the
    /// margin is what the others keep within. Zero waits for the slowest one remembered.
    pub late_per_mille: u16,
    /// When nothing was acknowledged for so long, the timer rests until something is, and leaves
    /// the path to T3-rtx, which backs off. After eight repetitions without an answer its own time
    /// doubles with each.
    #[serde(with = "words::duration")]
    pub silence: Duration,
}

impl RecoveryTimer {
    /// No such timer.
    pub const OFF: Self = Self { is_on: false, ..Self::ON };

    /// A margin of 1.5 ms at least, one answer in a hundred late, and a second of silence.
    pub const ON: Self = Self {
        is_on: true,
        min_margin: Duration::from_micros(1500),
        late_per_mille: 10,
        silence: Duration::from_secs(1),
    };

    /// Whether the values make sense.
    pub(crate) fn is_valid(&self) -> bool {
        let margins = LEAST_MARGIN..=Duration::from_secs(60);
        self.late_per_mille < 1000 && margins.contains(&self.min_margin)
    }
}

impl Default for RecoveryTimer {
    fn default() -> Self {
        Self::OFF
    }
}

/// How long the answers to packets of a path took.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerTimes {
    /// The latest, in microseconds, as a ring that begins anywhere.
    recent: Vec<u32>,
    /// The place of the oldest, once the ring is full.
    oldest: usize,
    /// The same, ascending.
    sorted: Vec<u32>,
    mean: Duration,
    deviation: Duration,
    /// All that there were.
    count: u32,
    /// Packets of which it is known whether the answer came by itself.
    judged: u32,
    /// The smoothed share of those without, of 65,536.
    missed: u32,
}

impl AnswerTimes {
    /// A packet was answered after so long.
    pub(crate) fn on_answer(&mut self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        if self.recent.len() < REMEMBERED {
            self.recent.push(micros);
        } else {
            let forgotten = std::mem::replace(&mut self.recent[self.oldest], micros);
            self.oldest = (self.oldest + 1) % REMEMBERED;
            self.sorted.remove(self.sorted.partition_point(|&known| known < forgotten));
        }
        self.sorted.insert(self.sorted.partition_point(|&known| known < micros), micros);
        self.count = self.count.saturating_add(1);
        let weight = |most| self.count.min(most);
        if self.count == 1 {
            (self.mean, self.deviation) = (time, time / 2);
        }
        let deviation = self.mean.abs_diff(time);
        let falling = weight(if deviation < self.deviation { FALLING_WEIGHT } else { WEIGHT });
        self.deviation = blend(self.deviation, deviation, falling);
        self.mean = blend(self.mean, time, weight(WEIGHT));
    }

    /// Whether the answer to a packet came by itself.
    pub(crate) fn on_judged(&mut self, is_missed: bool) {
        self.judged = self.judged.saturating_add(1);
        let weight = self.judged.saturating_add(4).min(WEIGHT);
        self.missed -= self.missed / weight;
        self.missed += if is_missed { 65_536 / weight } else { 0 };
    }

    /// Whether the receiver is taken to delay answers.
    pub(crate) const fn are_delayed(&self) -> bool {
        self.missed > DELAYED_SHARE
    }

    /// How long to wait for an answer; `None` before there was one.
    ///
    /// While few are known the margin is wider: half the time of an answer after the first, as RTTVAR
    /// is, and less by each.
    pub(crate) fn patience(&self, timer: &RecoveryTimer) -> Option<Duration> {
        let beyond = self.sorted.len() * usize::from(timer.late_per_mille) / 1000;
        let late = *self.sorted.get(self.sorted.len().checked_sub(beyond + 1)?)?;
        let most = self.mean + MOST_DEVIATIONS * self.deviation;
        let margin = timer.min_margin.max(self.mean / self.count.saturating_mul(2));
        Some(Duration::from_micros(late.into()).min(most) + margin)
    }

    /// The shortest that is remembered.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.sorted.first().map(|&micros| Duration::from_micros(micros.into()))
    }

    /// The smoothed time.
    pub(crate) const fn mean(&self) -> Duration {
        self.mean
    }
}

/// `old · (1 − 1/n) + new / n`.
fn blend(old: Duration, new: Duration, n: u32) -> Duration {
    old - old / n + new / n
}

#[cfg(test)]
mod tests {
    use rexmit_core::Seed;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn after(answers: impl IntoIterator<Item = Duration>) -> AnswerTimes {
        let mut times = AnswerTimes::default();
        answers.into_iter().for_each(|time| times.on_answer(time));
        times
    }

    fn patience(times: &AnswerTimes) -> Duration {
        times.patience(&RecoveryTimer::ON).expect("there was an answer")
    }

    #[test]
    fn the_margin_narrows_to_the_least_on_a_steady_path() {
        assert_eq!(AnswerTimes::default().patience(&RecoveryTimer::ON), None);
        for (count, margin_us) in [(1, 50_000), (2, 25_000), (10, 5000), (34, 1500), (1000, 1500)] {
            let times = after(vec![MS(100); count]);
            assert_eq!(patience(&times), MS(100) + Duration::from_micros(margin_us), "{count}");
        }
    }

    /// Jitter of 5 ms each way, with a normal distribution: about one in a hundred is later.
    #[test]
    fn all_but_the_stated_share_keep_within_the_margin() {
        let mut rng = Seed::from_u64(1).rng();
        let mut normal = || -> f64 { (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0 };
        let mut answer = || Duration::from_secs_f64(0.1 + 0.005 * (normal() + normal()));
        let mut times = after((0..1000).map(|_| answer()));
        let late = (0..10_000)
            .filter(|_| {
                let (time, patience) = (answer(), patience(&times));
                times.on_answer(time);
                assert!(patience < MS(140), "{patience:?}");
                time > patience
            })
            .count();
        assert!((20..100).contains(&late), "{late} of 10,000");
    }

    #[test]
    fn a_few_very_late_answers_are_not_waited_for_long() {
        let mut times = after(vec![MS(100); 1000]);
        for _ in 0..5 {
            times.on_answer(MS(400));
        }
        assert!(patience(&times) > MS(390));
        (0..150).for_each(|_| times.on_answer(MS(100)));
        assert!(patience(&times) < MS(120), "{:?}", patience(&times));
    }

    /// One packet in ten takes another way, which is 30 ms longer.
    #[test]
    fn answers_that_are_late_now_and_then_are_waited_for() {
        let mut rng = Seed::from_u64(2).rng();
        let mut times = AnswerTimes::default();
        let late = (0..10_000)
            .filter(|&n| {
                let time = if rng.chance(0.1) { MS(130) } else { MS(100) };
                let is_late = n > 100 && time > patience(&times);
                times.on_answer(time);
                is_late
            })
            .count();
        assert!(late < 60, "{late} of 10,000");
    }

    #[test]
    fn a_path_that_became_longer_is_known_at_once() {
        let mut times = after(vec![MS(100); 1000]);
        (0..4).for_each(|_| times.on_answer(MS(150)));
        assert!(patience(&times) > MS(150), "{:?}", patience(&times));
    }

    #[test]
    fn lost_answers_are_few_and_delayed_ones_are_not() {
        let is_delayed = |missed: fn(u32) -> bool| {
            let mut times = AnswerTimes::default();
            (0..200).for_each(|n| times.on_judged(missed(n)));
            times.are_delayed()
        };
        assert!(!is_delayed(|n| n % 10 == 0));
        assert!(is_delayed(|n| n % 2 == 0));
        let mut times = AnswerTimes::default();
        (0..3).for_each(|_| times.on_judged(true));
        assert!(times.are_delayed(), "the first ones are enough");
    }

    #[test]
    fn memory_is_bounded() {
        let times = after((0..10_000).map(MS));
        assert_eq!((times.recent.len(), times.sorted.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(times.shortest(), Some(MS(10_000 - REMEMBERED as u64)));
    }
}
