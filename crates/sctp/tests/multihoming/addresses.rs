//! Addresses that are reported and accepted, and the paths between them (RFC 9260 §5.1.2).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rexmit_core::Route;
use rexmit_sctp::{AddressError, ConnectError, SourceAddresses};

use crate::kit::*;

fn ip(address: &str) -> IpAddr {
    address.parse().unwrap()
}

fn route(local: &str, remote: &str) -> Route {
    Route { local: SocketAddr::new(ip(local), 9899), remote: SocketAddr::new(ip(remote), 9899) }
}

/// The paths of an endpoint with the addresses `own`, reached over `way` by a peer that lists `reported`.
fn ways(own: &[&str], way: Route, reported: &[&str]) -> Vec<(IpAddr, IpAddr)> {
    ways_from(SourceAddresses::Paired, own, way, reported)
}

fn ways_from(
    source_addresses: SourceAddresses,
    own: &[&str],
    way: Route,
    reported: &[&str],
) -> Vec<(IpAddr, IpAddr)> {
    let mut s = Script::with(|config, _| {
        config.addresses = own.iter().map(|a| ip(a)).collect();
        config.source_addresses = source_addresses;
    });
    s.peer.route = way;
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| {
            reported.iter().for_each(|address| _ = params.push(&ip(address).into()));
        })
    });
    let cookie = s.take_init_ack();
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, rexmit_sctp::Event::Connected { .. });
    let paths = s.statistics().paths;
    while s.poll_packet().is_some() {}
    paths.iter().map(|path| (path.local.ip(), path.remote.ip())).collect()
}

/// Two hosts in two networks have two paths, one within each network.
#[test]
fn each_network_is_a_path() {
    let own = ["10.1.0.1", "10.2.0.1"];
    let expected = [("10.1.0.1", "10.1.0.2"), ("10.2.0.1", "10.2.0.2")];
    let expected = expected.map(|(local, remote)| (ip(local), ip(remote)));
    for reported in [&["10.1.0.2", "10.2.0.2"][..], &["10.2.0.2"]] {
        assert_eq!(ways(&own, route("10.1.0.1", "10.1.0.2"), reported), expected);
    }
    let reversed = ways(&own, route("10.2.0.1", "10.2.0.2"), &["10.1.0.2"]);
    assert_eq!(reversed, [expected[1], expected[0]]);
}

/// A local address that no path would use gets a path, so that a peer with one address has two.
#[test]
fn each_own_address_has_a_path() {
    let own = ["10.1.0.1", "10.2.0.1"];
    let expected = [("10.1.0.1", "10.9.0.2"), ("10.2.0.1", "10.9.0.2")];
    let expected = expected.map(|(local, remote)| (ip(local), ip(remote)));
    assert_eq!(ways(&own, route("10.1.0.1", "10.9.0.2"), &[]), expected);
    // If the driver does not report a local address, the endpoint chooses one.
    assert_eq!(ways(&own, route("0.0.0.0", "10.9.0.2"), &[]), expected);
}

/// The driver chooses where packets come from: our addresses are listed, and cause no paths.
#[test]
fn routed_paths_begin_at_addresses_of_the_driver() {
    let own = ["10.1.0.1", "10.2.0.1"];
    let routed = |reported| {
        ways_from(SourceAddresses::Routed, &own, route("10.1.0.1", "10.1.0.2"), reported)
    };
    let primary = (ip("10.1.0.1"), ip("10.1.0.2"));
    assert_eq!(routed(&[]), [primary]);
    let second = (ip("0.0.0.0"), ip("10.2.0.2"));
    assert_eq!(routed(&["10.2.0.2", "2001:db8::2"]), [primary, second], "IPv4 alone is used");

    let mut s = Script::with(|config, _| {
        config.addresses = own.map(ip).to_vec();
        config.source_addresses = SourceAddresses::Routed;
    });
    s.peer.route = route("10.1.0.1", "10.1.0.2");
    s.peer_writes_under(0, |p| {
        p.init(&peer_init(PEER_TAG), |params| _ = params.push(&ip("10.2.0.2").into()))
    });
    let (tag, cookie, listed) = expect_packet!(
        s, [InitAck(ack)] => (ack.initiate_tag, cookie_of(&ack), addresses_in(&ack))
    );
    s.peer.endpoint_tag = tag;
    assert_eq!(listed, 2);
    s.peer_sends([CookieEcho(&cookie)]);
    expect_packet!(s, [CookieAck]);
    expect_event!(s, rexmit_sctp::Event::Connected { .. });
    let probe = s.take_probe();
    assert_eq!(probe.0.ip(), ip("10.2.0.2"));
    s.peer.route = route("10.2.0.1", "10.2.0.2");
    s.peer_sends([HeartbeatAck(&probe.1)]);
    let learned = s.statistics().paths[1].local.ip();
    assert_eq!(learned, ip("10.2.0.1"), "where the answer arrived");
}

/// An address that we have, too, is another one in the peer's networks: packets to it would come back to us.
#[test]
fn our_own_addresses_are_none_of_the_peers() {
    let own = ["10.1.0.1", "172.17.0.1"];
    for source_addresses in [SourceAddresses::Paired, SourceAddresses::Routed] {
        let remotes = |way: Route, reported: &[&str]| {
            let ways = ways_from(source_addresses, &own, way, reported);
            let mut remotes: Vec<_> = ways.iter().map(|way| way.1).collect();
            remotes.dedup();
            remotes
        };
        let reported = ["172.17.0.1", "10.2.0.2"];
        let taken = remotes(route("10.1.0.1", "10.1.0.2"), &reported);
        assert!(taken.contains(&ip("10.2.0.2")) && !taken.contains(&ip("172.17.0.1")), "{taken:?}");
        // Unless the peer is on this host.
        let taken = remotes(route("10.1.0.1", "10.1.0.1"), &reported);
        assert!(taken.contains(&ip("172.17.0.1")), "{taken:?}");
    }
}

