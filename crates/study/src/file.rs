//! A study, as read from its file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rexmit_lab::scenario::Catalogue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::axis::{self, Axis};
use crate::cells::{self, Cells, PlannedCell, Rules};
use crate::claim::{self, Claim};
use crate::document::Coordinate;
use crate::fields::{Fields, Located, Value};
use crate::figure::{self, Figure};
use crate::merge;
use crate::mistake::{Mistake, Mistakes, Notes, StudyError, alternatives};
use crate::names;
use crate::sweep::Sweep;

/// Largest size of a study file in bytes: ten minutes of a captured stream with a hundred messages per second have room.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Largest number of seeds of a study.
pub const MAX_SEEDS: usize = 1000;

/// A study read from a valid file: the runs, the figures, and the claims of the source.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// The name of the study, which is that of its file.
    pub name: String,
    /// The title of the study.
    pub title: String,
    /// The figure or table that it reproduces.
    pub source: String,
    /// The method, and the differences from the source.
    pub about: String,
    /// The seeds of every cell.
    pub seeds: Vec<u64>,
    /// The quantities that are shown as costs.
    pub costs: Vec<String>,
    /// The axes of the sweep.
    pub axes: Vec<Axis>,
    /// The fields of the base scenario, one per line.
    pub setting: Vec<Coordinate>,
    /// The text of its file.
    pub text: String,
    /// The arguments of `rexmit study run` that run it again: its name, or its file as seen from the directory that the
    /// file is in, and options.
    pub arguments: String,
    pub(crate) claims: Vec<Claim>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) cells: Vec<PlannedCell>,
    pub(crate) catalogues: Vec<Catalogue>,
}

/// The entry of a study in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outline {
    /// The name of the study, which is that of its file.
    pub name: String,
    /// The title of the study.
    pub title: String,
    /// The figure or table that it reproduces.
    pub source: String,
    /// The number of runs: cells times seeds.
    pub runs: usize,
}

impl Study {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read, is no regular file or too large, or is not a valid study; the error then lists all
    /// mistakes.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        let file = path.display().to_string();
        let text = read_text(path)
            .map_err(|error| StudyError::Unreadable { file: file.clone(), error })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let study = read(&name, &file, &text, &Rules::SCENARIO)?;
        Ok(Self { arguments: argument(path), ..study })
    }

    /// Reads only the fields needed for a list of studies, and checks nothing else.
    ///
    /// # Errors
    /// If one of these fields is invalid.
    pub fn outline(name: &str, text: &str) -> Result<Outline, Mistakes> {
        let notes = Notes::default();
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            notes.add(error.span().map_or(0, |span| span.start), error.message());
        }
        let mut fields = Fields::new(&notes, "a study", root.get_ref(), root.span());
        let title = fields.required_text("title").map_or_else(String::new, |text| text.value);
        let source = fields.text("source").map_or_else(String::new, |text| text.value);
        let seeds = seeds(&mut fields).map_or(0, |seeds| seeds.len());
        let axes = axis::read(&notes, &fields.tables("axis"));
        let cells: usize = axes.iter().map(|spec| spec.sets.len()).product();
        notes.into_result(&format!("{name}.toml"), text)?;
        Ok(Outline { name: name.into(), title, source, runs: cells * seeds })
    }

    /// Reads the study `name` from the text of its file.
    ///
    /// # Errors
    /// All mistakes in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Mistakes> {
        read(name, &format!("{name}.toml"), text, &Rules::SCENARIO)
    }
}

/// The text of a study file. Only of regular files: to open a pipe may take forever, and a device may have no end.
fn read_text(path: &Path) -> io::Result<String> {
    let metadata = path.metadata()?;
    if !metadata.is_file() {
        let what = if metadata.is_dir() { "a directory" } else { "a pipe, socket or device" };
        return Err(io::Error::other(format!("it is {what}: a study is a regular file")));
    }
    let mut text = String::new();
    // A byte more than allowed, so that a file that grows is refused, too.
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_BYTES {
        let what = format!("it is too large: a study has at most {MAX_BYTES} bytes");
        return Err(io::Error::other(what));
    }
    Ok(text)
}

