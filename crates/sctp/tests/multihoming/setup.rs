//! Setting up an association over several paths, and restarting it (RFC 9260 §5.1, §5.2, §5.4 rule 1).

use std::sync::Arc;

use rexmit_core::{Instant, Route};
use rexmit_sctp::{AssociationConfig, Event, PathState, SourceAddresses};

use crate::kit::*;
use crate::states;

/// A client that was given two addresses of the peer.
fn client() -> Script {
    let mut s = Script::server();
    let routes = [2, 3].map(|host| Route { remote: address(host, 9899), ..s.peer.route });
    let config = AssociationConfig::rfc9260().heartbeat_interval(None);
    s.endpoint.connect_over(Instant::ZERO, &routes, PEER_PORT, Arc::new(config)).unwrap();
    s
}

/// INIT is sent over each path in turn.
#[test]
fn init_is_retransmitted_over_another_path() {
    let mut s = client();
    for (ms, host) in [(0, 2), (1_000, 3), (2_000, 2), (4_000, 3), (6_000, 2)] {
        s.go_to(ms);
        let sent = s.next_packet();
        assert_eq!((Script::host_of(&sent), sent.header.verification_tag), (host, 0), "{ms} ms");
    }
}

/// RFC 9260 §6.4: COOKIE ECHO is sent to the source of the INIT ACK, and so is data from then on.
#[test]
fn the_path_that_answers_becomes_the_primary_one() {
    let mut s = client();
    s.take_init();
    s.at(1_000).take_init();
    s.from(3).peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet_to!(s, 3, [CookieEcho(_)]);
    s.peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { peer, .. } if peer == address(3, 9899));
    // The application has named both, so that both are confirmed (RFC 9260 §5.4 rule 1).
    assert_eq!(states(&s), [PathState::Active; 2]);
    s.send(b"hello");
    expect_packet_to!(s, 3, [Data(_)]);
}

/// COOKIE ECHO and its DATA are retransmitted over another path.
#[test]
fn cookie_echo_is_retransmitted_over_another_path() {
    let mut s = client();
    s.take_init();
    s.peer_writes(|p| p.init_ack(&peer_init(PEER_TAG), answer_params));
    expect_packet_to!(s, 2, [CookieEcho(_)]);
    s.at(1_000);
    expect_packet_to!(s, 3, [CookieEcho(_)]);
    s.at(1_100).from(3).peer_sends([CookieAck]);
    expect_event!(s, Event::Connected { peer, .. } if peer == address(3, 9899));
}

/// RFC 9260 §5.2.2: a restart that adds an unknown address is refused, and the ABORT lists that address; one with fewer
/// addresses is accepted.
#[test]
fn restart_with_another_address_is_refused() {
    let mut s = crate::two_paths();
    let restart = |s: &mut Script, hosts: &[u8]| {
        let init = peer_init(0x1111);
        s.peer_writes_under(0, |p| {
            p.init(&init, |params| {
                hosts.iter().for_each(|&host| _ = params.push(&address(host, 0).ip().into()));
            })
        });
    };
    restart(&mut s, &[3, 4]);
    let named = expect_packet!(s, tag 0x1111, [Abort { causes, .. }] => {
        match causes.flatten().next() {
            Some(Cause::RestartWithNewAddresses(named)) => wire::Params::new(named).count(),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(named, 1);
    restart(s.from(3), &[]);
    expect_packet!(s, tag 0x1111, [InitAck(_)]);
}

/// Addresses that are ignored, because they are also ours or of a version of IP that we do not use, are not new in a restart.
#[test]
fn restart_with_ignored_addresses_is_accepted() {
    for source_addresses in [SourceAddresses::Paired, SourceAddresses::Routed] {
        let mut s = Script::with(|config, _| {
            config.addresses = vec![address(1, 0).ip(), address(9, 0).ip()];
            config.source_addresses = source_addresses;
        });
        let restart = |s: &mut Script, tag| {
            s.peer_writes_under(0, |p| {
                p.init(&peer_init(tag), |params| {
                    params.push(&address(9, 0).ip().into());
                    params.push(&std::net::IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]).into());
                })
            });
        };
        restart(&mut s, PEER_TAG);
        let cookie = s.take_init_ack();
        s.peer_sends([CookieEcho(&cookie)]);
        expect_packet!(s, [CookieAck]);
        expect_event!(s, rexmit_sctp::Event::Connected { .. });
        let paths = s.statistics().paths;
        assert!(paths.iter().all(|path| path.remote.ip() == address(2, 0).ip()), "{paths:?}");
        while s.poll_packet().is_some() {}
        restart(&mut s, 0x1111);
        expect_packet!(s, tag 0x1111, [InitAck(_)]);
    }
}

/// RFC 9260 §5.2.4 A: after a restart the other addresses are probed anew.
#[test]
fn restart_confirms_addresses_anew() {
    let mut s = crate::two_paths();
    let known = s.peer.endpoint_tag;
    s.peer.tag = 0x1111;
    let init = wire::Init { initial_tsn: 7, ..peer_init(0x1111) };
    s.peer_writes_under(0, |p| {
        p.init(&init, |params| {
            params.push(&address(3, 0).ip().into());
        })
    });
    let cookie = s.take_init_ack();
    assert_ne!(s.peer.endpoint_tag, known);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet_to!(s, 2, [CookieAck]);
    assert_eq!(s.take_probe().0, address(3, 9899));
    assert_eq!(states(&s), [PathState::Active, PathState::Unconfirmed]);
}
