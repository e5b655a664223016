//! The associations of an endpoint, found by tag and by transport address. The cost of an operation does not grow with
//! the number of other associations.
//!
//! A transport address here is an IP address, the UDP port of the encapsulation (0 without), and the
//! SCTP port: clients behind one address are distinguished by their UDP ports. Only addresses that are
//! confirmed are entered: one that a peer merely names is not its own yet (RFC 9260 §5.4, RFC 5062).

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::table::Timed;
use rexmit_recovery::Share;
use rustc_hash::FxHashMap;

use super::destinations::Destination;
use super::retired::{Ending, RetiredTags};
use crate::association::Association;

/// An association, and the keys under which it is found.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) association: Box<Association>,
    tag: u32,
    /// The peer's tag; zero until it is known.
    peer_tag: u32,
    /// The version of the peer's transport addresses that is in the tables; `None` if none is, because the
    /// association is closed.
    transports: Option<u32>,
    pub(super) unanswered: Share,
    /// The destination whose associations share what they spend on copies; `None` without a limited budget.
    pub(super) destination: Option<Destination>,
    /// The bytes of received data for which the endpoint's budget is charged.
    pub(super) charged: u32,
}

impl Timed for Slot {
    #[inline]
    fn next_timeout(&self) -> Option<Instant> {
        self.association.next_timeout()
    }
}

impl Slot {
    pub(super) fn new(association: Association) -> Self {
        let tag = association.identity().local_tag;
        Self {
            association: Box::new(association),
            tag,
            peer_tag: 0,
            transports: None,
            unanswered: Share::default(),
            destination: None,
            charged: 0,
        }
    }

    /// The version of the peer's transport addresses that has to be in the tables.
    fn transports_to_enter(&self) -> Option<u32> {
        let is_closed = self.association.state().is_closed();
        (!is_closed).then(|| self.association.transports_version())
    }

    /// Whether the keys of the association are those in the tables.
    pub(super) fn is_entered_as_it_is(&self) -> bool {
        self.tag == self.association.identity().local_tag
            && self.peer_tag == self.association.peer().tag()
            && self.transports == self.transports_to_enter()
    }
}

/// IP address, UDP port, SCTP port. IPv4 addresses are mapped to IPv6, so that a key is as short as possible.
type Transport = (Ipv6Addr, u16, u16);

const fn transport(address: SocketAddr, port: u16) -> Transport {
    let ip = match address.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    (ip, address.port(), port)
}

/// The tables that find the associations of an endpoint by tag and by transport address.
#[derive(Debug)]
pub(super) struct Lookup {
    /// By our own tag. Tags are our own random numbers, so that a fast hash is safe.
    by_tag: FxHashMap<u32, u32>,
    /// By the peer's transport address. The peer chooses addresses and ports, so that the map is ordered instead of
    /// hashed.
    by_address: BTreeMap<Transport, u32>,
    retired: RetiredTags,
}

impl Lookup {
    /// An empty lookup table; cookies are valid for `cookie_life`.
    pub(super) fn new(cookie_life: Duration) -> Self {
        Self {
            by_tag: FxHashMap::default(),
            by_address: BTreeMap::new(),
            retired: RetiredTags::new(cookie_life),
        }
    }

    pub(super) fn by_tag(&self, tag: u32) -> Option<u32> {
        self.by_tag.get(&tag).copied()
    }

    /// Whether an association that has ended had `tag`, and a cookie with it may still arrive.
    pub(super) fn is_retired(&self, tag: u32) -> bool {
        self.retired.contains(tag)
    }

    /// Whether an association that had `tag` ended by a SHUTDOWN COMPLETE of ours.
    pub(super) fn has_completed_shutdown(&self, now: Instant, tag: u32) -> bool {
        self.retired.has_completed_shutdown(now, tag)
    }

    /// Whether an association that has ended since `created` had the `peer_tag` of a cookie made at that time.
    pub(super) fn is_peer_retired(&self, peer_tag: u32, created: Instant) -> bool {
        self.retired.contains_peer(peer_tag, created)
    }

    /// The association whose peer has `port` at `address`, UDP port included.
    pub(super) fn by_address(&self, address: SocketAddr, port: u16) -> Option<u32> {
        self.by_address.get(&transport(address, port)).copied()
    }

    /// The associations whose peer is at `address`, UDP port included, with any SCTP port.
    pub(super) fn all_by_address(&self, address: SocketAddr) -> impl Iterator<Item = u32> {
        let ports = transport(address, 0)..=transport(address, u16::MAX);
        self.by_address.range(ports).map(|(_, &index)| index)
    }

    /// Enters the tag of a new association; [`Self::update`] enters its addresses.
    pub(super) fn insert(&mut self, index: u32, slot: &Slot) {
        self.by_tag.insert(slot.tag, index);
    }

    /// Called after the association `index` was called: updates its keys if its tags or addresses have
    /// changed.
    #[inline]
    pub(super) fn update(&mut self, now: Instant, index: u32, slot: &mut Slot) {
        if !slot.is_entered_as_it_is() {
            self.update_changed(now, index, slot);
        }
    }

    fn update_changed(&mut self, now: Instant, index: u32, slot: &mut Slot) {
        let port = slot.association.identity().remote_port;
        let is_closed = slot.association.state().is_closed();
        let tag = slot.association.identity().local_tag;
        let transports = slot.transports_to_enter();
        if tag != slot.tag {
            self.by_tag.remove(&slot.tag);
            self.retired.retire(now, slot.tag, Ending::Other);
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
            let is_complete = slot.association.state().completes_shutdown();
            let ending = if is_complete { Ending::ShutdownComplete } else { Ending::Other };
            self.retired.retire(now, tag, ending);
            self.retired.retire_peer(now, peer_tag);
            return self.forget_addresses(index, slot);
        }
        slot.transports = transports;
        for address in slot.association.confirmed_transports() {
            self.by_address.entry(transport(address, port)).or_insert(index);
        }
    }

    /// Removes the addresses of the association `index` from the tables, because its peer is about to list others,
    /// which [`Self::update`] enters.
    pub(super) fn forget_addresses(&mut self, index: u32, slot: &mut Slot) {
        slot.transports = None;
        let port = slot.association.identity().remote_port;
        for address in slot.association.all_transports() {
            remove(&mut self.by_address, transport(address, port), index);
        }
    }
}

/// Removes `key`, if its entry is the association `index`.
fn remove(by_address: &mut BTreeMap<Transport, u32>, key: Transport, index: u32) {
    if by_address.get(&key) == Some(&index) {
        by_address.remove(&key);
    }
}
