//! The hosts and links of a scenario.

use std::net::IpAddr;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::{
    BuildError, Direction, Dumbbell, HostId, LinkId, Network, NodeId, PointToPoint, RouterId,
};
use rexmit_netsim::path::PathConfig;

use super::spec::{NetworkSpec, Scenario};
use crate::hosts::{Host, set_ip_protocols};

/// Where the two hosts of a flow are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) sender: IpAddr,
    pub(super) receiver: IpAddr,
}

/// The two hosts of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) sender: HostId,
    pub(super) receiver: HostId,
}

/// The machines of a flow and the path between its sender and the router.
pub(super) struct Station {
    pub(super) name: String,
    pub(super) sender: Host,
    pub(super) receiver: Host,
    pub(super) edge: PathConfig,
}

/// A network and what of it is measured.
pub(super) struct Topology {
    pub(super) network: Network<Host>,
    /// In the order in which the flows were added.
    pub(super) pairs: Vec<Pair>,
    /// What all flows share.
    pub(super) shared: LinkId,
}

impl Scenario {
    /// How many flows there are, every connection of the thin ones counted.
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
        self.flows() == 1 && self.network.edge.is_none() && edges.all(Option::is_none)
    }

    /// Where flow `n` will be.
    pub(super) fn place(&self, n: usize) -> Place {
        if self.is_pair() {
            let [sender, receiver] = PointToPoint::ADDRESSES;
            return Place { sender, receiver };
        }
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        Place { sender: Dumbbell::left_address(n), receiver: Dumbbell::right_address(n) }
    }
}

impl Topology {
    /// Puts the flows of `scenario`, in the order of their places, on its network.
    pub(super) fn build(
        scenario: &Scenario,
        stations: Vec<Station>,
        seed: &Seed,
    ) -> Result<Self, BuildError> {
        let mut network = Network::new(seed);
        let spec = &scenario.network;
        let (pairs, shared) = if scenario.is_pair() {
            pair(&mut network, scenario, stations)?
        } else {
            dumbbell(&mut network, scenario, stations)?
        };
        for change in &spec.changes {
            let at = Instant::ZERO + **change.at;
            let ways =
                [(Direction::Forward, &change.forward), (Direction::Backward, &change.backward)];
            for (direction, path) in ways {
                if let Some(path) = path {
                    network.change_path_at(shared, direction, at, (**path).clone())?;
                }
            }
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
}

fn pair(
    network: &mut Network<Host>,
    scenario: &Scenario,
    stations: Vec<Station>,
) -> Result<(Vec<Pair>, LinkId), BuildError> {
    let place = scenario.place(0);
    let mut hosts = stations.into_iter().flat_map(|station| [station.sender, station.receiver]);
    let mut add = |name, network: &mut Network<Host>| {
        let host = hosts.next().expect("a pair has a flow");
        network.add_host(name, host)
    };
    let (sender, receiver) = (add("sender", network), add("receiver", network));
    let [a, b] = [sender, receiver].map(|host| network.host_node(host));
    let [forward, backward] = scenario.network.paths();
    let link = network.add_link(a, b, forward, backward)?;
    network.add_address(sender, place.sender, link)?;
    network.add_address(receiver, place.receiver, link)?;
    Ok((vec![Pair { sender, receiver }], link))
}

fn dumbbell(
    network: &mut Network<Host>,
    scenario: &Scenario,
    stations: Vec<Station>,
) -> Result<(Vec<Pair>, LinkId), BuildError> {
    let routers: [RouterId; 2] =
        ["left router", "right router"].map(|name| network.add_router(name));
    let [left, right] = routers.map(NodeId::from);
    let [forward, backward] = scenario.network.paths();
    let shared = network.add_link(left, right, forward, backward)?;
    let mut pairs = Vec::new();
    for (n, station) in stations.into_iter().enumerate() {
        let place = scenario.place(n);
        let Station { name, sender, receiver, edge } = station;
        let sender = network.add_host(format!("{name} sender"), sender);
        let receiver = network.add_host(format!("{name} receiver"), receiver);
        attach(network, sender, left, place.sender, &edge)?;
        attach(network, receiver, right, place.receiver, &PathConfig::default())?;
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
