//! The largest packet that a path carries, found by probes (DPLPMTUD, RFC 8899 §5, §6.2).
//!
//! Owns the state machine of one path; the paths write the probes, and loss recovery reports the fate of
//! packets. A probe is a HEARTBEAT with a PAD chunk (RFC 4820) and never has data, so that its loss delays no
//! data and is not counted as congestion. Probing begins when a packet is full and more data waits: an
//! association of small messages sends no probe.
//!
//! A DATA chunk is never larger than the base size allows; larger packets bundle several. A chunk cannot be
//! fragmented again (RFC 9260 §6.9); so each fits any size used later, and IP never fragments.
//! Retransmissions are sent in packets of the base size: if larger ones are lost (a black hole), their data
//! still arrives.

use std::time::Duration;

use rexmit_core::Instant;

use crate::config::{MAX_PACKET_BYTES, PathMtuConfig};
use crate::statistics::PathMtuState;

/// Common path MTUs (RFC 8899 §5.3.2): of IPv6, tunnels, PPPoE, FDDI, and jumbo frames. Ethernet's, which is tried
/// first, is not among them.
const COMMON_MTUS: [usize; 15] =
    [1280, 1320, 1360, 1380, 1400, 1420, 1440, 1460, 1480, 1492, 2000, 4352, 8000, 9000, 32_000];
/// The MTU of Ethernet, in bytes: the first size probed, unless ICMP reported another.
const ETHERNET_MTU: usize = 1500;
/// The time after which the base size is probed again if it could not be confirmed.
const ERROR_RETRY: Duration = Duration::from_secs(60);
/// The most large packets in flight whose fate is watched.
const MAX_WATCHED: usize = 16;
/// Large packets lost in a row, after which the path's size is probed again. Fewer are attributed to congestion.
const BLACK_HOLE_LOSSES: u8 = 3;

/// The bounds of a search, as sizes of SCTP packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    /// BASE_PLPMTU, and MIN_PLPMTU.
    base: usize,
    /// MAX_PLPMTU.
    max: usize,
    /// Bytes of headers below SCTP.
    below: usize,
    max_probes: u8,
    raise_timer: Duration,
}

impl Bounds {
    /// The bounds of a path whose packets have `below` bytes of IP and UDP headers.
    pub(super) fn new(config: &PathMtuConfig, max_packet_bytes: usize, below: usize) -> Self {
        let below = below + usize::from(config.record_bytes);
        let base = max_packet_bytes & !3;
        let max = usize::from(config.max_mtu).saturating_sub(below).min(MAX_PACKET_BYTES) & !3;
        let PathMtuConfig { max_probes, raise_timer, .. } = *config;
        Self { base, max: max.max(base), below, max_probes, raise_timer }
    }

    /// The SCTP packet in an IP packet of `mtu` bytes.
    const fn packet_in(&self, mtu: usize) -> usize {
        mtu.saturating_sub(self.below) & !3
    }

