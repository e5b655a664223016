//! Path MTU discovery over simulated paths: the size is found with few probes, only probes are lost because of their
//! size, and a smaller MTU in the middle of a transfer costs one timeout.
//!
//! A transfer of messages of 60,000 bytes over 10 Mbit/s with 10 ms each way. The least RTO is 1 s.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Route, Seed};
use rexmit_netsim::network::{
    Context, Direction, DropCause, Network, ObservedPacket, Occurrence, PacketObserver, PacketStep,
    PointToPoint,
};
use rexmit_netsim::path::{Delay, Loss, LossCause, PathConfig};
use rexmit_sctp::wire::{Chunk, Packet, kind};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage,
    PathMtuConfig, PathMtuState, PathStatistics, SendError,
};

const MESSAGE_BYTES: usize = 60_000;
const CONNECT: u64 = 0;
const RTO: Duration = Duration::from_secs(1);
/// Bytes of the IPv4 and UDP headers.
const BELOW: usize = 28;
/// The base size, as an IP packet.
const BASE: usize = 1232 + BELOW;

/// A packet of the sender.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    wire_bytes: usize,
    has_data: bool,
    /// The first TSN in the packet.
    tsn: Option<u32>,
    is_probe: bool,
    /// Whether the packet was larger than the MTU.
    is_lost: bool,
}

struct Seen {
    packets: Vec<Sent>,
    path: PathStatistics,
    finished_at: Instant,
}

impl Seen {
    fn probes(&self) -> impl Iterator<Item = &Sent> {
        self.packets.iter().filter(|packet| packet.is_probe)
    }

    /// Packets that begin with a chunk that was already sent.
    fn retransmissions(&self) -> impl Iterator<Item = &Sent> {
        let mut last: Option<u32> = None;
        self.data().filter(move |packet| {
            let tsn = packet.tsn.expect("it has data");
            let is_repeated = last.is_some_and(|last| tsn.wrapping_sub(last) > u32::MAX / 2);
            last = if is_repeated { last } else { Some(tsn) };
            is_repeated
        })
    }

    fn data(&self) -> impl Iterator<Item = &Sent> {
        self.packets.iter().filter(|packet| packet.has_data)
    }
}

/// The MTU of one path: at first, and from a given time on.
#[derive(Clone, Copy)]
struct Mtu {
    at_first: usize,
    then: Option<(u64, usize)>,
    udp_port: u16,
    loss: f64,
}

impl Mtu {
    const fn of(bytes: usize) -> Self {
        Self { at_first: bytes, then: None, udp_port: 9899, loss: 0.0 }
    }
}

fn route(mtu: Mtu) -> Route {
    let mut route = PointToPoint::route();
    route.local.set_port(mtu.udp_port);
    route.remote.set_port(mtu.udp_port);
    route
}

fn read(at: Instant, packet: &ObservedPacket<'_>) -> Sent {
    let parsed = Packet::parse(packet.bytes).expect("a packet of ours");
    let kinds: Vec<u8> = parsed.chunks().flatten().map(|raw| raw.kind).collect();
    let tsn_of = |chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        Chunk::IData(data) => Some(data.tsn),
        _ => None,
    };
    let tsn = parsed.chunks().flatten().flat_map(|raw| raw.decode()).find_map(tsn_of);
    let is_probe = kinds == [kind::HEARTBEAT, kind::PAD];
    assert!(is_probe || !kinds.contains(&kind::PAD), "a probe has nothing else: {kinds:?}");
    let wire_bytes = packet.wire_bytes;
    Sent { at, wire_bytes, has_data: tsn.is_some(), tsn, is_probe, is_lost: false }
}

/// Records the packets of the sender.
struct Recorder(Arc<Mutex<Vec<Sent>>>);

impl PacketObserver for Recorder {
    fn observe(&mut self, now: Instant, packet: &ObservedPacket<'_>, step: PacketStep) {
        if packet.source.ip() != PointToPoint::ADDRESSES[0] {
            return;
        }
        let mut packets = self.0.lock().expect("no panic");
        match step {
            PacketStep::Sent { .. } => packets.push(read(now, packet)),
            PacketStep::Dropped(DropCause::Link { cause: LossCause::Mtu, .. }) => {
                packets.last_mut().expect("it was just sent").is_lost = true;
            }
            _ => {}
        }
    }
}

