//! The ECN field of the packets that SCTP receives.

use std::time::Duration;

use super::*;
use crate::{Identity, Trust};

/// The addresses of the client and the server.
const ADDRESSES: [&str; 2] = ["192.0.2.1:4000", "192.0.2.2:9899"];

/// The route from one end to the other.
fn route_from(end: usize) -> Route {
    let [local, remote] = [end, 1 - end].map(|end| ADDRESSES[end].parse().unwrap());
    Route { local, remote }
}

/// A client and a server that trust each other.
fn pair() -> [Endpoint; 2] {
    let identity = |end: usize| Identity::from_seed(&Seed::from_u64(end as u64));
    [0, 1].map(|end| {
        let trust = Trust::only([identity(1 - end).fingerprint()]);
        let config = EndpointConfig::default().accept(end == 1);
        let seed = Seed::from_u64(2 + end as u64);
        Endpoint::new(config, Encryption::new(identity(end), trust), &seed).unwrap()
    })
}

/// The next datagrams of an end.
fn datagrams(now: Instant, endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    let mut packet = Vec::new();
    let next = || endpoint.poll_transmit(now, &mut packet).map(|_| packet.clone());
    std::iter::from_fn(next).collect()
}

#[test]
fn each_packet_in_a_datagram_has_the_field_of_the_datagram() {
    let (mut now, mut ends) = (Instant::from_millis(1000), pair());
    let config = AssociationConfig::default();
    let id = ends[0].connect(now, route_from(0), 5000, &config).unwrap();
    for _ in 0..10 {
        for from in [0, 1] {
            for datagram in datagrams(now, &mut ends[from]) {
                let to = &mut ends[1 - from];
                to.handle_input_with_ecn(now, route_from(1 - from), Ecn::Ect0, &datagram);
            }
        }
        now += Duration::from_millis(10);
    }
    let [client, server] = &mut ends;
    assert!(!server.buffers.received_ecn.is_empty(), "no association");
    assert!(server.buffers.received_ecn.iter().all(|&ecn| ecn == Ecn::Ect0));
    for ecn in [Ecn::Ce, Ecn::NotEct] {
        server.buffers.received_ecn.clear();
        let message = rexmit_sctp::OutboundMessage::new(0, vec![0; 2000]);
        client.sctp.send(now, id, message).unwrap();
        let records = datagrams(now, client);
        assert_eq!(records.len(), 2);
        // One datagram with both records.
        server.handle_input_with_ecn(now, route_from(1), ecn, &records.concat());
        assert_eq!(server.buffers.received_ecn, [ecn; 2]);
    }
}

/// A NAT has changed the port of the client.
#[test]
fn a_packet_from_an_unknown_port_keeps_its_field() {
    let (now, mut ends) = (Instant::from_millis(1000), pair());
    let config = AssociationConfig::default();
    ends[0].connect(now, route_from(0), 5000, &config).unwrap();
    for from in [0, 1, 0, 1, 0, 1] {
        for datagram in datagrams(now, &mut ends[from]) {
            ends[1 - from].handle_input(now, route_from(1 - from), &datagram);
        }
    }
    let [client, server] = &mut ends;
    let packets = datagrams(now, client);
    let [packet] = &packets[..] else { panic!("{} packets wait", packets.len()) };
    server.buffers.received_ecn.clear();
    let route = Route { remote: "192.0.2.1:4001".parse().unwrap(), ..route_from(1) };
    server.handle_input_with_ecn(now, route, Ecn::Ce, packet);
    assert_eq!(server.buffers.received_ecn, [Ecn::Ce]);
}
