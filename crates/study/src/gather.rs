//! Values that claims and figures compute from several points: the mean or the largest value over
//! an axis, and the gain over the value at another point.

use rexmit_lab::scenario::{Distribution, Unit};

use crate::axis::{Axis, Choice, axis_index, choice};
use crate::estimate::Estimate;
use crate::fields::{Fields, Located};
use crate::names;
use crate::outcomes::Outcomes;
use crate::pooled::{Pool, Statistic};
use crate::sweep::{Sweep, Term};

/// How the values at several points are combined into one per seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Together {
    #[default]
    Mean,
    Largest,
}

/// The fields that list the combined axes, with their operation and its description.
const FIELDS: [(&str, Together, &str); 2] =
    [("averaged", Together::Mean, "mean"), ("largest", Together::Largest, "largest")];

/// The fields that turn a value into its relative difference from the value at another point, and whether a decrease
/// counts as positive.
const AGAINST: [(&str, bool); 2] = [("gain_over", false), ("loss_against", true)];

/// All fields of a claim or figure that this module reads.
pub(crate) const OWN_FIELDS: [&str; 4] = ["averaged", "largest", "gain_over", "loss_against"];

/// How a claim or a figure makes one value of many: the axes over which values are combined, and the point relative to
/// which gains are stated. Most have neither.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Gathered {
    axes: Vec<usize>,
    together: Together,
    against: Option<Against>,
}

/// Values are expressed relative to those at another point, or of another flow of the same run.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Against {
    /// The index of that point on each axis on which it differs from the operand.
    point: Vec<Option<usize>>,
    /// The flow, if it differs from that of the operand.
    flow: Option<String>,
    is_loss: bool,
}

/// A quantity of one cell, of several combined cells, or its gain over a reference: one side of a
/// comparison, or one point of a line.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Operand {
    pub(crate) terms: Vec<Term>,
    together: Together,
    against: Option<Base>,
}

/// The reference of a value before its cells are known.
struct Reference {
    name: String,
    point: Vec<usize>,
    is_loss: bool,
}

/// The reference of a gain.
#[derive(Clone, PartialEq, Debug)]
struct Base {
    terms: Vec<Term>,
    is_loss: bool,
}

