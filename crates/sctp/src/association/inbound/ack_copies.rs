//! Second copies of the SACKs of thin streams: when the next one is due, and their budget.
//!
//! A sender cannot distinguish a lost SACK from lost data, and retransmits: with 5 % loss each way half of what it
//! retransmits had arrived. Every SACK reports all that has arrived, so that a later one, whatever caused it, is the
//! second copy of those before it.

use std::time::Duration;

use rexmit_core::Instant;

use super::super::timers::Deadline;
use crate::config::AckCopyConfig;

/// Packets with DATA within a round trip, at most, of a thin stream: as many as a sender with the profile `interactive`
/// has in flight while it is thin.
const MAX_PACKETS: u32 = 16;
/// A packet of at least this length belongs to a bulk transfer: senders of bulk data fill their packets.
const FULL_PACKET_BYTES: usize = 1024;
/// The round-trip time that is assumed before one was measured.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);
/// The number of packets after which older counts are halved.
const WINDOW: u32 = 512;
/// Packets that the count starts with, so that the budget allows copies of the first SACKs.
const HEAD_START: u32 = 16;

/// The copies of one association's SACKs.
#[derive(Debug)]
pub(super) struct AckCopies {
    config: AckCopyConfig,
    /// Whether copies are sent: not after a restart of the peer that no longer requests them.
    is_on: bool,
    /// When a copy is sent in a packet of its own.
    deadline: Deadline,
    /// Whether the last SACK has had no copy yet.
    is_pending: bool,
    rate: Rate,
    /// Whether the last packet with DATA was full.
    was_full: bool,
    /// Packets of both directions, without copies and packets that contain only copies.
    packets: u32,
    copies: u32,
    /// Copies sent, in packets of their own and bundled with DATA.
    sent: u64,
}

/// Packets with DATA received per round trip: the larger of the counts of the current round trip and the one before.
#[derive(Debug, Default)]
struct Rate {
    since: Instant,
    packets: u32,
    before: u32,
}

impl Rate {
    fn on_packet(&mut self, now: Instant, rtt: Duration) {
        let taken = now - self.since;
        if taken >= rtt {
            self.before = if taken < 2 * rtt { self.packets } else { 0 };
            (self.since, self.packets) = (now, 0);
        }
        self.packets = self.packets.saturating_add(1);
    }

    fn most(&self) -> u32 {
        self.packets.max(self.before)
    }
}

impl AckCopies {
    pub(super) fn new(config: AckCopyConfig) -> Self {
        Self {
            config,
            is_on: true,
            deadline: Deadline::OFF,
            is_pending: false,
            rate: Rate::default(),
            was_full: false,
            packets: HEAD_START,
            copies: 0,
            sent: 0,
        }
    }

    /// The state after a restart of the peer: that of `new`, if any, with the counters of `before`.
    pub(super) fn continuing(new: Option<Box<Self>>, mut before: Box<Self>) -> Box<Self> {
        let Some(mut new) = new else {
            before.is_on = false;
            before.stop();
            return before;
        };
        new.sent += before.sent;
        new
    }

    /// A packet of `bytes` with DATA has come over a path with this round-trip time.
    pub(super) fn on_data(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>) {
        self.rate.on_packet(now, rtt.unwrap_or(UNKNOWN_RTT));
        self.was_full = bytes >= FULL_PACKET_BYTES;
        self.on_packet();
    }

    /// A packet that is not a copy was received or sent.
    fn on_packet(&mut self) {
        if self.packets >= WINDOW {
            (self.packets, self.copies) = (self.packets / 2, self.copies.div_ceil(2));
        }
        self.packets += 1;
    }

    /// Called when a SACK was written. If it `has_news` and the stream is thin, its copy is scheduled; without news, it
    /// is itself the copy of the SACK before.
    pub(super) fn on_sack_written(&mut self, now: Instant, has_news: bool) {
        self.sent += u64::from(self.is_pending && !has_news);
        let is_thin = !self.was_full && self.rate.most() <= MAX_PACKETS;
        self.is_pending = has_news && self.is_on && is_thin;
        self.deadline =
            if self.is_pending { Deadline::at(now + self.config.delay) } else { Deadline::OFF };
        if has_news {
            self.on_packet();
        }
    }

