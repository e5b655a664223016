//! A whole session with default settings, packet by packet.

mod kit;

use kit::*;
use rexmit_sctp::{CloseReason, Event};

/// RFC 9260 §5.1, §6, §9.2: what the RFC requires and the application caused, and nothing else.
#[test]
fn a_client_session_is_these_packets_and_no_other() {
    let mut s = Script::client();
    s.take_init();
    s.at(50).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.at(100).peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { incoming: false, .. });
    s.at(1_000).send(b"question");
    expect_packet!(s, [Data(d)] if d.tsn == tsn(0) && d.payload == b"question" && d.ssn == 0);
    s.at(1_050).peer_writes(|p| {
        p.sack(tsn(0), PEER_RWND, [], []);
        p.data(&data(0, b"answer"))
    });
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive().expect("a message"), "answer");
    s.at(10_000).shutdown();
    expect_packet!(s, [Shutdown { cumulative_tsn_ack }] if cumulative_tsn_ack == tsn(0));
    s.at(10_050).peer_sends([ShutdownAck]);
    expect_packet!(s, [ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    s.expect_silence_until(1_000_000);
    assert_eq!((s.events(), s.endpoint.association_count()), (vec![], 0));
}

/// RFC 9260 §5.1, §6, §9.2, from the other side.
#[test]
fn a_server_session_is_these_packets_and_no_other() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.at(50).peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, Event::Connected { incoming: true, .. });
    s.at(1_000).peer_sends([Data(data(0, b"question"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive().expect("a message"), "question");
    s.at(1_001).send(b"answer");
    expect_packet!(s, [Data(d)] if d.tsn == tsn(0) && d.payload == b"answer");
    s.at(1_050).peer_acknowledges(tsn(0));
    s.at(10_000).peer_sends([Shutdown { cumulative_tsn_ack: tsn(0) }]);
    expect_packet!(s, [ShutdownAck]);
    expect_event!(s, Event::PeerShutdown);
    s.at(10_050).peer_sends([ShutdownComplete { t_bit: false }]);
    expect_event!(s, Event::Closed(CloseReason::Shutdown));
    s.expect_silence_until(1_000_000);
    assert_eq!((s.events(), s.endpoint.association_count()), (vec![], 0));
}
