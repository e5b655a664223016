//! Figures with their data.

use super::curve::{Side, over_time, shares};
use super::{Figure, Group, Source};
use crate::study::gather::Operand;
use crate::study::report::{DrawnFigure, DrawnGroup, DrawnPoint, FigureKind};
use crate::study::results::Results;

impl Figure {
    /// The figure of `results`. What was not measured is not in it.
    pub(in crate::study) fn draw(&self, results: &Results) -> DrawnFigure {
        let side = if self.kind == FigureKind::Ccdf { Side::AtLeast } else { Side::AtMost };
        let groups = self.groups.iter().map(|group| DrawnGroup {
            label: group.label.clone(),
            point: group.point.clone(),
            points: group.points(results, side),
        });
        DrawnFigure {
            title: self.title.clone(),
            about: self.about.clone(),
            kind: self.kind,
            x: self.x.clone(),
            y: self.y.clone(),
            groups: groups.collect(),
        }
    }
}

impl Group {
    fn points(&self, results: &Results, side: Side) -> Vec<DrawnPoint> {
        match &self.source {
            Source::Estimates(points) => {
                let point = |(x, operand): &(f64, Operand)| {
                    let estimate = operand.estimate(results)?;
                    Some(DrawnPoint { x: *x, y: estimate.mean, interval: estimate.interval })
                };
                points.iter().filter_map(point).collect()
            }
            Source::Runs { x, y } => {
                let runs = results.values(x).into_iter().zip(results.values(y));
                runs.filter(|(x, y)| x.is_finite() && y.is_finite())
                    .map(|(x, y)| DrawnPoint { x, y, interval: None })
                    .collect()
            }
            Source::Distribution(term) => {
                shares(results.distributions(term).into_iter().flatten(), side)
            }
            Source::Series(term, seed) => {
                results.series(term, *seed).map(over_time).unwrap_or_default()
            }
        }
    }
}