    /// The sizes between `confirmed` and `too_large` that are worth a probe, ascending.
    fn between(&self, confirmed: usize, too_large: usize) -> Vec<usize> {
        let common = COMMON_MTUS.into_iter().chain([ETHERNET_MTU]).map(|mtu| self.packet_in(mtu));
        let within = |size: &usize| (confirmed + 1..too_large.min(self.max + 1)).contains(size);
        let mut sizes: Vec<usize> = common.chain([self.max]).filter(within).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// The states of RFC 8899 §5.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The base size is not confirmed yet.
    Base,
    Searching,
    /// The search is complete until the PMTU_RAISE_TIMER expires, which is checked only when a larger packet
    /// would help.
    SearchComplete {
        raise_at: Instant,
    },
    /// MAX_PROBES probes of the base size were lost in a row. The base size is probed again at `retry_at`.
    Error {
        retry_at: Instant,
    },
}

/// A probed size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Probe {
    /// PROBED_SIZE.
    size: usize,
    /// The nonce of all probes of this size: an answer to any of them confirms it.
    nonce: u64,
    /// PROBE_COUNT: probes of this size that were not answered in time.
    lost: u8,
    /// The PROBE_TIMER, while a probe is in flight.
    deadline: Option<Instant>,
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketFate {
    InFlight,
    Delivered,
    /// The packet was declared lost.
    Lost,
    /// Some of its chunks were also sent in other packets, or abandoned: their ACK does not prove that a
    /// packet of this size arrived.
    Unknown,
}

/// Packets larger than the base size, by a chunk of each.
#[derive(Clone, Debug, Default)]
struct LargePackets {
    /// Some of the large packets in flight, each identified by the TSN of its last chunk.
    in_flight: Vec<u64>,
    /// Large packets lost since one was delivered.
    lost: u8,
}

/// The search for the packet size of one path.
#[derive(Clone, Debug)]
pub(super) struct Discovery {
    bounds: Bounds,
    state: State,
    /// PLPMTU.
    confirmed: usize,
    /// The smallest size known not to pass.
    too_large: usize,
    /// A size between `confirmed` and `too_large` that a router has reported.
    reported: Option<usize>,
    probe: Option<Probe>,
    /// Whether a probe of the confirmed size is in flight, because packets of that size may no longer pass.
    is_suspect: bool,
    /// Whether a packet was full while more data waited, since the last size was confirmed or found too
    /// large.
    is_wanted: bool,
    large: LargePackets,
}

impl Discovery {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            state: State::Base,
            confirmed: bounds.base,
            too_large: bounds.max + 1,
            reported: None,
            probe: None,
            is_suspect: false,
            is_wanted: false,
            large: LargePackets { in_flight: Vec::new(), lost: 0 },
        }
    }

    /// The largest packet that may be sent now.
    pub(super) const fn packet_bytes(&self) -> usize {
        if self.is_suspect { self.bounds.base } else { self.confirmed }
    }

    /// The state, for statistics.
    pub(super) const fn state(&self) -> PathMtuState {
        match self.state {
            State::Base => PathMtuState::Base,
            State::Searching => PathMtuState::Searching,
            State::SearchComplete { .. } => PathMtuState::SearchComplete,
            State::Error { .. } => PathMtuState::Error,
        }
    }

    /// Called when a packet was full and more data waited, so that a larger packet would have carried more:
    /// continues the search for one, if it may be continued now.
    pub(super) fn want(&mut self, now: Instant) {
        if self.bounds.max <= self.bounds.base {
            return;
        }
        match self.state {
            State::SearchComplete { raise_at } if raise_at <= now && !self.is_max() => {
                self.state = State::Searching;
                self.too_large = self.bounds.max + 1;
            }
            State::Error { retry_at } if retry_at <= now => self.state = State::Base,
            State::SearchComplete { .. } | State::Error { .. } => return,
            State::Base | State::Searching => {}
        }
        self.is_wanted = true;
    }

    const fn is_max(&self) -> bool {
        self.confirmed >= self.bounds.max
    }

    /// The size of the probe that is to be sent now.
    pub(super) fn due_probe(&self) -> Option<usize> {
        if let Some(probe) = self.probe {
            return probe.deadline.is_none().then_some(probe.size);
        } else if self.is_suspect {
            return Some(self.confirmed);
        } else if !self.is_wanted {
            return None;
        }
        match self.state {
            State::Base => Some(self.bounds.base),
            State::Searching => self.next_size(),
            State::SearchComplete { .. } | State::Error { .. } => None,
        }
    }

    /// The next size to probe: a reported one, else Ethernet's, then the largest, then the middle of the
    /// remaining ones.
    fn next_size(&self) -> Option<usize> {
        let sizes = self.bounds.between(self.confirmed, self.too_large);
        let ethernet = self.bounds.packet_in(ETHERNET_MTU);
        let reported = self.reported.filter(|size| self.is_open(*size));
        reported
            .or_else(|| sizes.contains(&ethernet).then_some(ethernet))
            .or_else(|| sizes.last().copied().filter(|_| self.too_large > self.bounds.max))
            .or_else(|| sizes.get(sizes.len() / 2).copied())
    }

    fn is_open(&self, size: usize) -> bool {
        (self.confirmed + 1..self.too_large).contains(&size)
    }

    /// The nonce of the next probe: `fresh`, unless the probe repeats a lost one.
    pub(super) fn next_nonce(&self, fresh: u64) -> u64 {
        self.probe.map_or(fresh, |probe| probe.nonce)
    }

    /// Called when a probe of `size` was sent. It counts as lost if it is not answered before `deadline`.
    pub(super) fn on_probe_sent(&mut self, size: usize, nonce: u64, deadline: Instant) {
        let lost = self.probe.map_or(0, |probe| probe.lost);
        self.probe = Some(Probe { size, nonce, lost, deadline: Some(deadline) });
    }

    /// When the PROBE_TIMER ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.probe?.deadline
    }

    /// Called when a HEARTBEAT ACK with this nonce arrived. Returns whether it answers a probe.
    pub(super) fn on_answered(&mut self, now: Instant, nonce: u64) -> bool {
        let Some(probe) = self.probe.take_if(|probe| probe.nonce == nonce) else { return false };
        if std::mem::take(&mut self.is_suspect) {
            self.large.lost = 0;
            return true;
        }
        self.confirmed = probe.size;
        self.search_on(now);
        true
    }

    /// Called when the PROBE_TIMER may have expired.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        let Some(probe) = &mut self.probe else { return };
        if probe.deadline.is_none_or(|deadline| deadline > now) {
            return;
        }
        probe.deadline = None;
        probe.lost += 1;
        if probe.lost < self.bounds.max_probes {
            return;
        }
        let size = probe.size;
        self.probe = None;
        if self.is_suspect {
            self.leave_black_hole();
        } else if self.state == State::Base {
            self.is_wanted = false;
            self.state = State::Error { retry_at: now + ERROR_RETRY };
        } else {
            self.too_large = size;
            self.search_on(now);
        }
    }

    /// Called when a size was confirmed or found too large. The next size is probed once a larger packet
    /// would help; if none remains, the search is complete.
    fn search_on(&mut self, now: Instant) {
        (self.state, self.is_wanted) = (State::Searching, false);
        if self.next_size().is_none() {
            self.reported = None;
            self.state = State::SearchComplete { raise_at: now + self.bounds.raise_timer };
        }
    }

    /// Called when packets of the confirmed size do not arrive anymore (a black hole, RFC 8899 §4.3): begins
    /// a new search below it, from the base size.
    fn leave_black_hole(&mut self) {
        self.too_large = self.confirmed;
        self.confirmed = self.bounds.base;
        (self.is_suspect, self.is_wanted, self.probe) = (false, true, None);
        self.large = LargePackets::default();
        self.state = State::Base;
    }

    /// Called when a packet larger than the base size was sent, with new data up to `tsn`.
    pub(super) fn on_large_sent(&mut self, tsn: u64) {
        if self.large.in_flight.len() < MAX_WATCHED {
            self.large.in_flight.push(tsn);
        }
    }

    /// Whether the fate of any large packet is watched.
    pub(super) const fn has_large(&self) -> bool {
        !self.large.in_flight.is_empty()
    }

    /// Called when T3-rtx of the path has expired. Large packets may be the reason, so none is sent until a probe is
    /// answered.
    pub(super) fn on_data_timeout(&mut self) {
        if !self.large.in_flight.is_empty() {
            self.suspect();
        }
    }

    /// Checks the fate of large packets: after too many losses without a delivery, none is sent until a probe
    /// is answered.
    pub(super) fn review(&mut self, fate: impl Fn(u64) -> PacketFate) {
        let LargePackets { in_flight, lost } = &mut self.large;
        let mut is_delivered = false;
        in_flight.retain(|&tsn| match fate(tsn) {
            PacketFate::InFlight => true,
            PacketFate::Delivered => {
                is_delivered = true;
                false
            }
            PacketFate::Lost => {
                *lost = lost.saturating_add(1);
                false
            }
            PacketFate::Unknown => false,
        });
        if is_delivered {
            *lost = 0;
        } else if *lost >= BLACK_HOLE_LOSSES {
            self.suspect();
        }
    }

    fn suspect(&mut self) {
        if self.confirmed > self.bounds.base && !self.is_suspect {
            (self.is_suspect, self.probe) = (true, None);
        }
    }

    /// Called when a router has reported that its next link takes packets of `mtu` bytes only (RFC 8899
    /// §4.6.2). It may be forged by a host on the path: it never makes packets smaller than the base size,
    /// and larger sizes are probed all the same. Returns whether it can be true.
    pub(super) fn on_too_big(&mut self, now: Instant, mtu: usize) -> bool {
        let size = self.bounds.packet_in(mtu);
        let sent = self.probe.map_or(self.confirmed, |probe| probe.size.max(self.confirmed));
        if size < self.bounds.base || size >= sent {
            return false;
        }
        let is_black_hole = size < self.confirmed;
        if is_black_hole {
            self.leave_black_hole();
        }
        self.too_large = size + 1;
        self.reported = (size > self.confirmed).then_some(size);
        if !is_black_hole {
            self.probe = None;
            self.search_on(now);
        }
        true
    }

    /// Ends discovery: nothing is probed any more.
    pub(super) fn stop(&mut self) {
        (self.probe, self.is_suspect, self.is_wanted) = (None, false, false);
    }
}

