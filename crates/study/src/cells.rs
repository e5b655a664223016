//! The cells of a study.
//!
//! Cells are in the order of the axes, the last one fastest; the runs of a cell follow each other
//! in the order of the seeds. Every cell has the same seeds, so that two runs of a seed differ in
//! the scenario only, and comparisons are paired. Seeds are small numbers; they are the keys of a
//! run's generators, so that neighbouring seeds give independent runs.

use std::collections::BTreeMap;

use rexmit_lab::scenario::{Catalogue, Problem, Scenario};
use toml::Spanned;
use toml::de::DeTable;

use crate::axis::{Axis, AxisSpec};
use crate::document::Coordinate;
use crate::merge;
use crate::mistake::{MAX_MISTAKES, Notes};

/// Largest number of runs of one study. More would run for days; such a sweep is a mistake in a
/// list of values.
pub const MAX_RUNS: usize = 50_000;

/// The checks that are applied to scenarios while a study is read.
pub(crate) struct Rules {
    pub(crate) validate: fn(&Scenario) -> Result<(), Vec<Problem>>,
    pub(crate) catalogue: fn(&Scenario) -> Catalogue,
}

impl Rules {
    pub(crate) const SCENARIO: Self =
        Self { validate: Scenario::validate, catalogue: Scenario::catalogue };
}

/// One point of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PlannedCell {
    /// The index of its point on each axis.
    pub(crate) point: Vec<usize>,
    pub(crate) scenario: Scenario,
    /// The index of its catalogue among those of the study.
    pub(crate) catalogue: usize,
}

/// The cells, and their distinct catalogues.
#[derive(Default)]
pub(crate) struct Cells {
    pub(crate) cells: Vec<PlannedCell>,
    pub(crate) catalogues: Vec<Catalogue>,
}

/// The labels of a point.
pub(crate) fn coordinates(axes: &[Axis], point: &[usize]) -> Vec<Coordinate> {
    let coordinate = |(axis, &index): (&Axis, &usize)| Coordinate {
        axis: axis.name.clone(),
        label: axis.points[index].label.clone(),
    };
    axes.iter().zip(point).map(coordinate).collect()
}

/// All combinations of indices below `sizes`; the last index changes fastest.
pub(crate) fn combinations(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    let count = sizes.iter().product();
    (0..count).map(move |mut rest: usize| {
        let mut point = vec![0; sizes.len()];
        for (index, &size) in point.iter_mut().zip(sizes).rev() {
            *index = rest % size;
            rest /= size;
        }
        point
    })
}

/// Whether the number of runs, cells times seeds, is allowed; notes a mistake if not.
pub(crate) fn is_bounded(notes: &Notes, axes: &[AxisSpec<'_>], seeds: usize) -> bool {
    let sizes: Vec<usize> = axes.iter().map(|spec| spec.sets.len()).collect();
    let runs = sizes.iter().try_fold(seeds, |runs, &size| runs.checked_mul(size));
    let is_bounded = runs.is_some_and(|runs| runs <= MAX_RUNS);
    if !is_bounded {
        let longest = axes.iter().max_by_key(|spec| spec.sets.len());
        let at = longest.map_or(0, |spec| spec.at);
        let mut factors: Vec<String> = axes
            .iter()
            .map(|spec| format!("{} of `{}`", spec.sets.len(), spec.axis.name))
            .collect();
        factors.push(format!("{seeds} seeds"));
        let factors = factors.join(" × ");
        notes.add(at, format!("{factors}: a study has at most {MAX_RUNS} runs"));
    }
    is_bounded
}

/// Creates every cell of the sweep, and notes all mistakes.
pub(crate) fn expand<'t>(
    notes: &Notes,
    base: &Spanned<DeTable<'t>>,
    axes: &[AxisSpec<'t>],
    rules: &Rules,
) -> Cells {
    let sizes: Vec<usize> = axes.iter().map(|spec| spec.sets.len()).collect();
    let mut made = Cells::default();
    let mut wrong = Wrong::default();
    for point in combinations(&sizes) {
        let mut table = base.clone();
        for (spec, &index) in axes.iter().zip(&point) {
            spec.apply(table.get_mut(), index);
        }
        for (spec, &index) in axes.iter().zip(&point) {
            spec.fill_in(table.get_mut(), index);
        }
        let own = Notes::default();
        if let Some(scenario) = merge::scenario(&own, table, rules.validate) {
            let catalogue = made.intern((rules.catalogue)(&scenario));
            made.cells.push(PlannedCell { point, scenario, catalogue });
        } else {
            wrong.add(own, &point);
            if wrong.list.len() > MAX_MISTAKES {
                break;
            }
        }
    }
    wrong.tell(notes, axes, sizes.iter().product());
    made
}

impl Cells {
    fn intern(&mut self, catalogue: Catalogue) -> usize {
        let known = self.catalogues.iter().position(|known| *known == catalogue);
        known.unwrap_or_else(|| {
            self.catalogues.push(catalogue);
            self.catalogues.len() - 1
        })
    }
}

/// The mistakes of the cells. A mistake in the base scenario occurs in all cells and is reported
/// once.
#[derive(Default)]
struct Wrong {
    /// The mistakes in the order of their position in the text, each with its message.
    list: BTreeMap<(usize, String), Affected>,
}

/// The cells in which a mistake occurs.
struct Affected {
    cells: usize,
    /// For each axis, the index that all of them have in common, if any.
    common: Vec<Option<usize>>,
}

impl Wrong {
    fn add(&mut self, notes: Notes, point: &[usize]) {
        for mistake in notes.into_list() {
            let first = || Affected { cells: 0, common: point.iter().copied().map(Some).collect() };
            let affected = self.list.entry(mistake).or_insert_with(first);
            affected.cells += 1;
            for (common, index) in affected.common.iter_mut().zip(point) {
                *common = common.filter(|common| common == index);
            }
        }
    }

    fn tell(self, notes: &Notes, axes: &[AxisSpec<'_>], cells: usize) {
        for ((at, what), affected) in self.list {
            let said = axes.iter().zip(&affected.common).filter_map(|(spec, common)| {
                let axis = &spec.axis;
                Some(format!("{} \"{}\"", axis.name, axis.points[(*common)?].label))
            });
            let said: Vec<String> = said.collect();
            if affected.cells == cells || said.is_empty() {
                notes.add(at, what);
            } else {
                notes.add(at, format!("{what} (at {})", said.join(", ")));
            }
        }
    }
}
