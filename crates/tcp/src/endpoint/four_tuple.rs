//! The four-tuple that identifies a connection, and hashes of it with secret keys.
//!
//! The remote half is chosen by the sender of a packet. With a secret key an attacker cannot choose values
//! that collide in a table, or guess values derived from the hash.

use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rexmit_core::{Route, Seed};
use siphasher::sip::{SipHasher13, SipHasher24};

use crate::wire::Header;

/// Addresses and ports of both ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FourTuple {
    pub(super) local: (IpAddr, u16),
    pub(super) remote: (IpAddr, u16),
}

impl FourTuple {
    pub(super) fn new(local: SocketAddr, remote: SocketAddr) -> Self {
        Self { local: (local.ip(), local.port()), remote: (remote.ip(), remote.port()) }
    }

    /// The four-tuple of a segment that arrived over `route`.
    pub(super) fn of_arrival(route: Route, header: &Header) -> Self {
        Self {
            local: (route.local.ip(), header.destination_port),
            remote: (route.remote.ip(), header.source_port),
        }
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local.into()
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.remote.into()
    }

    pub(super) const fn is_v6(&self) -> bool {
        self.remote.0.is_ipv6()
    }

    /// The route of its packets, directly over IP.
    pub(super) fn route(&self) -> Route {
        Route { local: (self.local.0, 0).into(), remote: (self.remote.0, 0).into() }
    }

    /// Whether a connection is possible: between two hosts' own addresses of one family (RFC 9293 §3.9.2.3, MUST-57),
    /// with ports, and not from an end to itself, which would answer its own answers forever.
    pub(super) fn is_possible(&self) -> bool {
        self.local.0.is_ipv4() == self.remote.0.is_ipv4()
            && is_one_host(self.local.0)
            && is_one_host(self.remote.0)
            && self.local.1 != 0
            && self.remote.1 != 0
            && self.local != self.remote
    }
}

/// Whether the address may be that of a single host. A broadcast address of a subnet cannot be recognized.
fn is_one_host(address: IpAddr) -> bool {
    !address.is_multicast()
        && !address.is_unspecified()
        && address != IpAddr::V4(Ipv4Addr::BROADCAST)
}

impl Hash for FourTuple {
    /// Hashes as few words as possible, because this is done for each segment.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (address, port) in [self.local, self.remote] {
            match address {
                IpAddr::V4(v4) => state.write_u64(u64::from(v4.to_bits()) << 16 | u64::from(port)),
                IpAddr::V6(v6) => {
                    state.write_u128(v6.to_bits());
                    state.write_u16(port);
                }
            }
        }
    }
}

/// The secret key of a hash.
#[derive(Clone, Copy)]
pub(super) struct SecretKey(u64, u64);

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(…)")
    }
}

impl SecretKey {
    /// The key of the part `label` of an endpoint.
    pub(super) fn new(seed: &Seed, label: &str) -> Self {
        let mut rng = seed.split(label).rng();
        Self(rng.u64(), rng.u64())
    }

    /// A keyed pseudo-random function of `value`, for secrets that are shown to others.
    pub(super) fn hash(&self, value: impl Hash) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
        value.hash(&mut hasher);
        hasher.finish()
    }
}

/// The hash of the tables. It needs fewer rounds, because its values cannot be observed from outside.
impl BuildHasher for SecretKey {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(local: &str, remote: &str) -> FourTuple {
        FourTuple::new(local.parse().unwrap(), remote.parse().unwrap())
    }

    #[test]
    fn only_two_ends_of_two_hosts_make_a_connection() {
        assert!(tuple("192.0.2.1:1", "192.0.2.2:1").is_possible());
        assert!(tuple("192.0.2.1:1", "192.0.2.1:2").is_possible());
        assert!(tuple("[2001:db8::1]:1", "[2001:db8::2]:1").is_possible());
        for not_one in ["224.0.0.1:1", "255.255.255.255:1", "0.0.0.0:1", "192.0.2.1:0"] {
            assert!(!tuple("192.0.2.2:1", not_one).is_possible(), "{not_one}");
            assert!(!tuple(not_one, "192.0.2.2:1").is_possible(), "{not_one}");
        }
        assert!(!tuple("[2001:db8::1]:1", "[ff02::1]:1").is_possible());
        assert!(!tuple("[2001:db8::1]:1", "[::]:1").is_possible());
        assert!(!tuple("[2001:db8::1]:1", "192.0.2.1:1").is_possible());
        assert!(!tuple("192.0.2.1:1", "192.0.2.1:1").is_possible());
    }

    #[test]
    fn every_part_and_the_key_change_the_hash() {
        let key = SecretKey::new(&Seed::from_u64(1), "test");
        let mut hashes: Vec<u64> = [
            ("192.0.2.1:1", "192.0.2.2:1"),
            ("192.0.2.3:1", "192.0.2.2:1"),
            ("192.0.2.1:2", "192.0.2.2:1"),
            ("192.0.2.1:1", "192.0.2.4:1"),
            ("192.0.2.1:1", "192.0.2.2:2"),
            ("192.0.2.2:1", "192.0.2.1:1"),
            ("[2001:db8::1]:1", "[2001:db8::2]:1"),
            ("[2001:db8::1]:1", "[2001:db8::2]:2"),
            ("[2001:db8::2]:1", "[2001:db8::1]:1"),
        ]
        .map(|(local, remote)| key.hash(tuple(local, remote)))
        .to_vec();
        hashes.push(key.hash((tuple("192.0.2.1:1", "192.0.2.2:1"), 1)));
        let other = SecretKey::new(&Seed::from_u64(1), "other");
        hashes.push(other.hash(tuple("192.0.2.1:1", "192.0.2.2:1")));
        let count = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), count);
    }
}
