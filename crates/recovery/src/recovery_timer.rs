//! The recovery timer of a thin stream: what it waits for.
//!
//! A packet in flight is *overdue* when its acknowledgement should have come: when it left, plus how
//! long answers take, plus a margin. A thin stream has nothing better to go by: later packets, whose
//! acknowledgements would tell a loss, leave too late or never. The margin follows what was measured,
//! packet by packet ([`AnswerTimes`]): next to nothing on a steady path, and on one with jitter what
//! all but a share of the answers keep within.
//!
//! # How many may be late
//! What is stated is how many packets of all may be repeated while their answer is under way. A first
//! sending is at risk of that always, a repetition only where there was one: if the share r of the
//! packets is repeated, late shares a and b cost a + r·b. A message that is lost twice waits for both,
//! w(a) + w(b). Where the tail of answers falls exponentially, w is c·ln(1/a), and the least sum at a
//! given cost has a = r·b: half the cost for each, whatever c and r are. (A normal tail is thinner and
//! would give the first less, for 0.3 of 27 ms with 5 ms of jitter each way and r = 5 %.) So a first
//! sending waits for all but half the stated share, and a repetition for all but that half divided by
//! r: a far shorter time, at the same cost.
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
/// A margin below this would repeat more often than anything can be answered; and what is added to the
/// slowest answer that is waited for, for clocks.
const LEAST_MARGIN: Duration = Duration::from_micros(100);
/// A silence below this would be one of the machine rather than of the path.
const LEAST_SILENCE: Duration = Duration::from_millis(10);
/// The longest margin and silence.
const MOST: Duration = Duration::from_secs(60);
/// The margin is at most so many mean deviations, for the time after a few very late answers.
const MOST_DEVIATIONS: u32 = 8;

/// Repetitions of which more are late would gain little: the wait is near the mean.
const MOST_LATE_AGAIN: u32 = MILLION / 4;
const MILLION: u32 = 1_000_000;
/// The weight of a packet in the share of those that are repeated is at least one part in so many.
const REPEATED_WEIGHT: u32 = 256;

/// Which answer is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// That to something that was not judged lost so far.
    First,
    /// That to what was, and left again.
    Again,
}

impl Round {
    pub(crate) const BOTH: [Self; 2] = [Self::First, Self::Again];
}

/// The timer by which a thin stream repeats each packet that is not acknowledged when it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecoveryTimer {
    /// Whether it runs. It finds every loss, of a repeated packet, too, within a round trip and the
    /// margin; a lost acknowledgement that no later one makes up for costs a needless copy.
    pub is_on: bool,
    /// The least time beyond the mean of answers, 0.1 ms to 60 s. Less finds losses sooner, and takes
    /// what the measured times do not show for a loss. Where they vary by more, what they show is enough.
    #[serde(with = "words::duration")]
    pub min_margin: Duration,
    /// Of a thousand packets, how many may be repeated though their answer is under way: half of these
    /// after they left once, half after they left again. Zero waits for the slowest answer of the 256
    /// remembered, which as many as one in 257 exceed.
    pub late_per_mille: u16,
    /// When nothing was acknowledged for so long, 10 ms to 60 s, and for four times as long as an answer
    /// takes, the timer rests until something is, and leaves the path to T3-rtx, which backs off. After
    /// eight repetitions without an answer to what left once its own time doubles with each.
    #[serde(with = "words::duration")]
    pub silence: Duration,
}

impl RecoveryTimer {
    /// No such timer.
    pub const OFF: Self = Self { is_on: false, ..Self::ON };

    /// A margin of 1.5 ms at least, one packet in a hundred repeated early, and a second of silence.
    pub const ON: Self = Self {
        is_on: true,
        min_margin: Duration::from_micros(1500),
        late_per_mille: 10,
        silence: Duration::from_secs(1),
    };

    /// Whether the values make sense.
    pub(crate) fn is_valid(&self) -> bool {
        self.late_per_mille < 1000
            && (LEAST_MARGIN..=MOST).contains(&self.min_margin)
            && (LEAST_SILENCE..=MOST).contains(&self.silence)
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
    /// Packets that left once and were answered in time, or waited for in vain; not beyond what counts.
    waited: u32,
    /// The smoothed share of those waited for in vain, of 65,536.
    repeated: u32,
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

    /// What left once was answered in time, or has been waited for in vain.
    pub(crate) fn on_first_waited(&mut self, is_in_vain: bool) {
        self.waited = (self.waited + 1).min(REPEATED_WEIGHT);
        let weight = (self.waited + 16).min(REPEATED_WEIGHT);
        self.repeated -= self.repeated / weight;
        self.repeated += if is_in_vain { 65_536 / weight } else { 0 };
    }

    /// How long to wait for an answer; `None` before there was one.
    ///
    /// While few are known the margin is wider: half the time of an answer after the first, as RTTVAR
    /// is, and less by each.
    pub(crate) fn patience(&self, timer: &RecoveryTimer, round: Round) -> Option<Duration> {
        let late = self.exceeded_by(self.late_share(timer, round))?;
        let most = self.mean + MOST_DEVIATIONS * self.deviation;
        let at_first = self.mean / self.count.saturating_mul(2);
        let within = late.min(most) + LEAST_MARGIN.max(at_first);
        Some(within.max(self.mean + timer.min_margin.max(at_first)))
    }

    /// How many answers may be late, in a million.
    fn late_share(&self, timer: &RecoveryTimer, round: Round) -> u32 {
        let half = u32::from(timer.late_per_mille) * (MILLION / 1000 / 2);
        match round {
            Round::First => half,
            Round::Again => {
                let among_repeated = u64::from(half) * 65_536 / u64::from(self.repeated.max(1));
                among_repeated.min(MOST_LATE_AGAIN.max(half).into()) as u32
            }
        }
    }

    /// The time that so many answers in a million exceed, as far as those remembered tell: of n, the
    /// k-th slowest is exceeded by k in n + 1, and between two of them the time is between theirs.
    fn exceeded_by(&self, share: u32) -> Option<Duration> {
        let known = self.sorted.len();
        let exceeding = (known as u64 + 1) * u64::from(share);
        let whole = (exceeding / u64::from(MILLION)) as usize;
        let slowest = |k: usize| self.sorted.get(known.checked_sub(k.min(known).max(1))?).copied();
        let (slower, faster) = (slowest(whole)?, slowest(whole + 1)?);
        let part = u64::from(slower - faster) * (exceeding % u64::from(MILLION));
        Some(Duration::from_micros(u64::from(slower) - part / u64::from(MILLION)))
    }

    /// The shortest that is remembered.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.sorted.first().map(|&micros| Duration::from_micros(micros.into()))
    }

