//! A network in parts, each of which is a network that has some of the hosts and links.

use std::sync::Arc;

use rexmit_core::Machine;

use super::agenda::Key;
use super::crossing::{Crossing, Others};
use super::event::Event;
use super::partition::Partition;
use super::tap::Taps;
use super::{HostId, Items, Network, NetworkStats, RunState};

impl<M: Machine> Network<M> {
    /// Takes a packet that arrives from another part.
    pub(super) fn receive(&mut self, Crossing { link, key, packet }: Crossing) {
        let packet = self.packets.insert(packet);
        self.agenda.insert_arrival(link, key, Event::Arrival { link: link as u32, packet });
    }

    /// Whether it can be divided: what concerns the whole network can be done by one thread only.
    pub(super) fn can_be_divided(&self, partition: &Partition) -> bool {
        self.observers.is_empty() && self.calls.is_empty() && self.taps_by_part(partition).is_some()
    }

    /// The part of each capture; `None` if one has points in several parts.
    fn taps_by_part(&self, partition: &Partition) -> Option<Vec<(usize, usize)>> {
        let graph = &self.graph;
        let hosts = self.hosts.iter().map(|host| (host.node.0 as usize, &host.taps));
        let entries = self.entries.iter().zip(&graph.edges).map(|(it, edge)| (edge.from, &it.taps));
        let exits = self.exits.iter().zip(&graph.edges).map(|(it, edge)| (edge.to, &it.taps));
        let mut parts: Vec<(usize, usize)> = hosts
            .chain(entries)
            .chain(exits)
            .flat_map(|(node, taps)| taps.iter().map(move |it| (it.tap, partition.part_of[node])))
            .filter(|&(tap, _)| self.taps.is_open(tap))
            .collect();
        parts.sort_unstable();
        parts.dedup();
        parts.windows(2).all(|two| two[0].0 != two[1].0).then_some(parts)
    }

    /// Moves everything into parts.
    pub(super) fn divide(&mut self, partition: &Partition) -> Vec<Self> {
        let part_at_end: Arc<[usize]> =
            self.graph.edges.iter().map(|edge| partition.part_of[edge.to]).collect();
        let taps = self.taps_by_part(partition).unwrap_or_default();
        let part = |own: usize| Self {
            now: self.now,
            seed: self.seed.clone(),
            graph: Arc::clone(&self.graph),
            hosts: Items::places_of(&self.hosts),
            entries: Items::places_of(&self.entries),
            exits: Items::places_of(&self.exits),
            agenda: self.agenda.part(),
            calls: Default::default(),
            packets: self.packets.part(own, partition.count),
            touched: Vec::new(),
            others: Some(Others::new(own, partition.count, Arc::clone(&part_at_end))),
            taps: Taps::default(),
            observers: Default::default(),
            run: RunState { step_limit: self.run.step_limit, is_stopped: false },
            stats: NetworkStats::default(),
        };
        let mut parts: Vec<Self> = (0..partition.count).map(part).collect();
        for (own, part) in parts.iter_mut().enumerate() {
            let is_own = |node: usize| partition.part_of[node] == own;
            self.move_items(part, is_own);
            let taps = taps.iter().filter(|&&(_, place)| place == own);
            taps.for_each(|&(tap, _)| self.taps.move_to(&mut part.taps, tap));
        }
        for (key, event) in self.agenda.drain() {
            let node = match event {
                Event::Arrival { link, .. } => self.graph.edges[link as usize].to,
                Event::Departure { link } => self.graph.edges[link as usize].from,
                Event::Wake { host, .. } | Event::Call { host, .. } => self.node_of(&parts, host),
            };
            self.move_event(&mut parts[partition.part_of[node]], key, event);
        }
        parts
    }

    fn node_of(&self, parts: &[Self], host: HostId) -> usize {
        let hosts = parts.iter().find_map(|part| part.hosts.get(host.0 as usize));
        hosts.map_or(0, |host| host.node.0 as usize)
    }

    /// Moves everything back from the parts.
    pub(super) fn unite(&mut self, parts: Vec<Self>) {
        for mut part in parts {
            part.move_items(self, |_| true);
            for tap in 0..part.taps.len() {
                part.taps.move_to(&mut self.taps, tap);
            }
            for (key, event) in part.agenda.drain() {
                part.move_event(self, key, event);
            }
            self.packets.continue_after(&part.packets);
            self.stats.add(&part.stats);
            self.now = self.now.max(part.now);
        }
    }

    /// Moves the hosts and link ends at these nodes, with their packets and deadlines, to their places in `other`.
    fn move_items(&mut self, other: &mut Self, is_there: impl Fn(usize) -> bool) {
        for number in 0..self.hosts.len() {
            if self.hosts.get(number).is_some_and(|host| is_there(host.node.0 as usize)) {
                self.hosts.move_to(&mut other.hosts, number);
                other.agenda.set_deadline(number, self.agenda.deadline(number));
                self.agenda.set_deadline(number, None);
            }
        }
        let graph = Arc::clone(&self.graph);
        for (link, edge) in graph.edges.iter().enumerate() {
            if is_there(edge.to) {
                self.exits.move_to(&mut other.exits, link);
            }
            if is_there(edge.from) && self.entries.get(link).is_some() {
                self.entries.move_to(&mut other.entries, link);
                other.agenda.continue_count(&self.agenda, link);
                for slot in other.entries[link].slots_mut() {
                    *slot = other.packets.insert(self.packets.remove(*slot));
                }
            }
        }
    }

    fn move_event(&mut self, other: &mut Self, key: Key, event: Event) {
        let Event::Arrival { link, packet } = event else {
            other.agenda.insert(key, event);
            return;
        };
        let packet = self.packets.remove(packet);
        other.receive(Crossing { link: link as usize, key, packet });
    }
}
