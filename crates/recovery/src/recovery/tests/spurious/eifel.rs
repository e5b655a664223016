//! Eifel detection in the sender (RFC 3522): units that wait to be retransmitted return to flight.

use super::Sender;
use crate::RecoveryConfig;

impl Sender {
    fn eifel() -> Self {
        let tcp = RecoveryConfig::tcp_profile("tcp-sack").expect("a profile");
        Self::wide(RecoveryConfig {
            tcp: tcp.tcp.eifel(Some(crate::SpuriousResponse::Undo)),
            ..tcp
        })
    }
}

/// Units 2 to 11 were sent at 100 ms, the timer expires at 1100 ms, and 2 is retransmitted.
#[test]
fn a_spurious_timeout_is_detected_by_the_first_acknowledgement_and_nothing_more_is_retransmitted() {
    let mut s = Sender::eifel();
    s.push_full(10);
    let at = s.expire();
    assert_eq!(s.resend(), [2]);
    s.at(at + 50).echo(100).ack(3, &[]);
    assert_eq!((s.events().timeouts, s.events().by_timestamps), (1, 1));
    assert!(!s.has_lost());
    assert_eq!(s.flight().1, 8000, "4 to 11 are on their way");
    // RFC 4015 §3.1 step 9: data in flight and what was acknowledged; back to 20 packets.
    assert_eq!((s.cwnd(), s.ssthresh()), (10_000, 20_000));
    s.check();
    s.ack(11, &[]);
    s.check();
    assert_eq!(s.recovery.statistics().retransmitted.total(), 1);
}

#[test]
fn an_echo_of_the_retransmission_shows_a_loss() {
    let mut s = Sender::eifel();
    s.push_full(10);
    let at = s.expire();
    s.resend();
    s.at(at + 50).echo(at).ack(3, &[]);
    s.at(at + 60).echo(100).ack(4, &[]);
    assert_eq!(s.events().total(), 0);
    assert!(s.has_lost());
}

/// After a fast retransmit of one unit, its original fills the gap; of two units, one may be lost.
#[test]
fn a_fast_retransmit_is_detected_if_nothing_else_was_declared_lost() {
    for (lowest, is_told) in [(3, true), (4, false)] {
        let mut s = Sender::eifel();
        s.push_full(10);
        s.at(200);
        for end in lowest..lowest + 3 {
            s.ack(1, &[(lowest, end)]);
        }
        assert!(!s.resend_all().is_empty());
        s.at(210).echo(100).ack(2, &[(lowest, lowest + 2)]);
        assert_eq!(s.events().fast_retransmits, u32::from(is_told));
    }
}

/// Losses among units returned to flight are detected by acknowledgements above.
#[test]
fn lost_data_among_the_resumed_is_found() {
    let mut s = Sender::eifel();
    s.push_full(10);
    let at = s.expire();
    s.resend();
    s.at(at + 50).echo(100).ack(2, &[]);
    s.overtake(3, 6);
    assert_eq!(s.resend_all(), [3]);
    s.check();
}

/// 3 and 4 were declared lost by reports, and not yet retransmitted when the timer expired over the rest.
/// After their return to flight they are evaluated again: still three are above.
#[test]
fn data_declared_lost_before_a_spurious_timeout_is_declared_lost_again_after_it() {
    let mut s = Sender::eifel();
    s.push_full(10);
    s.at(200).ack(1, &[(5, 7)]);
    assert_eq!(s.resend(), [2]);
    let at = s.expire();
    assert_eq!(s.resend(), [2]);
    s.at(at + 50).echo(100).ack(2, &[(5, 7)]);
    assert_eq!((s.events().timeouts, s.has_lost()), (1, false));
    assert_eq!(s.ack(2, &[(5, 8)]).newly_lost, 2);
    s.check();
}
