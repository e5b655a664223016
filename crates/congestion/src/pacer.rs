//! Pacing (RFC 9002 §7.7): the packets of a window are spread over a round trip, so that they do not queue up
//! at the bottleneck.
//!
//! A pacer has a credit in bytes that grows at the pacing rate up to a burst. A packet may be sent while
//! there is any credit, and may overdraw it; then packets wait until the credit is one quantum, so that on a
//! fast path one timer expiry serves the packets of a millisecond.

use std::time::Duration;

use rexmit_core::Instant;

/// Windows of up to this many packets are not paced, so that the initial window may be sent at once (RFC 9002
/// §7.7, §7.2).
const UNPACED_PACKETS: u64 = 10;
/// The least burst, in packets.
const BURST_PACKETS: u64 = 10;
/// The packets of this time are sent together, so that the timer of a pacer expires at most a thousand times
/// a second.
const QUANTUM: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub(super) struct Pacer {
    /// The factor of the pacing rate over window per round trip.
    gain: f64,
    /// The round trip time; `None` before the first sample.
    rtt: Option<Duration>,
    /// Bytes that may be sent; negative after a packet that overdrew the credit.
    credit: f64,
    credit_at: Instant,
    /// The time until which packets have to wait.
    held_until: Option<Instant>,
}

impl Pacer {
    pub(super) const fn new(gain: f64) -> Self {
        Self { gain, rtt: None, credit: f64::INFINITY, credit_at: Instant::ZERO, held_until: None }
    }

    pub(super) fn set_rtt(&mut self, rtt: Option<Duration>) {
        self.rtt = rtt.or(self.rtt).filter(|rtt| !rtt.is_zero());
    }

    /// Called when a packet of `bytes` was sent within a window of `cwnd` bytes, of packets of `packet`
    /// bytes.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u32, cwnd: u64, packet: u64) {
        let rtt = self.rtt.filter(|_| cwnd > UNPACED_PACKETS * packet);
        let Some(rtt) = rtt else {
            (self.credit, self.credit_at) = ((BURST_PACKETS * packet) as f64, now);
            self.held_until = None;
            return;
        };
        let rate = self.gain * cwnd as f64 / rtt.as_secs_f64();
        let of_quantum = rate * QUANTUM.as_secs_f64();
        let burst = of_quantum.max((BURST_PACKETS * packet) as f64);
        let grown = rate * (now - self.credit_at).as_secs_f64();
        self.credit = (self.credit + grown).min(burst) - f64::from(bytes);
        self.credit_at = now;
        self.held_until = (self.credit <= 0.0).then(|| {
            let quantum = of_quantum.max(packet as f64);
            now + Duration::from_secs_f64((quantum - self.credit) / rate).max(MIN_WAIT)
        });
    }

    pub(super) fn release(&mut self, now: Instant) {
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
        }
    }

    /// The time until which packets have to wait; `None` if they need not.
    pub(super) const fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    /// Whether packets have to wait now, if they may exceed the credit by `beyond` bytes more than other
    /// packets.
    pub(super) fn is_held(&self, beyond: u64) -> bool {
        self.held_until.is_some() && self.credit <= -(beyond as f64)
    }
}

/// The least wait, so that time passes before a waiting packet is sent.
const MIN_WAIT: Duration = Duration::from_nanos(1);

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    fn pacer() -> Pacer {
        let mut pacer = Pacer::new(2.0);
        pacer.set_rtt(Some(RTT));
        pacer
    }

    /// Sends whenever the pacer allows it, until `end`; returns when each packet was sent.
    fn sent_until(pacer: &mut Pacer, start: Instant, end: Instant, cwnd: u64) -> Vec<Instant> {
        let (mut now, mut sent) = (start, Vec::new());
        while now < end {
            pacer.release(now);
            while !pacer.is_held(0) {
                pacer.on_sent(now, PACKET as u32, cwnd, PACKET);
                sent.push(now);
                assert!(sent.len() < 100_000, "nothing holds packets back");
            }
            now = pacer.held_until().expect("it is held");
        }
        sent
    }

    /// 100 packets per round trip of 100 ms, twice as fast: two per millisecond.
    #[test]
    fn a_large_window_is_sent_at_the_pacing_rate() {
        let end = Instant::from_millis(1000);
        let sent = sent_until(&mut pacer(), Instant::ZERO, end, 100 * PACKET);
        assert!((1990..=2020).contains(&sent.len()), "{}", sent.len());
    }

    #[test]
    fn a_burst_after_a_pause_is_bounded() {
        let mut pacer = pacer();
        sent_until(&mut pacer, Instant::ZERO, Instant::from_millis(100), 100 * PACKET);
        let after = Instant::from_millis(60_000);
        let sent = sent_until(&mut pacer, after, Instant::from_millis(60_100), 100 * PACKET);
        let at_once = sent.iter().filter(|at| **at == after).count() as u64;
        assert_eq!(at_once, BURST_PACKETS);
    }

    /// 10,000 packets per second and per direction do not take as many timers.
    #[test]
    fn a_timer_of_a_fast_path_is_for_the_packets_of_a_millisecond() {
        let end = Instant::from_millis(1000);
        let sent = sent_until(&mut pacer(), Instant::ZERO, end, 1000 * PACKET);
        let mut times = sent.clone();
        times.dedup();
        assert!(sent.len() > 19_000, "{}", sent.len());
        assert!(times.len() <= 1001, "{}", times.len());
    }

    #[test]
    fn a_small_window_is_not_paced_nor_one_of_an_unknown_round_trip() {
        let mut small = pacer();
        let mut unknown = Pacer::new(2.0);
        for _ in 0..UNPACED_PACKETS {
            small.on_sent(Instant::ZERO, PACKET as u32, UNPACED_PACKETS * PACKET, PACKET);
            unknown.on_sent(Instant::ZERO, PACKET as u32, 100 * PACKET, PACKET);
        }
        assert!(!small.is_held(0) && !unknown.is_held(0));
    }

    /// A thin stream may overdraw the credit by a packet more than others, and not by more.
    #[test]
    fn the_pacing_credit_may_be_overdrawn_by_a_packet() {
        let mut pacer = pacer();
        while !pacer.is_held(0) {
            pacer.on_sent(Instant::ZERO, PACKET as u32, 100 * PACKET, PACKET);
        }
        let mut beyond = 0;
        while !pacer.is_held(PACKET) {
            pacer.on_sent(Instant::ZERO, 100, 100 * PACKET, PACKET);
            beyond += 100;
        }
        assert!((100..=PACKET + 100).contains(&beyond), "{beyond}");
    }
}
