//! The files in `tests/golden/`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Case, Fingerprint, Kind, Subject};

/// Why a golden file cannot be used.
#[derive(Debug)]
pub enum FileError {
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
    /// A line of the file is malformed; lines count from 1.
    Line(PathBuf, usize),
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Line(path, line) => {
                let path = path.display();
                write!(f, "{path}:{line}: expected kind, seed, packets, and two hashes")
            }
        }
    }
}

impl std::error::Error for FileError {}

fn path_of(subject: Subject) -> PathBuf {
    let name = format!("{}.tsv", subject.name());
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name)
}

/// The fingerprints that are recorded for `subject`.
///
/// # Errors
/// If there is no such file, or a line in it is malformed.
pub fn read(subject: Subject) -> Result<Vec<(Case, Fingerprint)>, FileError> {
    let path = path_of(subject);
    let text = fs::read_to_string(&path).map_err(|error| FileError::Io(path.clone(), error))?;
    let lines = text.lines().zip(1..);
    lines.map(|(line, number)| parse(line).ok_or(FileError::Line(path.clone(), number))).collect()
}

fn parse(line: &str) -> Option<(Case, Fingerprint)> {
    let mut fields = line.split('\t');
    let kind = Kind::named(fields.next()?)?;
    let seed = fields.next()?.parse().ok()?;
    let packets = fields.next()?.parse().ok()?;
    let mut hash = || u64::from_str_radix(fields.next()?, 16).ok();
    let (bytes, statistics) = (hash()?, hash()?);
    let is_end = fields.next().is_none();
    is_end.then_some((Case { kind, seed }, Fingerprint { packets, bytes, statistics }))
}

/// Records the fingerprints of `subject`.
///
/// # Errors
/// If the file cannot be written.
pub fn write(subject: Subject, runs: &[(Case, Fingerprint)]) -> Result<(), FileError> {
    let mut text = String::new();
    for (Case { kind, seed }, Fingerprint { packets, bytes, statistics }) in runs {
        let kind = kind.name();
        let _ = writeln!(text, "{kind}\t{seed}\t{packets}\t{bytes:016x}\t{statistics:016x}");
    }
    let path = path_of(subject);
    fs::write(&path, text).map_err(|error| FileError::Io(path, error))
}
