//! Construction of a network.

use std::net::IpAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Machine, Seed};
use thiserror::Error;

use super::agenda::Agenda;
use super::calls::CallStore;
use super::event::Event;
use super::graph::{Graph, Node};
use super::items::Items;
use super::link::{LinkEntry, LinkExit};
use super::observer::Observers;
use super::packets::PacketStore;
use super::routing::{Attachment, Edge, Map};
use super::tap::Taps;
use super::{
    Direction, Host, HostId, HostStats, LinkId, Network, NetworkStats, NodeId, RouterId, RunState,
};
use crate::path::{ConfigError, PathConfig, PathModel};

/// Why a network cannot be constructed.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A path configuration is impossible.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// A link needs two different ends.
    #[error("a link from {0} to itself")]
    Loop(String),
    /// The host is not an end of the link.
    #[error("{host} cannot have the address {address} on a link that it is not attached to")]
    NotAtLink {
        /// The host's name.
        host: String,
        /// The address.
        address: IpAddr,
    },
    /// Another host, or this one, has the address already.
    #[error("the address {0} is taken")]
    AddressTaken(IpAddr),
}

/// SCTP's IP protocol number.
const SCTP: u8 = 132;

/// Calls of one host at one instant after which a livelock is reported.
const STEP_LIMIT: u32 = 1_000_000;

impl<M: Machine> Network<M> {
    /// An empty network. All randomness of its links comes from `seed`.
    #[must_use]
    pub fn new(seed: &Seed) -> Self {
        Self::with_agenda(seed, Agenda::new())
    }

    /// An empty network that can run on several threads ([`run_on_threads`](Self::run_on_threads)). Events of one instant
    /// are not processed in the order in which they were scheduled, but in one that no other event changes: arrivals by
    /// link, departures from queues of FQ-CoDel, calls, timers by host. All randomness of its links comes from `seed`.
    #[must_use]
    pub fn for_threads(seed: &Seed) -> Self {
        Self::with_agenda(seed, Agenda::ranked())
    }

    fn with_agenda(seed: &Seed, agenda: Agenda<Event>) -> Self {
        Self {
            now: Instant::ZERO,
            seed: seed.clone(),
            graph: Arc::new(Graph::default()),
            hosts: Items::default(),
            entries: Items::default(),
            exits: Items::default(),
            agenda,
            calls: CallStore::default(),
            packets: PacketStore::default(),
            touched: Vec::new(),
            others: None,
            taps: Taps::default(),
            observers: Observers::default(),
            run: RunState { step_limit: STEP_LIMIT, is_stopped: false },
            stats: NetworkStats::default(),
        }
    }

    /// Adds a host that runs `machine`. Its name appears in captures and errors.
    pub fn add_host(&mut self, name: impl Into<String>, machine: M) -> HostId {
        let host = HostId(index(self.hosts.len()));
        let graph = Arc::make_mut(&mut self.graph);
        let node = NodeId(index(graph.nodes.len()));
        graph.nodes.push(Node { name: name.into(), host: Some(host) });
        graph.routes.are_found = false;
        self.hosts.push(Host {
            node,
            machine,
            attachments: Vec::new(),
            taps: Vec::new(),
            ip_protocol: SCTP,
            last_way: None,
            steps: (self.now, 0),
            stats: HostStats::default(),
        });
        self.touched.push(host);
        host
    }

    /// Adds a router, which forwards packets and has no address.
    pub fn add_router(&mut self, name: impl Into<String>) -> RouterId {
        let graph = Arc::make_mut(&mut self.graph);
        let router = RouterId(index(graph.nodes.len()));
        graph.nodes.push(Node { name: name.into(), host: None });
        graph.routes.are_found = false;
        router
    }

    /// The host as an end of links.
    #[must_use]
    pub fn host_node(&self, host: HostId) -> NodeId {
        self.hosts[host.0 as usize].node
    }

