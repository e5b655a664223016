//! Which link a packet takes: static routes, found by the fewest links or given by hand.

use std::collections::VecDeque;
use std::net::IpAddr;

use rustc_hash::FxHashMap;

/// Index of a node.
type Node = usize;
/// Index of one direction of a link.
type Out = usize;

/// A link direction as the search sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: Node,
    pub(super) to: Node,
}

/// An address, the host that has it, and the link direction that leaves the host from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attachment {
    pub(super) address: IpAddr,
    pub(super) host: Node,
    pub(super) out: Out,
}

/// The nodes and links in which routes are searched.
pub(super) struct Map<'a> {
    pub(super) is_host: &'a [bool],
    pub(super) edges: &'a [Edge],
    pub(super) attachments: &'a [Attachment],
}

/// The routes of all nodes.
#[derive(Debug, Default)]
pub(super) struct Routes {
    by_hand: FxHashMap<(Node, Option<IpAddr>, IpAddr), Out>,
    /// By node, local address if it matters, and remote address.
    found: FxHashMap<(Node, Option<IpAddr>, IpAddr), Out>,
    /// The only way out of a node, for hosts with one link: most hosts need no table.
    only_way: Vec<Option<Out>>,
}

impl Routes {
    /// Packets of `local` (any if `None`) to `remote` leave `node` by `out`, whatever is found.
    pub(super) fn set(&mut self, node: Node, local: Option<IpAddr>, remote: IpAddr, out: Out) {
        self.by_hand.insert((node, local, remote), out);
    }

    /// The way from the router `node` for a packet that it forwards.
    pub(super) fn forward(&self, node: Node, source: IpAddr, destination: IpAddr) -> Option<Out> {
        self.given(node, Some(source), destination)
            .or_else(|| self.found.get(&(node, None, destination)).copied())
    }

    /// The way from the host `node` for a packet that begins there. With a local address it is
    /// the link that has this address, or none.
    pub(super) fn begin(&self, node: Node, local: Option<IpAddr>, remote: IpAddr) -> Option<Out> {
        self.given(node, local, remote)
            .or_else(|| self.only_way[node])
            .or_else(|| self.found.get(&(node, local, remote)).copied())
    }

    fn given(&self, node: Node, local: Option<IpAddr>, remote: IpAddr) -> Option<Out> {
        if self.by_hand.is_empty() {
            return None;
        }
        let exact = self.by_hand.get(&(node, local, remote));
        exact.or_else(|| self.by_hand.get(&(node, None, remote))).copied()
    }

    /// Finds all routes anew: to each address over the fewest links, among equals over the link
    /// that was added first. Hosts forward nothing.
    pub(super) fn find(&mut self, map: &Map<'_>) {
        self.found.clear();
        let mut outward = vec![Vec::new(); map.is_host.len()];
        for (out, edge) in map.edges.iter().enumerate() {
            outward[edge.from].push(out);
        }
        let only_way = |node: Node| match outward[node][..] {
            [only] if map.is_host[node] => Some(only),
            _ => None,
        };
        self.only_way = (0..map.is_host.len()).map(only_way).collect();
        for target in map.attachments {
            self.find_towards(target, &outward, map);
        }
        self.find_by_source(map);
    }

    /// Breadth first, from the link that has the address backwards.
    fn find_towards(&mut self, target: &Attachment, outward: &[Vec<Out>], map: &Map<'_>) {
        let mut search = VecDeque::from([reverse(target.out)]);
        while let Some(out) = search.pop_front() {
            let node = map.edges[out].from;
            let key = (node, None, target.address);
            if self.only_way[node].is_some() || self.found.contains_key(&key) {
                continue;
            }
            self.found.insert(key, out);
            if !map.is_host[node] {
                search.extend(outward[node].iter().map(|&out| reverse(out)));
            }
        }
    }

    /// The routes from each address of a host with several links: over the link that has it, if
    /// the target is at the other end or the router there knows the way.
    fn find_by_source(&mut self, map: &Map<'_>) {
        for own in map.attachments.iter().filter(|own| self.only_way[own.host].is_none()) {
            let next = map.edges[own.out].to;
            for target in map.attachments.iter().filter(|target| target.host != own.host) {
                let is_adjacent = own.out == reverse(target.out);
                let is_known =
                    !map.is_host[next] && self.found.contains_key(&(next, None, target.address));
                if is_adjacent || is_known {
                    self.found.insert((own.host, Some(own.address), target.address), own.out);
                }
            }
        }
    }
}

/// The other direction of the same link.
pub(super) const fn reverse(out: Out) -> Out {
    out ^ 1
}
