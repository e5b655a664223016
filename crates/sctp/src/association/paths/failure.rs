//! Failure detection of paths and of the peer (RFC 9260 §8.1, §8.2; RFC 7829), and the choice of another path.

use std::time::Duration;

use rexmit_recovery::{PathChange, PathEvent, PathState, Reach};

use super::Paths;
use crate::association::context::{Context, Recovery};
use crate::error::PrimaryError;
use crate::event::Event;

/// The part of its timeout by which a timer is too late to be an error. T3-rtx has been doubled when it is compared, so half of
/// what had expired.
const LATE_PART: u32 = 4;

/// The error counter of an association (RFC 9260 §8.1).
#[derive(Debug, Default)]
pub(in crate::association) struct Errors {
    count: u32,
    /// [`Surroundings::starved`](crate::association::context::Surroundings::starved) when a timer expired last.
    starved: Duration,
}

impl Errors {
    pub(in crate::association) const fn count(&self) -> u32 {
        self.count
    }

    /// Whether a timer of `timeout` that has expired is an error of the peer. It is not if this host did not run in a part of
    /// that time: an answer may not have been read, the packet may have been sent late, and a peer on the same busy machine
    /// does not run, either.
    pub(in crate::association) fn includes(&mut self, cx: &Context<'_>, timeout: Duration) -> bool {
        let before = std::mem::replace(&mut self.starved, cx.around.starved);
        cx.around.starved - before <= timeout / LATE_PART
    }

    /// Counts an error. Returns whether there are more than `max` (Association.Max.Retrans), so that the peer counts
    /// as unreachable.
    pub(in crate::association) const fn add(&mut self, max: u32) -> bool {
        self.count += 1;
        self.count > max
    }

    /// Called when the peer has answered.
    pub(in crate::association) const fn reset(&mut self) {
        self.count = 0;
    }
}

impl Paths {
    /// Called when the peer has answered over `path`; `is_certain` if the acknowledged data was sent over this path
    /// only.
    pub(in crate::association) fn on_answered(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
        is_certain: bool,
    ) {
        self.errors.reset();
        if recovery.paths()[path].reach() != Reach::ACTIVE {
            self.change(cx, recovery, path, PathEvent::Answered { is_certain });
        }
    }

    /// Called when the peer has answered a probe of `path`.
    pub(in crate::association) fn on_probed(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
    ) {
        self.errors.reset();
        self.change(cx, recovery, path, PathEvent::Probed);
    }

    /// Counts an error of a path, which may make it potentially failed or inactive (RFC 9260 §8.2, RFC 7829).
    pub(in crate::association) fn count_path_error(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
    ) {
        let path_max_retrans = self.config.failure.path_max_retrans;
        self.change(cx, recovery, path, PathEvent::Error { path_max_retrans });
        if recovery.paths()[path].reach().state() == PathState::PotentiallyFailed {
            self.ask(path);
        }
        // The path that works becomes the primary one, if it is configured so: no return to one that
        // failed (RFC 7829 §5).
        let errors = recovery.paths()[path].reach().errors();
        let is_too_many = self
            .config
            .multihoming
            .primary_switchover_max_retrans
            .is_some_and(|limit| errors > limit);
        if is_too_many && path == recovery.paths().primary() {
            let data_path = recovery.paths().data_path();
            recovery.change_path(cx.now, data_path, PathChange::Primary, &mut cx.tracer());
        }
    }

    /// Makes `path` the primary path, as the application requests: data is sent over it while it works.
    pub(in crate::association) fn choose_primary(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
    ) -> Result<(), PrimaryError> {
        if path >= self.len() || self.get(path).is_removed() {
            return Err(PrimaryError::NoSuchPath);
        } else if recovery.paths()[path].reach().state() == PathState::Unconfirmed {
            return Err(PrimaryError::Unconfirmed);
        }
        recovery.begin_opportunity();
        self.make_primary(cx, recovery, path);
        Ok(())
    }

    /// Makes `path` the primary path: data is sent over it while it works.
    pub(in crate::association) fn make_primary(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
    ) {
        recovery.change_path(cx.now, path, PathChange::Primary, &mut cx.tracer());
        self.follow_data_path(cx, recovery);
    }

    /// Changes the state of `path`, and reports a new state to the application.
    fn change(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
        event: PathEvent,
    ) {
        let before = recovery.paths()[path].reach().state();
        let Some(after) = recovery.on_path_event(path, event) else {
            return self.follow_data_path(cx, recovery);
        };
        // The endpoint has to add the address of a newly confirmed path to its lookup table.
        self.transports.touch();
        let told = |state| match state {
            PathState::PotentiallyFailed if !self.config.multihoming.report_potentially_failed => {
                PathState::Active
            }
            state => state,
        };
        if told(before) != told(after) {
            let address = self.get(path).route.remote;
            cx.event(Event::PathStatus { path, address, state: told(after) });
        }
        self.follow_data_path(cx, recovery);
    }

    /// If new data takes another path than before, so do control chunks that belong to no particular path, and the
    /// application gets an event.
    #[inline]
    pub(in crate::association) fn follow_data_path(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
    ) {
        let path = recovery.paths().data_path();
        if !self.get(path).is_followed {
            self.entries.iter_mut().for_each(|entry| entry.is_followed = false);
            self.get_mut(path).is_followed = true;
            self.control = path;
            let address = self.get(path).route.remote;
            cx.event(Event::DataPathChanged { path, address });
        }
    }

    /// The path of control chunks that belong to no particular path: setup, shutdown, RE-CONFIG, FORWARD-TSN. It is the
    /// path of new data or, while that does not answer, another one.
    pub(in crate::association) const fn control(&self) -> u8 {
        self.control
    }

    /// Sends control chunks that belong to no particular path over `path` from now on.
    pub(in crate::association) const fn set_control(&mut self, path: u8) {
        self.control = path;
    }

    /// Called when a control chunk was not answered in time: sends control chunks over another path, if there
    /// is one.
    pub(in crate::association) fn turn_control(&mut self, recovery: &Recovery) {
        self.control = recovery.paths().alternate_to(self.control);
    }
}
