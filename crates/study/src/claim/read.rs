//! Reads a claim, and rejects those that cannot be judged.

use std::collections::BTreeSet;

use rexmit_lab::scenario::Unit;

use super::comparison::{Claim, Comparison, MAX_COMPARISONS, Relation, Right};
use super::trend;
use super::words;
use crate::axis::{Axis, Choice, choice};
use crate::document::Coordinate;
use crate::fields::{Fields, Located, Value, number};
use crate::gather::{Gathered, OWN_FIELDS};
use crate::mistake::Notes;
use crate::names::{self, Sort};
use crate::pooled::{NOT_POOLED, Statistic};
use crate::sweep::{Sweep, place};

/// The allowed values of `is`.
pub(super) const KINDS: [(&str, Kind); 11] = [
    ("below", Kind::Below),
    ("above", Kind::Above),
    ("at most", Kind::AtMost),
    ("at least", Kind::AtLeast),
    ("within", Kind::Within),
    ("like", Kind::Like),
    ("rising", Kind::Rising),
    ("falling", Kind::Falling),
    ("not rising", Kind::NotRising),
    ("not falling", Kind::NotFalling),
    ("level", Kind::Level),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Below,
    Above,
    AtMost,
    AtLeast,
    Within,
    Like,
    Rising,
    Falling,
    NotRising,
    NotFalling,
    Level,
}

/// The left side: names, and the points at which they are evaluated.
#[derive(Clone)]
pub(super) struct Left {
    pub(super) names: Vec<Located<String>>,
    /// The points, with one representative for each combined axis.
    pub(super) chosen: Choice,
    pub(super) gathered: Gathered,
}

/// The right side, unless it is a number.
struct Side {
    /// The names, one for each name on the left; `None` if they are the same.
    names: Option<Vec<Located<String>>>,
    chosen: Choice,
    /// As on the left, except for a reference of its own.
    gathered: Gathered,
    at: usize,
}

/// A comparison before its quantities are known to be measured.
pub(super) struct Draft {
    pub(super) coordinates: Vec<Coordinate>,
    pub(super) left: (Located<String>, Vec<usize>),
    pub(super) relation: Relation,
    pub(super) right: Target,
}

pub(super) enum Target {
    Number(f64),
    Measured(Located<String>, Vec<usize>, Gathered),
}

/// Reads one claim; `None` after noting its mistakes.
pub(crate) fn read(notes: &Notes, value: &Value<'_>, sweep: &Sweep<'_>) -> Option<Claim> {
    let mut fields = Fields::of(notes, "a claim", value)?;
    let says = fields.required_text("says");
    let source_value = fields.text("paper").map(|paper| paper.value);
    fields.require("quantity")?;
    let names = names::expand(notes, &fields.texts("quantity").unwrap_or_default());
    let chosen = choice(&mut fields, sweep.axes);
    let kind = fields.word("is", &KINDS)?.value;
    let at = fields.at;
    let gathered = match kind {
        Kind::Like => Gathered::default(),
        _ => Gathered::read(&mut fields, sweep),
    };
    let is_pooled = read_pooled(&mut fields, kind, &gathered);
    gathered.check(&fields, sweep, &chosen);
    let left = Left { names, chosen: gathered.stand_in(chosen), gathered };
    fields.turn_into(kind.name(), kind.fields());
    if kind != Kind::Like {
        fields.turn_into(kind.name(), &OWN_FIELDS);
        fields.turn_into(kind.name(), &["pooled"]);
    }
    fields.finish();
    let (drafts, means) = match kind {
        Kind::Rising | Kind::Falling | Kind::NotRising | Kind::NotFalling | Kind::Level => {
            trend::read(&mut fields, kind, &left, sweep)
        }
        _ => comparison(&mut fields, kind, &left, sweep),
    }?;
    let cells = drafts.len().saturating_mul(left.gathered.points_of_each(sweep.axes));
    is_bounded(notes, cells, at).then_some(())?;
    let sort = if kind == Kind::Like { Sort::Distribution } else { Sort::Quantity };
    compares_others(notes, &drafts, &left.gathered, sweep, at);
    let unit = unit(notes, &drafts, &left.gathered, sort, sweep)?;
    if is_pooled {
        check_pooled(notes, &drafts, sweep);
    }
    let comparisons = drafts
        .into_iter()
        .map(|draft| draft.comparison(&left.gathered, is_pooled, sweep))
        .collect();
    let means = means(unit) + if is_pooled { ", of the values of all seeds together" } else { "" };
    Some(Claim { says: says?.value, means, source_value, unit, comparisons })
}

