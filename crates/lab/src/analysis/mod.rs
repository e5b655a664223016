//! Analysis of loss recovery in captures of TCP, and of SCTP that is not encrypted: latency per byte, retransmissions by
//! cause, duplicate ACKs, redundant copies, losses and round-trip times.
//!
//! From a capture at the sender, losses and spurious retransmissions are estimated by ACKs, and latency is the time until
//! the ACK. A capture at the receiver shows them exactly, and latency is the time until the arrival: it is a second file, or
//! one file has interfaces of both hosts, as simulated networks write it. Packets that an emulated link lost have a comment
//! in its captures, which is read, too.
//!
//! | file | what is in it |
//! |---|---|
//! | `connection` | a connection: which packets are sent, which have arrived, which acknowledge |
//! | `data` | what one side sent, why it sent data again, and what was acknowledged |
//! | `unit` | ranges of data, packets, and causes |
//! | `arrivals` | packets as the receiver got them |
//! | `other_end` | two captures as one |
//! | `figures`, `losses`, `latencies` | counts, losses and latencies of a connection, as structs and rows |
//! | `table` | the figures as text for a terminal |
//! | `timeline` | the sender's packets as the events of a trace, for graphs |

mod arrivals;
mod connection;
mod data;
mod figures;
mod latencies;
mod losses;
mod other_end;
mod table;
mod timeline;
mod unit;

use std::path::Path;

use rexmit_netsim::traffic::connections::Connections;
use rexmit_netsim::traffic::frames::{CapturedFrame, read_capture};
use rexmit_netsim::traffic::packet::{Content, Protocol};
use rexmit_netsim::traffic::trace::{Sender, TraceError, name_of};
use serde::Serialize;
use thiserror::Error;

use connection::Connection;
pub use figures::{
    AckFigures, CauseFigures, DirectionAnalysis, PathFigures, RedundancyFigures, SentFigures,
};
pub use latencies::{Latency, LatencyByNumber, RangeRow};
pub use timeline::Timeline;
pub use unit::Cause;

/// The loss recovery in a capture.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// The name of the capture.
    pub capture: String,
    /// An entry for each direction of each connection of TCP or SCTP in which data was sent.
    pub directions: Vec<DirectionAnalysis>,
}

/// Why a capture cannot be analysed.
#[derive(Debug, Error)]
pub enum AnalysisError {
    /// A file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] TraceError),
    /// No data of TCP or SCTP.
    #[error(
        "{0} has no data of TCP or SCTP: only these have ACKs, and SCTP must not be encrypted (--unencrypted)"
    )]
    Nothing(String),
    /// The two files have no packet in common.
    #[error(
        "{0} and {1} have no packets of both directions in common: they must be captured at the same time at both ends, without address translation in between"
    )]
    Unrelated(String, String),
}

impl Analysis {
    /// Analyses a capture (pcap or pcapng, optionally compressed by gzip), and a second one of the same time at the other end
    /// of the connections.
    ///
    /// The clocks of both files are compared on the assumption that the shortest delay is the same in both directions.
    ///
    /// # Errors
    /// [`AnalysisError`].
    pub fn open(path: &Path, other_end: Option<&Path>) -> Result<Self, AnalysisError> {
        let mut analyser = Analyser::default();
        match other_end {
            None => read_capture(path, |frame| analyser.on_frame(&frame))?,
            Some(other) => {
                let (first, second) = (frames(path)?, frames(other)?);
                let Some((all, is_client_first)) = other_end::merged(first, second) else {
                    let name = |path: &Path| path.display().to_string();
                    return Err(AnalysisError::Unrelated(name(path), name(other)));
                };
                let ends = [0, other_end::OTHER].map(Some);
                analyser.near = if is_client_first { ends } else { [ends[1], ends[0]] };
                all.iter().for_each(|frame| analyser.on_frame(frame));
            }
        }
        let directions = analyser.finish();
        if directions.is_empty() {
            return Err(AnalysisError::Nothing(path.display().to_string()));
        }
        Ok(Self { capture: name_of(path), directions })
    }
}

/// What each sender in a capture did, in the order of [`Analysis::directions`].
///
/// # Errors
/// [`AnalysisError`].
pub fn timelines(path: &Path) -> Result<Vec<Timeline>, AnalysisError> {
    let mut analyser = Analyser::default();
    let mut begin = None;
    read_capture(path, |frame| {
        begin.get_or_insert(frame.time);
        analyser.on_frame(&frame);
    })?;
    let begin = begin.unwrap_or_default();
    let timelines = analyser.with_data(|flow, connection, sender| {
        let (data, name) = match sender {
            Sender::Client => (&connection.data[0], "client"),
            Sender::Server => (&connection.data[1], "server"),
        };
        let events = timeline::events(data, begin);
        Timeline { name: format!("flow {flow}, from the {name}"), events }
    });
    if timelines.is_empty() {
        return Err(AnalysisError::Nothing(path.display().to_string()));
    }
    Ok(timelines)
}

fn frames(path: &Path) -> Result<Vec<CapturedFrame>, TraceError> {
    let mut frames = Vec::new();
    read_capture(path, |frame| {
        if !matches!(frame.packet.content, Content::Udp(_)) {
            frames.push(frame);
        }
    })?;
    Ok(frames)
}

#[derive(Default)]
struct Analyser {
    assigned: Connections,
    /// The connections, in the order of the numbers that `assigned` gives them; UDP has none.
    connections: Vec<Found>,
    near: [Option<u32>; 2],
}

enum Found {
    /// A flow of UDP, and whether it has payload.
    Udp(bool),
    Connection(Box<Connection>),
}

impl Analyser {
    fn on_frame(&mut self, frame: &CapturedFrame) {
        let (place, sender) = self.assigned.assign(&frame.packet);
        if place == self.connections.len() {
            let ends = self.assigned.ends(place).filter(|ends| ends.protocol != Protocol::Udp);
            self.connections.push(ends.map_or(Found::Udp(false), |&ends| {
                Found::Connection(Box::new(Connection::new(ends, frame.time, self.near)))
            }));
        }
        match (&mut self.connections[place], &frame.packet.content) {
            (Found::Connection(connection), _) => connection.on_frame(sender, frame),
            (Found::Udp(has_payload), Content::Udp(payload)) => *has_payload |= *payload > 0,
            (Found::Udp(_), _) => {}
        }
    }

    fn finish(self) -> Vec<DirectionAnalysis> {
        self.with_data(DirectionAnalysis::new)
    }

    /// The result of `make` for each direction with data. Flows are numbered as in a
    /// [`Trace`](rexmit_netsim::traffic::trace::Trace), where only those with payload have a number.
    fn with_data<T>(self, make: impl Fn(u32, &Connection, Sender) -> T) -> Vec<T> {
        let mut directions = Vec::new();
        let mut flow = 0;
        for found in self.connections {
            let mut connection = match found {
                Found::Connection(connection) => connection,
                Found::Udp(has_payload) => {
                    flow += u32::from(has_payload);
                    continue;
                }
            };
            connection.data.iter_mut().for_each(data::Data::finish);
            let has_data = connection.data.each_ref().map(|data| !data.packets.is_empty());
            for (sender, has_data) in [Sender::Client, Sender::Server].into_iter().zip(has_data) {
                if has_data {
                    directions.push(make(flow, &connection, sender));
                }
            }
            flow += u32::from(has_data[0] || has_data[1]);
        }
        directions
    }
}
