//! The API boundary of an endpoint: packets and time in, packets and events out; and the association that
//! each packet belongs to (RFC 9260 §8.5).

use rexmit_core::table::Table;
use rexmit_core::{Ecn, Instant, Machine, Route};

use super::{AssociationId, Endpoint, Lookup, Slot, may_be_one_host};
use crate::association::{Association, Context, Incoming, begins_with};
use crate::event::Event;
use crate::wire::{Chunk, Packet, kind};

impl Machine for Endpoint {
    type Event = (AssociationId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, bytes: &[u8]) {
        self.handle_input_with_ecn(now, route, Ecn::NotEct, bytes);
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, bytes: &[u8]) {
        let packet = match without_checksum((&self.lookup, &self.table), bytes) {
            Some(packet) => packet,
            None => match Packet::parse(bytes) {
                Ok(packet) => packet,
                Err(_) => {
                    let statistics = &mut self.around.statistics;
                    statistics.malformed += 1;
                    let is_valid_otherwise = Packet::parse_without_checksum(bytes).is_some();
                    statistics.zero_checksums_refused += u64::from(is_valid_otherwise);
                    return;
                }
            },
        };
        // An unspecified local address only says that the driver does not know it.
        let is_unicast = may_be_one_host(route.remote.ip())
            && !route.remote.ip().is_unspecified()
            && may_be_one_host(route.local.ip());
        if packet.header.destination_port != self.config.port || !is_unicast {
            self.around.statistics.misdirected += 1;
            // Over UDP nobody else answers at this port (RFC 9260 §8.4).
            let is_encapsulated = is_unicast && route.remote.port() != 0;
            if let Some(tag) = tag_of_init(&packet).filter(|_| is_encapsulated) {
                self.send_abort(route, &packet, tag, |_| {});
            }
            return;
        }
        let incoming = Incoming { route, is_reflected: false, bytes: bytes.len(), ecn };
        match packet.chunks().next() {
            Some(Ok(raw)) if packet.header.verification_tag == 0 && raw.kind != kind::INIT => {
                // Only INIT may have the tag zero (RFC 9260 §8.5.1 A), which is the tag of no association.
                self.around.statistics.misdirected += 1;
            }
            Some(Ok(raw)) if raw.kind == kind::INIT => self.on_init(now, route, &packet),
            Some(Ok(raw)) if raw.kind == kind::COOKIE_ECHO => {
                self.on_cookie_echo(now, incoming, &packet);
            }
            Some(Ok(raw))
                if raw.kind == kind::AUTH
                    && begins_with(&packet, [kind::AUTH, kind::COOKIE_ECHO]) =>
            {
                self.on_cookie_echo(now, incoming, &packet);
            }
            Some(Ok(raw)) if raw.kind == kind::INIT_ACK => {
                self.on_init_ack(now, incoming, &packet);
            }
            Some(Ok(_)) => self.deliver(now, incoming, &packet),
            Some(Err(_)) | None => self.around.statistics.malformed += 1,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let mut is_first = true;
        while let Some((index, late)) = self.table.pop_due(now) {
            // The first is the latest of all.
            if std::mem::take(&mut is_first) {
                self.around.starved += late;
            }
            self.call(now, index, |association, cx| {
                if association.next_timeout().is_some_and(|at| at <= now) {
                    association.on_timeout(cx);
                }
            });
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.transmit_ecn = Ecn::NotEct;
        if let Some((route, reply)) = self.replies.pop_front() {
            packet.clear();
            packet.extend_from_slice(&reply);
            return Some(route);
        }
        while let Some(index) = self.table.first_ready() {
            let slot = self.table.get_mut(index);
            let is_silent = slot.is_some_and(|(_, slot)| self.shared.is_certain_to_be_silent(slot));
            if !is_silent || cfg!(debug_assertions) {
                let poll = |association: &mut Association, cx: &mut Context<'_>| {
                    association.poll_transmit(cx, packet)
                };
                let sent = self.act_on(now, index, poll);
                let slot = self.table.update_at(now, index);
                debug_assert!(slot.is_none_or(
                    |slot| slot.is_entered_as_it_is() && self.shared.is_up_to_date(slot)
                ));
                debug_assert!(!is_silent || sent == Some(None), "it sends after all");
                if let Some(Some((route, ecn))) = sent {
                    self.transmit_ecn = ecn;
                    self.table.rotate_ready();
                    return Some(route);
                }
            }
            self.table.pop_ready();
            self.remove_if_over(index);
        }
        packet.clear();
        None
    }

    fn transmit_ecn(&self) -> Ecn {
        self.transmit_ecn
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        if let Some(index) = self.table.take_reported() {
            self.remove_if_over(index);
        }
        let (id, event) = self.around.events.pop_front()?;
        if matches!(event, Event::Closed(_)) {
            self.table.report_end(id.0);
        }
        Some((id, event))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_deadline()
    }
}

impl Endpoint {
    /// Passes a packet to the association of its tag (RFC 9260 §8.5), or handles one that belongs to none.
    pub(super) fn deliver(&mut self, now: Instant, incoming: Incoming, packet: &Packet<'_>) {
        let (header, route) = (packet.header, incoming.route);
        let by_address = || self.lookup.by_address(route.remote, header.source_port);
        let by_tag = self.lookup.by_tag(header.verification_tag).filter(|&index| {
            let slot = self.table.get(index);
            slot.is_some_and(|slot| {
                slot.association.identity().remote_port == header.source_port
                    && (slot.association.peer_addresses().any(|ip| ip == route.remote.ip())
                        || slot.association.may_be_from_elsewhere(packet))
            })
        });
        let is_setting_up = |index| {
            self.table.get(index).is_some_and(|slot| slot.association.state().is_setting_up())
        };
        if has_shutdown_ack(packet) && by_address().is_some_and(is_setting_up) {
            // The SHUTDOWN ACK is for an association before the one being set up (RFC 9260 §8.5.1 E).
            return self.on_out_of_the_blue(now, route, packet);
        }
        let (index, is_reflected) = match by_tag {
            Some(index) => (index, false),
            None => {
                let Some(index) = by_address() else {
                    return self.on_out_of_the_blue(now, route, packet);
                };
                let of_peer = |slot: &Slot| slot.association.peer().tag();
                let is_of_peer =
                    self.table.get(index).map(of_peer) == Some(header.verification_tag);
                if !is_of_peer || !bears_reflected_tag(packet) {
                    self.around.statistics.misdirected += 1;
                    return;
                }
                (index, true)
            }
        };
        self.call(now, index, |association, cx| {
            association.on_packet(cx, Incoming { is_reflected, ..incoming }, packet);
        });
    }
}

/// The Initiate Tag of an INIT that stands alone.
fn tag_of_init(packet: &Packet<'_>) -> Option<u32> {
    let mut chunks = packet.chunks();
    let first = chunks.next()?.ok()?.decode();
    let Ok(Chunk::Init(init)) = first else { return None };
    let is_valid = packet.header.verification_tag == 0 && init.initiate_tag != 0;
    (is_valid && chunks.next().is_none()).then_some(init.initiate_tag)
}

fn has_shutdown_ack(packet: &Packet<'_>) -> bool {
    packet.chunks().flatten().any(|raw| raw.kind == kind::SHUTDOWN_ACK)
}

/// Whether the packet is an ABORT or SHUTDOWN COMPLETE with the T bit.
fn bears_reflected_tag(packet: &Packet<'_>) -> bool {
    let first = packet.chunks().next().and_then(Result::ok).map(|raw| raw.decode());
    matches!(
        first,
        Some(Ok(Chunk::Abort { t_bit: true, .. } | Chunk::ShutdownComplete { t_bit: true }))
    )
}

/// The packet in `bytes` if it has no checksum and may have none: it is for an association that accepts such packets,
/// and does not begin with INIT, COOKIE ECHO or ASCONF (RFC 9653 §5.2, §5.3).
fn without_checksum<'p>(
    (lookup, table): (&Lookup, &Table<Slot>),
    bytes: &'p [u8],
) -> Option<Packet<'p>> {
    let packet = Packet::parse_without_checksum(bytes)?;
    let association = lookup.by_tag(packet.header.verification_tag)?;
    let takes_it = table.get(association)?.association.config().extensions.zero_checksum;
    let needs_it = |kind| matches!(kind, kind::INIT | kind::COOKIE_ECHO | kind::ASCONF);
    let is_needed = packet.chunks().flatten().any(|raw| needs_it(raw.kind));
    (takes_it && !is_needed).then_some(packet)
}
