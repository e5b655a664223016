//! The initiator's side of the setup: INIT or COOKIE ECHO, how often and how soon it is retransmitted, and the RTT
//! samples from its answer (RFC 9260 §5.1).

use std::time::Duration;

use rexmit_core::Instant;

use super::timers::Deadline;

/// The shortest timeout of INIT and COOKIE ECHO.
const MIN_SETUP_TIMEOUT: Duration = Duration::from_millis(10);

/// The first timeout of INIT and COOKIE ECHO with `setup_by_rtt`, before a round-trip time is known.
const FIRST_SETUP_TIMEOUT: Duration = Duration::from_millis(250);

/// New INITs sent after a stale cookie before giving up.
const MAX_STALE_COOKIES: u32 = 3;

/// State of the setup while INIT or COOKIE ECHO awaits its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    /// Whether the chunk is to be sent.
    is_owed: bool,
    /// Retransmissions of the present chunk after an RTO.
    attempts: u32,
    /// Earlier retransmissions of the chunk, timed by the round-trip time, which Max.Init.Retransmits does not count.
    early_attempts: u32,
    /// When the chunk was first sent, for an RTT sample.
    sent_at: Option<Instant>,
    /// The round-trip time, if the setup uses a known one.
    rtt: Option<Duration>,
    /// Whether the chunk is retransmitted before the RTO, even without an RTT sample.
    is_eager: bool,
    /// Attempts with a new INIT after a stale cookie.
    stale_cookies: u32,
    t1: Deadline,
}

/// The result of an expiry of T1 (RFC 9260 §4 rules 2 and 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum T1Expiry {
    /// Retransmit the chunk.
    Repeat,
    /// Retransmit it before the RTO; this does not count as a path error.
    RepeatEarly,
    GiveUp,
}

impl Setup {
    /// The state in which INIT is pending. `rtt` sets T1 if the setup uses a known round-trip time; otherwise, if it
    /// `is_eager`, T1 begins with [`FIRST_SETUP_TIMEOUT`].
    pub(super) const fn new(rtt: Option<Duration>, is_eager: bool) -> Self {
        Self {
            is_owed: true,
            attempts: 0,
            early_attempts: 0,
            sent_at: None,
            rtt,
            is_eager,
            stale_cookies: 0,
            t1: Deadline::OFF,
        }
    }

    /// The state after INIT ACK arrived: COOKIE ECHO is pending. `measured` is the SRTT.
    pub(super) fn answered(&self, measured: Option<Duration>, by_rtt: bool) -> Self {
        let rtt = measured.filter(|_| by_rtt || self.rtt.is_some()).or(self.rtt);
        Self { stale_cookies: self.stale_cookies, ..Self::new(rtt, self.is_eager) }
    }

    /// The state after the peer reported a stale cookie: a new INIT is pending (RFC 9260 §5.2.6). `None`
    /// after [`MAX_STALE_COOKIES`].
    pub(super) fn restarted(&self) -> Option<Self> {
        let stale_cookies = self.stale_cookies + 1;
        (stale_cookies <= MAX_STALE_COOKIES)
            .then_some(Self { stale_cookies, ..Self::new(self.rtt, self.is_eager) })
    }

    /// Holds the chunk back until [`Self::release`], unless it was sent before.
    pub(super) const fn hold(&mut self) {
        self.is_owed = self.is_owed && self.sent_at.is_some();
    }

    /// Lets the chunk be sent, if it was held back.
    pub(super) const fn release(&mut self) {
        self.is_owed = self.is_owed || self.sent_at.is_none();
    }

    pub(super) const fn is_owed(&self) -> bool {
        self.is_owed
    }

    pub(super) const fn t1(&self) -> Deadline {
        self.t1
    }

    /// Called when the chunk was sent.
    pub(super) fn on_sent(&mut self, now: Instant, rto: Duration) {
        self.sent_at.get_or_insert(now);
        self.is_owed = false;
        self.t1 = Deadline::at(now + self.timeout(rto));
    }

    pub(super) fn on_t1(&mut self, rto: Duration, max_init_retransmits: u32) -> T1Expiry {
        self.t1 = Deadline::OFF;
        let is_early = self.early_timeout(rto).is_some();
        if is_early {
            self.early_attempts += 1;
        } else {
            self.attempts += 1;
        }
        if self.attempts > max_init_retransmits {
            return T1Expiry::GiveUp;
        }
        self.is_owed = true;
        if is_early { T1Expiry::RepeatEarly } else { T1Expiry::Repeat }
    }

    /// The RTT sample of a reply that arrives at `now`. If the chunk was retransmitted, the RTT known before is
    /// returned instead (Karn's algorithm), which ends the backoff.
    pub(super) fn round_trip(&self, now: Instant) -> Option<Duration> {
        let was_repeated = self.attempts > 0 || self.early_attempts > 0;
        let once = self.sent_at.filter(|_| !was_repeated);
        once.map(|sent_at| now - sent_at).or(self.rtt)
    }

