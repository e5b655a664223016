//! Axes that a claim does not go along point by point, but takes together.

use crate::scenario::Distribution;
use crate::study::axis::{Axis, Choice, axis_index};
use crate::study::fields::Fields;
use crate::study::report::Estimate;
use crate::study::results::Results;
use crate::study::sweep::{Sweep, Term};

/// How the values at several points become one, for each seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::study) enum Together {
    #[default]
    Mean,
    Largest,
}

/// The fields of a claim that name such axes, and how each is put into words.
const FIELDS: [(&str, Together, &str); 2] =
    [("averaged", Together::Mean, "mean"), ("largest", Together::Largest, "largest")];

/// The axes whose points are taken together; none of them, of most claims.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Gathered {
    axes: Vec<usize>,
    together: Together,
}

/// One side of a comparison: something measured in one cell, or in several that are taken together.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::study) struct Operand {
    pub(in crate::study) terms: Vec<Term>,
    together: Together,
}

impl Gathered {
    /// Reads the axes; what is wrong with them is noted.
    pub(super) fn read(fields: &mut Fields<'_, '_>, sweep: &Sweep<'_>) -> Self {
        let notes = fields.notes();
        let mut gathered = Self::default();
        for (name, together, _) in FIELDS {
            let Some(names) = fields.texts(name) else { continue };
            if names.is_empty() {
                notes.add(fields.at, format!("`{name}` needs at least one axis"));
            }
            if !gathered.axes.is_empty() {
                notes.add(fields.at, "`averaged` and `largest` exclude each other");
                break;
            }
            let axes = names.iter();
            let axes = axes.filter_map(|axis| axis_index(notes, sweep.axes, &axis.value, axis.at));
            gathered = Self { axes: axes.collect(), together };
            gathered.axes.sort_unstable();
            gathered.axes.dedup();
        }
        gathered
    }

    /// Whether the points of `axis` are taken together.
    pub(super) fn has(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    /// Notes, at the table that is read, if points of such an axis are chosen.
    pub(super) fn check(&self, fields: &Fields<'_, '_>, sweep: &Sweep<'_>, chosen: &Choice) {
        for &axis in self.axes.iter().filter(|&&axis| chosen[axis].is_some()) {
            let name = &sweep.axes[axis].name;
            let what = format!("all points of `{name}` are taken together: `at` chooses none");
            fields.notes().add(fields.at, what);
        }
    }

    /// Leaves of each such axis one point, to stand for all.
    pub(super) fn stand_in(&self, mut chosen: Choice) -> Choice {
        self.axes.iter().for_each(|&axis| chosen[axis] = Some(vec![0]));
        chosen
    }

    /// Without the points that only stand for others.
    pub(super) fn without(&self, mut chosen: Choice) -> Choice {
        self.axes.iter().for_each(|&axis| chosen[axis] = None);
        chosen
    }

    /// How many points one stands for.
    pub(super) fn points_of_each(&self, axes: &[Axis]) -> usize {
        self.axes.iter().map(|&axis| axes[axis].points.len()).product()
    }

    /// The points that `point` stands for.
    pub(super) fn points(&self, sweep: &Sweep<'_>, point: &[usize]) -> Vec<Vec<usize>> {
        let here = point.iter().enumerate();
        let choice = here.map(|(axis, &index)| (!self.has(axis)).then(|| vec![index])).collect();
        sweep.points(&choice)
    }

    /// What is measured under `name` at `point`.
    pub(super) fn operand(&self, sweep: &Sweep<'_>, name: &str, point: &[usize]) -> Operand {
        let points = self.points(sweep, point).into_iter();
        let term = |point: Vec<usize>| Term { cell: sweep.cell(&point), name: name.to_owned() };
        Operand { terms: points.map(term).collect(), together: self.together }
    }

    /// ` (mean over loss)`; nothing of no axes.
    pub(super) fn words(&self, axes: &[Axis]) -> String {
        if self.axes.is_empty() {
            return String::new();
        }
        let names: Vec<&str> = self.axes.iter().map(|&axis| axes[axis].name.as_str()).collect();
        let word = FIELDS.iter().find(|(_, together, _)| *together == self.together);
        format!(" ({} over {})", word.map_or("", |(_, _, word)| word), names.join(", "))
    }
}

impl Operand {
    /// A value per seed, NaN where there is none in any of the cells.
    pub(super) fn values(&self, results: &Results) -> Vec<f64> {
        let cells = self.terms.iter().map(|term| results.values(term));
        let together = |left: f64, right: f64| match self.together {
            Together::Mean => left + right,
            // The largest of those that there are might not be the largest.
            Together::Largest if left.is_nan() || right.is_nan() => f64::NAN,
            Together::Largest => left.max(right),
        };
        let values = cells.reduce(|all, cell| {
            all.into_iter().zip(cell).map(|(left, right)| together(left, right)).collect()
        });
        let mut values = values.unwrap_or_default();
        if self.together == Together::Mean {
            let cells = self.terms.len() as f64;
            values.iter_mut().for_each(|value| *value /= cells);
        }
        values
    }

    pub(super) fn estimate(&self, results: &Results) -> Option<Estimate> {
        Estimate::of(self.values(results))
    }

    /// A distribution per seed, where there is one: those are of one cell.
    pub(super) fn distributions<'r>(&self, results: &'r Results) -> Vec<Option<&'r Distribution>> {
        self.terms.first().map_or_else(Vec::new, |term| results.distributions(term))
    }
}
