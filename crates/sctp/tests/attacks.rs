//! Attacks on an open network: one script for each attack that succeeded in an earlier version (docs/security.md).

mod kit;

use kit::*;
use rexmit_core::{Instant, Machine};
use rexmit_sctp::Event;
use rexmit_sctp::wire::Init;

/// Adds a second peer of the endpoint.
fn with_peer<T>(s: &mut Script, peer: &mut Peer, act: impl FnOnce(&mut Script) -> T) -> T {
    std::mem::swap(&mut s.peer, peer);
    let result = act(s);
    std::mem::swap(&mut s.peer, peer);
    result
}

/// A peer at `at` with the SCTP port of the kit, and this tag.
fn peer_at(s: &Script, at: std::net::SocketAddr, tag: u32) -> Peer {
    let route = rexmit_core::Route { remote: at, ..s.peer.route };
    Peer { route, tag, endpoint_tag: 0, ..s.peer }
}

/// The peer of `s` sets up an association; no other packet is exchanged.
#[track_caller]
fn establish(s: &mut Script) {
    let cookie = s.peer_begins();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
}

/// The association of the peer of `s` is alive, and answers to the peer's address.
#[track_caller]
fn expect_alive(s: &mut Script) {
    s.peer_sends([Heartbeat(b"alive?")]);
    let sent = s.next_packet();
    assert_eq!(
        (sent.route.remote, sent.header.verification_tag),
        (s.peer.route.remote, s.peer.tag)
    );
    assert_eq!(sent.chunks(), [HeartbeatAck(b"alive?")]);
}

/// Two clients behind one address, both with the default SCTP port: each has its own
/// association, and data for the first goes to the first.
#[test]
fn second_client_behind_one_address_does_not_take_over_the_first() {
    let mut s = Script::server();
    s.peer.route.remote = address(2, 40_000);
    establish(&mut s);
    expect_event!(s, Event::Connected { .. });
    let first = s.id();
    let mut second = peer_at(&s, address(2, 40_001), 0x2222);
    with_peer(&mut s, &mut second, establish);
    assert_eq!(s.endpoint.association_count(), 2);
    let now = rexmit_core::Instant::ZERO;
    let message = rexmit_sctp::OutboundMessage::new(0, "for the first");
    s.endpoint.send(now, first, message).expect("it lives");
    let sent = s.next_packet();
    let where_to = (sent.route.remote, sent.header.verification_tag);
    assert_eq!(where_to, (address(2, 40_000), PEER_TAG));
    s.peer_acknowledges(tsn(0));
    expect_alive(&mut s);
    with_peer(&mut s, &mut second, expect_alive);
    let events = std::iter::from_fn(|| s.endpoint.poll_event());
    let restarts = events.filter(|(_, event)| matches!(event, Event::PeerRestarted));
    assert_eq!(restarts.count(), 0);
}

/// Every UDP port of one address has every SCTP port to itself.
#[test]
fn clients_behind_one_address_are_not_mixed_up() {
    const CLIENTS: u16 = 500;
    let mut s = Script::server();
    let mut clients: Vec<Peer> = (0..CLIENTS)
        .map(|n| peer_at(&s, address(2, 10_000 + n), 0x1_0000 + u32::from(n)))
        .collect();
    for client in &mut clients {
        with_peer(&mut s, client, establish);
    }
    assert_eq!(s.endpoint.association_count(), CLIENTS.into());
    for client in &mut clients {
        with_peer(&mut s, client, expect_alive);
    }
}

/// A restart needs the same UDP port (RFC 9260 §5.2): from another port it creates a second association.
#[test]
fn restart_from_another_udp_port_does_not_get_the_association() {
    let mut s = Script::established_server();
    s.send(b"for the victim");
    expect_packet!(s, [Data(_)]);
    let mut attacker = peer_at(&s, address(2, 666), 0x666);
    with_peer(&mut s, &mut attacker, |s| {
        establish(s);
        s.poll_packet();
    });
    assert_eq!(s.endpoint.association_count(), 2);
    assert!(s.events().iter().all(|event| !matches!(event, Event::PeerRestarted)));
    s.peer_acknowledges(tsn(0));
    expect_alive(&mut s);
}

/// The Tie-Tags in the cookie of an INIT ACK are zero without an association; their encryption hides that.
#[test]
fn init_ack_does_not_reveal_whether_an_association_exists() {
    let mut s = Script::established_server();
    let mut answers = Vec::new();
    for (port, udp_port) in [(PEER_PORT, 9899), (PEER_PORT, 666), (PEER_PORT + 1, 9899)] {
        for n in 0..20 {
            let mut attacker = peer_at(&s, address(2, udp_port), 0x1000 + n);
            attacker.port = port;
            let sent = with_peer(&mut s, &mut attacker, |s| {
                s.peer_writes_under(0, |p| p.init(&peer_init(s_tag(n)), extensions));
                s.next_packet()
            });
            let &[InitAck(ack)] = &sent.chunks()[..] else { panic!("no INIT ACK: {sent:?}") };
            let ties = <[u8; 8]>::try_from(&cookie_of(&ack)[20..28]).unwrap();
            let said = Init { initiate_tag: 0, params: wire::Params::default(), ..ack };
            answers.push((sent.bytes.len(), said, ties));
        }
    }
    let (len, said, _) = &answers[0];
    assert!(answers.iter().all(|(l, s, _)| (l, s) == (len, said)), "one differs from the others");
    let mut ties: Vec<_> = answers.iter().map(|(_, _, ties)| *ties).collect();
    ties.sort_unstable();
    ties.dedup();
    assert_eq!(ties.len(), answers.len(), "no two are the same, and none is zero: {ties:?}");
    assert_ne!(ties[0], [0; 8]);
}

