//! Permission to send: rules B and D of RFC 9260 §6.1, §7.2.1.

use super::{FULL, Sender};

/// RFC 9260 §6.1 B: the window may be exceeded by less than a packet, by one packet.
#[test]
fn the_window_is_exceeded_by_one_packet_at_most() {
    let table = [(1000, 4), (900, 5), (999, 5), (500, 8), (501, 8), (4000, 1)];
    for (bytes, packets) in table {
        let mut s = Sender::bursting();
        assert_eq!(s.fill_with(bytes), packets, "units of {bytes}");
        let limit = s.cwnd() + u64::from(bytes) - 1;
        assert!(s.flight().1 <= limit, "units of {bytes}");
    }
}

/// RFC 9260 §6.1 D: Max.Burst packets, whatever the window, until something happens.
#[test]
fn a_burst_is_limited_per_opportunity() {
    let mut s = Sender::with(|config| config.max_burst = std::num::NonZeroU8::new(3));
    assert_eq!(s.fill_with(100), 3);
    assert_eq!(s.fill_with(100), 0);
    s.recovery.begin_opportunity();
    assert_eq!(s.fill_with(100), 3);
}

/// A burst counts packets, not units.
#[test]
fn a_burst_counts_packets() {
    let mut s = Sender::with(|config| config.max_burst = std::num::NonZeroU8::new(2));
    s.push(&[100, 100, 100, 100]);
    assert!(s.has_room_for_new(0));
    s.push(&[100]);
    assert!(!s.has_room_for_new(0));
}

#[test]
fn a_burst_of_zero_is_unlimited() {
    assert_eq!(Sender::bursting().fill_with(100), 40);
}

/// RFC 9260 §7.2.1, §7.2.3: one packet is in flight after a timeout, however small, until
/// something is acknowledged.
#[test]
fn after_a_timeout_one_packet_is_in_flight_until_an_acknowledgement() {
    let mut s = Sender::bursting();
    s.push(&[100]);
    s.push(&[FULL]);
    s.expire();
    assert_eq!(s.resend(), [1], "the second does not fit");
    assert_eq!(s.resend(), [0; 0]);
    assert!(!s.has_room_for_new(0));
    s.at(1050).ack(0, &[]);
    assert_eq!(s.resend(), [0; 0], "nothing was acknowledged");
    s.at(1100).ack(1, &[]);
    assert_eq!(s.resend(), [2]);
}

/// lksctp does not wait.
#[test]
fn without_that_rule_the_window_alone_counts() {
    let mut s = Sender::with(|config| config.single_packet_after_timeout = false);
    s.push(&[100]);
    s.push(&[FULL]);
    s.expire();
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.resend(), [2], "100 bytes are in flight, and the window has 1000");
}

/// RFC 9260 §6.1 C: new units wait while one packet may exceed the window for retransmissions.
#[test]
fn lost_data_is_sent_before_new_data() {
    let mut s = Sender::bursting();
    s.push_full(4);
    for end in [2, 3, 4] {
        s.ack(0, &[(2, end)]);
    }
    assert!(!s.has_room_for_new(0));
    assert_eq!(s.resend(), [1]);
    assert!(s.has_room_for_new(0));
}

/// A packet that was begun and stays empty has no effect.
#[test]
fn an_empty_packet_is_not_sent() {
    let mut s = Sender::new();
    let packet = s.recovery.packet(0, false, 0);
    assert!(!packet.end(&mut s.recovery, s.now, &mut rexmit_core::trace::Tracer::off()));
    assert_eq!((s.t3(), s.flight()), (None, (0, 0)));
    assert_eq!(s.recovery.statistics().packets, 0);
    assert_eq!(s.fill(), 4, "nor does it count in the burst");
}
