//! The associations of an endpoint, found by id, by tag and by transport address, and the order in
//! which their timers are due. No operation costs more for the associations it is not about.
//!
//! A transport address here is an IP address, the UDP port of the encapsulation (0 without), and the
//! SCTP port: clients behind one address are distinguished by their UDP ports. Only addresses that are
//! confirmed are entered: one that a peer merely names is not its own yet (RFC 9260 §5.4, RFC 5062).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::Instant;
use rustc_hash::FxHashMap;

use super::retired::RetiredTags;
use crate::association::Association;
use crate::id::AssociationId;

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: AssociationId,
    pub(super) association: Box<Association>,
    /// Whether it stands in `ready`.
    is_ready: bool,
    /// When it stands in `deadlines`: not later than its earliest timer.
    scheduled: Option<Instant>,
    tag: u32,
    /// Zero as long as it is not known.
    peer_tag: u32,
    /// Which of the peer's transport addresses are entered; none once it is closed.
    transports: Option<u32>,
    /// Whether the last event was taken by the application.
    pub(super) is_closed_told: bool,
}

impl Slot {
    /// Which of the peer's transport addresses are to be entered.
    fn transports_to_enter(&self) -> Option<u32> {
        let is_closed = self.association.state().is_closed();
        (!is_closed).then(|| self.association.transports_version())
    }

    fn is_entered_as_it_is(&self) -> bool {
        self.tag == self.association.identity().local_tag
            && self.peer_tag == self.association.peer().tag()
            && self.transports == self.transports_to_enter()
    }
}

/// IP address, UDP port, SCTP port. IPv4 in its IPv6 guise is as short as it gets.
type Transport = (Ipv6Addr, u16, u16);

const fn transport(address: SocketAddr, port: u16) -> Transport {
    let ip = match address.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    (ip, address.port(), port)
}

/// See the module.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Option<Slot>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    /// Tags are our own random numbers, so that a fast hash is safe.
    by_tag: FxHashMap<u32, u32>,
    /// Addresses and ports are the peer's choice, so that this is ordered instead of hashed.
    by_address: BTreeMap<Transport, u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    ready: VecDeque<u32>,
    retired: RetiredTags,
    len: usize,
}

impl Table {
    /// A table without associations; a cookie is good for no longer than `cookie_life`.
    pub(super) fn new(cookie_life: Duration) -> Self {
        Self {
            slots: Vec::new(),
            generations: Vec::new(),
            free: Vec::new(),
            by_tag: FxHashMap::default(),
            by_address: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            ready: VecDeque::new(),
            retired: RetiredTags::new(cookie_life),
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The id that the next association gets.
    pub(super) fn next_id(&self) -> AssociationId {
        let fresh = || u32::try_from(self.slots.len()).expect("max_associations is below 2³²");
        let index = self.free.last().copied().unwrap_or_else(fresh);
        let generation = self.generations.get(index as usize).copied().unwrap_or(0);
        AssociationId { index, generation }
    }

    /// Enters an association, made for [`Self::next_id`].
    pub(super) fn insert(&mut self, association: Association) -> AssociationId {
        let id = self.next_id();
        if self.free.pop().is_none() {
            self.slots.push(None);
            self.generations.push(0);
        }
        let tag = association.identity().local_tag;
        self.by_tag.insert(tag, id.index);
        self.slots[id.index as usize] = Some(Slot {
            id,
            association: Box::new(association),
            is_ready: false,
            scheduled: None,
            tag,
            peer_tag: 0,
            transports: None,
            is_closed_told: false,
        });
        self.len += 1;
        id
    }

    pub(super) fn slot(&self, index: u32) -> Option<&Slot> {
        self.slots.get(index as usize)?.as_ref()
    }

    pub(super) fn slot_mut(&mut self, index: u32) -> Option<&mut Slot> {
        self.slots.get_mut(index as usize)?.as_mut()
    }

    /// The slot of `id`, if the association is still there.
    pub(super) fn find(&self, id: AssociationId) -> Option<&Slot> {
        self.slot(id.index).filter(|slot| slot.id == id)
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<u32> {
        self.by_tag.get(&tag).copied()
    }

    /// Whether an association that has ended had `tag`, and a cookie with it may still come.
    pub(super) fn is_retired(&self, tag: u32) -> bool {
        self.retired.contains(tag)
    }

    /// Whether an association that has ended since `created` had the `peer_tag` of a cookie that was
    /// made then.
    pub(super) fn is_peer_retired(&self, peer_tag: u32, created: Instant) -> bool {
        self.retired.contains_peer(peer_tag, created)
    }

    /// The association whose peer has `port` at `address`, UDP port included.
    pub(super) fn by_address(&self, address: SocketAddr, port: u16) -> Option<u32> {
        self.by_address.get(&transport(address, port)).copied()
    }

    /// Every association, in the order of their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().flatten()
    }

    /// The association `index` was called: whatever changed is entered anew.
    pub(super) fn update(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_mut) else {
            return;
        };
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(index);
        }
        let next = slot.association.next_timeout();
        // A deadline that moved away stays: finding nothing due then is cheaper than moving it
        // with every packet.
        if next.is_some_and(|next| slot.scheduled.is_none_or(|at| next < at)) {
            if let Some(at) = slot.scheduled.take() {
                self.deadlines.remove(&(at, index));
            }
            slot.scheduled = next;
            self.deadlines.extend(next.map(|at| (at, index)));
        }
        if !slot.is_entered_as_it_is() {
            self.update_addresses(now, index);
        }
    }

