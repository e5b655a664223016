//! T3-rtx of a path: when it expires, thin or not (RFC 9260 §6.3.2, Petlund 2009 §5.2).
//!
//! A running timer keeps both deadlines, and which one counts is decided when it is looked at: a stream that
//! becomes thick leaves the mechanisms at once.

use rexmit_core::Instant;

/// T3-rtx of a path, and its latest expiries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct T3 {
    running: Option<Running>,
    /// The earliest unit outstanding when the timer last expired over a loss; `u64::MAX` before.
    expired_over: u64,
    /// Expiries over that unit that did not double the timeout.
    linear: u8,
}

/// A running timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Running {
    pub(crate) started_at: Instant,
    /// When it expires.
    pub(crate) standard: Instant,
    /// When it expires while the stream of the earliest unit outstanding is thin.
    pub(crate) thin: Instant,
}

impl Default for T3 {
    fn default() -> Self {
        Self { running: None, expired_over: u64::MAX, linear: 0 }
    }
}

impl Running {
    /// When it expires, if that is the same thin or thick.
    #[inline]
    pub(crate) fn only(&self) -> Option<Instant> {
        (self.standard == self.thin).then_some(self.standard)
    }
}

impl T3 {
    #[inline]
    pub(crate) const fn running(&self) -> Option<&Running> {
        self.running.as_ref()
    }

    #[inline]
    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) const fn start(&mut self, running: Running) {
        self.running = Some(running);
    }

    pub(crate) const fn stop(&mut self) {
        self.running = None;
    }

    /// Whether the timer expired before with `earliest` as the earliest unit outstanding.
    pub(crate) const fn has_expired_over(&self, earliest: u64) -> bool {
        self.expired_over == earliest
    }

    /// The timer expired over a loss, with `earliest` as the earliest unit outstanding.
    pub(crate) const fn on_expired_over(&mut self, earliest: u64) {
        self.expired_over = earliest;
    }

    /// Whether an expiry over `earliest` does not double the timeout: while thin, up to `bound` for the same
    /// unit, so that a dead path is not flooded (Petlund 2009 §5.3). Counts it.
    pub(crate) const fn take_linear(&mut self, earliest: u64, is_thin: bool, bound: u8) -> bool {
        if bound == 0 {
            return false;
        }
        if !self.has_expired_over(earliest) {
            self.linear = 0;
        }
        let is_linear = is_thin && self.linear < bound;
        self.linear += is_linear as u8;
        is_linear
    }

    /// The path leads another way: its expiries are forgotten.
    pub(crate) fn forget_expiries(&mut self) {
        *self = Self { running: self.running, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_timer_has_one_deadline_if_both_are_the_same() {
        let [started_at, standard, thin] = [0, 1000, 300].map(Instant::from_millis);
        let mut t3 = T3::default();
        assert!(!t3.is_running() && t3.running().is_none());
        t3.start(Running { started_at, standard, thin });
        assert_eq!(t3.running().map(Running::only), Some(None));
        t3.start(Running { started_at, standard, thin: standard });
        assert_eq!(t3.running().map(Running::only), Some(Some(standard)));
        t3.stop();
        assert!(!t3.is_running());
    }

    /// Petlund 2009 §5.3: per unit, and only while thin.
    #[test]
    fn linear_timeouts_are_bounded_per_unit() {
        let expire = |t3: &mut T3, unit, is_thin| {
            let is_linear = t3.take_linear(unit, is_thin, 2);
            t3.on_expired_over(unit);
            is_linear
        };
        let mut t3 = T3::default();
        assert_eq!(
            [7, 7, 7, 7].map(|unit| expire(&mut t3, unit, true)),
            [true, true, false, false]
        );
        assert!(t3.has_expired_over(7) && !t3.has_expired_over(8));
        assert!(expire(&mut t3, 8, true), "another unit");
        assert!(!expire(&mut t3, 8, false), "thick");
        assert!(expire(&mut t3, 8, true), "that did not count");
        assert!(!T3::default().take_linear(7, true, 0), "none");
    }

    #[test]
    fn another_way_forgets_expiries_and_runs_on() {
        let at = Instant::from_millis(9);
        let mut t3 = T3::default();
        t3.start(Running { started_at: at, standard: at, thin: at });
        t3.on_expired_over(7);
        t3.forget_expiries();
        assert!(t3.is_running() && !t3.has_expired_over(7));
    }
}
