//! The writer: a sink for the events of endpoints.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit_core::Instant;
use rexmit_core::trace::{TraceEvent, TraceSink};
use serde::Serialize;
use serde_json::json;

use crate::event::{Record, described, time};
use crate::packet::{Ack, Content, Frame, Header, Packet, Raw, frames, ranges};
use crate::{EVENT_SCHEMA, QLOG_VERSION, RECORD_SEPARATOR};

/// Events of one packet that wait until the packet is written, in bytes of their records. If they are more, the
/// packet is written as far as it is known.
const MAX_WAITING_BYTES: usize = 256 * 1024;
/// Packets of which one acknowledgement reports the arrival, in one record; further ones have records of their own.
const MAX_ACKED: usize = 4096;

/// The header of a file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct About {
    /// A title in one line.
    pub title: String,
    /// The protocol of the packets, in lower case: `sctp` or `tcp`.
    pub protocol: &'static str,
    /// Where the events were seen.
    pub vantage_point: VantagePoint,
    /// The driver's time that is time 0 in the file.
    pub begin: Instant,
    /// Time 0 in milliseconds since 1970; 0 in virtual time.
    pub unix_millis: f64,
}

/// Where the events were seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VantagePoint {
    /// The endpoint that connects.
    Client,
    /// The endpoint that accepts.
    Server,
    /// Between the endpoints; packets of the client count as sent.
    Network,
}

impl About {
    /// SCTP seen at a server, with the driver's time 0 as time 0.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            protocol: "sctp",
            vantage_point: VantagePoint::Server,
            begin: Instant::ZERO,
            unix_millis: 0.0,
        }
    }

    /// Sets the protocol, in lower case.
    #[must_use]
    pub const fn protocol(mut self, protocol: &'static str) -> Self {
        self.protocol = protocol;
        self
    }

    /// Sets where the events were seen.
    #[must_use]
    pub const fn vantage_point(mut self, vantage_point: VantagePoint) -> Self {
        self.vantage_point = vantage_point;
        self
    }

    /// Sets the driver's time that is time 0, and the same time in milliseconds since 1970.
    #[must_use]
    pub const fn begin(mut self, begin: Instant, unix_millis: f64) -> Self {
        (self.begin, self.unix_millis) = (begin, unix_millis);
        self
    }

    fn header(&self) -> serde_json::Value {
        let flow = (self.vantage_point == VantagePoint::Network).then_some(VantagePoint::Client);
        let mut vantage_point = json!({ "name": "rexmit", "type": self.vantage_point });
        if let Some(flow) = flow {
            vantage_point["flow"] = json!(flow);
        }
        json!({
            "qlog_version": QLOG_VERSION,
            "qlog_format": "JSON-SEQ",
            "title": self.title,
            "trace": {
                "vantage_point": vantage_point,
                "title": self.title,
                "event_schemas": [EVENT_SCHEMA],
                "common_fields": {
                    "protocol_type": [self.protocol.to_uppercase()],
                    "time_format": "relative",
                    "reference_time": self.unix_millis,
                },
            },
        })
    }
}

/// Makes the logs of the endpoints of a run.
pub trait MakeLog: fmt::Debug + Send + Sync {
    /// The log of the endpoint `name`; `None` if it is not to have one.
    fn log(&self, name: &str, about: &About) -> Option<Log>;
}

/// A packet that was seen in the network, between the endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Passing<'a> {
    /// Whether the packet is on its way from the client to the server.
    pub is_forward: bool,
    /// The packet's length in bytes.
    pub bytes: u32,
    /// Why the packet was dropped; `None` if it was delivered.
    pub dropped: Option<&'a str>,
}

impl<'a> Passing<'a> {
    /// A packet of `bytes` bytes that was delivered.
    #[must_use]
    pub const fn delivered(is_forward: bool, bytes: u32) -> Self {
        Self { is_forward, bytes, dropped: None }
    }

    /// A packet of `bytes` bytes that was dropped because of `cause`.
    #[must_use]
    pub const fn dropped(is_forward: bool, bytes: u32, cause: &'a str) -> Self {
        Self { is_forward, bytes, dropped: Some(cause) }
    }
}

/// A qlog file that is being written. Clones are handles on the same file.
///
/// Its [`sink`](Self::sink) is passed to an endpoint. An error of writing ends the log and nothing else: later events
/// are not written, and [`finish`](Self::finish) returns the error.
///
/// ```
/// use rexmit_core::{Instant, trace::TraceEvent};
/// use rexmit_qlog::{About, Log};
/// let log = Log::new(Vec::new(), &About::new("an example"));
/// let mut sink = log.sink(); // endpoint.set_trace(Some(log.sink()))
/// sink.record(Instant::ZERO, 0, &TraceEvent::State { state: "ESTABLISHED" });
/// log.finish()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Log(Arc<Mutex<State>>);

struct State {
    out: Output,
    begin: Instant,
    packet_types: [String; 2],
    /// When the latest event was, and in which association.
    place: (Instant, u32),
    packet: Option<Packet>,
    /// Records after that packet's.
    waiting: Vec<u8>,
    /// Numbers of the next packet without data, and of the next one received.
    next_control: u64,
    next_received: u64,
}

