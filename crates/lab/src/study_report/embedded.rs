//! A report as its page holds it: columns in place of points, and six digits.

use serde::Serialize;

use crate::scenario::Described;
use crate::study::{
    AxisHead, Cell, Coordinate, DrawnAxis, DrawnFigure, DrawnGroup, Estimate, FigureKind,
    StudyHead, StudyReport, Verdict,
};

/// What the scripts of a page read.
#[derive(Serialize)]
pub(super) struct Embedded<'a> {
    study: &'a StudyHead,
    axes: &'a [AxisHead],
    quantities: &'a [Described],
    gains: &'a [String],
    costs: &'a [String],
    cells: Vec<EmbeddedCell<'a>>,
    figures: Vec<EmbeddedFigure<'a>>,
    claims: &'a [Verdict],
}

#[derive(Serialize)]
struct EmbeddedCell<'a> {
    point: &'a [Coordinate],
    /// In the order of the quantities.
    values: Vec<Option<EmbeddedEstimate>>,
}

/// Mean, interval, seeds.
#[derive(Serialize)]
struct EmbeddedEstimate(f64, Option<(f64, f64)>, u64);

#[derive(Serialize)]
struct EmbeddedFigure<'a> {
    title: &'a str,
    about: &'a str,
    kind: FigureKind,
    x: &'a DrawnAxis,
    y: &'a DrawnAxis,
    groups: Vec<EmbeddedGroup<'a>>,
}

#[derive(Serialize)]
struct EmbeddedGroup<'a> {
    label: &'a str,
    point: &'a [Coordinate],
    x: Vec<f64>,
    y: Vec<f64>,
    /// Empty if no point has one.
    intervals: Vec<Option<(f64, f64)>>,
}

impl<'a> Embedded<'a> {
    pub(super) fn new(report: &'a StudyReport) -> Self {
        Self {
            study: &report.study,
            axes: &report.axes,
            quantities: &report.quantities,
            gains: &report.gains,
            costs: &report.costs,
            cells: report.cells.iter().map(|cell| cell_of(cell, &report.quantities)).collect(),
            figures: report.figures.iter().map(figure_of).collect(),
            claims: &report.claims,
        }
    }
}

fn cell_of<'a>(cell: &'a Cell, quantities: &[Described]) -> EmbeddedCell<'a> {
    let value = |estimate: &Estimate| {
        let interval = estimate.interval.map(rounded_pair);
        EmbeddedEstimate(rounded(estimate.mean), interval, estimate.seeds)
    };
    let values = quantities.iter().map(|described| cell.quantities.get(&described.name).map(value));
    EmbeddedCell { point: &cell.point, values: values.collect() }
}

fn figure_of(figure: &DrawnFigure) -> EmbeddedFigure<'_> {
    EmbeddedFigure {
        title: &figure.title,
        about: &figure.about,
        kind: figure.kind,
        x: &figure.x,
        y: &figure.y,
        groups: figure.groups.iter().map(group_of).collect(),
    }
}

fn group_of(group: &DrawnGroup) -> EmbeddedGroup<'_> {
    let points = &group.points;
    let has_intervals = points.iter().any(|point| point.interval.is_some());
    let intervals = points.iter().map(|point| point.interval.map(rounded_pair));
    EmbeddedGroup {
        label: &group.label,
        point: &group.point,
        x: points.iter().map(|point| rounded(point.x)).collect(),
        y: points.iter().map(|point| rounded(point.y)).collect(),
        intervals: if has_intervals { intervals.collect() } else { Vec::new() },
    }
}

/// `value` with six digits: more than any measurement here has.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn rounded_pair((low, high): (f64, f64)) -> (f64, f64) {
    (rounded(low), rounded(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        assert_eq!(rounded(1_234_567.89), 1_234_570.0);
        assert_eq!(rounded(-0.000_123_456_78), -0.000_123_457);
        assert_eq!(rounded(0.0), 0.0);
    }
}