    /// Adds a link between two nodes; `forward` is the direction from `first` to `second`.
    ///
    /// # Errors
    /// [`BuildError::Path`] and [`BuildError::Loop`]; the network is then unchanged.
    pub fn add_link(
        &mut self,
        first: NodeId,
        second: NodeId,
        forward: PathConfig,
        backward: PathConfig,
    ) -> Result<LinkId, BuildError> {
        if first == second {
            return Err(BuildError::Loop(self.name(first)));
        }
        let link = LinkId(index(self.entries.len() / 2));
        let seed = self.seed.split(&format!("link {}", link.0));
        let forward = PathModel::new(forward, &seed.split("forward"))?;
        let backward = PathModel::new(backward, &seed.split("backward"))?;
        let graph = Arc::make_mut(&mut self.graph);
        for ((from, to), path) in [((first, second), forward), ((second, first), backward)] {
            graph.edges.push(Edge { from: from.0 as usize, to: to.0 as usize });
            self.entries.push(LinkEntry::new(path));
            self.exits.push(LinkExit::default());
            self.agenda.add_lane();
        }
        graph.routes.are_found = false;
        Ok(link)
    }

    /// Gives `host` an address on one of its links. The first address on a link is the source
    /// address of packets that are sent over it without a local address.
    ///
    /// # Errors
    /// [`BuildError::NotAtLink`] and [`BuildError::AddressTaken`].
    pub fn add_address(
        &mut self,
        host: HostId,
        address: IpAddr,
        link: LinkId,
    ) -> Result<(), BuildError> {
        let node = self.host_node(host);
        let ends = [Direction::Forward, Direction::Backward].map(|direction| link.end(direction));
        let is_from_here = |&end: &usize| self.graph.edges[end].from == node.0 as usize;
        let out = ends
            .into_iter()
            .find(is_from_here)
            .ok_or_else(|| BuildError::NotAtLink { host: self.name(node), address })?;
        if !Arc::make_mut(&mut self.graph).addresses.insert(address) {
            return Err(BuildError::AddressTaken(address));
        }
        let attachment = Attachment { address, host: node.0 as usize, out };
        self.hosts[host.0 as usize].attachments.push(attachment);
        Arc::make_mut(&mut self.graph).routes.are_found = false;
        Ok(())
    }

    /// Routes packets from `local` (from any address if `None`) to `remote` over `direction` of
    /// `link`, at the node where this direction begins, instead of over the route with the fewest
    /// links.
    pub fn set_route(
        &mut self,
        local: Option<IpAddr>,
        remote: IpAddr,
        link: LinkId,
        direction: Direction,
    ) {
        let out = link.end(direction);
        let graph = Arc::make_mut(&mut self.graph);
        graph.routes.set(graph.edges[out].from, local, remote, out);
        graph.routes.are_found = false;
    }

    /// Changes the path of a direction of the link to `config` at `at`; see
    /// [`PathModel::change_at`].
    ///
    /// # Errors
    /// As [`PathConfig::validate`].
    pub fn change_path_at(
        &mut self,
        link: LinkId,
        direction: Direction,
        at: Instant,
        config: PathConfig,
    ) -> Result<(), ConfigError> {
        self.entries[link.end(direction)].path.change_at(at, config)
    }

    /// Sets the number of calls of one host at one instant after which a run ends with
    /// [`Livelock`](super::Livelock). The default is 1,000,000.
    pub fn set_step_limit(&mut self, steps: u32) {
        self.run.step_limit = steps;
    }

    pub(super) fn find_routes(&mut self) {
        if self.graph.routes.are_found {
            return;
        }
        let Graph { nodes, edges, routes, .. } = Arc::make_mut(&mut self.graph);
        let is_host: Vec<_> = nodes.iter().map(|node| node.host.is_some()).collect();
        let attachments: Vec<_> =
            self.hosts.iter().flat_map(|host| host.attachments.iter().copied()).collect();
        let map = Map { is_host: &is_host, edges, attachments: &attachments };
        routes.find(&map);
        self.hosts.iter_mut().for_each(|host| host.last_way = None);
        routes.are_found = true;
    }

    fn name(&self, node: NodeId) -> String {
        self.graph.nodes[node.0 as usize].name.clone()
    }
}

impl From<RouterId> for NodeId {
    fn from(router: RouterId) -> Self {
        Self(router.0)
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).expect("under 2³² parts")
}
