//! Requests to a network from outside: to wake or call a host, to inform observers.

use rexmit_core::{Instant, Machine};

use super::Network;
use super::app::{Call, Context};
use super::event::Event;
use super::ids::HostId;
use super::observer::PacketObserver;

impl<M: Machine> Network<M> {
    /// Tells the application of `host` at `at` (now, if that is past) that it is time for `token`.
    pub fn wake_at(&mut self, host: HostId, at: Instant, token: u64) {
        self.agenda.schedule(at.max(self.now), Event::Wake { host, token });
    }

    /// Calls `call` at `at` (now, if that is past) for `host`.
    pub fn call_at(
        &mut self,
        host: HostId,
        at: Instant,
        call: impl FnOnce(&mut Context<'_, M>) + Send + 'static,
    ) {
        let call: Call<M> = Box::new(call);
        let place = self.calls.put(call);
        self.agenda.schedule(at.max(self.now), Event::Call { host, call: place });
    }

    /// Tells `observer` from now on of all packets. Of those that are under way already it hears
    /// only the rest.
    pub fn add_observer(&mut self, observer: impl PacketObserver + 'static) {
        self.observers.add(observer);
    }
}

/// The calls that are scheduled, in places that are used again.
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

    /// The call in a place, which becomes free.
    pub(super) fn take(&mut self, place: u32) -> Option<Call<M>> {
        let call = self.calls[place as usize].take()?;
        self.free.push(place);
        Some(call)
    }
}
