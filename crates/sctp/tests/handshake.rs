//! The normal establishment of an association (RFC 9260 §5.1), its timers (§4), and which INIT and INIT ACK are refused
//! (§3.3.2, §3.3.3).

mod kit;

use kit::*;
use rexmit_core::Machine;
use rexmit_sctp::{AssociationConfig, CloseReason, Event, FailReason, OutboundMessage, SendError};

/// The times at which T1 expires, with RTO.Initial 1 s and RTO.Max 60 s.
const T1_EXPIRIES_MS: [u64; 8] = [1_000, 3_000, 7_000, 15_000, 31_000, 63_000, 123_000, 183_000];

/// RFC 9260 §5.1 A, §3.3.2, §8.5.1 A; RFC 5061 §4.2.7; RFC 4895 §6.1: INIT has the verification tag 0 and our Initiate
/// Tag, and lists the extensions and their authentication, nothing else.
#[test]
fn init_has_the_configured_values() {
    let mut s = Script::client();
    expect_packet!(s, tag 0, [Init(init)] if {
        let params: Vec<_> = init.params().flatten().map(|param| param.decode().unwrap()).collect();
        use wire::kind::{ASCONF, ASCONF_ACK, AUTH, FORWARD_TSN, RE_CONFIG};
        let kinds = [RE_CONFIG, FORWARD_TSN, AUTH, ASCONF, ASCONF_ACK];
        let [Param::ForwardTsnSupported, Param::SupportedExtensions(listed), auth @ ..] = &params[..]
        else {
            panic!("{params:?}")
        };
        let [Param::Random(random), Param::Chunks(chunks), Param::HmacAlgo(hmacs)] = auth else {
            panic!("{auth:?}")
        };
        assert_eq!((*listed, *chunks), (&kinds[..], &[ASCONF_ACK, ASCONF][..]));
        assert_eq!((random.len(), hmacs.iter().collect::<Vec<_>>()), (32, vec![3, 1]));
        init.initiate_tag != 0
            && init.a_rwnd == 1 << 20
            && (init.outbound_streams, init.inbound_streams) == (16, 2048)
            && init.initial_tsn == tsn(0)
    });
}

/// RFC 9260 §5.3.1: a new association to the same peer has a new tag.
#[test]
fn each_association_has_a_tag_of_its_own() {
    let mut s = Script::client();
    s.take_init();
    let first = s.peer.endpoint_tag;
    s.abort(b"");
    s.events();
    s.connect();
    s.take_init();
    assert_ne!(s.peer.endpoint_tag, first);
}

/// RFC 9260 §4 (2), §5.1.6: T1-init retransmits the same INIT, Max.Init.Retransmits times.
#[test]
fn init_is_retransmitted_eight_times_then_the_failure_is_reported() {
    let mut s = Script::client();
    let init = s.take_init();
    for ms in T1_EXPIRIES_MS {
        assert_eq!(s.at(ms).take_init(), init);
    }
    s.expect_silence_until(242_999);
    assert_eq!(s.events(), []);
    s.expect_silence_until(243_000);
    expect_event!(s, Event::Closed(CloseReason::ConnectTimedOut));
    assert_eq!(s.endpoint.association_count(), 0);
}

/// RFC 9260 §4 (3), §5.1.4: the same for COOKIE ECHO on T1-cookie.
#[test]
fn cookie_echo_is_retransmitted_eight_times_then_the_failure_is_reported() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    for ms in T1_EXPIRIES_MS {
        s.at(ms);
        expect_packet!(s, [CookieEcho(COOKIE)]);
    }
    s.expect_silence_until(242_999);
    assert_eq!(s.events(), []);
    s.expect_silence_until(243_000);
    expect_event!(s, Event::Closed(CloseReason::ConnectTimedOut));
}

/// RFC 9260 §5.1 C, §5.1.4, §6.3.1 C2: INIT ACK stops T1-init, is answered at once, and gives an RTT sample: with 400
/// ms the RTO is 400 + 4 · 200 ms.
#[test]
fn init_ack_measures_the_path_for_t1_cookie() {
    let mut s = Script::client();
    s.take_init();
    s.at(400).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.at(1_600);
    expect_packet!(s, [CookieEcho(COOKIE)]);
}

