//! One kernel in a simulation: it runs when the simulation says so, until it waits for a time.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;

use crate::clock::{ClockSocket, Message, Op};
use crate::config::KernelConfig;
use crate::device::Device;
use crate::error::{Error, Failure};
use crate::process::{Process, Started};
use crate::vhost::{self, DeviceSocket, Request};

/// The time of the first event in a kernel, in nanoseconds since 1970: arbitrary, but always the same.
const EPOCH: u64 = 1_700_000_000_000_000_000;
/// Requests for times from here on are for "never": the kernel uses the largest signed number.
const NEVER: u64 = i64::MAX as u64;

#[derive(Clone, Copy, Debug)]
enum State {
    /// The first message has arrived, and is acknowledged when the kernel runs for the first time.
    Started(Message),
    Waiting,
    Ended,
}

/// A frame that a kernel has sent, and when, in nanoseconds.
pub(crate) type Sent = (u64, Vec<u8>);

#[derive(Debug)]
pub(crate) struct Kernel {
    name: String,
    limit: Duration,
    process: Process,
    clock: ClockSocket,
    listener: UnixListener,
    socket: Option<DeviceSocket>,
    device: Device,
    state: State,
    /// The time at which the kernel is to run.
    request: Option<u64>,
    /// The time of the kernel's last message, or of the last one to it, in nanoseconds.
    now: u64,
    /// Whether the kernel may advance without asking.
    is_free: bool,
    sent: Vec<Sent>,
}

/// The next step of a kernel.
enum Incoming {
    Clock(Message),
    Device(vhost::Message),
    /// The kernel connects to its network device.
    Connects,
    /// The kernel has ended.
    End,
}

impl Kernel {
    /// Boots a kernel, which then waits for its first run.
    pub(crate) fn boot(config: &KernelConfig) -> Result<Self, Error> {
        let what = format!("starting kernel {}", config.name);
        let Started { process, clock, device: listener } =
            Process::start(config).map_err(Error::io(what))?;
        let limit = config.limit;
        let failed = |failure, process: &Process| named(&config.name, limit, process, failure);
        let connected = accept_clock(&process, &clock, limit);
        let connected = connected.and_then(|stream| ClockSocket::new(stream, limit));
        let mut clock = connected.map_err(|failure| failed(failure, &process))?;
        let start = clock.receive().map_err(|failure| failed(failure, &process))?;
        if start.op != Op::Start {
            let failure = Failure::Protocol(format!("its first message is {start:?}"));
            return Err(failed(failure, &process));
        }
        let device = Device::new(config.mac, limit).map_err(|failure| failed(failure, &process))?;
        Ok(Self {
            name: config.name.clone(),
            limit,
            process,
            clock,
            listener,
            socket: None,
            device,
            state: State::Started(start),
            request: None,
            now: 0,
            is_free: false,
            sent: Vec::new(),
        })
    }

    /// Sets the time of the first run, in nanoseconds.
    pub(crate) fn begin_at(&mut self, now: u64) {
        self.now = now;
    }

