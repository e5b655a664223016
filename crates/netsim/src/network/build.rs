//! Construction of a network.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rexmit_core::{Instant, Machine, Seed};
use thiserror::Error;

use super::agenda::Agenda;
use super::calls::CallStore;
use super::link::LinkEnd;
use super::observer::Observers;
use super::packets::PacketStore;
use super::routing::{Attachment, Edge, Map, Routes};
use super::tap::Taps;
use super::{
    Direction, Host, HostId, HostStats, LinkId, Network, NetworkStats, Node, NodeId, RouterId,
    RunState,
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
        Self {
            now: Instant::ZERO,
            seed: seed.clone(),
            nodes: Vec::new(),
            hosts: Vec::new(),
            links: Vec::new(),
            addresses: BTreeSet::new(),
            routes: Routes::default(),
            agenda: Agenda::new(),
            calls: CallStore::default(),
            packets: PacketStore::default(),
            touched: Vec::new(),
            taps: Taps::default(),
            observers: Observers::default(),
            run: RunState { step_limit: STEP_LIMIT, is_stopped: false },
            stats: NetworkStats::default(),
        }
    }

    /// Adds a host that runs `machine`. Its name appears in captures and errors.
    pub fn add_host(&mut self, name: impl Into<String>, machine: M) -> HostId {
        let host = HostId(index(self.hosts.len()));
        let node = NodeId(index(self.nodes.len()));
        self.nodes.push(Node { name: name.into(), host: Some(host) });
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
        self.routes.are_found = false;
        host
    }

    /// Adds a router, which forwards packets and has no address.
    pub fn add_router(&mut self, name: impl Into<String>) -> RouterId {
        let router = RouterId(index(self.nodes.len()));
        self.nodes.push(Node { name: name.into(), host: None });
        self.routes.are_found = false;
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
            return Err(BuildError::Loop(self.nodes[first.0 as usize].name.clone()));
        }
        let link = LinkId(index(self.links.len() / 2));
        let seed = self.seed.split(&format!("link {}", link.0));
        let forward = PathModel::new(forward, &seed.split("forward"))?;
        let backward = PathModel::new(backward, &seed.split("backward"))?;
        self.links.push(LinkEnd::new(first, second, forward));
        self.links.push(LinkEnd::new(second, first, backward));
        self.agenda.add_lane(); // one per direction
        self.agenda.add_lane();
        self.routes.are_found = false;
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
        let out = ends.into_iter().find(|&end| self.links[end].from == node).ok_or_else(|| {
            BuildError::NotAtLink { host: self.nodes[node.0 as usize].name.clone(), address }
        })?;
        if !self.addresses.insert(address) {
            return Err(BuildError::AddressTaken(address));
        }
        let attachment = Attachment { address, host: node.0 as usize, out };
        self.hosts[host.0 as usize].attachments.push(attachment);
        self.routes.are_found = false;
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
        self.routes.set(self.links[out].from.0 as usize, local, remote, out);
        self.routes.are_found = false;
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
        self.links[link.end(direction)].path.change_at(at, config)
    }

    /// Sets the number of calls of one host at one instant after which a run ends with
    /// [`Livelock`](super::Livelock). The default is 1,000,000.
    pub fn set_step_limit(&mut self, steps: u32) {
        self.run.step_limit = steps;
    }

    pub(super) fn find_routes(&mut self) {
        if self.routes.are_found {
            return;
        }
        let is_host: Vec<_> = self.nodes.iter().map(|node| node.host.is_some()).collect();
        let edge = |end: &LinkEnd| Edge { from: end.from.0 as usize, to: end.to.0 as usize };
        let edges: Vec<_> = self.links.iter().map(edge).collect();
        let attachments: Vec<_> =
            self.hosts.iter().flat_map(|host| host.attachments.iter().copied()).collect();
        let map = Map { is_host: &is_host, edges: &edges, attachments: &attachments };
        self.routes.find(&map);
        self.hosts.iter_mut().for_each(|host| host.last_way = None);
        self.routes.are_found = true;
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
