//! Beginning connections: addresses, ports, ids, and two ends that begin at once.

mod kit;

use kit::*;
use rexmit_core::{Instant, Machine, Seed};
use rexmit_tcp::{ConnectError, ListenError};

fn connect(s: &mut Script, local: &str, remote: &str) -> Result<(), ConnectError> {
    let (local, remote) = (local.parse().unwrap(), remote.parse().unwrap());
    s.endpoint.connect(Instant::ZERO, local, remote).map(|_| ())
}

#[test]
fn impossible_addresses_are_refused() {
    let mut s = Script::silent_with(|_, _| ());
    for (local, remote) in [
        ("192.0.2.1:0", "224.0.0.1:80"),
        ("192.0.2.1:0", "255.255.255.255:80"),
        ("192.0.2.1:0", "0.0.0.0:80"),
        ("192.0.2.1:0", "192.0.2.2:0"),
        ("192.0.2.1:0", "[2001:db8::1]:80"),
        ("0.0.0.0:0", "192.0.2.2:80"),
        ("0.0.0.0:5", "192.0.2.2:80"),
        ("192.0.2.1:80", "192.0.2.1:80"),
        ("[2001:db8::1]:0", "[ff02::1]:80"),
    ] {
        assert_eq!(connect(&mut s, local, remote), Err(ConnectError::BadAddress), "{remote}");
    }
    s.expect_silence();
}

#[test]
fn all_ephemeral_ports_are_used_and_each_peer_has_its_own_set() {
    let mut s = Script::silent_with(|config, _| config.ephemeral_ports = (50_000, 50_009));
    s.endpoint.listen(50_003, None).expect("a free port");
    let mut ports = Vec::new();
    for _ in 0..9 {
        assert_eq!(connect(&mut s, "192.0.2.1:0", "192.0.2.2:80"), Ok(()));
        ports.push(s.next_packet().local.port());
    }
    ports.sort_unstable();
    // Every port except 50,003, which has a listener.
    assert_eq!(ports, [0, 1, 2, 4, 5, 6, 7, 8, 9].map(|n| 50_000 + n));
    let full = connect(&mut s, "192.0.2.1:0", "192.0.2.2:80");
    assert_eq!(full, Err(ConnectError::NoFreePort));
    for other in ["192.0.2.2:81", "192.0.2.3:80"] {
        assert_eq!(connect(&mut s, "192.0.2.1:0", other), Ok(()));
        s.next_packet();
    }
    assert_eq!(connect(&mut s, "192.0.2.9:0", "192.0.2.2:80"), Ok(()));
    s.next_packet();
}

#[test]
fn a_connection_that_exists_or_waits_is_not_begun_again() {
    let mut s =
        Script::established_client_with(|config, _| config.ephemeral_ports = (PORT, PORT), |_| ());
    let refused = Err(ConnectError::AddressInUse);
    assert_eq!(connect(&mut s, "192.0.2.1:80", "192.0.2.2:6000"), refused);
    s.finish();
    s.expect(fin(1, 1));
    s.arrives(fin(1, 2));
    s.expect(ack(2, 2));
    assert_eq!(s.endpoint.time_wait_count() + s.endpoint.connection_count(), 1);
    assert_eq!(connect(&mut s, "192.0.2.1:80", "192.0.2.2:6000"), refused);
    let full = Err(ConnectError::NoFreePort);
    assert_eq!(connect(&mut s, "192.0.2.1:0", "192.0.2.2:6000"), full);
    s.events();
    assert_eq!(s.receive(), b"");
    assert_eq!((s.endpoint.time_wait_count(), s.endpoint.connection_count()), (1, 0));
    assert_eq!(connect(&mut s, "192.0.2.1:0", "192.0.2.2:6000"), full);
    assert_eq!(connect(&mut s, "192.0.2.1:80", "192.0.2.2:6000"), refused);
    s.at(60_000);
    assert_eq!(connect(&mut s, "192.0.2.1:80", "192.0.2.2:6000"), Ok(()));
    s.expect(syn());
}

