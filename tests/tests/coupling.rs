//! Coupled windows (resource pooling v2): two paths that share a bottleneck get the share of one flow, and two paths
//! without a common bottleneck are both filled.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{BitRate, Instant, Route, Seed};
use rexmit_netsim::network::{Context, HostId, Network, NodeId, Occurrence};
use rexmit_netsim::path::{Delay, PathConfig, QueueLimit};
use rexmit_sctp::recovery::{CmtConfig, Coupling};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage, SendError,
};

const MESSAGE_BYTES: usize = 1_000;
/// Earlier data does not count.
const WARM_UP: Instant = Instant::from_millis(20_000);
const END: Instant = Instant::from_millis(100_000);
const BOTTLENECK_BITS: u64 = 10_000_000;

const UNCOUPLED: CmtConfig = CmtConfig::ON;
const COUPLED: CmtConfig = CmtConfig::ON.coupling(Some(Coupling::ResourcePoolingV2));

/// 10.`association`.`path`.`end`: 10.1.2.1 is the second address of the sender of association 1.
fn address(association: u8, path: u8, end: u8) -> IpAddr {
    Ipv4Addr::new(10, association, path, end).into()
}

fn path(megabits: u64, ms: u64) -> PathConfig {
    PathConfig {
        delay: Delay::constant(Duration::from_millis(ms)),
        rate: BitRate::new(megabits * 1_000_000),
        queue: QueueLimit::Packets(100),
        ..PathConfig::default()
    }
}

/// An association that sends at full speed: its ends, and the number of messages that arrived before and after
/// [`WARM_UP`].
struct Transfer {
    ends: [HostId; 2],
    way: Route,
    next: u32,
    arrived: [u32; 2],
}

impl Transfer {
    /// Hosts with an address for each of `links`, the nodes at the ends of a bottleneck.
    fn add(
        network: &mut Network<Endpoint>,
        number: u8,
        cmt: Option<CmtConfig>,
        links: &[[NodeId; 2]],
    ) -> Self {
        let mut association = AssociationConfig::rfc9260();
        association.recovery.sctp.cmt = cmt;
        let association = Arc::new(association);
        let paths = 1..=links.len() as u8;
        let ends = [1, 2].map(|end: u8| {
            let config = EndpointConfig::default()
                .accept(true)
                .addresses(paths.clone().map(|path| address(number, path, end)).collect())
                .association(Arc::clone(&association));
            let seed = Seed::from_u64(u64::from(number) << 8 | u64::from(end));
            let endpoint = Endpoint::new(config, &seed).expect("it is valid");
            network.add_host(format!("host {number}.{end}"), endpoint)
        });
        for (index, nodes) in (1..).zip(links) {
            for (end, (&host, &node)) in (1..).zip(ends.iter().zip(nodes)) {
                let access = path(100, 1);
                let own = network.host_node(host);
                let link = network.add_link(own, node, access.clone(), access).unwrap();
                network.add_address(host, address(number, index, end), link).unwrap();
            }
        }
        let at = |end| SocketAddr::new(address(number, 1, end), 0);
        let way = Route { local: at(1), remote: at(2) };
        Self { ends, way, next: 0, arrived: [0; 2] }
    }

