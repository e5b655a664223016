//! Assigns captured packets to connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::packet::{Protocol, TransportPacket};

/// The sender of a message: the side that opened the connection, or the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Sender {
    /// The side that opened the connection (`c2s` in files).
    #[serde(rename = "c2s")]
    Client,
    /// The side that accepted it (`s2c` in files).
    #[serde(rename = "s2c")]
    Server,
}

/// The protocol and the ends of a connection, ordered by address.
type Key = (Protocol, SocketAddr, SocketAddr);

/// The connections of a capture, numbered from 0 in the order of their first packets.
#[derive(Debug, Default)]
pub struct Connections {
    connections: Vec<Ends>,
    /// The number of the latest connection between two ends.
    present: BTreeMap<Key, usize>,
}

/// The ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The transport protocol of the connection.
    pub protocol: Protocol,
    /// The side that opened the connection; if that was not captured, the sender of the first captured packet.
    pub client: SocketAddr,
    /// The side that accepted the connection.
    pub server: SocketAddr,
    /// [`TransportPacket::opening`] of the packet that opened it, if captured.
    opening: Option<u32>,
}

impl Connections {
    /// The number of the connection of `packet`, and the side that sent it. If `packet` is the first of a connection,
    /// that gets the next number.
    pub fn assign(&mut self, packet: &TransportPacket) -> (usize, Sender) {
        let ends = (packet.source, packet.destination);
        let key = (packet.protocol, ends.0.min(ends.1), ends.0.max(ends.1));
        let place = self.present.get(&key).copied();
        // The same ports again: a new connection.
        let place = place.filter(|&place| !self.connections[place].is_replaced_by(packet));
        let place = place.unwrap_or_else(|| {
            self.connections.push(Ends::of(packet));
            self.connections.len() - 1
        });
        self.present.insert(key, place);
        let is_client = packet.source == self.connections[place].client;
        (place, if is_client { Sender::Client } else { Sender::Server })
    }

    /// The ends of a connection that [`assign`](Self::assign) has returned.
    #[must_use]
    pub fn ends(&self, place: usize) -> Option<&Ends> {
        self.connections.get(place)
    }
}

impl Ends {
    fn of(first: &TransportPacket) -> Self {
        let (client, server) = if first.answers_opening() {
            (first.destination, first.source)
        } else {
            (first.source, first.destination)
        };
        Self { protocol: first.protocol, client, server, opening: first.opening() }
    }

    fn is_replaced_by(&self, packet: &TransportPacket) -> bool {
        let new = packet.opening();
        new.is_some()
            && new != self.opening
            // Both sides of an association may send INIT at the same time (RFC 9260 §5.2.1).
            && (packet.protocol == Protocol::Tcp || packet.source == self.client)
    }
}
