//! Reads a figure, and refuses what could not be drawn.

use toml::de::DeValue;

use super::{Figure, Group, MAX_GROUPS, Source};
use crate::scenario::Unit;
use crate::study::axis::{Choice, axis_index, choice};
use crate::study::document::Coordinate;
use crate::study::fields::{Fields, Located, Value, number, text};
use crate::study::mistake::Notes;
use crate::study::names::{self, Sort};
use crate::study::report::{DrawnAxis, FigureKind};
use crate::study::sweep::{Sweep, Term};

/// What `kind` may be.
const KINDS: [(&str, Kind); 7] = [
    ("lines", Kind::Drawn(FigureKind::Lines)),
    ("bars", Kind::Drawn(FigureKind::Bars)),
    ("stacked-bars", Kind::Drawn(FigureKind::StackedBars)),
    ("scatter", Kind::Drawn(FigureKind::Scatter)),
    ("cdf", Kind::Drawn(FigureKind::Cdf)),
    ("ccdf", Kind::Drawn(FigureKind::Ccdf)),
    ("series", Kind::Series),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Drawn(FigureKind),
    /// Drawn as lines.
    Series,
}

/// What is across in lines and bars.
enum Across {
    Axis(usize),
    Categories(Vec<String>),
}

/// What is drawn upwards in lines and bars, with a name for each category, or one for all of an
/// axis.
struct Row {
    /// `None` if it is the only one and has no other name than its quantity's.
    label: Option<String>,
    names: Vec<Located<String>>,
}

/// What figures of all kinds have read when their groups are made.
struct Draft<'a> {
    notes: &'a Notes,
    sweep: &'a Sweep<'a>,
    chosen: Choice,
    at: usize,
}

/// The axes and groups of a figure.
struct Parts {
    x: DrawnAxis,
    y: DrawnAxis,
    groups: Vec<Group>,
}

/// Reads one figure; `None` after noting what is wrong with it.
pub(in crate::study) fn read(
    notes: &Notes,
    value: &Value<'_>,
    sweep: &Sweep<'_>,
    seeds: &[u64],
) -> Option<Figure> {
    let mut fields = Fields::of(notes, "a figure", value)?;
    let title = fields.required_text("title");
    let about = fields.text("about").map_or_else(String::new, |about| about.value.trim().into());
    let chosen = choice(&mut fields, sweep.axes);
    let kind = fields.word("kind", &KINDS)?.value;
    let draft = Draft { notes, sweep, chosen, at: fields.at };
    let parts = match kind {
        Kind::Drawn(FigureKind::Scatter) => draft.scatter(&mut fields),
        Kind::Drawn(FigureKind::Cdf) => draft.distributions(&mut fields, "share of at most"),
        Kind::Drawn(FigureKind::Ccdf) => draft.distributions(&mut fields, "share of at least"),
        Kind::Drawn(kind) => draft.estimates(&mut fields, kind),
        Kind::Series => draft.series(&mut fields, seeds),
    };
    let (x_axis, y_axis) = (fields.take("x_axis"), fields.take("y_axis"));
    fields.finish();
    let Parts { mut x, mut y, groups } = parts?;
    x_axis.map(|value| dress(notes, value, &mut x));
    y_axis.map(|value| dress(notes, value, &mut y));
    let kind = match kind {
        Kind::Drawn(kind) => kind,
        Kind::Series => FigureKind::Lines,
    };
    Some(Figure { title: title?.value, about, kind, x, y, groups })
}

/// `x_axis = { label = "…", log = true, range = [0, 10] }`.
fn dress(notes: &Notes, value: &Value<'_>, axis: &mut DrawnAxis) -> Option<()> {
    let mut fields = Fields::of(notes, "an axis of a figure", value)?;
    if let Some(label) = fields.text("label") {
        axis.label = label.value;
    }
    axis.log = fields.flag("log").unwrap_or(false);
    if let Some(value) = fields.take("range") {
        let ends =
            value.get_ref().as_array().map(|list| list.iter().map(number).collect::<Vec<_>>());
        match ends.as_deref() {
            Some([Some(from), Some(to)]) if from < to => axis.range = Some((*from, *to)),
            _ => fields.wrong("range", "a list of two ascending numbers", value),
        }
    }
    fields.finish();
    Some(())
}

