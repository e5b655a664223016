//! Processing of the peer's ASCONFs (RFC 5061 §5.2, §5.3).

use rexmit_sctp::wire::AsconfChange::{Add, Delete, SetPrimary};
use rexmit_sctp::{Event, PathState};

use crate::kit::*;
use crate::peer::Dynamic;
use crate::{ANY, ip};

fn states(s: &Dynamic) -> Vec<PathState> {
    s.statistics().paths.iter().map(|path| path.state).collect()
}

/// §5.3 F1, F14: the added address is acknowledged and probed at once. It gets no data before it has answered, and then
/// only as the primary path.
#[test]
fn an_address_is_added_and_probed() {
    let mut s = Dynamic::server();
    s.at(50).peer_asks(0, &[Add(ip(3)), SetPrimary(ip(3))]);
    assert_eq!(s.take_answer(0, 2), []);
    let at = address(3, 9899);
    expect_event!(s.s, Event::PeerAddressAdded { path: 1, address } if address == at);
    let probe = s.take_probe();
    assert_eq!(probe.0, at);
    assert_eq!(states(&s), [PathState::Active, PathState::Unconfirmed]);
    s.send(b"not there yet");
    expect_packet_to!(s.s, 2, [Data(_)]);
    s.at(150).answer_probe(&probe);
    expect_event!(s.s, Event::PathStatus { path: 1, state: PathState::Active, .. });
    expect_event!(s.s, Event::DataPathChanged { path: 1, .. });
    s.send(b"there");
    expect_packet_to!(s.s, 3, [Data(_)]);
}

/// §5.3 F13, §5.4: data in flight to a deleted address is retransmitted to another address at once: one packet of it,
/// whatever the window. Nothing more is sent to the deleted address.
#[test]
fn data_in_flight_to_a_deleted_address_is_retransmitted_to_another_at_once() {
    let mut s = Dynamic::server();
    s.peer_asks(0, &[Add(ip(3))]);
    s.take_answer(0, 2);
    let probe = s.take_probe();
    s.answer_probe(&probe);
    s.send(b"one");
    expect_packet_to!(s.s, 2, [Data(_)]);
    s.at(30).from(3).peer_asks(1, &[Delete(ip(2))]);
    assert_eq!(s.take_answer(1, 3), []);
    expect_packet_to!(s.s, 3, [Data(data)] if data.payload == b"one");
    let events = s.events();
    let deleted = Event::PeerAddressDeleted { path: 0, address: address(2, 9899) };
    assert!(events.contains(&deleted), "{events:?}");
    assert_eq!(states(&s), [PathState::Removed, PathState::Active]);
    // What still comes from there is out of the blue (F13).
    s.from(2).peer_sends([Heartbeat(b"late")]);
    let tag = s.peer.endpoint_tag;
    expect_packet!(s.s, tag tag, [Abort { t_bit: true, .. }]);
    s.from(3).peer_acknowledges(tsn(0));
    // Its number is free.
    s.peer_asks(2, &[Add(ip(4))]);
    s.take_answer(2, 3);
    assert_eq!(s.take_probe().0, address(4, 9899));
    expect_event!(s.s, Event::PeerAddressAdded { path: 0, .. });
    assert_eq!(s.statistics().paths.len(), 2);
}

/// §5.3.2: a phone has moved to another network. Its ASCONF arrives from an unknown address and is answered there; data
/// follows once that address has answered a HEARTBEAT.
#[test]
fn a_peer_moves_to_another_network() {
    let mut s = Dynamic::server();
    s.send(b"on the way");
    expect_packet_to!(s.s, 2, [Data(_)]);
    s.at(100).peer.route.remote = address(7, 1234);
    s.peer_asks(0, &[Add(ANY), SetPrimary(ANY), Delete(ANY)]);
    assert_eq!(s.take_answer(0, 7), []);
    let probe = s.take_probe();
    assert_eq!(probe.0, address(7, 1234), "at its own encapsulation port (RFC 6951 §5.4)");
    s.expect_silence_until(150);
    s.answer_probe(&probe);
    expect_packet_to!(s.s, 7, [Data(data)] if data.payload == b"on the way");
    s.peer_acknowledges(tsn(0));
    assert_eq!(states(&s), [PathState::Removed, PathState::Active]);
    s.peer_sends([Data(data(0, b"from there"))]);
    expect_packet_to!(s.s, 7, [Sack(_)]);
}

