//! The data of a study's page in compact form: columns instead of points, and numbers rounded to six
//! significant digits.

use rexmit_lab::scenario::Described;
use serde::Serialize;

use crate::page::shown::{AxisHead, Cell, StudyHead, StudyPage};
use crate::{
    Coordinate, DrawnAxis, DrawnFigure, DrawnGroup, Estimate, FigureKind, StatedValue, Verdict,
};

/// The input of the scripts of a page.
#[derive(Serialize)]
pub(crate) struct Embedded<'a> {
    study: &'a StudyHead,
    axes: &'a [AxisHead],
    quantities: &'a [Described],
    gains: &'a [String],
    costs: &'a [String],
    cells: Vec<EmbeddedCell<'a>>,
    figures: Vec<EmbeddedFigure<'a>>,
    claims: &'a [Verdict],
    notes: &'a [String],
}

#[derive(Serialize)]
struct EmbeddedCell<'a> {
    point: &'a [Coordinate],
    /// Estimates in the order of the quantities.
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
    stated: &'a [StatedValue],
}

#[derive(Serialize)]
struct EmbeddedGroup<'a> {
    label: &'a str,
    point: &'a [Coordinate],
    x: Vec<f64>,
    y: Vec<f64>,
    /// The confidence interval of each point; empty if no point has one.
    intervals: Vec<Option<(f64, f64)>>,
}

impl<'a> Embedded<'a> {
    pub(crate) fn new(page: &'a StudyPage) -> Self {
        Self {
            study: &page.study,
            axes: &page.axes,
            quantities: &page.quantities,
            gains: &page.gains,
            costs: &page.costs,
            cells: page.cells.iter().map(|cell| cell_of(cell, &page.quantities)).collect(),
            figures: page.figures.iter().map(figure_of).collect(),
            claims: &page.claims,
            notes: &page.notes,
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
        stated: &figure.stated,
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

/// `value` with six significant digits, which exceeds the accuracy of all measurements here.
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
