//! Datagrams of DTLS that wait to be transmitted.

use std::collections::VecDeque;

use rexmit_core::{Ecn, Route};

/// A datagram, its route, and the ECN field for its IP header.
type Datagram = (Route, Ecn, Vec<u8>);

/// The datagrams, oldest first.
#[derive(Default)]
pub(super) struct Outgoing {
    waiting: VecDeque<Datagram>,
    /// The ECN field for the datagram that the agent has transmitted last, which may be one of ICE.
    pub(super) ecn: Ecn,
}

impl Outgoing {
    /// Adds a datagram without an SCTP packet.
    pub(super) fn push(&mut self, route: Route, datagram: &[u8]) {
        self.push_with_ecn(route, Ecn::NotEct, datagram);
    }

    /// Adds a datagram that contains an SCTP packet with this ECN field.
    pub(super) fn push_with_ecn(&mut self, route: Route, ecn: Ecn, datagram: &[u8]) {
        self.waiting.push_back((route, ecn, datagram.to_vec()));
    }

    /// Takes the oldest datagram; its ECN field is in `ecn`.
    pub(super) fn pop(&mut self) -> Option<(Route, Vec<u8>)> {
        let (route, ecn, datagram) = self.waiting.pop_front()?;
        self.ecn = ecn;
        Some((route, datagram))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.waiting.iter().map(|(.., datagram)| &datagram[..])
    }
}
