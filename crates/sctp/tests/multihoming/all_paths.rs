//! New data over all paths at once (Iyengar, Amer and Stewart 2006).

use rexmit_sctp::recovery::{CmtConfig, RetransmissionDestination};
use rexmit_sctp::{AssociationConfig, PathState};

use crate::kit::*;
use crate::states;

fn two_paths(change: impl FnOnce(&mut AssociationConfig)) -> Script {
    crate::two_paths_with(|association| {
        association.recovery.sctp.cmt = Some(CmtConfig::ON);
        change(association);
    })
}

/// Paths send in turn, each within its own window.
#[test]
fn paths_send_in_turn() {
    let mut s = two_paths(|_| ());
    for _ in 0..12 {
        s.send(&[0; 1_180]);
    }
    for n in 0..8 {
        expect_packet_to!(s, 2 + n % 2, [Data(d)] if d.tsn == tsn(n.into()));
    }
    s.expect_silence();
    // Data from the faster path makes room there, and is no sign of loss on the other.
    s.peer_writes(|p| p.sack(tsn(0).wrapping_sub(1), PEER_RWND, [(2, 2), (4, 4), (6, 6)], []));
    for n in 8..12 {
        expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(n));
    }
    assert_eq!(s.statistics().recovery.retransmitted.total(), 0);
}

/// RFC 9260 §6.2.1: data that waits to be retransmitted has precedence over new data in the peer's window.
#[test]
fn lost_data_keeps_its_part_of_the_window() {
    let mut s = two_paths(|association| {
        association.recovery.sctp.retransmission_destination = RetransmissionDestination::Same;
    });
    for n in 0..7 {
        s.send(&[0; 1_180]);
        expect_packet_to!(s, 2 + n % 2, [Data(_)]);
    }
    // The first chunk is missing, and one of the second path is in flight. The peer's window has no room for a third.
    // The next turn is that of the second path.
    let none = tsn(0).wrapping_sub(1);
    for end in 3..=6 {
        s.peer_writes(|p| p.sack(none, 3_500, [(3, end)], []));
    }
    s.send(&[0; 1_180]);
    s.expect_silence();
    s.peer_writes(|p| p.sack(none, 3_500, [(3, 7)], []));
    expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(0));
    s.expect_silence();
    s.peer_acknowledges(tsn(6));
    expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(7));
}

/// A failed path gets no data.
#[test]
fn inactive_path_gets_no_turn() {
    let mut s = two_paths(|association| association.failure.path_max_retrans = 0);
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(_)]);
    s.peer_acknowledges(tsn(0));
    assert_eq!(states(&s), [PathState::Inactive, PathState::Active]);
    for _ in 0..3 {
        s.send(b"more");
        expect_packet_to!(s, 3, [Data(_)]);
    }
}

/// RTX-CWND: a retransmission takes the path with the larger window.
#[test]
fn retransmission_uses_the_path_with_the_larger_window() {
    let mut s = two_paths(|association| {
        association.recovery.sctp.retransmission_destination = RetransmissionDestination::Cwnd;
    });
    s.send(b"one");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [Data(_)]);
    s.at(2_000);
    // Both windows are one packet now, and the path is chosen at random.
    let sent = s.next_packet();
    assert_eq!(sent.chunks().len(), 1);
    assert!(matches!(sent.chunks()[..], [Data(d)] if d.tsn == tsn(0)));
}

/// DAC: a gap does not cause an immediate SACK. The SACK reports the number of packets that it acknowledges, but not to
/// a sender without DAC.
#[test]
fn gap_does_not_cause_an_immediate_acknowledgement() {
    let mut s = two_paths(|_| ());
    s.peer_sends([Data(data(0, b"the first is acknowledged at once"))]);
    expect_packet_to!(s, 2, [Sack(sack)] if sack.packets == 1);
    s.from(3).peer_sends([Data(data(2, b"early"))]);
    s.expect_silence();
    s.from(3).peer_sends([Data(data(4, b"early, too"))]);
    expect_packet_to!(s, 3, [Sack(sack)] if sack.packets == 2 && sack.gap_ack_block_count() == 2);
    s.from(2).peer_sends([Data(data(1, b"late"))]);
    s.at(200);
    expect_packet_to!(s, 2, [Sack(sack)] if sack.packets == 1 && sack.cumulative_tsn_ack == tsn(2));
    let mut s = crate::two_paths();
    s.peer_sends([Data(data(1, b"early"))]);
    expect_packet_to!(s, 2, [Sack(sack)] if sack.packets == 0);
}

/// DAC: missing reports are counted by the number of packets that the peer's SACK reports.
#[test]
fn missing_reports_are_counted_by_the_packets_that_a_sack_acknowledges() {
    let mut s = two_paths(|_| ());
    s.set_primary(1).unwrap();
    for _ in 0..8 {
        s.send(&[0; 1_180]);
    }
    for _ in 0..8 {
        s.next_packet();
    }
    // Chunks with even numbers were sent over the first path.
    let cumulative = tsn(0).wrapping_sub(1);
    s.peer_writes(|p| p.sack_of(1, cumulative, PEER_RWND, [(3, 3)], []));
    s.expect_silence();
    s.peer_writes(|p| p.sack_of(2, cumulative, PEER_RWND, [(3, 3), (5, 5), (7, 7)], []));
    expect_packet_to!(s, 2, [Data(d)] if d.tsn == tsn(0));
    s.peer_acknowledges(tsn(7));
}

/// Receive buffer splitting: the peer's window is nine chunks, so each path may have four in flight. The first path has
/// four, as its cwnd allows; the cwnd of the second would allow five.
#[test]
fn no_path_takes_more_than_its_part_of_the_peers_window() {
    for (split_buffer, may_leave) in [(false, 5), (true, 4)] {
        let mut s = two_paths(|association| {
            association.recovery.max_burst = None;
            association.recovery.sctp.cmt = Some(CmtConfig::ON.split_buffer(split_buffer));
        });
        for n in 0..8 {
            s.send(&[0; 1_180]);
            expect_packet_to!(s, 2 + n % 2, [Data(_)]);
        }
        let none = tsn(0).wrapping_sub(1);
        s.peer_writes(|p| p.sack(none, 9 * 1_180, [(2, 2), (4, 4), (6, 6), (8, 8)], []));
        for _ in 0..12 {
            s.send(&[0; 1_180]);
        }
        for n in 0..may_leave {
            expect_packet_to!(s, 3, [Data(d)] if d.tsn == tsn(8 + n));
        }
        s.expect_silence();
    }
}
