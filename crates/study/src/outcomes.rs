//! The measurements of a study's runs that its page needs.
//!
//! Outcomes are processed one at a time. From each, its single numbers are kept, and the distributions and series that
//! a claim or a figure uses.

use std::collections::{BTreeMap, BTreeSet};

use rexmit_lab::scenario::{Distribution, RunOutcome, Series};

use crate::estimate::Estimate;
use crate::sweep::Term;

/// The distributions and series of outcomes that are kept.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) distributions: BTreeSet<Term>,
    /// Each with its seed.
    pub(crate) series: BTreeSet<(Term, u64)>,
}

/// All outcomes of a study.
pub(crate) struct Outcomes {
    seeds: Vec<u64>,
    wanted: Wanted,
    /// Number of runs with an outcome.
    pub(crate) runs: u64,
    /// Per cell and name: a value per seed, NaN where missing.
    quantities: Vec<BTreeMap<String, Vec<f64>>>,
    distributions: BTreeMap<Term, Vec<Option<Distribution>>>,
    series: BTreeMap<(Term, u64), Series>,
}

impl Outcomes {
    pub(crate) fn new(cells: usize, seeds: &[u64], wanted: Wanted) -> Self {
        Self {
            seeds: seeds.to_vec(),
            wanted,
            runs: 0,
            quantities: vec![BTreeMap::new(); cells],
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        }
    }

    /// Adds the measurements of the run of the `seed`-th seed in `cell`.
    pub(crate) fn add(&mut self, cell: usize, seed: usize, mut outcome: RunOutcome) {
        self.runs += 1;
        let seeds = self.seeds.len();
        for (name, value) in outcome.quantities {
            let values = self.quantities[cell].entry(name).or_insert_with(|| vec![f64::NAN; seeds]);
            values[seed] = value;
        }
        for (name, distribution) in outcome.distributions {
            let term = Term { cell, name };
            if self.wanted.distributions.contains(&term) {
                let all = self.distributions.entry(term).or_insert_with(|| vec![None; seeds]);
                all[seed] = Some(distribution);
            }
        }
        let number = self.seeds[seed];
        for (term, _) in
            self.wanted.series.iter().filter(|(term, of)| term.cell == cell && *of == number)
        {
            if let Some(series) = outcome.series.remove(&term.name) {
                self.series.insert((term.clone(), number), series);
            }
        }
    }

    /// A value per seed, NaN where missing.
    pub(crate) fn values(&self, term: &Term) -> Vec<f64> {
        let values = self.quantities[term.cell].get(&term.name);
        values.cloned().unwrap_or_else(|| vec![f64::NAN; self.seeds.len()])
    }

    /// The number of seeds.
    pub(crate) fn seeds(&self) -> usize {
        self.seeds.len()
    }

    /// Estimates of all quantities measured in a cell.
    pub(crate) fn estimates(&self, cell: usize) -> BTreeMap<String, Estimate> {
        let all = self.quantities[cell].iter();
        all.filter_map(|(name, values)| Some((name.clone(), Estimate::of(values.iter().copied())?)))
            .collect()
    }

    /// One distribution per seed, if there is one.
    pub(crate) fn distributions(&self, term: &Term) -> Vec<Option<&Distribution>> {
        let all = self.distributions.get(term);
        all.map_or_else(
            || vec![None; self.seeds.len()],
            |all| all.iter().map(Option::as_ref).collect(),
        )
    }

    pub(crate) fn series(&self, term: &Term, seed: u64) -> Option<&Series> {
        self.series.get(&(term.clone(), seed))
    }
}
