//! Replies are sent to the source of the request (RFC 9260 §6.4).

use crate::kit::*;
use crate::two_paths;

/// RFC 9260 §6.4: a SACK is sent to the source of its DATA.
#[test]
fn sack_is_sent_to_the_source_of_the_data() {
    let mut s = two_paths();
    for (n, host) in [(0, 2), (1, 3), (2, 3), (3, 2), (4, 2)] {
        s.from(host).peer_sends([Data(data(n, b"data"))]);
        if n != 1 && n != 3 {
            expect_packet_to!(s, host, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(n.into()));
        }
    }
}

/// RFC 9260 §6.4: a SACK is not bundled with DATA for another path; with DATA for its own path it is.
#[test]
fn sack_is_bundled_only_with_data_of_its_path() {
    let mut s = two_paths();
    s.peer_sends([Data(data(0, b"the first is acknowledged at once"))]);
    expect_packet_to!(s, 2, [Sack(_)]);
    s.from(3).peer_sends([Data(data(1, b"a SACK may wait"))]);
    s.send(b"elsewhere");
    expect_packet_to!(s, 2, [Data(_)]);
    s.at(200);
    expect_packet_to!(s, 3, [Sack(_)]);
    s.from(2).peer_sends([Data(data(2, b"a SACK may wait"))]);
    s.send(b"the same way");
    expect_packet_to!(s, 2, [Sack(_), Data(_)]);
    // One that is due goes at once, and DATA follow on their own path.
    s.from(3).peer_sends([Data(data(4, b"out of order"))]);
    s.send(b"elsewhere again");
    expect_packet_to!(s, 3, [Sack(_)]);
    expect_packet_to!(s, 2, [Data(_)]);
}

/// RFC 9260 §6.4: HEARTBEAT ACK and ERROR, too.
#[test]
fn other_replies_are_sent_to_the_source_of_the_request() {
    let mut s = two_paths();
    s.from(3).peer_sends([Heartbeat(b"?")]);
    expect_packet_to!(s, 3, [HeartbeatAck(b"?")]);
    s.peer_writes(|p| p.plain(0xFE, 0, b"unknown, to be reported"));
    expect_packet_to!(s, 3, [Error { .. }]);
}
