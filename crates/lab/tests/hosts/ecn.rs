//! Hosts pass on the ECN field of packets.

use std::any::Any;
use std::convert::Infallible;

use rexmit_core::{Ecn, Instant, Machine, Route, Seed};
use rexmit_lab::hosts::{Host, Station};
use rexmit_netsim::network::{Network, PointToPoint};
use rexmit_netsim::path::PathConfig;

/// Sends one packet as ECT(0) if it has a route, and records the fields of what arrives.
#[derive(Default)]
struct Probe {
    route: Option<Route>,
    received: Vec<Ecn>,
}

impl Machine for Probe {
    type Event = Infallible;

    fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {
        unreachable!("hosts report the field");
    }

    fn handle_input_with_ecn(&mut self, _: Instant, _: Route, ecn: Ecn, _: &[u8]) {
        self.received.push(ecn);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        packet.clear();
        packet.extend_from_slice(b"probe");
        self.route.take()
    }

    fn transmit_ecn(&self) -> Ecn {
        Ecn::Ect0
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl Station for Probe {
    fn program(&self) -> &dyn Any {
        self
    }

    fn ip_protocol(&self) -> u8 {
        132
    }
}

#[test]
fn a_host_passes_the_field_on_with_and_without_udp() {
    for is_over_udp in [false, true] {
        let sender = Probe { route: Some(PointToPoint::route()), ..Probe::default() };
        let hosts = [sender, Probe::default()].map(Host::of);
        let hosts = hosts.map(|host| if is_over_udp { host.over_udp() } else { host });
        let mut network = Network::new(&Seed::from_u64(1));
        let pair = PointToPoint::build(&mut network, hosts, &PathConfig::default()).unwrap();
        network.run_until(Instant::from_millis(1), |_, _| {}).unwrap();
        let receiver = network.machine(pair.hosts[1]).program::<Probe>().unwrap();
        assert_eq!(receiver.received, [Ecn::Ect0], "over UDP: {is_over_udp}");
    }
}
