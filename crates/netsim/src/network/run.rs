//! The event loop: processes events in order, and fulfils the contract of [`Machine`] for every
//! host.

use rexmit_core::{Instant, Machine, Route};
use thiserror::Error;

use super::agenda::Next;
use super::packets::Slot;
use super::{Context, Event, HostId, Network, Occurrence};

/// A host does not become idle: its machine or application was called too often at one instant.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("host {host} does not become idle at {at:?}: it was called {steps} times")]
pub struct Livelock {
    /// The host's name.
    pub host: String,
    /// The instant at which the calls repeated.
    pub at: Instant,
    /// Calls of its machine and application at that instant.
    pub steps: u32,
}

impl<M: Machine> Network<M> {
    /// The current time: that of the last event, or the end of the last run.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The time of the next event, unless a machine is called from outside before.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.agenda.next_at()
    }

    /// The machine of a host.
    #[must_use]
    pub fn machine(&self, host: HostId) -> &M {
        &self.hosts[host.0 as usize].machine
    }

    /// The machine of a host, for calls. Packets that this makes it send are sent when the next run begins, at the time
    /// of [`now`](Self::now).
    pub fn machine_mut(&mut self, host: HostId) -> &mut M {
        self.touched.push(host);
        &mut self.hosts[host.0 as usize].machine
    }

    /// Processes all events up to and including `deadline`, and notifies `app`.
    ///
    /// Afterwards [`now`](Self::now) is `deadline`, unless the application stopped the run earlier.
    /// With [`Instant::FAR_FUTURE`], the run lasts until there are no more events.
    ///
    /// # Errors
    /// [`Livelock`] if a host does not become idle at one instant.
    pub fn run_until<F>(&mut self, deadline: Instant, mut app: F) -> Result<(), Livelock>
    where
        F: FnMut(&mut Context<'_, M>, Occurrence<M::Event>),
    {
        self.run.is_stopped = false;
        self.find_routes();
        for host in std::mem::take(&mut self.touched) {
            self.drive(host, &mut app)?;
        }
        self.process(deadline, &mut app)?;
        if !self.run.is_stopped && deadline < Instant::FAR_FUTURE {
            self.now = self.now.max(deadline);
        }
        Ok(())
    }

    /// Processes all scheduled events up to and including `deadline`.
    pub(super) fn process<F>(&mut self, deadline: Instant, app: &mut F) -> Result<(), Livelock>
    where
        F: FnMut(&mut Context<'_, M>, Occurrence<M::Event>),
    {
        while !self.run.is_stopped
            && let Some((at, next)) = self.agenda.pop(deadline)
        {
            self.now = at;
            self.stats.events += 1;
            match next {
                Next::Deadline(host) => self.on_deadline(HostId(host as u32), app)?,
                Next::Event(Event::Arrival { link, packet }) => {
                    self.on_arrival(link as usize, packet, app)?;
                }
                Next::Event(Event::Departure { link }) => self.on_departure(link as usize),
                Next::Event(Event::Wake { host, token }) => {
                    self.step(host)?;
                    app(&mut self.context(host), Occurrence::Wake(token));
                    self.drive(host, app)?;
                }
                Next::Event(Event::Call { host, call }) => self.on_call(host, call, app)?,
            }
        }
        Ok(())
    }

    fn on_deadline<F>(&mut self, host: HostId, app: &mut F) -> Result<(), Livelock>
    where
        F: FnMut(&mut Context<'_, M>, Occurrence<M::Event>),
    {
        self.step(host)?;
        self.hosts[host.0 as usize].machine.handle_timeout(self.now);
        self.drive(host, app)
    }

    fn on_arrival<F>(&mut self, link: usize, slot: Slot, app: &mut F) -> Result<(), Livelock>
    where
        F: FnMut(&mut Context<'_, M>, Occurrence<M::Event>),
    {
        let Some(host) = self.arrive(link, slot) else { return Ok(()) };
        self.step(host)?;
        let packet = self.packets.packet(slot);
        let (route, ecn) = (Route { local: packet.destination, remote: packet.source }, packet.ecn);
        let bytes = self.packets.take(slot);
        let machine = &mut self.hosts[host.0 as usize].machine;
        machine.handle_input_with_ecn(self.now, route, ecn, &bytes);
        self.packets.recycle(bytes);
        self.drive(host, app)
    }

    fn on_call<F>(&mut self, host: HostId, call: u32, app: &mut F) -> Result<(), Livelock>
    where
        F: FnMut(&mut Context<'_, M>, Occurrence<M::Event>),
    {
        self.step(host)?;
        if let Some(closure) = self.calls.take(call) {
            closure(&mut self.context(host));
        }
        self.drive(host, app)
    }

    /// Polls a machine until it is idle, and stores its deadline.
    fn drive<F>(&mut self, host: HostId, app: &mut F) -> Result<(), Livelock>
    where
        F: FnMut(&mut Context<'_, M>, Occurrence<M::Event>),
    {
        let place = host.0 as usize;
        let mut buffer = self.packets.buffer();
        loop {
            while let Some(route) = self.hosts[place].machine.poll_transmit(self.now, &mut buffer) {
                let ecn = self.hosts[place].machine.transmit_ecn();
                self.step(host)?;
                self.send(host, (route, ecn), buffer);
                buffer = self.packets.buffer();
            }
            let Some(event) = self.hosts[place].machine.poll_event() else { break };
            self.step(host)?;
            app(&mut self.context(host), Occurrence::Event(event));
        }
        self.packets.recycle(buffer);
        let deadline = self.hosts[place].machine.poll_timeout();
        self.agenda.set_deadline(place, deadline.map(|at| at.max(self.now)));
        Ok(())
    }

    fn context(&mut self, host: HostId) -> Context<'_, M> {
        Context {
            host,
            now: self.now,
            machine: &mut self.hosts[host.0 as usize].machine,
            agenda: &mut self.agenda,
            is_stopped: &mut self.run.is_stopped,
        }
    }

    fn step(&mut self, host: HostId) -> Result<(), Livelock> {
        let host = &mut self.hosts[host.0 as usize];
        if host.steps.0 != self.now {
            host.steps = (self.now, 0);
        }
        host.steps.1 += 1;
        if host.steps.1 <= self.run.step_limit {
            return Ok(());
        }
        let name = self.graph.nodes[host.node.0 as usize].name.clone();
        Err(Livelock { host: name, at: self.now, steps: self.run.step_limit })
    }
}