/// Transfers `messages`; both ends use `association`.
fn transfer(association: &AssociationConfig, mtu: Mtu, messages: usize) -> Seen {
    transfer_of(MESSAGE_BYTES, association, mtu, messages)
}

fn transfer_of(
    message_bytes: usize,
    association: &AssociationConfig,
    mtu: Mtu,
    messages: usize,
) -> Seen {
    let path = |bytes| PathConfig {
        delay: Delay::constant(Duration::from_millis(10)),
        rate: BitRate::new(10_000_000),
        mtu: Some(bytes),
        loss: Loss { uniform: mtu.loss, ..Loss::default() },
        ..PathConfig::default()
    };
    let machine = |seed| {
        let association = Arc::new(association.clone());
        let config = EndpointConfig::default().accept(true).association(association);
        Endpoint::new(config, &Seed::from_u64(seed)).expect("it is valid")
    };
    let mut network = Network::new(&Seed::from_u64(1));
    let PointToPoint { hosts: [sender, receiver], link } =
        PointToPoint::build(&mut network, [1, 2].map(machine), &path(mtu.at_first)).unwrap();
    if let Some((ms, bytes)) = mtu.then {
        for direction in [Direction::Forward, Direction::Backward] {
            network.change_path_at(link, direction, Instant::from_millis(ms), path(bytes)).unwrap();
        }
    }
    let packets: Arc<Mutex<Vec<Sent>>> = Arc::default();
    network.add_observer(Recorder(Arc::clone(&packets)));
    network.wake_at(sender, Instant::ZERO, CONNECT);
    let mut id: Option<AssociationId> = None;
    let (mut sent, mut received, mut finished_at) = (0, 0, Instant::ZERO);
    let mut app = |context: &mut Context<'_, Endpoint>, occurrence: Occurrence<_>| {
        let now = context.now();
        match occurrence {
            Occurrence::Wake(_) => {
                id = Some(context.machine().connect(now, route(mtu), 5000).expect("a new one"));
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = context.machine().receive(now, id) {
                    let expected = vec![received as u8; message_bytes];
                    assert!(message.payload == expected, "message {received}");
                    (received, finished_at) = (received + 1, now);
                }
            }
            Occurrence::Event(_) => {}
        }
        if context.host() == receiver {
            return;
        }
        while let Some(id) = id.filter(|_| sent < messages) {
            let message = OutboundMessage::new(0, vec![sent as u8; message_bytes]);
            match context.machine().send(now, id, message) {
                Ok(_) => sent += 1,
                Err(SendError::BufferFull) => break,
                Err(error) => panic!("{error}"),
            }
        }
    };
    let end = Instant::from_millis(60_000);
    network.run_until(end, &mut app).expect("it goes on");
    assert_eq!(received, messages, "all of them arrive");
    let paths = network.machine(sender).paths(id.expect("connected")).expect("it is there");
    let packets = packets.lock().expect("no panic").clone();
    Seen { packets, path: paths[0].clone(), finished_at }
}

fn profiles() -> [AssociationConfig; 3] {
    let all =
        [AssociationConfig::rfc9260(), AssociationConfig::interactive(), AssociationConfig::rack()];
    all.map(|it| it.path_mtu(Some(PathMtuConfig::default())))
}

/// The largest SCTP packet in an IP packet of `mtu` bytes, over IPv4 and UDP.
const fn packet_in(mtu: usize) -> usize {
    (mtu - BELOW) & !3
}

#[test]
fn the_size_of_a_path_is_found_and_only_probes_are_lost_to_it() {
    // Probes until the size is confirmed, and until it is known that none is larger.
    for (mtu, found, probes, most) in
        [(9000, 9000, 3, 3), (1500, 1500, 2, 11), (1280, 1280, 14, 14), (1452, 1440, 14, 20)]
    {
        for association in profiles() {
            let seen = transfer(&association, Mtu::of(mtu), 400);
            assert_eq!(seen.path.mtu_discovery, PathMtuState::SearchComplete, "{mtu}");
            assert_eq!(seen.path.max_packet_bytes, packet_in(found), "{mtu}");
            let used = seen.data().map(|packet| packet.wire_bytes).max();
            assert!(
                used > Some(found - 32),
                "{mtu}: packets are as large as they may be: {used:?}"
            );
            assert!(seen.packets.iter().all(|packet| packet.is_probe || !packet.is_lost), "{mtu}");
            let is_it = |probe: &&Sent| probe.wire_bytes == packet_in(found) + BELOW;
            let until = seen.probes().position(|probe| is_it(&probe)).expect("it was probed") + 1;
            let all = seen.probes().count();
            assert!(until <= probes && all <= most, "{mtu}: {until} and {all} probes");
        }
    }
}

