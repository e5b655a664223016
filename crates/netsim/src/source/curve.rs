//! Distributions with given quantiles and a given mean.

use rexmit_core::Rng;

use super::SourceError;

/// A distribution given by its quantile function, which passes through some points. Between two
/// points it is an exponential curve whose bend is chosen to give the required mean.
///
/// Between the points (u₀, a) and (u₁, b) the quantile of u is a·(b/a)^(t^bend), with t = (u −
/// u₀)/(u₁ − u₀). A bend of 1 makes the logarithm uniform between two points; a larger one moves
/// values towards the lower point, and so reduces the mean. Only the upper parts are bent: they
/// dominate the mean, and a steep curve at the lower points would make sample quantiles there vary
/// strongly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Curve<const N: usize> {
    /// Share of the values below, and the value; both ascending, values above zero.
    points: [(f64, f64); N],
    /// The index of the first point from which parts are bent.
    bent_from: usize,
    bend: f64,
}

/// The range in which the bend is searched.
const BENDS: (f64, f64) = (1e-3, 1e3);
/// Number of steps between two points in the numerical integration of the mean.
const PLACES: u32 = 1000;
const HALVINGS: u32 = 40;

impl<const N: usize> Curve<N> {
    /// The distribution through `points` with this mean.
    pub(super) fn with_mean(
        points: [(f64, f64); N],
        bent_from: usize,
        mean: f64,
    ) -> Result<Self, SourceError> {
        let bent = |bend| Self { points, bent_from, bend };
        let (mut low, mut high) = BENDS;
        if !(bent(high).mean()..=bent(low).mean()).contains(&mean) {
            let [(_, min), .., (_, max)] = points[..] else {
                return Err(SourceError::ZeroSize("a distribution"));
            };
            return Err(SourceError::ImpossibleMean { mean, min, max });
        }
        for _ in 0..HALVINGS {
            let middle = (low * high).sqrt();
            if bent(middle).mean() > mean {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(bent((low * high).sqrt()))
    }

    pub(super) fn sample(&self, rng: &mut Rng) -> f64 {
        self.quantile(rng.unit())
    }

    fn quantile(&self, u: f64) -> f64 {
        let inner = &self.points[1..N - 1];
        let part = inner.iter().take_while(|point| point.0 <= u).count();
        let (u0, u1) = (self.points[part].0, self.points[part + 1].0);
        self.within(part, (u - u0) / (u1 - u0))
    }

    /// The quantile at `t`, from 0 to 1, in the part that begins with this point.
    fn within(&self, part: usize, t: f64) -> f64 {
        let (a, b) = (self.points[part].1, self.points[part + 1].1);
        let t = if part < self.bent_from { t } else { libm::pow(t, self.bend) };
        a * libm::exp(libm::log(b / a) * t)
    }

    fn mean(&self) -> f64 {
        let mean_of = |part| {
            let at = |n| self.within(part, (f64::from(n) + 0.5) / f64::from(PLACES));
            let share = self.points[part + 1].0 - self.points[part].0;
            share * (0..PLACES).map(at).sum::<f64>() / f64::from(PLACES)
        };
        (0..N - 1).map(mean_of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_core::Seed;

    const POINTS: [(f64, f64); 4] = [(0.0, 1.0), (0.5, 10.0), (0.9, 100.0), (1.0, 1000.0)];

    #[test]
    fn a_curve_goes_through_its_points_and_has_its_mean() {
        for mean in [20.0, 50.0, 80.0] {
            let curve = Curve::with_mean(POINTS, 1, mean).unwrap();
            let mut rng = Seed::from_u64(1).rng();
            let mut values: Vec<_> = (0..1_000_000).map(|_| curve.sample(&mut rng)).collect();
            values.sort_unstable_by(f64::total_cmp);
            let sampled = values.iter().sum::<f64>() / values.len() as f64;
            assert!((sampled / mean - 1.0).abs() < 0.01, "{sampled} for {mean}");
            for (u, value) in POINTS {
                assert!((curve.quantile(u.min(1.0 - 1e-9)) / value - 1.0).abs() < 1e-3);
            }
            assert!(values[0] >= 1.0 && values[values.len() - 1] <= 1000.0);
            assert!(curve.quantile(0.6) >= 10.0 && curve.quantile(0.4999) < 10.0);
        }
    }

    #[test]
    fn a_mean_that_the_points_forbid_is_refused() {
        // The mean is between 1.95 + 0.4 · 10 + 0.1 · 100 and 1.95 + 0.4 · 100 + 0.1 · 1000: 1.95 from the lower half,
        // whose curve is fixed, and the rest at the lower or upper ends of its two parts.
        for mean in [15.0, 143.0, f64::NAN] {
            let curve = Curve::with_mean(POINTS, 1, mean);
            assert!(matches!(curve, Err(SourceError::ImpossibleMean { .. })), "{mean}");
        }
    }
}