    /// No answer takes so little. Of n repetitions one in n is answered in less than the shortest time
    /// of n answers, and to take that for the answer to what left before would be far off: so it is as
    /// much below the shortest as that is below the mean.
    pub(crate) fn too_short(&self) -> Option<Duration> {
        let shortest = self.shortest()?;
        let below = self.mean.saturating_sub(shortest);
        Some(shortest.saturating_sub(below).max(shortest / 2))
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
        times.patience(&RecoveryTimer::ON, Round::First).expect("there was an answer")
    }

    #[test]
    fn the_margin_narrows_to_the_least_on_a_steady_path() {
        for round in Round::BOTH {
            assert_eq!(AnswerTimes::default().patience(&RecoveryTimer::ON, round), None);
        }
        for (count, margin_us) in [(1, 50_000), (2, 25_000), (10, 5000), (34, 1500), (1000, 1500)] {
            let times = after(vec![MS(100); count]);
            assert_eq!(patience(&times), MS(100) + Duration::from_micros(margin_us), "{count}");
        }
    }

    /// The mean of the waits for a first sending and for a repetition, and how many of a thousand sent
    /// were repeated early: jitter of 5 ms each way, with a normal distribution, and a loss of 5 %.
    fn with_jitter(timer: &RecoveryTimer) -> ([f64; 2], f64) {
        let mut rng = Seed::from_u64(1).rng();
        let mut times = AnswerTimes::default();
        let (mut early, mut waits, mut lost) = (0, [Duration::ZERO; 2], [0, 0]);
        const SENT: u32 = 50_000;
        for _ in 0..SENT {
            for round in Round::BOTH {
                let patience = times.patience(timer, round).unwrap_or(MS(200));
                let vary = (0..24).map(|_| rng.unit()).sum::<f64>() - 12.0;
                let time = Duration::from_secs_f64(0.1 + 0.005 * vary);
                let is_lost = rng.chance(0.05);
                early += u32::from(!is_lost && time > patience);
                waits[round as usize] += patience;
                lost[round as usize] += 1;
                if round == Round::First {
                    times.on_first_waited(is_lost || time > patience);
                    if !is_lost {
                        times.on_answer(time);
                        break; // It answers what was repeated early, too.
                    }
                }
            }
        }
        let mean = |round: usize| waits[round].as_secs_f64() / f64::from(lost[round]);
        ([mean(0), mean(1)], f64::from(early) * 1000.0 / f64::from(SENT))
    }

    /// Two rounds are as near to 20 + 27 ms as 256 answers tell: 2.58 and 1.28 deviations of 7.07 ms.
    #[test]
    fn what_is_repeated_early_keeps_within_the_stated_share() {
        let ([first, again], early) = with_jitter(&RecoveryTimer::ON);
        assert!((6.5..10.0).contains(&early), "{early} of 1000");
        assert!((0.117..0.1195).contains(&first), "{first}");
        assert!((0.108..0.111).contains(&again), "{again}");
        let twice = RecoveryTimer { late_per_mille: 20, ..RecoveryTimer::ON };
        let (waits, early) = with_jitter(&twice);
        assert!((13.0..20.0).contains(&early), "{early} of 1000");
        assert!(waits[0] < first && waits[1] < again, "{waits:?}");
    }

    /// As many repetitions as there are first sendings: nothing is gained by a shorter wait.
    #[test]
    fn the_more_is_repeated_the_longer_a_repetition_is_waited_for() {
        let mut times =
            after((0..1000).map(|n| MS(100) + Duration::from_micros(n * 37 % 1000 * 20)));
        let again = |times: &AnswerTimes| times.patience(&RecoveryTimer::ON, Round::Again);
        let (least, first) = (again(&times), times.patience(&RecoveryTimer::ON, Round::First));
        (0..200).for_each(|n| times.on_first_waited(n % 20 == 0));
        let few = again(&times);
        (0..1000).for_each(|_| times.on_first_waited(true));
        assert!(least < few && few < again(&times), "{least:?} {few:?}");
        assert!(first.unwrap().abs_diff(again(&times).unwrap()) < MS(1));
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
    fn a_silence_that_is_no_time_or_no_end_is_refused() {
        for (silence, is_valid) in
            [(0, false), (9, false), (10, true), (60_000, true), (60_001, false)]
        {
            let timer = RecoveryTimer { silence: MS(silence), ..RecoveryTimer::ON };
            assert_eq!(timer.is_valid(), is_valid, "{silence} ms");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let times = after((0..10_000).map(MS));
        assert_eq!((times.recent.len(), times.sorted.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(times.shortest(), Some(MS(10_000 - REMEMBERED as u64)));
    }
}
