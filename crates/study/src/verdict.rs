//! The verdict of a claim: whether it holds, and by which comparisons.

use serde::{Deserialize, Serialize};

use crate::document::Coordinate;
use crate::estimate::Estimate;

/// Whether a claim holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// It does, in every instance.
    Holds,
    /// It does not, in at least one.
    DoesNotHold,
    /// The confidence intervals allow either, or something was not measured often enough.
    Undecided,
}

impl VerdictKind {
    /// It in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }
}

/// A claim, and what came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim, in the words of the study.
    pub says: String,
    /// The comparison, in words of quantities.
    pub means: String,
    /// The number that the source gives, if it does.
    pub source_value: Option<String>,
    /// What came of it.
    pub verdict: VerdictKind,
    /// Each comparison that it stands for.
    pub instances: Vec<Instance>,
}

/// One comparison of a claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// The points of the axes over which the claim runs.
    pub point: Vec<Coordinate>,
    /// What came of it.
    pub verdict: VerdictKind,
    /// The left side, if it was measured.
    pub left: Option<Estimate>,
    /// The right side, if it was measured or is given.
    pub right: Option<Estimate>,
    /// Numbers and test in words: `312.4 ± 3.1 ms against 1019 ± 8 ms, paired over 10 seeds`.
    pub finding: String,
}
