//! A kernel, and a machine of ours, at the ends of a link.

use std::net::Ipv4Addr;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_kernels::{Error, MachineConfig, Simulation};
use rexmit_netsim::path::PathConfig;
use rexmit_tcp::ConnectionId;

use crate::{MACS, Shared, TRAFFIC, hash, kernel, link, numbers, printed, times, until_ended};

const PORT: u16 = 7;

/// The output of a kernel, and the capture.
type Outcome = (String, Vec<u8>);

/// Runs a kernel with these commands, connected to `machine`, until it is switched off.
fn beside<M: Machine>(
    commands: &str,
    (machine, ip_protocol): (M, u8),
    path: &PathConfig,
    app: impl FnMut(Instant, &mut M),
) -> Option<Outcome> {
    let mut simulation = Simulation::new();
    let client = simulation.add_kernel(&kernel(1, 1, commands)?).unwrap();
    let config = MachineConfig {
        name: "rexmit".into(),
        mac: MACS[1],
        address: Ipv4Addr::new(10, 0, 0, 2),
        ip_protocol,
    };
    let server = simulation.add_machine(config, machine);
    let paths = [path.clone(), path.clone()];
    simulation.connect([client, server], paths, &Seed::from_u64(1)).unwrap();
    let capture = Shared::default();
    simulation.capture(capture.clone()).unwrap();
    until_ended(&mut simulation, &[client], app);
    Some((printed(&simulation, client), capture.0.take()))
}

fn tcp() -> (rexmit_tcp::Endpoint, u8) {
    let config = rexmit_tcp::EndpointConfig::default();
    let mut endpoint = rexmit_tcp::Endpoint::new(config, &Seed::from_u64(2)).unwrap();
    endpoint.listen(PORT, None).unwrap();
    (endpoint, 6)
}

/// Passes received bytes to `take`, and finishes when the peer has finished.
fn read_tcp(
    now: Instant,
    endpoint: &mut rexmit_tcp::Endpoint,
    mut take: impl FnMut(&mut rexmit_tcp::Endpoint, ConnectionId, &[u8]),
) {
    let mut bytes = [0; 4096];
    while let Some((id, event)) = endpoint.poll_event() {
        if event != rexmit_tcp::Event::Readable {
            continue;
        }
        while let Ok(len) = endpoint.receive(now, id, &mut bytes) {
            if len == 0 {
                endpoint.finish(now, id);
                break;
            }
            take(endpoint, id, &bytes[..len]);
        }
    }
}

/// Sends what arrived back.
fn echo_sctp(now: Instant, endpoint: &mut rexmit_sctp::Endpoint) {
    while let Some((id, event)) = endpoint.poll_event() {
        if event != rexmit_sctp::Event::Readable {
            continue;
        }
        while let Some(message) = endpoint.receive(now, id) {
            let answer = rexmit_sctp::OutboundMessage::new(0, message.payload);
            endpoint.send(now, id, answer).unwrap();
        }
    }
}

/// Each round trip took twice the delay of the link, and `readings` of the kernel's clock, of 256 ns each.
fn assert_exact(printed: &str, readings: u64) {
    let times = numbers(printed);
    let exact = vec![100_000_000 + 256 * readings];
    assert_eq!(times, vec![exact; 5], "{printed}");
}

#[test]
fn tcp_of_a_kernel_talks_to_ours_in_exact_time() {
    let commands = format!("{TRAFFIC} talk tcp 10.0.0.2:{PORT} 5");
    let ended = beside(&commands, tcp(), &link(50, None, 0.0), |now, endpoint| {
        read_tcp(now, endpoint, |endpoint, id, bytes| {
            assert_eq!(endpoint.send(now, id, bytes), Ok(bytes.len()));
        });
    });
    let Some((printed, _)) = ended else { return };
    // That of the program, and two of the kernel's TCP before it sends.
    assert_exact(&printed, 3);
}

#[test]
fn sctp_of_a_kernel_talks_to_ours_in_exact_time() {
    let commands = format!("{TRAFFIC} talk sctp 10.0.0.2:{PORT} 5");
    let mut config = rexmit_sctp::EndpointConfig::default();
    (config.port, config.accept) = (PORT, true);
    let endpoint = rexmit_sctp::Endpoint::new(config, &Seed::from_u64(2)).unwrap();
    let ended = beside(&commands, (endpoint, 132), &link(50, None, 0.0), echo_sctp);
    let Some((printed, _)) = ended else { return };
    assert_exact(&printed, 1);
}

