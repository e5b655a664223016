//! T3-rtx: rules R1–R4 and E1–E4 (RFC 9260 §6.3.2, §6.3.3).

use rexmit_core::trace::{SendCause, Tracer};

use super::{BASE, FULL, Next, Sender, TimeoutKind, UnitState};

/// RFC 9260 §6.3.2 R1.
#[test]
fn starts_with_the_first_packet_and_is_not_restarted_by_more() {
    let mut s = Sender::new();
    assert_eq!(s.t3(), None);
    s.at(10).push(&[FULL]);
    assert_eq!(s.t3(), Some(1010));
    s.at(500).push(&[FULL]);
    assert_eq!(s.t3(), Some(1010));
}

/// RFC 9260 §6.3.2 R2.
#[test]
fn stops_when_everything_is_acknowledged() {
    let mut s = Sender::new();
    s.push_full(2);
    s.at(100).ack(0, &[(2, 2)]);
    assert_eq!(s.t3(), Some(1000));
    s.at(200).ack(2, &[]);
    assert_eq!(s.t3(), None);
}

/// RFC 9260 §6.3.2 R3: the timer runs for a whole RTO from the ACK, for all data still outstanding.
#[test]
fn restarts_when_the_earliest_unit_is_acknowledged_and_only_then() {
    let mut s = Sender::new();
    s.push_full(4);
    let table = [
        (100, 0, vec![(3, 3)], 1000), // a later one
        (200, 1, vec![(3, 3)], 1200), // the earliest
        (300, 1, vec![(3, 4)], 1200), // a later one
        (400, 2, vec![(3, 4)], 400),  // everything
    ];
    for (ms, cumulative, blocks, expiry) in table {
        s.at(ms).ack(cumulative, &blocks);
        let want = (expiry != 400).then_some(expiry);
        assert_eq!(s.t3(), want, "after the SACK at {ms} ms");
    }
}

/// RFC 9260 §6.3.2 R3: the earliest that is *outstanding* counts, not the cumulative point.
#[test]
fn restarts_when_a_gap_block_acknowledges_the_earliest_outstanding_unit() {
    let mut s = Sender::new();
    s.push_full(3);
    s.abandon(1);
    s.at(100).ack(0, &[(2, 2)]);
    assert_eq!(s.t3(), Some(1100));
}

/// RFC 9260 §6.1, §7.2.4 rule 4: repeating the earliest outstanding unit restarts the timer.
#[test]
fn restarts_when_the_earliest_unit_is_retransmitted() {
    let mut s = Sender::new();
    s.push_full(4);
    for (ms, end) in [(100, 2), (110, 3), (120, 4)] {
        s.at(ms).ack(0, &[(2, end)]);
    }
    assert_eq!(s.t3(), Some(1000), "later units were acknowledged");
    assert_eq!(s.at(130).resend(), [1]);
    assert_eq!(s.t3(), Some(1130));
}

/// RFC 9260 §6.1: "Otherwise, the data sender MUST NOT restart the timer."
#[test]
fn is_not_restarted_when_a_later_unit_is_retransmitted() {
    let mut s = Sender::new();
    s.push_full(6);
    for (ms, end) in [(100, 4), (110, 5), (120, 6)] {
        s.at(ms).ack(0, &[(2, 2), (4, end)]);
    }
    // 1 and 3 are lost; only 3 is sent here.
    let mut packet = s.recovery.packet(0, false, 0);
    assert_eq!(packet.next(&s.recovery), Some(Next::Lost(BASE + 1)));
    packet.pass(&mut s.recovery);
    assert_eq!(packet.next(&s.recovery), Some(Next::Lost(BASE + 3)));
    assert!(packet.put(&mut s.recovery, s.now).is_some());
    packet.end(&mut s.recovery, s.now, &mut Tracer::off());
    assert_eq!(s.t3(), Some(1000));
}

/// RFC 9260 §6.3.3 E1, E2: what an expiry does.
#[test]
fn expiry_backs_off_collapses_the_window_and_declares_everything_in_flight_lost() {
    let mut s = Sender::new();
    s.push_full(4);
    s.at(100).ack(0, &[(3, 3)]);
    assert_eq!(s.expire(), 1000);
    assert_eq!((s.rto_ms(), s.cwnd(), s.ssthresh()), (2000, 1000, 4000));
    let lost = Some(UnitState::Lost(SendCause::Timeout));
    assert_eq!([1, 2, 3, 4].map(|n| s.state(n)), [lost, lost, Some(UnitState::Acknowledged), lost]);
    assert_eq!((s.flight(), s.recovery.outstanding().user_bytes_in_flight()), ((0, 0), 0));
    assert_eq!(s.recovery.statistics().timeouts, 1);
}

