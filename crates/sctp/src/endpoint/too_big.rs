//! ICMP "Fragmentation Needed" and ICMPv6 "Packet Too Big": the association that they concern, and whether
//! they are plausible (RFC 9260 §10, RFC 8899 §4.6).

use rexmit_core::{Instant, Route};

use super::Endpoint;
use crate::association::Association;

impl Endpoint {
    /// Handles an ICMP report of a router: a packet sent over `route` was larger than the MTU of its next
    /// link, `mtu` bytes of IP. `quote` is the quoted part of the SCTP packet, from the common header on.
    ///
    /// The report is used only if its ports and verification tag are those of an association with path MTU
    /// discovery ([`path_mtu`](crate::AssociationConfig::path_mtu)), if `mtu` is below what was sent, and if
    /// packets of the configured size fit. Others are ignored and counted. Discovery also works without any
    /// report.
    pub fn handle_packet_too_big(&mut self, now: Instant, route: Route, mtu: usize, quote: &[u8]) {
        let found = Quote::read(quote).and_then(|quote| {
            let index = self.lookup.by_address(route.remote, quote.remote_port)?;
            let slot = self.table.get(index)?;
            quote.is_of(&slot.association).then_some(index)
        });
        let take = |index| self.call(now, index, |it, cx| it.on_too_big(cx, route, mtu));
        if !found.and_then(take).unwrap_or(false) {
            self.around.statistics.too_big_refused += 1;
        }
    }
}

/// The quoted part of a packet of ours (RFC 9260 §10, rule 6).
struct Quote {
    local_port: u16,
    remote_port: u16,
    tag: u32,
}

impl Quote {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[s0, s1, d0, d1, t0, t1, t2, t3] = bytes.first_chunk()?;
        Some(Self {
            local_port: u16::from_be_bytes([s0, s1]),
            remote_port: u16::from_be_bytes([d0, d1]),
            tag: u32::from_be_bytes([t0, t1, t2, t3]),
        })
    }

    fn is_of(&self, association: &Association) -> bool {
        let identity = association.identity();
        (identity.local_port, identity.remote_port) == (self.local_port, self.remote_port)
            && association.peer().tag() == self.tag
            && self.tag != 0
    }
}
