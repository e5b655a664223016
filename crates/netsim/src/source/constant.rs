//! Packets of one size at one rate.

use std::time::Duration;

use rexmit_core::{BitRate, Instant, Rng, Seed};

use super::SourceError;

/// A constant bit rate: packets of constant size at constant intervals.
///
/// Packet n is sent at `start + phase + n · interval`, shifted randomly by at most `jitter ·
/// interval / 2` in either direction; rounding errors do not accumulate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ConstantRate {
    /// Bits of payload per second.
    pub rate: BitRate,
    /// Payload of a packet, in bytes.
    pub packet_bytes: usize,
    /// Time of the first packet, if the phase is not random.
    pub start: Instant,
    /// No packet is sent from this time on.
    pub stop: Instant,
    /// Whether the first packet is delayed by a random part of the interval, so that several
    /// sources are not synchronized.
    pub has_random_phase: bool,
    /// Range of the packets' random shift, as a share of the interval, from 0 to 1.
    pub jitter: f64,
}

impl Default for ConstantRate {
    /// 1000-byte packets at 448 kbit/s (56 per second), endless and without randomness.
    fn default() -> Self {
        Self {
            rate: BitRate::new(448_000).expect("above zero"),
            packet_bytes: 1000,
            start: Instant::ZERO,
            stop: Instant::FAR_FUTURE,
            has_random_phase: false,
            jitter: 0.0,
        }
    }
}

impl ConstantRate {
    /// A source of these packets, whose randomness comes from `seed`.
    ///
    /// # Errors
    /// If the packet size is zero, or the jitter is not in 0 to 1.
    pub fn source(&self, seed: &Seed) -> Result<ConstantRateSource, SourceError> {
        if self.packet_bytes == 0 || self.rate.bits_per_second() == 0 {
            return Err(SourceError::ZeroSize("a packet"));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            let (field, value) = ("the jitter", self.jitter);
            return Err(SourceError::OutOfRange { field, value, range: "from 0 to 1" });
        }
        let mut rng = seed.rng();
        let interval = self.rate.transmission_time(self.packet_bytes).as_nanos() as f64;
        let phase = if self.has_random_phase { rng.unit() * interval } else { 0.0 };
        let start = self.start + Duration::from_nanos(phase as u64);
        Ok(ConstantRateSource { config: *self, start, interval, next: 0, last: start, rng })
    }
}

/// The packets of a [`ConstantRate`].
#[derive(Clone, Debug)]
pub struct ConstantRateSource {
    config: ConstantRate,
    start: Instant,
    /// In nanoseconds, for the jitter only.
    interval: f64,
    next: u64,
    last: Instant,
    rng: Rng,
}

impl Iterator for ConstantRateSource {
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let ConstantRate { rate, packet_bytes, jitter, stop, .. } = self.config;
        let bits = u128::from(self.next) * packet_bytes as u128 * 8;
        let nanos = bits * 1_000_000_000 / u128::from(rate.bits_per_second());
        let mut at = self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        if jitter > 0.0 {
            // Half an interval either way at most: neighbours may meet but not overtake.
            let offset = (self.rng.unit() - 0.5) * jitter * self.interval;
            let distance = Duration::from_nanos(offset.abs() as u64);
            at = if offset < 0.0 { at - distance } else { at + distance };
        }
        self.next += 1;
        self.last = self.last.max(at); // The first packet does not leave before the start.
        let at = self.last;
        (at < stop).then_some((at, packet_bytes))
    }
}
