//! Telling that a path, or the peer, does not answer any more (RFC 9260 §8.1, §8.2; RFC 7829).

use rexmit_recovery::{LossRecovery, PathState, Reach};

use super::{Association, Context, State};
use crate::error::PrimaryError;
use crate::event::{CloseReason, Event};
use crate::streams::Fragment;

impl Association {
    /// One more sign that the peer is not there; ends the association if there were too many
    /// (RFC 9260 §8.1). Returns whether it ended.
    pub(super) fn count_error(&mut self, cx: &mut Context<'_>) -> bool {
        self.error_count += 1;
        if self.error_count > self.config.association_max_retrans {
            let reason = match self.state {
                // Either side had everything before: only the farewell is missing.
                State::ShutdownAckSent => CloseReason::Shutdown,
                _ => CloseReason::Unreachable,
            };
            self.close(cx, None, reason);
            return true;
        }
        false
    }

    /// The peer has shown that it is there, over `path`; if that `is_certain`, it was over no other.
    pub(super) fn clear_errors(&mut self, cx: &mut Context<'_>, path: u8, is_certain: bool) {
        self.error_count = 0;
        if self.out.recovery.reach(path) != Reach::ACTIVE {
            self.change_path(cx, path, |recovery| recovery.on_path_answered(path, is_certain));
        }
    }

    /// The peer has answered a HEARTBEAT over `path`.
    pub(super) fn on_path_probed(&mut self, cx: &mut Context<'_>, path: u8) {
        self.error_count = 0;
        self.change_path(cx, path, |recovery| recovery.on_path_probed(path));
        self.grant_wished_primary(cx);
    }

    /// One more sign that a path does not work (RFC 9260 §8.2).
    pub(super) fn count_path_error(&mut self, cx: &mut Context<'_>, path: u8) {
        let limit = self.config.path_max_retrans;
        self.change_path(cx, path, |recovery| recovery.on_path_error(path, limit));
        if self.out.recovery.reach(path).state() == PathState::PotentiallyFailed {
            self.ask_path(path);
        }
        self.switch_primary(path);
    }

    /// The path that works becomes the primary one, if it is configured so: no return to one that
    /// failed (RFC 7829 §5).
    fn switch_primary(&mut self, path: u8) {
        let recovery = &self.out.recovery;
        let errors = recovery.reach(path).errors();
        let is_too_many =
            self.config.primary_switchover_max_retrans.is_some_and(|limit| errors > limit);
        if is_too_many && path == recovery.primary_path() {
            let data_path = recovery.data_path();
            self.out.recovery.set_primary_path(data_path);
        }
    }

    /// The application chooses the path that data take while it works.
    pub(crate) fn set_primary(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
    ) -> Result<(), PrimaryError> {
        if path >= self.paths.len() || self.paths.get(path).is_removed() {
            return Err(PrimaryError::NoSuchPath);
        } else if self.out.recovery.reach(path).state() == PathState::Unconfirmed {
            return Err(PrimaryError::Unconfirmed);
        }
        self.out.begin_opportunity();
        let before = self.out.recovery.data_path();
        self.out.recovery.set_primary_path(path);
        self.follow_data_path(cx, before);
        Ok(())
    }

    /// Changes what is known of `path`, and tells the application of another state.
    fn change_path(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
        change: impl FnOnce(&mut LossRecovery<Fragment>) -> Option<PathState>,
    ) {
        let recovery = &mut self.out.recovery;
        let (before, data_path) = (recovery.reach(path).state(), recovery.data_path());
        let Some(after) = change(recovery) else {
            return self.follow_data_path(cx, data_path);
        };
        let told = |state| match state {
            PathState::PotentiallyFailed if !self.config.report_potentially_failed => {
                PathState::Active
            }
            state => state,
        };
        if told(before) != told(after) {
            let address = self.paths.get(path).route.remote;
            cx.event(Event::PathStatus { path, address, state: told(after) });
        }
        self.follow_data_path(cx, data_path);
    }

    /// New data took the path `before`: if they take another now, so does what belongs to no path in
    /// particular, and the application is told.
    pub(super) fn follow_data_path(&mut self, cx: &mut Context<'_>, before: u8) {
        let path = self.out.recovery.data_path();
        if path != before {
            self.control_path = path;
            let address = self.paths.get(path).route.remote;
            cx.event(Event::DataPathChanged { path, address });
        }
    }

    /// What was owed on the control path was not answered in time: it is tried over another.
    pub(super) fn turn_control_path(&mut self) {
        self.control_path = self.out.recovery.alternate_to(self.control_path);
    }
}
