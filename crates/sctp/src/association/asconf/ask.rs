//! Our addresses: what the application changes, the ASCONF that tells it, and the peer's answer
//! (RFC 5061 §5.1, §5.3).

use std::net::IpAddr;

use rexmit_core::Route;
use rexmit_core::serial::Serial;
use rexmit_recovery::PathState;

use super::super::addresses::{is_in_scope, unspecified_like};
use super::super::state::AbortCause;
use super::super::{Association, Context, State, Timer};
use crate::config::MAX_ADDRESSES;
use crate::error::AddressError;
use crate::event::{AddressChange, Event};
use crate::wire::{AsconfAck, AsconfAnswer, AsconfChange, AsconfRequest, Cause, kind};

/// Changes that wait for the answer to an ASCONF: as many fit the smallest packet.
const MAX_WAITING: usize = 12;

/// What we have asked, and what is still to be.
#[derive(Debug)]
pub(super) struct Asking {
    /// The serial number of our next ASCONF.
    next_serial: u32,
    next_correlation: u32,
    waiting: Vec<AddressChange>,
    outstanding: Option<Outstanding>,
    /// The peer has said that it does not know ASCONF after all (A9, F3a).
    is_refused: bool,
}

/// The ASCONF that the peer has not answered; it is repeated as it is.
#[derive(Debug)]
struct Outstanding {
    serial: u32,
    /// Its Address Parameter.
    address: IpAddr,
    changes: Vec<(u32, AddressChange)>,
    is_due: bool,
    /// That over which it left last.
    path: u8,
}

impl Asking {
    pub(super) const fn new(local_initial_tsn: u32) -> Self {
        Self {
            next_serial: local_initial_tsn,
            next_correlation: 1,
            waiting: Vec::new(),
            outstanding: None,
            is_refused: false,
        }
    }

    pub(super) const fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    /// Whether the peer is being told of `address`, and will know it for certain. After the deletion of
    /// all other addresses it knows the one from which the request came, and that may be any of them: the
    /// request is repeated from where this host is then.
    fn is_adding(&self, address: IpAddr) -> bool {
        let is_it = |(_, change): &(u32, AddressChange)| *change == AddressChange::Added(address);
        let deletes_others = |(_, change): &(u32, AddressChange)| matches!(change, AddressChange::Deleted(others) if others.is_unspecified());
        let outstanding = self.outstanding.as_ref();
        outstanding.is_some_and(|it| {
            it.changes.iter().any(is_it) && !it.changes.iter().any(deletes_others)
        })
    }

    /// Makes an ASCONF of what waits, if none is under way.
    fn begin(&mut self, address: IpAddr) {
        if self.outstanding.is_some() || self.waiting.is_empty() {
            return;
        }
        let first = self.next_correlation;
        let changes: Vec<_> = (first..).zip(self.waiting.drain(..)).collect();
        self.next_correlation = first.wrapping_add(changes.len() as u32);
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        self.outstanding = Some(Outstanding { serial, address, changes, is_due: true, path: 0 });
    }
}

impl Association {
    /// The application changes addresses: what it needs for that.
    fn may_ask(&mut self, changes: usize) -> Result<&mut super::AddressChanges, AddressError> {
        let is_established = matches!(self.state, State::Established);
        if !is_established {
            return Err(AddressError::NotEstablished);
        }
        let known = self.address_changes().filter(|known| !known.asking.is_refused);
        let known = known.ok_or(AddressError::NotSupported)?;
        if known.asking.waiting.len() + changes > MAX_WAITING {
            return Err(AddressError::TooManyChanges { limit: MAX_WAITING });
        }
        Ok(known)
    }

