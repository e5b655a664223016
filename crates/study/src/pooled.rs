//! Statistics of the values of all runs of a cell together.
//!
//! The 99th percentile of a few values is their maximum, so that the mean of such percentiles over the seeds is not the
//! percentile of any distribution. Pooled over the runs, there are enough values for the statistic. Values of one run
//! are not independent of each other, but runs are: the confidence interval is the middle 95 % of the statistic over
//! [`REPLICATES`] random choices of as many runs, with replacement (a percentile bootstrap of clusters). Both sides of
//! a comparison have the same seeds, and each choice of seeds is applied to both.

use rexmit_core::Seed;
use rexmit_lab::scenario::{Distribution, QUANTILES};

use crate::estimate::Estimate;

/// The least number of runs: with fewer, a bootstrap gives too narrow an interval.
pub(crate) const MIN_RUNS: usize = 10;
/// Number of random choices of runs.
const REPLICATES: usize = 2000;

/// The mistake of pooling another quantity.
pub(crate) const NOT_POOLED: &str =
    "`pooled` needs a mean, percentile or maximum of a distribution, as `game.latency.p99`";

/// A statistic of values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Statistic {
    Mean,
    /// The least value that at least this share does not exceed.
    Quantile(f64),
    Max,
}

impl Statistic {
    /// The distribution and the statistic that a quantity's name stands for: `game.rtx1.p99` is the 99th percentile of
    /// `game.rtx1`.
    pub(crate) fn of(name: &str) -> Option<(&str, Self)> {
        let (distribution, part) = name.rsplit_once('.')?;
        let quantile = || QUANTILES.iter().find(|(quantile, ..)| *quantile == part);
        let statistic = match part {
            "mean" => Self::Mean,
            "max" => Self::Max,
            _ => Self::Quantile(quantile()?.1),
        };
        Some((distribution, statistic))
    }
}

/// The values of all runs of a cell.
pub(crate) struct Pool {
    /// Each value with its run and its count there, ascending by value.
    values: Vec<(f64, usize, u64)>,
    statistic: Statistic,
}

impl Pool {
    /// The values of `runs`, in the order of the seeds; a run without values adds nothing.
    pub(crate) fn new(runs: &[Option<&Distribution>], statistic: Statistic) -> Self {
        let mut values = Vec::new();
        for (run, distribution) in runs.iter().enumerate() {
            let of_run = distribution.iter().flat_map(|all| all.values.iter().zip(&all.counts));
            values.extend(of_run.map(|(value, count)| (*value, run, *count)));
        }
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { values, statistic }
    }

    /// The statistic, if run `n` occurs `times[n]` times; `None` without values.
    fn value(&self, times: &[u64]) -> Option<f64> {
        let weighed = self.values.iter().map(|(value, run, count)| (*value, count * times[*run]));
        let weighed = weighed.filter(|(_, weight)| *weight > 0);
        let total: u64 = weighed.clone().map(|(_, weight)| weight).sum();
        if total == 0 {
            return None;
        }
        match self.statistic {
            Statistic::Mean => {
                let sum: f64 = weighed.map(|(value, weight)| value * weight as f64).sum();
                Some(sum / total as f64)
            }
            Statistic::Max => weighed.map(|(value, _)| value).next_back(),
            Statistic::Quantile(share) => {
                let rank = (share * total as f64).ceil() as u64;
                let mut below = 0;
                let mut weighed = weighed;
                weighed.find_map(|(value, weight)| {
                    below += weight;
                    (below >= rank).then_some(value)
                })
            }
        }
    }
}

/// One side of a comparison, or both: the statistic, and its value for each choice of runs.
pub(crate) struct Bootstrap {
    /// The statistic of all runs.
    pub(crate) all: Vec<f64>,
    /// For each choice of runs, the statistic of each side.
    choices: Vec<Vec<f64>>,
    runs: usize,
}

impl Bootstrap {
    /// Chooses among `runs` runs; `None` if a side has no values.
    pub(crate) fn of(pools: &[Pool], runs: usize) -> Option<Self> {
        let values = |times: &[u64]| pools.iter().map(|pool| pool.value(times)).collect();
        let all: Option<Vec<f64>> = values(&vec![1; runs]);
        let all = all?;
        let mut rng = Seed::from_u64(0).split("bootstrap").rng();
        let choices = (0..REPLICATES).filter_map(|_| {
            let mut times = vec![0; runs];
            (0..runs).for_each(|_| times[rng.below(runs as u64) as usize] += 1);
            values(&times)
        });
        Some(Self { all, choices: choices.collect(), runs })
    }

