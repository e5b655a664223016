//! Reads a figure, and rejects those that cannot be drawn.

use rexmit_lab::scenario::Unit;
use toml::de::DeValue;

use super::group::{Figure, Group, MAX_GROUPS, Source};
use super::sheet::Sheet;
use super::stated;
use crate::axis::{Choice, axis_index, choice};
use crate::document::Coordinate;
use crate::fields::{Fields, Located, Value, number, text};
use crate::figure::drawn::{DrawnAxis, FigureKind};
use crate::gather::Gathered;
use crate::mistake::Notes;
use crate::names::{self, Sort};
use crate::pooled::{NOT_POOLED, Statistic};
use crate::sweep::{Sweep, Term};

/// The allowed values of `kind`.
const KINDS: [(&str, FigureKind); 7] = [
    ("lines", FigureKind::Lines),
    ("bars", FigureKind::Bars),
    ("stacked-bars", FigureKind::StackedBars),
    ("scatter", FigureKind::Scatter),
    ("cdf", FigureKind::Cdf),
    ("ccdf", FigureKind::Ccdf),
    ("series", FigureKind::Series),
];

/// The horizontal axis of lines and bars.
pub(super) enum Across {
    Axis(usize),
    Categories(Vec<String>),
}

/// A quantity of lines and bars: a name for each category, or one name for all points of an axis.
pub(super) struct Row {
    /// `None` if it is the only one, and is labelled by the name of its quantity.
    pub(super) label: Option<String>,
    pub(super) names: Vec<Located<String>>,
}

/// The fields common to figures of all kinds, read before their groups are created.
pub(super) struct Draft<'a> {
    notes: &'a Notes,
    pub(super) sweep: &'a Sweep<'a>,
    pub(super) chosen: Choice,
    pub(super) gathered: Gathered,
    /// Whether the values of all seeds are taken together, instead of a value per seed.
    pub(super) is_pooled: bool,
    at: usize,
}

/// The axes and groups of a figure.
struct Parts {
    x: DrawnAxis,
    y: DrawnAxis,
    groups: Vec<Group>,
}

/// Reads one figure; `None` after noting its mistakes.
pub(crate) fn read(
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
    fields.turn_into(name(kind), own_fields(kind));
    fields.turn_into(name(kind), &["source"]);
    let gathered = if is_of_estimates(kind) {
        Gathered::read(&mut fields, sweep)
    } else {
        Gathered::default()
    };
    gathered.check(&fields, sweep, &chosen);
    let is_pooled = is_of_estimates(kind) && fields.flag("pooled").unwrap_or(false);
    if is_pooled && gathered != Gathered::default() {
        notes.add(fields.at, "`pooled` excludes combined points and gains");
    }
    fields.finish();
    let chosen = gathered.stand_in(chosen);
    let draft = Draft { notes, sweep, chosen, gathered, is_pooled, at: fields.at };
    let parts = match kind {
        FigureKind::Scatter => draft.scatter(&mut fields),
        FigureKind::Cdf => draft.distributions(&mut fields, "share of values that are at most x"),
        FigureKind::Ccdf => draft.distributions(&mut fields, "share of values that are at least x"),
        FigureKind::Series => draft.series(&mut fields, seeds),
        FigureKind::Lines | FigureKind::Bars | FigureKind::StackedBars => {
            draft.estimates(&mut fields, kind)
        }
    };
    let (x_axis, y_axis) = (fields.take("x_axis"), fields.take("y_axis"));
    let dresses = [x_axis, y_axis].map(|value| Some(read_dress(notes, value?)));
    let Parts { mut x, mut y, groups } = parts?;
    let labels: Vec<&str> = groups.iter().map(|group| group.label.as_str()).collect();
    let stated = stated::read(&mut fields, kind, &x, &labels);
    for (axis, dress) in [&mut x, &mut y].into_iter().zip(dresses) {
        let Some(Dress { label, log, range }) = dress else {
            continue;
        };
        axis.label = label.unwrap_or_else(|| axis.label.clone());
        (axis.log, axis.range) = (log, range);
    }
    Some(Figure { title: title?.value, about, kind, x, y, groups, stated })
}

const fn is_of_estimates(kind: FigureKind) -> bool {
    matches!(kind, FigureKind::Lines | FigureKind::Bars | FigureKind::StackedBars)
}

/// The name of this kind of figure in messages.
fn name(kind: FigureKind) -> &'static str {
    match kind {
        FigureKind::Lines | FigureKind::Bars | FigureKind::StackedBars => {
            "a figure of lines or bars"
        }
        FigureKind::Scatter => "a scatter",
        FigureKind::Cdf | FigureKind::Ccdf => "a figure of a distribution",
        FigureKind::Series => "a figure of a series",
    }
}

