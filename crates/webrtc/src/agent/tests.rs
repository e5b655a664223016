use rexmit_core::{Ecn, Machine as _, Seed};
use rexmit_dtls::Identity;

use super::*;
use crate::AgentConfig;

const DELAY: Duration = Duration::from_millis(10);

/// Two agents, and the address of each.
type Pair = [(Agent, SocketAddr); 2];

fn pair(now: Instant) -> Pair {
    let [here, there] = ["192.0.2.1:4000", "192.0.2.2:4000"].map(|it| it.parse().unwrap());
    let settings = |address| {
        let config = AgentConfig::new(Identity::generate().unwrap()).addresses(vec![address]);
        Settings::new(config).unwrap()
    };
    let (mut client, offer) = Agent::offer(now, settings(here), &Seed::from_u64(1));
    let answered = Agent::answer(now, settings(there), &offer, &Seed::from_u64(2));
    let (server, answer) = answered.unwrap();
    client.accept(now, &answer).unwrap();
    [(client, here), (server, there)]
}

/// Passes datagrams for a second, and returns the events of both.
fn exchange(now: &mut Instant, pair: &mut Pair) -> [Vec<Event>; 2] {
    let mut events = [Vec::new(), Vec::new()];
    let mut packet = Vec::new();
    for _ in 0..100 {
        *now += DELAY;
        for from in [0, 1] {
            let remote = pair[from].1;
            while let Some(route) = pair[from].0.poll_transmit(*now, &mut packet) {
                let arrival = Route { local: route.remote, remote };
                pair[1 - from].0.handle_input_with_ecn(*now, arrival, Ecn::Ce, &packet);
            }
        }
        for ((agent, _), events) in pair.iter_mut().zip(&mut events) {
            events.extend(std::iter::from_fn(|| agent.poll_event()));
            agent.handle_timeout(*now);
        }
    }
    events
}

/// RFC 9260 §5.2: the peer begins its association anew, over the same DTLS connection. It has forgotten the channels.
#[test]
fn a_restarted_association_ends_the_connection() {
    let mut now = Instant::from_millis(1000);
    let mut pair = pair(now);
    for events in exchange(&mut now, &mut pair) {
        assert_eq!(events, [Event::Connected]);
    }
    let client = &mut pair[0].0;
    let config = &client.settings.endpoint;
    client.association = Association::new(config, &Seed::from_u64(3));
    let port = client.peer.as_ref().unwrap().sctp_port;
    client.association.connect(now, config, port, None);
    let [_, at_server] = exchange(&mut now, &mut pair);
    assert_eq!(at_server, [Event::Closed(CloseReason::Peer)]);
}

#[test]
fn each_sctp_packet_has_the_ecn_field_of_its_datagram() {
    let mut now = Instant::from_millis(1000);
    let mut pair = pair(now);
    exchange(&mut now, &mut pair);
    pair[0].0.open(now, crate::ChannelConfig::new("one")).unwrap();
    exchange(&mut now, &mut pair);
    let marks = pair.map(|(agent, _)| agent.association.statistics().unwrap().marks);
    assert!(marks.iter().all(|marks| marks.marks_received > 0), "{marks:?}");
}

#[test]
fn a_datagram_is_transmitted_with_the_field_of_its_packet() {
    let now = Instant::from_millis(1000);
    let [(mut agent, _), _] = pair(now);
    let [local, remote] = [1, 2].map(|host| ([192, 0, 2, host], 4000).into());
    let route = Route { local, remote };
    // Nothing else is to be sent.
    let mut packet = Vec::new();
    while agent.poll_transmit(now, &mut packet).is_some() {}
    agent.outgoing.push(route, b"handshake");
    agent.outgoing.push_with_ecn(route, Ecn::Ect0, b"packet");
    agent.outgoing.push(route, b"alert");
    let mut sent = Vec::new();
    while agent.poll_transmit(now, &mut packet).is_some() {
        sent.push((packet.clone(), agent.transmit_ecn()));
    }
    let expected = [("handshake", Ecn::NotEct), ("packet", Ecn::Ect0), ("alert", Ecn::NotEct)];
    assert_eq!(sent, expected.map(|(text, ecn)| (text.as_bytes().to_vec(), ecn)));
}
