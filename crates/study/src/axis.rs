//! The axes of a study: their points, and the scenario fields that each point sets.

use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use crate::fields::{Fields, Located, Value, number, text};
use crate::merge::{GAP, fill, has_gap, leaves, merge, words};
use crate::mistake::{Notes, alternatives};

/// An axis of the sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The name of the axis.
    pub name: String,
    /// The unit of the points' numbers: `ms`, `KB`, `%`.
    pub unit: Option<String>,
    /// At least one; either all of them have a number, or none.
    pub points: Vec<Point>,
}

/// A point of an axis.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The label of the point, unique within the axis.
    pub label: String,
    /// The position of the point on a numeric axis of a figure.
    pub number: Option<f64>,
}

/// An axis as written in the file.
pub(crate) struct AxisSpec<'t> {
    pub(crate) axis: Axis,
    /// The place of the axis in the text.
    pub(crate) at: usize,
    /// The fields that each point sets in the scenario.
    pub(crate) sets: Vec<DeTable<'t>>,
    /// The value of each point, if the points differ in one value.
    pub(crate) values: Vec<DeValue<'t>>,
}

struct PointSpec<'t> {
    label: Located<String>,
    number: Option<f64>,
    value: Option<DeValue<'t>>,
    set: DeTable<'t>,
}

impl Axis {
    /// Whether its points have numbers.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        self.points.iter().all(|point| point.number.is_some())
    }
}

/// Reads all axes of a study.
pub(crate) fn read<'t>(notes: &Notes, tables: &[&Value<'t>]) -> Vec<AxisSpec<'t>> {
    let mut axes: Vec<AxisSpec<'t>> = Vec::new();
    let tables = tables.iter().filter_map(|table| Fields::of(notes, "an axis", table));
    for spec in tables.filter_map(read_one) {
        let name = &spec.axis.name;
        if axes.iter().any(|other| other.axis.name == *name) {
            notes.add(spec.at, format!("there is already an axis `{name}`"));
        }
        axes.push(spec);
    }
    for (index, later) in axes.iter().enumerate() {
        axes[..index].iter().for_each(|earlier| check_effect(notes, earlier, later));
    }
    axes
}

/// Notes fields that `earlier` sets and every point of `later` sets again: the former would have no effect, unless the
/// latter contain its value.
fn check_effect(notes: &Notes, earlier: &AxisSpec<'_>, later: &AxisSpec<'_>) {
    let (name, other) = (&earlier.axis.name, &later.axis.name);
    let gap = format!("{{{name}}}");
    let set: BTreeSet<_> = earlier.sets.iter().flat_map(leaves).map(|(field, _)| field).collect();
    for field in set {
        let replaces = |set: &DeTable<'_>| {
            leaves(set).iter().any(|(own, value)| *own == field && !value.contains(&gap))
        };
        if name != other && !later.sets.is_empty() && later.sets.iter().all(replaces) {
            let what = format!(
                "axis `{other}` sets `{field}`, as axis `{name}` does, whose values then have no effect: write both into \
                 it, with `{gap}` for that of `{name}`"
            );
            notes.add(later.at, what);
        }
    }
}

fn read_one<'t>(mut fields: Fields<'_, 't>) -> Option<AxisSpec<'t>> {
    let notes = fields.notes();
    let name = fields.required_text("name");
    let unit = fields.text("unit").map(|unit| unit.value);
    let points = match (fields.take("values"), fields.tables("point")) {
        (Some(values), points) => {
            if let Some(point) = points.first() {
                notes.add(
                    point.span().start,
                    "an axis has either `values` or `[[axis.point]]`, not both",
                );
            }
            short_points(&mut fields, values, unit.as_deref())
        }
        (None, points) if points.is_empty() => {
            notes.add(fields.at, "an axis needs `values` or `[[axis.point]]`");
            None
        }
        (None, points) => {
            Some(points.into_iter().filter_map(|value| long_point(notes, value)).collect())
        }
    };
    let at = fields.at;
    fields.finish();
    let (name, points) = (name?, points?);
    check_labels(notes, &points);
    let numbers = points.iter().filter(|point| point.number.is_some()).count();
    if numbers != 0 && numbers != points.len() {
        notes.add(at, "either all points of an axis have a number or none");
    }
    let (mut sets, mut values, mut axis_points) = (Vec::new(), Vec::new(), Vec::new());
    for PointSpec { label, number, value, set } in points {
        axis_points.push(Point { label: label.value, number });
        sets.push(set);
        values.extend(value);
    }
    let axis = Axis { name: name.value, unit, points: axis_points };
    Some(AxisSpec { axis, at, sets, values })
}

impl<'t> AxisSpec<'t> {
    /// Applies the fields of point `index` to `table`.
    pub(crate) fn apply(&self, table: &mut DeTable<'t>, index: usize) {
        merge(table, &self.sets[index]);
    }

    /// Replaces the name of the axis in braces, in the strings of `table`, by the value of point
    /// `index`.
    pub(crate) fn fill_in(&self, table: &mut DeTable<'t>, index: usize) {
        let gap = format!("{{{}}}", self.axis.name);
        if let Some(value) = self.values.get(index).filter(|_| has_gap(table, &gap)) {
            *table = fill(table, &gap, value);
        }
    }
}

/// Reads a point that lists the fields that it sets.
fn long_point<'t>(notes: &Notes, value: &Value<'t>) -> Option<PointSpec<'t>> {
    let mut fields = Fields::of(notes, "a point", value)?;
    let label = fields.required_text("label");
    let number = fields.number("number").map(|number| number.value);
    let set = fields.take("set").and_then(|set| set_table(&fields, set));
    fields.finish();
    Some(PointSpec { label: label?, number, value: None, set: set.unwrap_or_default() })
}

