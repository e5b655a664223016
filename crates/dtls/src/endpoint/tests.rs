//! The ECN field of the SCTP packets in datagrams.

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

/// The next datagrams of an end, with the ECN field of each.
fn datagrams(now: Instant, endpoint: &mut Endpoint) -> Vec<(Ecn, Vec<u8>)> {
    let mut packet = Vec::new();
    let mut sent = Vec::new();
    while endpoint.poll_transmit(now, &mut packet).is_some() {
        sent.push((endpoint.transmit_ecn(), packet.clone()));
    }
    sent
}

/// Establishes an association.
fn connect(now: Instant, ends: &mut [Endpoint; 2]) -> AssociationId {
    let config = AssociationConfig::default().ecn(true);
    let id = ends[0].connect(now, route_from(0), 5000, &config).unwrap();
    for from in [0, 1].into_iter().cycle().take(20) {
        for (ecn, datagram) in datagrams(now, &mut ends[from]) {
            assert_eq!(ecn, Ecn::NotEct, "without data");
            ends[1 - from].handle_input(now, route_from(1 - from), &datagram);
        }
    }
    id
}

/// Packets with data that routers have marked on their way to the server.
fn marks(server: &Endpoint) -> u64 {
    let id = server.sctp.associations_with(route_from(0).local).next().unwrap();
    server.sctp.statistics(id).unwrap().marks.marks_received
}

#[test]
fn each_packet_in_a_datagram_has_the_field_of_the_datagram() {
    let (now, mut ends) = (Instant::from_millis(1000), pair());
    let id = connect(now, &mut ends);
    let [client, server] = &mut ends;
    for (ecn, expected) in [(Ecn::Ce, 2), (Ecn::Ect0, 2)] {
        let message = rexmit_sctp::OutboundMessage::new(0, vec![0; 2000]);
        client.sctp.send(now, id, message).unwrap();
        let (fields, records): (Vec<_>, Vec<_>) = datagrams(now, client).into_iter().unzip();
        assert_eq!(fields, [Ecn::Ect0; 2]);
        // One datagram with both records.
        server.handle_input_with_ecn(now, route_from(1), ecn, &records.concat());
        assert_eq!(marks(server), expected);
    }
}

/// A NAT has changed the port of the client.
#[test]
fn a_packet_from_an_unknown_port_keeps_its_field() {
    let (now, mut ends) = (Instant::from_millis(1000), pair());
    let id = connect(now, &mut ends);
    let [client, server] = &mut ends;
    client.sctp.send(now, id, rexmit_sctp::OutboundMessage::new(0, "data")).unwrap();
    let packets = datagrams(now, client);
    let [(_, packet)] = &packets[..] else { panic!("{} packets wait", packets.len()) };
    let route = Route { remote: "192.0.2.1:4001".parse().unwrap(), ..route_from(1) };
    server.handle_input_with_ecn(now, route, Ecn::Ce, packet);
    assert_eq!(marks(server), 1);
}
