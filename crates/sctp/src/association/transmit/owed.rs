//! What has to leave beside DATA.

use std::collections::VecDeque;

use rexmit_core::Route;

/// HEARTBEATs that wait to be answered; more are not answered.
const MAX_HEARTBEAT_ACKS: usize = 4;
/// Errors that wait to be reported; more are not reported.
const MAX_ERRORS: usize = 4;
/// Bytes of a peer's chunk or heartbeat that are kept to be sent back.
const MAX_ECHOED_BYTES: usize = 1024;

/// Control chunks that have to leave.
#[derive(Debug, Default)]
pub(in crate::association) struct Owed {
    /// INIT or COOKIE ECHO, by the state.
    pub(in crate::association) setup: bool,
    pub(in crate::association) cookie_ack: bool,
    pub(in crate::association) sack: bool,
    pub(in crate::association) forward_tsn: bool,
    pub(in crate::association) shutdown: bool,
    pub(in crate::association) shutdown_ack: bool,
    /// Where each goes, and all that was in the HEARTBEAT.
    pub(super) heartbeat_acks: VecDeque<(Route, Box<[u8]>)>,
    pub(super) errors: VecDeque<OwedError>,
}

/// A cause to be reported in an ERROR.
#[derive(Debug)]
pub(in crate::association) enum OwedError {
    InvalidStream(u16),
    UnrecognizedChunk(Box<[u8]>),
    CookieReceivedWhileShuttingDown,
    UnsupportedHmac(u16),
}

impl Owed {
    pub(in crate::association) fn error(&mut self, error: OwedError) {
        let is_short = match &error {
            OwedError::UnrecognizedChunk(bytes) => bytes.len() <= MAX_ECHOED_BYTES,
            _ => true,
        };
        if is_short && self.errors.len() < MAX_ERRORS {
            self.errors.push_back(error);
        }
    }

    pub(in crate::association) fn heartbeat_ack(&mut self, route: Route, value: &[u8]) {
        if value.len() <= MAX_ECHOED_BYTES && self.heartbeat_acks.len() < MAX_HEARTBEAT_ACKS {
            self.heartbeat_acks.push_back((route, value.into()));
        }
    }

    /// What was to go from or to an address that was given up goes nowhere.
    pub(in crate::association) fn forget_replies_over(&mut self, is_gone: impl Fn(&Route) -> bool) {
        self.heartbeat_acks.retain(|(route, _)| !is_gone(route));
    }

    /// Gives back memory that is not in use.
    pub(in crate::association) fn release_memory(&mut self) {
        self.heartbeat_acks.shrink_to_fit();
        self.errors.shrink_to_fit();
    }

    pub(in crate::association) fn is_any(&self) -> bool {
        self.setup || self.is_reply() || self.is_control() || !self.heartbeat_acks.is_empty()
    }

    /// Whether something is to go to where a packet came from.
    pub(super) fn is_reply(&self) -> bool {
        self.cookie_ack || self.sack || !self.errors.is_empty()
    }

    /// Whether something is to go that belongs to no path in particular.
    pub(super) const fn is_control(&self) -> bool {
        self.forward_tsn || self.shutdown || self.shutdown_ack
    }
}
