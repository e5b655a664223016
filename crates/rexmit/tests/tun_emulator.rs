//! The layer-3 emulator, with the kernel's protocols at both ends.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use common::netns;
use etherparse::{Ipv4HeaderSlice, UdpHeaderSlice};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::path::{Loss, PathConfig};
use rexmit::tun::{NetNamespace, Tun, TunConfig};
use rexmit_core::Seed;
use rexmit_netsim::network::SharedBuffer;

const FAR: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 2);
/// Time limit that only a failing test reaches.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Two namespaces, each with a device that is to be linked with the other.
struct Ends {
    near: NetNamespace,
    far: NetNamespace,
    devices: (Tun, Tun),
}

fn ends() -> Option<Ends> {
    let (near, far) = (netns::namespace()?, netns::namespace()?);
    let open = |namespace, address| {
        let ipv4 = Some((address, 24));
        let config = TunConfig::default().ipv4(ipv4).queue_packets(10_000);
        netns::if_permitted(Tun::open_in(namespace, &config))
    };
    let devices = (open(&near, NEAR)?, open(&far, FAR)?);
    Some(Ends { near, far, devices })
}

fn both_ways(path: &PathConfig) -> LinkConfig {
    LinkConfig::default().forward(path.clone()).backward(path.clone())
}

fn udp(namespace: &NetNamespace, address: Ipv4Addr) -> UdpSocket {
    let socket = namespace.run(|| UdpSocket::bind((address, 0))).unwrap().unwrap();
    socket.set_read_timeout(Some(TIME_LIMIT)).unwrap();
    socket
}

#[test]
fn tcp_of_the_kernel_gets_20_megabytes_through_loss_reordering_and_duplication() {
    const BYTES: usize = 20_000_000;
    let Some(Ends { near, far, devices }) = ends() else { return };
    let words = "delay 1ms loss 1% reorder 2% 2ms duplicate 1%";
    let link = both_ways(&words.parse().unwrap());
    let emulator = TunEmulator::start(&link, devices.0, devices.1).unwrap();

    let listener = far.run(|| TcpListener::bind((FAR, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let mut sent = vec![0; BYTES];
    Seed::from_u64(20).rng().fill(&mut sent);
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut received = Vec::new();
            let (mut stream, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), NEAR);
            stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let mut stream = near.run(|| TcpStream::connect(address)).unwrap().unwrap();
        stream.write_all(&sent).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        receiver.join().unwrap()
    });
    // No assert_eq: it would print both.
    assert!(received == sent, "{} of {BYTES} bytes, or others", received.len());

    let statistics = emulator.stop().unwrap();
    let forward = statistics.forward;
    assert!(forward.path.lost_uniform > 0 && forward.path.duplicated > 0, "{statistics:?}");
    assert!(forward.arrivals.reordered > 0, "{statistics:?}");
    assert_eq!((forward.overflowed, forward.unsent), (0, 0));
    assert!(forward.path.offered as usize > BYTES / 1500);
}

#[test]
fn a_udp_ping_is_counted_once_per_direction_and_takes_both_delays() {
    let Some(Ends { near, far, devices }) = ends() else { return };
    let link = LinkConfig::default()
        .forward("delay 20ms".parse().unwrap())
        .backward("delay 30ms".parse().unwrap());
    let emulator = TunEmulator::start(&link, devices.0, devices.1).unwrap();
    let (client, server) = (udp(&near, NEAR), udp(&far, FAR));
    for number in 0..10_u8 {
        let start = rexmit::clock::now();
        client.send_to(&[number; 50], server.local_addr().unwrap()).unwrap();
        let mut packet = [0; 100];
        let (len, from) = server.recv_from(&mut packet).unwrap();
        assert!(rexmit::clock::now() - start >= Duration::from_millis(20));
        server.send_to(&packet[..len - 20], from).unwrap();
        assert_eq!(client.recv(&mut packet).unwrap(), 30);
        assert_eq!(packet[..30], [number; 30]);
        assert!(rexmit::clock::now() - start >= Duration::from_millis(50));
    }
    let statistics = emulator.stop().unwrap();
    for (direction, payload) in [(statistics.forward, 50), (statistics.backward, 30)] {
        // Headers of IPv4 and UDP.
        assert_eq!(
            (direction.path.offered, direction.path.offered_bytes),
            (10, 10 * (28 + payload))
        );
        assert_eq!(direction.arrivals.delivered, 10);
    }
    assert_eq!(statistics.lateness.count, 20);
}