impl Gathered {
    /// Reads these fields, and notes mistakes.
    pub(crate) fn read(fields: &mut Fields<'_, '_>, sweep: &Sweep<'_>) -> Self {
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
            gathered = Self { axes: axes.collect(), together, against: None };
            gathered.axes.sort_unstable();
            gathered.axes.dedup();
        }
        gathered.against = gathered.read_against(fields, sweep);
        gathered
    }

    /// The same axes, with the reference that `than` names, if it does: gains are compared with gains.
    pub(crate) fn with_base_of(&self, than: &mut Fields<'_, '_>, sweep: &Sweep<'_>) -> Self {
        let own = self.read_against(than, sweep);
        if own.is_some() && self.against.is_none() {
            than.notes().add(than.at, "only the right side is a gain");
        }
        Self { against: own.or_else(|| self.against.clone()), ..self.clone() }
    }

    /// Reads `gain_over = { at.AXIS = LABEL, flow = FLOW }`, of which one is enough.
    fn read_against(&self, fields: &mut Fields<'_, '_>, sweep: &Sweep<'_>) -> Option<Against> {
        let notes = fields.notes();
        let values = AGAINST.map(|(name, is_loss)| Some((name, is_loss, fields.take(name)?)));
        let mut given = values.into_iter().flatten();
        let (name, is_loss, value) = given.next()?;
        if given.next().is_some() {
            notes.add(fields.at, "`gain_over` and `loss_against` exclude each other");
        }
        let mut inner = Fields::of(notes, name, value)?;
        let chosen = choice(&mut inner, sweep.axes);
        let flow = inner.text("flow").map(|flow| flow.value);
        self.check(&inner, sweep, &chosen);
        inner.finish();
        let is_same = flow.is_none() && chosen.iter().all(Option::is_none);
        if is_same || chosen.iter().flatten().any(|all| all.len() != 1) {
            let what = "chooses one point: `at`, with a label per axis, or another `flow`";
            notes.add(inner.at, format!("`{name}` {what}"));
            return None;
        }
        let point = chosen.into_iter().map(|chosen| chosen.map(|all| all[0])).collect();
        Some(Against { point, flow, is_loss })
    }

    /// The unit of the result for a quantity of `unit`.
    pub(crate) const fn unit(&self, unit: Unit) -> Unit {
        if self.against.is_some() { Unit::Share } else { unit }
    }

    /// Whether the points of `axis` are combined.
    pub(crate) fn has(&self, axis: usize) -> bool {
        self.axes.contains(&axis)
    }

    /// Notes a mistake at the current table if it selects points of a combined axis.
    pub(crate) fn check(&self, fields: &Fields<'_, '_>, sweep: &Sweep<'_>, chosen: &Choice) {
        for &axis in self.axes.iter().filter(|&&axis| chosen[axis].is_some()) {
            let name = &sweep.axes[axis].name;
            let what = format!("all points of `{name}` are combined: `at` cannot select any");
            fields.notes().add(fields.at, what);
        }
    }

    /// Reduces each combined axis to one point that represents all of its points.
    pub(crate) fn stand_in(&self, mut chosen: Choice) -> Choice {
        self.axes.iter().for_each(|&axis| chosen[axis] = Some(vec![0]));
        chosen
    }

    /// Removes the points that represent combined axes.
    pub(crate) fn without(&self, mut chosen: Choice) -> Choice {
        self.axes.iter().for_each(|&axis| chosen[axis] = None);
        chosen
    }

    /// The number of points that one represents.
    pub(crate) fn points_of_each(&self, axes: &[Axis]) -> usize {
        self.axes.iter().map(|&axis| axes[axis].points.len()).product()
    }

    /// The points that `point` represents.
    pub(crate) fn points(&self, sweep: &Sweep<'_>, point: &[usize]) -> Vec<Vec<usize>> {
        let here = point.iter().enumerate();
        let choice = here.map(|(axis, &index)| (!self.has(axis)).then(|| vec![index])).collect();
        sweep.points(&choice)
    }

    /// The quantities that operands for `name` at `points` need, with all their points: its own, and the references,
    /// which may be those of another flow.
    pub(crate) fn needs(
        &self,
        sweep: &Sweep<'_>,
        name: &Located<String>,
        points: &[Vec<usize>],
    ) -> Vec<(Located<String>, Vec<Vec<usize>>)> {
        let mut needs = vec![(name.clone(), Vec::new())];
        for point in points {
            needs[0].1.extend(self.points(sweep, point));
            if let Some(base) = self.base(&name.value, point) {
                let of_other = usize::from(base.name != name.value);
                if needs.len() == of_other {
                    needs.push((Located::new(base.name, name.at), Vec::new()));
                }
                needs[of_other].1.extend(self.points(sweep, &base.point));
            }
        }
        needs
    }

    /// The reference of the quantity `name` at `point`.
    fn base(&self, name: &str, point: &[usize]) -> Option<Reference> {
        let Against { point: elsewhere, flow, is_loss } = self.against.as_ref()?;
        let base = point.iter().zip(elsewhere).map(|(here, there)| there.unwrap_or(*here));
        let name = flow.as_ref().map_or_else(|| name.to_owned(), |flow| names::of_flow(name, flow));
        Some(Reference { name, point: base.collect(), is_loss: *is_loss })
    }

    /// Whether the gain of `name` at `point` is one over itself, which is always 0.
    pub(crate) fn is_over_itself(&self, name: &str, point: &[usize]) -> bool {
        self.base(name, point).is_some_and(|base| base.name == name && base.point == point)
    }

    /// The operand for the quantity `name` at `point`.
    pub(crate) fn operand(&self, sweep: &Sweep<'_>, name: &str, point: &[usize]) -> Operand {
        let terms = |name: &str, point: &[usize]| {
            let term = |point| Term { cell: sweep.cell(point), name: name.to_owned() };
            self.points(sweep, point).iter().map(|point| term(point)).collect()
        };
        let base = self.base(name, point);
        let against = base.map(|Reference { name, point, is_loss }| Base {
            terms: terms(&name, &point),
            is_loss,
        });
        Operand { terms: terms(name, point), together: self.together, against }
    }

    /// A description such as ` (mean over loss) (gain over system "lksctp")`; may be empty.
    pub(crate) fn words(&self, axes: &[Axis]) -> String {
        let mut words = String::new();
        if !self.axes.is_empty() {
            let names: Vec<&str> = self.axes.iter().map(|&axis| &*axes[axis].name).collect();
            let word = FIELDS.iter().find(|(_, together, _)| *together == self.together);
            words = format!(" ({} over {})", word.map_or("", |(.., word)| word), names.join(", "));
        }
        if let Some(Against { point, flow, is_loss }) = &self.against {
            let labels = axes.iter().zip(point).filter_map(|(axis, there)| {
                Some(format!("{} \"{}\"", axis.name, axis.points[(*there)?].label))
            });
            let flow = flow.iter().map(|flow| format!("flow \"{flow}\""));
            let labels = labels.chain(flow).collect::<Vec<_>>().join(", ");
            words +=
                &format!(" ({} {labels})", if *is_loss { "loss against" } else { "gain over" });
        }
        words
    }
}