/// A peer is told of the first addresses in its scope, not of those in scope among the first.
#[test]
fn the_addresses_of_a_host_are_limited_after_their_scope() {
    let mut s = Script::server();
    let routed = SourceAddresses::Routed;
    let private = (1..=20).map(|number| IpAddr::from([10, 0, 0, number]));
    let global = (1..=20).map(|number| IpAddr::from([198, 51, 100, number]));
    s.endpoint.set_addresses(private.chain(global).collect(), routed).unwrap();
    s.connect();
    let listed = expect_packet!(s, tag 0, [Init(init)] => addresses_in(&init));
    assert_eq!(listed, rexmit_sctp::MAX_ADDRESSES);
    let limit = rexmit_sctp::MAX_HOST_ADDRESSES;
    let many = vec![ip("10.0.0.1"); limit + 1];
    let refused = s.endpoint.set_addresses(many, routed);
    assert_eq!(refused, Err(AddressError::TooManyAddresses { limit }));
}

/// A peer behind a NAT that knows one address of ours takes the one that the packet comes from.
#[test]
fn a_single_address_is_not_listed() {
    for (own, count) in [(&["10.0.0.1"][..], 0), (&["10.0.0.1", "192.0.2.1"], 0), (&[], 0)] {
        let mut s =
            Script::with(|config, _| config.addresses = own.iter().map(|a| ip(a)).collect());
        s.connect();
        let listed = expect_packet!(s, tag 0, [Init(init)] => addresses_in(&init));
        assert_eq!(listed, count, "of {own:?}");
    }
}

/// Nothing is sent from the open network to private, loopback or link-local addresses of a peer.
#[test]
fn addresses_out_of_scope_are_not_accepted() {
    let reported = ["10.0.0.1", "127.0.0.1", "169.254.0.1", "fe80::1", "::1", "198.51.100.1"];
    let taken = ways(&[], route("192.0.2.1", "192.0.2.2"), &reported);
    let remotes: Vec<_> = taken.iter().map(|(_, remote)| *remote).collect();
    assert_eq!(remotes, [ip("192.0.2.2"), ip("198.51.100.1")]);
    let taken = ways(&[], route("10.0.0.9", "10.0.0.8"), &reported);
    let remotes: Vec<_> = taken.iter().map(|(_, remote)| *remote).collect();
    assert_eq!(remotes, [ip("10.0.0.8"), ip("10.0.0.1"), ip("198.51.100.1")]);
}

/// Our private addresses are not reported to a peer on the open network either.
#[test]
fn own_addresses_out_of_scope_are_not_listed() {
    let own = ["10.0.0.1", "127.0.0.1", "192.0.2.1", "198.51.100.1", "fd00::1", "2001:db8::1"];
    for (peer, count) in [("192.0.2.2", 3), ("10.0.0.2", 5), ("127.0.0.2", 6)] {
        let mut s =
            Script::with(|config, _| config.addresses = own.iter().map(|a| ip(a)).collect());
        s.peer.route = route("192.0.2.1", peer);
        s.peer_writes_under(0, |p| p.init(&peer_init(PEER_TAG), extensions));
        let reported = expect_packet!(s, [InitAck(ack)] => addresses_in(&ack));
        assert_eq!(reported, count, "to {peer} in INIT ACK");
        s.connect();
        let reported = expect_packet!(s, tag 0, [Init(init)] => addresses_in(&init));
        assert_eq!(reported, count, "to {peer} in INIT");
    }
}

fn addresses_in(init: &wire::Init<'_>) -> usize {
    let is_address =
        |param: &wire::RawParam<'_>| matches!(param.decode(), Ok(Param::Ipv4(_) | Param::Ipv6(_)));
    init.params().flatten().filter(is_address).count()
}

/// RFC 6951 §5.1: packets to an address from which none was received go to the port of the first address.
#[test]
fn encapsulation_port_of_a_new_address_is_that_of_the_first() {
    let mut s = Script::server();
    s.peer.route.remote = address(2, 4_000);
    s.peer_begins_at(&[3]);
    assert_eq!(s.take_probe().0, address(3, 4_000));
}

/// RFC 6951 §5.4: the port is learned by each path for itself.
#[test]
fn encapsulation_port_is_learned_by_path() {
    let mut s = crate::two_paths();
    s.peer.route.remote = address(3, 333);
    s.peer_sends([Heartbeat(b"")]);
    assert_eq!(s.next_packet().route.remote, address(3, 333));
    s.set_primary(1).unwrap();
    s.send(b"over the second path");
    assert_eq!(s.next_packet().route.remote, address(3, 333));
    s.set_primary(0).unwrap();
    s.send(b"over the first path");
    assert_eq!(s.next_packet().route.remote, address(2, 9899));
}

/// The limit `MAX_ADDRESSES` also applies to the routes of a connect.
#[test]
fn routes_to_connect_over_are_limited() {
    let mut s = Script::server();
    let route = s.peer.route;
    let mut connect = |count| {
        let config = Arc::default();
        s.endpoint.connect_over(rexmit_core::Instant::ZERO, &vec![route; count], 7000, config)
    };
    let limit = rexmit_sctp::MAX_ADDRESSES;
    assert_eq!(connect(0), Err(ConnectError::Routes { limit }));
    assert_eq!(connect(limit + 1), Err(ConnectError::Routes { limit }));
}
