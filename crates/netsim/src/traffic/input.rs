//! Files of traffic as bytes, and why they cannot be read.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use thiserror::Error;

/// The size of the largest file that is read, after decompression.
pub(super) const MAX_FILE: u64 = 2 << 30;

/// Why a file cannot be read as a trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The file is larger than [`Trace::MAX_FILE`](super::trace::Trace::MAX_FILE).
    #[error("{0} is larger than 2 GiB: cut out the part of interest first")]
    TooLarge(String),
    /// A line is invalid.
    #[error("{file}, line {line}: {problem}")]
    BadLine {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The mistake.
        problem: String,
    },
    /// A capture is truncated or invalid within a packet.
    #[error("{file}, packet {packet}: {problem}")]
    BadCapture {
        /// The file.
        file: String,
        /// The packet, from 1.
        packet: u64,
        /// The mistake.
        problem: String,
    },
    /// Packets are needed, and the file is no capture.
    #[error("{0} is no capture: only pcap and pcapng files have packets")]
    NotACapture(String),
    /// The file contains no messages.
    #[error("{0} has no message: a trace has rows, a capture TCP, UDP or SCTP payload")]
    Empty(String),
}

/// The bytes of a file, decompressed.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, TraceError> {
    let file = path.display().to_string();
    match File::open(path) {
        Ok(source) => read_source(&file, source),
        Err(source) => Err(TraceError::Unreadable { file, source }),
    }
}

/// As [`read_file`], from `source`; errors use the name `file`.
pub(super) fn read_source(file: &str, source: impl Read) -> Result<Vec<u8>, TraceError> {
    let file = file.to_owned();
    match decompressed(source) {
        Err(source) => Err(TraceError::Unreadable { file, source }),
        Ok(bytes) if bytes.len() as u64 > MAX_FILE => Err(TraceError::TooLarge(file)),
        Ok(bytes) => Ok(bytes),
    }
}

/// The decompressed bytes of `source`; at most one more than allowed.
fn decompressed(mut source: impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    (&mut source).take(2).read_to_end(&mut magic)?;
    let whole = magic.as_slice().chain(source);
    let mut bytes = Vec::new();
    if magic == [0x1F, 0x8B] {
        MultiGzDecoder::new(whole).take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    } else {
        whole.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The name of a file without directory and extensions: `crossfire` for `traces/crossfire.pcap.gz`.
#[must_use]
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}