/// The file at `path` as an argument in its own directory, for a POSIX shell. The directory is left out: readers of a
/// report have another one, and its name may be private.
fn argument(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_file = name.ends_with(".toml") && !name.starts_with('-');
    let argument = if is_file { name.into_owned() } else { format!("./{name}") };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    match argument.chars().all(is_plain) {
        true => argument,
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

/// Reads a study; messages refer to its file as `file`.
pub(crate) fn read(name: &str, file: &str, text: &str, rules: &Rules) -> Result<Study, Mistakes> {
    if text.len() > MAX_BYTES {
        let what = format!("{} bytes: a study has at most {MAX_BYTES}", text.len());
        return Err(Mistakes {
            file: file.into(),
            list: vec![Mistake { line: 1, column: 1, what }],
        });
    }
    let notes = Notes::default();
    let (root, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        notes.add(at, error.message().lines().collect::<Vec<_>>().join("; "));
    }
    let study = if errors.is_empty() { from_table(name, &root, &notes, rules) } else { None };
    notes.into_result(file, text)?;
    let study = study.expect("every mistake was noted");
    Ok(Study { text: text.into(), ..study })
}

fn from_table(
    name: &str,
    root: &Spanned<DeTable<'_>>,
    notes: &Notes,
    rules: &Rules,
) -> Option<Study> {
    let mut fields = Fields::new(notes, "a study", root.get_ref(), root.span());
    let title = fields.required_text("title");
    let mut text = |name| fields.text(name).map_or_else(String::new, |text| text.value);
    let (source, about) = (text("source"), text("about").trim().to_owned());
    let seeds = seeds(&mut fields);
    let costs = names::expand(notes, &fields.texts("costs").unwrap_or_default());
    let base = fields.require("scenario").and_then(|value| base(&fields, value));
    let specs = axis::read(notes, &fields.tables("axis"));
    let (claims, figures) = (fields.tables("claim"), fields.tables("figure"));
    fields.finish();
    let (seeds, base) = (seeds?, base?);
    if !cells::is_bounded(notes, &specs, seeds.len()) {
        return None;
    }
    let made = cells::expand(notes, &base, &specs, rules);
    let axes: Vec<Axis> = specs.into_iter().map(|spec| spec.axis).collect();
    if axes.iter().any(|axis| axis.points.is_empty()) {
        return None;
    }
    // The measured quantities are known only if every cell is valid.
    let sweep = Sweep { axes: &axes, cells: notes.is_empty().then_some(&made) };
    check_costs(notes, &costs, &made);
    let claim = |value: &Value<'_>| claim::read(notes, value, &sweep);
    let claims = claims.into_iter().filter_map(claim).collect();
    let figure = |value: &Value<'_>| figure::read(notes, value, &sweep, &seeds);
    let figures = figures.into_iter().filter_map(figure).collect();
    let setting = merge::leaves(base.get_ref()).into_iter();
    Some(Study {
        name: name.into(),
        title: title?.value,
        source,
        about,
        seeds,
        costs: costs.into_iter().map(|cost| cost.value).collect(),
        setting: setting.map(|(axis, label)| Coordinate { axis, label }).collect(),
        axes,
        text: String::new(),
        arguments: name.into(),
        claims,
        figures,
        cells: made.cells,
        catalogues: made.catalogues,
    })
}

/// Notes costs that no cell measures.
fn check_costs(notes: &Notes, costs: &[Located<String>], made: &Cells) {
    let measured = || made.catalogues.iter().flat_map(|catalogue| &catalogue.quantities);
    for cost in costs {
        if !made.catalogues.is_empty() && measured().all(|known| known.name != cost.value) {
            let other = alternatives(&cost.value, measured().map(|known| known.name.as_str()));
            notes.add(cost.at, format!("no quantity `{}` is measured; {other}", cost.value));
        }
    }
}

fn base<'t>(fields: &Fields<'_, 't>, value: &Value<'t>) -> Option<Spanned<DeTable<'t>>> {
    let table = value.get_ref().as_table();
    if table.is_none() {
        fields.wrong("scenario", "a table", value);
    }
    table.map(|table| Spanned::new(value.span(), table.clone()))
}

/// Reads the seeds: `seeds = 10` means 1 to 10; a list is used as it is.
fn seeds(fields: &mut Fields<'_, '_>) -> Option<Vec<u64>> {
    let value = fields.require("seeds")?;
    let notes = fields.notes();
    let at = value.span().start;
    let seed = |value: &Value<'_>| {
        let seed = value.get_ref().as_integer().and_then(|seed| seed.as_str().parse::<u64>().ok());
        if seed.is_none() {
            fields.wrong("seeds", "a number of seeds, or a list of seeds", value);
        }
        seed
    };
    let seeds: Vec<u64> = match value.get_ref() {
        DeValue::Array(list) => list.iter().map(seed).collect::<Option<_>>()?,
        _ => match seed(value)? {
            count if count <= MAX_SEEDS as u64 => (1..=count).collect(),
            count => return too_many(notes, at, count),
        },
    };
    if seeds.len() > MAX_SEEDS {
        return too_many(notes, at, seeds.len() as u64);
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        notes.add(at, format!("the seed {} is listed twice", twice[0]));
    }
    if seeds.is_empty() {
        notes.add(at, "a study has at least one seed");
    }
    Some(seeds)
}

fn too_many(notes: &Notes, at: usize, count: u64) -> Option<Vec<u64>> {
    notes.add(at, format!("{count} seeds: a study has at most {MAX_SEEDS}"));
    None
}
