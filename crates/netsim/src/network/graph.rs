//! The nodes of a network, its links and the routes: what does not change while it runs.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::HostId;
use super::routing::{Edge, Routes};

#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// The ends of each link direction.
    pub(super) edges: Vec<Edge>,
    pub(super) routes: Routes,
    /// The addresses of all hosts.
    pub(super) addresses: BTreeSet<IpAddr>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) host: Option<HostId>,
}