/// RFC 9260 §6.3.1 C5 (Karn): the answer to a retransmitted INIT gives no sample.
#[test]
fn answer_to_a_retransmitted_init_gives_no_sample() {
    let mut s = Script::client();
    s.take_init();
    s.at(1_000).take_init();
    s.at(1_400).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
    s.at(3_400);
    expect_packet!(s, [CookieEcho(COOKIE)]);
    assert_eq!(s.statistics().paths[0].srtt, None);
}

/// RFC 9260 §5.1 C: DATA may follow COOKIE ECHO in its packet, and nothing else may be sent until COOKIE ACK returns.
#[test]
fn data_is_bundled_with_cookie_echo_and_then_waits_for_cookie_ack() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE), Data(d)] if d.tsn == tsn(0) && d.payload == b"early");
    s.at(500).send(b"late");
    s.peer_sends([Heartbeat(b"not now")]);
    s.at(1_000);
    expect_packet!(s, [CookieEcho(COOKIE), Data(d)] if d.tsn == tsn(0));
    s.at(1_100).peer_sends([CookieAck]);
    expect_packet!(s, [HeartbeatAck(b"not now")]);
    s.expect_silence();
    s.peer_acknowledges(tsn(0));
    expect_packet!(s, [Data(d)] if d.tsn == tsn(1) && d.payload == b"late");
}

/// RFC 9260 §6: in COOKIE-ECHOED a SACK is processed, and DATA is not accepted.
#[test]
fn while_cookie_echoed_sack_counts_and_data_do_not() {
    let mut s = Script::client();
    s.send(b"early");
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(COOKIE), Data(_)]);
    s.peer_acknowledges(tsn(0));
    s.peer_sends([Data(data(0, b"too early"))]);
    assert_eq!(s.statistics().send_buffered_bytes, 0);
    s.at(10).peer_sends([CookieAck]);
    s.at(20).peer_sends([Data(data(0, b"now"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    assert_eq!(s.receive().unwrap(), "now");
}

/// RFC 9260 §5.1 B: INIT ACK has the peer's tag, is sent to the source of the INIT, and contains a tag of ours and a
/// cookie. No state is kept.
#[test]
fn init_is_answered_to_its_source_and_forgotten() {
    let mut s = Script::server();
    s.peer.route.remote = address(77, 1234);
    let init = peer_init(PEER_TAG);
    s.peer_writes_under(0, |p| p.init(&init, |_| ()));
    let sent = s.next_packet();
    assert_eq!((sent.route, sent.header.verification_tag), (s.peer.route, PEER_TAG));
    let &[InitAck(ack)] = &sent.chunks()[..] else { panic!("no INIT ACK: {sent:?}") };
    assert!(ack.initiate_tag != 0 && ack.initiate_tag != PEER_TAG);
    // 16 of its own, of which the peer takes 10.
    assert_eq!((ack.outbound_streams, ack.inbound_streams), (10, 2048));
    assert_eq!((ack.initial_tsn, ack.a_rwnd), (tsn(0), 1 << 20));
    assert_eq!((s.endpoint.association_count(), s.endpoint.poll_timeout()), (0, None));
}

/// RFC 9260 §5.1.5 (6), (7), §5.1: COOKIE ACK is first in its packet, which also acknowledges the DATA bundled with the
/// cookie.
#[test]
fn data_with_cookie_echo_are_acknowledged_with_cookie_ack() {
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie), Data(data(0, b"early"))]);
    expect_packet!(s, [CookieAck, Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    expect_event!(s, Event::Connected { incoming: true, .. });
    expect_event!(s, Event::Readable);
    assert_eq!(s.receive().unwrap(), "early");
}

/// RFC 9260 §5.1: the first DATA is acknowledged at once, the next packet is not.
#[test]
fn first_data_are_acknowledged_at_once() {
    let mut s = Script::established_server();
    s.peer_sends([Data(data(0, b"first"))]);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(0));
    s.peer_sends([Data(data(1, b"second"))]);
    s.expect_silence_until(199);
    s.at(200);
    expect_packet!(s, [Sack(sack)] if sack.cumulative_tsn_ack == tsn(1));
}

/// RFC 9260 §5.1.1: min(OS, MIS) streams each way; messages for other streams are never sent.
#[test]
fn streams_are_the_smaller_number_of_both_sides() {
    let mut s = Script::client();
    let lost = s.try_send(OutboundMessage::new(12, "lost")).unwrap();
    s.try_send(OutboundMessage::new(2, "kept")).unwrap();
    s.take_init();
    let init = wire::Init { outbound_streams: 3000, inbound_streams: 10, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init, answer_params));
    expect_packet!(s, [CookieEcho(_), Data(d)] if d.stream == 2 && d.payload == b"kept");
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::MessageFailed { id, reason: FailReason::NoSuchStream, .. } if id == lost);
    expect_event!(s, Event::Connected { outbound_streams: 10, inbound_streams: 2048, .. });
    let refused = s.try_send(OutboundMessage::new(10, "no such stream"));
    assert_eq!(refused, Err(SendError::InvalidStream { streams: 10 }));
}

