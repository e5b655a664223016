//! Addresses that come and go while an association lasts (RFC 5061). `ask` is about our own, `answer`
//! about the peer's; `paths` is what either does to the ways between them.
//!
//! Both sides must have offered it in the setup, together with the authentication that it needs
//! ([`super::auth`]). An address of ours that is given up is sent from no more from the moment on at which
//! the application says so; a new one is not sent from, but for the ASCONF itself, until the peer has
//! acknowledged it (RFC 5061 §5.3 F1, F4). What was under way over a path that ends leaves over another at
//! once.

mod answer;
mod ask;
mod paths;

use std::net::IpAddr;

use rexmit_core::Route;
use rexmit_recovery::PathState;

use super::Association;
use crate::wire::{Packet, kind};

use answer::Answering;
use ask::Asking;

/// Where the addresses of an association stand.
#[derive(Debug)]
pub(super) struct AddressChanges {
    /// Ours that the peer knows, and that we keep. None: the one that the driver or the first path has.
    own: Vec<IpAddr>,
    /// Ours that the peer has not acknowledged: nothing but ASCONF leaves from them.
    adding: Vec<IpAddr>,
    /// Ours that we have given up and the peer may not know it.
    leaving: Vec<IpAddr>,
    /// The peer's that are no more, for the endpoint to forget.
    departed: Vec<IpAddr>,
    /// Where the peer wants data to go, once that is confirmed.
    wished_primary: Option<IpAddr>,
    asking: Asking,
    answering: Answering,
}

impl AddressChanges {
    /// Before the first change: `own` are our addresses that the peer was told.
    fn new(own: Vec<IpAddr>, (local_initial_tsn, peer_initial_tsn): (u32, u32)) -> Box<Self> {
        Box::new(Self {
            own,
            adding: Vec::new(),
            leaving: Vec::new(),
            departed: Vec::new(),
            wished_primary: None,
            asking: Asking::new(local_initial_tsn),
            answering: Answering::new(peer_initial_tsn),
        })
    }
}

impl Association {
    /// What is kept once addresses change, if they may.
    fn address_changes(&mut self) -> Option<&mut AddressChanges> {
        if !self.supports_asconf {
            return None;
        }
        if self.asconf.is_none() {
            let initial_tsns = (self.identity.local_initial_tsn, self.peer_initial_tsn);
            self.asconf = Some(AddressChanges::new(self.paths.own_locals(), initial_tsns));
        }
        self.asconf.as_deref_mut()
    }

    /// Whether nothing but HEARTBEATs, where these may, can leave over `path` now: it begins at an address
    /// that the peer has not acknowledged, or ends at one that is not confirmed, and there is no other.
    pub(super) fn is_held(&self, path: u8) -> bool {
        let Some(changes) = &self.asconf else { return false };
        changes.is_adding(self.paths.get(path).route.local.ip())
            || matches!(
                self.out.recovery.reach(path).state(),
                PathState::Unconfirmed | PathState::Removed
            )
    }

    /// Whether not even HEARTBEATs may leave over `path` now.
    pub(super) fn is_silent(&self, path: u8) -> bool {
        let local = self.paths.get(path).route.local.ip();
        self.asconf.as_ref().is_some_and(|changes| changes.is_adding(local))
    }

    /// Whether a packet that came over `route` was on its way when the address at its end was given up:
    /// nothing leaves from there any more (RFC 5061 §5.3 F4).
    pub(super) fn has_left(&self, route: Route) -> bool {
        let local = route.local.ip();
        self.asconf.as_ref().is_some_and(|changes| {
            let mut ours = changes.own.iter().chain(&changes.adding);
            // Without addresses of our own choice, wherever packets arrive is ours.
            let is_chosen = ours.clone().any(|own| !own.is_unspecified());
            changes.leaving.contains(&local) || (is_chosen && !ours.any(|own| *own == local))
        })
    }

    /// Whether an ABORT over `route` is not about the association as it is: it came to an address that was
    /// given up, or that is only being added, from which nothing leaves yet (RFC 5061 §5.3.1).
    pub(super) fn is_abort_ignored(&self, route: Route) -> bool {
        let is_early = |changes: &AddressChanges| {
            !changes.own.is_empty() && changes.is_adding(route.local.ip())
        };
        self.has_left(route) || self.asconf.as_deref().is_some_and(is_early)
    }

    /// Whether `packet`, with our tag and from an address that is not known, may be from the peer: it
    /// begins with an ASCONF, under an AUTH (RFC 5061 §5.2 D2, D5).
    ///
    /// The tag tells which association it is for, and the MAC whether it is. The Address Parameter, for
    /// those that look by addresses, is not asked: a peer that moves on before its last move is
    /// acknowledged cannot know which of its addresses still stand.
    pub(crate) fn may_be_from_elsewhere(&self, packet: &Packet<'_>) -> bool {
        self.supports_asconf && begins_with(packet, [kind::AUTH, kind::ASCONF])
    }

    pub(super) fn has_peer_address(&self, address: IpAddr) -> bool {
        self.peer_addresses().any(|known| known == address)
    }

    /// The peer's addresses that are no more and that the endpoint has not been told of.
    pub(crate) fn take_departed(&mut self) -> Vec<IpAddr> {
        self.asconf.as_mut().map_or_else(Vec::new, |changes| std::mem::take(&mut changes.departed))
    }

    pub(crate) fn has_departed(&self) -> bool {
        self.asconf.as_ref().is_some_and(|changes| !changes.departed.is_empty())
    }
}

impl AddressChanges {
    fn is_adding(&self, local: IpAddr) -> bool {
        !self.adding.is_empty() && self.adding.contains(&local)
    }

    /// Whether an ASCONF or an ASCONF-ACK is to leave, or an answer is awaited.
    pub(super) const fn is_busy(&self) -> bool {
        self.asking.is_busy() || self.answering.is_owed()
    }

    /// A packet begins.
    pub(super) const fn begin_packet(&mut self) {
        self.answering.begin_packet();
    }
}

/// Whether the first chunks of a packet are of these types.
pub(crate) fn begins_with<const N: usize>(packet: &Packet<'_>, kinds: [u8; N]) -> bool {
    packet.chunks().map_while(Result::ok).take(N).map(|raw| raw.kind).eq(kinds)
}