    /// This host has `address`, too; unspecified: the one that the packet will come from.
    pub(crate) fn add_address(&mut self, address: IpAddr) -> Result<(), AddressError> {
        let primary = self.primary_route();
        let changes = self.may_ask(1)?;
        if !address.is_unspecified() && !is_in_scope(address, primary.remote.ip()) {
            return Err(AddressError::OutOfScope);
        }
        let local = primary.local.ip();
        if changes.own.is_empty() && !local.is_unspecified() && !changes.adding.contains(&local) {
            changes.own.push(local);
        }
        if changes.own.contains(&address) || changes.adding.contains(&address) {
            return Err(AddressError::AlreadyThere);
        } else if changes.own.len() + changes.adding.len() >= MAX_ADDRESSES {
            return Err(AddressError::TooManyAddresses { limit: MAX_ADDRESSES });
        }
        changes.adding.push(address);
        changes.asking.waiting.push(AddressChange::Added(address));
        Ok(())
    }

    /// This host does not have `address` any more: nothing leaves from it from now on.
    pub(crate) fn delete_address(
        &mut self,
        cx: &mut Context<'_>,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let changes = self.may_ask(1)?;
        let Some(index) = changes.own.iter().position(|&own| own == address) else {
            return Err(AddressError::NoSuchAddress);
        };
        if changes.own.len() + changes.adding.len() == 1 {
            return Err(AddressError::LastAddress);
        }
        changes.own.remove(index);
        changes.leaving.push(address);
        changes.asking.waiting.push(AddressChange::Deleted(address));
        self.out.begin_opportunity();
        self.owed.forget_replies_over(|route| route.local.ip() == address);
        self.leave_locals(cx, |local| local == address);
        Ok(())
    }

    /// The peer is asked to send to `address` of ours.
    pub(crate) fn set_peer_primary(&mut self, address: IpAddr) -> Result<(), AddressError> {
        let local = self.primary_route().local.ip();
        let changes = self.may_ask(1)?;
        let is_ours = changes.own.contains(&address)
            || changes.adding.contains(&address)
            || (changes.own.is_empty() && address == local);
        if !is_ours {
            return Err(AddressError::NoSuchAddress);
        }
        changes.asking.waiting.push(AddressChange::Preferred(address));
        Ok(())
    }

    /// This host is at `address` now, and nowhere else; unspecified: wherever the packet will come from.
    /// Changes that wait are overtaken.
    pub(crate) fn move_to(
        &mut self,
        cx: &mut Context<'_>,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let remote = self.primary_route().remote.ip();
        let changes = self.may_ask(0)?;
        if !address.is_unspecified() && !is_in_scope(address, remote) {
            return Err(AddressError::OutOfScope);
        }
        // What waits is overtaken: the peer knows an address whose deletion it has not been told of.
        let overtaken = std::mem::take(&mut changes.asking.waiting);
        let is_known = changes.own.contains(&address)
            || overtaken.contains(&AddressChange::Deleted(address)) && !address.is_unspecified();
        let given_up = changes.own.drain(..).chain(changes.adding.drain(..));
        for other in given_up.filter(|other| *other != address) {
            if !changes.leaving.contains(&other) {
                changes.leaving.push(other);
            }
        }
        changes.leaving.retain(|leaving| *leaving != address);
        if is_known {
            changes.own.push(address);
        } else {
            changes.adding.push(address);
            // An unspecified address says something new each time.
            if address.is_unspecified() || !changes.asking.is_adding(address) {
                changes.asking.waiting.push(AddressChange::Added(address));
            }
        }
        changes.asking.waiting.push(AddressChange::Preferred(address));
        let others = unspecified_like(if address.is_unspecified() { remote } else { address });
        changes.asking.waiting.push(AddressChange::Deleted(others));
        self.out.begin_opportunity();
        self.owed.forget_replies_over(|route| route.local.ip() != address);
        self.leave_locals(cx, |local| local != address || local.is_unspecified());
        Ok(())
    }