/// RFC 9260 §5.1: an unusable INIT ACK is answered by an ABORT with its Initiate Tag that reports the reason.
#[test]
fn init_ack_without_a_cookie_is_answered_with_abort() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), extensions));
    expect_packet!(s, [Abort { t_bit: false, causes }] if {
        let cookie = [wire::param_kind::STATE_COOKIE];
        let missing = Cause::MissingMandatoryParameter(cookie.as_slice().into());
        causes.flatten().eq([missing])
    });
    expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
}

/// RFC 9260 §3.3.3: Initiate Tag 0 in INIT ACK destroys the TCB; ABORT reflects our own tag.
#[test]
fn init_ack_with_tag_zero_is_answered_with_a_reflected_abort() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(0), answer_params));
    expect_packet!(s, tag s.peer.endpoint_tag, [Abort { t_bit: true, .. }]);
    expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
}

/// RFC 9260 §3.3.3: OS or MIS 0 in INIT ACK destroys the TCB.
#[test]
fn init_ack_without_streams_is_answered_with_abort() {
    for (outbound_streams, inbound_streams) in [(0, 1), (1, 0)] {
        let mut s = Script::client();
        s.take_init();
        let init = wire::Init { outbound_streams, inbound_streams, ..peer_init(PEER_TAG) };
        s.peer_writes(|p| p.init_ack(&init, answer_params));
        expect_packet!(s, [Abort { t_bit: false, .. }]);
        expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
    }
}

/// RFC 9260 §3.3.3: INIT ACK with a window below 1500 is discarded and changes no state.
#[test]
fn init_ack_with_a_tiny_window_is_discarded() {
    let mut s = Script::client();
    s.take_init();
    let init = wire::Init { a_rwnd: 1499, ..peer_init(PEER_TAG) };
    s.peer_writes(|p| p.init_ack(&init, answer_params));
    s.at(1_000).take_init();
    s.peer_writes(|p| p.init_ack(&wire::Init { a_rwnd: 1500, ..init }, answer_params));
    expect_packet!(s, [CookieEcho(COOKIE)]);
}

/// RFC 9260 §3.3.3: an INIT ACK may be much larger than a packet of ours.
#[test]
fn init_ack_of_any_size_is_read_and_its_cookie_echoed_whole() {
    let mut s = Script::client();
    let cookie = vec![7; 5_000];
    s.take_init();
    s.send(b"finds no room beside the cookie");
    s.peer_writes(|p| {
        p.init_ack(&peer_init(PEER_TAG), |params| {
            for host in 10..250 {
                params.push(&address(host, 0).ip().into());
            }
            params.push(&Param::StateCookie(&cookie));
        })
    });
    expect_packet!(s, [CookieEcho(echoed)] if echoed == cookie);
    s.peer_sends([CookieAck]);
    assert_eq!(s.take_probe().0.ip(), address(10, 0).ip());
    expect_packet!(s, [Data(d)] if d.tsn == tsn(0));
}

/// RFC 9260 §3.3.2: INIT with Initiate Tag 0 is silently discarded.
#[test]
fn init_with_tag_zero_is_discarded() {
    let mut s = Script::server();
    s.peer_writes_under(0, |p| p.init(&peer_init(0), extensions));
    s.expect_silence();
}