struct Output {
    out: BufWriter<Box<dyn Write + Send>>,
    is_broken: bool,
    failure: Option<io::Error>,
    on_failure: Option<OnFailure>,
}

/// Called with the error of writing, once.
type OnFailure = Box<dyn FnOnce(&io::Error) + Send>;

/// The name of the event of a packet that was sent.
const SENT: &str = "transport:packet_sent";

/// The name and the number of a packet in the file.
#[derive(Clone, Copy)]
struct Title {
    /// The name of the event.
    name: &'static str,
    /// The place of its type in `packet_types`.
    kind: usize,
    packet_number: u64,
}

impl Log {
    /// A log that is written to `out`, through a buffer.
    #[must_use]
    pub fn new(out: impl Write + Send + 'static, about: &About) -> Self {
        let out: Box<dyn Write + Send> = Box::new(out);
        let mut out =
            Output { out: BufWriter::new(out), is_broken: false, failure: None, on_failure: None };
        let mut header = vec![RECORD_SEPARATOR];
        header.extend(about.header().to_string().bytes());
        header.push(b'\n');
        out.write(&header);
        Self(Arc::new(Mutex::new(State {
            out,
            begin: about.begin,
            packet_types: [about.protocol.to_owned(), format!("{}-control", about.protocol)],
            place: (about.begin, 0),
            packet: None,
            waiting: Vec::new(),
            next_control: 0,
            next_received: 0,
        })))
    }

    /// Has `on_failure` called with the first error of writing, once. It is called in the endpoint's driver.
    pub fn on_failure(&self, on_failure: impl FnOnce(&io::Error) + Send + 'static) {
        let mut state = self.lock();
        match &state.out.failure {
            Some(error) => on_failure(error),
            None => state.out.on_failure = Some(Box::new(on_failure)),
        }
    }

    /// A sink for one endpoint. Several endpoints may share a log if their association numbers differ. Times in the log
    /// never decrease: an event that is earlier than the previous one is written with the time of that one.
    #[must_use]
    pub fn sink(&self) -> Box<dyn TraceSink> {
        Box::new(Sink(self.clone()))
    }

    /// Writes a packet that was seen in the network. Packets are numbered in each direction in the order in which they are seen.
    ///
    /// Those of the client are `transport:packet_sent`, followed by `recovery:packet_lost` if they were dropped; those of the
    /// server `transport:packet_received`, or `transport:packet_dropped`.
    pub fn pass(&self, now: Instant, packet: &Passing<'_>) {
        self.lock().pass(now, packet);
    }

    /// Writes what is buffered. Events after it are written, too, once the last handle or sink is dropped.
    ///
    /// # Errors
    /// The first error of writing, unless it was returned before.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.complete_packet();
        state.out.flush();
        state.out.failure.take().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change is complete when the lock is released, even by a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Sink(Log);

impl TraceSink for Sink {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        self.0.lock().record(now, association, event);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").finish_non_exhaustive()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.complete_packet();
        self.out.flush();
    }
}

impl Output {
    fn write(&mut self, bytes: &[u8]) {
        let written = if self.is_broken { Ok(()) } else { self.out.write_all(bytes) };
        self.note(written);
    }

    fn flush(&mut self) {
        let flushed = if self.is_broken { Ok(()) } else { self.out.flush() };
        self.note(flushed);
    }

    fn note(&mut self, outcome: io::Result<()>) {
        let Err(error) = outcome else { return };
        self.is_broken = true;
        if let Some(on_failure) = self.on_failure.take() {
            on_failure(&error);
        }
        self.failure = Some(error);
    }
}

