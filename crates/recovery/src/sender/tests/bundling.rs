//! Outstanding units taken along in a retransmission: profile `lksctp` (Petlund 2009 §3).

use rexmit_core::trace::Tracer;

use super::{BASE, Sender};
use crate::RecoveryConfig;

fn lksctp() -> Sender {
    Sender::with(|config| *config = RecoveryConfig::profile("lksctp").expect("a profile"))
}

impl Sender {
    /// Three small packets, of which the first is judged lost and sent again with the third.
    fn resend_with_company(&mut self) {
        for _ in 0..5 {
            self.push(&[100]);
        }
        for end in [2, 3, 4] {
            self.ack(0, &[(2, end)]);
        }
        self.recovery.begin_packet(0);
        let lost = self.recovery.next_to_resend(0).expect("1 is lost");
        assert!(self.recovery.resend(self.now, lost).is_some());
        let next = self.recovery.next_to_bundle(lost);
        assert_eq!(next, Some(BASE + 5));
        assert!(self.recovery.resend(self.now, BASE + 5).is_some());
        assert_eq!(self.recovery.next_to_bundle(BASE + 5), None);
        self.recovery.end_packet(self.now, &mut Tracer::off());
    }
}

/// One packet is in flight, with two units; the packet whose unit left again is not.
#[test]
fn a_unit_taken_along_is_in_flight_once() {
    let mut s = lksctp();
    s.resend_with_company();
    assert_eq!((s.flight(), s.recovery.user_bytes_in_flight()), ((1, 200), 2 * 84));
    let counted = s.recovery.statistics().retransmitted;
    assert_eq!((counted.fast_retransmit, counted.bundled, counted.timeout), (1, 1, 0));
    s.ack(5, &[]);
    assert_eq!((s.flight(), s.t3()), ((0, 0), None));
}

/// RFC 9260 §6.3.1 C5 holds for it, too.
#[test]
fn a_unit_taken_along_makes_no_sample() {
    let mut s = lksctp();
    s.resend_with_company();
    s.at(700).ack(5, &[]);
    let srtt = s.recovery.timer(0).rtt().srtt().expect("units 2 to 4 were samples");
    assert!(srtt.is_zero(), "all at once, at 0 ms");
}

/// A duplicate report tells its needless copy by its cause.
#[test]
fn a_needless_copy_is_counted_by_its_cause() {
    let mut s = lksctp();
    s.resend_with_company();
    s.recovery.on_duplicate_report(s.now, BASE + 5, &mut Tracer::off());
    let spurious = s.recovery.statistics().spurious;
    assert_eq!((spurious.bundled, spurious.total()), (1, 1));
}

/// RFC 9260 §6.3.3 E3 takes only what timed out.
#[test]
fn the_standard_takes_nothing_along() {
    let mut s = Sender::new();
    s.push_full(5);
    for end in [2, 3, 4] {
        s.ack(0, &[(2, end)]);
    }
    assert_eq!(s.recovery.next_to_bundle(BASE + 1), None);
}
