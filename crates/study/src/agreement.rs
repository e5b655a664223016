//! A test whether two distributions agree, which takes into account that the messages of one run
//! are not independent.
//!
//! The statistic is the Kolmogorov–Smirnov distance: the largest difference between the two
//! empirical distribution functions, over the pooled messages of all runs of each side. Its usual
//! tables assume independent messages, but one loss delays many messages of a run. Runs are
//! independent, so the distance is compared with those obtained by exchanging whole runs between
//! the sides (a permutation test). If both sides have the same seeds, only runs of the same seed
//! are exchanged. The p-value is the share of exchanges, the identity included, whose distance is
//! at least the measured one.
//!
//! With few runs no exchange can be rare: two of the `2ⁿ` exchanges of `n` pairs always have the
//! measured distance, so fewer than six pairs cannot show a difference at the 5 % level, nor can
//! fewer than four against four unpaired runs. [`Agreement::has_power`] reports this.

use rexmit_core::Seed;

use rexmit_lab::scenario::Distribution;

/// Number of random exchanges; if there are no more than this, all are evaluated.
pub const EXCHANGES: u32 = 4000;

/// How the runs of the two sides are related.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pairing {
    /// The n-th runs of both sides have the same seed. Runs without a partner are ignored.
    Paired,
    /// The runs are independent.
    Unpaired,
}

/// The distance of two distributions, and its significance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Agreement {
    /// The Kolmogorov–Smirnov distance, from 0 to 1.
    pub distance: f64,
    /// The share of exchanges of runs between the sides whose distance is at least as large.
    pub p: f64,
    /// The number of runs of the first and of the second side.
    pub runs: (usize, usize),
    /// Whether this number of runs could show a difference at the 5 % level.
    pub has_power: bool,
}

/// Compares the distributions of two sides, given as one distribution per run; `None` if either
/// side has no values.
///
/// The result is deterministic: random exchanges are drawn from a fixed seed.
#[must_use]
pub fn agreement(
    left: &[&Distribution],
    right: &[&Distribution],
    pairing: Pairing,
) -> Option<Agreement> {
    let pairs = left.len().min(right.len());
    let (left, right) = match pairing {
        Pairing::Paired => (&left[..pairs], &right[..pairs]),
        Pairing::Unpaired => (left, right),
    };
    let runs = Runs::new(left, right);
    let measured: Vec<bool> = (0..left.len() + right.len()).map(|run| run < left.len()).collect();
    let distance = runs.distance(&measured)?;
    let exchanges = match pairing {
        Pairing::Paired => 2f64.powi(pairs as i32),
        Pairing::Unpaired => choose(left.len() + right.len(), left.len()),
    };
    let p = if exchanges <= f64::from(EXCHANGES) {
        every(&measured, pairing, left.len(), |sides| runs.reaches(sides, distance))
    } else {
        drawn(&measured, pairing, left.len(), |sides| runs.reaches(sides, distance))
    };
    let (runs, has_power) = ((left.len(), right.len()), 2.0 / exchanges <= 0.05);
    Some(Agreement { distance, p, runs, has_power })
}

/// A distribution with its values rounded to the nearest multiple of `grain`.
///
/// Latencies of a simulated network have few distinct values, so that the least shift of one side,
/// such as the lateness of a real clock, results in the full distance. Rounding removes such a
/// shift if `grain` is more than twice as large, and the values are near its multiples.
#[must_use]
pub fn rounded(distribution: &Distribution, grain: f64) -> Distribution {
    let mut coarse = Distribution::default();
    for (value, &count) in distribution.values.iter().zip(&distribution.counts) {
        let value = (value / grain).round() * grain;
        if coarse.values.last() == Some(&value) {
            *coarse.counts.last_mut().expect("one per value") += count;
        } else {
            coarse.values.push(value);
            coarse.counts.push(count);
        }
    }
    coarse
}

/// The messages of all runs of both sides, counted per value.
struct Runs {
    /// Per run, the number of messages with each of the values that occur in any run.
    counts: Vec<Vec<u64>>,
}

