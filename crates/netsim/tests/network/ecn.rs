//! The ECN field on its way from machine to machine.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetHeaders, PacketHeaders};
use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit_core::{Ecn, Instant, Route, Seed};
use rexmit_netsim::network::{Network, Occurrence, PointToPoint, SharedBuffer, TapPoint};
use rexmit_netsim::path::PathConfig;

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
