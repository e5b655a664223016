//! Fast recovery: whether one is in progress, and what must be acknowledged before the next may begin (RFC
//! 9260 §7.2.4, RFC 6582 §3.2, RFC 6675 §5.1).

/// The fast recovery of an association, and those of its paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastRecovery {
    phase: Phase,
    /// Bytes sent by limited transmit, which do not count when the window is reduced (RFC 5681 §3.2 step 2).
    beyond_window: u64,
    /// With split fast retransmit, the exit of the recovery that each path is in; empty with one path.
    paths: Box<[Option<u64>]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// No recovery is in progress, and no earlier recovery or timeout delays the next one.
    #[default]
    Open,
    /// In a recovery until `exit`, the highest unit sent when it began, is acknowledged.
    Recovering { exit: u64 },
    /// After a recovery or a timeout: until `recover` is acknowledged, a TCP begins no other recovery.
    Done { recover: u64 },
}

impl FastRecovery {
    pub(crate) fn set_paths(&mut self, count: usize) {
        let known = self.paths.iter().copied().chain(std::iter::repeat(None));
        self.paths = known.take(if count > 1 { count } else { 0 }).collect();
    }

    /// Whether the association is in a recovery.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        matches!(self.phase, Phase::Recovering { .. })
    }

    /// Whether `path` is in a recovery: the association's, or one of its own.
    #[inline]
    pub(crate) fn is_on_path(&self, path: u8) -> bool {
        self.is_on() || self.is_on_path_alone(path)
    }

    /// Whether `path` is in a recovery of its own.
    #[inline]
    pub(crate) fn is_on_path_alone(&self, path: u8) -> bool {
        self.paths.get(usize::from(path)).is_some_and(Option::is_some)
    }

    /// The highest unit of the association's recovery.
    pub(crate) const fn exit(&self) -> Option<u64> {
        match self.phase {
            Phase::Recovering { exit } => Some(exit),
            Phase::Open | Phase::Done { .. } => None,
        }
    }

    /// `recover`: the highest unit sent when a recovery last began or the timer expired.
    pub(crate) const fn recover(&self) -> Option<u64> {
        match self.phase {
            Phase::Open => None,
            Phase::Recovering { exit: recover } | Phase::Done { recover } => Some(recover),
        }
    }

    pub(crate) const fn begin(&mut self, highest: u64) {
        self.phase = Phase::Recovering { exit: highest };
        self.beyond_window = 0;
    }

    pub(crate) fn begin_on_path(&mut self, path: u8, highest: u64) {
        if let Some(exit) = self.paths.get_mut(usize::from(path)) {
            *exit = Some(highest);
        }
    }

    /// Called when everything up to `cumulative` is acknowledged. Returns whether that ends the recovery.
    pub(crate) fn on_acked(&mut self, cumulative: u64) -> bool {
        let is_over = self.exit().is_some_and(|exit| cumulative >= exit);
        if is_over {
            self.leave();
        }
        is_over
    }

    /// Reports that `earliest` is now the lowest outstanding unit of `path`; `None` if the path has none.
    /// Returns whether that ends the recovery of the path.
    pub(crate) fn on_path_acked(&mut self, path: u8, earliest: Option<u64>) -> bool {
        let Some(exit) = self.paths.get_mut(usize::from(path)) else { return false };
        let is_over = exit.is_some_and(|exit| earliest.is_none_or(|earliest| earliest > exit));
        if is_over {
            *exit = None;
        }
        is_over
    }

    /// Ends the recovery before it is complete, because of a timeout or because the path was removed.
    pub(crate) const fn leave(&mut self) {
        if let Phase::Recovering { exit } = self.phase {
            self.phase = Phase::Done { recover: exit };
        }
    }

    pub(crate) fn leave_on_path(&mut self, path: u8) {
        if let Some(exit) = self.paths.get_mut(usize::from(path)) {
            *exit = None;
        }
    }

    /// Called when the timer expired over a loss, with `highest` the highest unit sent.
    pub(crate) const fn on_timeout(&mut self, highest: u64) {
        self.phase = Phase::Done { recover: highest };
    }

    /// Forgets the current recovery, because nothing was lost in it: the next loss begins a new one.
    pub(crate) const fn forget(&mut self) {
        self.phase = Phase::Open;
    }

    pub(crate) const fn beyond_window(&self) -> u64 {
        self.beyond_window
    }

    pub(crate) const fn on_beyond_window(&mut self, bytes: u64) {
        self.beyond_window += bytes;
    }

    /// Counts data sent beyond the window as ordinary data from now on.
    pub(crate) const fn forget_beyond_window(&mut self) {
        self.beyond_window = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_ends_with_its_highest_unit_and_is_remembered() {
        let mut recovery = FastRecovery::default();
        assert_eq!((recovery.is_on(), recovery.recover()), (false, None));
        recovery.begin(10);
        assert!(!recovery.on_acked(9) && recovery.is_on());
        assert!(recovery.on_acked(10) && !recovery.is_on());
        assert_eq!(recovery.recover(), Some(10));
        recovery.forget();
        assert_eq!(recovery.recover(), None);
    }

    #[test]
    fn a_timeout_ends_a_recovery_and_moves_its_point() {
        let mut recovery = FastRecovery::default();
        recovery.begin(10);
        recovery.on_timeout(20);
        assert_eq!((recovery.is_on(), recovery.recover()), (false, Some(20)));
    }

    #[test]
    fn paths_recover_by_themselves() {
        let mut recovery = FastRecovery::default();
        recovery.begin_on_path(0, 5);
        assert!(!recovery.is_on_path(0), "one path has the association's");
        recovery.set_paths(2);
        recovery.begin_on_path(1, 5);
        assert_eq!([0, 1].map(|path| recovery.is_on_path(path)), [false, true]);
        assert!(!recovery.on_path_acked(1, Some(5)));
        assert!(recovery.on_path_acked(1, Some(6)));
        recovery.begin_on_path(1, 9);
        assert!(recovery.on_path_acked(1, None), "nothing is outstanding");
    }

    /// RFC 6582 §3.2: data sent before a recovery ended has to be acknowledged before the next one begins.
    #[test]
    fn a_recovery_that_is_left_incomplete_is_remembered_until_nothing_was_lost() {
        let mut recovery = FastRecovery::default();
        recovery.leave();
        assert_eq!(recovery.recover(), None, "there was none");
        recovery.begin(10);
        assert_eq!(recovery.exit(), Some(10));
        recovery.leave();
        assert_eq!((recovery.exit(), recovery.recover()), (None, Some(10)));
        assert!(!recovery.on_acked(20), "it is over");
        recovery.forget();
        assert_eq!(recovery.recover(), None);
    }

    /// RFC 5681 §3.2 step 2.
    #[test]
    fn data_that_was_sent_beyond_the_window_counts_until_the_next_recovery() {
        let mut recovery = FastRecovery::default();
        (0..2).for_each(|_| recovery.on_beyond_window(1000));
        assert_eq!(recovery.beyond_window(), 2000);
        recovery.begin(10);
        assert_eq!(recovery.beyond_window(), 0);
        recovery.on_beyond_window(1000);
        recovery.forget_beyond_window();
        assert_eq!(recovery.beyond_window(), 0);
    }

    #[test]
    fn a_path_that_is_added_leaves_the_recoveries_of_others() {
        let mut recovery = FastRecovery::default();
        recovery.set_paths(2);
        recovery.begin_on_path(1, 5);
        recovery.set_paths(3);
        assert_eq!([0, 1, 2].map(|path| recovery.is_on_path_alone(path)), [false, true, false]);
        recovery.leave_on_path(1);
        assert!(!recovery.is_on_path(1));
        recovery.begin(9);
        assert!(recovery.is_on_path(2) && !recovery.is_on_path_alone(2), "the association's");
    }
}