    fn on(
        &mut self,
        context: &mut Context<'_, Endpoint>,
        occurrence: Occurrence<(AssociationId, Event)>,
    ) {
        let now = context.now();
        let is_sender = context.host() == self.ends[0];
        let endpoint = context.machine();
        match occurrence {
            Occurrence::Wake(_) => {
                endpoint.connect(now, self.way, 5000).unwrap();
            }
            Occurrence::Event((id, Event::Readable)) => {
                while endpoint.receive(now, id).is_some() {
                    self.arrived[usize::from(now >= WARM_UP)] += 1;
                }
            }
            Occurrence::Event((id, Event::Connected { .. } | Event::Writable)) if is_sender => {
                self.fill(endpoint, now, id);
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    }

    fn fill(&mut self, endpoint: &mut Endpoint, now: Instant, id: AssociationId) {
        loop {
            let payload = vec![0; MESSAGE_BYTES];
            let message = OutboundMessage::new(0, payload).ppid(self.next);
            match endpoint.send(now, id, message) {
                Ok(_) => self.next += 1,
                Err(SendError::BufferFull) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Payload per second after the beginning, in bits.
    fn rate(&self) -> f64 {
        f64::from(self.arrived[1]) * MESSAGE_BYTES as f64 * 8.0 / (END - WARM_UP).as_secs_f64()
    }
}

/// Two routers with a bottleneck between them.
fn bottleneck(network: &mut Network<Endpoint>, ms: u64) -> [NodeId; 2] {
    let nodes = ["left", "right"].map(|name| network.add_router(name).into());
    let shared = path(BOTTLENECK_BITS / 1_000_000, ms);
    network.add_link(nodes[0], nodes[1], shared.clone(), shared).unwrap();
    nodes
}

/// Runs the transfers, which begin at intervals of a second; returns their rates.
fn run<const N: usize>(mut network: Network<Endpoint>, mut transfers: [Transfer; N]) -> [f64; N] {
    for (seconds, transfer) in (0..).zip(&transfers) {
        network.wake_at(transfer.ends[0], Instant::from_millis(1_000 * seconds), 0);
    }
    let app = |context: &mut Context<'_, Endpoint>, occurrence: Occurrence<_>| {
        let host = context.host();
        let own = transfers.iter_mut().find(|transfer| transfer.ends.contains(&host));
        own.expect("a host of theirs").on(context, occurrence);
    };
    network.run_until(END, app).unwrap();
    transfers.map(|transfer| transfer.rate())
}

/// The rate of an association with two paths through one bottleneck, divided by that of a flow with one path at the
/// same time.
fn against_one_flow(cmt: CmtConfig, ms: u64) -> f64 {
    let mut network = Network::new(&Seed::from_u64(1));
    let shared = bottleneck(&mut network, ms);
    let two = Transfer::add(&mut network, 1, Some(cmt), &[shared, shared]);
    let one = Transfer::add(&mut network, 2, None, &[shared]);
    let [two, one] = run(network, [two, one]);
    println!("{:?}, {ms} ms: {two:.0} bit/s over two paths, {one:.0} over one", cmt.coupling);
    two / one
}

/// The share of the rates of two separate bottlenecks that an association uses, with this delay.
fn over_disjoint_paths(cmt: CmtConfig, ms: u64) -> f64 {
    let mut network = Network::new(&Seed::from_u64(1));
    let ways = [bottleneck(&mut network, ms), bottleneck(&mut network, ms)];
    let transfer = Transfer::add(&mut network, 1, Some(cmt), &ways);
    let [rate] = run(network, [transfer]);
    // Each message has chunk, common and IP header.
    let packet = MESSAGE_BYTES + 16 + 12 + 20;
    let most = 2.0 * BOTTLENECK_BITS as f64 * MESSAGE_BYTES as f64 / packet as f64;
    println!("{:?}, {ms} ms: {rate:.0} of {most:.0} bit/s", cmt.coupling);
    rate / most
}

#[test]
fn coupled_paths_through_one_bottleneck_get_the_share_of_one_flow() {
    for ms in [10, 20] {
        let (uncoupled, coupled) = (against_one_flow(UNCOUPLED, ms), against_one_flow(COUPLED, ms));
        assert!(uncoupled > 1.6, "{ms} ms: {uncoupled}");
        assert!((0.7..1.3).contains(&coupled), "{ms} ms: {coupled}");
    }
}

/// The queue holds some round trips. With a shorter queue, a loss, which halves the rate of both paths, would leave one
/// of them with too small a window to fill it.
#[test]
fn paths_that_do_not_meet_are_filled_although_they_are_coupled() {
    for ms in [1, 5] {
        let filled = over_disjoint_paths(COUPLED, ms);
        assert!(filled >= 0.9, "{ms} ms: {filled}");
    }
}
