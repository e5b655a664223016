//! What the runs of a study have measured, as far as its report needs it.
//!
//! Outcomes come one by one and are let go: of each remain its single numbers, and those of its
//! distributions and series that a claim or a figure asks for.

use std::collections::{BTreeMap, BTreeSet};

use super::report::Estimate;
use super::sweep::Term;
use crate::scenario::{Distribution, RunOutcome, Series};

/// What is kept of outcomes beside their single numbers.
#[derive(Default)]
pub(super) struct Wanted {
    pub(super) distributions: BTreeSet<Term>,
    /// With the seed.
    pub(super) series: BTreeSet<(Term, u64)>,
}

/// All outcomes of a study.
pub(super) struct Results {
    seeds: Vec<u64>,
    wanted: Wanted,
    /// Runs that there is an outcome of.
    pub(super) runs: u64,
    /// Per cell and name: a value per seed, NaN where there is none.
    quantities: Vec<BTreeMap<String, Vec<f64>>>,
    distributions: BTreeMap<Term, Vec<Option<Distribution>>>,
    series: BTreeMap<(Term, u64), Series>,
}

impl Results {
    pub(super) fn new(cells: usize, seeds: &[u64], wanted: Wanted) -> Self {
        Self {
            seeds: seeds.to_vec(),
            wanted,
            runs: 0,
            quantities: vec![BTreeMap::new(); cells],
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        }
    }

    /// Takes what the run of the `seed`-th seed in `cell` has measured.
    pub(super) fn add(&mut self, cell: usize, seed: usize, mut outcome: RunOutcome) {
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

    /// A value per seed, NaN where there is none.
    pub(super) fn values(&self, term: &Term) -> Vec<f64> {
        let values = self.quantities[term.cell].get(&term.name);
        values.cloned().unwrap_or_else(|| vec![f64::NAN; self.seeds.len()])
    }

    /// Everything that was measured in a cell.
    pub(super) fn estimates(&self, cell: usize) -> BTreeMap<String, Estimate> {
        let all = self.quantities[cell].iter();
        all.filter_map(|(name, values)| Some((name.clone(), Estimate::of(values.iter().copied())?)))
            .collect()
    }

    /// A distribution per seed, where there is one.
    pub(super) fn distributions(&self, term: &Term) -> Vec<Option<&Distribution>> {
        let all = self.distributions.get(term);
        all.map_or_else(
            || vec![None; self.seeds.len()],
            |all| all.iter().map(Option::as_ref).collect(),
        )
    }

    pub(super) fn series(&self, term: &Term, seed: u64) -> Option<&Series> {
        self.series.get(&(term.clone(), seed))
    }
}
