//! The properties of a packet that is offered to a path.

use std::net::{IpAddr, SocketAddr};

use rexmit_core::Ecn;

/// The properties of a packet on which its fate may depend.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offered {
    /// The length as an IP packet, in bytes.
    pub len: usize,
    /// The ECN field of the IP header. Only an ECN-capable packet is marked; another one is dropped instead.
    pub ecn: Ecn,
    /// The packet's flow, as from [`flow_key`]. Only [`PathModel::needs_flow`](super::PathModel::needs_flow) says whether
    /// the path uses it.
    pub flow: u64,
}

impl Offered {
    /// A packet of `len` bytes without ECN, of flow 0.
    #[must_use]
    pub const fn new(len: usize) -> Self {
        Self { len, ecn: Ecn::NotEct, flow: 0 }
    }
}

/// A number for the flow of these addresses, ports and IP protocol. Different flows have different numbers, except with a
/// probability of about 2⁻⁶⁴ per pair of flows.
///
/// ```
/// use rexmit_netsim::path::flow_key;
/// let [a, b] = ["10.0.0.1:5000", "10.0.0.2:5001"].map(|end| end.parse().unwrap());
/// assert_eq!(flow_key(a, b, 132), flow_key(a, b, 132));
/// assert_ne!(flow_key(a, b, 132), flow_key(b, a, 132));
/// ```
#[must_use]
pub fn flow_key(source: SocketAddr, destination: SocketAddr, ip_protocol: u8) -> u64 {
    let mut key = u64::from(ip_protocol);
    for end in [source, destination] {
        let bits = match end.ip() {
            IpAddr::V4(ip) => u128::from(ip.to_bits()),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        for part in [(bits >> 64) as u64, bits as u64, u64::from(end.port())] {
            key = mixed(key ^ part);
        }
    }
    key
}

/// The ports in the header of a transport protocol: of TCP, UDP and SCTP, whose first four bytes they are.
#[must_use]
pub fn header_ports(ip_protocol: u8, payload: &[u8]) -> Option<[u16; 2]> {
    const PROTOCOLS: [u8; 3] = [6, 17, 132];
    let &[a, b, c, d] = payload.first_chunk()?;
    PROTOCOLS.contains(&ip_protocol).then(|| [[a, b], [c, d]].map(u16::from_be_bytes))
}

/// A permutation of the 64-bit numbers in which each bit of the result depends on each bit of `x`.
pub(super) const fn mixed(x: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2⁶⁴ divided by the golden ratio
    let mut x = x.wrapping_add(ODD);
    let mut round = 0;
    while round < 3 {
        x = (x ^ (x >> 32)).wrapping_mul(ODD);
        round += 1;
    }
    x ^ (x >> 32)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_part_of_the_five_tuple_makes_another_flow_that_is_evenly_spread() {
        let end = |ip: u8, port| SocketAddr::from(([10, 0, 0, ip], port));
        let mut keys = BTreeSet::new();
        let mut buckets = [0_u32; 64];
        for (ip, port, protocol) in (0..16 * 16 * 4).map(|n| (n % 16, n / 16 % 16, n / 256)) {
            let key = flow_key(end(ip as u8, port), end(1, 5000), protocol as u8);
            keys.insert(key);
            buckets[(key % 64) as usize] += 1;
            keys.insert(flow_key(end(1, 5000), end(ip as u8, port), protocol as u8));
        }
        // Both directions of 10.0.0.1:5000 to itself are one flow, but that port is not among the ports.
        assert_eq!(keys.len(), 2 * 1024);
        // 16 on average, with a standard deviation of 4.
        assert!(buckets.iter().all(|&count| (3..36).contains(&count)), "{buckets:?}");
    }
}
