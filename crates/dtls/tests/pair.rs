//! Connections between two endpoints: echo, loss, trust, and datagrams injected by third parties.

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use common::{CLIENT, Pair, SERVER, endpoint, endpoint_with_mtu, identity, route};
use rexmit_core::{Instant, Machine as _};
use rexmit_dtls::{Encryption, Endpoint, HandshakeError, Trust};
use rexmit_sctp::{AssociationConfig, CloseReason, EndpointConfig, OutboundMessage};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_echo_over_dtls_shows_each_side_the_other() {
    let mut pair = Pair::trusting();
    pair.connect();
    pair.echo(b"hello");
    pair.echo(&[7; 50_000]);
    assert_eq!(pair.client().secured, [identity(2).fingerprint()]);
    assert_eq!(pair.server().secured, [identity(1).fingerprint()]);
}

#[test]
fn payload_is_not_readable_on_the_path() {
    let mut pair = Pair::trusting();
    let secret = b"a secret that is easy to find";
    let found = Rc::new(std::cell::Cell::new(0));
    let seen = Rc::clone(&found);
    pair.fate = Box::new(move |_, _, datagram| {
        seen.set(seen.get() + usize::from(datagram.windows(8).any(|it| it == &secret[..8])));
        true
    });
    pair.connect();
    pair.echo(secret);
    assert_eq!(found.get(), 0);
}

fn loses_every(n: u64) -> impl FnMut(usize, usize, &mut Vec<u8>) -> bool {
    let mut rng = rexmit_core::Seed::from_u64(n).rng();
    move |_, _, _| rng.below(n) > 0
}

#[test]
fn echoes_pass_both_ways_with_five_percent_of_loss() {
    let mut pair = Pair::trusting();
    pair.connect();
    pair.fate = Box::new(loses_every(20));
    for number in 0..200_u32 {
        pair.echo(&number.to_be_bytes());
    }
    assert_eq!(pair.server().received.len(), 200);
}

/// One datagram in four is lost: the flights are retransmitted after 250 ms, not after a second.
#[test]
fn a_handshake_survives_loss() {
    for seed in 0..10 {
        let mut pair = Pair::trusting();
        let mut rng = rexmit_core::Seed::from_u64(seed).rng();
        pair.fate = Box::new(move |_, _, _| rng.below(4) > 0);
        pair.secure();
        let begun = pair.now;
        let is_secured = |pair: &Pair| pair.ends.iter().all(|end| end.secured.len() == 1);
        assert!(pair.run(LONG, is_secured), "seed {seed}: {:?}", pair.client().ended);
        assert!(pair.now - begun < Duration::from_secs(8), "seed {seed}: {:?}", pair.now - begun);
    }
    let mut pair = Pair::trusting();
    pair.fate = Box::new(|end, number, _| end == 1 || number > 0);
    pair.secure();
    let begun = pair.now;
    assert!(pair.run(LONG, |pair| !pair.ends[0].secured.is_empty()));
    assert!(pair.now - begun < Duration::from_millis(500), "{:?}", pair.now - begun);
}

/// Flights consist of several datagrams, and retransmissions may be fragmented differently.
#[test]
fn a_handshake_survives_the_loss_of_each_datagram_of_its_flights() {
    for (end, number) in (0..2).flat_map(|end| (0..8).map(move |number| (end, number))) {
        let mut pair = Pair::trusting();
        let [client, server] = [(false, trusting(1, 2)), (true, trusting(2, 1))];
        pair.ends[0].endpoint = endpoint_with_mtu(512, client.0, client.1, 1);
        pair.ends[1].endpoint = endpoint_with_mtu(512, server.0, server.1, 2);
        pair.fate = Box::new(move |from, count, _| (from, count) != (end, number));
        pair.secure();
        let is_secured = |pair: &Pair| pair.ends.iter().all(|end| end.secured.len() == 1);
        let is_done = pair.run(Duration::from_secs(3), is_secured);
        assert!(is_done, "datagram {number} of {end} lost: {:?}", pair.client().ended);
    }
}

