//! Where a network is cut so that its parts can run at the same time: at links with a delay.
//!
//! A packet that enters such a link cannot arrive before its least delay has passed, so a part may process the events of that
//! time without waiting for the other parts (conservative synchronization with lookahead: Chandy and Misra 1979).

use std::time::Duration;

use rexmit_core::Machine;

use super::Network;
use super::routing::Edge;
use crate::path::PathModel;

/// Links with a shorter delay are not cut: threads would wait for each other too often.
pub(super) const MIN_LOOKAHEAD: Duration = Duration::from_micros(100);

/// The parts of a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Partition {
    /// The part of each node.
    pub(super) part_of: Vec<usize>,
    /// The number of parts; at least 2.
    pub(super) count: usize,
    /// The least delay of a link between parts.
    pub(super) lookahead: Duration,
}

impl<M: Machine> Network<M> {
    /// A partition with at most so many parts, and the longest delays between them; `None` if there are no links to cut.
    pub(super) fn partition(&self, most: usize) -> Option<Partition> {
        let nodes = self.graph.nodes.len();
        let least = |pair: usize| {
            let ends = [2 * pair, 2 * pair + 1].map(|end| self.entries[end].path.least_delay());
            ends[0].min(ends[1])
        };
        let delays: Vec<Duration> = (0..self.entries.len() / 2).map(least).collect();
        let mut limits: Vec<Duration> =
            delays.iter().copied().filter(|&delay| delay >= MIN_LOOKAHEAD).collect();
        limits.sort_unstable();
        limits.dedup();
        let mut best: Option<(Vec<usize>, usize)> = None;
        for limit in limits.into_iter().rev() {
            let edges = self.graph.edges.iter().step_by(2).zip(&delays);
            let kept = edges.filter(|&(_, &delay)| delay < limit).map(|(edge, _)| *edge);
            let (group_of, count) = groups(nodes, kept);
            if best.as_ref().is_none_or(|&(_, before)| count > before) {
                best = Some((group_of, count));
            }
            if count >= most {
                break;
            }
        }
        let (group_of, count) = best.filter(|&(_, count)| count > 1)?;
        let mut weights = vec![0; count];
        for (node, &group) in group_of.iter().enumerate() {
            weights[group] += 1 + usize::from(self.graph.nodes[node].host.is_some());
        }
        let part_of_group = distribute(&weights, most.min(count));
        let part_of: Vec<usize> = group_of.iter().map(|&group| part_of_group[group]).collect();
        let is_cut = |edge: &Edge| part_of[edge.from] != part_of[edge.to];
        let cut = self.graph.edges.iter().step_by(2).zip(&delays);
        let lookahead = cut.filter(|(edge, _)| is_cut(edge)).map(|(_, &delay)| delay).min();
        // Groups without a link between them have nothing to wait for.
        let lookahead = lookahead.unwrap_or(Duration::MAX);
        Some(Partition { part_of, count: most.min(count), lookahead })
    }
}

/// The group of each node, and the number of groups, if these links connect nodes to groups.
fn groups(nodes: usize, links: impl Iterator<Item = Edge>) -> (Vec<usize>, usize) {
    let mut leader: Vec<usize> = (0..nodes).collect();
    let find = |leader: &mut Vec<usize>, mut node: usize| {
        while leader[node] != node {
            leader[node] = leader[leader[node]];
            node = leader[node];
        }
        node
    };
    for Edge { from, to } in links {
        let [from, to] = [find(&mut leader, from), find(&mut leader, to)];
        leader[from.max(to)] = from.min(to);
    }
    let mut number = vec![None; nodes];
    let mut count = 0;
    let group_of = (0..nodes).map(|node| {
        let first = find(&mut leader, node);
        *number[first].get_or_insert_with(|| {
            count += 1;
            count - 1
        })
    });
    (group_of.collect(), count)
}

/// The part of each group: the heaviest group goes first, each to the lightest part.
fn distribute(weights: &[usize], parts: usize) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..weights.len()).collect();
    groups.sort_by_key(|&group| std::cmp::Reverse(weights[group]));
    let mut loads = vec![0; parts];
    let mut part_of = vec![0; weights.len()];
    for group in groups {
        let lightest = (0..parts).min_by_key(|&part| loads[part]).unwrap_or(0);
        part_of[group] = lightest;
        loads[lightest] += weights[group];
    }
    part_of
}

impl PathModel {
    /// No packet arrives sooner after it was offered, with the present configuration and all planned ones.
    fn least_delay(&self) -> Duration {
        let planned = self.planned().map(crate::path::PathConfig::least_delay);
        planned
            .chain(self.waiting_delay())
            .chain([self.config().least_delay()])
            .min()
            .unwrap_or_default()
    }
}