/// The fields allowed in this kind of figure.
fn own_fields(kind: FigureKind) -> &'static [&'static str] {
    match kind {
        FigureKind::Cdf | FigureKind::Ccdf => &["x", "beside", "x_axis", "y_axis"],
        FigureKind::Series => &["y", "seed", "x_axis", "y_axis"],
        _ => &["x", "y", "x_axis", "y_axis"],
    }
}

/// The labels and scale of an axis, as written in the file.
#[derive(Default)]
struct Dress {
    label: Option<String>,
    log: bool,
    range: Option<(f64, f64)>,
}

/// Reads `x_axis = { label = "…", log = true, range = [0, 10] }`.
fn read_dress(notes: &Notes, value: &Value<'_>) -> Dress {
    let Some(mut fields) = Fields::of(notes, "an axis of a figure", value) else {
        return Dress::default();
    };
    let label = fields.text("label").map(|label| label.value);
    let log = fields.flag("log").unwrap_or(false);
    let range = fields.take("range").and_then(|value| {
        let list = value.get_ref().as_array();
        let ends: Option<Vec<_>> = list.map(|list| list.iter().map(number).collect());
        match ends.as_deref() {
            Some([Some(from), Some(to)]) if from < to => Some((*from, *to)),
            _ => {
                fields.wrong("range", "a list of two ascending numbers", value);
                None
            }
        }
    });
    fields.finish();
    Dress { label, log, range }
}

