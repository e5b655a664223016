//! What addresses that come and go do to the paths.

use std::net::{IpAddr, SocketAddr};

use rexmit_recovery::PathState;

use super::super::heartbeat::Heartbeat;
use super::super::{Association, Context};
use crate::event::Event;

impl Association {
    /// How many addresses the peer has.
    pub(super) fn peer_address_count(&self) -> usize {
        self.paths.address_count()
    }

    /// The peer can be reached at `remote`, too, once it is confirmed. `None` if there is no address of
    /// ours from which it could be.
    pub(super) fn begin_path_to(&mut self, cx: &mut Context<'_>, remote: SocketAddr) -> Option<u8> {
        let own = &self.asconf.as_ref()?.own;
        let path = self.paths.add_remote(remote, own)?;
        if self.is_silent(path) {
            // It begins where we are about to be, wherever packets arrive until then.
            let local = self.paths.get(path).route.local;
            self.paths.redirect(path, local);
        }
        self.begin_paths(cx, &[path]);
        Some(path)
    }

    /// Every address of ours has a path (see [`super::super::paths`]).
    pub(super) fn begin_paths_from_own(&mut self, cx: &mut Context<'_>) {
        let Some(changes) = &self.asconf else { return };
        let begun = self.paths.add_unused_locals(&changes.own);
        self.begin_paths(cx, &begun);
    }

    /// Paths were entered: they are probed from now on.
    fn begin_paths(&mut self, cx: &mut Context<'_>, begun: &[u8]) {
        let pmdcs = self.config.pmdcs();
        for &path in begun {
            if path < self.out.recovery.path_count() {
                self.out.recovery.replace_path(cx.now, path, pmdcs);
            } else {
                self.out.recovery.add_path(pmdcs);
            }
        }
        begun.iter().for_each(|&path| self.watch_path(cx, path));
        self.probe_next();
    }

    /// The peer is no longer at `address`.
    pub(super) fn end_paths_to(&mut self, cx: &mut Context<'_>, address: IpAddr) {
        let Some(changes) = &mut self.asconf else { return };
        changes.departed.push(address);
        changes.wished_primary.take_if(|wished| *wished == address);
        let is_to_it = |path: &u8| {
            let entry = self.paths.get(*path);
            !entry.is_removed() && entry.route.remote.ip() == address
        };
        let ended: Vec<u8> = (0..self.paths.len()).filter(is_to_it).collect();
        let Some(&path) = ended.first() else { return };
        let at = self.paths.get(path).route.remote;
        ended.into_iter().for_each(|path| self.end_path(cx, path));
        self.owed.forget_replies_over(|route| route.remote.ip() == address);
        cx.event(Event::PeerAddressDeleted { path, address: at });
        self.begin_paths_from_own(cx);
    }

    /// `path` is no more; there is another.
    fn end_path(&mut self, cx: &mut Context<'_>, path: u8) {
        let before = self.out.recovery.data_path();
        self.paths.remove(path);
        self.out.recovery.remove_path(path, &mut cx.tracer());
        let data_path = self.out.recovery.data_path();
        if self.control_path == path {
            self.control_path = data_path;
        }
        if self.inbound.reply_path == path {
            self.inbound.reply_path = data_path;
        }
        self.follow_data_path(cx, before);
    }

    /// Nothing leaves any more from addresses of ours that `is_given_up`: their paths begin elsewhere, or
    /// end where there is one like that.
    pub(super) fn leave_locals(
        &mut self,
        cx: &mut Context<'_>,
        is_given_up: impl Fn(IpAddr) -> bool,
    ) {
        for path in 0..self.paths.len() {
            let entry = self.paths.get(path);
            let route = entry.route;
            if entry.is_removed() || !is_given_up(route.local.ip()) {
                continue;
            }
            let Some(changes) = &self.asconf else { return };
            let choices = if changes.own.is_empty() { &changes.adding } else { &changes.own };
            let local = self.paths.local_instead(path, choices);
            if self.paths.has_other(path, local.ip(), route.remote.ip()) {
                self.end_path(cx, path);
            } else {
                self.paths.redirect(path, local);
                let (pmdcs, now) = (self.config.pmdcs(), cx.now);
                let before = self.out.recovery.data_path();
                self.out.recovery.redirect_path(now, path, pmdcs, &mut cx.tracer());
                self.follow_data_path(cx, before);
                self.watch_path(cx, path);
            }
        }
        self.probe_next();
    }

    /// A path begins, or begins elsewhere: it is watched, or probed, from now on.
    fn watch_path(&mut self, cx: &mut Context<'_>, path: u8) {
        if !self.state.may_heartbeat() || self.is_silent(path) {
            self.paths.get_mut(path).heartbeat = Heartbeat::Off;
        } else if self.out.recovery.reach(path).state() == PathState::Unconfirmed {
            self.paths.get_mut(path).heartbeat = Heartbeat::Queued { unanswered: None };
        } else {
            self.rest(cx, path, None);
        }
    }

    /// The peer has acknowledged addresses of ours: paths that waited for that are watched.
    pub(super) fn watch_paths(&mut self, cx: &mut Context<'_>) {
        for path in 0..self.paths.len() {
            let entry = self.paths.get(path);
            if !entry.is_removed() && entry.heartbeat == Heartbeat::Off {
                self.watch_path(cx, path);
            }
        }
        self.probe_next();
    }

    /// Data go where the peer wants them, if that is confirmed by now.
    pub(in super::super) fn grant_wished_primary(&mut self, cx: &mut Context<'_>) {
        let Some(address) = self.asconf.as_ref().and_then(|changes| changes.wished_primary) else {
            return;
        };
        let is_it = |path: &u8| {
            self.paths.get(*path).route.remote.ip() == address
                && !matches!(
                    self.out.recovery.reach(*path).state(),
                    PathState::Unconfirmed | PathState::Removed
                )
        };
        let Some(path) = (0..self.paths.len()).find(is_it) else { return };
        if let Some(changes) = &mut self.asconf {
            changes.wished_primary = None;
        }
        let before = self.out.recovery.data_path();
        self.out.recovery.set_primary_path(path);
        self.follow_data_path(cx, before);
    }
}
