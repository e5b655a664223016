//! Keys, and chunks that are authenticated (RFC 4895 §6).

use rexmit_core::Instant;
use rexmit_sctp::wire::AsconfChange::Add;
use rexmit_sctp::wire::kind;
use rexmit_sctp::{Event, KeyError, SharedKey};

use crate::ip;
use crate::kit::*;
use crate::peer::{Dynamic, Keys};

/// §6.1: the peer's most preferred hash function that we support is used.
#[test]
fn the_hash_function_is_the_one_that_the_peer_likes_best() {
    for (hmacs, hmac) in [(vec![3, 1], 3), (vec![1, 3], 1), (vec![1], 1), (vec![2, 4, 1], 1)] {
        let keys = Keys { hmacs, hmac, ..Keys::default() };
        let mut s = Dynamic::server_with(keys, |_, _| ());
        s.peer_asks(0, &[Add(ip(3))]);
        assert_eq!(s.take_answer(0, 2), []);
        s.take_probe();
    }
}

/// §6.3: any hash function that we offered is accepted.
#[test]
fn either_hash_function_that_was_offered_is_accepted() {
    let keys = Keys { hmacs: vec![1], hmac: 1, ..Keys::default() };
    let mut s = Dynamic::server_with(keys, |_, _| ());
    s.keys.hmac = 3;
    s.peer_asks(0, &[Add(ip(3))]);
    s.keys.hmac = 1;
    assert_eq!(s.take_answer(0, 2), []);
    s.take_probe();
}

/// §6.1: RANDOM of another length than 32 bytes is a violation.
#[test]
fn a_random_number_of_another_length_is_a_violation() {
    let mut s = Script::server();
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&Param::Random(&[1; 31]));
        })
    });
    expect_packet!(s, [Abort { causes, .. }]
        if matches!(causes.flatten().next(), Some(Cause::ProtocolViolation(_))));
}

/// §6.2: a peer may require authentication of DATA; then all chunks are authenticated, and packets do not become
/// larger.
#[test]
fn everything_is_authenticated_for_a_peer_that_asks_for_data() {
    let keys = || Keys {
        chunks: vec![kind::ASCONF, kind::ASCONF_ACK, kind::DATA, kind::COOKIE_ECHO],
        ..Keys::default()
    };
    for mut s in [Dynamic::server_with(keys(), |_, _| ()), Dynamic::client_with(keys(), |_, _| ())]
    {
        let limit = rexmit_sctp::AssociationConfig::rfc9260().max_packet_bytes;
        s.try_send(rexmit_sctp::OutboundMessage::new(0, vec![7; 3 * limit])).unwrap();
        let mut sent_bytes = 0;
        while let Some(sent) = s.poll_packet() {
            s.keys.check(&sent);
            assert!(sent.bytes.len() <= limit);
            for chunk in &sent.chunks()[1..] {
                let Data(data) = chunk else { panic!("{sent:?}") };
                sent_bytes += data.payload.len();
            }
        }
        assert_eq!(sent_bytes, 3 * limit);
        s.peer_sends([Heartbeat(b"?")]);
        let sent = s.next_packet();
        s.keys.check(&sent);
        s.peer_sends([Data(data(0, b"x")), Data(data(1, b"y"))]);
        let sent = s.next_packet();
        s.keys.check(&sent);
        s.abort(b"enough");
        let sent = s.next_packet();
        s.keys.check(&sent);
    }
}

/// §6.3: chunks that we require to be authenticated are dropped without AUTH, even from peers without RFC 4895.
#[test]
fn chunks_that_must_be_authenticated_are_dropped_without() {
    let asks = |_: &mut _, association: &mut rexmit_sctp::AssociationConfig| {
        association.authentication.chunks = vec![kind::DATA, kind::ABORT];
    };
    let mut s = Dynamic::server_with(Keys::default(), asks);
    s.peer_sends([Data(data(0, b"forged")), Heartbeat(b"!")]);
    expect_packet!(s.s, [HeartbeatAck(_)]);
    s.peer_writes(|p| p.abort(false, |_| ()));
    s.expect_silence_until(300);
    assert_eq!((s.events(), s.receive()), (vec![], None));
    assert_eq!(s.endpoint.endpoint_statistics().unauthenticated, 2);
    s.peer_signs(|p| p.data(&data(0, b"genuine")));
    assert_eq!(s.receive().as_deref(), Some(&b"genuine"[..]));
    expect_packet!(s.s, [Sack(_)]);
    s.peer_signs(|p| p.abort(false, |_| ()));
    assert!(matches!(s.events()[..], [Event::Readable, Event::Closed(_)]));
    let mut s = Script::established_server_with(|_, association| {
        association.authentication.chunks = vec![kind::DATA];
    });
    s.peer_sends([Data(data(0, b"from who does not speak it"))]);
    s.expect_silence_until(300);
}

