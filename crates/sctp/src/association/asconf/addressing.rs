//! The effect of added and deleted addresses on the paths.

use std::net::{IpAddr, SocketAddr};

use rexmit_recovery::{PathChange, PathState};

use super::{AddressChanges, Addressing};
use crate::association::context::Context;
use crate::association::paths::Paths;
use crate::event::Event;

impl AddressChanges {
    /// Adds a path to `remote`, an additional address of the peer, which has to be confirmed before data is
    /// sent to it. Returns the path; `None` if none of our addresses can reach it.
    pub(super) fn begin_path_to(
        &self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        remote: SocketAddr,
    ) -> Option<u8> {
        let path = addressing.paths.add_remote(remote, &self.own)?;
        if self.is_silent(addressing.paths, path) {
            // The path begins at the address that this host is moving to, whichever address packets arrive at until
            // then.
            let local = addressing.paths.get(path).route.local;
            addressing.paths.redirect(path, local);
        }
        self.begin_paths(cx, addressing, &[path]);
        Some(path)
    }

    /// Adds a path for every address of ours that has none (see [`crate::association::paths`]).
    pub(super) fn begin_paths_from_own(
        &self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
    ) {
        let begun = addressing.paths.add_unused_locals(&self.own);
        self.begin_paths(cx, addressing, &begun);
    }

    /// Called when paths were added: begins to probe them.
    fn begin_paths(&self, cx: &mut Context<'_>, addressing: &mut Addressing<'_>, begun: &[u8]) {
        let pmdcs = addressing.config.pmdcs();
        for &path in begun {
            let is_known = path < addressing.recovery.paths().count();
            addressing.recovery.open_path(is_known.then_some((cx.now, path)), pmdcs);
        }
        for &path in begun {
            let is_silent = self.is_silent(addressing.paths, path);
            addressing.paths.watch(cx, addressing.recovery, path, is_silent);
        }
        addressing.paths.probe_next(addressing.recovery);
    }

    /// Removes all paths to `address`, which the peer has deleted.
    pub(super) fn end_paths_to(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        address: IpAddr,
    ) {
        self.requested_primary.take_if(|wished| *wished == address);
        let is_to_it = |path: &u8| {
            let entry = addressing.paths.get(*path);
            !entry.is_removed() && entry.route.remote.ip() == address
        };
        let ended: Vec<u8> = (0..addressing.paths.len()).filter(is_to_it).collect();
        let Some(&path) = ended.first() else { return };
        let at = addressing.paths.get(path).route.remote;
        ended.into_iter().for_each(|path| addressing.paths.end(cx, addressing.recovery, path));
        addressing.replies.forget_over(|route| route.remote.ip() == address);
        cx.event(Event::PeerAddressDeleted { path, address: at });
        self.begin_paths_from_own(cx, addressing);
    }

    /// Stops sending from our addresses that are `is_given_up`: their paths continue from another local address, or are
    /// removed if a path from there exists already.
    pub(super) fn leave_locals(
        &self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
        is_given_up: impl Fn(IpAddr) -> bool,
    ) {
        let choices = if self.own.is_empty() { &self.adding } else { &self.own };
        for path in 0..addressing.paths.len() {
            let entry = addressing.paths.get(path);
            let route = entry.route;
            if entry.is_removed() || !is_given_up(route.local.ip()) {
                continue;
            }
            let local = addressing.paths.local_instead(path, choices);
            let ends = (local.ip(), route.remote.ip());
            let is_taken = addressing.paths.live().any(|(other, entry)| {
                other != path && (entry.route.local.ip(), entry.route.remote.ip()) == ends
            });
            if is_taken {
                addressing.paths.end(cx, addressing.recovery, path);
            } else {
                addressing.paths.redirect(path, local);
                let pmdcs = addressing.config.pmdcs();
                addressing.recovery.change_path(
                    cx.now,
                    path,
                    PathChange::Redirected { packet: pmdcs },
                    &mut cx.tracer(),
                );
                addressing.paths.follow_data_path(cx, addressing.recovery);
                let is_silent = self.is_silent(addressing.paths, path);
                addressing.paths.watch(cx, addressing.recovery, path, is_silent);
            }
        }
        addressing.paths.probe_next(addressing.recovery);
    }

    /// Called when the peer has acknowledged addresses of ours: begins to monitor the paths from them.
    pub(super) fn watch_paths(&self, cx: &mut Context<'_>, addressing: &mut Addressing<'_>) {
        for path in 0..addressing.paths.len() {
            if addressing.paths.is_unwatched(path) {
                let is_silent = self.is_silent(addressing.paths, path);
                addressing.paths.watch(cx, addressing.recovery, path, is_silent);
            }
        }
        addressing.paths.probe_next(addressing.recovery);
    }

    /// Makes the address that the peer asked for the primary one, if it is confirmed by now.
    pub(in crate::association) fn grant_requested_primary(
        &mut self,
        cx: &mut Context<'_>,
        addressing: &mut Addressing<'_>,
    ) {
        let Some(address) = self.requested_primary else { return };
        let is_it = |path: &u8| {
            addressing.paths.get(*path).route.remote.ip() == address
                && !matches!(
                    addressing.recovery.paths()[*path].reach().state(),
                    PathState::Unconfirmed | PathState::Removed
                )
        };
        let Some(path) = (0..addressing.paths.len()).find(is_it) else { return };
        self.requested_primary = None;
        addressing.paths.make_primary(cx, addressing.recovery, path);
    }

    /// Whether not even HEARTBEATs may be sent over `path` now.
    pub(in crate::association) fn is_silent(&self, paths: &Paths, path: u8) -> bool {
        self.is_adding(paths.get(path).route.local.ip())
    }
}
