//! The timestamps option: TS.Recent, PAWS and the clock (RFC 7323 §3–§5).

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::serial::Serial;

use crate::wire::Header;

/// TS.Recent is invalid after this time (RFC 7323 §5.5: 24 days at a tick of 1 ms).
const RECENT_IS_VALID: Duration = Duration::from_secs(24 * 24 * 3600);

/// The tick of TSval.
pub(super) const TICK: Duration = Duration::from_millis(1);

/// The timestamps of a connection that agreed on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimestampState {
    /// TS.Recent.
    recent: u32,
    recent_since: Instant,
    /// TSval at the time of our SYN: no echo can be older.
    first_sent: u32,
}

/// TSval: milliseconds since an origin that differs for each connection (RFC 7323 §5.4).
pub(crate) fn timestamp_clock(now: Instant, offset: u32) -> u32 {
    ((now.as_nanos() / 1_000_000) as u32).wrapping_add(offset)
}

impl TimestampState {
    /// The state after the SYNs: the peer's SYN carried `recent`; ours carried, or could have carried, `first_sent`.
    pub(super) const fn new(now: Instant, recent: u32, first_sent: u32) -> Self {
        Self { recent, recent_since: now, first_sent }
    }

    /// TS.Recent, the timestamp to echo.
    pub(super) const fn recent(&self) -> u32 {
        self.recent
    }

    /// Whether a segment with this TSval is older than an accepted one (PAWS, RFC 7323 §5.3 R1).
    pub(super) fn is_old(&self, now: Instant, value: u32) -> bool {
        Serial(value).is_before(Serial(self.recent)) && now - self.recent_since <= RECENT_IS_VALID
    }

    /// Called when an acceptable segment that begins at or before the last acknowledged byte carried `value`
    /// (RFC 7323 §4.3 (2): with delayed ACKs the earliest timestamp is echoed).
    pub(super) fn on_segment(&mut self, now: Instant, value: u32) {
        let is_expired = now - self.recent_since > RECENT_IS_VALID;
        if is_expired || !Serial(value).is_before(Serial(self.recent)) {
            self.recent = value;
            self.recent_since = now;
        }
    }

    /// The round trip time from the timestamp echo in a segment (RFC 7323 §4), which is unambiguous also for
    /// retransmitted data. The echo of a delayed ACK is that of the earliest segment, so that the sample
    /// includes the delay.
    pub(super) fn round_trip_by_echo(&self, clock: u32, header: &Header) -> Option<Duration> {
        self.round_trip(clock, header.options.timestamps?.echo_reply)
    }

    /// The round trip time from an echo of our timestamp; `None` if we never sent it.
    pub(super) fn round_trip(&self, clock: u32, echo_reply: u32) -> Option<Duration> {
        let elapsed = clock.wrapping_sub(echo_reply);
        let since_first = clock.wrapping_sub(self.first_sent);
        (elapsed <= since_first).then(|| Duration::from_millis(elapsed.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn old_timestamps_are_recognized_across_the_wrap_for_24_days() {
        let state = TimestampState::new(Instant::ZERO, 5, 0);
        assert!(state.is_old(Instant::ZERO, 4));
        assert!(state.is_old(Instant::ZERO, u32::MAX));
        assert!(!state.is_old(Instant::ZERO, 5));
        assert!(!state.is_old(Instant::ZERO, 6));
        assert!(state.is_old(Instant::ZERO + 24 * DAY, 4));
        assert!(!state.is_old(Instant::ZERO + 25 * DAY, 4));
    }

    #[test]
    fn recent_never_goes_back_unless_it_has_expired() {
        let mut state = TimestampState::new(Instant::ZERO, 10, 0);
        state.on_segment(Instant::ZERO, 9);
        assert_eq!(state.recent(), 10);
        state.on_segment(Instant::ZERO, 12);
        assert_eq!(state.recent(), 12);
        state.on_segment(Instant::ZERO + 25 * DAY, 3);
        assert_eq!(state.recent(), 3);
    }

    #[test]
    fn an_echo_of_a_timestamp_never_sent_gives_no_sample() {
        let state = TimestampState::new(Instant::ZERO, 0, u32::MAX - 9);
        assert_eq!(state.round_trip(90, 40), Some(Duration::from_millis(50)));
        assert_eq!(state.round_trip(90, u32::MAX - 9), Some(Duration::from_millis(100)));
        assert_eq!(state.round_trip(90, 91), None);
        assert_eq!(state.round_trip(90, u32::MAX - 10), None);
    }
}