    /// The interval of the value that `of` computes from the statistic of each side; `None` with fewer than
    /// [`MIN_RUNS`].
    pub(crate) fn interval(&self, of: &dyn Fn(&[f64]) -> f64) -> Option<(f64, f64)> {
        if self.runs < MIN_RUNS {
            return None;
        }
        let mut values: Vec<f64> = self.choices.iter().map(|values| of(values)).collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values.get((share * (values.len() - 1) as f64).round() as usize);
        Some((*at(0.025)?, *at(0.975)?))
    }

    /// The estimate of the value that `of` computes.
    pub(crate) fn estimate(&self, of: &dyn Fn(&[f64]) -> f64) -> Estimate {
        let mean = of(&self.all);
        let interval = self.interval(of);
        Estimate {
            seeds: self.runs as u64,
            mean,
            interval,
            range: interval.unwrap_or((mean, mean)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution(values: &[f64]) -> Distribution {
        Distribution { values: values.to_vec(), counts: vec![1; values.len()] }
    }

    #[test]
    fn statistics_are_of_all_runs_together() {
        let runs = [distribution(&[1.0, 2.0, 3.0]), distribution(&[10.0])];
        let value = |statistic, times: &[u64]| {
            Pool::new(&[Some(&runs[0]), None, Some(&runs[1])], statistic).value(times)
        };
        assert_eq!(value(Statistic::Mean, &[1, 1, 1]), Some(4.0));
        assert_eq!(value(Statistic::Quantile(0.5), &[1, 1, 1]), Some(2.0));
        assert_eq!(value(Statistic::Quantile(0.99), &[1, 1, 1]), Some(10.0));
        assert_eq!(value(Statistic::Max, &[2, 1, 0]), Some(3.0));
        assert_eq!(value(Statistic::Mean, &[0, 1, 0]), None);
    }

    #[test]
    fn names_say_which_statistic_of_what() {
        assert_eq!(Statistic::of("a.rtx1.p99"), Some(("a.rtx1", Statistic::Quantile(0.99))));
        assert_eq!(Statistic::of("a.rtx1.max"), Some(("a.rtx1", Statistic::Max)));
        assert_eq!(Statistic::of("a.goodput"), None);
    }

    /// The mean of n values 0 or 1, half of each: its standard error is 0.5 / √n.
    #[test]
    fn the_interval_is_that_of_the_mean_for_single_values() {
        let runs: Vec<Distribution> = (0..100).map(|n| distribution(&[f64::from(n % 2)])).collect();
        let runs: Vec<_> = runs.iter().map(Some).collect();
        let pool = Pool::new(&runs, Statistic::Mean);
        let bootstrap = Bootstrap::of(&[pool], runs.len()).unwrap();
        let (from, to) = bootstrap.interval(&|values| values[0]).unwrap();
        assert!((from - 0.402).abs() < 0.02 && (to - 0.598).abs() < 0.02, "{from} to {to}");
    }

    #[test]
    fn few_runs_have_no_interval() {
        let run = distribution(&[1.0, 2.0]);
        let interval = |runs: usize| {
            let pool = Pool::new(&vec![Some(&run); runs], Statistic::Mean);
            Bootstrap::of(&[pool], runs).unwrap().interval(&|values| values[0])
        };
        assert_eq!(interval(MIN_RUNS - 1), None);
        assert_eq!(interval(MIN_RUNS), Some((1.5, 1.5)));
    }

    /// The runs differ much more than the two sides within a run: with independent choices of runs, no difference would
    /// be found.
    #[test]
    fn both_sides_are_of_the_same_runs() {
        let low: Vec<Distribution> =
            (0..20).map(|n| distribution(&[f64::from(n) * 100.0])).collect();
        let high: Vec<Distribution> =
            (0..20).map(|n| distribution(&[f64::from(n) * 100.0 + 1.0])).collect();
        let sides = [&low, &high].map(|side| {
            let side: Vec<_> = side.iter().map(Some).collect();
            Pool::new(&side, Statistic::Mean)
        });
        let bootstrap = Bootstrap::of(&sides, 20).unwrap();
        let (from, to) = bootstrap.interval(&|values| values[1] - values[0]).unwrap();
        assert!((from - 1.0).abs() < 1e-9 && (to - 1.0).abs() < 1e-9);
    }
}
