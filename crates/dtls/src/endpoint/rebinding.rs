//! A peer whose UDP port changes, because a NAT on the way forgot it.
//!
//! The library has no connection IDs (RFC 9146), so a record from a port without a connection is tried with
//! those of the same IP address. If it belongs to one, SCTP gets its packet with the new address, and validates
//! that before it sends data there (RFC 9260 §5.4): a copy that an observer sends from elsewhere moves nothing.

use std::net::SocketAddr;

use rexmit_core::{Instant, Route};

use super::Endpoint;
use crate::connection::MAX_ADDRESSES;
use crate::record::admissible;

/// Connections of one IP address that a record is tried with. Of more peers behind one NAT, those with higher
/// ports are not found again.
const MAX_TRIED: usize = 16;

impl Endpoint {
    pub(super) fn on_unknown_address(&mut self, now: Instant, route: Route, datagram: &[u8]) {
        let (ip, remote) = (route.remote.ip(), route.remote);
        let records = admissible(datagram, false).filter(|records| records.len() == datagram.len());
        let Some(records) = records.filter(|_| remote.port() != 0) else {
            self.statistics.discarded += 1;
            return;
        };
        let ports = SocketAddr::new(ip, 0)..=SocketAddr::new(ip, u16::MAX);
        let candidates: Vec<usize> =
            self.secured.range(ports).map(|(_, &index)| index).take(MAX_TRIED).collect();
        for index in candidates {
            let belongs = self.advance_from(now, index, route, |connection| {
                connection.handle_packet(now, records)
            });
            if belongs && self.connections.contains(index) {
                return self.add_address(index, remote);
            }
        }
        self.statistics.discarded += 1;
    }

    /// The peer of a connection was heard from another address.
    fn add_address(&mut self, index: usize, remote: SocketAddr) {
        let connection = &mut self.connections[index];
        let current = connection.route.remote;
        self.statistics.rebindings += 1;
        if connection.addresses.len() >= MAX_ADDRESSES
            && let Some(at) = connection.addresses.iter().position(|&it| it != current)
        {
            let departed = connection.addresses.remove(at);
            self.secured.remove(&departed);
        }
        connection.addresses.push(remote);
        self.secured.insert(remote, index);
    }
}
