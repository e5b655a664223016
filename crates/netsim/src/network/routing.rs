//! Routing: static routes with the fewest links, or set explicitly.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use rustc_hash::FxHashMap;

/// Index of a node.
type Node = usize;
/// Index of one direction of a link.
type Out = usize;

/// A link direction in the graph that is searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: Node,
    pub(super) to: Node,
}

/// An address, its host, and the outgoing link direction of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attachment {
    pub(super) address: IpAddr,
    pub(super) host: Node,
    pub(super) out: Out,
}

/// The nodes and links of the graph that is searched.
pub(super) struct Map<'a> {
    pub(super) is_host: &'a [bool],
    pub(super) edges: &'a [Edge],
    pub(super) attachments: &'a [Attachment],
}

/// The number of a destination address. It never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target(u32);

/// In a table: no link direction.
const NOWHERE: u32 = u32::MAX;

/// The routes of all nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// Whether the computed routes are up to date with links and addresses.
    pub(super) are_found: bool,
    by_hand: BTreeMap<(Node, Option<IpAddr>, IpAddr), Out>,
    targets: FxHashMap<IpAddr, Target>,
    tables: Vec<Table>,
    /// The routes from each address of a host with several links: host, local and remote address.
    by_own_address: FxHashMap<(Node, IpAddr, IpAddr), Out>,
}

/// The routes of one node.
#[derive(Clone, Debug, Default)]
struct Table {
    /// The link direction to each target, unless `only_way` is set.
    ways: Vec<u32>,
    /// The only outgoing direction of a host with one link. Most hosts have one link, and need no table.
    only_way: Option<Out>,
    /// Whether there are explicit routes for some local addresses only.
    depends_on_source: bool,
}

impl Table {
    fn way(&self, target: Target) -> Option<Out> {
        let way = self.ways.get(target.0 as usize)?;
        (*way != NOWHERE).then_some(*way as usize)
    }
}

impl Routes {
    /// Sets an explicit route: `node` sends packets of `local` (of any address if `None`) to `remote` over `out`.
    /// Effective from the next [`find`](Self::find) on.
    pub(super) fn set(&mut self, node: Node, local: Option<IpAddr>, remote: IpAddr, out: Out) {
        self.by_hand.insert((node, local, remote), out);
    }

    /// The number of a destination address, if it is known.
    pub(super) fn target(&self, address: IpAddr) -> Option<Target> {
        self.targets.get(&address).copied()
    }

    /// The direction in which the router `node` forwards a packet to `target`.
    #[inline]
    pub(super) fn forward(&self, node: Node, target: Target, ends: [IpAddr; 2]) -> Option<Out> {
        let table = &self.tables[node];
        if table.depends_on_source
            && let Some(&out) = self.by_hand.get(&(node, Some(ends[0]), ends[1]))
        {
            return Some(out);
        }
        table.way(target)
    }

    /// The direction in which the host `node` sends a packet. With a local address, it is the link
    /// that has this address, or none.
    pub(super) fn begin(&self, node: Node, local: Option<IpAddr>, remote: IpAddr) -> Option<Out> {
        let table = &self.tables[node];
        let found = || match local {
            Some(local) => self.by_own_address.get(&(node, local, remote)).copied(),
            None => table.way(self.target(remote)?),
        };
        self.given(node, local, remote).or(table.only_way).or_else(found)
    }

    fn given(&self, node: Node, local: Option<IpAddr>, remote: IpAddr) -> Option<Out> {
        if self.by_hand.is_empty() {
            return None;
        }
        let exact = self.by_hand.get(&(node, local, remote));
        exact.or_else(|| self.by_hand.get(&(node, None, remote))).copied()
    }

    /// Computes all routes: to each address over the fewest links, among equals over the link that
    /// was added first. Hosts do not forward.
    pub(super) fn find(&mut self, map: &Map<'_>) {
        let by_hand = self.by_hand.keys().map(|&(_, _, remote)| remote);
        for address in map.attachments.iter().map(|own| own.address).chain(by_hand) {
            let next = Target(self.targets.len() as u32);
            self.targets.entry(address).or_insert(next);
        }
        let mut outward = vec![Vec::new(); map.is_host.len()];
        for (out, edge) in map.edges.iter().enumerate() {
            outward[edge.from].push(out);
        }
        let table = |node: Node| match outward[node][..] {
            [only] if map.is_host[node] => Table { only_way: Some(only), ..Table::default() },
            _ => Table { ways: vec![NOWHERE; self.targets.len()], ..Table::default() },
        };
        self.tables = (0..map.is_host.len()).map(table).collect();
        // Nodes that need no table are not searched: a router may have many of them around it.
        let needs_table = |&out: &Out| self.tables[map.edges[out].to].only_way.is_none();
        outward.iter_mut().for_each(|outs| outs.retain(needs_table));
        for own in map.attachments {
            self.find_towards(own, &outward, map);
        }
        self.find_by_own_address(map);
        self.enter_those_by_hand();
    }

    /// Breadth-first search, backwards from the link that has the address.
    fn find_towards(&mut self, own: &Attachment, outward: &[Vec<Out>], map: &Map<'_>) {
        let Some(target) = self.target(own.address) else { return };
        let mut search = VecDeque::from([reverse(own.out)]);
        while let Some(out) = search.pop_front() {
            let node = map.edges[out].from;
            let table = &mut self.tables[node];
            if table.only_way.is_some() || table.way(target).is_some() {
                continue;
            }
            table.ways[target.0 as usize] = out as u32;
            if !map.is_host[node] {
                search.extend(outward[node].iter().map(|&out| reverse(out)));
            }
        }
    }

    /// Computes the routes from each address of a host with several links: over the link that has
    /// it, if the target is at the other end, or the router there has a route.
    fn find_by_own_address(&mut self, map: &Map<'_>) {
        self.by_own_address.clear();
        for own in map.attachments.iter().filter(|own| self.tables[own.host].only_way.is_none()) {
            let next = map.edges[own.out].to;
            for remote in map.attachments.iter().filter(|remote| remote.host != own.host) {
                let is_adjacent = own.out == reverse(remote.out);
                let is_known = || {
                    let target = self.target(remote.address);
                    target.is_some_and(|target| self.tables[next].way(target).is_some())
                };
                if is_adjacent || (!map.is_host[next] && is_known()) {
                    let ends = (own.host, own.address, remote.address);
                    self.by_own_address.insert(ends, own.out);
                }
            }
        }
    }

    /// Adds the explicit routes, which take precedence over computed ones.
    fn enter_those_by_hand(&mut self) {
        for (&(node, local, remote), &out) in &self.by_hand {
            let table = &mut self.tables[node];
            table.depends_on_source |= local.is_some();
            if let (None, Some(target)) = (local, self.targets.get(&remote))
                && let Some(way) = table.ways.get_mut(target.0 as usize)
            {
                *way = out as u32;
            }
        }
    }
}

/// The other direction of the same link.
pub(super) const fn reverse(out: Out) -> Out {
    out ^ 1
}

/// The outgoing link of a host's packets between two addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    /// The addresses in the machine's route.
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
    pub(super) out: usize,
    /// The source address, if the machine did not specify one.
    pub(super) source: IpAddr,
    pub(super) target: Option<Target>,
}