/// Reads the field `pooled` of a claim, and notes an error if combined points or gains are also given.
fn read_pooled(fields: &mut Fields<'_, '_>, kind: Kind, gathered: &Gathered) -> bool {
    if kind == Kind::Like || !fields.flag("pooled").unwrap_or(false) {
        return false;
    }
    if *gathered != Gathered::default() {
        fields.notes().add(fields.at, "`pooled` excludes combined points and gains");
    }
    true
}

/// Notes a mistake for every quantity of a pooled claim that is not a statistic of a distribution.
fn check_pooled(notes: &Notes, drafts: &[Draft], sweep: &Sweep<'_>) {
    let mut known = BTreeSet::new();
    for draft in drafts {
        let right = match &draft.right {
            Target::Measured(name, point, _) => Some((name, point)),
            Target::Number(_) => None,
        };
        for (name, point) in [Some((&draft.left.0, &draft.left.1)), right].into_iter().flatten() {
            let points = std::slice::from_ref(point);
            let is_of_one = Statistic::of(&name.value).is_some_and(|(distribution, _)| {
                sweep.cells.is_none()
                    || sweep.described(points, Sort::Distribution, distribution).is_some()
            });
            if !is_of_one && known.insert(&name.value) {
                notes.add(name.at, NOT_POOLED);
            }
        }
    }
}

/// Whether the number of comparisons is allowed; notes a mistake if not. A comparison of combined
/// points counts once per point.
pub(super) fn is_bounded(notes: &Notes, comparisons: usize, at: usize) -> bool {
    if comparisons > MAX_COMPARISONS {
        notes.add(at, format!("a claim has at most {MAX_COMPARISONS} comparisons"));
    }
    comparisons <= MAX_COMPARISONS
}

/// Formats the meaning of a claim once its unit is known.
pub(super) type Means = Box<dyn FnOnce(Unit) -> String>;

impl Kind {
    /// The fields allowed in this kind of claim.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Below | Self::Above => &["than", "by"],
            Self::AtMost | Self::AtLeast | Self::Within => &["than", "tolerance"],
            Self::Like => &["than", "distance", "grain"],
            Self::Rising | Self::Falling | Self::NotRising | Self::NotFalling | Self::Level => {
                &["along", "over", "tolerance"]
            }
        }
    }

    /// The name of this kind of claim in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Below | Self::Above => "a claim with `below` or `above`",
            Self::AtMost | Self::AtLeast => "a claim with `at most` or `at least`",
            Self::Within => "a claim with `within`",
            Self::Like => "a claim with `like`",
            Self::Rising | Self::Falling | Self::NotRising | Self::NotFalling | Self::Level => {
                "a claim along an axis"
            }
        }
    }
}

