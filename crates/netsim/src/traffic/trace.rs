//! Traces: the messages of flows between clients and servers.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use rexmit_core::Instant;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{capture, rows};

/// The sender of a message: the side that opened the connection, or the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Sender {
    /// The side that opened the connection (`c2s` in files).
    #[serde(rename = "c2s")]
    Client,
    /// The side that accepted it (`s2c` in files).
    #[serde(rename = "s2c")]
    Server,
}

/// One message, or one segment of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Time of sending, relative to the flow's first packet.
    pub at: Duration,
    /// Its payload in bytes; above zero.
    pub bytes: u32,
}

/// The messages of one connection, those of each side in ascending order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// Its number in the trace.
    pub id: u32,
    /// The client's data.
    pub client: Vec<Message>,
    /// The server's data.
    pub server: Vec<Message>,
}

/// The messages of some connections of one application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The name of the traffic.
    pub name: String,
    /// The connections, in ascending order of their numbers.
    pub flows: Vec<Flow>,
}

/// Why a file cannot be read as a trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
    /// The file is larger than [`Trace::MAX_FILE`].
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
    /// The file contains no messages.
    #[error("{0} has no message: a trace has rows, a capture TCP, UDP or SCTP payload")]
    Empty(String),
}

impl Trace {
    /// The size of the largest file that is read, after decompression.
    pub const MAX_FILE: u64 = 2 << 30;

    /// Reads a file: a trace with the columns `trace,flow_id,direction,time_us,payload_bytes`, or a
    /// capture (pcap or pcapng), optionally compressed by gzip. The format is detected from the
    /// first bytes.
    ///
    /// In a capture, only new payload counts: no retransmissions, keep-alives or pure
    /// acknowledgements.
    ///
    /// # Errors
    /// [`TraceError`], which names the file and the position in it.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        let unreadable = |source| TraceError::Unreadable { file: file.clone(), source };
        Self::read(&file, &name_of(path), File::open(path).map_err(unreadable)?)
    }

    /// Reads a trace from the contents of a file, like [`open`](Self::open); errors use the name
    /// `file`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, TraceError> {
        Self::read(file, &name_of(Path::new(file)), bytes)
    }

    fn read(file: &str, name: &str, source: impl Read) -> Result<Self, TraceError> {
        let file = file.to_owned();
        let bytes = match decompressed(source) {
            Ok(bytes) => bytes,
            Err(source) => return Err(TraceError::Unreadable { file, source }),
        };
        if bytes.len() as u64 > Self::MAX_FILE {
            return Err(TraceError::TooLarge(file));
        }
        let trace = if capture::is_capture(&bytes) {
            capture::read(&file, name, &bytes)?
        } else {
            rows::read(&file, &bytes)?
        };
        if trace.flows.is_empty() { Err(TraceError::Empty(file)) } else { Ok(trace) }
    }
}

impl Flow {
    /// The messages of one side.
    #[must_use]
    pub fn messages(&self, sender: Sender) -> &[Message] {
        match sender {
            Sender::Client => &self.client,
            Sender::Server => &self.server,
        }
    }

    /// The messages of one side, at the times of a flow that begins at `start`.
    pub fn replay(&self, sender: Sender, start: Instant) -> Replay<'_> {
        Replay { start, messages: self.messages(sender).iter() }
    }

    /// As [`replay`](Self::replay), but consumes the trace.
    #[must_use]
    pub fn into_replay(self, sender: Sender, start: Instant) -> OwnedReplay {
        let messages = match sender {
            Sender::Client => self.client,
            Sender::Server => self.server,
        };
        OwnedReplay { start, messages: messages.into_iter() }
    }

    pub(super) fn messages_mut(&mut self, sender: Sender) -> &mut Vec<Message> {
        match sender {
            Sender::Client => &mut self.client,
            Sender::Server => &mut self.server,
        }
    }
}

/// The messages of one side of a flow with the times at which to send them.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    start: Instant,
    messages: std::slice::Iter<'a, Message>,
}

impl Iterator for Replay<'_> {
    /// Time, and size in bytes.
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.messages.next()?;
        Some((self.start + message.at, message.bytes as usize))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.messages.size_hint()
    }
}

impl ExactSizeIterator for Replay<'_> {}

/// A [`Replay`] that owns the messages.
#[derive(Clone, Debug)]
pub struct OwnedReplay {
    start: Instant,
    messages: std::vec::IntoIter<Message>,
}

impl Iterator for OwnedReplay {
    /// Time, and size in bytes.
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.messages.next()?;
        Some((self.start + message.at, message.bytes as usize))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.messages.size_hint()
    }
}

impl ExactSizeIterator for OwnedReplay {}

/// The decompressed bytes of `source`; at most one more than allowed.
fn decompressed(mut source: impl Read) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    (&mut source).take(2).read_to_end(&mut magic)?;
    let whole = magic.as_slice().chain(source);
    let mut bytes = Vec::new();
    if magic == [0x1F, 0x8B] {
        MultiGzDecoder::new(whole).take(Trace::MAX_FILE + 1).read_to_end(&mut bytes)?;
    } else {
        whole.take(Trace::MAX_FILE + 1).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The name of a file without directory and extensions: `crossfire` for `traces/crossfire.pcap.gz`.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}