    /// Whether an ASCONF is to leave now.
    fn owes_asconf(&self) -> bool {
        let may_change = self.state.may_change_addresses();
        self.asconf.as_ref().filter(|_| may_change).is_some_and(|changes| {
            let asking = &changes.asking;
            asking.outstanding.as_ref().map_or(!asking.waiting.is_empty(), |it| it.is_due)
        })
    }

    /// The way of an ASCONF: from an address that the peer knows, if there is one left (F1, F6).
    fn asconf_path(&self) -> u8 {
        let is_known = |path: &u8| {
            !self.is_silent(*path) && self.out.recovery.reach(*path).state() == PathState::Active
        };
        let control = self.control_path;
        std::iter::once(control).chain(0..self.paths.len()).find(is_known).unwrap_or(control)
    }

    /// Writes an ASCONF; one is under way at a time (C1).
    pub(in super::super) fn write_asconf(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        if !self.owes_asconf() {
            return None;
        }
        let path = self.asconf_path();
        let route = self.route_of(path);
        let changes = self.asconf.as_mut()?;
        let known = changes.own.first().or(changes.leaving.first()).copied();
        changes.asking.begin(known.unwrap_or_else(|| unspecified_like(route.remote.ip())));
        let outstanding = changes.asking.outstanding.as_mut()?;
        (outstanding.is_due, outstanding.path) = (false, path);
        let mut writer = self.writer(packet);
        self.put_auth(&mut writer);
        let outstanding = self.asconf.as_ref()?.asking.outstanding.as_ref()?;
        let requests = outstanding.changes.iter().map(|&(correlation, change)| AsconfRequest {
            correlation,
            change: match change {
                AddressChange::Added(address) => AsconfChange::Add(address),
                AddressChange::Deleted(address) => AsconfChange::Delete(address),
                AddressChange::Preferred(address) => AsconfChange::SetPrimary(address),
            },
            bytes: &[],
        });
        writer.asconf((outstanding.serial, outstanding.address), requests);
        self.finish_packet(writer);
        self.timers.arm(Timer::T4, cx.now + self.out.recovery.timer(path).rto());
        Some(route)
    }

    /// T-4 expired (RFC 5061 §5.1 B1–B5).
    pub(in super::super) fn on_t4(&mut self, cx: &mut Context<'_>) {
        let changes = self.asconf.as_mut();
        let Some(outstanding) = changes.and_then(|it| it.asking.outstanding.as_mut()) else {
            return;
        };
        outstanding.is_due = true;
        let path = outstanding.path;
        self.out.recovery.back_off(path);
        self.count_path_error(cx, path);
        if !self.count_error(cx) {
            self.turn_control_path();
        }
    }

    /// ASCONF-ACK, which was found authentic (RFC 5061 §5.1 A5–A8).
    pub(in super::super) fn on_asconf_ack(
        &mut self,
        cx: &mut Context<'_>,
        route: Route,
        ack: &AsconfAck<'_>,
    ) {
        let may_change = self.state.may_change_addresses();
        let Some(changes) = self.asconf.as_mut().filter(|_| may_change) else { return };
        let asking = &mut changes.asking;
        let Some(answered) = asking.outstanding.take_if(|it| it.serial == ack.serial) else {
            // F0, §4.3.4: it answers what was never asked. An old one is harmless.
            if !Serial(ack.serial).is_before(Serial(asking.next_serial)) {
                self.abort(cx, AbortCause::IllegalAsconfAck);
            }
            return;
        };
        self.timers.stop(Timer::T4);
        self.clear_errors(cx, answered.path, true);
        let outcomes = outcomes(&answered.changes, ack);
        self.out.begin_opportunity();
        for (&(_, change), &refused) in answered.changes.iter().zip(&outcomes) {
            self.on_change_answered(cx, change, refused);
        }
        self.settle_addresses(cx, route);
    }

