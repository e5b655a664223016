//! Reading files that [`Log`](crate::Log) wrote. They come from anywhere, so everything is checked and bounded.

use std::io::{self, BufRead};
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun, TraceEvent};
use serde::Deserialize;
use serde::de::IgnoredAny;
use thiserror::Error;

use crate::{EVENT_SCHEMA, QLOG_VERSION, RECORD_SEPARATOR};

/// The longest record that is read, in bytes. A log has longer ones only of acknowledgements with tens of thousands of gaps.
pub const MAX_RECORD_BYTES: usize = 1024 * 1024;
/// The latest time of an event, in milliseconds: a year.
const MAX_MILLIS: f64 = 366.0 * 86_400_000.0;

/// An event of a file.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Logged {
    /// The time of the event; the log began at [`Instant::ZERO`].
    pub at: Instant,
    /// The association, by its number in the endpoint.
    pub association: u32,
    /// The event.
    pub event: TraceEvent,
}

/// Why a file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// An error of the system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is of another kind.
    #[error("this is no qlog file in the form of a JSON text sequence (.{})", crate::EXTENSION)]
    NotQlog,
    /// The file is of another version of qlog.
    #[error("this is qlog version {0:?}; rexmit reads {QLOG_VERSION:?}")]
    Version(String),
    /// The file is of another program.
    #[error(
        "this qlog file has no events of rexmit: it is of another program (its title is {0:?})"
    )]
    Foreign(String),
    /// A record is longer than [`MAX_RECORD_BYTES`].
    #[error("record {0} is longer than {MAX_RECORD_BYTES} bytes")]
    TooLong(u64),
    /// A record is not what its name says.
    #[error("record {number}: {what}")]
    Broken {
        /// Which record, counted from 1: the header.
        number: u64,
        /// The error in the record.
        what: String,
    },
}

/// Reads a file, an event at a time. It understands the events from which a time-sequence graph is drawn: packets
/// with data, acknowledgements, numbers of messages, and expiries of the retransmission timer. It skips others.
///
/// The last record may be incomplete: the program that wrote it was killed.
///
/// ```
/// use rexmit_core::{Instant, trace::TraceEvent};
/// use rexmit_qlog::Reader;
/// let file = "\u{1e}{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"t\",\"trace\":\
///     {\"event_schemas\":[\"urn:rexmit:qlog:events\"]}}\n\
///     \u{1e}{\"time\":1.5,\"name\":\"rexmit:retransmission_timeout\",\"group_id\":\"7\",\
///     \"data\":{\"path\":0,\"rto\":2000}}\n";
/// let mut reader = Reader::new(file.as_bytes())?;
/// assert_eq!(reader.title(), "t");
/// let logged = reader.next().ok_or("an event is there")??;
/// assert_eq!((logged.at, logged.association), (Instant::from_nanos(1_500_000), 7));
/// assert!(reader.next().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    title: String,
    number: u64,
    has_failed: bool,
    /// Events of the record that was read last, in reverse order.
    events: Vec<Logged>,
}

#[derive(Deserialize)]
struct Header {
    qlog_version: String,
    qlog_format: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    trace: Trace,
}

#[derive(Default, Deserialize)]
struct Trace {
    #[serde(default)]
    event_schemas: Vec<String>,
}

#[derive(Deserialize)]
struct Head<'a> {
    time: f64,
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    #[serde(default)]
    group_id: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WithData<D> {
    data: D,
}

#[derive(Deserialize)]
struct Packet {
    header: PacketHeader,
    #[serde(default)]
    raw: Raw,
    #[serde(default)]
    frames: Vec<Frame>,
    #[serde(default)]
    path: u8,
}

#[derive(Deserialize)]
struct PacketHeader {
    packet_number: u64,
}

#[derive(Default, Deserialize)]
struct Raw {
    #[serde(default)]
    payload_length: u32,
}

