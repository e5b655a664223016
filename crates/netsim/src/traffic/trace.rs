//! Traces: the messages of flows between clients and servers.

use std::path::Path;
use std::time::Duration;

use rexmit_core::Instant;

pub use super::connections::Sender;
use super::input::{self, MAX_FILE};
pub use super::input::{TraceError, name_of};
use super::{capture, frames, rows};

/// One message, or one segment of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Time of sending, relative to the flow's first packet.
    pub at: Duration,
    /// Bytes of payload; above zero.
    pub bytes: u32,
}

/// The messages of one connection, those of each side in ascending order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// The connection's number in the trace.
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

impl Trace {
    /// The size of the largest file that is read, after decompression.
    pub const MAX_FILE: u64 = MAX_FILE;

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
        Self::read(&path.display().to_string(), &name_of(path), &input::read_file(path)?)
    }

    /// Reads a trace from the contents of a file, like [`open`](Self::open); errors use the name
    /// `file`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, TraceError> {
        Self::read(file, &name_of(Path::new(file)), &input::read_source(file, bytes)?)
    }

    fn read(file: &str, name: &str, bytes: &[u8]) -> Result<Self, TraceError> {
        let trace = if frames::is_capture(bytes) {
            capture::read(file, name, bytes)?
        } else {
            rows::read(file, bytes)?
        };
        if trace.flows.is_empty() { Err(TraceError::Empty(file.to_owned())) } else { Ok(trace) }
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
