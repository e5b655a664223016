//! The directory of the results of a study: `DIRECTORY/STUDY/`, with an index of all studies.
//!
//! | file | content |
//! |---|---|
//! | `study.toml` | the study's file as it was run |
//! | `runs.jsonl` | every run: a [`RunDocument`] per line, in the order of the plan |
//! | `version.json` | the program that ran it, and the length and the digest of every other file |
//! | `report.json` | the [`StudyPage`] |
//! | `report.html` | the same, for reading |
//! | `runs.parquet` | a row per run: its point, its seed, and every quantity |
//! | `messages.parquet` | a row per message, if the study keeps them |
//! | `failed/` | the document of each run that failed, for running it again alone |
//!
//! Every file is written atomically, `version.json` last. Results are read from the store one at a time.

pub mod rows;
mod sheet;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::page::StudyPage;
use crate::page::study::{self, Summary};
use crate::runner::FailedRun;
use crate::store::{EntryError, Program, Store};
use crate::studies::BUILT_IN;
use crate::{RunDocument, RunKey};

pub use self::sheet::{Field, Kind};

/// A study that was run.
#[derive(Clone, Copy, Debug)]
pub struct StudyRun<'a> {
    /// The text of its file.
    pub text: &'a str,
    /// The runs of the study.
    pub documents: &'a [RunDocument],
    /// The failed runs; other studies' runs may be included.
    pub failed: &'a BTreeMap<RunKey, FailedRun>,
    /// The page of the study.
    pub page: &'a StudyPage,
}

/// An error of writing results.
#[derive(Debug, Error)]
#[error("{} cannot be written: {source}", path.display())]
pub struct ResultsError {
    /// The file that could not be written.
    pub path: PathBuf,
    /// The reason.
    pub source: io::Error,
}

/// A result is no longer in the store.
#[derive(Debug, Error)]
#[error("the result of run {key} is lost since it was made ({why}); run the study again")]
struct Lost {
    key: RunKey,
    why: EntryError,
}

/// The directory of the documents of failed runs.
const FAILED: &str = "failed";

/// Number of digits of a key that distinguish the runs of a study.
const KEY_DIGITS: usize = 12;

/// The file with the digest of the program that made the results.
const VERSION: &str = "version.json";

/// `version.json`, as far as it is read.
#[derive(Deserialize)]
struct Written {
    program_sha256: Program,
    failed: usize,
    #[serde(default)]
    files: BTreeMap<String, Content>,
}

/// The content of a file.
#[derive(Serialize, Deserialize, PartialEq, Eq, Debug)]
struct Content {
    bytes: u64,
    sha256: String,
}

impl Content {
    fn of(path: &Path) -> io::Result<Self> {
        let mut seen = Digesting { inner: io::sink(), bytes: 0, digest: Sha256::new() };
        io::copy(&mut File::open(path)?, &mut seen)?;
        Ok(seen.into())
    }
}

/// A writer that remembers what was written.
struct Digesting<W> {
    inner: W,
    bytes: u64,
    digest: Sha256,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W> From<Digesting<W>> for Content {
    fn from(seen: Digesting<W>) -> Self {
        let sha256 = seen.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { bytes: seen.bytes, sha256 }
    }
}

type Draft = BufWriter<Digesting<File>>;

/// `version.json`.
#[derive(Serialize)]
struct Version<'a> {
    rexmit: &'a str,
    program_sha256: &'a Program,
    runs: usize,
    failed: usize,
    files: BTreeMap<&'static str, Content>,
}

/// The directory of a study's results.
#[derive(Clone, Debug)]
pub struct Results {
    folder: PathBuf,
}

