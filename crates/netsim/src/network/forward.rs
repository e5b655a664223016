//! Forwarding of a packet: from a host over links and routers to a host.

use rexmit_core::{Ecn, Machine, Route};

use super::agenda::Key;
use super::crossing::Crossing;
use super::event::Event;
use super::ids::HostId;
use super::link::direction_of;
use super::observer::{DropCause, PacketStep};
use super::packets::{Packet, Slot};
use super::routing::Way;
use super::{Network, tap};
use crate::path::{Fate, Offered, Outcome};

/// Initial hop limit of a packet.
const HOP_LIMIT: u8 = 64;
/// The largest payload of an IPv4 packet with a UDP header.
const MAX_PAYLOAD: usize = 65_535 - 20 - 8;

impl<M: Machine> Network<M> {
    /// Sends a packet with this ECN field from a host.
    pub(super) fn send(&mut self, host: HostId, (route, ecn): (Route, Ecn), bytes: Vec<u8>) {
        let way = self.way_out(host, route).filter(|_| bytes.len() <= MAX_PAYLOAD);
        let sender = &mut self.hosts[host.0 as usize];
        let id = self.packets.next_id();
        let mut packet = Packet {
            id,
            bytes,
            source: route.local,
            destination: route.remote,
            target: None,
            number: 0,
            ip_protocol: sender.ip_protocol,
            hop_limit: HOP_LIMIT,
            ecn,
            is_damaged: false,
        };
        let Some(way) = way else {
            sender.stats.unsendable += 1;
            self.observers.tell(self.now, &packet, || PacketStep::Sent { host });
            let dropped = || PacketStep::Dropped(DropCause::Unsendable);
            self.observers.tell(self.now, &packet, dropped);
            self.packets.recycle(packet.bytes);
            return;
        };
        sender.last_way = Some(way);
        sender.stats.packets_out += 1;
        sender.stats.bytes_out += packet.bytes.len() as u64;
        packet.source.set_ip(way.source);
        packet.target = way.target;
        self.observers.tell(self.now, &packet, || PacketStep::Sent { host });
        self.taps.record(&sender.taps, self.now, &packet, tap::Sight::Outbound);
        let slot = self.packets.insert(packet);
        self.enter(way.out, slot);
    }

    /// The outgoing link for a packet of a host.
    fn way_out(&self, host: HostId, route: Route) -> Option<Way> {
        let host = &self.hosts[host.0 as usize];
        let (local, remote) = (route.local.ip(), route.remote.ip());
        if let Some(way) = host.last_way.filter(|way| (way.local, way.remote) == (local, remote)) {
            return Some(way);
        }
        let given = Some(local).filter(|local| !local.is_unspecified());
        let out = self.graph.routes.begin(host.node.0 as usize, given, remote)?;
        let own = || host.attachments.iter().find(|own| own.out == out).map(|own| own.address);
        let source = given.or_else(own)?;
        let way = Way { local, remote, out, source, target: self.graph.routes.target(remote) };
        (source.is_ipv4() == remote.is_ipv4()).then_some(way)
    }

    /// Lets a packet enter a link direction.
    fn enter(&mut self, link: usize, slot: Slot) {
        let end = &mut self.entries[link];
        let packet = self.packets.packet_mut(slot);
        let may_queue = end.path.needs_flow();
        let flow = if may_queue { packet.flow() } else { 0 };
        let offered = Offered { len: packet.wire_len(), ecn: packet.ecn, flow };
        let outcome = end.path.offer_packet(self.now, offered);
        packet.number = outcome.packet;
        self.settle(link, slot, &outcome);
        if may_queue {
            self.depart(link);
        }
    }

    /// Called at the time of a scheduled departure.
    pub(super) fn on_departure(&mut self, link: usize) {
        if let Some(waiting) = &mut self.entries[link].waiting {
            waiting.departure_at = None;
        }
        self.depart(link);
    }

    /// Settles the packets that a link direction has sent or dropped by now, and schedules the next departure.
    fn depart(&mut self, link: usize) {
        while let Some(outcome) = self.entries[link].path.poll_departure(self.now) {
            let waiting = self.entries[link].waiting.as_deref_mut();
            if let Some(slot) = waiting.and_then(|all| all.packets.remove(&outcome.packet)) {
                self.settle(link, slot, &outcome);
            }
        }
        let end = &mut self.entries[link];
        let next = end.path.next_departure();
        if let Some(at) = next
            && let Some(waiting) = &mut end.waiting
            && waiting.departure_at != next
        {
            waiting.departure_at = next;
            self.agenda.schedule_departure(link, at, Event::Departure { link: link as u32 });
        }
    }

