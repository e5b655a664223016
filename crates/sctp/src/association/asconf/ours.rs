//! Our addresses: changes by the application, the ASCONF that reports them, and the peer's answer (RFC 5061
//! §5.1, §5.3).

use std::net::IpAddr;

use rexmit_core::serial::Serial;
use rexmit_core::{Instant, Route};
use rexmit_recovery::PathState;

use super::asking::{MAX_WAITING, outcomes};
use super::{AddressChanges, Addressing, OwnAddress};
use crate::association::addresses::{is_in_scope, unspecified_like};
use crate::association::context::{Context, Recovery};
use crate::association::paths::Paths;
use crate::association::timers::Deadline;
use crate::config::MAX_ADDRESSES;
use crate::error::AddressError;
use crate::event::{AddressChange, Event};
use crate::wire::{AsconfAck, Cause, PacketWriter, kind};

/// An ASCONF-ACK without a matching ASCONF (RFC 5061 §4.3.4, F0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::association) struct NeverAsked;

impl AddressChanges {
    /// Changes addresses of this host, as the application requests: queues the ASCONF. Returns whether no further call
    /// is needed.
    pub(in crate::association) fn change_own(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        change: OwnAddress<'_>,
    ) -> Result<bool, AddressError> {
        // A move replaces waiting changes.
        let overtakes = matches!(change, OwnAddress::MoveTo(_));
        if self.asking.is_refused {
            return Err(AddressError::NotSupported);
        } else if self.asking.waiting.len() + usize::from(!overtakes) > MAX_WAITING {
            return Err(AddressError::TooManyChanges { limit: MAX_WAITING });
        }
        match change {
            OwnAddress::Add(address) => self.add(addressing.primary_route(), address),
            OwnAddress::Delete(address) => self.delete(cx, addressing, address),
            OwnAddress::Prefer(address) => self.prefer(addressing.primary_route(), address),
            OwnAddress::MoveTo(address) => self.move_to(cx, addressing, address),
            OwnAddress::Follow(wanted) => return self.follow(cx, addressing, wanted),
        }?;
        Ok(true)
    }

    /// Requests the changes that lead to the addresses `wanted`. Addresses that the peer cannot use are left out; without
    /// any other nothing changes. Returns whether no further call is needed.
    ///
    /// Moves if none of the present addresses stays: its ASCONF is sent from the new address.
    fn follow(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        wanted: &[IpAddr],
    ) -> Result<bool, AddressError> {
        let Route { local, remote } = addressing.primary_route();
        let in_scope = |address: &&IpAddr| is_in_scope(**address, remote.ip());
        let wanted: Vec<IpAddr> = wanted.iter().filter(in_scope).copied().collect();
        let Some(&first) = wanted.first() else { return Ok(true) };
        if self.own.is_empty() && self.adding.is_empty() && !local.ip().is_unspecified() {
            self.own.push(local.ip());
        }
        let is_kept = |address: &IpAddr| wanted.contains(address);
        if !self.own.iter().chain(&self.adding).any(is_kept) {
            self.change_own(cx, addressing, OwnAddress::MoveTo(first))?;
        }
        for address in self.own.clone().into_iter().filter(|own| !is_kept(own)) {
            self.change_own(cx, addressing, OwnAddress::Delete(address))?;
        }
        for &address in &wanted {
            if !self.own.contains(&address) && !self.adding.contains(&address) {
                self.change_own(cx, addressing, OwnAddress::Add(address))?;
            }
        }
        // An address that the host has lost before the peer acknowledged it can be deleted only after the
        // acknowledgement.
        Ok(self.adding.iter().all(is_kept))
    }

    fn add(&mut self, primary: Route, address: IpAddr) -> Result<(), AddressError> {
        if !address.is_unspecified() && !is_in_scope(address, primary.remote.ip()) {
            return Err(AddressError::OutOfScope);
        }
        let local = primary.local.ip();
        if self.own.is_empty() && !local.is_unspecified() && !self.adding.contains(&local) {
            self.own.push(local);
        }
        if self.own.contains(&address) || self.adding.contains(&address) {
            return Err(AddressError::AlreadyThere);
        } else if self.own.len() + self.adding.len() >= MAX_ADDRESSES {
            return Err(AddressError::TooManyAddresses { limit: MAX_ADDRESSES });
        }
        self.adding.push(address);
        self.asking.add(AddressChange::Added(address));
        Ok(())
    }