#[cfg(test)]
mod tests {
    use super::PacketFate::{Delivered, InFlight, Lost, Unknown};
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn bounds(max_mtu: u16) -> Bounds {
        Bounds::new(&PathMtuConfig::default().max_mtu(max_mtu), 1232, 28)
    }

    /// The size found on a path for packets of `mtu` bytes, and the number of probes.
    fn search(discovery: &mut Discovery, mtu: usize) -> (usize, u32) {
        let (mut now, mut probes) = (NOW, 0);
        discovery.want(now);
        while let Some(size) = discovery.due_probe() {
            probes += 1;
            assert!(probes < 100, "it ends");
            now += Duration::from_secs(1);
            discovery.on_probe_sent(size, u64::from(probes), now);
            if size + 28 <= mtu {
                assert!(discovery.on_answered(now, u64::from(probes)));
            } else {
                discovery.on_timeout(now);
            }
            discovery.want(now);
        }
        assert_eq!(discovery.state(), PathMtuState::SearchComplete);
        (discovery.packet_bytes(), probes)
    }

    /// An upper bound for any path: the base, Ethernet, the largest, and half of the table, each lost three times.
    #[test]
    fn every_path_is_measured_with_few_probes() {
        for max_mtu in [1300, 1500, 9000, 65_000] {
            for mtu in 1260..10_000 {
                let (found, probes) = search(&mut Discovery::new(bounds(max_mtu)), mtu);
                let most = mtu.min(max_mtu.into());
                assert!(found + 28 <= most && probes <= 20, "{mtu}: {found}, {probes}");
                // Between common sizes the largest of these is used.
                let common = COMMON_MTUS.into_iter().chain([ETHERNET_MTU, max_mtu.into(), 1260]);
                let best = common.filter(|&it| it <= most).max();
                assert_eq!(Some((found + 28) & !3), best.map(|it| it & !3), "{mtu}");
            }
        }
    }