#[test]
fn bulk_and_mixed_search_for_packets_of_up_to_1500_bytes() {
    for association in [AssociationConfig::bulk(), AssociationConfig::mixed()] {
        for (mtu, found) in [(9000, 1500), (1500, 1500), (1400, 1400)] {
            let seen = transfer(&association, Mtu::of(mtu), 200);
            assert_eq!(seen.path.max_packet_bytes, packet_in(found), "{mtu}");
            let largest = seen.packets.iter().map(|packet| packet.wire_bytes).max();
            assert!(largest <= Some(1500), "{mtu}: {largest:?}");
            assert!(seen.packets.iter().all(|packet| packet.is_probe || !packet.is_lost), "{mtu}");
        }
    }
    assert_eq!(AssociationConfig::interactive().path_mtu, None);
}

/// Directly over IP, packets have eight bytes more.
#[test]
fn without_udp_packets_are_larger() {
    let [association, ..] = profiles();
    let seen = transfer(&association, Mtu { udp_port: 0, ..Mtu::of(1500) }, 100);
    assert_eq!(seen.path.max_packet_bytes, 1480);
    assert!(seen.packets.iter().all(|packet| packet.is_probe || !packet.is_lost));
}

#[test]
fn a_path_that_shrinks_in_the_middle_costs_one_timeout() {
    for association in profiles() {
        let shrinks_at = Instant::from_millis(6_000);
        let mtu = Mtu { then: Some((6_000, 1400)), ..Mtu::of(1500) };
        let seen = transfer(&association, mtu, 300);
        let lost = seen.data().filter(|packet| packet.is_lost);
        let last = lost.map(|packet| packet.at).max().expect("the window was full");
        assert!(last < shrinks_at + RTO, "{:?}", last - shrinks_at);
        let next = seen.data().find(|packet| packet.at > shrinks_at && packet.wire_bytes <= BASE);
        let next = next.expect("it goes on").at;
        assert!(next <= shrinks_at + RTO + RTO / 10, "{:?}", next - shrinks_at);
        assert_eq!(seen.path.max_packet_bytes, packet_in(1400));
        let steady = transfer(&association, Mtu::of(1400), 300);
        let delay = seen.finished_at - steady.finished_at;
        assert!(delay < 2 * RTO, "{delay:?}");
    }
}

/// Congestion and random losses are not mistaken for a black hole: the size does not change.
#[test]
fn losses_of_packets_of_any_size_do_not_change_the_size() {
    for association in profiles() {
        let seen = transfer(&association, Mtu { loss: 0.02, ..Mtu::of(1500) }, 100);
        assert_eq!(seen.path.max_packet_bytes, packet_in(1500));
        // The path may be a black hole: retransmissions take the size that every path takes.
        let largest = seen.retransmissions().map(|packet| packet.wire_bytes).max();
        assert!(largest.is_some_and(|largest| largest <= BASE), "{largest:?}");
        let small = seen.data().filter(|packet| packet.wire_bytes <= BASE).count();
        assert!(small < seen.data().count() / 4, "most packets are large");
    }
}

#[test]
fn without_discovery_or_without_full_packets_nothing_is_probed() {
    let [association, ..] = profiles();
    let seen = transfer(&association.clone().path_mtu(None), Mtu::of(1500), 20);
    assert_eq!((seen.probes().count(), seen.path.mtu_discovery), (0, PathMtuState::Off));
    assert!(seen.data().count() > 0);
    // No packet is full.
    let seen = transfer_of(60, &association, Mtu::of(1500), 1);
    assert_eq!((seen.probes().count(), seen.path.mtu_discovery), (0, PathMtuState::Base));
    assert!(seen.data().count() > 0);
}