impl State {
    fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
        if self.out.is_broken {
            return;
        }
        let place = (now.max(self.place.0), association);
        if place != self.place {
            self.complete_packet();
            self.place = place;
        }
        match *event {
            TraceEvent::PacketSent { packet: number, path, bytes, ref runs, .. } => {
                self.complete_packet();
                let (runs, copies) = (runs.clone(), Vec::new());
                self.packet = Some(Packet::Sent { number, path, bytes, runs, copies });
            }
            TraceEvent::CopiesSent { packet, path, ref runs } => {
                self.add_copies((packet, path), runs);
            }
            TraceEvent::Transmitted { bytes } => self.on_transmitted(bytes),
            TraceEvent::Arrived { bytes } => {
                self.complete_packet();
                let acked = Vec::new();
                self.packet = Some(Packet::Received { bytes, ack: None, acked });
            }
            TraceEvent::AckReceived { cumulative, ref gaps } => self.add_ack(cumulative, gaps),
            TraceEvent::PacketAcked { packet } => match &mut self.packet {
                Some(Packet::Received { acked, .. }) if acked.len() < MAX_ACKED => {
                    acked.push(packet);
                }
                _ => self.put(event),
            },
            _ => self.put(event),
        }
    }

    fn pass(&mut self, now: Instant, packet: &Passing<'_>) {
        if self.out.is_broken {
            return;
        }
        self.place.0 = now.max(self.place.0);
        let &Passing { is_forward, bytes, dropped } = packet;
        let number =
            next(if is_forward { &mut self.next_control } else { &mut self.next_received });
        let header = json!({ "packet_type": self.packet_types[0], "packet_number": number });
        let raw = json!({ "length": bytes });
        let time = time(self.begin, self.place.0);
        let mut put = |name, data| {
            Record { time, name, group_id: None, data }.append(&mut self.waiting);
        };
        match (is_forward, dropped) {
            (true, _) => put("transport:packet_sent", json!({ "header": header, "raw": raw })),
            (false, None) => {
                put("transport:packet_received", json!({ "header": header, "raw": raw }));
            }
            (false, Some(why)) => {
                put(
                    "transport:packet_dropped",
                    json!({ "header": header, "raw": raw, "trigger": why }),
                );
            }
        }
        if let (true, Some(why)) = (is_forward, dropped) {
            put("recovery:packet_lost", json!({ "header": header, "trigger": why }));
        }
        self.write_waiting();
    }

    fn add_copies(&mut self, (packet, path): (u64, u8), runs: &[(u64, u64)]) {
        match &mut self.packet {
            Some(Packet::Sent { number, copies, .. }) if *number == packet => copies.extend(runs),
            // Copies alone: the packet has no new data.
            _ => {
                self.complete_packet();
                let (runs, copies) = (Vec::new(), runs.to_vec());
                self.packet = Some(Packet::Sent { number: packet, path, bytes: 0, runs, copies });
            }
        }
    }

    fn add_ack(&mut self, cumulative: u64, gaps: &[(u64, u64)]) {
        // A second SACK of a packet replaces the first.
        if let Some(Packet::Received { ack, .. }) = &mut self.packet {
            *ack = Some(Ack { cumulative, gaps: gaps.to_vec() });
        }
    }

    /// The packet that the events before described, if any, was written: `length` bytes.
    fn on_transmitted(&mut self, length: u32) {
        let mut sent = self.packet.take_if(|packet| matches!(packet, Packet::Sent { .. }));
        if let Some(Packet::Sent { number, path, bytes, runs, copies }) = &mut sent {
            let raw = Raw { length, payload_length: (*bytes > 0).then_some(*bytes) };
            let title = Title { name: SENT, kind: 0, packet_number: *number };
            self.write_packet(title, raw, frames(runs, copies), Some(*path));
            self.write_waiting();
        } else {
            self.complete_packet();
            let packet_number = next(&mut self.next_control);
            let raw = Raw { length, payload_length: None };
            self.write_packet(Title { name: SENT, kind: 1, packet_number }, raw, Vec::new(), None);
        }
    }

    /// Writes the packet that is being put together, and what happened since.
    fn complete_packet(&mut self) {
        match self.packet.take() {
            // Its end was not reported.
            Some(Packet::Sent { number, path, bytes, runs, copies }) => {
                let raw = Raw { length: bytes, payload_length: Some(bytes) };
                let title = Title { name: SENT, kind: 0, packet_number: number };
                self.write_packet(title, raw, frames(&runs, &copies), Some(path));
            }
            Some(Packet::Received { bytes, ack, acked }) => {
                let packet_number = next(&mut self.next_received);
                let kind = usize::from(ack.is_none());
                let frames = ack.map(|Ack { cumulative, gaps }| Frame::Ack {
                    acked_ranges: ranges(acked),
                    cumulative,
                    gaps,
                });
                let raw = Raw { length: bytes, payload_length: None };
                let title = Title { name: "transport:packet_received", kind, packet_number };
                self.write_packet(title, raw, frames.into_iter().collect(), None);
            }
            None => {}
        }
        self.write_waiting();
    }

    fn write_packet(&mut self, title: Title, raw: Raw, frames: Vec<Frame>, path: Option<u8>) {
        let Title { name, kind, packet_number } = title;
        let header = Header { packet_type: &self.packet_types[kind], packet_number };
        let data = Content { header, raw, frames, path };
        let mut record = Vec::new();
        let group_id = Some(self.place.1.to_string());
        Record { time: time(self.begin, self.place.0), name, group_id, data }.append(&mut record);
        self.out.write(&record);
    }

    fn write_waiting(&mut self) {
        self.out.write(&self.waiting);
        self.waiting.clear();
    }

    /// Writes an event that is no packet, after the packet that it belongs to.
    fn put(&mut self, event: &TraceEvent) {
        let (name, data) = described(event, &self.packet_types[0]);
        let group_id = Some(self.place.1.to_string());
        let time = time(self.begin, self.place.0);
        Record { time, name: &name, group_id, data }.append(&mut self.waiting);
        if self.packet.is_none() {
            self.write_waiting();
        } else if self.waiting.len() > MAX_WAITING_BYTES {
            self.complete_packet();
        }
    }
}

fn next(number: &mut u64) -> u64 {
    let taken = *number;
    *number += 1;
    taken
}
