//! Claims along an axis: each label is compared with the previous one, or all with the first.

use super::comparison::Relation;
use super::read::{Draft, KINDS, Kind, Left, Means, Target, is_bounded, listed, relation};
use super::words;
use crate::axis::{axis_index, point_index};
use crate::document::Coordinate;
use crate::fields::Fields;
use crate::sweep::Sweep;

/// Reads a claim along an axis.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    kind: Kind,
    left: &Left,
    sweep: &Sweep<'_>,
) -> Option<(Vec<Draft>, Means)> {
    let notes = fields.notes();
    let along = fields.required_text("along");
    let over = fields.take("over");
    let level =
        relation(fields, if kind == Kind::Level { Kind::Within } else { Kind::AtLeast }, 1.0)?;
    let along = along?;
    let axis = axis_index(notes, sweep.axes, &along.value, along.at)?;
    if left.gathered.has(axis) {
        let what = format!("a claim along `{}` cannot combine its points", along.value);
        notes.add(along.at, what);
        return None;
    }
    if left.chosen[axis].is_some() {
        notes.add(along.at, format!("`at` chooses points of `{}`; `over` would", along.value));
        return None;
    }
    let order: Vec<usize> = match over {
        None => (0..sweep.axes[axis].points.len()).collect(),
        Some(value) => {
            let labels = fields.list("over", value, "a list of labels")?;
            labels.iter().filter_map(|label| point_index(notes, &sweep.axes[axis], label)).collect()
        }
    };
    if order.len() < 2 {
        notes.add(along.at, format!("`{}` needs two labels at least", along.value));
        return None;
    }
    let tolerance = match level {
        Relation::AtLeast { tolerance, .. } | Relation::Within { tolerance, .. } => tolerance,
        _ => 0.0,
    };
    let steps = steps(kind, &order, tolerance);
    // The step names the axis itself.
    let mut fixed = left.clone();
    fixed.chosen[axis] = Some(vec![order[0]]);
    is_bounded(notes, fixed.count(sweep).saturating_mul(steps.len()), fields.at).then_some(())?;
    let mut drafts = Vec::new();
    for (from, to, relation) in steps {
        drafts.extend(fixed.each(sweep, |name, point, mut coordinates| {
            let at = |index: usize| {
                let mut point = point.to_vec();
                point[axis] = index;
                point
            };
            let label = |index: usize| &sweep.axes[axis].points[index].label;
            let step = format!("{} → {}", label(from), label(to));
            coordinates.push(Coordinate { axis: along.value.clone(), label: step });
            let right = Target::Measured(name.clone(), at(from), left.gathered.clone());
            Draft { coordinates, left: (name.clone(), at(to)), relation, right }
        }));
    }
    let labels: Vec<&str> =
        order.iter().map(|&index| &*sweep.axes[axis].points[index].label).collect();
    let is = KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| word);
    let slack = words::tolerance(tolerance);
    let names = format!("{}{}", listed(&left.names), left.fixed_words(sweep));
    let means = format!("{names} is {is}{slack} along {}: {}", along.value, labels.join(", "));
    Some((drafts, Box::new(|_| means)))
}

/// The comparisons of a trend: first point, second point, and the claimed relation of the second to
/// the first.
fn steps(kind: Kind, order: &[usize], tolerance: f64) -> Vec<(usize, usize, Relation)> {
    let (times, by) = (1.0, 0.0);
    let (step, ends) = match kind {
        Kind::Rising => {
            (Relation::AtLeast { times, tolerance }, Some(Relation::Above { times, by }))
        }
        Kind::Falling => {
            (Relation::AtMost { times, tolerance }, Some(Relation::Below { times, by }))
        }
        Kind::NotRising => (Relation::AtMost { times, tolerance }, None),
        Kind::NotFalling => (Relation::AtLeast { times, tolerance }, None),
        _ => {
            let within = Relation::Within { times, tolerance };
            return order[1..].iter().map(|&to| (order[0], to, within)).collect();
        }
    };
    let (first, last) = (order[0], order[order.len() - 1]);
    // With two labels, the comparison of the ends includes the only step.
    let inner = if order.len() == 2 && ends.is_some() { &order[..1] } else { order };
    let steps = inner.windows(2).map(|pair| (pair[0], pair[1], step));
    steps.chain(ends.map(|ends| (first, last, ends))).collect()
}
