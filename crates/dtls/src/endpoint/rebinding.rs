//! Peers whose UDP port changes, because a NAT forgot the old one.
//!
//! The library has no connection IDs (RFC 9146), so a record from a port without a connection is tried with the
//! connections of the same IP address. If one can decrypt it, SCTP gets the packet with the new address, and validates
//! that address before it sends data there (RFC 9260 §5.4). So an observer cannot redirect data by sending a copy of a
//! record from another address.

use std::net::SocketAddr;

use rexmit_core::Instant;

use super::{Arrival, Endpoint};
use crate::connection::MAX_ADDRESSES;
use crate::record::{admissible, records};

/// The most connections of one IP address that a record is tried with. If more peers are behind one NAT, those with
/// higher ports are not found.
const MAX_TRIED: usize = 16;

impl Endpoint {
    pub(super) fn on_unknown_address(&mut self, now: Instant, arrival: Arrival, datagram: &[u8]) {
        let remote = arrival.route.remote;
        let ip = remote.ip();
        let is_one = |datagram: &&[u8]| records(datagram).nth(1).is_none();
        let records = admissible(datagram, false)
            .filter(|records| records.len() == datagram.len())
            .filter(is_one);
        let Some(records) = records.filter(|_| remote.port() != 0) else {
            self.statistics.discarded += 1;
            return;
        };
        let ports = SocketAddr::new(ip, 0)..=SocketAddr::new(ip, u16::MAX);
        // A connection has several addresses; it is tried at the latest one, and so once.
        let is_latest = |&(address, &index): &(&SocketAddr, &usize)| {
            self.connections[index].route.remote == *address
        };
        let found = self.secured.range(ports).filter(is_latest);
        let candidates: Vec<usize> = found.map(|(_, &index)| index).take(MAX_TRIED).collect();
        for index in candidates {
            if !self.connections[index].trials.take(now) {
                continue;
            }
            let belongs = self.advance_from(now, index, arrival, |connection| {
                connection.handle_packet(now, records)
            });
            if belongs && self.connections.contains(index) {
                return self.add_address(index, remote);
            }
        }
        self.statistics.discarded += 1;
    }

    /// The secured connection that a new handshake from `remote` replaces. If the peer of that connection has since
    /// sent from another address, a NAT has reassigned the port: the connection only loses the address, and `None` is
    /// returned.
    pub(super) fn give_up_address(&mut self, remote: SocketAddr) -> Option<usize> {
        let &index = self.secured.get(&remote)?;
        let connection = &mut self.connections[index];
        if connection.route.remote == remote {
            return Some(index);
        }
        connection.addresses.retain(|&it| it != remote);
        self.secured.remove(&remote);
        None
    }

    /// Called when a valid record of a connection came from another address: adds this address to it.
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