    /// The copy was not bundled with DATA in time. Returns whether the budget allows a packet for it; if not, the next
    /// DATA still carries it.
    pub(super) fn on_timeout(&mut self, now: Instant) -> bool {
        if self.deadline.instant() > now {
            return false;
        }
        self.deadline = Deadline::OFF;
        let wanted = (u64::from(self.copies) + 1) * 100;
        let allowed = u64::from(self.packets) * u64::from(self.config.packets_percent);
        let is_allowed = self.is_pending && wanted <= allowed;
        self.copies += u32::from(is_allowed);
        is_allowed
    }

    pub(super) const fn deadline(&self) -> Deadline {
        self.deadline
    }

    pub(super) const fn is_pending(&self) -> bool {
        self.is_pending
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// The peer has nothing more to send.
    pub(super) const fn stop(&mut self) {
        (self.is_pending, self.deadline) = (false, Deadline::OFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Option<Duration> = Some(Duration::from_millis(100));

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// One packet of 100 bytes every `interval_ms`, acknowledged at once: copies in packets of their own, of 1000.
    fn alone(config: AckCopyConfig, interval_ms: u64, bytes: usize) -> u32 {
        let mut copies = AckCopies::new(config);
        (0..1000).fold(0, |alone, n| {
            let now = at(1000 + n * interval_ms);
            copies.on_data(now, bytes, RTT);
            copies.on_sack_written(now, true);
            let is_sent = copies.on_timeout(now + config.delay);
            if is_sent {
                copies.on_sack_written(now + config.delay, false);
                assert!(!copies.is_pending());
            }
            alone + u32::from(is_sent)
        })
    }

    #[test]
    fn each_sack_of_a_thin_stream_has_a_copy_and_none_of_others() {
        let config = AckCopyConfig::default();
        assert_eq!(alone(config, 50, 150), 1000);
        assert_eq!(alone(config, 7, 150), 1000, "15 packets within a round trip");
        // Copies in the first round trip are sent before the rate is known.
        assert_eq!(alone(config, 5, 150), MAX_PACKETS, "20 packets within a round trip");
        assert_eq!(alone(config, 50, FULL_PACKET_BYTES), 0, "full packets");
    }

    #[test]
    fn the_budget_is_a_share_of_the_packets_of_both_directions() {
        for percent in [0, 10, 25, 50] {
            let config = AckCopyConfig::default().packets_percent(percent);
            // 2000 packets with DATA and SACKs, and the head start.
            let most = (2000 + HEAD_START) * u32::from(percent) / 100;
            let sent = alone(config, 50, 150);
            let least = (most - most / 25).min(1000);
            assert!((least..=most).contains(&sent), "{sent} at {percent} %");
        }
    }

    #[test]
    fn a_later_sack_is_the_copy_of_the_one_before_and_gets_one_itself() {
        let mut copies = AckCopies::new(AckCopyConfig::default());
        let half = Duration::from_micros(500);
        copies.on_data(at(10), 100, RTT);
        copies.on_sack_written(at(10), true);
        copies.on_data(at(10) + half, 100, RTT);
        copies.on_sack_written(at(10) + half, true);
        assert!(!copies.on_timeout(at(11)), "the second has put it off");
        assert_eq!(copies.deadline(), Deadline::at(at(11) + half));
        assert!(copies.on_timeout(at(11) + half));
        copies.on_sack_written(at(11) + half, false);
        assert_eq!((copies.sent(), copies.deadline()), (1, Deadline::OFF));
    }

    #[test]
    fn what_was_sent_before_a_restart_counts_and_no_more_is_sent_to_a_peer_that_does_not_ask() {
        let used = || {
            let mut copies = AckCopies::new(AckCopyConfig::default());
            copies.on_data(at(10), 100, RTT);
            copies.on_sack_written(at(10), true);
            copies.on_sack_written(at(11), false);
            copies
        };
        let mut ended = AckCopies::continuing(None, Box::new(used()));
        ended.on_sack_written(at(20), true);
        assert_eq!((ended.sent(), ended.is_pending()), (1, false));
        let mut asked = AckCopies::continuing(Some(Box::new(used())), Box::new(used()));
        asked.on_sack_written(at(20), true);
        assert_eq!((asked.sent(), asked.is_pending()), (2, true));
    }

    #[test]
    fn without_a_budget_the_next_data_carries_the_copy() {
        let mut copies = AckCopies::new(AckCopyConfig::default().packets_percent(0));
        copies.on_data(at(10), 100, RTT);
        copies.on_sack_written(at(10), true);
        assert!(!copies.on_timeout(at(11)));
        assert!(copies.is_pending() && !copies.deadline().is_armed());
        copies.on_sack_written(at(20), false);
        assert_eq!((copies.sent(), copies.is_pending()), (1, false));
    }
}
