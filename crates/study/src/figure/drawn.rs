//! A figure with its data, ready to be drawn.

use rexmit_lab::scenario::Unit;
use serde::{Deserialize, Serialize};

use crate::document::Coordinate;

/// How a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Points joined by lines, with a confidence band.
    Lines,
    /// Grouped bars with confidence whiskers; x is a category.
    Bars,
    /// Stacked bars: one bar per category, with the groups as its parts.
    StackedBars,
    /// Unconnected points.
    Scatter,
    /// A rising step function: the share of values that are at most x.
    Cdf,
    /// A falling step function: the share of values that are at least x, on a logarithmic scale.
    Ccdf,
    /// Values over time; each holds until the next.
    Series,
}

/// A figure with its data.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnFigure {
    /// The title of the figure.
    pub title: String,
    /// An explanation of the figure.
    pub about: String,
    /// The kind of figure.
    pub kind: FigureKind,
    /// The horizontal axis.
    pub x: DrawnAxis,
    /// The vertical axis.
    pub y: DrawnAxis,
    /// The groups; each has a colour and can be filtered.
    pub groups: Vec<DrawnGroup>,
    /// The values that the source of the study states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<StatedValue>,
}

/// A value that the source of a study states, drawn as a mark, or as a level line if it has no horizontal coordinate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StatedValue {
    /// The horizontal coordinate; `None` if the value is stated for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The vertical coordinate.
    pub y: f64,
    /// The label of the group for which the value is stated, if any.
    pub of: Option<String>,
}

/// An axis of a figure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnAxis {
    /// The axis label, without the unit.
    pub label: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Whether it is logarithmic.
    pub log: bool,
    /// The lowest and highest value shown, if given.
    pub range: Option<(f64, f64)>,
    /// The names of the values 0, 1, 2, … of a category axis; empty for other axes.
    pub categories: Vec<String>,
    /// The positions of its values in the sweep, if the axis is one of the study's. Filters use
    /// them.
    #[serde(default)]
    pub places: Vec<AxisPlace>,
}

/// A value of a figure's axis that represents points of the sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AxisPlace {
    /// The value; for a category, its number.
    pub at: f64,
    /// The position of the value in the sweep.
    pub point: Vec<Coordinate>,
}

/// A group of one colour.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnGroup {
    /// The text of the legend.
    pub label: String,
    /// The coordinates that all its points have in common. Filters use them.
    #[serde(default)]
    pub point: Vec<Coordinate>,
    /// The points, ascending in x except in scatter plots.
    pub points: Vec<DrawnPoint>,
}

/// A point of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrawnPoint {
    /// The horizontal coordinate.
    pub x: f64,
    /// The vertical coordinate.
    pub y: f64,
    /// The ends of its 95 % confidence interval.
    pub interval: Option<(f64, f64)>,
}