/// RFC 9260 §3.3.2: INIT without streams or with a window below 1500 gets an ABORT under its tag.
#[test]
fn init_with_impossible_values_is_answered_with_abort() {
    let good = peer_init(PEER_TAG);
    for bad in [
        wire::Init { outbound_streams: 0, ..good },
        wire::Init { inbound_streams: 0, ..good },
        wire::Init { a_rwnd: 1499, ..good },
    ] {
        let mut s = Script::established_server();
        s.peer_writes_under(0, |p| p.init(&bad, extensions));
        expect_packet!(s, [Abort { t_bit: false, causes }] if {
            causes.flatten().eq([Cause::InvalidMandatoryParameter])
        });
        s.peer_sends([Heartbeat(b"still there?")]);
        expect_packet!(s, [HeartbeatAck(b"still there?")]);
    }
}

/// RFC 9260 §8.5.1 A, §6.10: an INIT that is bundled or has a tag other than 0 is discarded.
#[test]
fn init_with_other_chunks_or_a_tag_is_discarded() {
    let mut s = Script::server();
    let init = peer_init(PEER_TAG);
    s.peer_writes_under(0, |p| {
        p.init(&init, extensions);
        p.heartbeat(b"")
    });
    s.peer_writes_under(1, |p| p.init(&init, extensions));
    s.expect_silence();
}

/// RFC 9260 §8.4 (3): an endpoint that accepts no associations sends ABORT with the Initiate Tag and T bit 0.
#[test]
fn init_is_refused_where_nothing_is_accepted() {
    let mut s = Script::with(|config, _| config.accept = false);
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
    expect_packet!(s, [Abort { t_bit: false, .. }]);
}

/// RFC 9260 §5.1, §8.5.1 B: the peer refuses.
#[test]
fn abort_in_answer_to_init_ends_the_attempt() {
    let mut s = Script::client();
    s.take_init();
    s.peer_writes(|p| {
        p.abort(false, |causes| {
            causes.push(&Cause::OutOfResource);
        })
    });
    expect_event!(s, Event::Closed(CloseReason::AbortedByPeer { cause: 4, .. }));
    s.expect_silence_until(100_000);
}

/// RFC 9260 §8.5.1 A, B: while the peer's tag is unknown, no ABORT can reflect it: a sender that knows only the
/// addresses cannot end an attempt.
#[test]
fn abort_under_tag_zero_does_not_end_the_attempt() {
    let mut s = Script::client();
    s.take_init();
    for t_bit in [true, false] {
        s.peer_writes_under(0, |p| p.abort(t_bit, |_| ()));
    }
    s.at(1_000).take_init();
}

/// RFC 9260 §9.1, §8.5.1 B: no ABORT can be sent before the peer's tag is known.
#[test]
fn a_failed_setup_is_reported_to_the_peer_once_its_tag_is_known() {
    let mut s = Script::client();
    s.take_init();
    s.shutdown();
    expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
    s.connect();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet!(s, [CookieEcho(_)]);
    s.shutdown();
    expect_packet!(s, [Abort { t_bit: false, .. }]);
    expect_event!(s, Event::Closed(CloseReason::Aborted { .. }));
}

/// A driver configures associations of some peers differently; those that exist keep their configuration.
#[test]
fn a_new_configuration_is_that_of_associations_accepted_later() {
    let packet_bytes = |s: &mut Script| {
        let Some((id, Event::Connected { .. })) = s.endpoint.poll_event() else {
            panic!("no event")
        };
        let paths = s.endpoint.paths(id).expect("it is there");
        (id, paths[0].max_packet_bytes)
    };
    let mut s = Script::server();
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    let (first, before) = packet_bytes(&mut s);

    let config = |bytes| AssociationConfig::default().max_packet_bytes(bytes).into();
    s.endpoint.set_association_config(config(32_000)).expect("it is valid");
    s.peer.route.remote.set_port(s.peer.route.remote.port() + 1);
    s.peer.tag += 1;
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck, ..]);
    assert_eq!(packet_bytes(&mut s).1, 32_000);
    let paths = s.endpoint.paths(first).expect("it is there");
    assert_eq!(paths[0].max_packet_bytes, before);

    assert!(s.endpoint.set_association_config(config(1)).is_err());
}