impl Draft<'_> {
    /// Reads lines and bars.
    fn estimates(&self, fields: &mut Fields<'_, '_>, kind: FigureKind) -> Option<Parts> {
        let across = self.across(fields);
        let rows = fields.require("y").and_then(|y| self.rows(fields, y, across.as_ref()));
        let (across, rows) = (across?, rows?);
        if let Across::Axis(axis) = across
            && self.gathered.has(axis)
        {
            let name = &self.sweep.axes[axis].name;
            self.notes
                .add(self.at, format!("the axis `{name}` is horizontal and cannot be combined"));
            return None;
        }
        let names: Vec<_> = rows.iter().flat_map(|row| row.names.clone()).collect();
        let mut y = self.axis_of(Sort::Quantity, &names)?;
        if self.is_pooled {
            self.check_pooled(&names);
            y.label += " (all seeds together)";
        }
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

    /// Notes a mistake for every quantity that is not a statistic of a distribution.
    fn check_pooled(&self, names: &[Located<String>]) {
        let points = self.sweep.points(&self.chosen);
        for name in names {
            let is_of_one = Statistic::of(&name.value).is_some_and(|(distribution, _)| {
                self.sweep.cells.is_none()
                    || self.sweep.described(&points, Sort::Distribution, distribution).is_some()
            });
            if !is_of_one {
                self.notes.add(name.at, NOT_POOLED);
            }
        }
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

    /// Reads `y`: a quantity, several, or tables with a label each.
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

    /// Reads `{ label = "…", quantity = "…" }`; with categories, one quantity for each.
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

    /// Reads a scatter plot.
    fn scatter(&self, fields: &mut Fields<'_, '_>) -> Option<Parts> {
        let (x, y) = (fields.required_text("x"), fields.required_text("y"));
        let (x, y) = (x?, y?);
        let axes = [&x, &y].map(|name| self.axis_of(Sort::Quantity, std::slice::from_ref(name)));
        let [Some(x_axis), Some(y_axis)] = axes else {
            return None;
        };
        let cells = self.others(None);
        self.is_bounded(cells.len()).then_some(())?;
        let groups = cells.into_iter().map(|Other { label, point }| {
            let cell = self.sweep.cell(&point);
            let term = |name: &Located<String>| Term { cell, name: name.value.clone() };
            let source = Source::Runs { x: term(&x), y: term(&y) };
            Group { label, point: self.sweep.told(&point, |_| true), source }
        });
        Some(Parts { x: x_axis, y: y_axis, groups: groups.collect() })
    }

    /// Reads pooled distributions; `share` selects the tail.
    fn distributions(&self, fields: &mut Fields<'_, '_>, share: &str) -> Option<Parts> {
        let beside = fields.tables("beside");
        let beside: Vec<_> = beside.into_iter().map(|value| self.beside(value)).collect();
        let (x, mut groups) = self.each(fields, "x", Sort::Distribution, Source::Distribution)?;
        for group in beside {
            groups.push(group?);
        }
        let y = DrawnAxis { label: share.into(), unit: Unit::Share, ..x.clone() };
        Some(Parts { x, y, groups })
    }

    /// Reads `{ label = "…", quantity = "…", at.AXIS = "…" }`: a further distribution, of a single
    /// cell.
    fn beside(&self, value: &Value<'_>) -> Option<Group> {
        let mut fields = Fields::of(self.notes, "an item of `beside`", value)?;
        let (label, name) = (fields.required_text("label"), fields.required_text("quantity"));
        let own = choice(&mut fields, self.sweep.axes);
        fields.finish();
        let (label, name) = (label?.value, name?);
        let chosen: Choice =
            own.into_iter().zip(&self.chosen).map(|(own, all)| own.or(all.clone())).collect();
        let points = self.sweep.points(&chosen);
        let [point] = &points[..] else {
            let what = format!("{} cells: `at` chooses the one that is drawn", points.len());
            self.notes.add(value.span().start, what);
            return None;
        };
        self.sweep.unit(self.notes, &points, Sort::Distribution, &name)?;
        let term = Term { cell: self.sweep.cell(point), name: name.value };
        let source = Source::Distribution(term);
        Some(Group { label, point: self.sweep.told(point, |_| true), source })
    }

    /// Reads values over time.
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
        let (y, groups) = self.each(fields, "y", Sort::Series, source)?;
        let x = DrawnAxis { label: "time".into(), unit: Unit::Seconds, ..y.clone() };
        Some(Parts { x, y, groups })
    }

    /// A group for each name in each cell, and the axis of their values.
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
        let (cells, mut groups) = (self.others(None), Vec::new());
        self.is_bounded(cells.len() * names.len()).then_some(())?;
        for Other { label, point } in cells {
            let cell = self.sweep.cell(&point);
            for name in &names {
                let own = if names.len() > 1 { name.value.as_str() } else { "" };
                let label = joined([&label, own], &name.value);
                let source = source(Term { cell, name: name.value.clone() });
                groups.push(Group { label, point: self.sweep.told(&point, |_| true), source });
            }
        }
        Some((axis, groups))
    }

    /// The axis for the values of `names`, all of which must be measured and have the same unit.
    fn axis_of(&self, sort: Sort, names: &[Located<String>]) -> Option<DrawnAxis> {
        let points = self.sweep.points(&self.chosen);
        let mut unit = None;
        for name in names {
            for (name, points) in self.gathered.needs(self.sweep, name, &points) {
                let own = self.sweep.unit(self.notes, &points, sort, &name)?;
                if *unit.get_or_insert(own) != own {
                    let what = format!("`{}` has another unit than the previous ones", name.value);
                    self.notes.add(name.at, what);
                    return None;
                }
            }
        }
        let label = match names {
            [name] => self.sweep.described(&points, sort, &name.value)?.about.clone(),
            _ => String::new(),
        };
        let label = label + &self.gathered.words(self.sweep.axes);
        Some(DrawnAxis {
            label,
            unit: self.gathered.unit(unit?),
            log: false,
            range: None,
            categories: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Whether the number of groups is allowed; notes a mistake if not.
    fn is_bounded(&self, groups: usize) -> bool {
        if groups > MAX_GROUPS {
            let what = format!(
                "{groups} groups: a figure has at most {MAX_GROUPS}; select some with `at`"
            );
            self.notes.add(self.at, what);
        }
        groups <= MAX_GROUPS
    }

    /// The points of all axes except `across`.
    fn others(&self, across: Option<usize>) -> Vec<Other> {
        let mut chosen = self.chosen.clone();
        if let Some(axis) = across {
            chosen[axis] = Some(vec![0]);
        }
        let several = |axis: usize| Some(axis) != across && !self.is_single(axis);
        let points = self.sweep.points(&chosen).into_iter();
        let other =
            |point: Vec<usize>| Other { label: legend(&self.sweep.told(&point, several)), point };
        points.map(other).collect()
    }

    /// Whether only one point of the axis is drawn.
    pub(super) fn is_single(&self, axis: usize) -> bool {
        let all = self.sweep.axes[axis].points.len();
        self.chosen[axis].as_ref().map_or(all, Vec::len) == 1
    }
}

/// A point of the axes that are not horizontal.
pub(super) struct Other {
    /// The label that distinguishes it.
    pub(super) label: String,
    /// An index on each axis; that of the horizontal axis is unused.
    pub(super) point: Vec<usize>,
}

/// One row per quantity, labelled by its name if there are several.
fn one_each(names: Vec<Located<String>>) -> Vec<Row> {
    let is_told = names.len() > 1;
    let row = |name: Located<String>| Row {
        label: is_told.then(|| name.value.clone()),
        names: vec![name],
    };
    names.into_iter().map(row).collect()
}

/// The parts of a label, joined; `otherwise` if both are empty.
pub(super) fn joined(parts: [&str; 2], otherwise: &str) -> String {
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { otherwise.into() } else { parts.join(" · ") }
}

fn legend(point: &[Coordinate]) -> String {
    point.iter().map(|coordinate| coordinate.label.as_str()).collect::<Vec<_>>().join(" · ")
}