const fn s_tag(n: u32) -> u32 {
    0x1000 + n
}

/// An INIT that lists the address of a victim is answered as if the victim had no association.
#[test]
fn listing_the_address_of_a_victim_reveals_nothing() {
    let mut s = Script::established_server();
    let victim = s.peer.route.remote;
    for named in [victim.ip(), address(77, 0).ip()] {
        let mut attacker = peer_at(&s, address(3, victim.port()), 0x666);
        with_peer(&mut s, &mut attacker, |s| {
            s.peer_writes_under(0, |p| {
                p.init(&peer_init(0x666), |params| {
                    params.push(&named.into());
                })
            });
            expect_packet!(s, [InitAck(_)]);
        });
    }
    expect_alive(&mut s);
}

/// RFC 5062 §2: an attacker has set up an association, and has listed the address of a victim. The victim can still set
/// up its own association.
#[test]
fn camping_on_an_address_does_not_lock_its_owner_out() {
    for is_over_ip in [false, true] {
        for leaves_shutdown_unanswered in [false, true] {
            let mut s = Script::server();
            if is_over_ip {
                s.over_ip();
            }
            let victim = peer_at(&s, s.peer.route.remote, 0x2222);
            let mut at_attacker = s.peer.route.remote;
            at_attacker.set_ip(address(66, 0).ip());
            s.peer.route.remote = at_attacker;
            s.peer_writes_under(0, |p| {
                p.init(&peer_init(PEER_TAG), |params| {
                    params.push(&victim.route.remote.ip().into());
                })
            });
            let cookie = s.take_init_ack();
            s.peer_sends([CookieEcho(&cookie)]);
            expect_packet!(s, [CookieAck]);
            assert_eq!(s.take_probe().0, victim.route.remote);
            if leaves_shutdown_unanswered {
                s.peer_sends([Shutdown { cumulative_tsn_ack: tsn(0).wrapping_sub(1) }]);
                expect_packet!(s, [ShutdownAck]);
            }
            let attacker = std::mem::replace(&mut s.peer, victim);
            establish(&mut s);
            assert_eq!(s.endpoint.association_count(), 2, "each has its own");
            expect_alive(&mut s);
            if !leaves_shutdown_unanswered {
                s.peer = attacker;
                expect_alive(&mut s);
            }
        }
    }
}

/// Nor does this attack prevent the endpoint from connecting to the victim.
#[test]
fn camping_on_an_address_does_not_stop_a_connect() {
    let mut s = Script::server();
    let victim = s.peer.route;
    s.peer.route.remote = address(66, 9899);
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            params.push(&victim.remote.ip().into());
        })
    });
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    assert_eq!(s.take_probe().0, victim.remote);
    s.peer.route = victim;
    s.connect();
    s.take_init();
}

/// An attacker sends a copy of a packet from a third party's port. The third party gets a few HEARTBEATs, and no data.
#[test]
fn data_is_not_sent_to_a_port_used_by_an_attacker() {
    let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
    s.peer.route.remote = address(2, 53);
    s.peer_sends([CookieAck]);
    s.peer.route.remote = address(2, 9899);
    for n in 0..20 {
        s.send(b"to the peer");
        let is_for_victim = |sent: &Sent| sent.route.remote == address(2, 53);
        while let Some(sent) = s.poll_packet() {
            assert!(
                !is_for_victim(&sent) || matches!(sent.chunks()[..], [Heartbeat(_)]),
                "{sent:?}"
            );
        }
        s.peer_acknowledges(tsn(n));
    }
}

/// Packets from many ports of one address cause one HEARTBEAT within an RTO, not one each.
#[test]
fn packets_from_many_ports_cause_few_heartbeats() {
    let mut s = Script::established_server_with(|_, a| a.failure.heartbeat_interval = None);
    let mut probes = 0;
    for n in 0..1_000 {
        s.peer.route.remote = address(2, 10_000 + n);
        s.peer_sends([CookieAck]);
        probes += std::iter::from_fn(|| s.poll_packet()).count();
    }
    assert_eq!(probes, 1);
}

