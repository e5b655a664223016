//! The probe timer with a second path, which takes over after T3-rtx has failed the first.

use super::recovery_timer::TIMED;
use super::*;
use crate::{CmtConfig, TimeoutKind};
use std::sync::Arc;

impl Sender {
    /// A sender with RTT samples on the first path, and a HEARTBEAT's RTT of 100 ms on the second.
    fn warm_over_two() -> Self {
        let mut s = Self::warm(|config| config.thin = TIMED);
        s.add_confirmed_path();
        for _ in 0..40 {
            let rtt = Duration::from_millis(100);
            s.heartbeat(1, rtt);
        }
        s
    }

    /// Lets T3-rtx of `path` expire; its data is retransmitted over the other path.
    fn fail_over(&mut self, path: u8) {
        self.expire_path(path, TimeoutKind::Loss);
        self.path_error(path, 5);
        assert_eq!(self.resend_over(1 - path).len(), 1);
    }

    /// Lets the next timer expire. Returns the time in microseconds, and the number of units retransmitted over `path`.
    fn repeat_next_over(&mut self, path: u8) -> (u64, usize) {
        let us = self.next_us().expect("something is due");
        self.after_us(us);
        self.timers();
        (us, self.resend_over(path).len())
    }
}

#[test]
fn data_that_fails_over_is_watched_from_when_it_is_sent() {
    let mut s = Sender::warm_over_two();
    s.push(&[SMALL]);
    s.after_us(1_500_000).fail_over(0);
    assert_eq!(s.repeat_next_over(1), (1_601_500, 1));
    assert_eq!(s.repeat_next_over(1), (1_703_000, 1));
    // The same when it waits for a while before it is sent.
    let mut s = Sender::warm_over_two();
    s.push(&[SMALL]);
    s.after_us(1_500_000).expire_path(0, TimeoutKind::Loss);
    assert_eq!(s.after_us(9_000_000).resend_over(1).len(), 1);
    assert_eq!(s.repeat_next_over(1), (9_101_500, 1));
}

/// With both paths dead, the silence continues: otherwise each expiry of T3-rtx would make the probe timer
/// retransmit for another second.
#[test]
fn a_path_without_an_ack_since_the_last_use_is_still_silent() {
    let mut s = Sender::warm_over_two();
    s.push(&[SMALL]);
    s.after_us(1_500_000).fail_over(0);
    s.after_us(4_000_000).fail_over(1);
    let mut repeats = Vec::new();
    for ms in 4000..6000 {
        s.after_us(1000 * ms).timers();
        repeats.extend(s.resend_over(0).into_iter().map(|_| ms));
    }
    let is_apart = |pair: &[u64]| pair[1] >= pair[0] + 101;
    assert!(repeats.len() > 15 && repeats.windows(2).all(is_apart), "{repeats:?}");
}

/// New data has a path of its own, or takes those that are not silent: the probes of another one have none.
#[test]
fn only_probes_of_the_path_of_new_data_have_new_data() {
    for (data_path, uses_all) in [(0, false), (1, false), (0, true)] {
        let mut s = Sender::warm_over_two();
        s.push(&[SMALL]);
        while s.next_us() < Some(4 * 101_500) {
            s.repeat_next_over(0);
        }
        s.recovery.state.paths.set_primary(data_path);
        s.recovery.state.paths.choose_data_path();
        if uses_all {
            Arc::make_mut(&mut s.recovery.state.config).sctp.cmt = Some(CmtConfig::default());
        }
        s.after_us(4 * 101_500).timers();
        let packet = s.recovery.packet(0, false, 0);
        assert_eq!(packet.probes_silence(), data_path == 0 && !uses_all);
    }
}

/// The ACK arrives sooner than any RTT of the second path, so it is for data sent over the first.
#[test]
fn a_late_ack_over_one_path_measures_no_other() {
    let mut s = Sender::warm_over_two();
    s.push(&[SMALL]);
    s.after_us(1_500_000).fail_over(0);
    s.after_us(1_550_000).ack_after_warm(1, &[]);
    s.after_us(2_000_000).push_over(1, &[SMALL]);
    assert_eq!(s.next_us(), Some(2_101_500));
}