/// §6.3: an AUTH before COOKIE ECHO is verified for the association that the cookie would create.
#[test]
fn cookie_echo_is_accepted_only_with_the_key() {
    let mut keys = Keys { shared: (5, b"we two".to_vec()), ..Keys::default() };
    let mut s = Script::with(|_, association| {
        association.authentication.chunks = vec![kind::COOKIE_ECHO];
        association.authentication.keys = vec![SharedKey::new(5, b"we two")];
        association.failure.heartbeat_interval = None;
    });
    s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), |params| keys.offer(params)));
    let cookie = expect_packet!(s, [InitAck(ack)] => {
        s.peer.endpoint_tag = ack.initiate_tag;
        keys.learn(ack.params());
        cookie_of(&ack)
    });
    let mut s = Dynamic { s, keys };
    let refused = |s: &mut Dynamic| {
        s.expect_silence();
        assert_eq!(s.endpoint.association_count(), 0);
    };
    s.peer_sends([CookieEcho(&cookie)]);
    refused(&mut s);
    s.keys.shared.1 = b"another".to_vec();
    s.peer_signs(|p| p.cookie_echo(&cookie));
    refused(&mut s);
    s.keys.shared = (6, b"we two".to_vec());
    s.peer_signs(|p| p.cookie_echo(&cookie));
    refused(&mut s);
    assert_eq!(s.endpoint.endpoint_statistics().unauthenticated, 3);
    s.keys.shared = (5, b"we two".to_vec());
    s.peer_signs(|p| {
        p.cookie_echo(&cookie);
        p.data(&data(0, b"with it"))
    });
    expect_event!(s.s, Event::Connected { .. });
    assert_eq!(s.receive().as_deref(), Some(&b"with it"[..]));
    while s.poll_packet().is_some() {}
    // Again, by the association that there is now.
    s.peer_sends([CookieEcho(&cookie)]);
    s.expect_silence();
    s.peer_signs(|p| p.cookie_echo(&cookie));
    expect_packet!(s.s, [CookieAck]);
    // And ABORTs of the peer still end it: only COOKIE ECHO was asked for.
    s.peer_writes(|p| p.abort(false, |_| ()));
    assert_eq!(s.endpoint.association_count(), 1);
}

/// §6.1, §6.2: keys are added and removed; AUTH names the key in use.
#[test]
fn shared_keys_are_changed_during_the_association() {
    let mut s = Dynamic::server();
    let (now, id) = (Instant::ZERO, s.id());
    assert_eq!(s.endpoint.use_shared_key(now, id, 9), Err(KeyError::NoSuchKey));
    s.endpoint.set_shared_key(now, id, SharedKey::new(9, b"nine")).unwrap();
    // The empty key is no key any more (§6.3).
    s.peer_asks(0, &[]);
    s.expect_silence();
    s.keys.shared = (9, b"nine".to_vec());
    s.peer_asks(0, &[]);
    assert_eq!(s.take_answer(0, 2), []);
    s.endpoint.set_shared_key(now, id, SharedKey::new(10, b"ten")).unwrap();
    s.peer_asks(1, &[]);
    assert_eq!(s.take_answer(1, 2), [], "still the first one");
    s.endpoint.use_shared_key(now, id, 10).unwrap();
    assert_eq!(s.endpoint.delete_shared_key(now, id, 10), Err(KeyError::InUse));
    // Either key is accepted, and the one in use authenticates the chunks of this side.
    s.peer_asks(2, &[]);
    s.keys.shared = (10, b"ten".to_vec());
    assert_eq!(s.take_answer(2, 2), []);
    s.endpoint.delete_shared_key(now, id, 9).unwrap();
    s.keys.shared = (9, b"nine".to_vec());
    s.peer_asks(3, &[]);
    s.expect_silence();
    let mut s = Script::established_server();
    let id = s.id();
    let none = s.endpoint.set_shared_key(now, id, SharedKey::new(1, b""));
    assert_eq!(none, Err(KeyError::NotSupported));
}

/// RFC 9260 §5.2.4 A: after a restart, keys are computed from the new random numbers.
#[test]
fn a_restart_makes_new_keys() {
    let mut s = Dynamic::server();
    s.peer_asks(0, &[]);
    s.take_answer(0, 2);
    let old = s.keys.clone();
    s.peer.tag = 0x1111;
    let init = wire::Init { initial_tsn: 7, ..peer_init(0x1111) };
    let keys = Keys { hmacs: vec![1], hmac: 1, ..Keys::default() };
    s.peer_writes_under(0, |p| p.init(&init, |params| keys.offer(params)));
    s.keys = keys;
    let Dynamic { s: script, keys } = &mut s;
    let cookie = expect_packet!(script, [InitAck(ack)] => {
        script.peer.endpoint_tag = ack.initiate_tag;
        keys.learn(ack.params());
        cookie_of(&ack)
    });
    assert_ne!(keys.theirs, old.theirs, "a new random number");
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s.s, [CookieAck]);
    s.events();
    let asconf = s.signed(|p| p.asconf(7, ip(2), []));
    s.deliver(&asconf);
    let sent = s.next_packet();
    s.keys.check(&sent);
}