    /// The time, in nanoseconds, at which the kernel is to run next.
    pub(crate) fn next(&self) -> Option<u64> {
        match self.state {
            State::Started(_) => Some(self.now),
            State::Waiting => self.request,
            State::Ended => None,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    pub(crate) fn shared(&self) -> &Path {
        self.process.shared()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs the kernel from `now` on, until it waits. It advances by itself to times before `free_until`, but to none
    /// after a frame that it sends. Returns the frames that it has sent.
    pub(crate) fn run(&mut self, now: u64, free_until: u64) -> Result<Vec<Sent>, Error> {
        self.try_run(now, free_until).map_err(|failure| self.named(failure))?;
        Ok(std::mem::take(&mut self.sent))
    }

    /// Gives `frames` to the waiting kernel at `now`; returns how many found no room. The kernel then asks for a run at this time.
    pub(crate) fn deliver(&mut self, now: u64, frames: &[Vec<u8>]) -> Result<u64, Error> {
        self.try_deliver(now, frames).map_err(|failure| self.named(failure))
    }

    fn named(&self, failure: Failure) -> Error {
        named(&self.name, self.limit, &self.process, failure)
    }

    fn try_run(&mut self, now: u64, free_until: u64) -> Result<(), Failure> {
        self.now = now;
        self.request = None;
        match self.state {
            State::Started(start) => {
                let nothing = File::open("/dev/null")?;
                self.clock.acknowledge_start(start, nothing.as_fd())?;
            }
            State::Waiting => {
                self.is_free = free_until > now;
                if self.is_free {
                    self.clock.command(Op::FreeUntil, free_until)?;
                }
                self.clock.command(Op::Run, now)?;
            }
            State::Ended => return Ok(()),
        }
        loop {
            match self.incoming()? {
                Incoming::Clock(message) => {
                    self.on_clock(message)?;
                    if message.op == Op::Wait {
                        break;
                    }
                }
                Incoming::Device(message) => self.on_device(message)?,
                Incoming::Connects => {
                    let stream = accept(&self.listener, self.limit)?;
                    self.socket = Some(DeviceSocket::new(stream, self.limit)?);
                }
                Incoming::End => return self.end(),
            }
        }
        self.state = State::Waiting;
        self.notify()
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.state = State::Ended;
        let status = self.process.wait()?;
        if status.success() { Ok(()) } else { Err(Failure::Closed("it was not switched off")) }
    }

    fn on_clock(&mut self, message: Message) -> Result<(), Failure> {
        let mut time = 0;
        match message.op {
            Op::Request => self.request = Some(message.time).filter(|&time| time < NEVER),
            Op::Get => time = self.now,
            Op::Update if message.time < self.now => {
                let what = format!("its clock goes back from {} to {}", self.now, message.time);
                return Err(Failure::Protocol(what));
            }
            Op::Update => self.now = message.time,
            Op::GetTimeOfDay => time = EPOCH.saturating_add(self.now),
            Op::Wait | Op::Broadcast => {}
            Op::Ack | Op::Start | Op::Run | Op::FreeUntil => {
                return Err(Failure::Protocol(format!("{message:?} was not expected")));
            }
        }
        self.clock.acknowledge(message, time)
    }

    fn on_device(&mut self, mut message: vhost::Message) -> Result<(), Failure> {
        let answer = self.device.handle(&mut message)?;
        if message.request == Request::VringKick {
            let frames = self.device.transmitted()?;
            if !frames.is_empty() && self.is_free {
                // Others may react to the frames before the kernel's time is next asked for, and the kernel itself is
                // notified at this time that they are sent.
                self.clock.command(Op::FreeUntil, self.now)?;
                self.is_free = false;
            }
            self.sent.extend(frames.into_iter().map(|frame| (self.now, frame)));
        }
        let has_answer = matches!(
            message.request,
            Request::GetFeatures | Request::GetProtocolFeatures | Request::GetConfig
        );
        match &mut self.socket {
            Some(socket) if has_answer || message.needs_reply => socket.reply(&message, &answer),
            _ => Ok(()),
        }
    }

    fn try_deliver(&mut self, now: u64, frames: &[Vec<u8>]) -> Result<u64, Failure> {
        self.now = now;
        let mut lost = 0;
        for frame in frames {
            let has_room = matches!(self.state, State::Waiting) && self.device.deliver(frame)?;
            lost += u64::from(!has_room);
        }
        self.notify()?;
        Ok(lost)
    }

    /// Notifies the waiting kernel of queues that have changed. It asks for the time and for a run, then it answers.
    fn notify(&mut self) -> Result<(), Failure> {
        while let Some(index) = self.device.next_call()? {
            let Some(requests) = &mut self.device.requests else { return Ok(()) };
            requests.call(index)?;
            loop {
                let fds = [self.clock.as_fd(), requests.as_fd()];
                let [has_message, _] = readable(fds, self.limit)?;
                if !has_message {
                    requests.called()?;
                    break;
                }
                let message = self.clock.receive()?;
                match message.op {
                    Op::Get => self.clock.acknowledge(message, self.now)?,
                    Op::Request => {
                        self.request = Some(message.time).filter(|&time| time < NEVER);
                        self.clock.acknowledge(message, 0)?;
                    }
                    _ => {
                        let what = format!("{message:?} was not expected after a notification");
                        return Err(Failure::Protocol(what));
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for a message of the kernel. Messages of its device come before those of its clock that were sent later: when poll
    /// looks at the device, those sent before a message of the clock have arrived.
    fn incoming(&mut self) -> Result<Incoming, Failure> {
        let device = self.socket.as_ref().map_or(self.listener.as_fd(), AsFd::as_fd);
        let [is_clock, is_device] = readable([self.clock.as_fd(), device], self.limit)?;
        if is_device {
            let Some(socket) = &mut self.socket else { return Ok(Incoming::Connects) };
            if let Some(message) = socket.receive()? {
                return Ok(Incoming::Device(message));
            }
            // The kernel has closed its device, and will close its clock.
        }
        if !is_clock && !readable([self.clock.as_fd()], self.limit)?[0] {
            return Err(Failure::Silent);
        }
        match self.clock.receive() {
            Ok(message) => Ok(Incoming::Clock(message)),
            Err(Failure::Closed(_)) => Ok(Incoming::End),
            Err(failure) => Err(failure),
        }
    }
}

/// Waits until one of the descriptors is readable; says which.
fn readable<const N: usize>(
    descriptors: [std::os::fd::BorrowedFd<'_>; N],
    limit: Duration,
) -> Result<[bool; N], Failure> {
    let mut polled =
        descriptors.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN));
    let timeout = Timespec::try_from(limit).map_err(|_| invalid_limit())?;
    match retry_on_intr(|| poll(&mut polled, Some(&timeout)))? {
        0 => Err(Failure::Silent),
        _ => Ok(polled.map(|polled| !polled.revents().is_empty())),
    }
}

fn invalid_limit() -> Failure {
    Failure::Io(io::Error::new(io::ErrorKind::InvalidInput, "the limit is too long"))
}

fn accept(
    listener: &UnixListener,
    limit: Duration,
) -> Result<std::os::unix::net::UnixStream, Failure> {
    readable([listener.as_fd()], limit)?;
    Ok(listener.accept()?.0)
}

/// The connection of a kernel that boots.
fn accept_clock(
    process: &Process,
    listener: &UnixListener,
    limit: Duration,
) -> Result<std::os::unix::net::UnixStream, Failure> {
    /// How often it is looked at whether the kernel still runs.
    const STEP: Duration = Duration::from_millis(100);
    let mut left = limit;
    loop {
        match accept(listener, STEP.min(left)) {
            Err(Failure::Silent) if left > STEP => left -= STEP,
            accepted => return accepted,
        }
        if process.has_ended()? {
            return Err(Failure::Closed("before it had booted"));
        }
    }
}

fn named(name: &str, limit: Duration, process: &Process, failure: Failure) -> Error {
    let (kernel, console) = (name.to_owned(), process.console());
    match failure {
        Failure::Silent => Error::Hung { kernel, limit, console },
        Failure::Closed(what) => Error::Ended { kernel, what, console },
        Failure::Protocol(what) => Error::Protocol { kernel, what },
        Failure::Io(source) => Error::Io { what: format!("talking to kernel {name}"), source },
    }
}