/// RFC 9260 §6.3.3 E3, E4: as many of the earliest units as fit are sent at once in one packet, whatever the
/// window says; the rest waits for the window.
#[test]
fn after_an_expiry_the_earliest_units_that_fit_leave_in_one_packet() {
    let mut s = Sender::new();
    for sizes in [[400, 400], [400, 400]] {
        s.push(&sizes);
    }
    assert_eq!(s.expire(), 1000);
    assert_eq!(s.resend(), [1, 2]);
    assert_eq!(s.t3(), Some(3000));
    assert_eq!(s.next_lost(0), None);
    s.at(1100).ack(2, &[]);
    assert_eq!(s.resend(), [3, 4]);
}

/// RFC 9260 §6.3.3 E2, §16 RTO.Max: the closed form of exponential backoff.
#[test]
fn the_nth_retransmission_of_an_unanswered_unit_leaves_at_these_times() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    let seconds: Vec<u64> = (0..9)
        .map(|_| {
            let ms = s.expire();
            assert_eq!(s.resend(), [1]);
            ms / 1000
        })
        .collect();
    assert_eq!(seconds, [1, 3, 7, 15, 31, 63, 123, 183, 243]);
}

/// A fast recovery that outlived the timeout would keep the window at one packet for good
/// (pion/webrtc#3356).
#[test]
fn expiry_ends_fast_recovery_so_that_the_window_grows_again() {
    let mut s = Sender::bursting();
    s.push_full(8);
    for (ms, end) in [(100, 6), (110, 7), (120, 8)] {
        s.at(ms).ack(0, &[(2, end)]);
    }
    assert!(s.is_in_fast_recovery());
    s.resend();
    s.expire();
    assert!(!s.is_in_fast_recovery());
    assert_eq!(s.resend(), [1]);
    s.at(2000).ack(8, &[]);
    assert_eq!(s.cwnd(), 2000, "slow start goes on");
}

/// RFC 9260 §6.1 A: the interval of probes grows; congestion control is not affected.
#[test]
fn expiry_over_a_window_probe_backs_off_and_touches_no_window() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    assert_eq!(s.expire_as(TimeoutKind::WindowProbe), 1000);
    assert_eq!((s.cwnd(), s.rto_ms()), (4000, 2000));
    assert_eq!(s.resend(), [1]);
    assert_eq!(s.expire_as(TimeoutKind::WindowProbe), 3000);
    assert_eq!(s.resend(), [1]);
    let statistics = s.recovery.statistics();
    assert_eq!((statistics.retransmitted.window_probe, statistics.packets_lost), (2, 0));
    assert_eq!(statistics.retransmitted.total(), 2);
}

/// RFC 3758 §3.5 C5: the timer of a FORWARD-TSN expires with nothing to send, and blocks nothing.
#[test]
fn expiry_with_everything_abandoned_allows_new_data() {
    let mut s = Sender::new();
    s.push(&[FULL]);
    s.abandon(1);
    assert_eq!(s.t3(), None);
    s.recovery.on_t3_event(s.now, 0, crate::T3Event::Needed);
    assert_eq!(s.expire(), 1000);
    assert_eq!((s.t3(), s.next_lost(0)), (None, None));
    assert!(s.has_room_for_new(0));
}

/// RFC 9260 §6.3: every path has its own timer and RTO.
#[test]
fn each_path_has_its_own_timer() {
    let mut s = Sender::new();
    s.add_confirmed_path();
    s.push_over(0, &[FULL]);
    s.at(300).push_over(1, &[FULL]);
    assert_eq!(s.expire(), 1000);
    assert_eq!((s.rto_ms(), s.timer(1).rto().as_millis()), (2000, 1000));
    assert_eq!(s.t3(), Some(1300));
    assert_eq!(s.state(2), Some(UnitState::InFlight));
    s.at(1100).ack(2, &[]);
    assert_eq!(s.t3(), None);
}

/// RFC 9260 §6.4: data that timed out on one path may be retransmitted over another, whose timer then runs
/// for it.
#[test]
fn a_unit_retransmitted_over_another_path_moves_its_timer() {
    let mut s = Sender::new();
    s.add_confirmed_path();
    s.push_over(0, &[FULL]);
    s.expire();
    assert_eq!(s.at(1200).resend_over(1), [1]);
    let due_at = |s: &mut Sender, ms| {
        let before = std::mem::replace(&mut s.now, rexmit_core::Instant::from_millis(ms));
        let due = s.due_path();
        s.now = before;
        due
    };
    assert_eq!(due_at(&mut s, 2200), Some(1));
    assert_eq!((s.t3(), s.recovery.outstanding().flight(1).packets), (Some(2200), 1));
    assert_eq!(due_at(&mut s, 2199), None);
    s.at(1300).ack(1, &[]);
    assert_eq!(s.t3(), None);
}
