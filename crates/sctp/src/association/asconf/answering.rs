//! ASCONF requests of the peer, and our responses to them (RFC 5061 §5.2).

use std::collections::VecDeque;

use rexmit_core::Route;

use crate::association::identity::unwrapped_initial_tsn;
use crate::wire::{PacketWriter, kind};

/// The most responses kept for retransmission, and the most ASCONFs processed per packet.
pub(super) const MAX_ANSWERS: usize = 4;
/// Sequence number of the last request, and the responses to the last packet.
#[derive(Debug)]
pub(super) struct Answering {
    /// Peer-Sequence-Number, unwrapped: that of the last ASCONF that was performed.
    pub(super) last: u64,
    /// The answers to those of the last packet: serial number, and value of the chunk.
    pub(super) answers: VecDeque<(u32, Box<[u8]>)>,
    /// The answers to be sent, and the route.
    owed: Option<(Vec<u32>, Route)>,
    /// Whether no ASCONF of the current packet was performed yet.
    pub(super) is_first: bool,
}

impl Answering {
    pub(super) const fn new(peer_initial_tsn: u32) -> Self {
        Self {
            last: unwrapped_initial_tsn(peer_initial_tsn) - 1,
            answers: VecDeque::new(),
            owed: None,
            is_first: true,
        }
    }

    pub(super) const fn begin_packet(&mut self) {
        self.is_first = true;
    }

    pub(super) const fn is_owed(&self) -> bool {
        self.owed.is_some()
    }

    pub(super) fn owe(&mut self, serial: u32, route: Route) {
        let (serials, to) = self.owed.get_or_insert_with(|| (Vec::new(), route));
        if *to != route {
            // The answer goes to the source of the latest request.
            (*to, _) = (route, serials.clear());
        }
        if !serials.contains(&serial) {
            serials.push(serial);
        }
    }

    /// Writes the answers to be sent. Returns the route that the ASCONF came over (E6).
    pub(super) fn write(&mut self, writer: &mut PacketWriter<'_>) -> Option<Route> {
        let (serials, route) = self.owed.take()?;
        for (serial, value) in &self.answers {
            // The peer retransmits a request whose answer did not fit (E7).
            if serials.contains(serial) {
                writer.plain(kind::ASCONF_ACK, 0, value);
            }
        }
        Some(route)
    }
}