    fn delete(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let Some(index) = self.own.iter().position(|&own| own == address) else {
            return Err(AddressError::NoSuchAddress);
        };
        if self.own.len() + self.adding.len() == 1 {
            return Err(AddressError::LastAddress);
        }
        self.own.remove(index);
        self.leaving.push(address);
        self.asking.add(AddressChange::Deleted(address));
        addressing.recovery.begin_opportunity();
        addressing.replies.forget_over(|route| route.local.ip() == address);
        self.leave_locals(cx, addressing, |local| local == address);
        Ok(())
    }

    fn prefer(&mut self, primary: Route, address: IpAddr) -> Result<(), AddressError> {
        let local = primary.local.ip();
        let is_ours = self.own.contains(&address)
            || self.adding.contains(&address)
            || (self.own.is_empty() && address == local);
        if !is_ours {
            return Err(AddressError::NoSuchAddress);
        }
        self.asking.add(AddressChange::Preferred(address));
        Ok(())
    }

    /// Replaces all our addresses by `address`. Waiting changes are dropped.
    fn move_to(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let remote = addressing.primary_route().remote.ip();
        if !address.is_unspecified() && !is_in_scope(address, remote) {
            return Err(AddressError::OutOfScope);
        }
        // Waiting changes are dropped; the peer still knows an address whose deletion was among them.
        let overtaken = std::mem::take(&mut self.asking.waiting);
        let is_known = self.own.contains(&address)
            || overtaken.contains(&AddressChange::Deleted(address)) && !address.is_unspecified();
        let given_up = self.own.drain(..).chain(self.adding.drain(..));
        for other in given_up.filter(|other| *other != address) {
            if !self.leaving.contains(&other) {
                self.leaving.push(other);
            }
        }
        self.leaving.retain(|leaving| *leaving != address);
        if is_known {
            self.own.push(address);
        } else {
            self.adding.push(address);
            // An unspecified address may stand for another address each time.
            if address.is_unspecified() || !self.asking.is_adding(address) {
                self.asking.add(AddressChange::Added(address));
            }
        }
        self.asking.add(AddressChange::Preferred(address));
        let others = unspecified_like(if address.is_unspecified() { remote } else { address });
        self.asking.add(AddressChange::Deleted(others));
        addressing.recovery.begin_opportunity();
        addressing.replies.forget_over(|route| route.local.ip() != address);
        self.leave_locals(cx, addressing, |local| local != address || local.is_unspecified());
        Ok(())
    }

    /// The path for a pending ASCONF, `None` if none is pending. Prefers a source address that the peer
    /// knows (F1, F6).
    pub(in crate::association) fn path_to_ask(
        &self,
        paths: &Paths,
        recovery: &Recovery,
    ) -> Option<u8> {
        if !self.asking.is_owed() {
            return None;
        }
        let is_known = |path: &u8| {
            !self.is_silent(paths, *path)
                && recovery.paths()[*path].reach().state() == PathState::Active
        };
        let control = paths.control();
        let known = std::iter::once(control).chain(0..paths.len()).find(is_known);
        Some(known.unwrap_or(control))
    }

    /// Writes the pending ASCONF for `path`, which leads to `remote`, and arms T-4 for `t4`.
    pub(in crate::association) fn write_asconf(
        &mut self,
        t4: Instant,
        path: u8,
        remote: IpAddr,
        writer: &mut PacketWriter<'_>,
    ) {
        let known = self.own.first().or(self.leaving.first()).copied();
        let address = known.unwrap_or_else(|| unspecified_like(remote));
        self.asking.write(path, address, writer);
        self.t4 = Deadline::at(t4);
    }

