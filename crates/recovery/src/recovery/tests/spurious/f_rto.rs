//! F-RTO over the sender (RFC 5682 §3.1): which packets are sent after a timeout, and what shows
//! that it was spurious.

use super::{FULL, Sender};
use crate::{RecoveryConfig, SetupEvent};

/// SCTP and TCP; units 2 to 11 in flight, a timeout, and 2 retransmitted.
fn timed_out() -> [(Sender, u64); 2] {
    let sctp = RecoveryConfig::profile("f-rto").expect("a profile");
    let tcp = RecoveryConfig::tcp_profile("tcp-sack").expect("a profile");
    let tcp = RecoveryConfig { spurious: sctp.spurious, ..tcp };
    [sctp, tcp].map(|config| {
        let mut s = Sender::wide(config);
        s.push_full(10);
        let at = s.expire();
        assert_eq!(s.resend(), [2]);
        assert!(s.resend().is_empty(), "one packet");
        assert!(s.examines_timeout());
        s.has_new = true;
        (s, at)
    })
}

/// Sends new data while permitted, and returns the number of packets.
fn send_new(s: &mut Sender) -> usize {
    let mut packets = 0;
    while s.recovery.may_send_new(0, 0) {
        s.push(&[FULL]);
        packets += 1;
    }
    packets
}

#[test]
fn data_sent_before_the_timeout_shows_it_was_spurious() {
    for (mut s, at) in timed_out() {
        s.at(at + 50).ack(2, &[]);
        assert!(s.resend().is_empty(), "new data come first");
        assert_eq!(send_new(&mut s), 2); // 12 and 13
        assert!(s.resend().is_empty());
        s.at(at + 60).ack(3, &[]);
        assert_eq!((s.events().timeouts, s.events().by_f_rto), (1, 1));
        assert!(!s.has_lost());
        assert_eq!(s.flight().1, 10_000, "4 to 13");
        // Data in flight, and the packet that was acknowledged.
        assert_eq!((s.cwnd(), s.ssthresh()), (11_000, 20_000));
        s.check();
        s.ack(13, &[]);
        s.check();
        assert_eq!(s.recovery.statistics().retransmitted.total(), 1);
    }
}

/// Small chunks, more of which would fit the window: one packet is retransmitted, then two with new data are
/// sent.
#[test]
fn no_more_is_sent_than_the_rules_say_though_the_window_has_room() {
    let f_rto = RecoveryConfig::profile("f-rto").expect("a profile");
    let mut s = Sender::wide(RecoveryConfig { single_packet_after_timeout: false, ..f_rto });
    (0..6).for_each(|_| s.push(&[300]));
    s.expire();
    assert_eq!((s.resend(), s.flight().1, s.cwnd()), (vec![2, 3, 4], 900, 1000));
    assert!(s.resend().is_empty());
    s.has_new = true;
    s.ack(4, &[]);
    for may_leave in [true, true, false] {
        assert_eq!(s.has_room_for_new(0), may_leave);
        if may_leave {
            s.push(&[300]);
        }
    }
}

/// The proof may be in a gap ack block: the first delayed packet was overtaken.
#[test]
fn a_gap_block_of_data_sent_before_shows_it_as_well() {
    for (mut s, at) in timed_out() {
        s.at(at + 50).ack(2, &[]);
        send_new(&mut s);
        s.at(at + 60).ack(2, &[(4, 4)]);
        assert_eq!(s.events().by_f_rto, 1);
        s.check();
    }
}

/// Only new data is acknowledged, so the missing data was lost.
#[test]
fn new_data_alone_show_a_loss_and_the_rest_is_retransmitted() {
    for (mut s, at) in timed_out() {
        s.at(at + 50).ack(2, &[]);
        assert_eq!(send_new(&mut s), 2);
        s.at(at + 150).ack(2, &[(12, 12)]);
        assert_eq!(s.events().total(), 0);
        assert_eq!(s.resend(), [3]);
        s.check();
    }
}

/// RFC 5682 §3.1 step 2.
#[test]
fn with_nothing_new_to_send_the_rest_is_retransmitted_at_once() {
    for (mut s, at) in timed_out() {
        s.has_new = false;
        s.at(at + 50).ack(2, &[]);
        assert_eq!(s.resend(), [3]);
        s.at(at + 60).ack(4, &[]);
        assert_eq!(s.events().total(), 0);
    }
}

/// RFC 5682 §3.1 step 1: the timer expired during a recovery.
#[test]
fn a_timeout_in_a_recovery_is_not_examined() {
    let mut s = Sender::measured_with("f-rto");
    s.push_full(10);
    s.overtake(2, 5);
    s.resend();
    s.expire();
    assert!(!s.examines_timeout());
}

/// A second timeout over the same unit begins F-RTO again.
#[test]
fn a_repeated_timeout_is_examined_again() {
    for (mut s, _) in timed_out() {
        let at = s.expire();
        assert_eq!(s.resend(), [2]);
        s.at(at + 50).ack(2, &[]);
        assert_eq!(send_new(&mut s), 2);
        s.at(at + 60).ack(3, &[]);
        assert_eq!((s.events().by_f_rto, s.ssthresh()), (1, s.ssthresh()));
    }
}

/// Data sent with the handshake is retransmitted with it, which ends F-RTO.
#[test]
fn a_setup_that_begins_again_ends_the_examination() {
    for (mut s, _) in timed_out() {
        let (now, tracer) = (s.now, &mut rexmit_core::trace::Tracer::off());
        s.recovery.on_setup(now, 0, SetupEvent::Restarted, tracer);
        assert!(!s.examines_timeout());
        assert_eq!(s.resend(), [2]);
        s.check();
    }
}