/// A cookie of 60 KB is refused by its length.
#[test]
fn forged_cookie_of_60_kilobytes_is_refused() {
    let mut s = Script::server();
    let mut forged = s.peer_begins();
    forged.resize(60_000, 0);
    s.peer_sends([CookieEcho(&forged)]);
    assert_eq!(s.endpoint.endpoint_statistics().cookies_refused, 1);
    assert_eq!(s.endpoint.association_count(), 0);
}

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// Bytes sent per byte received from an unverified sender, headers of IPv4 and UDP included: the table of
/// docs/security.md. The ratio is at most three (RFC 9000 §8 has the same limit).
#[test]
fn no_unauthenticated_packet_is_amplified() {
    let unknown = [0xFF, 0, 0, 8, 1, 2, 3, 4];
    let many_unknown = |params: &mut ParamsWriter<'_, '_>| {
        for _ in 0..200 {
            params.push_raw(&wire::RawParam {
                kind: 0xFF00,
                value: &unknown[4..],
                bytes: &unknown,
            });
        }
    };
    let auth = |params: &mut ParamsWriter<'_, '_>| {
        extensions(params);
        params.push(&Param::Random(&[7; 32]));
        params.push(&Param::Chunks(&[0xC1, 0x80]));
        params.push(&Param::HmacAlgo([3, 1].as_slice().into()));
    };
    let name = Param::HostName(b"host.example\0");
    let init = |params: &dyn Fn(&mut ParamsWriter<'_, '_>)| {
        let s = Script::server();
        s.peer_packet(0, |p| p.init(&peer_init(PEER_TAG), |writer| params(writer)))
    };
    let one = |chunk: Chunk<'_>| Script::server().peer_packet(0x1234, |p| p.chunk(&chunk));
    let packets = [
        ("INIT", init(&|_| ())),
        ("INIT with the extensions of rexmit", init(&extensions)),
        ("INIT with an offer of AUTH", init(&auth)),
        ("INIT with 200 unknown parameters", init(&many_unknown)),
        (
            "INIT with a host name",
            init(&|params| {
                params.push(&name);
            }),
        ),
        (
            "INIT with a broken parameter",
            init(&|params| {
                params.push_raw(&wire::RawParam { kind: 5, value: &[1, 2, 3], bytes: &[] });
            }),
        ),
        ("DATA, out of the blue", one(Data(data(0, b"x")))),
        ("HEARTBEAT, out of the blue", one(Heartbeat(&[]))),
        ("SHUTDOWN ACK, out of the blue", one(ShutdownAck)),
        ("COOKIE ECHO, forged", one(CookieEcho(&[0; 40]))),
        ("ABORT, out of the blue", one(Abort { t_bit: false, causes: wire::Causes::default() })),
    ];
    let mut table = String::new();
    for (what, packet) in packets {
        let mut s = Script::server();
        s.deliver(&packet);
        let (received, mut sent) = (packet.len() + HEADERS, 0);
        // All packets sent within ten minutes: nothing is retransmitted, since no state is kept.
        s.each_until(600_000, |_, answer| sent += answer.bytes.len() + HEADERS);
        let ratio = sent as f64 / received as f64;
        table += &format!("| {what} | {received} | {sent} | {ratio:.2} |\n");
        assert!(sent <= 3 * received, "{what}: {received} bytes in, {sent} out");
    }
    println!("{table}");
}

/// An endpoint that lists eight addresses answers with more than three times the bytes of an INIT; and any endpoint does
/// with some bytes more directly over IP. The rate of what is more is limited: then the list is left out, or the INIT is
/// not answered.
#[test]
fn answers_exceed_three_times_the_bytes_at_a_limited_rate_only() {
    const SECONDS: usize = 4;
    let list: Vec<std::net::IpAddr> =
        (1..=8).map(|n| [0x2001, 0xdb8, 0, 0, 0, 0, 0, n].into()).collect();
    for (what, port, headers, addresses, per_second) in [
        ("INIT, eight addresses of IPv6 listed", 9899, 28, &*list, 10_000),
        ("INIT, directly over IP", 0, 20, &[][..], 60_000),
        ("INIT, directly over IP, eight addresses of IPv6 listed", 0, 20, &*list, 10_000),
    ] {
        let mut s = Script::with(|endpoint, _| endpoint.addresses = addresses.to_vec());
        let init = s.peer_packet(0, |p| p.init(&peer_init(PEER_TAG), |_| ()));
        let mut route = s.peer.route;
        route.local.set_port(port);
        route.remote.set_port(port);
        let received = init.len() + headers;
        let (mut answers, mut packet) = (Vec::new(), Vec::new());
        for n in 0..SECONDS * per_second {
            let now = Instant::from_millis((n * 1000 / per_second) as u64);
            s.endpoint.handle_input(now, route, &init);
            while s.endpoint.poll_transmit(now, &mut packet).is_some() {
                answers.push(packet.len() + headers);
            }
        }
        let first = answers[0];
        let ratio = first as f64 / received as f64;
        println!("| {what} | {received} | {first} | {ratio:.2} |");
        assert!(first > 3 * received, "{what}: {received} bytes in, {first} out");
        let excess: usize = answers.iter().map(|sent| sent.saturating_sub(3 * received)).sum();
        // 256 KiB, and 64 KiB for each second.
        assert!(excess <= (256 + SECONDS * 64) * 1024, "{what}: {excess}");
        assert!(excess >= SECONDS * 63 * 1024, "{what}: {excess}");
    }
}
