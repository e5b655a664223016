//! A figure with its data: what a page draws.

use rexmit_lab::scenario::Unit;
use serde::{Deserialize, Serialize};

use crate::document::Coordinate;

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
    /// The groups: each has a colour and can be filtered.
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

/// A group of one colour.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnGroup {
    /// The text of the legend.
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