/// The same, and the peer returns to the first network, twice.
#[test]
fn a_peer_moves_to_and_fro() {
    let mut s = Dynamic::server();
    for (n, host) in [(0, 7), (1, 2), (2, 7), (3, 8)] {
        s.from(host).peer_asks(n, &[Add(ANY), SetPrimary(ANY), Delete(ANY)]);
        assert_eq!(s.take_answer(n, host), []);
        let probe = s.take_probe();
        assert_eq!(probe.0, address(host, 9899));
        s.answer_probe(&probe);
        s.send(b"there");
        expect_packet_to!(s.s, host, [Data(_)]);
        s.peer_acknowledges(tsn(n));
    }
    assert_eq!(s.statistics().paths.len(), 2);
}

/// §5.2 E2: a repeated ASCONF is answered again, to its source, but not performed again.
#[test]
fn a_repeated_asconf_gets_the_same_answer() {
    let mut s = Dynamic::server();
    let asconf = s.asconf(0, &[Add(ip(3)), Delete(ip(9))]);
    s.deliver(&asconf);
    let answer = s.take_answer(0, 2);
    let _probe = s.take_probe();
    expect_event!(s.s, Event::PeerAddressAdded { .. });
    s.at(100).deliver(&asconf);
    assert_eq!(s.take_answer(0, 2), answer);
    s.from(3).deliver(&asconf);
    assert_eq!(s.take_answer(0, 3), answer);
    assert_eq!(s.events(), []);
    assert_eq!(s.statistics().paths.len(), 2);
}

/// §5.2 E1-ext, §5.5: several ASCONFs of one packet are performed in turn, and answered in one.
#[test]
fn asconfs_of_one_packet_are_answered_in_one() {
    let mut s = Dynamic::server();
    let both = s.signed(|p| {
        p.asconf(tsn(0), ip(2), crate::peer::requests(&[Add(ip(3))]));
        p.asconf(tsn(1), ip(2), crate::peer::requests(&[Add(ip(4))]))
    });
    for _ in 0..2 {
        s.deliver(&both);
        let sent = s.next_packet();
        s.keys.check(&sent);
        let [_, AsconfAck(first), AsconfAck(second)] = sent.chunks()[..] else {
            panic!("{sent:?}")
        };
        assert_eq!([first.serial, second.serial], [tsn(0), tsn(1)]);
        while s.poll_packet().is_some() {}
    }
    assert_eq!(s.statistics().paths.len(), 3);
}

/// §5.1.1 C4: ASCONF is not answered before the association is established, nor after SHUTDOWN ACK was sent.
#[test]
fn asconf_is_processed_only_in_states_that_allow_it() {
    let mut s = Dynamic::server();
    s.send(b"not acknowledged");
    expect_packet_to!(s.s, 2, [Data(_)]);
    s.shutdown();
    s.peer_asks(0, &[Add(ip(3))]);
    s.take_answer(0, 2); // SHUTDOWN-PENDING
    s.take_probe();
    s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0) }]);
    expect_packet!(s.s, [ShutdownAck]);
    s.peer_asks(1, &[Add(ip(4))]); // SHUTDOWN-ACK-SENT
    s.expect_silence();
}

/// Our addresses keep their paths while the peer's addresses change.
#[test]
fn our_addresses_keep_their_paths_when_the_peer_moves() {
    let mut s = Dynamic::server_with(crate::peer::Keys::default(), |endpoint, _| {
        endpoint.addresses = vec![ip(1), ip(11)];
    });
    while s.poll_packet().is_some() {}
    s.from(7).peer_asks(0, &[Add(ANY), Delete(ANY)]);
    s.take_answer(0, 7);
    while s.poll_packet().is_some() {}
    let paths = s.statistics().paths;
    let live = paths.iter().filter(|path| path.state != PathState::Removed);
    let mut ways: Vec<_> = live.map(|path| (path.local.ip(), path.remote.ip())).collect();
    ways.sort();
    assert_eq!(ways, [(ip(1), ip(7)), (ip(11), ip(7))]);
}
