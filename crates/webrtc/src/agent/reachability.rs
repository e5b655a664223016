//! Whether the peer receives packets at an address: a check of ICE can be sent with a third party's address as its
//! source, by a peer that has the credentials. An ICE-lite agent sends no checks of its own. Therefore, until DTLS has
//! shown that the peer is at an address, the bytes sent to it are limited to a multiple of those received from it (as
//! in RFC 9000 §8.1, with another factor).

use std::net::SocketAddr;

/// Bytes that may be sent for each byte received: the smallest check has 96, and is answered by 64 and a ClientHello,
/// which the DTLS library pads to 1200. With a lower limit, the handshake would begin a round trip later.
const AMPLIFICATION_LIMIT: usize = 14;

/// The packets exchanged with the address that data is sent to.
#[derive(Default)]
pub(super) struct Reachability {
    /// The last address from which DTLS authenticated the peer.
    shown: Option<SocketAddr>,
    /// The address whose packets are counted.
    address: Option<SocketAddr>,
    received: usize,
    sent: usize,
}

impl Reachability {
    /// Counts a datagram from one of the peer's addresses.
    pub(super) fn on_received(&mut self, source: SocketAddr, bytes: usize) {
        if self.shown == Some(source) {
            return;
        }
        // Of several addresses, only the last one is counted; the counts of the others are dropped.
        if self.address != Some(source) {
            *self = Self { shown: self.shown, address: Some(source), received: 0, sent: 0 };
        }
        self.received += bytes;
    }

    /// Called when the peer has sent a packet from `source` that proves that it receives packets at that address.
    pub(super) const fn on_shown(&mut self, source: SocketAddr) {
        self.shown = Some(source);
    }

    /// Grants a datagram, and counts it, unless the limit is reached. Returns whether it is granted.
    pub(super) fn grant(&mut self, destination: SocketAddr, bytes: usize) -> bool {
        if self.shown == Some(destination) {
            return true;
        }
        let is_within = self.address == Some(destination)
            && self.sent + bytes <= AMPLIFICATION_LIMIT * self.received;
        self.sent += if is_within { bytes } else { 0 };
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_a_multiple_of_what_came_from_there_until_the_peer_has_shown_itself() {
        let [one, two]: [SocketAddr; 2] =
            ["192.0.2.1:9", "192.0.2.2:9"].map(|it| it.parse().unwrap());
        let mut it = Reachability::default();
        assert!(!it.grant(one, 1));
        it.on_received(one, 100);
        assert!(it.grant(one, 1399) && !it.grant(one, 2) && it.grant(one, 1));
        it.on_received(one, 1);
        assert!(it.grant(one, 14) && !it.grant(one, 1));
        it.on_shown(one);
        assert!(it.grant(one, 100_000));
        // Elsewhere, it begins anew.
        it.on_received(two, 10);
        assert!(it.grant(two, 140) && !it.grant(two, 1) && it.grant(one, 100_000));
    }
}
