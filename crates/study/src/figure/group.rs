//! A figure without its data: the groups, one colour each, and the sources of their values.

use super::drawn::{DrawnAxis, FigureKind, StatedValue};
use crate::document::Coordinate;
use crate::gather::Operand;
use crate::outcomes::Wanted;
use crate::sweep::Term;

/// Largest number of groups in a legend; more could not be distinguished, nor drawn in time.
pub const MAX_GROUPS: usize = 200;

/// A figure without its data.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Figure {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) kind: FigureKind,
    pub(super) x: DrawnAxis,
    pub(super) y: DrawnAxis,
    pub(super) groups: Vec<Group>,
    pub(super) stated: Vec<StatedValue>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Group {
    pub(super) label: String,
    /// The coordinates that its points have in common.
    pub(super) point: Vec<Coordinate>,
    pub(super) source: Source,
}

/// The source of a group's points.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Source {
    /// The estimate of a quantity for each x.
    Estimates(Vec<(f64, Operand)>),
    /// The statistic of the values of all seeds together for each x, with an interval from a bootstrap.
    Pooled(Vec<(f64, Operand)>),
    /// A point per run, from two quantities of a cell.
    Runs { x: Term, y: Term },
    /// A distribution pooled over all seeds of a cell.
    Distribution(Term),
    /// Values over time, for one seed.
    Series(Term, u64),
}

impl Figure {
    /// Adds the distributions and series that the figure needs to `wanted`.
    pub(crate) fn want(&self, wanted: &mut Wanted) {
        for group in &self.groups {
            match &group.source {
                Source::Distribution(term) => {
                    wanted.distributions.insert(term.clone());
                }
                Source::Series(term, seed) => {
                    wanted.series.insert((term.clone(), *seed));
                }
                Source::Pooled(points) => {
                    let terms = points.iter().flat_map(|(_, operand)| operand.pooled_terms());
                    wanted.distributions.extend(terms);
                }
                Source::Estimates(_) | Source::Runs { .. } => {}
            }
        }
    }

    /// The quantities that the figure shows; one that is drawn several times is repeated.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().flat_map(Group::quantities)
    }
}

impl Group {
    fn quantities(&self) -> Vec<&str> {
        match &self.source {
            Source::Estimates(points) | Source::Pooled(points) => {
                let terms = points.iter().flat_map(|(_, operand)| &operand.terms);
                terms.map(|term| term.name.as_str()).collect()
            }
            Source::Runs { x, y } => vec![&x.name, &y.name],
            Source::Distribution(_) | Source::Series(..) => Vec::new(),
        }
    }
}
