//! A report as its page holds it: columns in place of points, and no more of them than can be seen.

use serde::Serialize;

use crate::scenario::Described;
use crate::study::{
    AxisHead, Cell, Coordinate, DrawnAxis, DrawnFigure, DrawnGroup, DrawnPoint, Estimate,
    FigureKind, StudyHead, StudyReport, Verdict,
};

/// Heights that a reader of a distribution can tell apart.
const HEIGHTS: f64 = 1000.0;
/// The same for the share in a tail, as the ratio of two neighbours.
const TAIL_RATIO: f64 = 0.995;
/// Stretches of a series of which the least and the largest value are kept.
const SERIES_STRETCHES: usize = 800;

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
    let group = |group| group_of(figure.kind, group);
    EmbeddedFigure {
        title: &figure.title,
        about: &figure.about,
        kind: figure.kind,
        x: &figure.x,
        y: &figure.y,
        groups: figure.groups.iter().map(group).collect(),
    }
}

fn group_of(kind: FigureKind, group: &DrawnGroup) -> EmbeddedGroup<'_> {
    let points = thinned(kind, &group.points);
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

/// The points of `points` without which the figure would look different.
fn thinned(kind: FigureKind, points: &[DrawnPoint]) -> Vec<DrawnPoint> {
    match kind {
        FigureKind::Cdf => steps(points, |y| 1.0 - y),
        FigureKind::Ccdf => steps(points, |y| y),
        FigureKind::Series => extremes(points),
        FigureKind::Lines | FigureKind::Bars | FigureKind::StackedBars | FigureKind::Scatter => {
            points.to_vec()
        }
    }
}

/// The steps of a distribution that are high enough to be seen, on a linear scale and in `tail`, the
/// share that is beyond, on a logarithmic one. The first and the last stay.
fn steps(points: &[DrawnPoint], tail: impl Fn(f64) -> f64) -> Vec<DrawnPoint> {
    let mut kept: Vec<DrawnPoint> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let is_seen = kept.last().is_none_or(|last| {
            let (from, to) = (tail(last.y), tail(point.y));
            (from - to).abs() >= 1.0 / HEIGHTS || to <= from * TAIL_RATIO
        });
        if is_seen || at + 1 == points.len() {
            kept.push(*point);
        }
    }
    kept
}

/// The first, least, largest and last of each stretch of a long series, in their order.
fn extremes(points: &[DrawnPoint]) -> Vec<DrawnPoint> {
    if points.len() <= 4 * SERIES_STRETCHES {
        return points.to_vec();
    }
    let of_stretch = |stretch: &[DrawnPoint]| {
        let by_y = |a: &usize, b: &usize| stretch[*a].y.total_cmp(&stretch[*b].y);
        let least = (0..stretch.len()).min_by(by_y).unwrap_or(0);
        let largest = (0..stretch.len()).max_by(by_y).unwrap_or(0);
        let mut kept = [0, least, largest, stretch.len() - 1];
        kept.sort_unstable();
        let fresh = (0..4).filter(|&at| at == 0 || kept[at] != kept[at - 1]);
        fresh.map(|at| stretch[kept[at]]).collect::<Vec<_>>()
    };
    points.chunks(points.len().div_ceil(SERIES_STRETCHES)).flat_map(of_stretch).collect()
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

    fn points(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<DrawnPoint> {
        points.into_iter().map(|(x, y)| DrawnPoint { x, y, interval: None }).collect()
    }

    #[test]
    fn a_thinned_distribution_is_nowhere_further_off_than_an_eye_can_tell() {
        const STEPS: u32 = 200_000;
        let share = |step: u32| 1.0 - f64::from(step) / f64::from(STEPS);
        let all = points((0..STEPS).map(|step| (f64::from(step), share(step))));
        let kept = thinned(FigureKind::Ccdf, &all);
        assert!(kept.len() < 4000, "{}", kept.len());
        assert_eq!(kept[0], all[0]);
        assert_eq!(kept.last(), all.last());
        for pair in kept.windows(2) {
            // What lies between two points that are kept: the first of them is within reach.
            let skipped = pair[1].x - pair[0].x > 1.0;
            let before = share(pair[1].x as u32 - 1);
            let is_near = pair[0].y - before < 1.0 / HEIGHTS && before > pair[0].y * TAIL_RATIO;
            assert!(!skipped || is_near, "{pair:?}");
        }
        // The rarest are all there.
        let tail = kept.iter().filter(|point| point.x >= f64::from(STEPS - 150)).count();
        assert_eq!(tail, 150);
    }

    #[test]
    fn a_thinned_series_keeps_its_extremes() {
        let spike = |at: u32| if at == 54_321 { 9000.0 } else { f64::from(at % 7) };
        let all = points((0..100_000).map(|at| (f64::from(at), spike(at))));
        let kept = thinned(FigureKind::Series, &all);
        assert!(kept.len() <= 4 * SERIES_STRETCHES + 4, "{}", kept.len());
        assert!(kept.contains(&all[54_321]) && kept.contains(&all[0]));
        assert_eq!(kept.last(), all.last());
        assert!(kept.is_sorted_by(|a, b| a.x < b.x));
        let short = &all[..100];
        assert_eq!(thinned(FigureKind::Series, short), short);
    }

    #[test]
    fn figures_that_mark_each_point_keep_every_point() {
        let all = points((0..20_000).map(|at| (f64::from(at), 1.0)));
        assert_eq!(thinned(FigureKind::Scatter, &all).len(), 20_000);
        assert_eq!(thinned(FigureKind::Lines, &all).len(), 20_000);
    }

    #[test]
    fn numbers_have_six_digits() {
        assert_eq!(rounded(1_234_567.89), 1_234_570.0);
        assert_eq!(rounded(-0.000_123_456_78), -0.000_123_457);
        assert_eq!(rounded(0.0), 0.0);
    }
}
