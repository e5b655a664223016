//! The application's side of a simulation: what it is told and what it may do.

use rexmit_core::Instant;

#[cfg(doc)]
use super::Network;
use super::agenda::Agenda;
use super::event::Event;
use super::ids::HostId;

/// Something the application of a host is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occurrence<E> {
    /// The machine has an event.
    Event(E),
    /// The time of [`Network::wake_at`] or [`Context::wake_at`] has come.
    Wake(u64),
}

/// A closure for one host at one time.
pub(super) type Call<M> = Box<dyn FnOnce(&mut Context<'_, M>) + Send>;

/// One host, for as long as its application acts.
pub struct Context<'a, M> {
    pub(super) host: HostId,
    pub(super) now: Instant,
    pub(super) machine: &'a mut M,
    pub(super) agenda: &'a mut Agenda<Event>,
    pub(super) is_stopped: &'a mut bool,
}

impl<M> Context<'_, M> {
    /// The host to which something happened.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The host's machine. What it then has to send leaves at once.
    pub fn machine(&mut self) -> &mut M {
        self.machine
    }

    /// Tells the application of `host` at `at` that it is time for `token`.
    pub fn wake_at(&mut self, host: HostId, at: Instant, token: u64) {
        self.agenda.schedule(at.max(self.now), Event::Wake { host, token });
    }

    /// Ends [`Network::run_until`] before the next thing happens.
    pub fn stop(&mut self) {
        *self.is_stopped = true;
    }
}
