//! Paths that are added, removed and replaced (RFC 5061).

use rexmit_core::trace::Tracer;

use super::{FULL, Sender};
use crate::PathState;

impl Sender {
    fn over_two_confirmed() -> Self {
        let mut s = Self::with(|_| ());
        s.add_confirmed_path();
        s
    }

    fn remove(&mut self, path: u8) {
        self.recovery.change_path(self.now, path, crate::PathChange::Removed, &mut Tracer::off());
    }

    fn lost_on(&self, path: u8) -> Vec<u64> {
        self.waiting_on(path)
    }
}

/// Data in flight over a path that ends is retransmitted over the other, one packet at once.
#[test]
fn data_that_was_under_way_over_a_removed_path_is_sent_over_another_at_once() {
    let mut s = Sender::over_two_confirmed();
    (0..4).for_each(|_| s.push_over(1, &[FULL])); // The window of path 1 is full.
    (0..3).for_each(|_| s.push_over(0, &[FULL]));
    s.remove(0);
    assert_eq!((s.lost_on(0), s.lost_on(1)), (vec![], vec![5, 6, 7]));
    assert_eq!((s.recovery.paths().data_path(), s.recovery.paths().primary()), (1, 1));
    assert_eq!(s.recovery.paths()[0].reach().state(), PathState::Removed);
    assert_eq!(s.recovery.outstanding().flight(0).packets, 0);
    s.recovery.begin_opportunity();
    assert_eq!((s.resend_over(0), s.resend_over(1)), (vec![], vec![5]));
    s.check();
    // An acknowledgement of data sent over it revives nothing.
    s.ack(7, &[]);
    assert_eq!(s.recovery.paths()[0].reach().state(), PathState::Removed);
    assert!(s.recovery.outstanding().is_empty());
    s.check();
}

/// A path in the place of a removed one starts from the initial state; data sent over its predecessor gives
/// no sample.
#[test]
fn a_path_in_the_place_of_another_begins_anew() {
    let mut s = Sender::over_two_confirmed();
    s.push_over(0, &[FULL]);
    s.push_over(0, &[FULL]);
    s.remove(0);
    let now = s.now;
    s.recovery.open_path(Some((now, 0)), FULL);
    assert_eq!(s.recovery.paths()[0].reach().state(), PathState::Unconfirmed);
    assert_eq!(s.recovery.paths().data_path(), 1);
    s.check();
    s.now += std::time::Duration::from_millis(70);
    s.ack(1, &[]);
    s.check();
    assert_eq!(s.timer(0).rtt().srtt(), None);
    s.path_probed(0);
    s.make_primary(0);
    assert_eq!(s.recovery.paths().data_path(), 0);
    s.recovery.begin_opportunity();
    assert_eq!(s.resend_over(1), [2]);
    s.ack(2, &[]);
    s.check();
}

/// A redirected path retransmits at once, whatever its window was; one path is enough.
#[test]
fn a_redirected_path_sends_again_at_once_and_forgets_what_was_measured() {
    let mut s = Sender::with(|_| ());
    s.push_full(1);
    s.now += std::time::Duration::from_millis(70);
    s.ack(1, &[]);
    assert!(s.timer(0).rtt().srtt().is_some());
    s.push_full(3);
    let now = s.now;
    s.recovery.change_path(
        now,
        0,
        crate::PathChange::Redirected { packet: FULL },
        &mut Tracer::off(),
    );
    assert_eq!(s.timer(0).rtt().srtt(), None);
    assert_eq!(s.lost_on(0), [2, 3, 4]);
    assert_eq!(s.recovery.next_timeout(), None);
    assert_eq!(s.recovery.paths()[0].reach().state(), PathState::Active);
    s.recovery.begin_opportunity();
    assert_eq!(s.resend_over(0)[0], 2);
    s.check();
}