/// A record of the server's flight is damaged: the client acknowledges the records after the gap (RFC 9147 §7.1) a few
/// times until it is retransmitted, not in an endless loop at one instant.
#[test]
fn a_gap_in_a_flight_costs_few_acknowledgements() {
    for at in (0..800).step_by(25) {
        let mut pair = Pair::trusting();
        let sent = Rc::new(std::cell::Cell::new(0));
        let counted = Rc::clone(&sent);
        pair.fate = Box::new(move |from, count, datagram| {
            counted.set(counted.get() + 1);
            if (from, count) == (1, 1) && at < datagram.len() {
                datagram[at] ^= 1;
            }
            true
        });
        pair.secure();
        let is_secured = |pair: &Pair| pair.ends.iter().all(|end| end.secured.len() == 1);
        // A damaged ServerHello may be one that fails the handshake.
        let is_done = pair.run(Duration::from_secs(3), is_secured);
        assert!(is_done || at < 150, "byte {at} flipped: {:?}", pair.client().ended);
        assert!(sent.get() <= 20, "byte {at} flipped: {} datagrams", sent.get());
    }
}

fn trusting(number: u64, trusted: u64) -> Encryption {
    Encryption::new(identity(number), Trust::only([identity(trusted).fingerprint()]))
}

#[test]
fn a_server_with_another_certificate_is_refused_by_its_fingerprint() {
    let mut pair = Pair::new(trusting(1, 3), Encryption::new(identity(2), Trust::anyone()));
    pair.secure();
    assert!(pair.run(LONG, |pair| !pair.ends[0].ended.is_empty()));
    assert_eq!(pair.client().ended, [HandshakeError::Untrusted(identity(2).fingerprint())]);
    let shown = pair.client().ended[0].to_string();
    assert!(shown.contains(&identity(2).fingerprint().to_string()), "{shown}");
    assert_eq!(pair.client().endpoint.connection_count(), 0);
    assert!(pair.server().secured.is_empty());
    pair.run(LONG, |_| false);
    assert_eq!(pair.server().endpoint.connection_count(), 0, "it was given up");
}

#[test]
fn a_client_with_another_certificate_is_notified_of_the_refusal() {
    for loses_the_last in [false, true] {
        let mut pair = Pair::new(trusting(1, 2), trusting(2, 3));
        let mut farewells = 0;
        pair.fate = Box::new(move |end, number, datagram| {
            // The handshake has three datagrams of the server at least.
            let is_farewell = end == 1 && number > 1 && datagram.len() < 40;
            farewells += u32::from(is_farewell);
            !(loses_the_last && is_farewell && farewells == 1)
        });
        pair.secure();
        assert!(pair.run(LONG, |pair| !pair.ends[0].secured.is_empty()));
        pair.begin();
        assert!(pair.run(LONG, |pair| !pair.ends[0].ended.is_empty()));
        let refused = HandshakeError::RefusedByPeer(identity(1).fingerprint());
        assert_eq!(pair.client().ended, [refused]);
        assert!(pair.server().secured.is_empty());
        assert!(pair.run(LONG, |pair| pair.ends[0].closed.is_some()), "its association ends");
        assert!(pair.server().association.is_none());
    }
}

/// Begins an association of the client at once, and sends a message.
fn connect_at_once(pair: &mut Pair) -> rexmit_sctp::AssociationId {
    let (now, config) = (pair.now, AssociationConfig::default());
    let dtls = &mut pair.client().endpoint;
    let id = dtls.connect(now, route(CLIENT, SERVER), 5000, &config).unwrap();
    let message = OutboundMessage::new(0, b"early".to_vec());
    dtls.sctp_mut().send(now, id, message).unwrap();
    id
}

#[test]
fn an_association_waits_for_the_handshake_and_does_not_measure_it() {
    let mut pair = Pair::trusting();
    let begun = pair.now;
    let id = connect_at_once(&mut pair);
    assert!(pair.run(LONG, |pair| pair.ends[0].received == [b"early"]));
    // An INIT sent during the handshake would have been lost, and retransmitted after 250 ms (T1-init).
    assert!(pair.now - begun < Duration::from_millis(250), "{:?}", pair.now - begun);
    assert_eq!(pair.client().association, Some(id));
    let statistics = pair.client().endpoint.sctp().statistics(id).unwrap();
    // Two ways of 20 ms: the handshake is not in it.
    assert_eq!(statistics.paths[0].srtt, Some(Duration::from_millis(40)));
    // Another one with the same peer needs no handshake.
    let (now, config) = (pair.now, AssociationConfig::default());
    let dtls = &mut pair.client().endpoint;
    dtls.sctp_mut().abort(now, id, b"");
    assert!(pair.run(LONG, |pair| pair.ends[1].closed.is_some()));
    let now = pair.now;
    let dtls = &mut pair.client().endpoint;
    dtls.connect(now, route(CLIENT, SERVER), 5000, &config).unwrap();
    pair.client().association = None;
    assert!(pair.run(LONG, |pair| pair.ends[0].association.is_some()));
    assert_eq!(pair.client().secured.len(), 1);
}