/// Reads a claim with `than`.
fn comparison(
    fields: &mut Fields<'_, '_>,
    kind: Kind,
    left: &Left,
    sweep: &Sweep<'_>,
) -> Option<(Vec<Draft>, Means)> {
    let notes = fields.notes();
    let than = fields.require("than");
    // The number of `than`, or its table with its own points.
    let mut times = 1.0;
    let mut side = None;
    if let Some(value) = than
        && number(value).is_none()
    {
        let mut inner = Fields::of(notes, "`than`", value)?;
        let names = other_names(&mut inner, &left.names);
        let chosen = choice(&mut inner, sweep.axes);
        if kind != Kind::Like {
            times = positive(&mut inner, "times").unwrap_or(1.0);
        }
        let gathered = match kind {
            Kind::Like => Gathered::default(),
            _ => left.gathered.with_base_of(&mut inner, sweep),
        };
        gathered.check(&inner, sweep, &chosen);
        let at = inner.at;
        inner.finish();
        side = Some(Side { names, chosen, gathered, at });
    } else if kind == Kind::Like
        && let Some(value) = than
    {
        fields.wrong("than", "a table with another distribution", value);
    }
    let relation = relation(fields, kind, times)?;
    let than = than?;
    if let Some(Side { names: Some(names), at, .. }) = &side
        && names.len() != left.names.len()
    {
        let what = format!("`than` has {} quantities, not {}", names.len(), left.names.len());
        notes.add(*at, what);
        return None;
    }
    let drafts = match &side {
        None => {
            let number = number(than)?;
            is_bounded(notes, left.count(sweep), fields.at).then_some(())?;
            left.each(sweep, |name, point, coordinates| Draft {
                coordinates,
                left: (name.clone(), point.to_vec()),
                relation,
                right: Target::Number(number),
            })
        }
        Some(side) => side.against(left, relation, sweep),
    };
    let fixed = left.fixed_words(sweep);
    let names = listed(&left.names);
    let right = match &side {
        None => None,
        Some(Side { names: others, chosen, gathered, .. }) => {
            let others = others.as_ref().map_or_else(String::new, |others| listed(others));
            let words = fixed_words(sweep.axes, chosen) + &gathered.words(sweep.axes);
            Some(if others.is_empty() {
                format!("the same{words}")
            } else {
                format!("{others}{words}")
            })
        }
    };
    let number = number(than);
    let means: Means = Box::new(move |unit| {
        let right = right.unwrap_or_else(|| words::number(number.unwrap_or_default(), unit));
        format!("{names}{fixed} {} {right}", words::relation(relation, unit))
    });
    Some((drafts, means))
}

/// The names on the right side: `quantity`, or those of the left side of another `flow`; `None` if they are the same.
fn other_names(
    than: &mut Fields<'_, '_>,
    left: &[Located<String>],
) -> Option<Vec<Located<String>>> {
    let names = than.texts("quantity").map(|names| names::expand(than.notes(), &names));
    let Some(flow) = than.text("flow") else { return names };
    if names.is_some() {
        than.notes().add(flow.at, "`quantity` and `flow` exclude each other");
    }
    let of_flow =
        |name: &Located<String>| Located::new(names::of_flow(&name.value, &flow.value), flow.at);
    Some(left.iter().map(of_flow).collect())
}

impl Side {
    /// Comparisons of every left side with every point that `than` selects.
    fn against(&self, left: &Left, relation: Relation, sweep: &Sweep<'_>) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for (index, name) in left.names.iter().enumerate() {
            let same = || Located::new(name.value.clone(), self.at);
            let other = self.names.as_ref().map_or_else(same, |names| names[index].clone());
            for point in sweep.points(&left.chosen) {
                for target in self.targets(&point, sweep) {
                    let mut coordinates = left.coordinates(sweep, name, &point);
                    coordinates.extend(self.coordinates(&target, sweep));
                    let left = (name.clone(), point.clone());
                    let right = Target::Measured(other.clone(), target, self.gathered.clone());
                    drafts.push(Draft { coordinates, left, relation, right });
                }
                if drafts.len() > MAX_COMPARISONS {
                    return drafts;
                }
            }
        }
        drafts
    }

    /// The points that are compared with `point`; on axes without a selection they are those of `point`.
    fn targets(&self, point: &[usize], sweep: &Sweep<'_>) -> Vec<Vec<usize>> {
        let chosen = self.chosen.iter().zip(point);
        let chosen = chosen.map(|(chosen, &here)| chosen.clone().or(Some(vec![here]))).collect();
        sweep.points(&chosen)
    }

    /// The coordinates that distinguish a right side from the others of the same left side.
    fn coordinates(&self, target: &[usize], sweep: &Sweep<'_>) -> Vec<Coordinate> {
        let several = |axis: usize| self.chosen[axis].as_ref().is_some_and(|all| all.len() > 1);
        let told = sweep.told(target, several).into_iter();
        told.map(|Coordinate { axis, label }| Coordinate { axis: format!("than {axis}"), label })
            .collect()
    }
}

