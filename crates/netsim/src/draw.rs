//! Random numbers of several distributions.
//!
//! Uses libm instead of the platform's functions, so that the same seed gives the same bytes on
//! every machine.

use std::time::Duration;

use rexmit_core::Rng;

/// Standard normal: mean 0, standard deviation 1 (Box–Muller).
pub(crate) fn standard_normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - rng.unit())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * rng.unit())
}

/// Exponential with mean 1.
pub(crate) fn standard_exponential(rng: &mut Rng) -> f64 {
    -libm::log(1.0 - rng.unit())
}

/// Exponential with the mean `mean_nanos` in nanoseconds; at least one nanosecond.
pub(crate) fn exponential(rng: &mut Rng, mean_nanos: f64) -> Duration {
    let nanos = standard_exponential(rng) * mean_nanos;
    Duration::from_nanos(nanos.round().max(1.0) as u64)
}