#[test]
fn an_association_that_waits_ends_with_the_handshake_and_says_why() {
    let untrusted = HandshakeError::Untrusted(identity(2).fingerprint());
    let refused = HandshakeError::RefusedByPeer(identity(1).fingerprint());
    let no_answer = HandshakeError::NoAnswer(Duration::from_secs(10));
    for (client, server, is_there, expected) in [
        (trusting(1, 3), trusting(2, 1), true, untrusted),
        (trusting(1, 2), trusting(2, 3), true, refused),
        (trusting(1, 2), trusting(2, 1), false, no_answer),
    ] {
        let mut pair = Pair::new(client, server);
        pair.fate = Box::new(move |_, _, _| is_there);
        connect_at_once(&mut pair);
        assert!(pair.run(LONG, |pair| pair.ends[0].closed.is_some()), "{expected}");
        assert_eq!(pair.client().ended, std::slice::from_ref(&expected));
        let reason = expected.to_string().into();
        assert_eq!(pair.client().closed, Some(CloseReason::Aborted { reason }));
        assert_eq!(pair.client().endpoint.sctp().association_count(), 0);
    }
    // Without a handshake, since there is no room for one.
    let mut pair = Pair::new(trusting(1, 2).max_connections(0), trusting(2, 1));
    let (now, config) = (pair.now, AssociationConfig::default());
    let dtls = &mut pair.client().endpoint;
    dtls.connect(now, route(CLIENT, SERVER), 5000, &config).unwrap();
    assert!(pair.run(LONG, |pair| pair.ends[0].closed.is_some()));
}

#[test]
fn connecting_to_a_missing_peer_fails_after_the_time_limit() {
    let mut pair = Pair::trusting();
    pair.fate = Box::new(|_, _, _| false);
    pair.secure();
    let begun = pair.now;
    assert!(pair.run(LONG, |pair| !pair.ends[0].ended.is_empty()));
    assert!(matches!(pair.client().ended[..], [HandshakeError::NoAnswer(_)]));
    assert!(pair.now - begun <= Duration::from_secs(10), "{:?}", pair.now - begun);
    assert_eq!(pair.client().endpoint.connection_count(), 0);
}

#[test]
fn a_connection_ends_some_time_after_its_last_association() {
    let mut pair = Pair::trusting();
    pair.connect();
    pair.run(LONG, |_| false);
    assert_eq!(pair.client().endpoint.connection_count(), 1, "an idle association keeps it");
    let (now, id) = (pair.now, pair.client().association.unwrap());
    pair.client().endpoint.sctp_mut().shutdown(now, id);
    assert!(pair.run(LONG, |pair| pair.ends.iter().all(|end| !end.ended.is_empty())));
    for end in &mut pair.ends {
        assert_eq!(end.endpoint.connection_count(), 0);
        assert_eq!(end.closed, Some(CloseReason::Shutdown));
    }
}

#[test]
fn a_restarted_client_replaces_its_old_connection() {
    let mut pair = Pair::trusting();
    pair.connect();
    pair.echo(b"before");
    *pair.client() = common::End::new(endpoint(false, trusting(1, 2), 3));
    pair.connect();
    pair.echo(b"after");
    assert_eq!(pair.server().ended, [HandshakeError::Replaced]);
    assert_eq!(pair.server().endpoint.connection_count(), 1);
    assert!(matches!(pair.server().closed, Some(CloseReason::Aborted { .. })));
}

