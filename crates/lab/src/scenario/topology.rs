//! The hosts and links of a scenario.

use std::net::{IpAddr, Ipv4Addr};

use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::{
    BuildError, Direction, Dumbbell, HostId, LinkId, Network, NodeId, PointToPoint,
};
use rexmit_netsim::path::PathConfig;

use super::spec::{NETWORK, NetworkSpec, Over, Scenario};
use crate::hosts::{Host, set_ip_protocols};

/// The addresses of the two hosts of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) sender: IpAddr,
    pub(super) receiver: IpAddr,
    /// The addresses on the second network, for a flow over both.
    pub(super) second: Option<[IpAddr; 2]>,
}

/// The two hosts of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) sender: HostId,
    pub(super) receiver: HostId,
}

/// The machines of a flow, and the paths between its sender and the routers.
pub(super) struct Station {
    pub(super) name: String,
    pub(super) sender: Host,
    pub(super) receiver: Host,
    pub(super) over: Over,
    /// One per network.
    pub(super) edges: Vec<PathConfig>,
}

/// A network, and the hosts and links that are measured.
pub(super) struct Topology {
    pub(super) network: Network<Host>,
    /// In the order in which the flows were added.
    pub(super) pairs: Vec<Pair>,
    /// The shared link of each network.
    pub(super) shared: Vec<LinkId>,
}

impl Scenario {
    /// The number of flows, with every connection of thin flows counted.
    pub(super) fn flows(&self) -> usize {
        let thin = self.thin.values().map(|flow| flow.connections() as usize);
        thin.sum::<usize>() + self.bulk.len() + self.web.len() + self.udp.len()
    }

    /// Whether there are only two hosts.
    fn is_pair(&self) -> bool {
        let edges = self.thin.values().map(|flow| &flow.edge);
        let edges = edges.chain(self.bulk.values().map(|flow| &flow.edge));
        let edges = edges.chain(self.web.values().map(|flow| &flow.edge));
        let mut edges = edges.chain(self.udp.values().map(|flow| &flow.edge));
        let has_edge =
            |network: &NetworkSpec| network.edge.is_some() || network.receiver_edge.is_some();
        let has_edge = self.networks().any(|(_, network)| has_edge(network));
        self.flows() == 1 && !has_edge && edges.all(Option::is_none)
    }

    /// The addresses of the sender and the receiver of flow `n` on a network.
    fn addresses(&self, n: usize, network: usize) -> [IpAddr; 2] {
        if network == 0 && self.is_pair() {
            return PointToPoint::ADDRESSES;
        }
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        match network {
            0 => [Dumbbell::left_address(n), Dumbbell::right_address(n)],
            _ => SECOND_SIDES.map(|side| Ipv4Addr::from_bits(side.to_bits() + n + 1).into()),
        }
    }

    /// The addresses of flow `n`.
    pub(super) fn place(&self, n: usize, over: Over) -> Place {
        let first = if over == Over::Second { 1 } else { 0 };
        let [sender, receiver] = self.addresses(n, first);
        let second = (over == Over::Both).then(|| self.addresses(n, 1));
        Place { sender, receiver, second }
    }
}

/// The base addresses on the left and on the right of the second network. Their common prefix with
/// the first network's addresses is shorter than the one within a network, so that endpoints pair
/// the addresses correctly.
const SECOND_SIDES: [Ipv4Addr; 2] = [Ipv4Addr::new(172, 16, 0, 0), Ipv4Addr::new(172, 24, 0, 0)];

impl Topology {
    /// Adds the flows of `scenario`, in their order, to its networks.
    pub(super) fn build(
        scenario: &Scenario,
        stations: Vec<Station>,
        seed: &Seed,
    ) -> Result<Self, BuildError> {
        let mut network = Network::new(seed);
        let (pairs, shared) = if scenario.is_pair() {
            pair(&mut network, scenario, stations)?
        } else {
            dumbbells(&mut network, scenario, stations)?
        };
        for ((_, spec), &link) in scenario.networks().zip(&shared) {
            spec.change(&mut network, link)?;
        }
        set_ip_protocols(&mut network, pairs.iter().flat_map(|pair| [pair.sender, pair.receiver]));
        Ok(Self { network, pairs, shared })
    }
}

