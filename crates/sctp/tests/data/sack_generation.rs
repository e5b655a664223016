//! When a SACK is sent, and its content (RFC 9260 §6.2).

use rexmit_sctp::Event;
use std::time::Duration;

use crate::NONE;
use crate::kit::*;

/// An established server that has acknowledged its first DATA.
fn begun() -> Script {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    s
}

fn blocks(sack: &wire::Sack<'_>) -> Vec<(u16, u16)> {
    sack.gap_ack_blocks().collect()
}

/// RFC 9260 §5.1: the first DATA is acknowledged at once, later ones within 200 ms.
#[test]
fn a_lone_packet_is_acknowledged_after_200_ms() {
    let mut s = begun();
    s.at(1_000).peer_sends([Data(data(1, b"lone"))]);
    s.expect_silence_until(1_199);
    s.at(1_200);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
    s.expect_silence_until(5_000);
}

/// RFC 9260 §6.2: "at least every second packet (not every second DATA chunk)".
#[test]
fn every_second_packet_is_acknowledged_at_once_not_every_second_chunk() {
    let mut s = begun();
    s.peer_sends([Data(data(1, b"a")), Data(data(2, b"b")), Data(data(3, b"c"))]);
    s.expect_silence();
    s.at(199).peer_sends([Data(data(4, b"d"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(4));
    s.at(199).peer_sends([Data(data(5, b"e"))]);
    s.expect_silence_until(398);
    s.at(399);
    expect_packet!(s, [Sack(_)]);
}

/// The SACK delay starts with the first unacknowledged packet.
#[test]
fn a_sent_sack_restarts_the_count() {
    let mut s = begun();
    for n in 1..10 {
        s.at(u64::from(n) * 150).peer_sends([Data(data(n, b"m"))]);
        if n % 2 == 0 {
            expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(n.into()));
        }
    }
    s.at(9 * 150 + 200);
    expect_packet!(s, [Sack(_)]);
}

/// RFC 9260 §6.2, §7.2.4: every packet is acknowledged at once while there is a gap, and so is the one that closes it.
#[test]
fn every_packet_is_acknowledged_at_once_while_there_is_a_gap() {
    let mut s = begun();
    let table = [
        (2, 0, vec![(2, 2)]),
        (3, 0, vec![(2, 3)]),
        (6, 0, vec![(2, 3), (6, 6)]),
        (1, 3, vec![(3, 3)]),
        (4, 4, vec![(2, 2)]),
    ];
    for (n, cumulative, want) in table {
        s.peer_sends([Data(data(n, b"m"))]);
        expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(cumulative)
            && blocks(&sack) == want);
    }
    s.peer_sends([Data(data(5, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(6) && blocks(&sack).is_empty());
    s.peer_sends([Data(data(7, b"m"))]);
    s.expect_silence_until(199);
    s.at(200);
    expect_packet!(s, [Sack(_)]);
}

/// RFC 9260 §6.2: a duplicate is acknowledged at once, and each arrival of it is reported once.
#[test]
fn a_duplicate_is_reported_at_once_and_once() {
    let mut s = begun();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(sack)] if sack.duplicate_tsns().eq([tsn(0)]));
    s.peer_sends([Data(data(0, b"first")), Data(data(0, b"first")), Data(data(1, b"new"))]);
    expect_packet!(s, [Sack(sack)] if sack.duplicate_tsns().eq([tsn(0), tsn(0)])
        && sack.cumulative_tsn_ack == tsn(1));
    s.peer_sends([Data(data(3, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.duplicate_tsn_count() == 0);
    s.peer_sends([Data(data(3, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.duplicate_tsns().eq([tsn(3)]) && blocks(&sack) == [(2, 2)]);
    assert_eq!(s.statistics().traffic.duplicates_received, 4);
    assert_eq!(s.receive().expect("a message"), "first");
    assert_eq!(s.receive().expect("a message"), "new");
    assert_eq!(s.receive(), None, "each is delivered once");
}

/// RFC 9260 §6.2: the I bit.
#[test]
fn a_chunk_with_the_i_bit_is_acknowledged_at_once() {
    let mut s = begun();
    let mut urgent = data(1, b"now");
    urgent.flags.immediate = true;
    s.peer_sends([Data(urgent), Data(data(2, b"with it"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(2));
}

/// RFC 9260 §6.2: SACK.Delay is a parameter.
#[test]
fn without_a_delay_every_packet_is_acknowledged_at_once() {
    let mut s = Script::established_server_with(|_, association| {
        association.sack.delay = Duration::ZERO;
    });
    for n in 0..4 {
        s.peer_sends([Data(data(n, b"m"))]);
        expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(n.into()));
    }
}

/// RFC 9260 §6.2: at most one SACK for each packet, and none for packets without DATA.
#[test]
fn packets_without_data_are_not_acknowledged() {
    let mut s = begun();
    s.send(b"mine");
    expect_packet!(s, [Data(_)]);
    for _ in 0..4 {
        s.peer_acknowledges(tsn(0));
    }
    s.expect_silence_until(1_000);
}

/// RFC 9260 §6.2: "as many Gap Ack Blocks as can fit", the lowest first; duplicates get the remaining room.
#[test]
fn a_sack_has_as_many_gap_blocks_as_fit_lowest_first() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(_)]);
    for n in 1..=400u16 {
        let mut chunk = data(2 * n, b"m");
        chunk.flags.unordered = true;
        s.peer_sends([Data(chunk)]);
        // A packet of 1232 bytes: 12 of common header, 16 of SACK, 4 for each of 301 blocks.
        let fit = n.min(301);
        let want: Vec<_> = (1..=fit).map(|k| (2 * k, 2 * k)).collect();
        expect_packet!(s, [Sack(sack)] if blocks(&sack) == want);
    }
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(sack)] if sack.gap_ack_block_count() == 301 && sack.duplicate_tsn_count() == 0);
}

/// RFC 9260 §6.2, across the wrap of the TSNs.
#[test]
fn gap_blocks_cross_the_wrap() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(1, b"m")), Data(data(2, b"m")), Data(data(4, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == NONE
        && blocks(&sack) == [(2, 3), (5, 5)]);
    s.peer_sends([Data(data(0, b"m")), Data(data(3, b"m"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(4) && blocks(&sack).is_empty());
    assert_eq!(std::iter::from_fn(|| s.receive()).count(), 5);
}

/// RFC 9260 §6.2: a DATA chunk without user data ends the association.
#[test]
fn a_chunk_without_user_data_ends_the_association() {
    let mut s = begun();
    s.peer_writes(|p| {
        let [a, b, c, d] = tsn(1).to_be_bytes();
        p.plain(wire::kind::DATA, 3, &[a, b, c, d, 0, 0, 0, 1, 0, 0, 0, 0])
    });
    let cause = expect_packet!(s, [Abort { t_bit: false, causes }] =>
        matches!(causes.flatten().next(), Some(Cause::NoUserData { tsn: t }) if t == tsn(1)));
    assert!(cause, "No User Data names the TSN");
    assert!(matches!(s.events()[..], [Event::Readable, Event::Closed(_)]));
}

/// RFC 9260 §6: DATA is dropped without an answer in states that do not accept it.
#[test]
fn data_is_not_accepted_before_and_after_the_association_is_open() {
    let mut s = Script::client();
    s.take_init();
    s.peer_sends([Data(data(0, b"early"))]);
    s.expect_silence_until(999);

    let mut s = begun();
    s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.peer_sends([Shutdown { cumulative_tsn_ack: NONE }]);
    s.peer_sends([Data(data(1, b"late"))]); // SHUTDOWN-RECEIVED
    s.expect_silence();
    s.peer_acknowledges(tsn(0));
    expect_packet!(s, [ShutdownAck]);
    s.peer_sends([Data(data(1, b"late"))]); // SHUTDOWN-ACK-SENT
    s.expect_silence();
}

/// RFC 9260 §6, §9.2: DATA is accepted in SHUTDOWN-PENDING and SHUTDOWN-SENT.
#[test]
fn data_is_accepted_until_the_peer_shuts_down_too() {
    let mut s = begun();
    s.send(b"outstanding");
    expect_packet!(s, [Data(_)]);
    s.shutdown();
    s.peer_sends([Data(data(1, b"pending")), Data(data(2, b"more"))]);
    s.at(200);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(2));
    s.peer_acknowledges(tsn(0));
    expect_packet!(s, [Shutdown { .. }]);
    s.peer_sends([Data(data(3, b"sent"))]);
    expect_packet!(s, [Sack(sack), Shutdown { .. }] if sack.cumulative_tsn_ack == tsn(3));
    assert_eq!(std::iter::from_fn(|| s.receive()).count(), 4);
}