#[test]
fn replayed_records_are_dropped() {
    let mut pair = Pair::trusting();
    let sent = Rc::new(RefCell::new(Vec::new()));
    let copies = Rc::clone(&sent);
    pair.fate = Box::new(move |end, _, datagram| {
        if end == 0 {
            copies.borrow_mut().push(datagram.clone());
        }
        true
    });
    pair.connect();
    pair.echo(b"once");
    let packets = |pair: &mut Pair| {
        let id = pair.server().association.unwrap();
        pair.server().endpoint.sctp().statistics(id).unwrap().traffic.packets_received
    };
    pair.run(Duration::from_secs(1), |_| false); // Packets in flight arrive.
    let before = packets(&mut pair);
    let copies = sent.borrow().clone();
    assert_eq!(pair.server().endpoint.statistics().without_packet, 0);
    for datagram in &copies {
        pair.inject(1, CLIENT, datagram);
    }
    assert_eq!(packets(&mut pair), before);
    // Each protected record has a packet; the client's last flight is in records of the handshake's keys.
    let is_protected = |datagram: &&Vec<u8>| datagram[0] & 0xe0 == 0x20;
    let protected = copies.iter().filter(is_protected).count() as u64;
    assert!(protected >= before, "{protected} {before}");
    assert_eq!(pair.server().endpoint.statistics().without_packet, protected);
    assert_eq!(pair.server().endpoint.connection_count(), 1);
    pair.echo(b"goes on");
    pair.run(Duration::from_secs(1), |_| false);
    let after = packets(&mut pair);
    // The client's datagrams, replayed from another address: a handshake that never completes.
    for datagram in &copies {
        pair.inject(1, "192.0.2.7:4000", datagram);
    }
    assert_eq!((packets(&mut pair), pair.server().endpoint.connection_count()), (after, 1));
}

#[test]
fn garbage_and_truncated_records_change_nothing() {
    let mut pair = Pair::trusting();
    pair.connect();
    let mut rng = rexmit_core::Seed::from_u64(7).rng();
    let sample = Rc::new(RefCell::new(Vec::new()));
    let last = Rc::clone(&sample);
    pair.fate = Box::new(move |_, _, datagram| {
        last.borrow_mut().clone_from(datagram);
        true
    });
    for round in 0..300_u32 {
        let mut datagram = sample.borrow().clone();
        match round % 3 {
            0 => datagram.truncate(rng.below(datagram.len() as u64 + 1) as usize),
            1 => {
                datagram.resize(rng.below(100) as usize, 0);
                rng.fill(&mut datagram);
            }
            _ if !datagram.is_empty() => {
                let at = rng.below(datagram.len() as u64) as usize;
                datagram[at] ^= 1 << rng.below(8);
            }
            _ => {}
        }
        let to = (round / 3 % 2) as usize;
        pair.inject(to, [SERVER, CLIENT][to], &datagram);
        if round % 30 == 0 {
            pair.echo(&round.to_be_bytes());
        }
    }
    // Handshake messages and alerts in the clear, which the library must not act upon.
    for content in [20, 21, 22, 23, 26] {
        for body in [&[2, 40][..], &[1, 0], &[1; 40], &[0; 40]] {
            let len = (body.len() as u16).to_be_bytes();
            let header = [content, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9];
            let record = [&header, &len[..], body].concat();
            pair.inject(0, SERVER, &record);
            pair.inject(1, CLIENT, &record);
        }
    }
    pair.echo(b"goes on");
    assert!(pair.client().ended.is_empty() && pair.server().ended.is_empty());
}

/// A NAT gives the client another port: the server finds its connection, and SCTP validates the port.
#[test]
fn a_client_continues_after_a_nat_rebinding() {
    let mut pair = Pair::trusting();
    pair.connect();
    pair.echo(b"before");
    for seen_at in ["192.0.2.1:4001", "192.0.2.1:4002", "192.0.2.1:3000", "192.0.2.1:4005"] {
        pair.client_seen_at = seen_at;
        pair.echo(seen_at.as_bytes());
        pair.run(Duration::from_secs(2), |_| false);
    }
    assert_eq!(pair.server().endpoint.statistics().rebindings, 4);
    assert_eq!(pair.server().endpoint.connection_count(), 1);
    // Another address altogether is not found.
    pair.client_seen_at = "192.0.2.9:4000";
    pair.send(b"lost");
    assert!(!pair.run(Duration::from_secs(5), |pair| pair.ends[0].received.len() > 5));
    assert!(pair.server().endpoint.statistics().discarded > 0);
}

