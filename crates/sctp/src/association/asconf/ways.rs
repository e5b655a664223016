//! The effect of added and deleted addresses on the paths.

use std::net::{IpAddr, SocketAddr};

use rexmit_recovery::{PathChange, PathState};

use super::{AddressChanges, Ways};
use crate::association::context::Context;
use crate::association::paths::Paths;
use crate::event::Event;

impl AddressChanges {
    /// Adds a path to `remote`, an additional address of the peer, which has to be confirmed before data is
    /// sent to it. Returns the path; `None` if none of our addresses can reach it.
    pub(super) fn begin_path_to(
        &self,
        cx: &mut Context<'_>,
        ways: &mut Ways<'_>,
        remote: SocketAddr,
    ) -> Option<u8> {
        let path = ways.paths.add_remote(remote, &self.own)?;
        if self.is_silent(ways.paths, path) {
            // It begins where we are about to be, wherever packets arrive until then.
            let local = ways.paths.get(path).route.local;
            ways.paths.redirect(path, local);
        }
        self.begin_paths(cx, ways, &[path]);
        Some(path)
    }

    /// Adds a path for every address of ours that has none (see [`crate::association::paths`]).
    pub(super) fn begin_paths_from_own(&self, cx: &mut Context<'_>, ways: &mut Ways<'_>) {
        let begun = ways.paths.add_unused_locals(&self.own);
        self.begin_paths(cx, ways, &begun);
    }

    /// Called when paths were added: begins to probe them.
    fn begin_paths(&self, cx: &mut Context<'_>, ways: &mut Ways<'_>, begun: &[u8]) {
        let pmdcs = ways.config.pmdcs();
        for &path in begun {
            let is_known = path < ways.recovery.paths().count();
            ways.recovery.open_path(is_known.then_some((cx.now, path)), pmdcs);
        }
        for &path in begun {
            let is_silent = self.is_silent(ways.paths, path);
            ways.paths.watch(cx, ways.recovery, path, is_silent);
        }
        ways.paths.probe_next(ways.recovery);
    }

    /// Removes all paths to `address`, which the peer has deleted.
    pub(super) fn end_paths_to(
        &mut self,
        cx: &mut Context<'_>,
        ways: &mut Ways<'_>,
        address: IpAddr,
    ) {
        self.wished_primary.take_if(|wished| *wished == address);
        let is_to_it = |path: &u8| {
            let entry = ways.paths.get(*path);
            !entry.is_removed() && entry.route.remote.ip() == address
        };
        let ended: Vec<u8> = (0..ways.paths.len()).filter(is_to_it).collect();
        let Some(&path) = ended.first() else { return };
        let at = ways.paths.get(path).route.remote;
        ended.into_iter().for_each(|path| ways.paths.end(cx, ways.recovery, path));
        ways.replies.forget_over(|route| route.remote.ip() == address);
        cx.event(Event::PeerAddressDeleted { path, address: at });
        self.begin_paths_from_own(cx, ways);
    }

    /// Stops sending from our addresses that `is_given_up`: their paths continue from another local address,
    /// or are removed if there is such a path already.
    pub(super) fn leave_locals(
        &self,
        cx: &mut Context<'_>,
        ways: &mut Ways<'_>,
        is_given_up: impl Fn(IpAddr) -> bool,
    ) {
        let choices = if self.own.is_empty() { &self.adding } else { &self.own };
        for path in 0..ways.paths.len() {
            let entry = ways.paths.get(path);
            let route = entry.route;
            if entry.is_removed() || !is_given_up(route.local.ip()) {
                continue;
            }
            let local = ways.paths.local_instead(path, choices);
            if ways.paths.has_other(path, local.ip(), route.remote.ip()) {
                ways.paths.end(cx, ways.recovery, path);
            } else {
                ways.paths.redirect(path, local);
                let before = ways.recovery.paths().data_path();
                let pmdcs = ways.config.pmdcs();
                ways.recovery.change_path(
                    cx.now,
                    path,
                    PathChange::Redirected { packet: pmdcs },
                    &mut cx.tracer(),
                );
                ways.paths.follow_data_path(cx, ways.recovery, before);
                let is_silent = self.is_silent(ways.paths, path);
                ways.paths.watch(cx, ways.recovery, path, is_silent);
            }
        }
        ways.paths.probe_next(ways.recovery);
    }

    /// Called when the peer has acknowledged addresses of ours: begins to monitor the paths from them.
    pub(super) fn watch_paths(&self, cx: &mut Context<'_>, ways: &mut Ways<'_>) {
        for path in 0..ways.paths.len() {
            if ways.paths.is_unwatched(path) {
                let is_silent = self.is_silent(ways.paths, path);
                ways.paths.watch(cx, ways.recovery, path, is_silent);
            }
        }
        ways.paths.probe_next(ways.recovery);
    }

    /// Makes the address that the peer asked for the primary one, if it is confirmed by now.
    pub(in crate::association) fn grant_wished_primary(
        &mut self,
        cx: &mut Context<'_>,
        ways: &mut Ways<'_>,
    ) {
        let Some(address) = self.wished_primary else { return };
        let is_it = |path: &u8| {
            ways.paths.get(*path).route.remote.ip() == address
                && !matches!(
                    ways.recovery.paths()[*path].reach().state(),
                    PathState::Unconfirmed | PathState::Removed
                )
        };
        let Some(path) = (0..ways.paths.len()).find(is_it) else { return };
        self.wished_primary = None;
        ways.paths.make_primary(cx, ways.recovery, path);
    }

    /// Whether not even HEARTBEATs may be sent over `path` now.
    pub(in crate::association) fn is_silent(&self, paths: &Paths, path: u8) -> bool {
        self.is_adding(paths.get(path).route.local.ip())
    }
}