    fn on_change_answered(
        &mut self,
        cx: &mut Context<'_>,
        change: AddressChange,
        refused: Option<u16>,
    ) {
        let Some(changes) = &mut self.asconf else { return };
        match change {
            AddressChange::Added(address) => {
                // It may have been given up since; and if it is to be told again, it counts only then.
                let is_told_again = changes.asking.waiting.contains(&change);
                let is_wanted = changes.adding.contains(&address) && !is_told_again;
                if !is_told_again {
                    changes.adding.retain(|adding| *adding != address);
                }
                if is_wanted && refused.is_none() && !address.is_unspecified() {
                    changes.own.push(address);
                }
            }
            AddressChange::Deleted(address) if refused.is_none() => {
                let is_it = |leaving: &IpAddr| address.is_unspecified() || *leaving == address;
                changes.leaving.retain(|leaving| !is_it(leaving));
            }
            AddressChange::Deleted(_) | AddressChange::Preferred(_) => {}
        }
        // F3a
        changes.asking.is_refused |= refused == Some(Cause::UnrecognizedParameters(&[]).code());
        cx.event(Event::AddressChanged { change, refused });
    }

    /// What the peer has acknowledged is used from now on.
    fn settle_addresses(&mut self, cx: &mut Context<'_>, route: Route) {
        let Some(changes) = &mut self.asconf else { return };
        if changes.own.is_empty() && changes.adding.is_empty() {
            // Refused, and given up is all there was: then it is kept (F10).
            changes.own.append(&mut changes.leaving);
        }
        let (own, adding) = (changes.own.clone(), changes.adding.clone());
        if !own.is_empty() {
            let is_known = |local| own.contains(&local) || adding.contains(&local);
            self.leave_locals(cx, |local| !local.is_unspecified() && !is_known(local));
        }
        // Until then not even a packet to an old address says where this host is.
        if adding.is_empty() {
            self.paths.settle_locals(&own);
        }
        self.begin_paths_from_own(cx);
        // The answer has come this way, so it works.
        if let Some(path) = self.paths.on_packet(route)
            && self.paths.get(path).route == route
            && self.out.recovery.reach(path).state() == PathState::Unconfirmed
        {
            self.on_path_probed(cx, path);
        }
        self.watch_paths(cx);
    }

    /// The peer does not know ASCONF after all (A9).
    pub(in super::super) fn on_unrecognized_chunk(&mut self, cx: &mut Context<'_>, chunk: &[u8]) {
        let Some(changes) = &mut self.asconf else { return };
        if chunk.first() != Some(&kind::ASCONF) {
            return;
        }
        let asking = &mut changes.asking;
        asking.is_refused = true;
        let outstanding = asking.outstanding.take();
        let failed = outstanding.into_iter().flat_map(|it| it.changes).map(|(_, change)| change);
        let failed: Vec<_> = failed.chain(asking.waiting.drain(..)).collect();
        self.timers.stop(Timer::T4);
        let code = Cause::UnrecognizedChunkType(&[]).code();
        for change in failed {
            self.on_change_answered(cx, change, Some(code));
        }
        let route = self.primary_route();
        self.settle_addresses(cx, route);
    }
}

/// What became of each of `changes`: the cause for which it was refused, if it was. What stands behind
/// the first that was refused and is not told to be done, was refused, too (A7).
fn outcomes(changes: &[(u32, AddressChange)], ack: &AsconfAck<'_>) -> Vec<Option<u16>> {
    let mut last_cause = None;
    let outcome = |&(correlation, _): &(u32, AddressChange)| {
        let answer = ack.answers().flatten().find_map(|answer| match answer {
            AsconfAnswer::Refused { correlation: of, causes } if of == correlation => {
                Some(causes.flatten().next().map_or(Some(0), |cause| Some(cause.code())))
            }
            AsconfAnswer::Done { correlation: of } if of == correlation => Some(None),
            _ => None,
        });
        match answer {
            Some(outcome) => {
                last_cause = outcome.or(last_cause);
                outcome
            }
            None => last_cause,
        }
    };
    changes.iter().map(outcome).collect()
}