impl NetworkSpec {
    pub(super) fn paths(&self) -> [PathConfig; 2] {
        let backward = self.backward.as_ref().unwrap_or(&self.forward);
        [(*self.forward).clone(), (**backward).clone()]
    }

    /// Schedules the changes of `shared`.
    fn change(&self, network: &mut Network<Host>, shared: LinkId) -> Result<(), BuildError> {
        for change in &self.changes {
            let at = Instant::ZERO + **change.at;
            let ways =
                [(Direction::Forward, &change.forward), (Direction::Backward, &change.backward)];
            for (direction, path) in ways {
                if let Some(path) = path {
                    network.change_path_at(shared, direction, at, (**path).clone())?;
                }
            }
        }
        Ok(())
    }
}

fn pair(
    network: &mut Network<Host>,
    scenario: &Scenario,
    stations: Vec<Station>,
) -> Result<(Vec<Pair>, Vec<LinkId>), BuildError> {
    let station = stations.into_iter().next().expect("a pair has a flow");
    let sender = network.add_host("sender", station.sender);
    let receiver = network.add_host("receiver", station.receiver);
    let [a, b] = [sender, receiver].map(|host| network.host_node(host));
    let mut shared = Vec::new();
    for (n, (_, spec)) in scenario.networks().enumerate() {
        let [forward, backward] = spec.paths();
        let link = network.add_link(a, b, forward, backward)?;
        if station.over.is_on(n) {
            let [from, to] = scenario.addresses(0, n);
            network.add_address(sender, from, link)?;
            network.add_address(receiver, to, link)?;
        }
        shared.push(link);
    }
    Ok((vec![Pair { sender, receiver }], shared))
}

fn dumbbells(
    network: &mut Network<Host>,
    scenario: &Scenario,
    stations: Vec<Station>,
) -> Result<(Vec<Pair>, Vec<LinkId>), BuildError> {
    let mut routers = Vec::new();
    let mut shared = Vec::new();
    let mut receiver_edges = Vec::new();
    for (name, spec) in scenario.networks() {
        let name = name.trim_end_matches(NETWORK).replace('_', " ");
        let sides =
            ["left", "right"].map(|side| network.add_router(format!("{name}{side} router")));
        let [left, right] = sides.map(NodeId::from);
        let [forward, backward] = spec.paths();
        shared.push(network.add_link(left, right, forward, backward)?);
        routers.push([left, right]);
        let edge = spec.receiver_edge.as_ref();
        receiver_edges.push(edge.map_or_else(PathConfig::default, |edge| (**edge).clone()));
    }
    let mut pairs = Vec::new();
    for (flow, station) in stations.into_iter().enumerate() {
        let Station { name, sender, receiver, over, edges } = station;
        let sender = network.add_host(format!("{name} sender"), sender);
        let receiver = network.add_host(format!("{name} receiver"), receiver);
        for (n, ([left, right], edge)) in routers.iter().zip(&edges).enumerate() {
            if over.is_on(n) {
                let [from, to] = scenario.addresses(flow, n);
                attach(network, sender, *left, from, edge)?;
                attach(network, receiver, *right, to, &receiver_edges[n])?;
            }
        }
        pairs.push(Pair { sender, receiver });
    }
    Ok((pairs, shared))
}

fn attach(
    network: &mut Network<Host>,
    host: HostId,
    router: NodeId,
    address: IpAddr,
    edge: &PathConfig,
) -> Result<(), BuildError> {
    let node = network.host_node(host);
    let link = network.add_link(node, router, edge.clone(), edge.clone())?;
    network.add_address(host, address, link)
}