/// The close alert is sent from yet another port.
#[test]
fn a_client_whose_port_has_changed_several_times_ends_its_connection() {
    let client = trusting(1, 2).idle_timeout(Duration::from_secs(1));
    let mut pair = Pair::new(client, trusting(2, 1));
    pair.connect();
    for seen_at in ["192.0.2.1:4001", "192.0.2.1:4002"] {
        pair.client_seen_at = seen_at;
        pair.echo(seen_at.as_bytes());
    }
    let (now, id) = (pair.now, pair.client().association.unwrap());
    pair.client().endpoint.sctp_mut().shutdown(now, id);
    assert!(pair.run(LONG, |pair| pair.ends.iter().all(|end| end.closed.is_some())));
    assert_eq!(pair.server().endpoint.connection_count(), 1, "the server keeps it longer");
    pair.client_seen_at = "192.0.2.1:4003";
    pair.run(Duration::from_secs(3), |_| false);
    assert_eq!(pair.client().endpoint.connection_count(), 0);
    assert_eq!(pair.server().endpoint.connection_count(), 0);
}

/// Records from unknown ports are tried with the connections of their IP address, within a rate.
#[test]
fn a_flood_from_unknown_ports_is_not_decrypted_without_limit() {
    let mut pair = Pair::trusting();
    pair.connect();
    pair.echo(b"before");
    let rebindings = |pair: &mut Pair| pair.server().endpoint.statistics().rebindings;
    let garbage = [&[0x2f, 0, 0, 0, 100][..], &[7; 100]].concat();
    pair.send(b"from another port");
    let record = Rc::new(RefCell::new(Vec::new()));
    let copy = Rc::clone(&record);
    pair.fate = Box::new(move |end, _, datagram| {
        if end == 0 {
            copy.borrow_mut().clone_from(datagram);
        }
        end == 1
    });
    pair.run(Duration::from_millis(1), |_| false);
    let record = record.borrow().clone();
    for _ in 0..100 {
        pair.inject(1, "192.0.2.1:5000", &garbage);
    }
    pair.inject(1, "192.0.2.1:4001", &record);
    assert_eq!(rebindings(&mut pair), 0, "the budget is used up");
    pair.run(Duration::from_millis(150), |_| false);
    pair.inject(1, "192.0.2.1:4001", &record.repeat(2));
    assert_eq!(rebindings(&mut pair), 0, "two records cost two decryptions");
    pair.inject(1, "192.0.2.1:4001", &record);
    assert_eq!(rebindings(&mut pair), 1);
}

/// A NAT has given a client another port, and its former port to another client.
#[test]
fn a_reassigned_nat_port_does_not_end_the_first_connection() {
    let mut pair = Pair::trusting();
    let anyone = Encryption::new(identity(2), Trust::anyone());
    pair.ends[1].endpoint = endpoint(true, anyone, 2);
    pair.connect();
    pair.client_seen_at = "192.0.2.1:4001";
    pair.echo(b"elsewhere");
    pair.run(Duration::from_secs(5), |_| false);
    let (now, mut datagram) = (pair.now, Vec::new());
    let mut second = endpoint(false, trusting(3, 2), 3);
    second.begin_handshake(now, route(CLIENT, SERVER));
    for _ in 0..10 {
        while second.poll_transmit(now, &mut datagram).is_some() {
            pair.inject(1, CLIENT, &datagram);
        }
        while let Some(to) = pair.server().endpoint.poll_transmit(now, &mut datagram) {
            if to.remote == CLIENT.parse().unwrap() {
                second.handle_input(now, to.reversed(), &datagram);
            }
        }
    }
    pair.echo(b"goes on");
    assert_eq!(pair.server().ended, []);
    assert_eq!(pair.server().endpoint.connection_count(), 2);
    let peer = |pair: &mut Pair, at: &str| pair.server().endpoint.peer(at.parse().unwrap());
    assert_eq!(peer(&mut pair, CLIENT), Some(identity(3).fingerprint()));
    assert_eq!(peer(&mut pair, "192.0.2.1:4001"), Some(identity(1).fingerprint()));
}

/// An observer sends copies of the client's packets from a port of its own.
#[test]
fn a_copy_from_elsewhere_moves_nothing() {
    let mut pair = Pair::trusting();
    pair.connect();
    let sent = Rc::new(RefCell::new(Vec::new()));
    let copies = Rc::clone(&sent);
    pair.fate = Box::new(move |end, _, datagram| {
        // The copy comes first.
        copies.borrow_mut().push(datagram.clone());
        end == 1
    });
    pair.send(b"copied");
    pair.run(Duration::from_millis(1), |_| false);
    pair.fate = Box::new(|_, _, _| true);
    for datagram in sent.take() {
        pair.inject(1, "192.0.2.1:6666", &datagram);
    }
    pair.run(LONG, |_| false);
    // It was taken for a moment, and not only discarded.
    assert_eq!(pair.server().endpoint.statistics().rebindings, 1);
    let association = pair.server().association.unwrap();
    let paths = pair.server().endpoint.sctp().paths(association).unwrap();
    assert_eq!(paths[0].remote, CLIENT.parse().unwrap());
    pair.echo(b"goes on");
}

