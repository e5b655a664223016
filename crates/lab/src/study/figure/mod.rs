//! What a study draws.
//!
//! | `kind` | across | upwards | in one colour |
//! |---|---|---|---|
//! | `lines` | an axis, by its numbers if it has them | quantities | the other axes' points |
//! | `bars` | an axis, or named categories with a quantity each | quantities | the other axes' points |
//! | `stacked-bars` | the same, for every point of the other axes | quantities | the quantities |
//! | `scatter` | a quantity | another one, a point per run | the cells |
//! | `cdf`, `ccdf` | a distribution, pooled over the seeds | shares | the cells |
//! | `series` | seconds | values over time, of one seed | the cells |
//!
//! Axes that are neither across nor bound by `at` are told apart in the legend. In lines and bars some
//! may be taken together, and values be told as gains over those at another point, as in claims.

mod curve;
mod draw;
mod read;
mod sheet;

pub(super) use read::read;

use super::document::Coordinate;
use super::gather::Operand;
use super::report::{DrawnAxis, FigureKind};
use super::results::Wanted;
use super::sweep::Term;

/// Things in a legend: more could not be told apart, nor drawn in time.
pub const MAX_GROUPS: usize = 200;

/// A figure without its data.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Figure {
    title: String,
    about: String,
    kind: FigureKind,
    x: DrawnAxis,
    y: DrawnAxis,
    groups: Vec<Group>,
}

#[derive(Clone, PartialEq, Debug)]
struct Group {
    label: String,
    /// What its points have in common of their places in the sweep.
    point: Vec<Coordinate>,
    source: Source,
}

/// Where the points of a group come from.
#[derive(Clone, PartialEq, Debug)]
enum Source {
    /// The estimate of a quantity for each x.
    Estimates(Vec<(f64, Operand)>),
    /// A point per run: two quantities of a cell.
    Runs { x: Term, y: Term },
    /// A distribution over all seeds of a cell.
    Distribution(Term),
    /// Values over time, of one seed.
    Series(Term, u64),
}

impl Figure {
    /// Adds what it needs of runs beside single numbers.
    pub(super) fn want(&self, wanted: &mut Wanted) {
        for group in &self.groups {
            match &group.source {
                Source::Distribution(term) => {
                    wanted.distributions.insert(term.clone());
                }
                Source::Series(term, seed) => {
                    wanted.series.insert((term.clone(), *seed));
                }
                Source::Estimates(_) | Source::Runs { .. } => {}
            }
        }
    }

    /// The quantities that it shows; a name comes as often as it is drawn.
    pub(super) fn quantities(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().flat_map(Group::quantities)
    }
}

impl Group {
    fn quantities(&self) -> Vec<&str> {
        match &self.source {
            Source::Estimates(points) => {
                let terms = points.iter().flat_map(|(_, operand)| &operand.terms);
                terms.map(|term| term.name.as_str()).collect()
            }
            Source::Runs { x, y } => vec![&x.name, &y.name],
            Source::Distribution(_) | Source::Series(..) => Vec::new(),
        }
    }
}
