//! The scheduler: it owns the time of kernels, machines and links, and lets one of them run at a time.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Seed};
use rexmit_netsim::capture::{CaptureDirection, CaptureWriter, loss_comment};
use rexmit_netsim::path::{Fate, PathConfig, PathModel, Pipe};

use crate::config::KernelConfig;
use crate::error::Error;
use crate::frame::{self, ETHERNET, Mac};
use crate::host_id::HostId;
use crate::kernel::Kernel;
use crate::station::{MachineConfig, NoMachine, Station};

/// The most events at one instant: more are a loop without end.
const MAX_EVENTS: u32 = 1_000_000;

#[derive(Debug)]
enum Node<M> {
    Kernel(Box<Kernel>),
    Machine(Box<Station<M>>),
}

struct Host<M> {
    mac: Mac,
    node: Node<M>,
    /// The link, and which of its ends.
    port: Option<(usize, usize)>,
    /// Frames that found no room in the queue of a kernel.
    overruns: u64,
}

struct Link {
    ends: [usize; 2],
    /// The paths from the end with the same index to the other one.
    pipes: [Pipe<Vec<u8>>; 2],
}

/// Kernels and machines, connected by links, in one virtual time.
///
/// Exactly one host runs at a time, in an order that only times and the order of creation decide: a run is a function of
/// its configuration, the seeds and the programs in the kernels. `docs/lab.md` says what was measured.
///
/// Each host has one network device, connected to that of one other host. `M` is the type of the hosts that are no kernels.
pub struct Simulation<M = NoMachine> {
    now: Instant,
    hosts: Vec<Host<M>>,
    links: Vec<Link>,
    capture: Option<CaptureWriter<Box<dyn Write>>>,
    /// The number of events at the present instant.
    events: u32,
}

