//! The names and the values of measurements, written together so that they are consistent.

use crate::measure::LatencyDistribution;

use super::outcome::{Catalogue, Described, Distribution, RunOutcome, Series, Unit};

/// The quantiles of latencies, with their names and descriptions.
pub const QUANTILES: [(&str, f64, &str); 5] = [
    ("p50", 0.5, "median"),
    ("p90", 0.9, "90th percentile"),
    ("p99", 0.99, "99th percentile"),
    ("p999", 0.999, "99.9th percentile"),
    ("p9999", 0.9999, "99.99th percentile"),
];

/// Collects the measurements of one flow after the other.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    /// The names.
    pub(super) catalogue: Catalogue,
    /// The values.
    pub(super) outcome: RunOutcome,
    flow: String,
    /// Whether subsequent measurements have names, but no values.
    is_unknown: bool,
}

impl Sheet {
    /// Sets the flow to which subsequent names belong.
    pub(super) fn set_flow(&mut self, flow: &str) {
        flow.clone_into(&mut self.flow);
    }

    /// Sets whether subsequent measurements have no values.
    pub(super) fn set_is_unknown(&mut self, is_unknown: bool) {
        self.is_unknown = is_unknown;
    }

    /// The flow to which names belong.
    pub(super) fn flow(&self) -> &str {
        &self.flow
    }

    fn described(&self, name: &str, unit: Unit, about: &str) -> Described {
        Described { name: format!("{}.{name}", self.flow), unit, about: about.to_owned() }
    }

    /// Adds a number; without a value, only its name.
    pub(super) fn quantity(&mut self, name: &str, unit: Unit, about: &str, value: Option<f64>) {
        let described = self.described(name, unit, about);
        if let Some(value) = value.filter(|value| value.is_finite() && !self.is_unknown) {
            self.outcome.quantities.insert(described.name.clone(), value);
        }
        self.catalogue.quantities.push(described);
    }

    /// Adds a count.
    pub(super) fn count(&mut self, name: &str, about: &str, count: u64) {
        self.quantity(name, Unit::Count, about, Some(count as f64));
    }

    /// Adds a part of a whole as a share; undefined if the whole is zero.
    pub(super) fn share(&mut self, name: &str, about: &str, part: u64, whole: u64) {
        let share = (whole > 0).then(|| part as f64 / whole as f64);
        self.quantity(name, Unit::Share, about, share);
    }

    /// Adds a distribution of times, with its mean, quantiles and maximum.
    pub(super) fn latency(&mut self, name: &str, about: &str, latency: &LatencyDistribution) {
        let quantiles = QUANTILES.map(|(part, at, words)| {
            (part, words, (latency.count() > 0).then(|| latency.quantile(at)))
        });
        let summary = latency.summary();
        let mean = ("mean", "mean", summary.map(|summary| summary.mean));
        let max = ("max", "maximum", summary.map(|summary| summary.max));
        for (part, words, value) in std::iter::once(mean).chain(quantiles).chain([max]) {
            let value = value.map(|value| value.as_nanos() as f64 / 1e6);
            let about = format!("{about}: {words}");
            self.quantity(&format!("{name}.{part}"), Unit::Milliseconds, &about, value);
        }
        let (values, counts) =
            latency.steps().map(|(at, count)| (at.as_nanos() as f64 / 1e6, count)).unzip();
        self.distribution(name, Unit::Milliseconds, about, Distribution { values, counts });
    }

    /// Adds a distribution; without values, only its name.
    pub(super) fn distribution(
        &mut self,
        name: &str,
        unit: Unit,
        about: &str,
        distribution: Distribution,
    ) {
        let described = self.described(name, unit, about);
        if !distribution.values.is_empty() && !self.is_unknown {
            self.outcome.distributions.insert(described.name.clone(), distribution);
        }
        self.catalogue.distributions.push(described);
    }

    /// Adds values over time, if there are any.
    pub(super) fn series(&mut self, name: &str, unit: Unit, about: &str, series: Series) {
        let described = self.described(name, unit, about);
        if !series.values.is_empty() && !self.is_unknown {
            self.outcome.series.insert(described.name.clone(), series);
        }
        self.catalogue.series.push(described);
    }
}
