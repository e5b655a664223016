//! Captures, read back by the library and, where it is installed, by tshark.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit_core::{Instant, Route, Seed, checksum};
use rexmit_netsim::network::{Direction, Network, PointToPoint, SharedBuffer, TapPoint};
use rexmit_netsim::path::{Delay, Loss, PathConfig};

use crate::machines::Node;

/// An SCTP packet with an INIT chunk (RFC 9260 §3.3.2) and its CRC32c.
fn init(tag: u32) -> Vec<u8> {
    let mut packet = Vec::new();
    packet.extend(5001u16.to_be_bytes()); // source port
    packet.extend(5002u16.to_be_bytes()); // destination port
    packet.extend(0u32.to_be_bytes()); // verification tag
    packet.extend(0u32.to_be_bytes()); // checksum, below
    packet.extend([1, 0, 0, 20]); // INIT, no flags, length
    packet.extend(tag.to_be_bytes()); // initiate tag
    packet.extend(131_072u32.to_be_bytes()); // a_rwnd
    packet.extend(10u16.to_be_bytes()); // outbound streams
    packet.extend(10u16.to_be_bytes()); // inbound streams
    packet.extend(1u32.to_be_bytes()); // initial TSN
    let checksum = checksum::crc32c(&packet);
    packet[8..12].copy_from_slice(&checksum.to_le_bytes());
    packet
}

/// Four INITs, the second lost: over IPv4, over UDP, and over IPv6 in two ways.
fn capture() -> Vec<u8> {
    let [a, b] = PointToPoint::ADDRESSES;
    let [a6, b6]: [IpAddr; 2] = ["fd00::1", "fd00::2"].map(|text| text.parse().unwrap());
    let route = |local, remote, port| Route {
        local: SocketAddr::new(local, port),
        remote: SocketAddr::new(remote, port),
    };
    let outbox = [
        (route(a, b, 0), init(1)),
        (route(a, b, 0), init(2)),
        (route(a, b, 9899), init(3)),
        (route(a6, b6, 0), init(4)),
        (route(a6, b6, 9899), init(5)),
    ];
    let sender = Node { outbox: outbox.into(), ..Node::default() };
    let path = PathConfig {
        delay: Delay::constant(Duration::from_nanos(50_000_001)),
        loss: Loss { packets: vec![1], ..Loss::default() },
        ..PathConfig::default()
    };
    let mut network = Network::new(&Seed::from_u64(1));
    let pair = PointToPoint::build(&mut network, [sender, Node::default()], &path).unwrap();
    for (host, address) in pair.hosts.into_iter().zip([a6, b6]) {
        network.add_address(host, address, pair.link).unwrap();
    }
    let buffer = SharedBuffer::default();
    let points = [TapPoint::Entry(pair.link, Direction::Forward), TapPoint::Host(pair.hosts[1])];
    let tap = network.tap(&points, buffer.clone()).unwrap();
    network.run_until(Instant::from_millis(100), |_, _| {}).unwrap();
    network.finish_tap(tap).unwrap();
    network.finish_tap(tap).unwrap();
    buffer.bytes()
}

#[test]
fn a_capture_says_when_where_and_what_was_lost() {
    let bytes = capture();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let packet = packet.into_owned();
        let comment = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.clone().into_owned()),
            _ => None,
        });
        packets.push((packet.interface_id, packet.timestamp.as_nanos(), packet.data, comment));
    }
    let entries: Vec<_> = packets.iter().filter(|packet| packet.0 == 0).collect();
    let comments: Vec<_> = entries.iter().map(|packet| packet.3.as_deref()).collect();
    assert_eq!(comments, [None, Some("lost: listed"), None, None, None]);
    assert!(entries.iter().all(|packet| packet.1 == 0));
    let arrived: Vec<_> = packets.iter().filter(|packet| packet.0 == 1).collect();
    assert_eq!(arrived.len(), 4);
    assert!(arrived.iter().all(|packet| packet.1 == 50_000_001));
    // IP header, then for the second and fourth a UDP header, then the packet as it was.
    let headers = [20, 28, 40, 48];
    for ((packet, header), tag) in arrived.iter().zip(headers).zip([1, 3, 4, 5]) {
        assert_eq!(&packet.2[header..], init(tag));
    }
}

#[test]
fn tshark_decodes_every_packet_as_sctp() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("NOT RUN: tshark is not installed; the library's reading is tested elsewhere");
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("taps.pcapng");
    std::fs::write(&file, capture()).unwrap();
    let tshark = |arguments: &[&str]| {
        let output = Command::new("tshark").arg("-r").arg(&file).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let checked = ["-o", "sctp.checksum:CRC 32c", "-o", "ip.check_checksum:TRUE"];
    let udp = ["-o", "udp.check_checksum:TRUE"];
    let fields = "-T fields -e frame.time_epoch -e frame.interface_name -e sctp.init_initiate_tag \
                  -e sctp.checksum.status -e ip.checksum.status -e udp.checksum.status \
                  -e frame.comment -E separator=;";
    let fields: Vec<_> = fields.split_whitespace().collect();
    let table = tshark(&[&checked[..], &udp, &fields].concat());
    let rows: Vec<_> = table.lines().collect();
    let entry = |tail| format!("0.000000000;a to b, entry;{tail}");
    let exit = |tail| format!("0.050000001;b;{tail}");
    // Status 1 is a good checksum. IPv6 has none of its own.
    let expected = [
        entry("0x00000001;1;1;;"),
        entry("0x00000002;1;1;;lost: listed"),
        entry("0x00000003;1;1;1;"),
        entry("0x00000004;1;;;"),
        entry("0x00000005;1;;1;"),
        exit("0x00000001;1;1;;"),
        exit("0x00000003;1;1;1;"),
        exit("0x00000004;1;;;"),
        exit("0x00000005;1;;1;"),
    ];
    assert_eq!(rows, expected, "{table}");
    assert_eq!(tshark(&["-Y", "_ws.malformed || _ws.expert.severity >= 0x600000"]), "");
}

#[test]
fn an_error_of_the_writer_is_reported_at_the_end() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut network = Network::new(&Seed::from_u64(1));
    let sender = Node::sending(PointToPoint::route(), &init(1));
    let pair = PointToPoint::build(&mut network, [sender, Node::default()], &PathConfig::default());
    let points = pair.unwrap().hosts.map(TapPoint::Host);
    assert!(network.tap(&points, Full(10)).is_err(), "no room for the head of the file");
    let tap = network.tap(&points, Full(200)).unwrap();
    network.run_until(Instant::from_millis(1), |_, _| {}).unwrap();
    assert!(network.finish_tap(tap).is_err());
}