#[test]
fn connections_are_limited() {
    let mut s = Script::silent_with(|config, _| config.max_connections = 1);
    assert_eq!(connect(&mut s, "192.0.2.1:0", "192.0.2.2:80"), Ok(()));
    s.next_packet();
    let refused = Err(ConnectError::TooManyConnections);
    assert_eq!(connect(&mut s, "192.0.2.1:0", "192.0.2.2:80"), refused);
}

#[test]
fn a_port_is_listened_on_once_and_not_if_it_is_zero() {
    let mut s = Script::server();
    assert_eq!(s.endpoint.listen(PORT, None), Err(ListenError::AddressInUse));
    assert_eq!(s.endpoint.listen(0, None), Err(ListenError::PortZero));
}

#[test]
fn an_id_is_used_for_one_connection_only() {
    let mut s = Script::client();
    let first = s.id();
    s.expect(syn());
    s.arrives(rst_ack(0, 1));
    expect_event!(s, Event::Closed(CloseReason::Refused));
    assert_eq!(s.next_event(), None);
    assert_eq!((s.state(), s.endpoint.connection_count()), (None, 0));
    s.connect();
    s.expect(syn());
    assert_ne!(s.id(), first);
    assert_eq!(s.id().index(), first.index());
    assert_eq!(s.endpoint.state(first), None);
    s.endpoint.abort(Instant::ZERO, first);
    assert_eq!(s.state(), Some(State::SynSent));
}

/// Each ready connection sends one segment in turn.
#[test]
fn connections_send_in_turn() {
    let mut s = Script::server();
    let mut ids = Vec::new();
    for n in 0..3 {
        s.peer.address = address(2, PEER_PORT + n);
        s.peer_connects();
        ids.push(s.id());
    }
    s.expect_silence();
    for id in ids {
        s.endpoint.send(Instant::ZERO, id, &[7; 1460 * 2]).expect("room");
    }
    let ports: Vec<u16> = (0..6).map(|_| s.next_packet().remote.port() - PEER_PORT).collect();
    assert_eq!(ports, [0, 1, 2, 0, 1, 2]);
}

/// RFC 9293 §3.5, figure 7: both ends connect at once, and there is one connection.
#[test]
fn two_endpoints_that_connect_at_once_share_one_connection() {
    let config = EndpointConfig::default();
    let mut ends = [1, 2].map(|n| Endpoint::new(config.clone(), &Seed::from_u64(n)).unwrap());
    let (a, b) = (address(1, 5000), address(2, 6000));
    let now = Instant::ZERO;
    let ids = [ends[0].connect(now, a, b).unwrap(), ends[1].connect(now, b, a).unwrap()];
    ends[0].send(now, ids[0], b"from a").unwrap();
    ends[1].send(now, ids[1], b"from b").unwrap();
    let mut packet = Vec::new();
    // The segments of both ends cross each other.
    for _ in 0..10 {
        let mut crossing = Vec::new();
        for (side, end) in ends.iter_mut().enumerate() {
            while let Some(route) = end.poll_transmit(now, &mut packet) {
                crossing.push((1 - side, route.reversed(), packet.clone()));
            }
        }
        for (side, route, packet) in crossing {
            ends[side].handle_input(now, route, &packet);
        }
    }
    for (side, text) in [(0, b"from b"), (1, b"from a")] {
        let event = ends[side].poll_event();
        assert!(
            matches!(event, Some((id, Event::Connected { incoming: false, .. })) if id == ids[side])
        );
        assert_eq!(ends[side].state(ids[side]), Some(State::Established));
        let mut bytes = [0; 10];
        assert_eq!(ends[side].receive(now, ids[side], &mut bytes), Ok(6));
        assert_eq!(&bytes[..6], text);
    }
}