/// The kernel's TCP drops segments with a wrong checksum of the IP header, so that a transfer shows that marks keep it right.
#[test]
fn fq_codel_marks_tcp_of_the_kernel_that_uses_ecn() {
    let Some(Ends { near, far, devices }) = ends() else { return };
    for namespace in [&near, &far] {
        let setting = "/proc/sys/net/ipv4/tcp_ecn";
        if namespace.run(|| std::fs::write(setting, "1")).unwrap().is_err() {
            rexmit_testkit::not_run("net.ipv4.tcp_ecn cannot be set");
            return;
        }
    }
    let link = both_ways(&"delay 5ms rate 20mbit fq_codel limit 1000".parse().unwrap());
    let emulator = TunEmulator::start(&link, devices.0, devices.1).unwrap();
    let listener = far.run(|| TcpListener::bind((FAR, 0))).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut received = Vec::new();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TIME_LIMIT)).unwrap();
            stream.read_to_end(&mut received).unwrap();
            received.len()
        });
        let mut stream = near.run(|| TcpStream::connect(address)).unwrap().unwrap();
        stream.write_all(&vec![7; 5_000_000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        receiver.join().unwrap()
    });
    let path = emulator.stop().unwrap().forward.path;
    assert_eq!((received, path.lost()), (5_000_000, 0), "{path:?}");
    assert!(path.aqm.marked > 0, "{path:?}");
}

#[test]
fn a_capture_has_the_packets_as_they_were() {
    let Some(Ends { near, far, devices }) = ends() else { return };
    let loss = Loss { packets: vec![1], ..Loss::default() };
    let link = LinkConfig::default().forward(PathConfig { loss, ..PathConfig::default() });
    let buffer = SharedBuffer::default();
    let mut emulator = TunEmulator::start_capturing(&link, devices, buffer.clone()).unwrap();
    let (client, server) = (udp(&near, NEAR), udp(&far, FAR));
    client.set_ttl(33).unwrap();
    // An arrived packet is listed at its arrival, a lost one at its sending, in order.
    for (sent, expected) in [(&["first"][..], "first"), (&["lost", "third"], "third")] {
        for text in sent {
            client.send_to(text.as_bytes(), server.local_addr().unwrap()).unwrap();
        }
        let mut packet = [0; 100];
        let (len, from) = server.recv_from(&mut packet).unwrap();
        assert_eq!(&packet[..len], expected.as_bytes());
        assert_eq!(from, client.local_addr().unwrap());
    }
    server.send_to(b"answer", client.local_addr().unwrap()).unwrap();
    client.recv(&mut [0; 100]).unwrap();
    emulator.finish_capture().unwrap();
    assert_eq!(emulator.stop().unwrap().uncaptured, 0);

    let file = buffer.bytes();
    let mut reader = PcapNgReader::new(&file[..]).unwrap();
    let mut seen = Vec::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
        let comment = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Comment(text) => Some(text.to_string()),
            _ => None,
        });
        let ip = Ipv4HeaderSlice::from_slice(&packet.data).unwrap();
        assert_eq!(ip.header_checksum(), ip.to_header().calc_header_checksum());
        let ports = UdpHeaderSlice::from_slice(&packet.data[20..]).unwrap();
        let source = (ip.source_addr(), ports.source_port());
        let text = String::from_utf8(packet.data[28..].to_vec()).unwrap();
        seen.push((packet.interface_id, ip.ttl(), source, text, comment));
    }
    seen.sort_by_key(|(interface, ..)| *interface);
    let from = |socket: &UdpSocket, address| (address, socket.local_addr().unwrap().port());
    let forward = |text: &str, comment: Option<&str>| {
        (0, 33, from(&client, NEAR), text.to_owned(), comment.map(ToOwned::to_owned))
    };
    let expected = [
        forward("first", None),
        forward("lost", Some("lost: listed")),
        forward("third", None),
        (1, 64, from(&server, FAR), "answer".into(), None),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn devices_are_removed_with_their_emulator() {
    let Some(Ends { near, far, devices }) = ends() else { return };
    let names = [devices.0.name().to_owned(), devices.1.name().to_owned()];
    let exists = |namespace: &NetNamespace, name: &str| {
        let devices = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        namespace.run(devices).unwrap().contains(&format!("{name}:"))
    };
    let link = LinkConfig::default();
    let emulator = TunEmulator::start(&link, devices.0, devices.1).unwrap();
    assert!(exists(&near, &names[0]) && exists(&far, &names[1]));
    drop(emulator);
    assert!(!exists(&near, &names[0]) && !exists(&far, &names[1]));
}
