//! What a study has found: what reports draw and print, in their own words, without the runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::Coordinate;
use crate::scenario::{Described, Unit};

/// Everything that a report shows of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyReport {
    /// What it is.
    pub study: StudyHead,
    /// Its axes.
    pub axes: Vec<AxisHead>,
    /// One per point of the sweep, in the order of the axes, the last one fastest.
    pub cells: Vec<Cell>,
    /// What the quantities of the cells are.
    pub quantities: Vec<Described>,
    /// The names of the quantities that the claims and figures are about: the gains, shown beside
    /// the costs.
    #[serde(default)]
    pub gains: Vec<String>,
    /// The names of the quantities that are shown as the costs, beside the gains.
    pub costs: Vec<String>,
    /// What is drawn.
    pub figures: Vec<DrawnFigure>,
    /// What the source claims, and whether it holds here.
    pub claims: Vec<Verdict>,
}

/// The head of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyHead {
    /// Its name, that of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The figure or table it redoes: `Petlund 2009, Fig. 8a`.
    pub source: String,
    /// What is done, and what differs from the source.
    pub about: String,
    /// The version of rexmit that ran it.
    pub version: String,
    /// The scenario that the axes vary, in words, a line each.
    pub setting: Vec<Coordinate>,
    /// Runs in it.
    pub runs: u64,
    /// Seconds of simulated time, all runs together.
    pub simulated_s: f64,
    /// The seeds with which each point of the sweep was run.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The file of the study as it was run, word for word; empty if it came from none.
    #[serde(default)]
    pub file: String,
}

/// An axis.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AxisHead {
    /// Its name.
    pub name: String,
    /// The labels of its points.
    pub labels: Vec<String>,
}

/// All seeds of one point of the sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Where it is.
    pub point: Vec<Coordinate>,
    /// What was measured, over the seeds.
    pub quantities: BTreeMap<String, Estimate>,
}

/// A quantity over the seeds of a cell.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// Seeds that have it.
    pub seeds: u64,
    /// Their mean.
    pub mean: f64,
    /// The 95 % confidence interval of the mean (Student's t); `None` with one seed.
    pub interval: Option<(f64, f64)>,
    /// The least and the largest value.
    pub range: (f64, f64),
}

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Points joined by lines, with a band of confidence.
    Lines,
    /// Bars side by side, with whiskers of confidence; x is a category.
    Bars,
    /// Bars upon each other, one bar per category, the groups in it.
    StackedBars,
    /// Points alone.
    Scatter,
    /// A rising step function: shares of what is at most so much.
    Cdf,
    /// A falling one: shares of what is at least so much, on a logarithmic scale.
    Ccdf,
    /// Values over time: each holds until the next.
    Series,
}

/// A figure with its data.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnFigure {
    /// Its title.
    pub title: String,
    /// What to see in it.
    pub about: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// Across.
    pub x: DrawnAxis,
    /// Upwards.
    pub y: DrawnAxis,
    /// What is drawn in one colour each and can be filtered.
    pub groups: Vec<DrawnGroup>,
}

/// An axis of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnAxis {
    /// What it says, without the unit.
    pub label: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
    /// Where it begins and ends, if that is given.
    pub range: Option<(f64, f64)>,
    /// The names of the values 0, 1, 2, … of a category axis; empty if it is not one.
    pub categories: Vec<String>,
    /// Where its values stand in the sweep, for those that do: of an axis of the study that is
    /// drawn across, its points. A filter finds them by it.
    #[serde(default)]
    pub places: Vec<AxisPlace>,
}

/// A value of a figure's axis that stands for points of the sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AxisPlace {
    /// The value; that of a category is its number.
    pub at: f64,
    /// Where it is.
    pub point: Vec<Coordinate>,
}

/// What is drawn in one colour.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnGroup {
    /// What the legend says.
    pub label: String,
    /// What all its points have in common of their places in the sweep. A filter finds it by that.
    #[serde(default)]
    pub point: Vec<Coordinate>,
    /// The points, ascending in x but in scatters.
    pub points: Vec<DrawnPoint>,
}

/// A point of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnPoint {
    /// Across.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// Where its 95 % confidence interval begins and ends.
    pub interval: Option<(f64, f64)>,
}

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

/// A claim, and what came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// What is claimed, in the words of the study.
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