impl Results {
    /// Creates the directory of the study `name` in `directory`. Called before anything runs, so
    /// that a missing permission is detected early.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn new(directory: &Path, name: &str) -> Result<Self, ResultsError> {
        let folder = directory.join(name);
        fs::create_dir_all(&folder).map_err(unwritable(&folder))?;
        Ok(Self { folder })
    }

    /// The directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The page in this directory, if `program` wrote it for this `text` and these `documents`, no run failed, and all
    /// files are unchanged; else `None`. Results of runs are not read.
    #[must_use]
    pub fn current(
        &self,
        text: &str,
        documents: &[RunDocument],
        program: &Program,
    ) -> Option<StudyPage> {
        let version = fs::read(self.folder.join(VERSION)).ok()?;
        let version: Written = serde_json::from_slice(&version).ok()?;
        let is_same = version.program_sha256 == *program && version.failed == 0;
        // Files may be lost, or be those of another process that wrote at the same time.
        let is_there = |(name, content): (&String, &Content)| {
            Content::of(&self.folder.join(name)).is_ok_and(|found| found == *content)
        };
        let is_whole = !version.files.is_empty() && version.files.iter().all(is_there);
        if !is_same || !is_whole || fs::read_to_string(self.folder.join("study.toml")).ok()? != text
        {
            return None;
        }
        let mut runs = Vec::new();
        documents.iter().try_for_each(|document| put_json(&mut runs, document)).ok()?;
        if fs::read(self.folder.join("runs.jsonl")).ok()? != runs {
            return None;
        }
        serde_json::from_slice(&fs::read(self.folder.join("report.json")).ok()?).ok()
    }

    /// Writes everything except the documents of failed runs.
    ///
    /// # Errors
    /// If a file cannot be written, or a result is no longer in `store`.
    pub fn write(&self, run: &StudyRun<'_>, store: &Store) -> Result<(), ResultsError> {
        let mut version = Version {
            rexmit: env!("CARGO_PKG_VERSION"),
            program_sha256: store.program(),
            runs: run.documents.len(),
            failed: run.documents.iter().filter(|one| run.failed.contains_key(&one.key())).count(),
            files: BTreeMap::new(),
        };
        // Written last: without it the others are not known to belong together.
        let path = self.folder.join(VERSION);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unwritable(&path)(error));
            }
            _ => {}
        }
        let mut write = |name, write: &mut dyn FnMut(&mut Draft) -> io::Result<()>| {
            let ((), content) = write_file(&self.folder.join(name), write)?;
            version.files.insert(name, content);
            Ok(())
        };
        write("study.toml", &mut |file| file.write_all(run.text.as_bytes()))?;
        write("runs.jsonl", &mut |file| {
            run.documents.iter().try_for_each(|document| put_json(file, document))
        })?;
        write("runs.parquet", &mut |file| rows::write_runs(file, run, store))?;
        let page = study::html(run.page).map_err(io::Error::from);
        let page = page.map_err(unwritable(&self.folder.join("report.html")))?;
        write("report.html", &mut |file| file.write_all(page.as_bytes()))?;
        write("report.json", &mut |file| put_json(file, run.page))?;
        let messages = self.folder.join("messages.parquet");
        let (rows, content) = write_file(&messages, |file| rows::write_messages(file, run, store))?;
        if rows == 0 {
            fs::remove_file(&messages).map_err(unwritable(&messages))?;
        } else {
            version.files.insert("messages.parquet", content);
        }
        write_file(&path, |file| put_json(file, &version)).map(drop)
    }

    /// Writes those of `documents` that are in `failed`, and removes the documents of earlier
    /// failures. Returns the path of each.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_failed<'d>(
        &self,
        documents: &'d [RunDocument],
        failed: &BTreeMap<RunKey, FailedRun>,
    ) -> Result<Vec<(PathBuf, &'d RunDocument)>, ResultsError> {
        let folder = self.folder.join(FAILED);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unwritable(&folder)(error));
            }
            _ => {}
        }
        let mut written = Vec::new();
        for document in documents {
            let key = document.key();
            if !failed.contains_key(&key) {
                continue;
            }
            fs::create_dir_all(&folder).map_err(unwritable(&folder))?;
            let path = folder.join(format!("{}.json", &key.as_str()[..KEY_DIGITS]));
            write_file(&path, |file| put_json(file, document))?;
            written.push((path, document));
        }
        Ok(written)
    }
}

/// Writes `index.html`, which links the page of every study with results in `directory`. Returns
/// its path.
///
/// # Errors
/// If it cannot be written.
pub fn write_index(directory: &Path) -> Result<PathBuf, ResultsError> {
    let folders = fs::read_dir(directory).map_err(unwritable(directory))?;
    let mut pages: Vec<StudyPage> =
        folders.flatten().filter_map(|folder| read_page(&folder.path())).collect();
    let place = |name: &str| BUILT_IN.iter().position(|study| study.name == name);
    // The built-in ones in their order, then the others by name.
    pages.sort_by_cached_key(|page| {
        let name = page.study.name.clone();
        (place(&name).unwrap_or(usize::MAX), name)
    });
    let summaries: Vec<Summary> = pages.iter().map(Summary::from).collect();
    let path = directory.join("index.html");
    let index = study::index(&summaries);
    write_file(&path, |file| file.write_all(index.as_bytes()))?;
    Ok(path)
}

/// The page in `folder`; `None` if it does not exist, or its format is unknown.
fn read_page(folder: &Path) -> Option<StudyPage> {
    let text = fs::read(folder.join("report.json")).ok()?;
    let page: StudyPage = serde_json::from_slice(&text).ok()?;
    // The index leads to the folder by the name.
    (folder.file_name()? == page.study.name.as_str()).then_some(page)
}

/// Replaces the text of the file at `path`, which has its former text if that fails.
///
/// # Errors
/// If it does not exist, or cannot be written.
pub fn replace_text(path: &Path, text: &str) -> Result<(), ResultsError> {
    // The name may be a link, which stays.
    let path = path.canonicalize().map_err(unwritable(path))?;
    write_file(&path, |file| file.write_all(text.as_bytes())).map(drop)
}

/// Writes a file atomically: to a temporary name first. A file that exists keeps its permissions. Returns the result of
/// `write`, and the size and digest of the file.
fn write_file<T>(
    path: &Path,
    write: impl FnOnce(&mut Draft) -> io::Result<T>,
) -> Result<(T, Content), ResultsError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Of a name that no other process has.
    let draft = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = File::create(&draft).and_then(|file| {
        let mut file = BufWriter::new(Digesting { inner: file, bytes: 0, digest: Sha256::new() });
        let outcome = write(&mut file)?;
        let written = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Ok(before) = fs::metadata(path) {
            fs::set_permissions(&draft, before.permissions())?;
        }
        fs::rename(&draft, path)?;
        Ok((outcome, written.into()))
    });
    if written.is_err() {
        // The first error is reported.
        let _ = fs::remove_file(&draft);
    }
    written.map_err(unwritable(path))
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> ResultsError {
    let path = path.to_owned();
    move |source| ResultsError { path, source }
}

fn put_json(file: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *file, what)?;
    file.write_all(b"\n")
}

#[cfg(test)]
mod tests;
