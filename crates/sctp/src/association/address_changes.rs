//! Changes of addresses (RFC 5061) of an association: [`AddressChanges`] with the state that it modifies, T4, and what a
//! change in progress keeps from being sent.

use rexmit_recovery::T3Event;

use super::asconf::{self, AddressChanges, Addressing, OwnAddress};
use super::{Association, Context, State};
use crate::error::AddressError;
use crate::wire::Packet;

impl Association {
    /// Prepares the association for changes of addresses.
    pub(super) fn begin_changes(&mut self) {
        let (paths, ours) = (&self.paths, self.identity.local_initial_tsn);
        let peers = self.peer.initial_tsn();
        self.asconf.get_or_insert_with(|| AddressChanges::new(paths.own_locals(), ours, peers));
    }

    /// The state of address changes and the state that they modify; `None` before the first change.
    pub(super) fn changes(&mut self) -> Option<(&mut AddressChanges, Addressing<'_>)> {
        let addressing = Addressing {
            config: &self.config,
            paths: &mut self.paths,
            recovery: &mut self.out.recovery,
            replies: &mut self.replies,
        };
        Some((self.asconf.as_deref_mut()?, addressing))
    }

    /// Changes addresses of this host, as the application requests. Returns whether no further call is needed.
    pub(crate) fn change_own_address(
        &mut self,
        cx: &mut Context<'_>,
        change: OwnAddress<'_>,
    ) -> Result<bool, AddressError> {
        if !matches!(self.state, State::Established) {
            return Err(AddressError::NotEstablished);
        } else if !self.peer.changes_addresses() {
            return Err(AddressError::NotSupported);
        }
        self.begin_changes();
        let (changes, mut addressing) = self.changes().ok_or(AddressError::NotSupported)?;
        changes.change_own(cx, &mut addressing, change)
    }

    pub(super) fn on_t4(&mut self, cx: &mut Context<'_>) {
        let Some(path) = self.asconf.as_mut().and_then(|changes| changes.on_t4()) else { return };
        self.out.recovery.on_t3_event(cx.now, path, T3Event::Unanswered);
        if !self.on_unanswered(cx, path) {
            self.paths.turn_control(&self.out.recovery);
        }
    }

    /// Whether only HEARTBEATs may be sent over `path` now.
    pub(super) fn is_held(&self, path: u8) -> bool {
        let changes = self.asconf.as_ref();
        changes.is_some_and(|changes| changes.is_held(&self.paths, &self.out.recovery, path))
    }

    /// Whether `packet`, with our tag and from an unknown address, may be from the peer.
    pub(crate) fn may_be_from_elsewhere(&self, packet: &Packet<'_>) -> bool {
        self.peer.changes_addresses() && asconf::may_be_from_elsewhere(packet)
    }
}
