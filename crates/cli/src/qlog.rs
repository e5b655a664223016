//! The files of `--qlog`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rexmit::clock::now;
use rexmit::{Endpoint, Instant};
use rexmit_qlog::{About, EXTENSION, Log, MakeLog, VantagePoint};

use crate::failure::{Failure, Kind, Outcome};

/// Files that one run writes at most: each is open until the run ends.
const MAX_FILES: usize = 64;
/// Characters of a file's name at most.
const MAX_NAME: usize = 100;

/// A directory with a file for each endpoint that is traced.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    names: BTreeSet<String>,
    logs: Vec<Log>,
    refused: usize,
    failure: Option<String>,
}

impl Directory {
    /// Creates the directory, unless it exists. Files of an earlier run are refused: they would be overwritten or taken for
    /// those of this run.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let of_io = |error| unwritable(path, &error);
        fs::create_dir_all(path).map_err(of_io)?;
        let mut entries = fs::read_dir(path).map_err(of_io)?.flatten();
        if let Some(earlier) = entries.find(|it| it.path().extension() == Some(EXTENSION.as_ref()))
        {
            let message = format!(
                "{} is of an earlier run: choose another directory with --qlog, or remove its qlog files",
                earlier.path().display()
            );
            return Err(Failure::new(Kind::File, message));
        }
        Ok(Self { path: path.to_owned(), state: Mutex::default() })
    }

    /// Writes what is buffered, and reports the files that are not complete. A write error was reported when it occurred.
    pub(crate) fn finish(&self) -> Outcome {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { logs, refused, failure, .. } = &mut *state;
        let failed = logs.iter().filter(|log| log.finish().is_err()).count();
        if *refused > 0 {
            eprintln!(
                "--qlog: there are files of the first {MAX_FILES} endpoints; {refused} others have none"
            );
        }
        match failure.take() {
            Some(failure) => Err(Failure::new(Kind::File, failure)),
            None if failed > 0 => {
                let path = self.path.display();
                Err(Failure::new(Kind::File, format!("{failed} files in {path} are not complete")))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How many files there are.
    pub(crate) fn files(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).logs.len()
    }
}

impl MakeLog for Directory {
    fn log(&self, name: &str, about: &About) -> Option<Log> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.logs.len() == MAX_FILES {
            state.refused += 1;
            return None;
        }
        let name = unused(&mut state.names, &plain(name));
        let path = self.path.join(format!("{name}.{EXTENSION}"));
        match open(&path, about) {
            Ok(log) => {
                state.logs.push(log.clone());
                Some(log)
            }
            Err(error) => {
                let message = format!("{}: {error}; choose another with --qlog", path.display());
                state.failure.get_or_insert(message);
                None
            }
        }
    }
}

/// The log of one file, for a command with one endpoint. `now` is the driver's time.
pub(crate) fn file(path: &Path, about: About, now: Instant) -> Result<Log, Failure> {
    open(path, &from_now(about, now)).map_err(|error| unwritable(path, &error))
}

/// `about`, with `now` as the file's time 0, and the wall-clock time of it.
pub(crate) fn from_now(about: About, now: Instant) -> About {
    about.begin(now, unix_millis())
}

/// Creates the file `path`, before there is an endpoint to trace.
pub(crate) fn create(path: &Path) -> Outcome {
    File::create(path).map(drop).map_err(|error| unwritable(path, &error))
}

/// The trace of one endpoint, in a file.
#[derive(Debug)]
pub(crate) struct EndpointLog {
    log: Log,
    path: PathBuf,
    endpoint: Endpoint,
}

/// Has `endpoint` traced to the file `path`, if there is one. Nothing is traced of a handshake that is over.
pub(crate) fn of_endpoint(
    path: Option<&Path>,
    endpoint: &Endpoint,
    vantage_point: VantagePoint,
) -> Result<Option<EndpointLog>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let about = About::new(format!("the endpoint at {}", endpoint.local_addr()));
    let log = file(path, about.vantage_point(vantage_point), now())?;
    endpoint.set_trace(Some(log.sink()));
    Ok(Some(EndpointLog { log, path: path.to_owned(), endpoint: endpoint.clone() }))
}

impl EndpointLog {
    /// Ends the trace and writes what is buffered.
    pub(crate) fn finish(self) -> Outcome {
        self.endpoint.set_trace(None);
        self.log.finish().map_err(|error| unwritable(&self.path, &error))
    }
}

fn open(path: &Path, about: &About) -> std::io::Result<Log> {
    let log = Log::new(File::create(path)?, about);
    let shown = path.display().to_string();
    log.on_failure(move |error| eprintln!("{shown}: {error}: the rest is not written"));
    Ok(log)
}

#[expect(clippy::disallowed_methods, reason = "a qlog file states when it began")]
fn unix_millis() -> f64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_millis() as f64)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::new(
        Kind::File,
        format!("{path} cannot be written: {error}; choose another with --qlog"),
    )
}

/// `name` as part of a file's name: it may come from an untrusted file.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let name: String =
        name.chars().take(MAX_NAME).map(|c| if is_plain(c) { c } else { '-' }).collect();
    if name.is_empty() { "endpoint".into() } else { name }
}

/// `name`, with a number if it was used before.
fn unused(names: &mut BTreeSet<String>, name: &str) -> String {
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut all = std::iter::once(name.to_owned()).chain(numbered);
    let name = all.find(|name| !names.contains(name)).unwrap_or_else(|| name.to_owned());
    names.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_stays_in_the_directory() {
        for name in ["../../etc/passwd", "/etc/passwd", "..", "a\0b", "\u{1b}[31m", ""] {
            let plain = plain(name);
            assert!(!plain.contains(['/', '.', '\0', '\u{1b}']) && !plain.is_empty(), "{plain}");
        }
        assert_eq!(plain(&"x".repeat(1000)).len(), MAX_NAME);
    }

    #[test]
    fn two_endpoints_of_one_name_have_two_files() {
        let mut names = BTreeSet::new();
        let given: Vec<_> = (0..3).map(|_| unused(&mut names, "a")).collect();
        assert_eq!(given, ["a", "a-2", "a-3"]);
    }
}
