//! The emulator's capture, read back.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit_netsim::network::SharedBuffer;
use rexmit_netsim::path::{Loss, PathConfig};

/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

fn receive(socket: &UdpSocket) -> SocketAddr {
    socket.recv_from(&mut [0; 100]).expect("a packet in time").1
}

fn config(server: &UdpSocket) -> EmulatorConfig {
    EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), server.local_addr().unwrap())
}

/// Interface, ports, contents and comment of a packet.
type Seen = (u32, [u16; 2], Vec<u8>, Option<String>);

fn packets(file: &[u8]) -> Vec<Seen> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let comment = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        });
        let port = |at| u16::from_be_bytes([packet.data[at], packet.data[at + 1]]);
        let contents = packet.data[HEADERS..].to_vec();
        packets.push((packet.interface_id, [port(20), port(22)], contents, comment));
    }
    packets
}

#[test]
fn a_capture_contains_delivered_and_dropped_packets() {
    let (server, client, refused) = (socket(), socket(), socket());
    let loss = Loss { packets: vec![1], ..Loss::default() };
    let backward = PathConfig { corrupt: 1.0, ..PathConfig::default() };
    let config = config(&server)
        .forward(PathConfig { loss, ..PathConfig::default() })
        .backward(backward)
        .max_clients(1);
    let buffer = SharedBuffer::default();
    let mut emulator = Emulator::start_capturing(&config, buffer.clone()).unwrap();
    let to = emulator.local_addr();
    client.send_to(b"first", to).unwrap();
    let relay = receive(&server);
    client.send_to(b"lost", to).unwrap();
    refused.send_to(b"refused", to).unwrap();
    client.send_to(b"third", to).unwrap();
    receive(&server);
    server.send_to(&[0; 10], relay).unwrap();
    receive(&client);
    emulator.finish_capture().unwrap();
    assert_eq!(emulator.stop().unwrap().uncaptured, 0);

    let port = |socket: &UdpSocket| socket.local_addr().unwrap().port();
    let (to_server, to_client) = ([port(&client), port(&server)], [port(&server), port(&client)]);
    let said = |text: &str| Some(text.to_owned());
    let one_too_many = said("dropped by the emulator: one client too many");
    let found = packets(&buffer.bytes());
    let (answer, requests) = found.split_last().unwrap();
    assert_eq!(
        requests,
        [
            (0, to_server, b"first".to_vec(), None),
            (0, to_server, b"lost".to_vec(), said("lost: listed")),
            (0, [port(&refused), port(&server)], b"refused".to_vec(), one_too_many),
            (0, to_server, b"third".to_vec(), None),
        ]
    );
    assert_eq!((answer.0, answer.1, &answer.3), (1, to_client, &said("one bit flipped")));
    assert_eq!(answer.2.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1, "{answer:?}");
}

#[test]
fn a_failing_capture_does_not_affect_forwarding() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (server, client) = (socket(), socket());
    let mut emulator = Emulator::start_capturing(&config(&server), Full).unwrap();
    for _ in 0..10 {
        client.send_to(b"packet", emulator.local_addr()).unwrap();
        receive(&server);
    }
    let error = emulator.finish_capture().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(emulator.stop().unwrap().forward.arrivals.delivered, 10);
}