/// Reads points that differ in one value, which replaces `{}` in `set`.
fn short_points<'t>(
    fields: &mut Fields<'_, 't>,
    values: &Value<'t>,
    unit: Option<&str>,
) -> Option<Vec<PointSpec<'t>>> {
    let notes = fields.notes();
    let labels = fields.take("labels").and_then(|list| listed(fields, "labels", list, values));
    let numbers = fields.take("numbers").and_then(|list| listed(fields, "numbers", list, values));
    let set = fields.require("set").and_then(|set| {
        let table = set_table(fields, set)?;
        if !has_gap(&table, GAP) {
            notes.add(set.span().start, "`set` has no `{}` to be replaced by the values");
        }
        Some(table)
    });
    let values = values.get_ref().as_array().or_else(|| {
        fields.wrong("values", "a list", values);
        None
    })?;
    if values.is_empty() {
        notes.add(fields.at, "an axis has at least one value");
    }
    let set = set?;
    let point = |(index, value): (usize, &Value<'t>)| {
        let is_scalar = !matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_));
        if !is_scalar {
            fields.wrong("values", "a list of strings or numbers", value);
        }
        let word = words(value.get_ref());
        let at = value.span().start;
        let label = match labels {
            Some(labels) => text(notes, "labels", &labels[index])?,
            None => {
                Located::new(unit.map_or_else(|| word.clone(), |unit| format!("{word} {unit}")), at)
            }
        };
        let own_number = numbers.map_or(value, |numbers| &numbers[index]);
        let number = number(own_number);
        if numbers.is_some() && number.is_none() {
            fields.wrong("numbers", "a list of finite numbers", own_number);
        }
        let value = value.get_ref();
        Some(PointSpec { label, number, value: Some(value.clone()), set: fill(&set, GAP, value) })
    };
    Some(values.iter().enumerate().filter_map(point).collect())
}

/// `list`, if it is a list with as many items as `values`.
fn listed<'a, 't>(
    fields: &Fields<'a, 't>,
    name: &str,
    list: &'a Value<'t>,
    values: &Value<'t>,
) -> Option<&'a [Value<'t>]> {
    let items = fields.list(name, list, "a list")?;
    let wanted = values.get_ref().as_array()?.len();
    if items.len() != wanted {
        let what = format!("there are {wanted} `values` but {} `{name}`", items.len());
        fields.notes().add(list.span().start, what);
        return None;
    }
    Some(items)
}

fn set_table<'t>(fields: &Fields<'_, 't>, set: &Value<'t>) -> Option<DeTable<'t>> {
    let table = set.get_ref().as_table();
    if table.is_none() {
        fields.wrong("set", "a table of parts of the scenario", set);
    }
    table.cloned()
}

fn check_labels(notes: &Notes, points: &[PointSpec<'_>]) {
    for (index, point) in points.iter().enumerate() {
        let label = &point.label;
        if points[..index].iter().any(|other| other.label.value == label.value) {
            notes.add(label.at, format!("there is already a point `{}`", label.value));
        }
    }
}

/// The chosen points of each axis; `None` for all.
pub(crate) type Choice = Vec<Option<Vec<usize>>>;

/// Reads `at = { AXIS = LABEL, AXIS = [LABEL, …] }`.
pub(crate) fn choice(fields: &mut Fields<'_, '_>, axes: &[Axis]) -> Choice {
    let notes = fields.notes();
    let mut choice = vec![None; axes.len()];
    let Some(value) = fields.take("at") else {
        return choice;
    };
    let Some(table) = value.get_ref().as_table() else {
        fields.wrong("at", "a table of axes and labels", value);
        return choice;
    };
    for (name, labels) in table.iter() {
        let at = name.span().start;
        let Some(index) = axis_index(notes, axes, name.get_ref(), at) else {
            continue;
        };
        let one = std::slice::from_ref(labels);
        let labels = labels.get_ref().as_array().map_or(one, |list| &list[..]);
        if labels.is_empty() {
            notes.add(at, "at least one label is needed");
        }
        let mut points: Vec<usize> = Vec::new();
        for label in labels {
            let point = point_index(notes, &axes[index], label);
            points.extend(point.filter(|point| !points.contains(point)));
        }
        choice[index] = Some(points);
    }
    choice
}

/// The index of the axis `name`; notes a mistake if it does not exist.
pub(crate) fn axis_index(notes: &Notes, axes: &[Axis], name: &str, at: usize) -> Option<usize> {
    let index = axes.iter().position(|axis| axis.name == name);
    if index.is_none() {
        let other = match axes {
            [] => "the study has no axes".into(),
            _ => alternatives(name, axes.iter().map(|axis| axis.name.as_str())),
        };
        notes.add(at, format!("there is no axis `{name}`; {other}"));
    }
    index
}

/// The index of the point of `axis` with this label or number; notes a mistake if it does not
/// exist.
pub(crate) fn point_index(notes: &Notes, axis: &Axis, label: &Value<'_>) -> Option<usize> {
    let wanted = number(label);
    let word = words(label.get_ref());
    let is_it = |point: &Point| point.label == word || wanted.is_some() && point.number == wanted;
    let index = axis.points.iter().position(is_it);
    if index.is_none() {
        let other = alternatives(&word, axis.points.iter().map(|point| point.label.as_str()));
        let what = format!("the axis `{}` has no `{word}`; {other}", axis.name);
        notes.add(label.span().start, what);
    }
    index
}
