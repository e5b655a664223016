//! The round-trip times of peers that the endpoint had an association with, so that the setup of the
//! next one need not wait a second after a loss (RFC 9040 §5.1).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The most peers that are remembered; beyond it, the entry that was updated the longest time ago is forgotten.
pub(crate) const MAX_REMEMBERED: usize = 256;

/// The remembered round trip times; see the module. An outdated value causes a spurious INIT, or delays its
/// retransmission.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    known: BTreeMap<IpAddr, (Duration, u64)>,
    /// The number of updates so far; each entry stores it as its age.
    notes: u64,
}

impl RoundTrips {
    /// The smoothed round-trip time to `peer`.
    pub(crate) fn note(&mut self, peer: IpAddr, srtt: Duration) {
        let is_full = self.known.len() >= MAX_REMEMBERED && !self.known.contains_key(&peer);
        let oldest = self.known.iter().min_by_key(|(_, (_, note))| *note).map(|(&peer, _)| peer);
        if let Some(oldest) = oldest.filter(|_| is_full) {
            self.known.remove(&oldest);
        }
        self.notes += 1;
        self.known.insert(peer, (srtt, self.notes));
    }

    /// The stored round-trip time of `peer`.
    pub(crate) fn of(&self, peer: IpAddr) -> Option<Duration> {
        self.known.get(&peer).map(|&(srtt, _)| srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_keeps_the_newest() {
        let peer = |n: u32| IpAddr::from(n.to_be_bytes());
        let mut known = RoundTrips::default();
        for n in 0..2 * MAX_REMEMBERED as u32 {
            known.note(peer(n), Duration::from_millis(n.into()));
            known.note(peer(0), Duration::from_millis(7));
        }
        assert_eq!(known.known.len(), MAX_REMEMBERED);
        assert_eq!(known.of(peer(0)), Some(Duration::from_millis(7)));
        let newest = 2 * MAX_REMEMBERED as u32 - 1;
        assert_eq!(known.of(peer(newest)), Some(Duration::from_millis(newest.into())));
        assert_eq!(known.of(peer(1)), None);
    }
}
