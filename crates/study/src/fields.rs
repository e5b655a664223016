//! Reads the tables of a study file. Values keep their place in the text, and all mistakes are
//! noted.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::mistake::{Notes, alternatives};

/// A value of the file, with its place.
pub(crate) type Value<'t> = Spanned<DeValue<'t>>;

/// A value with its position: the byte of the text at which it begins.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: usize,
}

impl<T> Located<T> {
    pub(crate) fn new(value: T, at: usize) -> Self {
        Self { value, at }
    }
}

/// A table whose fields are read by name. Fields that were not read are reported as unknown by
/// [`finish`](Self::finish).
pub(crate) struct Fields<'a, 't> {
    notes: &'a Notes,
    /// The kind of the table, for messages, such as `a claim`.
    what: &'static str,
    table: &'a DeTable<'t>,
    /// The position of the table in the text.
    pub(crate) at: usize,
    taken: Vec<&'static str>,
}

impl<'a, 't> Fields<'a, 't> {
    pub(crate) fn new(
        notes: &'a Notes,
        what: &'static str,
        table: &'a DeTable<'t>,
        span: Range<usize>,
    ) -> Self {
        Self { notes, what, table, at: span.start, taken: Vec::new() }
    }

    /// The fields of `value`, if it is a table.
    pub(crate) fn of(notes: &'a Notes, what: &'static str, value: &'a Value<'t>) -> Option<Self> {
        let DeValue::Table(table) = value.get_ref() else {
            notes.add(value.span().start, format!("{what} is a table, not {}", kind(value)));
            return None;
        };
        Some(Self::new(notes, what, table, value.span()))
    }

    /// Changes the kind of the table in messages, and allows the further fields `names`.
    pub(crate) fn turn_into(&mut self, what: &'static str, names: &[&'static str]) {
        self.what = what;
        self.taken.extend(names);
    }

    pub(crate) fn notes(&self) -> &'a Notes {
        self.notes
    }

    /// The field, if present.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<&'a Value<'t>> {
        self.taken.push(name);
        self.table.get(name)
    }

    /// As [`take`](Self::take), but notes a mistake if the field is missing.
    pub(crate) fn require(&mut self, name: &'static str) -> Option<&'a Value<'t>> {
        let value = self.take(name);
        if value.is_none() {
            self.notes.add(self.at, format!("{} needs `{name}`", self.what));
        }
        value
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<Located<String>> {
        let value = self.take(name)?;
        text(self.notes, name, value)
    }

    pub(crate) fn required_text(&mut self, name: &'static str) -> Option<Located<String>> {
        let value = self.require(name)?;
        text(self.notes, name, value)
    }

    pub(crate) fn number(&mut self, name: &'static str) -> Option<Located<f64>> {
        let value = self.take(name)?;
        let number = number(value);
        if number.is_none() {
            self.wrong(name, "a finite number", value);
        }
        number.map(|number| Located::new(number, value.span().start))
    }

    /// Reads a keyword from a list of allowed ones.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<Located<T>> {
        let word = self.required_text(name)?;
        let found = words.iter().find(|(known, _)| *known == word.value);
        if found.is_none() {
            let other = alternatives(&word.value, words.iter().map(|(known, _)| *known));
            self.notes.add(word.at, format!("`{name}` cannot be `{}`; {other}", word.value));
        }
        found.map(|(_, value)| Located::new(*value, word.at))
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.take(name)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            self.wrong(name, "`true` or `false`", value);
        }
        flag
    }

    /// Reads a string or a list of strings.
    pub(crate) fn texts(&mut self, name: &'static str) -> Option<Vec<Located<String>>> {
        let value = self.take(name)?;
        if let DeValue::String(_) = value.get_ref() {
            return Some(vec![text(self.notes, name, value)?]);
        }
        let items = self.list(name, value, "a string or a list of them")?;
        Some(items.iter().filter_map(|item| text(self.notes, name, item)).collect())
    }

    /// Reads the tables `[[name]]`; empty if the file has no such table.
    pub(crate) fn tables(&mut self, name: &'static str) -> Vec<&'a Value<'t>> {
        let Some(value) = self.take(name) else {
            return Vec::new();
        };
        let items = self.list(name, value, "a list of tables, `[[…]]`");
        items.unwrap_or_default().iter().collect()
    }

    /// The items of the list `value`; `expected` describes it in messages.
    pub(crate) fn list(
        &self,
        name: &str,
        value: &'a Value<'t>,
        expected: &str,
    ) -> Option<&'a [Value<'t>]> {
        let list = value.get_ref().as_array();
        if list.is_none() {
            self.wrong(name, expected, value);
        }
        list.map(|list| &list[..])
    }

    /// Notes that `value` is not what was `expected`.
    pub(crate) fn wrong(&self, name: &str, expected: &str, value: &Value<'_>) {
        wrong(self.notes, name, expected, value);
    }

    /// Notes unknown fields.
    pub(crate) fn finish(&self) {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !self.taken.contains(&name) {
                let other = alternatives(name, self.taken.iter().copied());
                let what = format!("{} has no `{name}`; {other}", self.what);
                self.notes.add(key.span().start, what);
            }
        }
    }
}

/// Reads a finite number.
pub(crate) fn number(value: &Value<'_>) -> Option<f64> {
    let number = match value.get_ref() {
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok()? as f64
        }
        DeValue::Float(number) => number.as_str().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Reads a string of at least one character.
pub(crate) fn text(notes: &Notes, name: &str, value: &Value<'_>) -> Option<Located<String>> {
    let text = value.get_ref().as_str().filter(|text| !text.trim().is_empty());
    if text.is_none() {
        wrong(notes, name, "a string that is not empty", value);
    }
    text.map(|text| Located::new(text.into(), value.span().start))
}

fn wrong(notes: &Notes, name: &str, expected: &str, value: &Value<'_>) {
    notes.add(value.span().start, format!("`{name}` is {expected}, not {}", kind(value)));
}

/// The type of a value with its article, for messages.
fn kind(value: &Value<'_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(text) if text.trim().is_empty() => "an empty one",
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "this integer",
        DeValue::Float(_) => "this number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
