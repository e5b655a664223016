//! Traces of endpoints as qlog files (draft-ietf-quic-qlog-main-schema), and these files read back.
//!
//! A [`Log`] turns the events of [`rexmit_core::trace`] into a JSON text sequence (RFC 7464), one record per event,
//! as they happen. It is the only owner of the output, and what it keeps in memory is bounded by the processing
//! of one packet. [`Reader`] reads such files for pages and analyses.
//!
//! # Which schema
//!
//! The file is of qlog version 0.3, the latest that qvis reads. Packets, losses and metrics have the names of
//! QUIC's event schema (`transport:packet_sent`, `recovery:packet_lost`, `recovery:metrics_updated`), because a
//! packet, its loss and a congestion window are the same things there, and qvis' sequence and congestion views
//! look for these names. What has no counterpart in QUIC has a name of our own, `rexmit:…`. The differences in
//! content are what SCTP and TCP differ in:
//!
//! - `header.packet_type` is `sctp` or `tcp`. Its packets with data have the packet numbers of loss recovery,
//!   where a retransmission is a new packet. Others are of the type `sctp-control` or `tcp-control`.
//! - A frame of type `data`, `retransmission` or `copy` is a run of sequence numbers (unwrapped TSNs of SCTP; of
//!   TCP, segments in the order of their first transmission), with the cause of its transmission.
//! - A frame of type `ack` has the sequence numbers that it acknowledges (`cumulative`, `gaps`), and in
//!   `acked_ranges` the packets of which all data is acknowledged for the first time.
//! - `group_id` is the association's number in its endpoint: a file has all associations of its endpoint.

mod event;
mod log;
mod packet;
mod reader;

pub use log::{About, Log, MakeLog, Passing, VantagePoint};
pub use reader::{Logged, MAX_RECORD_BYTES, ReadError, Reader};

/// The URI of the events that this crate adds to QUIC's, in the header of each file.
pub const EVENT_SCHEMA: &str = "urn:rexmit:qlog:events";
/// The version of qlog that files are of.
pub const QLOG_VERSION: &str = "0.3";
/// The extension of these files, by which qvis recognises them.
pub const EXTENSION: &str = "sqlog";

/// Begins each record of a JSON text sequence (RFC 7464 §2.2).
const RECORD_SEPARATOR: u8 = 0x1e;