impl Draft<'_> {
    /// Lines and bars.
    fn estimates(&self, fields: &mut Fields<'_, '_>, kind: FigureKind) -> Option<Parts> {
        let across = self.across(fields);
        let rows = fields.require("y").and_then(|y| self.rows(fields, y, across.as_ref()));
        let (across, rows) = (across?, rows?);
        let names: Vec<_> = rows.iter().flat_map(|row| row.names.clone()).collect();
        let y = self.axis_of(Sort::Quantity, &names)?;
        let axis = match across {
            Across::Axis(axis) => Some(axis),
            Across::Categories(_) => None,
        };
        let others = self.others(axis);
        let bars = match (&across, kind) {
            (Across::Axis(axis), FigureKind::StackedBars) => self.sweep.axes[*axis].points.len(),
            (Across::Categories(labels), FigureKind::StackedBars) => labels.len(),
            _ => rows.len(),
        };
        self.is_bounded(others.len() * bars).then_some(())?;
        let sheet = Sheet { draft: self, across, rows, others };
        let x = sheet.x(kind);
        let groups =
            if kind == FigureKind::StackedBars { sheet.stacked() } else { sheet.groups(kind) };
        Some(Parts { x, y, groups })
    }

    fn across(&self, fields: &mut Fields<'_, '_>) -> Option<Across> {
        let value = fields.require("x")?;
        if let DeValue::Array(list) = value.get_ref() {
            let labels = list.iter().filter_map(|label| text(self.notes, "x", label));
            return Some(Across::Categories(labels.map(|label| label.value).collect()));
        }
        let name = text(self.notes, "x", value)?;
        axis_index(self.notes, self.sweep.axes, &name.value, name.at).map(Across::Axis)
    }

    /// `y`: a quantity, several, or tables with a label each.
    fn rows(
        &self,
        fields: &Fields<'_, '_>,
        value: &Value<'_>,
        across: Option<&Across>,
    ) -> Option<Vec<Row>> {
        let one = std::slice::from_ref(value);
        let items = value.get_ref().as_array().map_or(one, |list| &list[..]);
        if items.is_empty() {
            fields.wrong("y", "at least one quantity", value);
            return None;
        }
        let is_labelled = items.iter().any(|item| item.get_ref().is_table());
        let categories = match across? {
            Across::Axis(_) => None,
            Across::Categories(labels) => Some(labels.len()),
        };
        let rows: Vec<Row> = if is_labelled {
            items
                .iter()
                .filter_map(|item| self.labelled(item, categories.is_some()))
                .flatten()
                .collect()
        } else {
            let names: Vec<_> =
                items.iter().filter_map(|item| text(self.notes, "y", item)).collect();
            let names = names::expand(self.notes, &names);
            match categories {
                Some(_) => vec![Row { label: None, names }],
                None => one_each(names),
            }
        };
        for row in &rows {
            if let Some(wanted) = categories
                && row.names.len() != wanted
            {
                let what = format!(
                    "there are {wanted} categories in `x`, but {} quantities",
                    row.names.len()
                );
                self.notes.add(row.names.first().map_or(self.at, |name| name.at), what);
                return None;
            }
        }
        (!rows.is_empty()).then_some(rows)
    }

    /// `{ label = "…", quantity = "…" }`; with categories a quantity for each.
    fn labelled(&self, value: &Value<'_>, has_categories: bool) -> Option<Vec<Row>> {
        let mut fields = Fields::of(self.notes, "an item of `y`", value)?;
        let label = fields.required_text("label");
        fields.require("quantity")?;
        let names = names::expand(self.notes, &fields.texts("quantity").unwrap_or_default());
        fields.finish();
        let label = Some(label?.value);
        if !has_categories && names.len() != 1 {
            let what = format!("one quantity for this label, not {}", names.len());
            self.notes.add(value.span().start, what);
            return None;
        }
        Some(vec![Row { label, names }])
    }

    /// A point per run.
    fn scatter(&self, fields: &mut Fields<'_, '_>) -> Option<Parts> {
        let (x, y) = (fields.required_text("x"), fields.required_text("y"));
        let (x, y) = (x?, y?);
        let axes = [&x, &y].map(|name| self.axis_of(Sort::Quantity, std::slice::from_ref(name)));
        let [Some(x_axis), Some(y_axis)] = axes else {
            return None;
        };
        let cells = self.cells();
        self.is_bounded(cells.len()).then_some(())?;
        let groups = cells.into_iter().map(|(label, cell)| {
            let term = |name: &Located<String>| Term { cell, name: name.value.clone() };
            Group { label, source: Source::Runs { x: term(&x), y: term(&y) } }
        });
        Some(Parts { x: x_axis, y: y_axis, groups: groups.collect() })
    }

    /// Pooled distributions; `share` says which.
    fn distributions(&self, fields: &mut Fields<'_, '_>, share: &str) -> Option<Parts> {
        let (x, groups) =
            self.each(fields, "distribution", Sort::Distribution, Source::Distribution)?;
        let y = DrawnAxis { label: share.into(), unit: Unit::Share, ..x.clone() };
        Some(Parts { x, y, groups })
    }

    /// Values over time.
    fn series(&self, fields: &mut Fields<'_, '_>, seeds: &[u64]) -> Option<Parts> {
        let seed = match fields.number("seed") {
            None => *seeds.first()?,
            Some(wanted) => {
                let found = seeds.iter().find(|seed| **seed as f64 == wanted.value);
                if found.is_none() {
                    self.notes.add(wanted.at, format!("no run has the seed {}", wanted.value));
                }
                *found?
            }
        };
        let source = |term| Source::Series(term, seed);
        let (y, groups) = self.each(fields, "series", Sort::Series, source)?;
        let x = DrawnAxis { label: "time".into(), unit: Unit::Seconds, ..y.clone() };
        Some(Parts { x, y, groups })
    }

    /// A group for each of some names in each cell, and the axis of their values.
    fn each(
        &self,
        fields: &mut Fields<'_, '_>,
        field: &'static str,
        sort: Sort,
        source: impl Fn(Term) -> Source,
    ) -> Option<(DrawnAxis, Vec<Group>)> {
        fields.require(field)?;
        let names = names::expand(self.notes, &fields.texts(field).unwrap_or_default());
        let axis = self.axis_of(sort, &names)?;
        let (cells, mut groups) = (self.cells(), Vec::new());
        self.is_bounded(cells.len() * names.len()).then_some(())?;
        for (label, cell) in cells {
            for name in &names {
                let own = if names.len() > 1 { name.value.as_str() } else { "" };
                let label = joined([&label, own], &name.value);
                groups
                    .push(Group { label, source: source(Term { cell, name: name.value.clone() }) });
            }
        }
        Some((axis, groups))
    }

    /// The axis for the values of `names`, which must all be measured and of one unit.
    fn axis_of(&self, sort: Sort, names: &[Located<String>]) -> Option<DrawnAxis> {
        let points = self.sweep.points(&self.chosen);
        let mut unit = None;
        for name in names {
            let own = self.sweep.unit(self.notes, &points, sort, name)?;
            if *unit.get_or_insert(own) != own {
                let what = format!("`{}` has another unit than the ones before it", name.value);
                self.notes.add(name.at, what);
                return None;
            }
        }
        let label = match names {
            [name] => self.sweep.described(&points, sort, &name.value)?.about.clone(),
            _ => String::new(),
        };
        Some(DrawnAxis { label, unit: unit?, log: false, range: None, categories: Vec::new() })
    }

    /// Whether so many things can be told apart; noted if not.
    fn is_bounded(&self, groups: usize) -> bool {
        if groups > MAX_GROUPS {
            let what = format!(
                "{groups} things to tell apart: a figure has at most {MAX_GROUPS}; `at` chooses some"
            );
            self.notes.add(self.at, what);
        }
        groups <= MAX_GROUPS
    }

    /// The points of all axes but `across`.
    fn others(&self, across: Option<usize>) -> Vec<(String, Vec<usize>)> {
        let mut chosen = self.chosen.clone();
        if let Some(axis) = across {
            chosen[axis] = Some(vec![0]);
        }
        let is_told = |axis: usize| {
            let all = self.sweep.axes[axis].points.len();
            Some(axis) != across && chosen[axis].as_ref().map_or(all, Vec::len) > 1
        };
        let points = self.sweep.points(&chosen).into_iter();
        points.map(|point| (legend(&self.sweep.told(&point, is_told)), point)).collect()
    }

    /// All chosen cells with what distinguishes them.
    fn cells(&self) -> Vec<(String, usize)> {
        let all = self.others(None).into_iter();
        all.map(|(label, point)| (label, self.sweep.cell(&point))).collect()
    }
}

