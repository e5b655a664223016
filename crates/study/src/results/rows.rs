//! The tables of a study: a row per run, and a row per message.

use std::collections::BTreeSet;
use std::io::{self, Write};

use rexmit_lab::scenario::{MessageRow, RunOutcome};

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

    /// Its columns, followed by those of the table; an axis with the name of one of these becomes
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

/// Writes one row per run: its position, its key, the reason if it failed, and every quantity of
/// the study; missing quantities are empty.
pub(super) fn write_runs(
    file: impl Write + Send,
    run: &StudyRun<'_>,
    store: &Store,
) -> io::Result<()> {
    let place = Place::of(run);
    let quantities: BTreeSet<&str> =
        run.page.quantities.iter().map(|quantity| quantity.name.as_str()).collect();
    let text = ["run", "error"].map(|name| (name.into(), Kind::Text));
    let numbers = quantities.iter().map(|name| ((*name).into(), Kind::Number));
    let mut sheet = Sheet::new(file, &place.columns(text.into_iter().chain(numbers)))?;
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
        sheet.push(&row)?;
    }
    sheet.finish()
}

/// The error for a result that was stored but cannot be read.
fn lost(key: &RunKey) -> impl Fn(EntryError) -> io::Error {
    |why| io::Error::other(Lost { key: key.clone(), why })
}

/// Writes one row per message of the runs that kept their messages. Returns the number of rows.
pub(super) fn write_messages(
    file: impl Write + Send,
    run: &StudyRun<'_>,
    store: &Store,
) -> io::Result<u64> {
    let place = Place::of(run);
    let own = [
        ("flow", Kind::Text),
        ("message", Kind::Integer),
        ("bytes", Kind::Integer),
        ("intended_s", Kind::Number),
        ("transport_ms", Kind::Number),
        ("application_ms", Kind::Number),
        ("transmissions", Kind::Integer),
    ];
    let own = own.map(|(name, kind)| (name.to_owned(), kind));
    let mut sheet = Sheet::new(file, &place.columns(own))?;
    let mut rows = 0;
    for document in run.documents {
        let key = document.key();
        if run.failed.contains_key(&key) {
            continue;
        }
        for message in store.messages(&key).map_err(lost(&key))? {
            let message = message.map_err(lost(&key))?;
            let mut row = place.fields(document);
            row.extend(message_fields(&message));
            sheet.push(&row)?;
            rows += 1;
        }
    }
    sheet.finish()?;
    Ok(rows)
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
