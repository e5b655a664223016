//! Traces: the messages of some flows between clients and servers.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use rexmit_core::Instant;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{capture, rows};

/// Who sent a message: the side that connected, or the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Sender {
    /// The side that connected (`c2s` in files).
    #[serde(rename = "c2s")]
    Client,
    /// The side that was connected to (`s2c` in files).
    #[serde(rename = "s2c")]
    Server,
}

/// One message, or one segment of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// When it was sent, from the flow's first packet on.
    pub at: Duration,
    /// Its payload in bytes; above zero.
    pub bytes: u32,
}

/// The messages of one connection, each side's in the order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// Its number in the trace.
    pub id: u32,
    /// The client's data.
    pub client: Vec<Message>,
    /// The server's data.
    pub server: Vec<Message>,
}

/// What some connections of one application sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// The traffic in the trace.
    pub name: String,
    /// The connections, by rising number.
    pub flows: Vec<Flow>,
}

/// Why a file is not read as a trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why not.
        source: io::Error,
    },
    /// The file is larger than [`Trace::MAX_FILE`].
    #[error("{0} is larger than 2 GiB: cut out the part of interest first")]
    TooLarge(String),
    /// A line is not as it should be.
    #[error("{file}, line {line}: {problem}")]
    BadLine {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The mistake.
        problem: String,
    },
    /// A capture ends or goes wrong within a packet.
    #[error("{file}, packet {packet}: {problem}")]
    BadCapture {
        /// The file.
        file: String,
        /// The packet, from 1.
        packet: u64,
        /// The mistake.
        problem: String,
    },
    /// Nothing in the file is a message.
    #[error("{0} has no message: a trace has rows, a capture TCP, UDP or SCTP payload")]
    Empty(String),
}

impl Trace {
    /// The largest file that is read, after decompression.
    pub const MAX_FILE: u64 = 2 << 30;

    /// Reads a file: a trace with the columns `trace,flow_id,direction,time_us,payload_bytes`, or a
    /// capture (pcap or pcapng), either of them compressed by gzip or not. What it is shows in its
    /// first bytes.
    ///
    /// Of a capture, the payload that is seen for the first time counts: no retransmissions,
    /// keep-alives or pure acknowledgements.
    ///
    /// # Errors
    /// [`TraceError`], which names the file and the place in it.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let file = path.display().to_string();
        let unreadable = |source| TraceError::Unreadable { file: file.clone(), source };
        Self::read(&file, &name_of(path), File::open(path).map_err(unreadable)?)
    }

    /// Reads what [`open`](Self::open) would read in a file of these bytes; errors call it `file`.
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
    /// What one side sent.
    #[must_use]
    pub fn messages(&self, sender: Sender) -> &[Message] {
        match sender {
            Sender::Client => &self.client,
            Sender::Server => &self.server,
        }
    }

    /// What one side sent, at the times of a flow that begins at `start`.
    pub fn replay(&self, sender: Sender, start: Instant) -> Replay<'_> {
        Replay { start, messages: self.messages(sender).iter() }
    }

    /// As [`replay`](Self::replay), for a replay that outlives the trace.
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
    /// When, and how many bytes.
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

/// A [`Replay`] that has the messages.
#[derive(Clone, Debug)]
pub struct OwnedReplay {
    start: Instant,
    messages: std::vec::IntoIter<Message>,
}

impl Iterator for OwnedReplay {
    /// When, and how many bytes.
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

/// The bytes of `source`, at most one more than are allowed.
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

/// `crossfire` of `traces/crossfire.pcap.gz`.
fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.split('.').next().unwrap_or_default().to_owned()
}