/// What lines and bars are made of.
struct Sheet<'a> {
    draft: &'a Draft<'a>,
    across: Across,
    rows: Vec<Row>,
    others: Vec<(String, Vec<usize>)>,
}

impl Sheet<'_> {
    /// What stands across: a place and its label, and whether the places are categories.
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

    /// The points of the axis across that are drawn.
    fn indices(&self, axis: usize) -> Vec<usize> {
        let all = || (0..self.draft.sweep.axes[axis].points.len()).collect();
        self.draft.chosen[axis].clone().unwrap_or_else(all)
    }

    fn x(&self, kind: FigureKind) -> DrawnAxis {
        let (places, are_categories) = self.places(kind);
        let labels = places.iter().map(|(_, label)| label.clone());
        let categories = match (kind, are_categories) {
            (FigureKind::StackedBars, _) => labels
                .flat_map(|label| {
                    self.others.iter().map(move |(other, _)| joined([&label, other], ""))
                })
                .collect(),
            (_, true) => labels.collect(),
            (_, false) => Vec::new(),
        };
        let (label, unit) = match &self.across {
            Across::Categories(_) => (String::new(), Unit::Count),
            Across::Axis(index) => {
                let axis = &self.draft.sweep.axes[*index];
                named(&axis.name, axis.unit.as_deref().filter(|_| !are_categories))
            }
        };
        DrawnAxis { label, unit, log: false, range: None, categories }
    }

    /// The quantity of `row` at the `place`-th place across, in the cell at `point` of the others.
    fn term(&self, row: &Row, place: usize, point: &[usize]) -> Term {
        let (name, cell) = match &self.across {
            Across::Categories(_) => (&row.names[place], self.draft.sweep.cell(point)),
            Across::Axis(axis) => {
                let mut point = point.to_vec();
                point[*axis] = self.indices(*axis)[place];
                (&row.names[0], self.draft.sweep.cell(&point))
            }
        };
        Term { cell, name: name.value.clone() }
    }

    fn groups(&self, kind: FigureKind) -> Vec<Group> {
        let (places, _) = self.places(kind);
        let mut groups = Vec::new();
        for (other, point) in &self.others {
            for row in &self.rows {
                let term =
                    |(place, (x, _)): (usize, &(f64, String))| (*x, self.term(row, place, point));
                let mut terms: Vec<(f64, Term)> = places.iter().enumerate().map(term).collect();
                terms.sort_by(|a, b| a.0.total_cmp(&b.0));
                groups.push(Group { label: row.legend(other), source: Source::Estimates(terms) });
            }
        }
        groups
    }

    /// One group per row; every place has a bar for each point of the other axes.
    fn stacked(&self) -> Vec<Group> {
        let (places, _) = self.places(FigureKind::StackedBars);
        let group = |row: &Row| {
            let bars = (0..places.len())
                .flat_map(|place| self.others.iter().map(move |(_, point)| (place, point)));
            let terms = bars
                .enumerate()
                .map(|(x, (place, point))| (x as f64, self.term(row, place, point)));
            Group { label: row.legend(""), source: Source::Estimates(terms.collect()) }
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

/// Every quantity in a row of its own, called by its name if there are several.
fn one_each(names: Vec<Located<String>>) -> Vec<Row> {
    let is_told = names.len() > 1;
    let row = |name: Located<String>| Row {
        label: is_told.then(|| name.value.clone()),
        names: vec![name],
    };
    names.into_iter().map(row).collect()
}

/// Two parts of a label, or `otherwise` if both are empty.
fn joined(parts: [&str; 2], otherwise: &str) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { otherwise.into() } else { parts.join(" · ") }
}

fn legend(point: &[Coordinate]) -> String {
    point.iter().map(|coordinate| coordinate.label.as_str()).collect::<Vec<_>>().join(" · ")
}

/// What a numeric axis of a figure says of an axis of the study: units that figures know are theirs
/// to show.
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
