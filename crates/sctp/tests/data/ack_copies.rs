//! Second copies of the SACKs of thin streams: to which peers they are sent, at what time, and until when.

use std::time::Duration;

use rexmit_sctp::wire::ParamsWriter;
use rexmit_sctp::{AckCopies, AckCopyConfig, AssociationConfig, Event};

use crate::kit::*;

const COPY_MS: u64 = 5;

fn config() -> AckCopyConfig {
    AckCopyConfig::default().delay(Duration::from_millis(COPY_MS))
}

fn asks(params: &mut ParamsWriter<'_, '_>) {
    extensions(params);
    params.push(&Param::AckCopiesRequested);
}

/// A server with this configuration. The INIT of its peer has these parameters; each SACK is sent at once.
fn server(copies: AckCopyConfig, params: impl FnOnce(&mut ParamsWriter<'_, '_>)) -> Script {
    let mut s = Script::with(|_, association| {
        *association = AssociationConfig::rfc9260().sack_delay(Duration::ZERO).ack_copies(copies);
    });
    let init = peer_init(s.peer.tag);
    s.peer_writes_under(0, |p| p.init(&init, params));
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, Event::Connected { .. });
    s
}

/// The number of SACKs for a message of the peer.
fn sacks_of_a_message(mut s: Script) -> u32 {
    s.at(1000).peer_sends([Data(data(0, b"thin"))]);
    expect_packet!(s, [Sack(_)]);
    s.at(1000 + COPY_MS);
    let mut sacks = 1;
    while let Some(sent) = s.poll_packet() {
        assert!(matches!(sent.chunks()[..], [Sack(_)]));
        sacks += 1;
    }
    s.expect_silence_until(3000);
    let traffic = s.statistics().traffic;
    assert_eq!((traffic.sacks_sent, traffic.ack_copies_sent), (sacks.into(), u64::from(sacks) - 1));
    sacks
}

#[test]
fn a_peer_that_requests_copies_gets_them_and_others_if_configured() {
    for (send, without, with) in
        [(AckCopies::Off, 1, 1), (AckCopies::OnRequest, 1, 2), (AckCopies::Always, 2, 2)]
    {
        assert_eq!(sacks_of_a_message(server(config().send(send), extensions)), without);
        assert_eq!(sacks_of_a_message(server(config().send(send), asks)), with, "{send:?}");
    }
}

/// The INIT ACK also requests copies.
#[test]
fn a_client_requests_copies_and_sees_the_request_of_the_server() {
    let mut s = Script::client_with(|_, association| {
        *association = AssociationConfig::rfc9260()
            .sack_delay(Duration::ZERO)
            .ack_copies(config().request(true));
    });
    let bytes = s.take_init();
    let packet = wire::Packet::parse(&bytes).expect("a packet");
    let chunks: Vec<_> = packet.chunks().flatten().flat_map(|raw| raw.decode()).collect();
    let [Init(init)] = chunks[..] else { panic!("no INIT: {chunks:?}") };
    let asks = |param: wire::RawParam<'_>| param.decode() == Ok(Param::AckCopiesRequested);
    assert!(init.params().flatten().any(asks));
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            answer_params(params);
            params.push(&Param::AckCopiesRequested);
        })
    });
    expect_packet!(s, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { .. });
    assert_eq!(sacks_of_a_message(s), 2);
}

/// RFC 9260 §3.2.1: other implementations skip the parameter without a report; with a value, it is an unknown parameter
/// here.
#[test]
fn the_parameter_is_skipped_where_it_is_not_known_and_with_a_value() {
    let kind = wire::param_kind::ACK_COPIES_REQUESTED;
    let action = wire::RawParam { kind, value: b"", bytes: b"" }.unknown_action();
    assert_eq!((action.stop, action.report), (false, false));
    let with_value = |params: &mut ParamsWriter<'_, '_>| {
        extensions(params);
        params.push_raw(&wire::RawParam { kind, value: b"1234", bytes: b"" });
    };
    assert_eq!(sacks_of_a_message(server(config(), with_value)), 1);
}

/// A copy also acknowledges data that arrived after the first SACK, and a copy for that data follows.
#[test]
fn a_copy_reports_what_has_arrived_and_no_duplicates_again() {
    let mut s = server(config(), asks);
    s.at(1000).peer_sends([Data(data(0, b"a"))]);
    expect_packet!(s, [Sack(_)]);
    s.at(1003).peer_sends([Data(data(0, b"a"))]);
    expect_packet!(s, [Sack(sack)] if sack.duplicate_tsns().count() == 1);
    s.at(1004).peer_sends([Data(data(2, b"c"))]);
    expect_packet!(s, [Sack(sack)] if sack.gap_ack_blocks().eq([(2, 2)]));
    s.expect_silence_until(1008);
    s.at(1009);
    expect_packet!(s, [Sack(sack)]
        if sack.gap_ack_blocks().eq([(2, 2)]) && sack.duplicate_tsns().count() == 0);
    s.expect_silence_until(3000);
}

/// With traffic in both directions, DATA carries the copy without another packet.
#[test]
fn the_copy_is_bundled_with_data() {
    for percent in [0, 50] {
        let mut s = server(config().packets_percent(percent), asks);
        s.at(1000).peer_sends([Data(data(0, b"question"))]);
        expect_packet!(s, [Sack(_)]);
        s.at(1003).send(b"answer");
        expect_packet!(s, [Sack(sack), Data(_)] if sack.cumulative_tsn_ack == FIRST_TSN);
        s.peer_acknowledges(FIRST_TSN);
        s.expect_silence_until(3000);
        assert_eq!(s.statistics().traffic.ack_copies_sent, 1);
    }
}

/// A bulk transfer is recognized by full packets, or by a flight of 16 packets or more.
#[test]
fn a_transfer_has_no_copies() {
    let full = vec![b'x'; 1204];
    let mut s = server(config(), asks);
    for n in 0..100 {
        s.at(1000 + 20 * u64::from(n)).peer_sends([Data(data(n, &full))]);
        expect_packet!(s, [Sack(_)]);
        while s.receive().is_some() {}
        s.expect_silence_until(1000 + 20 * u64::from(n) + 19);
    }
    assert_eq!(s.statistics().traffic.ack_copies_sent, 0);
}
