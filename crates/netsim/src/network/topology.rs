//! Common topologies.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use rexmit_core::{Machine, Route};

use super::{BuildError, HostId, LinkId, Network, NodeId};
use crate::path::PathConfig;

/// Two hosts and a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointToPoint {
    /// The hosts `a` and `b`.
    pub hosts: [HostId; 2],
    /// The link; its forward direction is from `a` to `b`.
    pub link: LinkId,
}

impl PointToPoint {
    /// The addresses of `a` and `b`.
    pub const ADDRESSES: [IpAddr; 2] =
        [IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2))];

    /// The route from `a` to `b`, directly over IP.
    #[must_use]
    pub const fn route() -> Route {
        let [a, b] = Self::ADDRESSES;
        Route { local: SocketAddr::new(a, 0), remote: SocketAddr::new(b, 0) }
    }

    /// Adds two hosts and a link that behaves as `path` in both directions.
    ///
    /// # Errors
    /// [`BuildError::Path`]; [`BuildError::AddressTaken`] if the network has these hosts already.
    pub fn build<M: Machine>(
        network: &mut Network<M>,
        machines: [M; 2],
        path: &PathConfig,
    ) -> Result<Self, BuildError> {
        let mut names = ["a", "b"].into_iter();
        let hosts = machines.map(|machine| network.add_host(names.next().unwrap_or(""), machine));
        let [a, b] = hosts.map(|host| network.host_node(host));
        let link = network.add_link(a, b, path.clone(), path.clone())?;
        for (host, address) in hosts.into_iter().zip(Self::ADDRESSES) {
            network.add_address(host, address, link)?;
        }
        Ok(Self { hosts, link })
    }
}

/// Hosts on two sides, a router on each, and one link between the routers that all share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dumbbell {
    /// The hosts on the left.
    pub left: Vec<HostId>,
    /// The hosts on the right.
    pub right: Vec<HostId>,
    /// The links of the hosts on the left; forward is from the host to its router.
    pub left_access: Vec<LinkId>,
    /// The links of the hosts on the right; forward is from the host to its router.
    pub right_access: Vec<LinkId>,
    /// The shared link; forward is from left to right.
    pub bottleneck: LinkId,
}

impl Dumbbell {
    /// The address of host `n` on the left; at most four million hosts.
    #[must_use]
    pub fn left_address(n: u32) -> IpAddr {
        address(1, n)
    }

    /// The address of host `n` on the right; at most four million hosts.
    #[must_use]
    pub fn right_address(n: u32) -> IpAddr {
        address(2, n)
    }

    /// Adds the routers, the hosts `left0`, `right0` and so on, and the links. Every link behaves
    /// the same in both directions.
    ///
    /// # Errors
    /// [`BuildError::Path`]; [`BuildError::AddressTaken`] if the network has these hosts already.
    pub fn build<M: Machine>(
        network: &mut Network<M>,
        left: impl IntoIterator<Item = M>,
        right: impl IntoIterator<Item = M>,
        access: &PathConfig,
        bottleneck: &PathConfig,
    ) -> Result<Self, BuildError> {
        let routers = ["left router", "right router"].map(|name| network.add_router(name));
        let [first, second] = routers.map(Into::into);
        let shared = network.add_link(first, second, bottleneck.clone(), bottleneck.clone())?;
        let left = (0..).zip(left);
        let left = left.map(|(n, m)| (format!("left{n}"), Self::left_address(n), m));
        let right = (0..).zip(right);
        let right = right.map(|(n, m)| (format!("right{n}"), Self::right_address(n), m));
        let (left, left_access) = add_side(network, first, left, access)?;
        let (right, right_access) = add_side(network, second, right, access)?;
        Ok(Self { left, right, left_access, right_access, bottleneck: shared })
    }
}

/// Adds hosts, given by name, address and machine, each with a link of its own to `router`.
pub(super) fn add_side<M: Machine>(
    network: &mut Network<M>,
    router: NodeId,
    machines: impl IntoIterator<Item = (String, IpAddr, M)>,
    access: &PathConfig,
) -> Result<(Vec<HostId>, Vec<LinkId>), BuildError> {
    let mut side = (Vec::new(), Vec::new());
    for (name, address, machine) in machines {
        let host = network.add_host(name, machine);
        side.0.push(host);
        side.1.push(attach(network, host, router, address, access)?);
    }
    Ok(side)
}

/// Adds a link from a host to `router`, and the host's address on it.
pub(super) fn attach<M: Machine>(
    network: &mut Network<M>,
    host: HostId,
    router: NodeId,
    address: IpAddr,
    access: &PathConfig,
) -> Result<LinkId, BuildError> {
    let node = network.host_node(host);
    let link = network.add_link(node, router, access.clone(), access.clone())?;
    network.add_address(host, address, link)?;
    Ok(link)
}

/// The addresses of side 1 begin at 10.64.0.1, those of side 2 at 10.128.0.1.
const fn address(side: u32, n: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + side * 0x0040_0000 + n + 1))
}
