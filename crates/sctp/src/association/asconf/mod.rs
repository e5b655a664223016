//! Dynamic addresses (RFC 5061). `ours` has our own addresses, `theirs` the peer's; `addressing` has the effect of
//! either on the paths.
//!
//! Both sides must have offered it in the handshake, together with authentication ([`super::auth`]). Nothing
//! is sent from a deleted address of ours once the application has deleted it; from a new one only the ASCONF
//! is sent, until the peer has acknowledged it (RFC 5061 §5.3 F1, F4). Data outstanding on a removed path is
//! retransmitted over another at once.

mod addressing;
mod answering;
mod asking;
mod ours;
mod theirs;

use std::net::IpAddr;

use rexmit_core::Route;
use rexmit_recovery::PathState;

use super::context::Recovery;
use super::paths::Paths;
use super::replies::Replies;
use super::timers::Deadline;
use crate::config::AssociationConfig;
use crate::wire::{Packet, PacketWriter, kind};

use answering::Answering;
use asking::Asking;

/// The state of an association's addresses, created when one changes for the first time.
#[derive(Debug)]
pub(super) struct AddressChanges {
    /// Our addresses that the peer knows and that were not deleted. If empty, our only address is that of the driver or
    /// of the first path.
    own: Vec<IpAddr>,
    /// Our addresses that the peer has not acknowledged: only ASCONF is sent from them.
    adding: Vec<IpAddr>,
    /// Our deleted addresses whose deletion the peer may not know.
    leaving: Vec<IpAddr>,
    /// The primary address that the peer has requested, until it is confirmed.
    requested_primary: Option<IpAddr>,
    asking: Asking,
    answering: Answering,
    t4: Deadline,
}

/// The state that an address change modifies: paths, outstanding data and queued replies.
pub(super) struct Addressing<'a> {
    pub(super) config: &'a AssociationConfig,
    pub(super) paths: &'a mut Paths,
    pub(super) recovery: &'a mut Recovery,
    pub(super) replies: &'a mut Replies,
}

impl Addressing<'_> {
    fn primary_route(&self) -> Route {
        self.paths.get(self.recovery.paths().primary()).route
    }
}

/// An address change requested by the application.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OwnAddress<'a> {
    /// An address was added; unspecified: the address that the packet will come from.
    Add(IpAddr),
    /// The application asks the peer to send to this address.
    Delete(IpAddr),
    /// The peer is asked to send to this address.
    Prefer(IpAddr),
    /// This is the host's only address now; unspecified: the address that the packet will come from.
    MoveTo(IpAddr),
    /// The host has these addresses now.
    Follow(&'a [IpAddr]),
}

impl AddressChanges {
    /// The state before the first change; `own` are the addresses that the handshake listed.
    pub(super) fn new(
        own: Vec<IpAddr>,
        local_initial_tsn: u32,
        peer_initial_tsn: u32,
    ) -> Box<Self> {
        Box::new(Self {
            own,
            adding: Vec::new(),
            leaving: Vec::new(),
            requested_primary: None,
            asking: Asking::new(local_initial_tsn),
            answering: Answering::new(peer_initial_tsn),
            t4: Deadline::OFF,
        })
    }

    pub(super) const fn t4(&self) -> Deadline {
        self.t4
    }

    /// Whether only HEARTBEATs may be sent over `path` now: it begins at an address that the peer has not
    /// acknowledged, or ends at an unconfirmed one, and there is no other path.
    pub(super) fn is_held(&self, paths: &Paths, recovery: &Recovery, path: u8) -> bool {
        self.is_adding(paths.get(path).route.local.ip())
            || matches!(
                recovery.paths()[path].reach().state(),
                PathState::Unconfirmed | PathState::Removed
            )
    }

    /// Whether `route` ends at an address that was deleted while its packet was in transit: nothing is sent
    /// from there any more (RFC 5061 §5.3 F4).
    pub(super) fn has_left(&self, route: Route) -> bool {
        let local = route.local.ip();
        let mut ours = self.own.iter().chain(&self.adding);
        // Unless addresses were configured, every address at which packets arrive is ours.
        let is_chosen = ours.clone().any(|own| !own.is_unspecified());
        self.leaving.contains(&local) || (is_chosen && !ours.any(|own| *own == local))
    }

    /// Whether to ignore an ABORT that arrived over `route`: at an address that was deleted, or that is only
    /// being added, from which nothing was sent yet (RFC 5061 §5.3.1).
    pub(super) fn is_abort_ignored(&self, route: Route) -> bool {
        let is_early = !self.own.is_empty() && self.is_adding(route.local.ip());
        self.has_left(route) || is_early
    }

    fn is_adding(&self, local: IpAddr) -> bool {
        !self.adding.is_empty() && self.adding.contains(&local)
    }

    /// Whether an ASCONF or an ASCONF-ACK is to be sent, or an answer is awaited.
    pub(super) const fn is_busy(&self) -> bool {
        self.asking.is_busy() || self.answering.is_owed()
    }

    pub(super) const fn owes_answers(&self) -> bool {
        self.answering.is_owed()
    }

    /// Writes the answers to be sent. Returns the route that the ASCONF came over (E6).
    pub(super) fn write_answers(&mut self, writer: &mut PacketWriter<'_>) -> Option<Route> {
        self.answering.write(writer)
    }

    /// Called before a received packet is processed.
    pub(super) const fn begin_packet(&mut self) {
        self.answering.begin_packet();
    }
}

/// Whether `packet`, with the right tag and from an address that is not known, may be from a peer that has
/// moved: it begins with an AUTH and an ASCONF (RFC 5061 §5.2 D2, D5).
///
/// The tag identifies the association, and the MAC proves it. The Address Parameter is not used: a peer that
/// moves again before its last move is acknowledged cannot know which of its addresses are still valid.
pub(super) fn may_be_from_elsewhere(packet: &Packet<'_>) -> bool {
    begins_with(packet, [kind::AUTH, kind::ASCONF])
}

/// Whether the first chunks of a packet are of these types.
pub(crate) fn begins_with<const N: usize>(packet: &Packet<'_>, kinds: [u8; N]) -> bool {
    packet.chunks().map_while(Result::ok).take(N).map(|raw| raw.kind).eq(kinds)
}