#[derive(Deserialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame {
    Data(Run),
    Retransmission(Run),
    Copy(Run),
    Ack {
        cumulative: u64,
        gaps: Vec<(u64, u64)>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Run {
    first: u64,
    last: u64,
    cause: SendCause,
}

#[derive(Deserialize)]
struct Timeout {
    path: u8,
    rto: f64,
}

#[derive(Deserialize)]
struct MessageNumbered {
    message: u64,
    stream: u16,
    sequence: (u64, u64),
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// If the file is not a qlog file of rexmit.
    pub fn new(input: R) -> Result<Self, ReadError> {
        let mut reader =
            Self { input, title: String::new(), number: 0, has_failed: false, events: Vec::new() };
        let record = match reader.record() {
            Err(ReadError::Broken { .. } | ReadError::TooLong(_)) | Ok(None) => {
                return Err(ReadError::NotQlog);
            }
            record => record?.unwrap_or_default(),
        };
        let header: Header = serde_json::from_slice(&record).map_err(|_| ReadError::NotQlog)?;
        if header.qlog_format != "JSON-SEQ" {
            return Err(ReadError::NotQlog);
        }
        if header.qlog_version != QLOG_VERSION {
            return Err(ReadError::Version(header.qlog_version));
        }
        reader.title = header.title.unwrap_or_default();
        if !header.trace.event_schemas.iter().any(|schema| schema == EVENT_SCHEMA) {
            return Err(ReadError::Foreign(reader.title));
        }
        Ok(reader)
    }

    /// The title in the file. It may contain anything.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The next record without its frame; `None` at the end.
    fn record(&mut self) -> Result<Option<Vec<u8>>, ReadError> {
        self.number += 1;
        let mut record = Vec::new();
        let limit = MAX_RECORD_BYTES as u64 + 2;
        io::Read::take(&mut self.input, limit).read_until(b'\n', &mut record)?;
        if record.len() > MAX_RECORD_BYTES + 1 {
            return Err(ReadError::TooLong(self.number));
        }
        match record.as_slice() {
            [RECORD_SEPARATOR, .., b'\n'] => Ok(Some(record.split_off(1))),
            // The end, or a record that was not written to its end.
            [] | [RECORD_SEPARATOR, ..] => Ok(None),
            _ => Err(self.broken(&"it does not begin with a record separator")),
        }
    }

    fn broken(&self, what: &impl ToString) -> ReadError {
        ReadError::Broken { number: self.number, what: what.to_string() }
    }

    /// Reads records until one has an event.
    fn advance(&mut self) -> Result<Option<Logged>, ReadError> {
        loop {
            if let Some(event) = self.events.pop() {
                return Ok(Some(event));
            }
            let Some(record) = self.record()? else { return Ok(None) };
            self.understand(&record)?;
        }
    }

    fn understand(&mut self, record: &[u8]) -> Result<(), ReadError> {
        let head: Head<'_> = serde_json::from_slice(record).map_err(|error| self.broken(&error))?;
        if !(0.0..=MAX_MILLIS).contains(&head.time) {
            return Err(self.broken(&format_args!("its time is {} ms", head.time)));
        }
        let at = Instant::from_nanos((head.time * 1e6).round() as u64);
        let association = match head.group_id.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(number)) => number,
            Some(Err(_)) => return Err(self.broken(&"its group_id is no number")),
        };
        let mut put = |event| self.events.push(Logged { at, association, event });
        let outcome = match &*head.name {
            "transport:packet_sent" => of(record).map(|packet| sent(packet, &mut put)),
            "transport:packet_received" => of(record).map(|packet| received(packet, &mut put)),
            "rexmit:message_numbered" => of(record).map(|it: MessageNumbered| {
                let MessageNumbered { message, stream, sequence } = it;
                put(TraceEvent::MessageNumbered { message, stream, sequence });
            }),
            "rexmit:retransmission_timeout" => of(record).map(|Timeout { path, rto }| {
                // The cast saturates: a negative number or NaN becomes zero.
                let rto = Duration::from_nanos((rto * 1e6).round() as u64);
                put(TraceEvent::RetransmissionTimeout { path, rto });
            }),
            _ => of(record).map(|_: IgnoredAny| ()),
        };
        self.events.reverse();
        outcome.map_err(|error| self.broken(&error))
    }
}

fn of<'a, D: Deserialize<'a>>(record: &'a [u8]) -> serde_json::Result<D> {
    serde_json::from_slice(record).map(|WithData { data }| data)
}

fn sent(packet: Packet, put: &mut impl FnMut(TraceEvent)) {
    let Packet { header: PacketHeader { packet_number: number }, raw, frames, path } = packet;
    let (mut runs, mut copies) = (Vec::new(), Vec::new());
    for frame in frames {
        match frame {
            Frame::Copy(run) => copies.push((run.first, run.last.max(run.first))),
            Frame::Data(Run { first, last, cause })
            | Frame::Retransmission(Run { first, last, cause }) => {
                runs.push(SentRun::new(first, last.max(first), cause));
            }
            Frame::Ack { .. } | Frame::Other => {}
        }
    }
    if !runs.is_empty() {
        let units = runs
            .iter()
            .map(|run| run.highest - run.lowest)
            .fold(runs.len() as u64, u64::saturating_add);
        let units = u16::try_from(units).unwrap_or(u16::MAX);
        put(TraceEvent::PacketSent {
            packet: number,
            path,
            units,
            bytes: raw.payload_length,
            runs,
        });
    }
    if !copies.is_empty() {
        put(TraceEvent::CopiesSent { packet: number, path, runs: copies });
    }
}

fn received(packet: Packet, put: &mut impl FnMut(TraceEvent)) {
    for frame in packet.frames {
        if let Frame::Ack { cumulative, gaps } = frame {
            put(TraceEvent::AckReceived { cumulative, gaps });
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Logged, ReadError>;

    /// The next event; nothing after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.advance();
        self.has_failed = next.is_err();
        next.transpose()
    }
}
