//! The ECN field on its way from machine to machine.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{NetHeaders, PacketHeaders};
use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit_core::{Ecn, Instant, Route, Seed};
use rexmit_netsim::network::{
    Direction, Network, Occurrence, PointToPoint, SharedBuffer, TapPoint,
};
use rexmit_netsim::path::{PathConfig, PathStats};

use crate::machines::Node;

const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

/// The ECN fields with which a packet arrives that was sent with `ecn`, and the capture of its receiver.
fn carried(ecn: Ecn, route: Route, path: &str) -> (Vec<Ecn>, Vec<u8>) {
    let sender = Node { ecn, ..Node::sending(route, &[7; 40]) };
    let mut network = Network::new(&Seed::from_u64(1));
    let path: PathConfig = path.parse().unwrap();
    let pair = PointToPoint::build(&mut network, [sender, Node::default()], &path).unwrap();
    for (host, address) in pair.hosts.into_iter().zip([route.local.ip(), route.remote.ip()]) {
        // Those of IPv4 exist already.
        let _ = network.add_address(host, address, pair.link);
    }
    let buffer = SharedBuffer::default();
    let tap = network.tap(&[TapPoint::Host(pair.hosts[1])], buffer.clone()).unwrap();
    let mut arrived = Vec::new();
    network
        .run_until(Instant::from_millis(100), |_, occurrence| {
            if let Occurrence::Event(received) = occurrence {
                arrived.push(received.ecn);
            }
        })
        .unwrap();
    network.finish_tap(tap).unwrap();
    (arrived, buffer.bytes())
}

#[test]
fn a_machine_is_told_the_field_with_which_the_packet_was_sent() {
    for ecn in ALL {
        let (arrived, _) = carried(ecn, PointToPoint::route(), "delay 10ms duplicate 100%");
        assert_eq!(arrived, [ecn, ecn], "also of a copy");
    }
}

#[test]
fn a_capture_shows_the_field_in_the_ip_header() {
    let [a6, b6]: [IpAddr; 2] = ["fd00::1", "fd00::2"].map(|text| text.parse().unwrap());
    let six = Route { local: SocketAddr::new(a6, 0), remote: SocketAddr::new(b6, 0) };
    for (ecn, route) in ALL.into_iter().flat_map(|ecn| [(ecn, PointToPoint::route()), (ecn, six)]) {
        let (_, capture) = carried(ecn, route, "");
        let mut reader = PcapNgReader::new(&capture[..]).unwrap();
        let mut shown = Vec::new();
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
            let headers = PacketHeaders::from_ip_slice(&packet.data).unwrap();
            shown.push(match headers.net.unwrap() {
                NetHeaders::Ipv4(ip, _) => {
                    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                    ip.ecn.value()
                }
                NetHeaders::Ipv6(ip, _) => ip.traffic_class & 3,
                NetHeaders::Arp(_) => unreachable!("no such packet was sent"),
            });
        }
        assert_eq!(shown, [ecn.bits()], "{route:?}");
    }
}

/// The ECN fields of what arrives when a packet is sent each 0.8 ms, a quarter more than the link carries, and the counters.
fn overloaded(ecn: Ecn, path: &str) -> (Vec<Ecn>, PathStats) {
    let gap = Duration::from_micros(800);
    let source = Node::source(PointToPoint::route(), 1480, gap, Instant::ZERO);
    let path = format!("rate 12mbit {path}").parse().unwrap();
    let mut network = Network::new(&Seed::from_u64(1));
    let machines = [Node { ecn, ..source }, Node::default()];
    let pair = PointToPoint::build(&mut network, machines, &path).unwrap();
    let mut arrived = Vec::new();
    network
        .run_until(Instant::from_millis(5000), |_, occurrence| {
            if let Occurrence::Event(received) = occurrence {
                arrived.push(received.ecn);
            }
        })
        .unwrap();
    (arrived, network.link_stats(pair.link, Direction::Forward).path)
}

#[test]
fn random_early_detection_marks_capable_packets_and_drops_the_excess() {
    let red = "red 5 15 10% 0.02 ecn limit 100";
    for ecn in [Ecn::Ect0, Ecn::Ect1] {
        let (arrived, stats) = overloaded(ecn, red);
        let marked = arrived.iter().filter(|&&ecn| ecn == Ecn::Ce).count();
        assert!(arrived.iter().all(|&arrived| [ecn, Ecn::Ce].contains(&arrived)));
        // Some marked packets are still on the path.
        assert!(
            (0..40).contains(&(stats.aqm.marked as usize - marked)) && marked > 100,
            "{marked}"
        );
        // The sender does not respond, so that the queue grows to where packets are dropped.
        assert!(stats.lost_red > 100 && stats.lost_queue == 0, "{stats:?}");
    }
    let (arrived, stats) = overloaded(Ecn::NotEct, red);
    assert!(arrived.iter().all(|&ecn| ecn == Ecn::NotEct));
    assert!(stats.lost_red > 1000 && stats.aqm.marked == 0);
    let (_, stats) = overloaded(Ecn::Ect0, "red 5 15 10% 0.02 limit 100");
    assert_eq!(stats.aqm.marked, 0, "marking is off by default");
}