#[test]
fn a_transfer_of_a_kernel_to_ours_can_be_repeated() {
    let commands = format!("{TRAFFIC} send tcp 10.0.0.2:{PORT} 1000000");
    let run = || {
        let mut received = 0;
        let path = link(10, Some(10_000_000), 0.01);
        let (_, capture) = beside(&commands, tcp(), &path, |now, endpoint| {
            read_tcp(now, endpoint, |_, _, bytes| received += bytes.len());
        })?;
        assert_eq!(received, 1_000_000);
        Some(capture)
    };
    let Some(first) = run() else { return };
    eprintln!("{:016x}", hash(&first));
    assert!(run().unwrap() == first, "the captures differ");
}

/// A host with a machine, with the address 10.0.0.`place`.
fn host(place: u8) -> MachineConfig {
    MachineConfig {
        name: format!("host{place}"),
        mac: MACS[usize::from(place) - 1],
        address: Ipv4Addr::new(10, 0, 0, place),
        ip_protocol: 6,
    }
}

#[test]
fn machines_need_no_kernel() {
    let mut simulation = Simulation::new();
    let client = simulation.add_machine(host(1), tcp().0);
    let server = simulation.add_machine(host(2), tcp().0);
    let paths = [link(50, None, 0.0), link(50, None, 0.0)];
    simulation.connect([client, server], paths.clone(), &Seed::from_u64(1)).unwrap();
    let again = simulation.connect([client, server], paths, &Seed::from_u64(1));
    assert!(matches!(again, Err(Error::Connected(host)) if host == client), "{again:?}");

    let addresses = ["10.0.0.1:0", "10.0.0.2:7"].map(|address| address.parse().unwrap());
    let endpoint = simulation.machine_mut(client).unwrap();
    let id = endpoint.connect(Instant::ZERO, addresses[0], addresses[1]).unwrap();
    assert_eq!(endpoint.send(Instant::ZERO, id, b"hello"), Ok(5));
    endpoint.finish(Instant::ZERO, id);
    let mut received = Vec::new();
    let app = |now, host, endpoint: &mut _| {
        read_tcp(now, endpoint, |_, _, bytes| received.push((host, now, bytes.to_vec())));
    };
    simulation.run_until(Instant::from_millis(1000), app).unwrap();
    // After the handshake of a round trip.
    assert_eq!(received, [(server, Instant::from_millis(150), b"hello".to_vec())]);
    assert_eq!(simulation.now(), Instant::from_millis(1000));
    assert!(!simulation.has_ended(server) && simulation.directory(server).is_none());
}

/// Sends packets of 500 bytes every 2 ms, and counts those that arrive.
struct Source {
    left: u32,
    next: Instant,
    received: u64,
}

impl Machine for Source {
    type Event = ();

    fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {
        self.received += 1;
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if self.left == 0 || now < self.next {
            return None;
        }
        (self.left, self.next) = (self.left - 1, self.next + Duration::from_millis(2));
        packet.clear();
        packet.resize(500, 0);
        let [local, remote] = ["10.0.0.1:0", "10.0.0.2:0"].map(|it| it.parse().unwrap());
        Some(Route { local, remote })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.left > 0).then_some(self.next)
    }
}

/// A simulation of a source and its sink over this path, and their numbers.
fn source_and_sink(packets: u32, path: &str) -> (Simulation<Source>, [rexmit_kernels::HostId; 2]) {
    let mut simulation = Simulation::new();
    let source = |left| Source { left, next: Instant::ZERO, received: 0 };
    let ends = [(host(1), packets), (host(2), 0)];
    let ends = ends.map(|(host, left)| simulation.add_machine(host, source(left)));
    let path: PathConfig = path.parse().unwrap();
    simulation.connect(ends, [path.clone(), path], &Seed::from_u64(1)).unwrap();
    (simulation, ends)
}

#[test]
fn captures_have_each_packet_that_fq_codel_drops_at_its_time() {
    const SENT: u32 = 1500;
    let (mut simulation, ends) = source_and_sink(SENT, "rate 1mbit fq_codel limit 300");
    let capture = Shared::default();
    simulation.capture(capture.clone()).unwrap();
    simulation.run_until(Instant::from_millis(20_000), |_, _, _| {}).unwrap();
    let arrived = simulation.machine_mut(ends[1]).unwrap().received;
    let dropped = u64::from(SENT) - arrived;
    assert!(dropped > 20, "{dropped}");
    let records = times(&capture.0.borrow());
    let of = |interface| records.iter().filter(|it| it.0 == interface).count() as u64;
    assert_eq!((of(0), of(1)), (u64::from(SENT) + dropped, arrived));
    assert!(records.is_sorted_by_key(|it| it.1));
}

#[test]
fn a_machine_that_sends_without_end_is_an_error() {
    let (mut simulation, _) = source_and_sink(1, "delay 10ms");
    let app = |now, _, source: &mut Source| (source.left, source.next) = (1, now);
    let ended = simulation.run_until(Instant::from_millis(1000), app);
    assert!(matches!(ended, Err(Error::Livelock { .. })), "{ended:?}");
}
