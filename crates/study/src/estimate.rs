//! Estimate of a quantity over the seeds of a cell.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// A quantity over the seeds of a cell.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of seeds with a value.
    pub seeds: u64,
    /// The mean over the seeds.
    pub mean: f64,
    /// The 95 % confidence interval of the mean (Student's t); `None` with one seed.
    pub interval: Option<(f64, f64)>,
    /// The least and the largest value.
    pub range: (f64, f64),
}

impl Estimate {
    /// The estimate from a value per seed; `None` without any. Values that are not finite count as
    /// missing.
    ///
    /// The interval uses Student's t distribution with n − 1 degrees of freedom for n values. It
    /// assumes that the values of different seeds are independent, which holds, and approximately
    /// normal, which holds for means and quantiles of many messages, and less so for maxima.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        if values.is_empty() {
            return None;
        }
        let seeds = values.len() as f64;
        let mean = values.iter().sum::<f64>() / seeds;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let interval = (values.len() > 1).then(|| {
            let half = t_quantile(values.len() - 1) * (squares / (seeds - 1.0) / seeds).sqrt();
            (mean - half, mean + half)
        });
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self { seeds: values.len() as u64, mean, interval, range: (least, largest) })
    }

    /// A given number, without uncertainty.
    #[must_use]
    pub fn exactly(value: f64) -> Self {
        Self { seeds: 0, mean: value, interval: None, range: (value, value) }
    }
}

/// The 97.5 % quantile of Student's t distribution with this many degrees of freedom.
fn t_quantile(freedom: usize) -> f64 {
    let t =
        StudentsT::new(0.0, 1.0, freedom as f64).expect("the scale and the freedom are positive");
    t.inverse_cdf(0.975)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST/SEMATECH e-Handbook of Statistical Methods §1.3.6.7.2, the column 0.975.
    #[test]
    fn quantiles_are_those_of_the_published_table() {
        let table = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (29, 2.045),
            (30, 2.042),
            (60, 2.000),
            (100, 1.984),
        ];
        for (freedom, quantile) in table {
            let ours = t_quantile(freedom);
            assert!((ours - quantile).abs() < 5e-4, "{freedom}: {ours} instead of {quantile}");
        }
    }

    #[test]
    fn intervals_are_of_the_mean() {
        // Mean 3, standard deviation √2.5, so 3 ± 2.776 · √0.5.
        let estimate = Estimate::of([1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let (from, to) = estimate.interval.unwrap();
        assert_eq!((estimate.seeds, estimate.mean, estimate.range), (5, 3.0, (1.0, 5.0)));
        assert!((from - (3.0 - 1.9629)).abs() < 1e-3 && (to - (3.0 + 1.9629)).abs() < 1e-3);
    }

    #[test]
    fn missing_values_are_not_counted() {
        assert_eq!(Estimate::of([]), None);
        assert_eq!(Estimate::of([f64::NAN]), None);
        let one = Estimate::of([f64::NAN, 2.0]).unwrap();
        assert_eq!((one.seeds, one.mean, one.interval), (1, 2.0, None));
        assert_eq!(Estimate::of([2.0, 2.0]).unwrap().interval, Some((2.0, 2.0)));
    }
}