pub(super) fn relation(fields: &mut Fields<'_, '_>, kind: Kind, times: f64) -> Option<Relation> {
    let mut share = |name, is_needed: bool| {
        if is_needed {
            fields.require(name)?;
        }
        let share = fields.number(name);
        if let Some(share) = &share
            && !(0.0..1.0).contains(&share.value)
        {
            fields.notes().add(share.at, format!("`{name}` is a share from 0 to 1"));
        }
        share.map(|share| share.value)
    };
    Some(match kind {
        Kind::AtMost => {
            Relation::AtMost { times, tolerance: share("tolerance", false).unwrap_or(0.0) }
        }
        Kind::AtLeast => {
            Relation::AtLeast { times, tolerance: share("tolerance", false).unwrap_or(0.0) }
        }
        Kind::Within => Relation::Within { times, tolerance: share("tolerance", true)? },
        Kind::Like => {
            Relation::Like { distance: share("distance", true)?, grain: positive(fields, "grain") }
        }
        Kind::Above => Relation::Above { times, by: positive(fields, "by").unwrap_or(0.0) },
        _ => Relation::Below { times, by: positive(fields, "by").unwrap_or(0.0) },
    })
}

fn positive(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<f64> {
    let number = fields.number(name)?;
    if number.value <= 0.0 {
        fields.notes().add(number.at, format!("`{name}` is above 0"));
    }
    Some(number.value)
}

impl Left {
    /// The number of left sides.
    pub(super) fn count(&self, sweep: &Sweep<'_>) -> usize {
        let points = |(axis, chosen): (&Axis, &Option<Vec<usize>>)| {
            chosen.as_ref().map_or(axis.points.len(), Vec::len)
        };
        sweep.axes.iter().zip(&self.chosen).map(points).product::<usize>() * self.names.len()
    }

    /// A draft for each name at each point.
    pub(super) fn each(
        &self,
        sweep: &Sweep<'_>,
        mut draft: impl FnMut(&Located<String>, &[usize], Vec<Coordinate>) -> Draft,
    ) -> Vec<Draft> {
        let mut drafts = Vec::new();
        for name in &self.names {
            for point in sweep.points(&self.chosen) {
                drafts.push(draft(name, &point, self.coordinates(sweep, name, &point)));
            }
        }
        drafts
    }

    /// A description of the common part of all left sides, such as ` at system "thin" (mean over
    /// loss)`.
    pub(super) fn fixed_words(&self, sweep: &Sweep<'_>) -> String {
        let chosen = self.gathered.without(self.chosen.clone());
        fixed_words(sweep.axes, &chosen) + &self.gathered.words(sweep.axes)
    }

    /// The coordinates that distinguish this left side from the others of the claim.
    fn coordinates(
        &self,
        sweep: &Sweep<'_>,
        name: &Located<String>,
        point: &[usize],
    ) -> Vec<Coordinate> {
        let is_open =
            |axis: usize| self.chosen[axis].as_ref().is_none_or(|chosen| chosen.len() > 1);
        let mut coordinates = sweep.told(point, is_open);
        if self.names.len() > 1 {
            let quantity = Coordinate { axis: "quantity".into(), label: name.value.clone() };
            coordinates.insert(0, quantity);
        }
        coordinates
    }
}

impl Draft {
    fn comparison(self, gathered: &Gathered, is_pooled: bool, sweep: &Sweep<'_>) -> Comparison {
        let (name, point) = &self.left;
        Comparison {
            point: self.coordinates,
            left: gathered.operand(sweep, &name.value, point),
            relation: self.relation,
            is_pooled,
            right: match self.right {
                Target::Number(number) => Right::Number(number),
                Target::Measured(name, point, gathered) => {
                    Right::Measured(gathered.operand(sweep, &name.value, &point))
                }
            },
        }
    }
}

/// Notes comparisons of a value with itself, and gains of a value over itself.
fn compares_others(
    notes: &Notes,
    drafts: &[Draft],
    gathered: &Gathered,
    sweep: &Sweep<'_>,
    at: usize,
) {
    let over_itself = |name: &str, point: &[usize], gathered: &Gathered| {
        if gathered.is_over_itself(name, point) {
            let place = place(&sweep.told(point, |axis| !gathered.has(axis)));
            let what = format!(
                "the gain of `{name}`{place} is one over itself, and always 0: choose other points with `at`"
            );
            notes.add(at, what);
        }
    };
    for draft in drafts {
        over_itself(&draft.left.0.value, &draft.left.1, gathered);
        if let Target::Measured(name, point, other) = &draft.right {
            over_itself(&name.value, point, other);
        }
        if let Target::Measured(name, point, other) = &draft.right
            && (&name.value, point) == (&draft.left.0.value, &draft.left.1)
            && other == gathered
        {
            let place = place(&sweep.told(point, |axis| !gathered.has(axis)));
            notes.add(at, format!("`{}`{place} is compared with itself", name.value));
        }
    }
}

/// Notes quantities that are not measured, or have another unit. Returns the common unit.
fn unit(
    notes: &Notes,
    drafts: &[Draft],
    gathered: &Gathered,
    sort: Sort,
    sweep: &Sweep<'_>,
) -> Option<Unit> {
    let mut uses: Vec<(Located<String>, Vec<Vec<usize>>)> = Vec::new();
    for draft in drafts {
        let right = match &draft.right {
            Target::Measured(name, point, gathered) => Some((name, point, gathered)),
            Target::Number(_) => None,
        };
        let left = Some((&draft.left.0, &draft.left.1, gathered));
        for (name, point, gathered) in [left, right].into_iter().flatten() {
            for (name, points) in gathered.needs(sweep, name, std::slice::from_ref(point)) {
                match uses.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => known.extend(points),
                    None => uses.push((name, points)),
                }
            }
        }
    }
    let mut first: Option<(&Located<String>, Unit)> = None;
    for (name, points) in &uses {
        let Some(unit) = sweep.unit(notes, points, sort, name) else {
            continue;
        };
        match first {
            Some((other, known)) if known != unit => {
                let what = format!("`{}` and `{}` have different units", other.value, name.value);
                notes.add(name.at, what);
            }
            _ => first = Some((name, unit)),
        }
    }
    first.map(|(_, unit)| gathered.unit(unit))
}

pub(super) fn listed(names: &[Located<String>]) -> String {
    names.iter().map(|name| name.value.as_str()).collect::<Vec<_>>().join(", ")
}

/// A description of the selected points, such as ` at system "thin"`; several of an axis as `"50
/// ms" or "100 ms"`.
fn fixed_words(axes: &[Axis], chosen: &Choice) -> String {
    let mut fixed = Vec::new();
    for (axis, chosen) in axes.iter().zip(chosen) {
        let labels = chosen.iter().flatten().map(|&index| axis.points[index].label.as_str());
        let label = labels.collect::<Vec<_>>().join("\" or \"");
        if !label.is_empty() {
            fixed.push(Coordinate { axis: axis.name.clone(), label });
        }
    }
    place(&fixed)
}