impl<M: Machine> Simulation<M> {
    /// A simulation without hosts, at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self { now: Instant::ZERO, hosts: Vec::new(), links: Vec::new(), capture: None, events: 0 }
    }

    /// Starts a kernel. It boots when the simulation runs, which takes less than a millisecond of virtual time.
    ///
    /// # Errors
    /// If a file is missing, or the kernel does not connect to the simulation.
    pub fn add_kernel(&mut self, config: &KernelConfig) -> Result<HostId, Error> {
        let mut kernel = Kernel::boot(config)?;
        kernel.begin_at(self.now.as_nanos());
        Ok(self.add(config.mac, Node::Kernel(Box::new(kernel))))
    }

    /// Adds a host that runs `machine`.
    pub fn add_machine(&mut self, config: MachineConfig, machine: M) -> HostId {
        self.add(config.mac, Node::Machine(Box::new(Station::new(config, machine))))
    }

    fn add(&mut self, mac: Mac, node: Node<M>) -> HostId {
        self.hosts.push(Host { mac, node, port: None, overruns: 0 });
        HostId(self.hosts.len() - 1)
    }

    /// Connects two hosts by paths with the configurations `paths`: from the first to the second host, and back. Sizes
    /// and rates count IP packets without Ethernet headers.
    ///
    /// # Errors
    /// If a configuration is invalid, or a host is connected already. (A host is not connected to itself, either.)
    pub fn connect(
        &mut self,
        ends: [HostId; 2],
        paths: [PathConfig; 2],
        seed: &Seed,
    ) -> Result<(), Error> {
        let [forward, back] = paths;
        let pipe = |path, label| PathModel::new(path, &seed.split(label)).map(Pipe::new);
        let pipes = [pipe(forward, "forward")?, pipe(back, "back")?];
        let connected = ends.into_iter().find(|&HostId(host)| self.hosts[host].port.is_some());
        if let Some(host) = connected.or((ends[0] == ends[1]).then_some(ends[0])) {
            return Err(Error::Connected(host));
        }
        for (end, HostId(host)) in ends.into_iter().enumerate() {
            self.hosts[host].port = Some((self.links.len(), end));
        }
        self.links.push(Link { ends: ends.map(|HostId(host)| host), pipes });
        Ok(())
    }

    /// Writes the IPv4 packets of all present hosts to `out` (pcapng): an interface per host, where packets are captured as they are
    /// sent and as they arrive; lost packets have a comment.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn capture(&mut self, out: impl Write + 'static) -> Result<(), Error> {
        let names = self.hosts.iter().map(|host| match &host.node {
            Node::Kernel(kernel) => kernel.name(),
            Node::Machine(station) => &station.config.name,
        });
        let out: Box<dyn Write> = Box::new(out);
        let capture = CaptureWriter::new(out, names).map_err(Error::io("writing a capture"))?;
        self.capture = Some(capture);
        Ok(())
    }

    /// The current time: the end of the last run.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether the host is a kernel that was switched off. Machines do not end.
    #[must_use]
    pub fn has_ended(&self, host: HostId) -> bool {
        matches!(&self.hosts[host.0].node, Node::Kernel(kernel) if kernel.has_ended())
    }

    /// The directory that a kernel sees as `/mnt`, in which its programs and this process may exchange files; `console`
    /// there is the output of the kernel and its programs, `status` the exit status of the script. It is removed when
    /// the simulation is dropped. `None` for a machine.
    #[must_use]
    pub fn directory(&self, host: HostId) -> Option<&Path> {
        match &self.hosts[host.0].node {
            Node::Kernel(kernel) => Some(kernel.shared()),
            Node::Machine(_) => None,
        }
    }

    /// The machine of a host, for calls; `None` for a kernel. Packets that this makes it send are sent when the next run
    /// begins.
    pub fn machine_mut(&mut self, host: HostId) -> Option<&mut M> {
        match &mut self.hosts[host.0].node {
            Node::Kernel(_) => None,
            Node::Machine(station) => Some(&mut station.machine),
        }
    }

    /// The number of frames that a kernel lost because its queue was full, or because it had been switched off.
    #[must_use]
    pub fn overruns(&self, host: HostId) -> u64 {
        self.hosts[host.0].overruns
    }

    /// Processes all events up to and including `deadline`. `app` is called with a machine after each call of it by the simulation, to
    /// take its events; it may call the machine.
    ///
    /// # Errors
    /// If a kernel fails or hangs, a capture cannot be written, or time does not advance. The run cannot be continued
    /// afterwards.
    pub fn run_until(
        &mut self,
        deadline: Instant,
        mut app: impl FnMut(Instant, HostId, &mut M),
    ) -> Result<(), Error> {
        for host in 0..self.hosts.len() {
            self.serve(host, &mut app)?;
        }
        while let Some(next) = self.next_event().filter(|&next| next <= deadline) {
            self.advance(next)?;
            self.on_arrivals(&mut app)?;
            self.on_timeouts(&mut app)?;
            self.run_kernel(deadline)?;
        }
        self.now = self.now.max(deadline);
        if let Some(capture) = &mut self.capture {
            capture.flush().map_err(Error::io("writing a capture"))?;
        }
        Ok(())
    }

    /// Sets the time to that of the next event.
    fn advance(&mut self, next: Instant) -> Result<(), Error> {
        if next > self.now {
            self.now = next;
            self.events = 0;
        }
        self.events += 1;
        if self.events > MAX_EVENTS {
            return Err(Error::Livelock { at: self.now, events: self.events });
        }
        Ok(())
    }

    fn next_event(&self) -> Option<Instant> {
        let hosts = self.hosts.iter().filter_map(Host::next);
        let arrivals =
            self.links.iter().flat_map(|link| &link.pipes).filter_map(Pipe::next_arrival);
        hosts.chain(arrivals).min()
    }

    /// Delivers the frames that have arrived, one batch for each host.
    fn on_arrivals(&mut self, app: &mut impl FnMut(Instant, HostId, &mut M)) -> Result<(), Error> {
        for link in 0..self.links.len() {
            for from in [0, 1] {
                let host = self.links[link].ends[1 - from];
                let mut frames = Vec::new();
                loop {
                    let arrival = self.links[link].pipes[from].poll_arrival(self.now);
                    // The next call forgets them.
                    self.record_dropped(link, from, self.now)?;
                    let Some(arrival) = arrival else { break };
                    let mut frame = arrival.packet;
                    if arrival.is_marked {
                        frame::mark(&mut frame);
                    }
                    if let Some(corruption) = arrival.corruption {
                        corruption.apply(frame.get_mut(ETHERNET..).unwrap_or_default());
                    }
                    self.record(host, self.now, &frame, (CaptureDirection::In, None))?;
                    frames.push(frame);
                }
                if !frames.is_empty() {
                    self.deliver(host, &frames, app)?;
                }
            }
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        host: usize,
        frames: &[Vec<u8>],
        app: &mut impl FnMut(Instant, HostId, &mut M),
    ) -> Result<(), Error> {
        let now = self.now;
        let mut answers = Vec::new();
        match &mut self.hosts[host].node {
            Node::Kernel(kernel) => {
                self.hosts[host].overruns += kernel.deliver(now.as_nanos(), frames)?;
            }
            Node::Machine(station) => {
                answers.extend(frames.iter().filter_map(|frame| station.receive(now, frame)));
            }
        }
        for answer in answers {
            self.send(host, now, answer)?;
        }
        self.serve(host, app)
    }

    fn on_timeouts(&mut self, app: &mut impl FnMut(Instant, HostId, &mut M)) -> Result<(), Error> {
        for host in 0..self.hosts.len() {
            let now = self.now;
            let Node::Machine(station) = &mut self.hosts[host].node else { continue };
            if station.machine.poll_timeout().is_some_and(|at| at <= now) {
                station.machine.handle_timeout(now);
                self.serve(host, app)?;
            }
        }
        Ok(())
    }

    /// Lets a machine send, and its application react, until neither does anything.
    fn serve(
        &mut self,
        host: usize,
        app: &mut impl FnMut(Instant, HostId, &mut M),
    ) -> Result<(), Error> {
        let now = self.now;
        let peer = self.peer(host).map_or([0xff; 6], |peer| self.hosts[peer].mac);
        let mut is_first = true;
        loop {
            let mut frames = Vec::new();
            let Node::Machine(station) = &mut self.hosts[host].node else { return Ok(()) };
            while let Some(frame) = station.transmit(now, peer) {
                frames.push(frame);
                self.events += 1;
                if self.events > MAX_EVENTS {
                    return Err(Error::Livelock { at: now, events: self.events });
                }
            }
            if frames.is_empty() && !is_first {
                return Ok(());
            }
            app(now, HostId(host), &mut station.machine);
            is_first = false;
            for frame in frames {
                self.send(host, now, frame)?;
            }
        }
    }

    /// Runs the first kernel that has asked for the present time.
    fn run_kernel(&mut self, deadline: Instant) -> Result<(), Error> {
        let is_due = |host: &Host<M>| {
            matches!(host.node, Node::Kernel(_)) && host.next().is_some_and(|at| at <= self.now)
        };
        let Some(host) = self.hosts.iter().position(is_due) else { return Ok(()) };
        let others = self.hosts.iter().enumerate().filter(|&(other, _)| other != host);
        let others = others.filter_map(|(_, other)| other.next());
        let arrivals =
            self.links.iter().flat_map(|link| &link.pipes).filter_map(Pipe::next_arrival);
        let after = deadline + Duration::from_nanos(1);
        let free_until = others.chain(arrivals).min().map_or(after, |next| next.min(after));
        let Node::Kernel(kernel) = &mut self.hosts[host].node else { return Ok(()) };
        for (at, frame) in kernel.run(self.now.as_nanos(), free_until.as_nanos())? {
            self.send(host, Instant::from_nanos(at), frame)?;
        }
        Ok(())
    }

    fn peer(&self, host: usize) -> Option<usize> {
        let (link, end) = self.hosts[host].port?;
        Some(self.links[link].ends[1 - end])
    }

    /// Offers a frame of `host` to its link at `at`.
    fn send(&mut self, host: usize, at: Instant, bytes: Vec<u8>) -> Result<(), Error> {
        let Some((link, end)) = self.hosts[host].port else { return Ok(()) };
        let offered = frame::offered(&bytes);
        // The path owns the frame before its fate is known, so the copy for the capture is made before.
        let copy = self.capture.is_some().then(|| bytes.clone());
        let fate = self.links[link].pipes[end].offer_packet(at, offered, bytes);
        if let Some(copy) = copy {
            let comment =
                if let Fate::Lost(cause) = fate { Some(loss_comment(cause)) } else { None };
            self.record(host, at, &copy, (CaptureDirection::Out, comment))?;
        }
        self.record_dropped(link, end, at)
    }

    /// Records the packets that queues of FQ-CoDel have dropped, at the sender.
    fn record_dropped(&mut self, link: usize, end: usize, at: Instant) -> Result<(), Error> {
        while let Some((frame, cause)) = self.links[link].pipes[end].poll_dropped() {
            let remarks = (CaptureDirection::Out, Some(loss_comment(cause)));
            self.record(self.links[link].ends[end], at, &frame, remarks)?;
        }
        Ok(())
    }

    fn record(
        &mut self,
        host: usize,
        at: Instant,
        frame: &[u8],
        remarks: (CaptureDirection, Option<&str>),
    ) -> Result<(), Error> {
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let Some(bytes) = frame::ip_bytes(frame) else { return Ok(()) };
        let time = at - Instant::ZERO;
        let written = capture.write_ip(host as u32, time, bytes, remarks);
        written.map_err(Error::io("writing a capture"))
    }
}

impl<M: Machine> Host<M> {
    /// When the host is to run next.
    fn next(&self) -> Option<Instant> {
        match &self.node {
            Node::Kernel(kernel) => kernel.next().map(Instant::from_nanos),
            Node::Machine(station) => station.machine.poll_timeout(),
        }
    }
}

impl<M: Machine> Default for Simulation<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for Simulation<M> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Simulation").field("now", &self.now).finish_non_exhaustive()
    }
}
