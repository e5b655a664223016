//! Figures with their data.

use super::curve::{Side, over_time, shares};
use super::group::{Figure, Group, Source};
use crate::figure::drawn::{DrawnFigure, DrawnGroup, DrawnPoint, FigureKind};
use crate::gather::Operand;
use crate::outcomes::Outcomes;
use crate::pooled::Bootstrap;

impl Figure {
    /// The figure with the data of `outcomes`. Missing measurements are left out.
    pub(crate) fn draw(&self, outcomes: &Outcomes) -> DrawnFigure {
        let side = if self.kind == FigureKind::Ccdf { Side::AtLeast } else { Side::AtMost };
        let groups = self.groups.iter().map(|group| DrawnGroup {
            label: group.label.clone(),
            point: group.point.clone(),
            points: group.points(outcomes, side),
        });
        DrawnFigure {
            title: self.title.clone(),
            about: self.about.clone(),
            kind: self.kind,
            x: self.x.clone(),
            y: self.y.clone(),
            groups: groups.collect(),
            stated: self.stated.clone(),
        }
    }
}

impl Group {
    fn points(&self, outcomes: &Outcomes, side: Side) -> Vec<DrawnPoint> {
        match &self.source {
            Source::Estimates(points) => {
                let point = |(x, operand): &(f64, Operand)| {
                    let estimate = operand.estimate(outcomes)?;
                    Some(DrawnPoint { x: *x, y: estimate.mean, interval: estimate.interval })
                };
                points.iter().filter_map(point).collect()
            }
            Source::Pooled(points) => {
                let point = |(x, operand): &(f64, Operand)| {
                    let bootstrap = Bootstrap::of(&[operand.pool(outcomes)?], outcomes.seeds())?;
                    let estimate = bootstrap.estimate(&|values| values[0]);
                    Some(DrawnPoint { x: *x, y: estimate.mean, interval: estimate.interval })
                };
                points.iter().filter_map(point).collect()
            }
            Source::Runs { x, y } => {
                let runs = outcomes.values(x).into_iter().zip(outcomes.values(y));
                runs.filter(|(x, y)| x.is_finite() && y.is_finite())
                    .map(|(x, y)| DrawnPoint { x, y, interval: None })
                    .collect()
            }
            Source::Distribution(term) => {
                shares(outcomes.distributions(term).into_iter().flatten(), side)
            }
            Source::Series(term, seed) => {
                outcomes.series(term, *seed).map(over_time).unwrap_or_default()
            }
        }
    }
}
