//! Measurement of a source's packets that arrive over UDP.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route};
use serde::Serialize;

use super::udp::{HEADER_BYTES, Header};

/// Counts the packets that one [`UdpSender`](super::UdpSender) sends to it. It never sends.
#[derive(Clone, Debug)]
pub struct UdpSink {
    sender: SocketAddr,
    stats: SinkStats,
    /// One more than the highest number received.
    end: u64,
    /// Arrival flags of the numbers up to [`UdpSink::MEMORY`] below the highest.
    seen: [u64; WORDS],
}

const WORDS: usize = 16;

/// Counters of received packets. Bytes are those of UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct SinkStats {
    /// Packets of the sender, whatever their content.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// Packets that had a sequence number, without duplicates.
    pub numbered: u64,
    /// Numbers that have not been received although a higher one has. Losses after the highest
    /// number are not included.
    pub missing: u64,
    /// Numbers received again, within the last [`UdpSink::MEMORY`]; older ones count as new.
    pub duplicates: u64,
    /// Numbers received after a higher one (RFC 4737 §3.3), without duplicates.
    pub reordered: u64,
    /// Packets whose header is damaged.
    pub damaged: u64,
    /// Packets from other senders.
    pub other_senders: u64,
    /// Delays of numbered packets, without duplicates.
    pub delay: DelayStats,
}

/// One-way delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct DelayStats {
    /// The number of delays.
    pub count: u64,
    /// The sum of the delays.
    pub sum: Duration,
    /// The shortest; zero without packets.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

impl DelayStats {
    /// The mean; zero without packets.
    #[must_use]
    pub fn mean(&self) -> Duration {
        if self.count == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos((self.sum.as_nanos() / u128::from(self.count)) as u64)
    }

    fn add(&mut self, delay: Duration) {
        self.min = if self.count == 0 { delay } else { self.min.min(delay) };
        self.max = self.max.max(delay);
        self.sum = self.sum.saturating_add(delay);
        self.count += 1;
    }
}

impl UdpSink {
    /// The distance below the highest number within which duplicates are distinguished from late
    /// packets.
    pub const MEMORY: u64 = (WORDS * 64) as u64;

    /// Counts the packets that come from `sender`.
    #[must_use]
    pub fn new(sender: SocketAddr) -> Self {
        Self { sender, stats: SinkStats::default(), end: 0, seen: [0; WORDS] }
    }

    /// Packets received so far.
    #[must_use]
    pub fn stats(&self) -> &SinkStats {
        &self.stats
    }

    fn on_numbered(&mut self, now: Instant, header: Header) {
        let (number, stats) = (header.number, &mut self.stats);
        if number >= self.end {
            let skipped = (number - self.end).min(Self::MEMORY);
            (0..skipped).for_each(|n| clear(&mut self.seen, number - 1 - n));
            self.end = number.saturating_add(1);
            mark(&mut self.seen, number);
        } else {
            let is_remembered = self.end - number <= Self::MEMORY;
            if is_remembered && is_marked(&self.seen, number) {
                stats.duplicates += 1;
                return;
            }
            if is_remembered {
                mark(&mut self.seen, number);
            }
            stats.reordered += 1;
        }
        stats.numbered += 1;
        stats.missing = self.end.saturating_sub(stats.numbered);
        stats.delay.add(now - header.sent);
    }
}

impl Machine for UdpSink {
    type Event = Infallible;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        if route.remote != self.sender {
            self.stats.other_senders += 1;
            return;
        }
        self.stats.packets += 1;
        self.stats.bytes += packet.len() as u64;
        if let Some(header) = packet.first_chunk::<HEADER_BYTES>() {
            match Header::decode(header) {
                Some(header) => self.on_numbered(now, header),
                None => self.stats.damaged += 1,
            }
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Route> {
        None
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

const fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize % WORDS, 1 << (number % 64))
}

fn mark(seen: &mut [u64; WORDS], number: u64) {
    let (word, bit) = place(number);
    seen[word] |= bit;
}

fn clear(seen: &mut [u64; WORDS], number: u64) {
    let (word, bit) = place(number);
    seen[word] &= !bit;
}

fn is_marked(seen: &[u64; WORDS], number: u64) -> bool {
    let (word, bit) = place(number);
    seen[word] & bit != 0
}