    /// Called when T-4 expired (RFC 5061 §5.1 B1–B5): schedules a retransmission of the ASCONF. Returns the
    /// path of the last transmission.
    pub(in crate::association) fn on_t4(&mut self) -> Option<u8> {
        self.t4 = Deadline::OFF;
        self.asking.repeat()
    }

    /// Processes an authenticated ASCONF-ACK (RFC 5061 §5.1 A5–A8).
    pub(in crate::association) fn on_asconf_ack(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        route: Route,
        ack: &AsconfAck<'_>,
    ) -> Result<(), NeverAsked> {
        let Some(answered) = self.asking.outstanding.take_if(|it| it.serial == ack.serial) else {
            // F0, §4.3.4. An old one is harmless.
            let is_old = Serial(ack.serial).is_before(Serial(self.asking.next_serial));
            return if is_old { Ok(()) } else { Err(NeverAsked) };
        };
        self.t4 = Deadline::OFF;
        addressing.paths.on_answered(cx, addressing.recovery, answered.path, true);
        let outcomes = outcomes(&answered.changes, ack);
        addressing.recovery.begin_opportunity();
        for (&(_, change), &refused) in answered.changes.iter().zip(&outcomes) {
            self.on_change_answered(cx, change, refused);
        }
        self.settle(cx, addressing, route);
        Ok(())
    }

    fn on_change_answered(
        &mut self,
        cx: &mut Context<'_>,
        change: AddressChange,
        refused: Option<u16>,
    ) {
        match change {
            AddressChange::Added(address) => {
                // The address may have been deleted since. If the same change waits again, only its answer counts.
                let is_told_again = self.asking.waiting.contains(&change);
                let is_wanted = self.adding.contains(&address) && !is_told_again;
                if !is_told_again {
                    self.adding.retain(|adding| *adding != address);
                }
                if is_wanted && refused.is_none() && !address.is_unspecified() {
                    self.own.push(address);
                }
            }
            AddressChange::Deleted(address) if refused.is_none() => {
                let is_it = |leaving: &IpAddr| address.is_unspecified() || *leaving == address;
                self.leaving.retain(|leaving| !is_it(leaving));
            }
            AddressChange::Deleted(_) | AddressChange::Preferred(_) => {}
        }
        // F3a
        self.asking.is_refused |= refused == Some(Cause::UnrecognizedParameters(&[]).code());
        cx.event(Event::AddressChanged { change, refused });
    }

    /// Applies the address changes that the peer has acknowledged.
    fn settle(&mut self, cx: &mut Context<'_>, addressing: &mut Addressing<'_>, route: Route) {
        if self.own.is_empty() && self.adding.is_empty() {
            // The change was refused, and all other addresses were to be deleted: they are kept (F10).
            self.own.append(&mut self.leaving);
        }
        if !self.own.is_empty() {
            let is_known = |local| self.own.contains(&local) || self.adding.contains(&local);
            self.leave_locals(cx, addressing, |local| !local.is_unspecified() && !is_known(local));
        }
        // Until all additions are answered, the arrival of a packet at an old address must not change the local address
        // of a path.
        if self.adding.is_empty() {
            addressing.paths.settle_locals(&self.own);
        }
        self.begin_paths_from_own(cx, addressing);
        // The answer has come this way, so it works.
        if let Some(path) = addressing.paths.on_packet(route)
            && addressing.paths.get(path).route == route
            && addressing.recovery.paths()[path].reach().state() == PathState::Unconfirmed
        {
            addressing.paths.on_probed(cx, addressing.recovery, path);
            self.grant_requested_primary(cx, addressing);
        }
        self.watch_paths(cx, addressing);
    }

    /// Called when the peer reports an unknown chunk: if it is ASCONF, our changes have failed (A9).
    pub(in crate::association) fn on_unrecognized_chunk(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        chunk: &[u8],
    ) {
        if chunk.first() != Some(&kind::ASCONF) {
            return;
        }
        let failed = self.asking.refuse_all();
        self.t4 = Deadline::OFF;
        let code = Cause::UnrecognizedChunkType(&[]).code();
        for change in failed {
            self.on_change_answered(cx, change, Some(code));
        }
        let route = addressing.primary_route();
        self.settle(cx, addressing, route);
    }
}