#[test]
fn packets_for_peers_without_a_connection_are_dropped() {
    let mut client = endpoint(false, trusting(1, 2), 1);
    let now = Instant::ZERO;
    client.sctp_mut().connect(now, route(CLIENT, SERVER), 5000).unwrap();
    assert_eq!(client.poll_transmit(now, &mut Vec::new()), None);
}

#[test]
fn peers_of_which_only_one_encrypts_do_not_understand_each_other() {
    let plain = |accept| {
        let config = EndpointConfig::default().accept(accept);
        rexmit_sctp::Endpoint::new(config, &rexmit_core::Seed::from_u64(5)).unwrap()
    };
    let (now, mut packet) = (Instant::ZERO, Vec::new());
    let mut client = plain(false);
    client.connect(now, route(CLIENT, SERVER), 5000).unwrap();
    let mut server = endpoint(true, trusting(2, 1), 2);
    client.poll_transmit(now, &mut packet).expect("an INIT");
    server.handle_input(now, route(SERVER, CLIENT), &packet);
    assert_eq!(server.poll_transmit(now, &mut packet), None);
    assert_eq!((server.statistics().discarded, server.connection_count()), (1, 0));

    let mut server = plain(true);
    let mut client = endpoint(false, trusting(1, 2), 1);
    client.begin_handshake(now, route(CLIENT, SERVER));
    client.poll_transmit(now, &mut packet).expect("a ClientHello");
    server.handle_input(now, route(SERVER, CLIENT), &packet);
    assert_eq!(server.poll_transmit(now, &mut packet), None);
    assert_eq!(server.association_count(), 0);
}

/// The first datagram of a client, and the server's response.
fn hello(
    now: Instant,
    server: &mut Endpoint,
    client: &str,
    seed: u64,
) -> (Endpoint, Vec<u8>, Vec<u8>) {
    let mut client_endpoint = endpoint(false, trusting(1, 2), seed);
    let (mut datagram, mut answer) = (Vec::new(), Vec::new());
    client_endpoint.begin_handshake(now, route(client, SERVER));
    client_endpoint.poll_transmit(now, &mut datagram).expect("a ClientHello");
    server.handle_input(now, route(SERVER, client), &datagram);
    server.poll_transmit(now, &mut answer).expect("a cookie");
    (client_endpoint, datagram, answer)
}

#[test]
fn a_flood_of_client_hellos_creates_no_state_and_is_not_amplified() {
    let mut server = endpoint(true, trusting(2, 1), 2);
    let (_, datagram, _) = hello(Instant::ZERO, &mut server, CLIENT, 1);
    let (mut sent, mut received, mut answer) = (0, 0, Vec::new());
    for n in 0..2000_u16 {
        let [a, b] = n.to_be_bytes();
        let from = format!("198.51.{a}.{b}:4000");
        sent += datagram.len();
        server.handle_input(Instant::ZERO, route(SERVER, &from), &datagram);
        if n % 2 == 0 {
            continue; // Answers are not drained: they are limited.
        }
        while server.poll_transmit(Instant::ZERO, &mut answer).is_some() {
            received += answer.len();
        }
    }
    assert_eq!((server.connection_count(), server.poll_timeout()), (0, None));
    assert!(received > 0 && received <= sent, "{received} of {sent}");
    for _ in 0..100 {
        server.handle_input(Instant::ZERO, route(SERVER, CLIENT), &datagram);
    }
    let waiting = std::iter::from_fn(|| server.poll_transmit(Instant::ZERO, &mut answer)).count();
    assert_eq!(waiting, 64);
}

