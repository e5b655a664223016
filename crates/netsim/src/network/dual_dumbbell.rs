//! Two dumbbells with a sender and a receiver that are attached to both: the topology of studies of
//! concurrent multipath transfer.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::{BitRate, Machine, Route};

use super::topology::{add_side, attach};
use super::{BuildError, Dumbbell, HostId, LinkId, Network};
use crate::path::{Delay, PathConfig, QueueLimit};

/// The links of one dumbbell. Each behaves the same in both directions; use
/// [`Network::change_path_at`] for different directions.
#[derive(Clone, PartialEq, Debug)]
pub struct DumbbellPaths {
    /// The link between the routers. Default: 10 Mbit/s, 45 ms, 50 packets of queue (drop-tail).
    pub bottleneck: PathConfig,
    /// The links of the hosts. Default: 100 Mbit/s, 5 ms, 50 packets of queue (drop-tail).
    pub access: PathConfig,
}

impl Default for DumbbellPaths {
    fn default() -> Self {
        // ns-2's default queue.
        let path = |megabits: u64, ms| PathConfig {
            delay: Delay::constant(Duration::from_millis(ms)),
            rate: BitRate::new(megabits * 1_000_000),
            queue: QueueLimit::Packets(50),
            ..PathConfig::default()
        };
        Self { bottleneck: path(10, 45), access: path(100, 5) }
    }
}

/// Two dumbbells, each with its own hosts for background traffic, and two hosts that are attached
/// to both, with an address on each.
///
/// ```text
///             left hosts ─┐                         ┌─ right hosts
///        ┌── 10.1.0.1 ── router ── bottleneck ── router ── 10.1.0.2 ──┐
///   sender                                                            receiver
///        └── 10.2.0.1 ── router ── bottleneck ── router ── 10.2.0.2 ──┘
///             left hosts ─┘                         └─ right hosts
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DualDumbbell {
    /// The host on the left that is attached to both dumbbells.
    pub sender: HostId,
    /// The host on the right that is attached to both dumbbells.
    pub receiver: HostId,
    /// The sender's link of each dumbbell; forward is from the sender.
    pub sender_access: [LinkId; 2],
    /// The receiver's link of each dumbbell; forward is from the receiver.
    pub receiver_access: [LinkId; 2],
    /// The dumbbells, with the hosts for background traffic. Their addresses are those of
    /// [`left_address`](Self::left_address) and [`right_address`](Self::right_address).
    pub dumbbells: [Dumbbell; 2],
}

impl DualDumbbell {
    /// Number of hosts for background traffic on each side of each dumbbell, as in the studies.
    pub const BACKGROUND_HOSTS: u32 = 5;

    /// The sender's address on dumbbell `path`, 0 or 1.
    #[must_use]
    pub fn sender_address(path: usize) -> IpAddr {
        address(path, 0, 0)
    }

    /// The receiver's address on dumbbell `path`, 0 or 1.
    #[must_use]
    pub fn receiver_address(path: usize) -> IpAddr {
        address(path, 0, 1)
    }

    /// The address of host `n` on the left of dumbbell `path`; at most 16,000 hosts.
    #[must_use]
    pub fn left_address(path: usize, n: u32) -> IpAddr {
        address(path, 1, n)
    }

    /// The address of host `n` on the right of dumbbell `path`; at most 16,000 hosts.
    #[must_use]
    pub fn right_address(path: usize, n: u32) -> IpAddr {
        address(path, 2, n)
    }

    /// The route from the sender to the receiver over dumbbell `path`, directly over IP.
    #[must_use]
    pub fn route(path: usize) -> Route {
        Route {
            local: SocketAddr::new(Self::sender_address(path), 0),
            remote: SocketAddr::new(Self::receiver_address(path), 0),
        }
    }

    /// Builds the topology: `ends` are the sender and the receiver, `background` the hosts on the
    /// left and on the right of the first dumbbell, then of the second.
    ///
    /// # Errors
    /// [`BuildError::Path`]; [`BuildError::AddressTaken`] if the network has these hosts already.
    pub fn build<M: Machine>(
        network: &mut Network<M>,
        ends: [M; 2],
        background: [[Vec<M>; 2]; 2],
        paths: &[DumbbellPaths; 2],
    ) -> Result<Self, BuildError> {
        let [sender, receiver] = ends;
        let ends = [network.add_host("sender", sender), network.add_host("receiver", receiver)];
        let [first, second] = background;
        let (first, first_access) = add_dumbbell(network, ends, 0, first, &paths[0])?;
        let (second, second_access) = add_dumbbell(network, ends, 1, second, &paths[1])?;
        Ok(Self {
            sender: ends[0],
            receiver: ends[1],
            sender_access: [first_access[0], second_access[0]],
            receiver_access: [first_access[1], second_access[1]],
            dumbbells: [first, second],
        })
    }
}

/// Adds one dumbbell and attaches `ends` to it; also returns their links.
fn add_dumbbell<M: Machine>(
    network: &mut Network<M>,
    ends: [HostId; 2],
    path: usize,
    background: [Vec<M>; 2],
    paths: &DumbbellPaths,
) -> Result<(Dumbbell, [LinkId; 2]), BuildError> {
    let name = |what: &str| format!("path {} {what}", path + 1);
    let routers = ["left router", "right router"].map(|side| network.add_router(name(side)));
    let [a, b] = routers.map(Into::into);
    let DumbbellPaths { bottleneck, access } = paths;
    let shared = network.add_link(a, b, bottleneck.clone(), bottleneck.clone())?;
    let sender_access = attach(network, ends[0], a, DualDumbbell::sender_address(path), access)?;
    let receiver = DualDumbbell::receiver_address(path);
    let receiver_access = attach(network, ends[1], b, receiver, access)?;
    let [left, right] = background;
    let left = (0..).zip(left).map(|(n, machine)| {
        (name(&format!("left{n}")), DualDumbbell::left_address(path, n), machine)
    });
    let (left, left_access) = add_side(network, a, left, access)?;
    let right = (0..).zip(right).map(|(n, machine)| {
        (name(&format!("right{n}")), DualDumbbell::right_address(path, n), machine)
    });
    let (right, right_access) = add_side(network, b, right, access)?;
    let dumbbell = Dumbbell { left, right, left_access, right_access, bottleneck: shared };
    Ok((dumbbell, [sender_access, receiver_access]))
}

/// Addresses of the first dumbbell begin with 10.1, those of the second with 10.2. Group 0 contains
/// the ends, groups 1 and 2 the sides.
fn address(path: usize, group: u32, n: u32) -> IpAddr {
    let path = path as u32 + 1;
    IpAddr::V4(Ipv4Addr::from_bits(0x0A00_0000 + (path << 16) + group * 0x4000 + n + 1))
}