    /// Does with a packet what the path of a link direction has decided.
    #[inline] // For drop-tail links, which need nothing else.
    fn settle(&mut self, link: usize, slot: Slot, outcome: &Outcome) {
        let end = &mut self.entries[link];
        let packet = self.packets.packet_mut(slot);
        if outcome.fate == Fate::Queued {
            end.waiting.get_or_insert_default().packets.insert(outcome.packet, slot);
            return;
        }
        self.taps.record(&end.taps, self.now, packet, tap::Sight::Entering(outcome));
        if outcome.is_marked {
            packet.ecn = Ecn::Ce;
        }
        match outcome.fate {
            Fate::Passed => self.schedule_arrivals(link, slot, outcome),
            Fate::Held => end.held.push((outcome.packet, slot)),
            Fate::Lost(cause) => {
                let (link, direction) = direction_of(link);
                self.drop(slot, DropCause::Link { link, direction, cause });
            }
            Fate::Queued => {}
        }
    }

    fn schedule_arrivals(&mut self, link: usize, own: Slot, outcome: &Outcome) {
        let mut copy = None;
        for (place, delivery) in outcome.deliveries.iter().enumerate() {
            let arriving = if delivery.is_copy {
                copy.take()
            } else if delivery.packet == outcome.packet {
                Some(own)
            } else {
                self.entries[link].release(delivery.packet)
            };
            let Some(slot) = arriving else { continue };
            // A copy follows right after its original.
            if outcome.deliveries.get(place + 1).is_some_and(|next| next.is_copy) {
                copy = Some(self.packets.copy(slot));
                let (link, direction) = direction_of(link);
                let doubled = || PacketStep::Duplicated { link, direction };
                self.observers.tell(self.now, self.packets.packet(slot), doubled);
            }
            if let Some(corruption) = delivery.corruption {
                let packet = self.packets.packet_mut(slot);
                corruption.apply(&mut packet.bytes);
                packet.is_damaged = true;
            }
            let key = self.agenda.arrival_key(link, delivery.at);
            self.schedule_arrival(link, key, slot);
        }
    }

    fn schedule_arrival(&mut self, link: usize, key: Key, packet: Slot) {
        if let Some(others) = &mut self.others
            && let Some(part) = others.part_at_end(link)
        {
            let packet = self.packets.remove(packet);
            others.send(part, Crossing { link, key, packet });
            return;
        }
        let event = Event::Arrival { link: link as u32, packet };
        self.agenda.insert_arrival(link, key, event);
    }

    /// Handles a packet at the end of a link direction. Returns the host whose machine must process
    /// it; forwarded and dropped packets are already handled.
    pub(super) fn arrive(&mut self, link: usize, slot: Slot) -> Option<HostId> {
        let end = &mut self.exits[link];
        let packet = self.packets.packet(slot);
        end.arrivals.on_delivery(packet.number, packet.wire_len());
        self.taps.record(&end.taps, self.now, packet, tap::Sight::Inbound);
        let node = self.graph.edges[link].to;
        let Some(id) = self.graph.nodes[node].host else {
            self.forward(node, slot);
            return None;
        };
        let host = &mut self.hosts[id.0 as usize];
        if !host.has_address(packet.destination.ip()) {
            host.stats.misdelivered += 1;
            self.drop(slot, DropCause::Misdelivered);
            return None;
        }
        host.stats.packets_in += 1;
        host.stats.bytes_in += packet.bytes.len() as u64;
        self.taps.record(&host.taps, self.now, packet, tap::Sight::Inbound);
        self.observers.tell(self.now, packet, || PacketStep::Received { host: id });
        Some(id)
    }

    /// Forwards a packet at a router.
    fn forward(&mut self, node: usize, slot: Slot) {
        let packet = self.packets.packet_mut(slot);
        packet.hop_limit -= 1;
        if packet.hop_limit == 0 {
            self.stats.hop_limit_exceeded += 1;
            self.drop(slot, DropCause::HopLimit);
            return;
        }
        let ends = [packet.source.ip(), packet.destination.ip()];
        // An address may have been added since the packet left.
        let target = packet.target.or_else(|| self.graph.routes.target(ends[1]));
        let way = target.and_then(|target| self.graph.routes.forward(node, target, ends));
        if let Some(out) = way {
            self.enter(out, slot);
        } else {
            self.stats.no_route += 1;
            self.drop(slot, DropCause::NoRoute);
        }
    }

    /// Drops a packet.
    fn drop(&mut self, slot: Slot, cause: DropCause) {
        let packet = self.packets.packet(slot);
        self.observers.tell(self.now, packet, || PacketStep::Dropped(cause));
        self.packets.discard(slot);
    }
}
