//! Merges tables of a study file into scenarios, and reports each mistake at its line.

use rexmit_core::settings::explained;
use rexmit_lab::scenario::{Problem, Scenario};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use serde::Deserialize as _;

use crate::mistake::Notes;
pub(crate) use rexmit_core::settings::merge;

/// The placeholder for a point's value in the fields that it sets.
pub(crate) const GAP: &str = "{}";

/// `table` with `gap` replaced by the text of `value` in every string; a string that consists of
/// `gap` only becomes `value`.
pub(crate) fn fill<'t>(table: &DeTable<'t>, gap: &str, value: &DeValue<'t>) -> DeTable<'t> {
    let filled =
        |(key, inner): (&Spanned<_>, &Spanned<_>)| (key.clone(), fill_value(inner, gap, value));
    table.iter().map(filled).collect()
}

fn fill_value<'t>(
    inner: &Spanned<DeValue<'t>>,
    gap: &str,
    value: &DeValue<'t>,
) -> Spanned<DeValue<'t>> {
    let filled = match inner.get_ref() {
        DeValue::String(text) if text == gap => value.clone(),
        DeValue::String(text) => DeValue::String(text.replace(gap, &words(value)).into()),
        DeValue::Table(table) => DeValue::Table(fill(table, gap, value)),
        DeValue::Array(list) => {
            DeValue::Array(list.iter().map(|item| fill_value(item, gap, value)).collect())
        }
        other => other.clone(),
    };
    Spanned::new(inner.span(), filled)
}

/// Whether `gap` occurs in `table`.
pub(crate) fn has_gap(table: &DeTable<'_>, gap: &str) -> bool {
    fn in_value(value: &Spanned<DeValue<'_>>, gap: &str) -> bool {
        match value.get_ref() {
            DeValue::String(text) => text.contains(gap),
            DeValue::Table(table) => has_gap(table, gap),
            DeValue::Array(list) => list.iter().any(|item| in_value(item, gap)),
            _ => false,
        }
    }
    table.values().any(|value| in_value(value, gap))
}

/// The scenario that `table` describes; `None` after noting all mistakes.
pub(crate) fn scenario(
    notes: &Notes,
    mut table: Spanned<DeTable<'_>>,
    validate: impl Fn(&Scenario) -> Result<(), Vec<Problem>>,
) -> Option<Scenario> {
    let mut is_whole = true;
    let scenario = loop {
        let value = Spanned::new(table.span(), DeValue::Table(table.get_ref().clone()));
        match Scenario::deserialize(ValueDeserializer::from(value)) {
            Ok(scenario) => break scenario,
            Err(error) => {
                // Parsing stops at the first mistake; it is removed, and parsing is repeated for the next,
                // which may be that the field is needed.
                let is_missing = error.message().starts_with("missing field");
                let at = error.span().map_or(table.span().start, |span| span.start);
                if is_whole || !is_missing {
                    notes.add(at, explained(error.message()));
                }
                is_whole = false;
                if is_missing || !remove_at(table.get_mut(), at) {
                    return None;
                }
            }
        }
    };
    let problems = validate(&scenario).err().unwrap_or_default();
    for Problem { path, what } in &problems {
        notes.add(place(&table, path), format!("{path}: {what}"));
    }
    (is_whole && problems.is_empty()).then_some(scenario)
}

/// Removes the entry whose key or value begins at byte `at`; returns whether there was one.
fn remove_at(table: &mut DeTable<'_>, at: usize) -> bool {
    let found =
        table.iter().find(|(key, value)| key.span().start == at || value.span().start == at);
    if let Some((key, _)) = found {
        let key = key.clone();
        return table.remove(key.get_ref().as_ref()).is_some();
    }
    let below = table.iter_mut().filter_map(|(_, value)| match value.get_mut() {
        DeValue::Table(inner) => Some(inner),
        _ => None,
    });
    below.into_iter().any(|inner| remove_at(inner, at))
}

/// The position of the field `path`, or else of the innermost table around it.
fn place(table: &Spanned<DeTable<'_>>, path: &str) -> usize {
    let mut at = table.span().start;
    let mut inner = table.get_ref();
    for name in path.split('.') {
        let Some((key, value)) = inner.get_key_value(name) else {
            return at;
        };
        at = key.span().start;
        let DeValue::Table(next) = value.get_ref() else {
            return at;
        };
        inner = next;
    }
    at
}

/// Every value in `table` that is not a table: its dotted name and its text.
pub(crate) fn leaves(table: &DeTable<'_>) -> Vec<(String, String)> {
    fn below(prefix: &str, table: &DeTable<'_>, into: &mut Vec<(String, String)>) {
        for (key, value) in table.iter() {
            let name = format!("{prefix}{}", key.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) => below(&format!("{name}."), inner, into),
                other => into.push((name, words(other))),
            }
        }
    }
    let mut leaves = Vec::new();
    below("", table, &mut leaves);
    leaves
}

/// A value as text, without quotes.
pub(crate) fn words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(list) => {
            list.iter().map(|item| words(item.get_ref())).collect::<Vec<_>>().join(", ")
        }
        DeValue::Table(table) => {
            let leaves = leaves(table).into_iter().map(|(name, value)| format!("{name} {value}"));
            leaves.collect::<Vec<_>>().join(", ")
        }
    }
}