impl Operand {
    /// A value per seed; not finite where a value is missing.
    pub(crate) fn values(&self, outcomes: &Outcomes) -> Vec<f64> {
        let values = self.together(&self.terms, outcomes);
        let Some(Base { terms, is_loss }) = &self.against else { return values };
        let share = |(value, base): (f64, f64)| {
            let gain = (value - base) / base;
            if *is_loss { -gain } else { gain }
        };
        values.into_iter().zip(self.together(terms, outcomes)).map(share).collect()
    }

    /// The combined values of some cells, one per seed.
    fn together(&self, terms: &[Term], outcomes: &Outcomes) -> Vec<f64> {
        let cells = terms.iter().map(|term| outcomes.values(term));
        let together = |left: f64, right: f64| match self.together {
            Together::Mean => left + right,
            // The largest of the present values might not be the largest of all.
            Together::Largest if left.is_nan() || right.is_nan() => f64::NAN,
            Together::Largest => left.max(right),
        };
        let values = cells.reduce(|all, cell| {
            all.into_iter().zip(cell).map(|(left, right)| together(left, right)).collect()
        });
        let mut values = values.unwrap_or_default();
        if self.together == Together::Mean {
            let cells = terms.len() as f64;
            values.iter_mut().for_each(|value| *value /= cells);
        }
        values
    }

    pub(crate) fn estimate(&self, outcomes: &Outcomes) -> Option<Estimate> {
        Estimate::of(self.values(outcomes))
    }

    /// The values of all seeds, together with the statistic that the quantity is; only for a single cell.
    pub(crate) fn pool(&self, outcomes: &Outcomes) -> Option<Pool> {
        let term = self.terms.first()?;
        let (name, statistic) = Statistic::of(&term.name)?;
        let term = Term { cell: term.cell, name: name.to_owned() };
        Some(Pool::new(&outcomes.distributions(&term), statistic))
    }

    /// The distributions that [`pool`](Self::pool) needs.
    pub(crate) fn pooled_terms(&self) -> impl Iterator<Item = Term> {
        let of = |term: &Term| {
            let (name, _) = Statistic::of(&term.name)?;
            Some(Term { cell: term.cell, name: name.to_owned() })
        };
        self.terms.iter().filter_map(of)
    }

    /// One distribution per seed, if there is one; only for a single cell.
    pub(crate) fn distributions<'r>(
        &self,
        outcomes: &'r Outcomes,
    ) -> Vec<Option<&'r Distribution>> {
        self.terms.first().map_or_else(Vec::new, |term| outcomes.distributions(term))
    }
}
