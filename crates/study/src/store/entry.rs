//! The file of one result: lines of JSON, compressed by gzip, whose checksum detects damage.
//!
//! The first line identifies the run, the second one is the [`RunOutcome`] without its messages,
//! and each of the others is a message.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use rexmit_lab::scenario::{MessageRow, RunOutcome};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Program;
use crate::RunKey;

/// The version of the file format.
const FORMAT: u32 = 1;

/// Largest length of the first line in bytes.
const MAX_HEAD_BYTES: u64 = 1 << 10;

/// The identity of the run.
#[derive(PartialEq, Serialize, Deserialize)]
struct Head {
    format: u32,
    program: Program,
    key: RunKey,
}

/// Why there is no valid result.
#[derive(Debug, Error)]
pub enum EntryError {
    /// Cannot be constructed.
    #[error("there is no result")]
    Missing,
    /// The file cannot be read completely, or its checksum is wrong.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file is the result of another run, or of another format.
    #[error("it does not match its name or format: {0}")]
    Foreign(String),
}

impl From<io::Error> for EntryError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Unreadable(error),
        }
    }
}

impl From<serde_json::Error> for EntryError {
    fn from(error: serde_json::Error) -> Self {
        Self::Foreign(error.to_string())
    }
}

/// Writes the outcome that `program` computed for `key`.
pub(super) fn write(
    file: impl Write,
    key: &RunKey,
    program: &Program,
    mut outcome: RunOutcome,
) -> io::Result<()> {
    let messages = std::mem::take(&mut outcome.messages);
    let head = Head { format: FORMAT, program: program.clone(), key: key.clone() };
    let mut lines = BufWriter::new(GzEncoder::new(file, Compression::fast()));
    write_line(&mut lines, &head)?;
    write_line(&mut lines, &outcome)?;
    for message in &messages {
        write_line(&mut lines, message)?;
    }
    let encoder = lines.into_inner().map_err(io::IntoInnerError::into_error)?;
    encoder.finish()?.flush()
}

fn write_line(lines: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *lines, what)?;
    lines.write_all(b"\n")
}

/// A file whose first line has been read and is valid.
pub(super) struct Entry<R> {
    lines: BufReader<GzDecoder<R>>,
    line: Vec<u8>,
}

impl Entry<BufReader<File>> {
    pub(super) fn open(path: &Path, key: &RunKey, program: &Program) -> Result<Self, EntryError> {
        Self::of(BufReader::new(File::open(path)?), key, program)
    }
}

impl<R: BufRead> Entry<R> {
    pub(super) fn of(file: R, key: &RunKey, program: &Program) -> Result<Self, EntryError> {
        let mut lines = BufReader::new(GzDecoder::new(file));
        let mut line = Vec::new();
        lines.by_ref().take(MAX_HEAD_BYTES).read_until(b'\n', &mut line)?;
        let head: Head = serde_json::from_slice(&line)?;
        if head != (Head { format: FORMAT, program: program.clone(), key: key.clone() }) {
            return Err(EntryError::Foreign(format!("it is the result of run {}", head.key)));
        }
        Ok(Self { lines, line })
    }

    /// Reads the rest of the file, and verifies the checksum.
    pub(super) fn check(mut self) -> Result<(), EntryError> {
        Ok(io::copy(&mut self.lines, &mut io::sink()).map(drop)?)
    }

    /// The measurements, without the messages.
    pub(super) fn outcome(mut self) -> Result<RunOutcome, EntryError> {
        self.next_line()?;
        let outcome = serde_json::from_slice(&self.line)?;
        self.check()?;
        Ok(outcome)
    }

    /// Reads the next line; returns whether there was one.
    fn next_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        Ok(self.lines.read_until(b'\n', &mut self.line)? > 0)
    }
}

impl Entry<BufReader<File>> {
    /// The messages.
    pub(super) fn messages(mut self) -> Result<MessageRows, EntryError> {
        self.next_line()?;
        Ok(MessageRows(self))
    }
}

/// The messages of a run, read one at a time.
pub struct MessageRows(Entry<BufReader<File>>);

impl Iterator for MessageRows {
    type Item = Result<MessageRow, EntryError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.0.next_line() {
            Ok(true) => Some(serde_json::from_slice(&self.0.line).map_err(EntryError::from)),
            Ok(false) => None,
            Err(error) => Some(Err(error.into())),
        }
    }
}