#[test]
fn a_cookie_is_good_for_its_address_and_for_some_time() {
    let mut server = endpoint(true, trusting(2, 1), 2);
    let (mut client, _, answer) = hello(Instant::ZERO, &mut server, CLIENT, 1);
    let (now, mut second) = (Instant::ZERO, Vec::new());
    client.handle_input(now, route(CLIENT, SERVER), &answer);
    client.poll_transmit(now, &mut second).expect("another ClientHello");
    let mut changed = second.clone();
    let at = changed.len() - 1;
    changed[at] ^= 1;
    server.handle_input(now, route(SERVER, CLIENT), &changed);
    server.handle_input(now, route(SERVER, "192.0.2.66:4000"), &second);
    let later = now + Duration::from_secs(31);
    server.handle_input(later, route(SERVER, CLIENT), &second);
    assert_eq!((server.statistics().cookies_refused, server.connection_count()), (3, 0));
    let mut server = endpoint(true, trusting(2, 1), 2);
    server.handle_input(now, route(SERVER, CLIENT), &second);
    assert_eq!(server.connection_count(), 1);
}

/// A client begins a handshake with the server, and returns its cookie.
fn handshaking_client(now: Instant, server: &mut Endpoint, from: &str, seed: u64) -> Endpoint {
    let mut second = Vec::new();
    let (mut client, _, answer) = hello(now, server, from, seed);
    client.handle_input(now, route(from, SERVER), &answer);
    client.poll_transmit(now, &mut second).expect("another ClientHello");
    server.handle_input(now, route(SERVER, from), &second);
    client
}

#[test]
fn stalled_handshakes_block_new_clients_for_at_most_a_second() {
    let mut server = endpoint(true, trusting(2, 1).max_handshakes(2), 2);
    let mut now = Instant::ZERO;
    handshaking_client(now, &mut server, "192.0.2.1:1", 1);
    now += Duration::from_millis(500);
    handshaking_client(now, &mut server, "192.0.2.1:2", 2);
    now += Duration::from_millis(500);
    let mut datagram = Vec::new();
    while server.poll_transmit(now, &mut datagram).is_some() {}
    let mut third = handshaking_client(now, &mut server, CLIENT, 3);
    assert_eq!((server.connection_count(), server.statistics().handshakes_dropped), (2, 1));
    while let Some(to) = server.poll_transmit(now, &mut datagram) {
        third.handle_input(now, to.reversed(), &datagram);
    }
    while third.poll_transmit(now, &mut datagram).is_some() {
        server.handle_input(now, route(SERVER, CLIENT), &datagram);
    }
    assert_eq!(server.peer(CLIENT.parse().unwrap()), Some(identity(1).fingerprint()));
}

/// The library keeps fragments of messages that are not complete: a client that sends too many is ignored.
#[test]
fn data_of_a_client_during_a_handshake_is_limited() {
    let mut server = endpoint(true, trusting(2, 1), 2);
    let now = Instant::ZERO;
    handshaking_client(now, &mut server, CLIENT, 1);
    let before = server.statistics().discarded;
    let record = [&[0x2f, 0, 0, 0x3f, 0xf0][..], &[7; 0x3ff0]].concat();
    for _ in 0..10 {
        server.handle_input(now, route(SERVER, CLIENT), &record);
    }
    assert_eq!(server.statistics().discarded - before, 6, "four have 64 KiB");
}

#[test]
fn an_idle_limit_of_zero_is_a_short_one() {
    let mut pair = Pair::new(trusting(1, 2).idle_timeout(Duration::ZERO), trusting(2, 1));
    pair.connect();
    pair.run(Duration::from_secs(5), |_| false);
    pair.echo(b"a connection with an association is not idle");
    let (now, id) = (pair.now, pair.client().association.unwrap());
    pair.client().endpoint.sctp_mut().shutdown(now, id);
    assert!(pair.run(LONG, |pair| pair.ends[0].closed.is_some()));
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(pair.client().endpoint.connection_count(), 0);
}

#[test]
fn handshakes_in_progress_are_limited_and_end() {
    let mut server = endpoint(true, trusting(2, 1).max_handshakes(2), 2);
    let (now, mut second) = (Instant::ZERO, Vec::new());
    for (n, from) in ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3"].into_iter().enumerate() {
        handshaking_client(now, &mut server, from, n as u64);
        while server.poll_transmit(now, &mut second).is_some() {}
    }
    assert_eq!((server.connection_count(), server.statistics().handshakes_dropped), (2, 1));
    let mut last = now;
    while let Some(at) = server.poll_timeout() {
        server.handle_timeout(at);
        while server.poll_transmit(at, &mut second).is_some() {}
        last = at;
    }
    assert!(last <= now + Duration::from_secs(10), "{last:?}");
    assert_eq!((server.connection_count(), server.statistics().handshakes_failed), (0, 2));
}