impl Runs {
    fn new(left: &[&Distribution], right: &[&Distribution]) -> Self {
        let all = || left.iter().chain(right);
        let mut values: Vec<f64> = all().flat_map(|run| run.values.iter().copied()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let aligned = |run: &&Distribution| {
            let mut counts = vec![0; values.len()];
            for (value, count) in run.values.iter().zip(&run.counts) {
                counts[values.partition_point(|other| other.total_cmp(value).is_lt())] += count;
            }
            counts
        };
        Self { counts: all().map(aligned).collect() }
    }

    /// The distance between the runs with `is_left` and the others.
    fn distance(&self, is_left: &[bool]) -> Option<f64> {
        let width = self.counts.first()?.len();
        let mut sides = [vec![0; width], vec![0; width]];
        for (counts, &is_left) in self.counts.iter().zip(is_left) {
            let side = &mut sides[usize::from(is_left)];
            for (sum, count) in side.iter_mut().zip(counts) {
                *sum += count;
            }
        }
        let totals = [0, 1].map(|side: usize| sides[side].iter().sum::<u64>() as f64);
        if totals[0] == 0.0 || totals[1] == 0.0 {
            return None;
        }
        let (mut below, mut largest) = ([0.0; 2], 0f64);
        for (right, left) in sides[0].iter().zip(&sides[1]) {
            below[0] += *right as f64 / totals[0];
            below[1] += *left as f64 / totals[1];
            largest = largest.max((below[0] - below[1]).abs());
        }
        Some(largest)
    }

    /// Whether the distance is at least `measured`, with a tolerance for rounding errors.
    fn reaches(&self, is_left: &[bool], measured: f64) -> bool {
        self.distance(is_left).is_some_and(|distance| distance >= measured - 1e-12)
    }
}

/// The share of all exchanges with at least the measured distance.
fn every(
    measured: &[bool],
    pairing: Pairing,
    left: usize,
    mut reaches: impl FnMut(&[bool]) -> bool,
) -> f64 {
    let (mut all, mut reached) = (0u32, 0u32);
    let mut judge = |sides: &[bool]| {
        all += 1;
        reached += u32::from(reaches(sides));
    };
    match pairing {
        Pairing::Paired => {
            for exchanged in 0..1u32 << left {
                let is_left = |run: usize| measured[run] ^ (exchanged >> (run % left) & 1 == 1);
                judge(&(0..measured.len()).map(is_left).collect::<Vec<_>>());
            }
        }
        Pairing::Unpaired => subsets(&mut vec![false; measured.len()], 0, left, &mut judge),
    }
    f64::from(reached) / f64::from(all)
}

/// Calls `judge` for every choice of `left` more runs among those with index `from` or higher.
fn subsets(sides: &mut Vec<bool>, from: usize, left: usize, judge: &mut impl FnMut(&[bool])) {
    if left == 0 {
        return judge(sides);
    }
    for run in from..=sides.len() - left {
        sides[run] = true;
        subsets(sides, run + 1, left - 1, judge);
        sides[run] = false;
    }
}

/// The p-value, estimated from [`EXCHANGES`] random exchanges: the share of them that reach at least the
/// measured distance, the measured assignment included.
fn drawn(
    measured: &[bool],
    pairing: Pairing,
    left: usize,
    mut reaches: impl FnMut(&[bool]) -> bool,
) -> f64 {
    let mut rng = Seed::from_u64(0).split("agreement").rng();
    let mut reached = 1u32; // The one that was measured.
    for _ in 0..EXCHANGES {
        let mut sides = measured.to_vec();
        match pairing {
            Pairing::Paired => (0..left).for_each(|run| {
                if rng.chance(0.5) {
                    sides.swap(run, run + left);
                }
            }),
            Pairing::Unpaired => (1..sides.len()).for_each(|run| {
                sides.swap(run, rng.below(run as u64 + 1) as usize);
            }),
        }
        reached += u32::from(reaches(&sides));
    }
    f64::from(reached) / f64::from(EXCHANGES + 1)
}

/// The binomial coefficient: the number of ways to choose `some` out of `all`.
fn choose(all: usize, some: usize) -> f64 {
    (0..some).map(|index| (all - index) as f64 / (index + 1) as f64).product::<f64>().round()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `count` messages of every value in `values`.
    fn run(values: std::ops::Range<u32>, count: u64) -> Distribution {
        let values: Vec<f64> = values.map(f64::from).collect();
        Distribution { counts: vec![count; values.len()], values }
    }

    fn compare(left: &[Distribution], right: &[Distribution], pairing: Pairing) -> Agreement {
        let all = |side: &'_ [Distribution]| side.to_vec();
        let (left, right) = (all(left), all(right));
        let (left, right): (Vec<_>, Vec<_>) = (left.iter().collect(), right.iter().collect());
        agreement(&left, &right, pairing).unwrap()
    }

    #[test]
    fn the_distance_is_the_largest_difference_of_shares() {
        // 0…9 and 5…14: below 5 are half of the first and none of the second.
        let apart = compare(&[run(0..10, 3)], &[run(5..15, 1)], Pairing::Unpaired);
        assert!((apart.distance - 0.5).abs() < 1e-12);
        assert_eq!((apart.p, apart.has_power), (1.0, false));
        assert_eq!(compare(&[run(0..10, 3)], &[run(0..10, 9)], Pairing::Paired).distance, 0.0);
        assert_eq!(agreement(&[&run(0..1, 1)], &[&run(0..0, 1)], Pairing::Unpaired), None);
        assert_eq!(agreement(&[], &[], Pairing::Paired), None);
    }

    #[test]
    fn sides_that_never_overlap_have_the_least_p_that_there_is() {
        let left: Vec<_> = (0..6).map(|n| run(n..n + 4, 1)).collect();
        let right: Vec<_> = (0..6).map(|n| run(20 + n..24 + n, 1)).collect();
        // Only the measured sides and their mirror image are so far apart.
        assert_eq!(compare(&left, &right, Pairing::Paired).p, 2.0 / 64.0);
        assert_eq!(compare(&left, &right, Pairing::Unpaired).p, 2.0 / 924.0);
        let paired = |n: usize| compare(&left[..n], &right[..n], Pairing::Paired).has_power;
        assert_eq!((paired(5), paired(6)), (false, true));
        let unpaired = |n: usize| compare(&left[..n], &right[..n], Pairing::Unpaired).has_power;
        assert_eq!((unpaired(3), unpaired(4)), (false, true));
    }

    /// Runs differ from each other far more than their messages do: a test for independent messages would report a
    /// difference that these runs do not show.
    #[test]
    fn runs_that_differ_among_themselves_hide_no_agreement() {
        let left: Vec<_> = (0..8).map(|n| run(10 * n..10 * n + 5, 1000)).collect();
        let right: Vec<_> = (0..8).map(|n| run(10 * n + 5..10 * n + 10, 1000)).collect();
        let apart = compare(&left, &right, Pairing::Unpaired);
        assert!(apart.distance > 0.12 && apart.p > 0.5, "{apart:?}");
    }

    #[test]
    fn pairs_show_a_shift_that_is_smaller_than_what_seeds_differ() {
        let left: Vec<_> = (0..8).map(|n| run(4 * n..4 * n + 40, 1)).collect();
        let right: Vec<_> = (0..8).map(|n| run(4 * n + 10..4 * n + 50, 1)).collect();
        assert_eq!(compare(&left, &right, Pairing::Paired).p, 2.0 / 256.0);
        assert!(compare(&left, &right, Pairing::Unpaired).p > 0.05);
    }

    /// Values as on a real clock: all are slightly late.
    #[test]
    fn a_grain_takes_no_notice_of_less_than_half_of_it() {
        let of = |values: &[f64]| Distribution { values: values.to_vec(), counts: vec![10, 2, 1] };
        let [exact, late, later] =
            [[50.0, 100.0, 150.0], [50.3, 100.2, 150.4], [56.0, 106.0, 156.0]].map(|v| of(&v));
        let sides = |other: &Distribution, grain: f64| {
            let all = |side: &Distribution| vec![rounded(side, grain); 6];
            compare(&all(&exact), &all(other), Pairing::Paired)
        };
        assert_eq!((sides(&late, 0.01).distance, sides(&late, 0.01).p), (10.0 / 13.0, 2.0 / 64.0));
        assert_eq!((sides(&late, 10.0).distance, sides(&late, 10.0).p), (0.0, 1.0));
        assert!(sides(&later, 10.0).distance > 0.7);
        let merged = rounded(&of(&[50.0, 50.3, 61.0]), 10.0);
        assert_eq!((merged.values, merged.counts), (vec![50.0, 60.0], vec![12, 1]));
    }

    #[test]
    fn drawn_exchanges_agree_with_all_of_them() {
        let sides: Vec<_> = (0..16).map(|n| run(n * n % 11..n * n % 11 + 9, 1)).collect();
        let refs: Vec<&Distribution> = sides.iter().collect();
        let runs = Runs::new(&refs[..8], &refs[8..]);
        let measured: Vec<bool> = (0..16).map(|run| run < 8).collect();
        let distance = runs.distance(&measured).unwrap();
        for pairing in [Pairing::Paired, Pairing::Unpaired] {
            let exact = every(&measured, pairing, 8, |sides| runs.reaches(sides, distance));
            let drawn = drawn(&measured, pairing, 8, |sides| runs.reaches(sides, distance));
            // Four standard deviations of the share among 4000.
            assert!((exact - drawn).abs() < 0.032, "{pairing:?}: {drawn} instead of {exact}");
            assert!((0.05..0.95).contains(&exact), "{exact}");
        }
    }
}
