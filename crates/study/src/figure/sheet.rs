//! Lines and bars: estimates over an axis of the study, or over categories.

use rexmit_lab::scenario::Unit;

use super::group::{Group, Source};
use super::read::{Across, Draft, Other, Row, joined};
use crate::document::Coordinate;
use crate::figure::drawn::{AxisPlace, DrawnAxis, FigureKind};
use crate::gather::Operand;

/// The inputs of lines and bars.
pub(super) struct Sheet<'a> {
    pub(super) draft: &'a Draft<'a>,
    pub(super) across: Across,
    pub(super) rows: Vec<Row>,
    pub(super) others: Vec<Other>,
}

impl Sheet<'_> {
    /// The positions on the horizontal axis with their labels, and whether they are categories.
    fn places(&self, kind: FigureKind) -> (Vec<(f64, String)>, bool) {
        match &self.across {
            Across::Categories(labels) => (
                labels.iter().enumerate().map(|(n, label)| (n as f64, label.clone())).collect(),
                true,
            ),
            Across::Axis(index) => {
                let axis = &self.draft.sweep.axes[*index];
                let is_numeric = axis.is_numeric() && kind == FigureKind::Lines;
                let places = self.indices(*index).into_iter().enumerate().map(|(place, index)| {
                    let point = &axis.points[index];
                    let number = point.number.filter(|_| is_numeric);
                    (number.unwrap_or(place as f64), point.label.clone())
                });
                (places.collect(), !is_numeric)
            }
        }
    }

    /// The points of the horizontal axis that are drawn.
    fn indices(&self, axis: usize) -> Vec<usize> {
        let all = || (0..self.draft.sweep.axes[axis].points.len()).collect();
        self.draft.chosen[axis].clone().unwrap_or_else(all)
    }

    pub(super) fn x(&self, kind: FigureKind) -> DrawnAxis {
        let (places, are_categories) = self.places(kind);
        let (label, unit) = match &self.across {
            Across::Categories(_) => (String::new(), Unit::Count),
            Across::Axis(index) => {
                let axis = &self.draft.sweep.axes[*index];
                named(&axis.name, axis.unit.as_deref().filter(|_| !are_categories))
            }
        };
        let mut x = DrawnAxis {
            label,
            unit,
            log: false,
            range: None,
            categories: Vec::new(),
            places: Vec::new(),
        };
        if kind == FigureKind::StackedBars {
            for (at, (place, other)) in self.bars().enumerate() {
                x.categories.push(joined([&places[place].1, &other.label], ""));
                let mut point = self.draft.sweep.told(&other.point, |axis| self.is_told(axis));
                point.extend(self.coordinate(place));
                x.places.push(AxisPlace { at: at as f64, point });
            }
        } else {
            for (place, (at, label)) in places.into_iter().enumerate() {
                let point: Vec<Coordinate> = self.coordinate(place).into_iter().collect();
                if !point.is_empty() {
                    x.places.push(AxisPlace { at, point });
                }
                if are_categories {
                    x.categories.push(label);
                }
            }
        }
        x
    }

    fn is_across(&self, axis: usize) -> bool {
        matches!(self.across, Across::Axis(across) if across == axis)
    }

    /// The sweep coordinate of the `place`-th horizontal position, if it is a point of an axis.
    fn coordinate(&self, place: usize) -> Option<Coordinate> {
        let Across::Axis(index) = self.across else {
            return None;
        };
        let axis = &self.draft.sweep.axes[index];
        let label = axis.points[self.indices(index)[place]].label.clone();
        Some(Coordinate { axis: axis.name.clone(), label })
    }

    /// The bars of a stacked figure: every position with every point of the other axes, which change fastest.
    fn bars(&self) -> impl Iterator<Item = (usize, &Other)> {
        let places = match &self.across {
            Across::Categories(labels) => labels.len(),
            Across::Axis(axis) => self.indices(*axis).len(),
        };
        (0..places).flat_map(|place| self.others.iter().map(move |other| (place, other)))
    }

    /// The quantity of `row` at the `place`-th horizontal position, in the cell at `point` of the
    /// other axes.
    fn operand(&self, row: &Row, place: usize, point: &[usize]) -> Operand {
        let mut point = point.to_vec();
        let name = match &self.across {
            Across::Categories(_) => &row.names[place],
            Across::Axis(axis) => {
                point[*axis] = self.indices(*axis)[place];
                &row.names[0]
            }
        };
        self.draft.gathered.operand(self.draft.sweep, &name.value, &point)
    }

    fn source(&self, points: Vec<(f64, Operand)>) -> Source {
        if self.draft.is_pooled { Source::Pooled(points) } else { Source::Estimates(points) }
    }

    /// Whether the coordinate on `axis` belongs to a group or a bar.
    fn is_told(&self, axis: usize) -> bool {
        !self.is_across(axis) && !self.draft.gathered.has(axis)
    }

    pub(super) fn groups(&self, kind: FigureKind) -> Vec<Group> {
        let (places, _) = self.places(kind);
        let mut groups = Vec::new();
        for Other { label, point } in &self.others {
            for row in &self.rows {
                let operand = |(place, (x, _)): (usize, &(f64, String))| {
                    (*x, self.operand(row, place, point))
                };
                let mut points: Vec<_> = places.iter().enumerate().map(operand).collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let point = self.draft.sweep.told(point, |axis| self.is_told(axis));
                let source = self.source(points);
                groups.push(Group { label: row.legend(label), point, source });
            }
        }
        groups
    }

    /// One group per row; every position has a bar for each point of the other axes.
    pub(super) fn stacked(&self) -> Vec<Group> {
        let group = |row: &Row| {
            let bars = self.bars().enumerate();
            let operands =
                bars.map(|(x, (place, other))| (x as f64, self.operand(row, place, &other.point)));
            let source = self.source(operands.collect());
            // The bars have in common where only one point of an axis is drawn.
            let is_told = |axis: usize| self.draft.is_single(axis) && self.is_told(axis);
            let point =
                self.others.first().map(|other| self.draft.sweep.told(&other.point, is_told));
            Group { label: row.legend(""), point: point.unwrap_or_default(), source }
        };
        self.rows.iter().map(group).collect()
    }
}

impl Row {
    fn legend(&self, other: &str) -> String {
        let own = self.label.as_deref().unwrap_or_default();
        joined([other, own], self.names.first().map_or("", |name| &name.value))
    }
}

/// The label and unit of a figure's axis for a numeric axis of the study. A unit that figures
/// support is removed from the label.
fn named(name: &str, unit: Option<&str>) -> (String, Unit) {
    let known = match unit {
        Some("ms") => Unit::Milliseconds,
        Some("s") => Unit::Seconds,
        Some("B" | "bytes") => Unit::Bytes,
        Some("bit/s") => Unit::BitsPerSecond,
        Some(unit) => return (format!("{name} ({unit})"), Unit::Count),
        None => Unit::Count,
    };
    (name.into(), known)
}
