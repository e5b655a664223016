//! Replies that wait to be sent: COOKIE ACK, ERROR and HEARTBEAT ACK.

use rexmit_core::Route;

use crate::wire::{Cause, CausesWriter, PacketWriter};

/// The most HEARTBEATs that wait to be answered; further ones get no answer.
const MAX_HEARTBEAT_ACKS: usize = 4;
/// The most errors that wait to be reported; further ones are not reported.
const MAX_ERRORS: usize = 4;
/// The most chunks of unknown types handled in one packet; further chunks are dropped, because no correct
/// peer sends that many.
const MAX_UNKNOWN_CHUNKS: usize = 1024;
/// The most bytes of a peer's chunk or heartbeat that are kept to be sent back.
const MAX_ECHOED_BYTES: usize = 1024;

/// Queued replies other than SACK; each is sent to the source of the packet it answers.
#[derive(Debug, Default)]
pub(super) struct Replies {
    cookie_ack: bool,
    /// HEARTBEAT ACKs to be sent: the route of each, and the content of the HEARTBEAT.
    heartbeat_acks: Vec<(Route, Box<[u8]>)>,
    errors: Vec<ReportedError>,
    /// Chunks of unknown types in the present packet.
    unknown_chunks: usize,
}

/// A cause to be reported in an ERROR.
#[derive(Debug)]
pub(super) enum ReportedError {
    InvalidStream(u16),
    UnrecognizedChunk(Box<[u8]>),
    CookieReceivedWhileShuttingDown,
    UnsupportedHmac(u16),
}

impl Replies {
    /// Called before a received packet is processed.
    pub(super) const fn begin_packet(&mut self) {
        self.unknown_chunks = 0;
    }

    /// Counts a skipped chunk of an unknown type. Returns whether there are too many of them in this packet.
    pub(super) const fn pass_unknown(&mut self) -> bool {
        self.unknown_chunks += 1;
        self.unknown_chunks > MAX_UNKNOWN_CHUNKS
    }

    pub(super) const fn owe_cookie_ack(&mut self) {
        self.cookie_ack = true;
    }

    /// Queues an error for the peer; dropped if too many are queued.
    pub(super) fn report(&mut self, error: ReportedError) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    /// Queues a report of a chunk of an unknown type; dropped if the chunk is long, or too many are queued:
    /// thousands fit into a packet.
    pub(super) fn report_unrecognized(&mut self, chunk: &[u8]) {
        if chunk.len() <= MAX_ECHOED_BYTES && self.errors.len() < MAX_ERRORS {
            self.errors.push(ReportedError::UnrecognizedChunk(chunk.into()));
        }
    }

    /// Queues the HEARTBEAT ACK, with the same information, for the source of the HEARTBEAT; dropped if the
    /// information is long, or too many are queued.
    pub(super) fn owe_heartbeat_ack(&mut self, route: Route, value: &[u8]) {
        if value.len() <= MAX_ECHOED_BYTES && self.heartbeat_acks.len() < MAX_HEARTBEAT_ACKS {
            self.heartbeat_acks.push((route, value.into()));
        }
    }

    /// Drops queued replies from or to an abandoned address.
    pub(super) fn forget_over(&mut self, is_gone: impl Fn(&Route) -> bool) {
        self.heartbeat_acks.retain(|(route, _)| !is_gone(route));
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.heartbeat_acks.shrink_to_fit();
        self.errors.shrink_to_fit();
    }

    pub(super) fn is_any(&self) -> bool {
        self.is_bundled() || !self.heartbeat_acks.is_empty()
    }

    /// Whether COOKIE ACK or ERROR is to go into the next packet.
    pub(super) fn is_bundled(&self) -> bool {
        self.cookie_ack || !self.errors.is_empty()
    }

    /// The next HEARTBEAT ACK: its route and content.
    pub(super) fn next_heartbeat_ack(&mut self) -> Option<(Route, Box<[u8]>)> {
        (!self.heartbeat_acks.is_empty()).then(|| self.heartbeat_acks.remove(0))
    }

    /// Writes COOKIE ACK, and as many ERRORs as fit; one that fits no packet is dropped.
    pub(super) fn write(&mut self, writer: &mut PacketWriter<'_>) {
        if std::mem::take(&mut self.cookie_ack) {
            writer.cookie_ack();
        }
        while let Some(error) = self.errors.first() {
            let is_written = writer.error(|causes| push(causes, error));
            if !is_written && !writer.is_only_auth() {
                return;
            }
            self.errors.remove(0);
        }
    }
}

fn push(causes: &mut CausesWriter<'_, '_>, error: &ReportedError) {
    let _ = match error {
        ReportedError::InvalidStream(stream) => {
            causes.push(&Cause::InvalidStreamIdentifier(*stream))
        }
        ReportedError::UnrecognizedChunk(bytes) => {
            causes.push(&Cause::UnrecognizedChunkType(bytes))
        }
        ReportedError::UnsupportedHmac(id) => causes.push(&Cause::UnsupportedHmac(*id)),
        ReportedError::CookieReceivedWhileShuttingDown => {
            causes.push(&Cause::CookieReceivedWhileShuttingDown)
        }
    };
}
