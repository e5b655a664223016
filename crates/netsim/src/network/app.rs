//! The application's interface to a simulation: its notifications and its actions.

use rexmit_core::Instant;

#[cfg(doc)]
use super::Network;
use super::agenda::Agenda;
use super::event::Event;
use super::ids::HostId;

/// A notification to the application of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occurrence<E> {
    /// An event of the machine.
    Event(E),
    /// The time set by [`Network::wake_at`] or [`Context::wake_at`], with its token.
    Wake(u64),
}

/// A closure that is called for one host at one time.
pub(super) type Call<M> = Box<dyn FnOnce(&mut Context<'_, M>) + Send>;

/// The application's access to one host during a notification.
pub struct Context<'a, M> {
    pub(super) host: HostId,
    pub(super) now: Instant,
    pub(super) machine: &'a mut M,
    pub(super) agenda: &'a mut Agenda<Event>,
    pub(super) is_stopped: &'a mut bool,
}

impl<M> Context<'_, M> {
    /// The host that the notification concerns.
    #[must_use]
    pub fn host(&self) -> HostId {
        self.host
    }

    /// The current time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The host's machine. Packets that this makes it send are sent at once.
    pub fn machine(&mut self) -> &mut M {
        self.machine
    }

    /// Notifies the application of `host` at `at`, with `token`.
    pub fn wake_at(&mut self, host: HostId, at: Instant, token: u64) {
        self.agenda.schedule_call(at.max(self.now), Event::Wake { host, token });
    }

    /// Ends [`Network::run_until`] before the next event.
    pub fn stop(&mut self) {
        *self.is_stopped = true;
    }
}
