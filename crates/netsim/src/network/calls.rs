//! Requests to a network from outside: notify or call a host, add an observer.

use rexmit_core::{Instant, Machine};

use super::Network;
use super::app::{Call, Context};
use super::event::Event;
use super::ids::HostId;
use super::observer::PacketObserver;

impl<M: Machine> Network<M> {
    /// Notifies the application of `host` at `at` (now, if that is in the past), with `token`.
    pub fn wake_at(&mut self, host: HostId, at: Instant, token: u64) {
        self.agenda.schedule_call(at.max(self.now), Event::Wake { host, token });
    }

    /// Calls `call` for `host` at `at` (now, if that is in the past).
    pub fn call_at(
        &mut self,
        host: HostId,
        at: Instant,
        call: impl FnOnce(&mut Context<'_, M>) + Send + 'static,
    ) {
        let call: Call<M> = Box::new(call);
        let place = self.calls.put(call);
        self.agenda.schedule_call(at.max(self.now), Event::Call { host, call: place });
    }

    /// Passes all packet events from now on to `observer`. Earlier events of packets that are
    /// already in flight are missing.
    pub fn add_observer(&mut self, observer: impl PacketObserver + 'static) {
        self.observers.add(observer);
    }
}

/// The scheduled calls, in slots that are reused.
pub(super) struct CallStore<M> {
    calls: Vec<Option<Call<M>>>,
    free: Vec<u32>,
}

impl<M> Default for CallStore<M> {
    fn default() -> Self {
        Self { calls: Vec::new(), free: Vec::new() }
    }
}

impl<M> CallStore<M> {
    fn put(&mut self, call: Call<M>) -> u32 {
        if let Some(place) = self.free.pop() {
            self.calls[place as usize] = Some(call);
            return place;
        }
        self.calls.push(Some(call));
        u32::try_from(self.calls.len() - 1).expect("under 2³² calls scheduled")
    }

    /// Whether no call is scheduled.
    pub(super) const fn is_empty(&self) -> bool {
        self.calls.len() == self.free.len()
    }

    /// Removes the call in slot `place`.
    pub(super) fn take(&mut self, place: u32) -> Option<Call<M>> {
        let call = self.calls[place as usize].take()?;
        self.free.push(place);
        Some(call)
    }
}
