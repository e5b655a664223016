//! The tables of a study: a row per run, per message, or per value of a distribution.

use std::collections::BTreeSet;
use std::io::{self, Write};

use rexmit_lab::scenario::{Distribution, MessageRow, RunOutcome};

use super::sheet::{Field, Kind, Sheet};
use super::{Lost, StudyRun};
use crate::store::{EntryError, Store};
use crate::{RunDocument, RunKey};

/// The first columns of both tables: the position of a run in its study.
struct Place {
    axes: Vec<String>,
}

impl Place {
    fn of(run: &StudyRun<'_>) -> Self {
        let axes = run.page.axes.iter().map(|axis| axis.name.clone()).collect();
        Self { axes }
    }

    /// The columns of a place, followed by those of the table; an axis with the name of one of these becomes
    /// `axis.NAME`.
    fn columns(&self, own: impl IntoIterator<Item = (String, Kind)>) -> Vec<(String, Kind)> {
        let mut own: Vec<_> = own.into_iter().collect();
        own.insert(0, ("seed".into(), Kind::Integer));
        let names: BTreeSet<String> = own.iter().map(|(name, _)| name.clone()).collect();
        let axis = |name: &String| {
            let is_taken = names.contains(name);
            (if is_taken { format!("axis.{name}") } else { name.clone() }, Kind::Text)
        };
        self.axes.iter().map(axis).chain(own).collect()
    }

    fn fields<'d>(&self, document: &'d RunDocument) -> Vec<Field<'d>> {
        let label = |axis: &String| {
            let coordinate = document.point.iter().find(|coordinate| coordinate.axis == *axis);
            coordinate.map_or(Field::Nothing, |coordinate| Field::Text(&coordinate.label))
        };
        let mut fields: Vec<_> = self.axes.iter().map(label).collect();
        fields.push(Field::Integer(document.seed));
        fields
    }
}

/// The columns of the table of runs.
#[must_use]
pub fn run_columns(run: &StudyRun<'_>) -> Vec<(String, Kind)> {
    let text = ["run", "error"].map(|name| (name.into(), Kind::Text));
    let numbers = quantities(run).into_iter().map(|name| (name.into(), Kind::Number));
    Place::of(run).columns(text.into_iter().chain(numbers))
}

/// Calls `push` with one row per run: its position, its key, the reason if it failed, and every
/// quantity of the study; missing quantities are empty.
///
/// # Errors
/// Those of `push`, and of a result that is no longer in `store`.
pub fn each_run(
    run: &StudyRun<'_>,
    store: &Store,
    mut push: impl FnMut(&[Field<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let (place, quantities) = (Place::of(run), quantities(run));
    for document in run.documents {
        let key = document.key();
        let why = run.failed.get(&key).map(|failed| failed.why.to_string());
        let outcome = match why {
            None => store.outcome(&key).map_err(lost(&key))?,
            Some(_) => RunOutcome::default(),
        };
        let mut row = place.fields(document);
        row.push(Field::Text(key.as_str()));
        row.push(why.as_deref().map_or(Field::Nothing, Field::Text));
        row.extend(
            quantities.iter().map(|&name| Field::from(outcome.quantities.get(name).copied())),
        );
        push(&row)?;
    }
    Ok(())
}

fn quantities<'a>(run: &StudyRun<'a>) -> BTreeSet<&'a str> {
    run.page.quantities.iter().map(|quantity| quantity.name.as_str()).collect()
}

/// Writes the table of runs.
pub(super) fn write_runs(
    file: impl Write + Send,
    run: &StudyRun<'_>,
    store: &Store,
) -> io::Result<()> {
    let mut sheet = Sheet::new(file, &run_columns(run))?;
    each_run(run, store, |row| sheet.push(row))?;
    sheet.finish()
}

/// The error for a result that was stored but cannot be read.
fn lost(key: &RunKey) -> impl Fn(EntryError) -> io::Error {
    |why| io::Error::other(Lost { key: key.clone(), why })
}

/// The columns of the table of messages.
#[must_use]
pub fn message_columns(run: &StudyRun<'_>) -> Vec<(String, Kind)> {
    let own = [
        ("flow", Kind::Text),
        ("message", Kind::Integer),
        ("bytes", Kind::Integer),
        ("intended_s", Kind::Number),
        ("transport_ms", Kind::Number),
        ("application_ms", Kind::Number),
        ("transmissions", Kind::Integer),
    ];
    Place::of(run).columns(own.map(|(name, kind)| (name.to_owned(), kind)))
}

/// Calls `push` with one row per message of the runs that kept their messages.
///
/// # Errors
/// As [`each_run`].
pub fn each_message(
    run: &StudyRun<'_>,
    store: &Store,
    mut push: impl FnMut(&[Field<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let place = Place::of(run);
    for document in run.documents {
        let key = document.key();
        if run.failed.contains_key(&key) {
            continue;
        }
        for message in store.messages(&key).map_err(lost(&key))? {
            let message = message.map_err(lost(&key))?;
            let mut row = place.fields(document);
            row.extend(message_fields(&message));
            push(&row)?;
        }
    }
    Ok(())
}

/// Writes the table of messages. Returns the number of rows.
pub(super) fn write_messages(
    file: impl Write + Send,
    run: &StudyRun<'_>,
    store: &Store,
) -> io::Result<u64> {
    let mut sheet = Sheet::new(file, &message_columns(run))?;
    let mut rows = 0;
    each_message(run, store, |row| {
        rows += 1;
        sheet.push(row)
    })?;
    sheet.finish()?;
    Ok(rows)
}

/// The columns of the table of distributions.
#[must_use]
pub fn distribution_columns(run: &StudyRun<'_>) -> Vec<(String, Kind)> {
    let own = [("name", Kind::Text), ("value", Kind::Number), ("count", Kind::Integer)];
    Place::of(run).columns(own.map(|(name, kind)| (name.to_owned(), kind)))
}

/// Calls `push` with one row per value of the distribution `name` of each run that has it.
///
/// # Errors
/// As [`each_run`].
pub fn each_value(
    run: &StudyRun<'_>,
    store: &Store,
    name: &str,
    mut push: impl FnMut(&[Field<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let place = Place::of(run);
    for document in run.documents {
        let key = document.key();
        if run.failed.contains_key(&key) {
            continue;
        }
        let outcome = store.outcome(&key).map_err(lost(&key))?;
        let Some(Distribution { values, counts }) = outcome.distributions.get(name) else {
            continue;
        };
        for (&value, &count) in values.iter().zip(counts) {
            let mut row = place.fields(document);
            row.extend([Field::Text(name), Field::Number(value), Field::Integer(count)]);
            push(&row)?;
        }
    }
    Ok(())
}

fn message_fields(message: &MessageRow) -> [Field<'_>; 7] {
    [
        Field::Text(&message.flow),
        Field::Integer(message.message),
        Field::Integer(message.bytes.into()),
        Field::Number(message.intended_s),
        message.transport_ms.into(),
        message.application_ms.into(),
        message.transmissions.map_or(Field::Nothing, |times| Field::Integer(times.into())),
    ]
}
