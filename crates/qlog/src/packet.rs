//! The records of packets. Several events of the trace describe one packet; it is written when all are there.

use rexmit_core::trace::{SendCause, SentRun};
use serde::Serialize;

/// A packet that is being put together.
#[derive(Debug)]
pub(crate) enum Packet {
    /// A packet with data that is being sent.
    Sent { number: u64, path: u8, bytes: u32, runs: Vec<SentRun>, copies: Vec<(u64, u64)> },
    /// A packet that arrived, and what it acknowledged.
    Received { bytes: u32, ack: Option<Ack>, acked: Vec<u64> },
}

/// The sequence numbers that an acknowledgement reports.
#[derive(Debug)]
pub(crate) struct Ack {
    pub(crate) cumulative: u64,
    pub(crate) gaps: Vec<(u64, u64)>,
}

/// The content of `transport:packet_sent` and `transport:packet_received`.
#[derive(Serialize)]
pub(crate) struct Content<'a> {
    pub(crate) header: Header<'a>,
    pub(crate) raw: Raw,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) frames: Vec<Frame>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<u8>,
}

#[derive(Serialize)]
pub(crate) struct Header<'a> {
    pub(crate) packet_type: &'a str,
    pub(crate) packet_number: u64,
}

#[derive(Serialize)]
pub(crate) struct Raw {
    pub(crate) length: u32,
    /// User data, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload_length: Option<u32>,
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
pub(crate) enum Frame {
    Data(Run),
    Retransmission(Run),
    Copy(Run),
    Ack {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        acked_ranges: Vec<(u64, u64)>,
        cumulative: u64,
        gaps: Vec<(u64, u64)>,
    },
}

#[derive(Serialize)]
pub(crate) struct Run {
    first: u64,
    last: u64,
    cause: &'static str,
}

/// The frames of a packet with data, copies first, because they have lower sequence numbers than the other data.
pub(crate) fn frames(runs: &[SentRun], copies: &[(u64, u64)]) -> Vec<Frame> {
    let cause = SendCause::Redundant.name();
    let copies = copies.iter().map(|&(first, last)| Frame::Copy(Run { first, last, cause }));
    let runs = runs.iter().map(|&SentRun { lowest, highest, cause, .. }| {
        let run = Run { first: lowest, last: highest, cause: cause.name() };
        match cause {
            SendCause::New => Frame::Data(run),
            SendCause::Redundant => Frame::Copy(run),
            _ => Frame::Retransmission(run),
        }
    });
    copies.chain(runs).collect()
}

/// `numbers` as ranges, ascending.
pub(crate) fn ranges(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if number <= last.saturating_add(1) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}