    fn update_addresses(&mut self, now: Instant, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_mut) else {
            return;
        };
        let port = slot.association.identity().remote_port;
        let is_closed = slot.association.state().is_closed();
        let tag = slot.association.identity().local_tag;
        let transports = slot.transports_to_enter();
        if tag != slot.tag {
            self.by_tag.remove(&slot.tag);
            self.retired.retire(now, slot.tag);
            self.by_tag.insert(tag, index);
            slot.tag = tag;
        }
        let peer_tag = slot.association.peer().tag();
        if peer_tag != slot.peer_tag {
            self.retired.retire_peer(now, slot.peer_tag);
            slot.peer_tag = peer_tag;
        }
        if transports == slot.transports {
            return;
        }
        for address in slot.association.take_departed() {
            remove(&mut self.by_address, transport(address, port), index);
        }
        if is_closed {
            self.by_tag.remove(&tag);
            self.retired.retire(now, tag);
            self.retired.retire_peer(now, peer_tag);
            return self.forget_addresses(index);
        }
        slot.transports = transports;
        for address in slot.association.confirmed_transports() {
            self.by_address.entry(transport(address, port)).or_insert(index);
        }
    }

    /// Takes out the addresses of the association `index`, whose peer is about to name others;
    /// [`Self::update`] enters those.
    pub(super) fn forget_addresses(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::as_mut) else {
            return;
        };
        slot.transports = None;
        let port = slot.association.identity().remote_port;
        for address in slot.association.all_transports() {
            remove(&mut self.by_address, transport(address, port), index);
        }
    }

    /// The earliest deadline.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// Takes an association whose deadline has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, index) = self.deadlines.first().filter(|&&(at, _)| at <= now)?;
        self.deadlines.remove(&(at, index));
        if let Some(slot) = self.slot_mut(index) {
            slot.scheduled = None;
        }
        Some(index)
    }

    /// An association that may have something to send; it stays so until
    /// [`Self::has_nothing_to_send`].
    pub(super) fn first_ready(&self) -> Option<u32> {
        self.ready.front().copied()
    }

    /// The first ready association has sent a packet: the others come before its next.
    pub(super) fn rotate_ready(&mut self) {
        if self.ready.len() > 1 {
            self.ready.rotate_left(1);
        }
    }

    /// The first ready association has nothing (more) to send.
    pub(super) fn has_nothing_to_send(&mut self) {
        let Some(index) = self.ready.pop_front() else { return };
        if let Some(slot) = self.slot_mut(index) {
            slot.is_ready = false;
        }
    }

    /// Removes the association if it is over and the application was told.
    pub(super) fn remove_if_over(&mut self, index: u32) {
        let is_over = |slot: &Slot| slot.is_closed_told && slot.association.is_over();
        if self.slot(index).is_some_and(is_over) {
            self.remove(index);
        }
    }

    fn remove(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).and_then(Option::take) else { return };
        if slot.is_ready {
            self.ready.retain(|&ready| ready != index);
        }
        if let Some(at) = slot.scheduled {
            self.deadlines.remove(&(at, index));
        }
        self.generations[index as usize] = slot.id.generation.wrapping_add(1);
        self.free.push(index);
        self.len -= 1;
    }
}

/// Takes `index` out from under `key`, where another association may stand.
fn remove(by_address: &mut BTreeMap<Transport, u32>, key: Transport, index: u32) {
    if by_address.get(&key) == Some(&index) {
        by_address.remove(&key);
    }
}
