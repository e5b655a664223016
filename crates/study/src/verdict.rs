//! The verdict on a claim: whether it holds, and the comparisons that decide it.

use serde::{Deserialize, Serialize};

use crate::document::Coordinate;
use crate::estimate::Estimate;

/// Whether a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Every comparison holds.
    Holds,
    /// At least one comparison does not hold.
    DoesNotHold,
    /// The confidence intervals allow either, or there are too few measurements.
    Undecided,
}

impl VerdictKind {
    /// The verdict as text.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }
}

/// A claim and its verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim, in the words of the study.
    pub says: String,
    /// The comparison as text, in terms of quantities.
    pub means: String,
    /// The number that the source gives, if any.
    pub source_value: Option<String>,
    /// The verdict.
    pub verdict: VerdictKind,
    /// All comparisons of the claim.
    pub instances: Vec<Instance>,
}

/// One comparison of a claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// The point on the axes over which the claim is repeated.
    pub point: Vec<Coordinate>,
    /// The verdict of this comparison.
    pub verdict: VerdictKind,
    /// The left side, if it was measured.
    pub left: Option<Estimate>,
    /// The right side, if it was measured or is given.
    pub right: Option<Estimate>,
    /// The numbers and the test as text: `312.4 ± 3.1 ms against 1019 ± 8 ms, paired over 10
    /// seeds`.
    pub finding: String,
}
