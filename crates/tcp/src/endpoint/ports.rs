//! Ephemeral ports by double hashing (RFC 6056 §3.3.4): for each peer they increase by one from a start that
//! others cannot predict, so that no port is used again before all others.

use std::net::{IpAddr, SocketAddr};

use rexmit_core::Seed;

use super::four_tuple::SecretKey;

/// The number of counters; the peers are distributed over them (TABLE_LENGTH).
const COUNTERS: usize = 1024;

/// The generator of ephemeral ports.
#[derive(Debug)]
pub(super) struct EphemeralPorts {
    first: u16,
    count: u32,
    offset_key: SecretKey,
    counter_key: SecretKey,
    counters: Box<[u32; COUNTERS]>,
}

impl EphemeralPorts {
    pub(super) fn new(seed: &Seed, (first, last): (u16, u16)) -> Self {
        let mut rng = seed.split("ephemeral counters").rng();
        let mut counters = Box::new([0; COUNTERS]);
        counters.fill_with(|| rng.u32());
        Self {
            first,
            count: u32::from(last - first) + 1,
            offset_key: SecretKey::new(seed, "ephemeral offset"),
            counter_key: SecretKey::new(seed, "ephemeral counter"),
            counters,
        }
    }

    /// The next port of `local` towards `remote` for which `is_free` holds; `None` if all are in use.
    pub(super) fn choose(
        &mut self,
        local: IpAddr,
        remote: SocketAddr,
        is_free: impl Fn(u16) -> bool,
    ) -> Option<u16> {
        let peer = (local, remote.ip(), remote.port());
        let offset = self.offset_key.hash(peer) as u32;
        let counter = &mut self.counters[self.counter_key.hash(peer) as usize % COUNTERS];
        for _ in 0..self.count {
            let port = self.first + (offset.wrapping_add(*counter) % self.count) as u16;
            *counter = counter.wrapping_add(1);
            if is_free(port) {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn remote(port: u16) -> SocketAddr {
        ([192, 0, 2, 2], port).into()
    }

    #[test]
    fn every_port_is_used_once_before_any_is_used_twice() {
        let mut ports = EphemeralPorts::new(&Seed::from_u64(1), (60_000, 60_099));
        let mut chosen: Vec<u16> =
            (0..100).filter_map(|_| ports.choose(LOCAL, remote(80), |_| true)).collect();
        chosen.sort_unstable();
        assert_eq!(chosen, (60_000..=60_099).collect::<Vec<_>>());
    }

    #[test]
    fn the_only_free_port_is_found_and_none_is_reported() {
        for range in [(1, 65_535), (65_535, 65_535), (65_000, 65_535)] {
            let mut ports = EphemeralPorts::new(&Seed::from_u64(1), range);
            assert_eq!(ports.choose(LOCAL, remote(80), |port| port == 65_535), Some(65_535));
            assert_eq!(ports.choose(LOCAL, remote(80), |_| false), None);
        }
    }

    #[test]
    fn peers_begin_at_different_places() {
        let mut ports = EphemeralPorts::new(&Seed::from_u64(1), (1, 65_535));
        let first: Vec<_> = (1..6).map(|p| ports.choose(LOCAL, remote(p), |_| true)).collect();
        assert!(first.windows(2).all(|pair| pair[0] != pair[1]), "{first:?}");
    }
}
