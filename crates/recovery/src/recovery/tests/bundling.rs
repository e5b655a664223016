//! Outstanding units bundled with a retransmission: profile `lksctp` (Petlund 2009 §3).

use super::{BASE, Sender};
use crate::RecoveryConfig;

fn lksctp() -> Sender {
    Sender::with(|config| *config = RecoveryConfig::profile("lksctp").expect("a profile"))
}

impl Sender {
    /// Three small packets, of which the first is declared lost and retransmitted with the third.
    fn resend_with_company(&mut self) {
        for _ in 0..5 {
            self.push(&[100]);
        }
        for end in [2, 3, 4] {
            self.ack(0, &[(2, end)]);
        }
        assert_eq!(self.next_lost(0), Some(BASE + 1));
        assert_eq!(self.resend_bundled(), [[1], [5]]);
    }
}

/// One packet is in flight, with two units; the packet whose unit was retransmitted is not.
#[test]
fn a_bundled_unit_is_in_flight_once() {
    let mut s = lksctp();
    s.resend_with_company();
    assert_eq!((s.flight(), s.recovery.outstanding().user_bytes_in_flight()), ((1, 200), 2 * 84));
    let counted = s.recovery.statistics().retransmitted;
    assert_eq!((counted.fast_retransmit, counted.bundled, counted.timeout), (1, 1, 0));
    s.ack(5, &[]);
    assert_eq!((s.flight(), s.t3()), ((0, 0), None));
}

/// RFC 9260 §6.3.1 C5 holds for it, too.
#[test]
fn a_bundled_unit_makes_no_sample() {
    let mut s = lksctp();
    s.resend_with_company();
    s.at(700).ack(5, &[]);
    let srtt = s.timer(0).rtt().srtt().expect("units 2 to 4 were samples");
    assert!(srtt.is_zero(), "all at once, at 0 ms");
}

/// A duplicate report counts a spurious copy by its cause.
#[test]
fn a_spurious_copy_is_counted_by_its_cause() {
    let mut s = lksctp();
    s.resend_with_company();
    s.report(5);
    let spurious = s.recovery.statistics().spurious;
    assert_eq!((spurious.bundled, spurious.total()), (1, 1));
}

/// RFC 9260 §6.3.3 E3 takes only what timed out.
#[test]
fn the_standard_bundles_nothing() {
    let mut s = Sender::new();
    s.push_full(5);
    for end in [2, 3, 4] {
        s.ack(0, &[(2, end)]);
    }
    assert_eq!(s.resend_bundled(), [vec![1], vec![]]);
}