    /// The additional cookie lifetime that a new INIT requests (Cookie Preservative), after a stale cookie.
    pub(super) fn cookie_preservative(&self, srtt: Option<Duration>) -> Option<Duration> {
        (self.stale_cookies > 0).then(|| srtt.unwrap_or_default() + Duration::from_secs(1))
    }

    /// The T1 timeout; `rto` applies once the early retransmissions, timed by the round-trip time, are over.
    fn timeout(&self, rto: Duration) -> Duration {
        self.early_timeout(rto).unwrap_or(rto)
    }

    /// The timeout of T1 before an early retransmission, if it is shorter than `rto`: 1.5 times the known round-trip
    /// time, or [`FIRST_SETUP_TIMEOUT`] if the setup is eager and none is known. It doubles with each retransmission.
    fn early_timeout(&self, rto: Duration) -> Option<Duration> {
        let by_rtt = |rtt: Duration| rtt.saturating_add(rtt / 2).max(MIN_SETUP_TIMEOUT);
        let eager = self.is_eager.then_some(FIRST_SETUP_TIMEOUT);
        let first = self.rtt.map(by_rtt).or(eager).filter(|_| self.attempts == 0)?;
        let doubled = first.saturating_mul(1 << self.early_attempts.min(31));
        Some(doubled).filter(|&doubled| doubled < rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_chunk_that_is_held_is_pending_when_it_is_released_unless_it_was_sent() {
        let mut setup = Setup::new(None, false);
        setup.hold();
        assert!(!setup.is_owed());
        assert_eq!(setup.t1(), Deadline::OFF);
        setup.release();
        assert!(setup.is_owed());
        setup.on_sent(at(0), RTO);
        setup.release();
        assert!(!setup.is_owed());
        setup.on_t1(RTO, 8);
        setup.hold();
        assert!(setup.is_owed());
    }

    #[test]
    fn repeats_as_often_as_it_may_and_gives_up() {
        let mut setup = Setup::new(None, false);
        assert!(setup.is_owed());
        setup.on_sent(at(0), RTO);
        assert_eq!((setup.is_owed(), setup.t1()), (false, Deadline::at(at(1000))));
        assert_eq!(setup.on_t1(RTO, 1), T1Expiry::Repeat);
        assert_eq!((setup.is_owed(), setup.t1()), (true, Deadline::OFF));
        assert_eq!(setup.on_t1(RTO, 1), T1Expiry::GiveUp);
    }

    #[test]
    fn goes_by_a_known_round_trip_until_that_is_no_sooner_than_the_rto() {
        let mut setup = Setup::new(Some(Duration::from_millis(200)), true);
        for timeout in [300, 600] {
            setup.on_sent(at(0), RTO);
            assert_eq!(setup.t1(), Deadline::at(at(timeout)));
            assert_eq!(setup.on_t1(RTO, 0), T1Expiry::RepeatEarly);
        }
        setup.on_sent(at(0), RTO);
        assert_eq!(setup.t1(), Deadline::at(at(1000)));
        assert_eq!(setup.on_t1(RTO, 0), T1Expiry::GiveUp);
    }

    #[test]
    fn is_repeated_three_times_in_the_first_two_seconds_without_a_round_trip() {
        let mut setup = Setup::new(None, true);
        for timeout in [250, 500] {
            setup.on_sent(at(0), RTO);
            assert_eq!(setup.t1(), Deadline::at(at(timeout)));
            assert_eq!(setup.on_t1(RTO, 0), T1Expiry::RepeatEarly);
        }
        setup.on_sent(at(0), RTO);
        assert_eq!(setup.t1(), Deadline::at(at(1000)));
        assert_eq!(setup.on_t1(RTO, 0), T1Expiry::GiveUp, "those do not count");
        assert_eq!(setup.round_trip(at(1000)), None);
    }

    #[test]
    fn measures_only_what_was_sent_once() {
        let mut setup = Setup::new(None, false);
        setup.on_sent(at(100), RTO);
        assert_eq!(setup.round_trip(at(150)), Some(Duration::from_millis(50)));
        setup.on_t1(RTO, 8);
        setup.on_sent(at(1100), RTO);
        assert_eq!(setup.round_trip(at(1150)), None);
    }

    #[test]
    fn begins_again_after_a_stale_cookie_but_not_for_ever() {
        let srtt = Some(Duration::from_millis(30));
        let mut setup = Setup::new(None, false);
        assert_eq!(setup.cookie_preservative(srtt), None);
        for _ in 0..MAX_STALE_COOKIES {
            setup = setup.restarted().expect("another attempt").answered(None, false);
            assert_eq!(setup.cookie_preservative(srtt), Some(Duration::from_millis(1030)));
        }
        assert!(setup.restarted().is_none());
    }
}