    #[test]
    fn nothing_is_searched_above_the_largest_size() {
        let mut discovery = Discovery::new(bounds(1200));
        discovery.want(NOW);
        assert_eq!((discovery.due_probe(), discovery.packet_bytes()), (None, 1232));
    }

    fn at_ethernet() -> Discovery {
        let mut discovery = Discovery::new(bounds(1500));
        assert_eq!(search(&mut discovery, 1500).0, 1472);
        discovery
    }

    #[test]
    fn three_large_packets_lost_in_a_row_are_suspicious() {
        let cases = [
            (&[Lost, Lost, InFlight][..], 1472),
            (&[Lost, Lost, Unknown], 1472),
            (&[Lost, Lost, Lost, Delivered], 1472),
            (&[Lost, InFlight, Lost, Lost], 1232),
        ];
        for (fates, expected) in cases {
            let mut discovery = at_ethernet();
            (0..fates.len() as u64).for_each(|tsn| discovery.on_large_sent(tsn));
            discovery.review(|tsn| fates[tsn as usize]);
            assert_eq!(discovery.packet_bytes(), expected, "{fates:?}");
        }
    }

    /// Large packets are lost one after the other while small packets are delivered, so T3-rtx never expires.
    #[test]
    fn a_black_hole_is_left_without_a_timeout_of_data() {
        let mut discovery = at_ethernet();
        for tsn in 0..3 {
            assert_eq!(discovery.packet_bytes(), 1472);
            discovery.on_large_sent(tsn);
            discovery.review(|_| Lost);
        }
        assert_eq!(discovery.packet_bytes(), 1232);
        assert_eq!(search(&mut discovery, 1400).0, 1372);
        assert_eq!(discovery.bounds.max, 1472);
    }

    /// The packets were lost to congestion: the size is used again after one round trip.
    #[test]
    fn a_suspicion_ends_with_an_answer() {
        let mut discovery = at_ethernet();
        discovery.on_data_timeout();
        assert_eq!(discovery.packet_bytes(), 1472, "no large packet was in flight");
        discovery.on_large_sent(7);
        discovery.on_data_timeout();
        assert_eq!((discovery.packet_bytes(), discovery.due_probe()), (1232, Some(1472)));
        discovery.on_probe_sent(1472, 5, NOW);
        assert!(!discovery.on_answered(NOW, 6));
        assert!(discovery.on_answered(NOW, 5));
        assert_eq!((discovery.packet_bytes(), discovery.due_probe()), (1472, None));
    }

    #[test]
    fn few_large_packets_are_watched() {
        let mut discovery = at_ethernet();
        (0..1000).for_each(|tsn| discovery.on_large_sent(tsn));
        assert_eq!(discovery.large.in_flight.len(), MAX_WATCHED);
        discovery.review(|_| Delivered);
        assert!(!discovery.has_large());
    }

    /// Each report that is believed makes the range of sizes smaller, so that the number of forged ones is limited.
    #[test]
    fn reports_cannot_go_on_for_ever() {
        let mut discovery = Discovery::new(bounds(9000));
        search(&mut discovery, 9000);
        let believed = (1260..9000).rev().filter(|&mtu| discovery.on_too_big(NOW, mtu)).count();
        assert_eq!((believed, discovery.packet_bytes()), (1, 1232));
        assert_eq!(search(&mut discovery, 9000).0, 8996 - 28);
    }
}
