//! Values stated by the source of a study, such as a paper, for comparison with those measured.

use super::drawn::{DrawnAxis, FigureKind, StatedValue};
use crate::fields::{Fields, Value, number};
use crate::mistake::{Notes, alternatives};

/// Reads `source = [{ x = "lksctp", y = 890, of = "mean" }, …]`; notes mistakes.
///
/// `x` is a label or a number of the horizontal axis, `y` a number in the unit of the vertical one,
/// and `of` the label of a group. Without `x`, the value is stated for the whole width.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    kind: FigureKind,
    x: &DrawnAxis,
    labels: &[&str],
) -> Vec<StatedValue> {
    let notes = fields.notes();
    let values = fields.tables("source");
    if let (Some(first), FigureKind::StackedBars) = (values.first(), kind) {
        notes.add(first.span().start, "stacked bars have no `source`");
    }
    values.into_iter().filter_map(|value| one(notes, value, x, labels)).collect()
}

fn one(notes: &Notes, value: &Value<'_>, x: &DrawnAxis, labels: &[&str]) -> Option<StatedValue> {
    let mut fields = Fields::of(notes, "an item of `source`", value)?;
    let across = fields.take("x").map(|value| place(&fields, value, x));
    fields.require("y")?;
    let y = fields.number("y");
    let of = fields.text("of");
    fields.finish();
    if let Some(of) = &of
        && !labels.contains(&of.value.as_str())
    {
        let other = alternatives(&of.value, labels.iter().copied());
        notes.add(of.at, format!("no group is called `{}`; {other}", of.value));
        return None;
    }
    let x = match across {
        Some(place) => Some(place?),
        None => None,
    };
    Some(StatedValue { x, y: y?.value, of: of.map(|of| of.value) })
}

/// The place of `value`, a label or a number, on the axis `x`.
fn place(fields: &Fields<'_, '_>, value: &Value<'_>, x: &DrawnAxis) -> Option<f64> {
    if let Some(number) = number(value)
        && x.categories.is_empty()
    {
        return Some(number);
    }
    let text = value.get_ref().as_str().unwrap_or_default();
    let category = x.categories.iter().position(|category| category == text);
    let labelled = || {
        let has_label = |point: &[crate::Coordinate]| point.iter().any(|one| one.label == text);
        x.places.iter().find(|place| has_label(&place.point)).map(|place| place.at)
    };
    let found = category.map(|place| place as f64).or_else(labelled);
    if found.is_none() {
        fields.wrong("x", "a label of the horizontal axis, or a number if it has numbers", value);
    }
    found
}
