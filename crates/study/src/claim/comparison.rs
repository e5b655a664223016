//! A claim and its comparisons.

use rexmit_lab::scenario::Unit;

use crate::document::Coordinate;
use crate::gather::Operand;
use crate::pooled::Statistic;
use crate::sweep::Term;

/// Largest number of comparisons of one claim.
pub const MAX_COMPARISONS: usize = 10_000;

/// A claim whose quantities are all measured.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Claim {
    pub(crate) says: String,
    pub(crate) means: String,
    pub(crate) source_value: Option<String>,
    pub(crate) unit: Unit,
    pub(crate) comparisons: Vec<Comparison>,
}

/// One comparison.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Comparison {
    /// The coordinates that distinguish it from the other comparisons of its claim.
    pub(crate) point: Vec<Coordinate>,
    pub(crate) left: Operand,
    pub(crate) relation: Relation,
    pub(crate) right: Right,
    /// Whether the values of all seeds are taken together, instead of a value per seed.
    pub(crate) is_pooled: bool,
}

/// The right side of the comparison.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Right {
    Number(f64),
    Measured(Operand),
}

/// The claimed relation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Relation {
    Below { times: f64, by: f64 },
    Above { times: f64, by: f64 },
    AtMost { times: f64, tolerance: f64 },
    AtLeast { times: f64, tolerance: f64 },
    Within { times: f64, tolerance: f64 },
    Like { distance: f64, grain: Option<f64> },
}

impl Claim {
    /// The distributions of runs that it uses.
    pub(crate) fn distributions(&self) -> impl Iterator<Item = Term> {
        let alike = self.comparisons.iter().filter(|one| one.is_of_distributions());
        let alike = alike.flat_map(Comparison::terms).cloned();
        let pooled = self.comparisons.iter().filter(|one| one.is_pooled);
        let pooled = pooled.flat_map(Comparison::terms).filter_map(|Term { cell, name }| {
            Statistic::of(name).map(|(name, _)| Term { cell: *cell, name: name.to_owned() })
        });
        alike.chain(pooled)
    }

    /// The quantities of the claim, repeated for each comparison.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = &str> {
        let comparisons = self.comparisons.iter().filter(|one| !one.is_of_distributions());
        comparisons.flat_map(Comparison::terms).map(|term| term.name.as_str())
    }
}

impl Comparison {
    pub(super) fn is_of_distributions(&self) -> bool {
        matches!(self.relation, Relation::Like { .. })
    }

    fn terms(&self) -> impl Iterator<Item = &Term> {
        let right = match &self.right {
            Right::Measured(right) => &right.terms[..],
            Right::Number(_) => &[],
        };
        self.left.terms.iter().chain(right)
    }
}
