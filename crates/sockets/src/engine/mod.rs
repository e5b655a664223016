//! The engine: one thread that owns the sockets for packets, all endpoints, and the other ends of the programs' sockets.
//!
//! [`Engine::run`] waits for descriptors and deadlines. `requests` has the connections over which calls arrive, `calls`
//! executes them; `transfer` moves messages between pairs and SCTP; `events` acts upon SCTP's events; `options` has the
//! table of socket options. `ports` owns the endpoints and their deadlines, `host` knows the addresses of this host, `socket` is the state of a socket; `autoclose`
//! and `idle` end associations without data; `lingers` has the calls of `close` that wait for the end of one.

mod autoclose;
mod calls;
mod events;
mod host;
mod idle;
mod lingers;
mod notifications;
mod option_names;
mod options;
mod pair;
mod ports;
mod requests;
mod settings;
mod socket;
mod transfer;
mod wire;
mod wires;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rexmit_core::{Instant, Machine};
use rexmit_sctp::Endpoint;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::protocol::name::EngineNumber;
use crate::transports::Transports;
use autoclose::Autoclose;
use ports::Ports;
use requests::Requests;
use socket::{Association, Socket};
use wires::{MAX_WIRES, Wires};

/// The most sockets of all programs together.
pub const MAX_SOCKETS: usize = 16_384;
/// The most descriptors that an engine needs: for sockets, requests, processes, and itself.
pub const MAX_DESCRIPTORS: u64 =
    (MAX_SOCKETS + requests::MAX_REQUESTS + requests::MAX_PROGRAMS + 64) as u64;
/// Events of one wait.
const MAX_EVENTS: usize = 256;
/// The most batches of packets received in one round, so that programs get their turn.
const RECEIVED_PER_ROUND: usize = 16;
/// The most rounds of packets from this machine to itself before a call is served: a handshake needs fewer.
const LOCAL_ROUNDS: usize = 8;
/// The most packets of an endpoint sent in one round.
const SENT_PER_ROUND: usize = 256;
/// The engine ends after this time without a program or an association.
const IDLE_TIME: Duration = Duration::from_millis(500);
/// The time after which requests are read again for which there was no room.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);
/// The last token of a socket for packets.
const LAST_WIRE_TOKEN: u64 = MAX_WIRES - 1;
/// The token of the listening socket for requests.
const REQUESTS_TOKEN: u64 = MAX_WIRES;
/// The first token of requests and programs; those of sockets are below.
const FIRST_REQUEST_TOKEN: u64 = 1 << 62;

/// An `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) i32);

impl From<rustix::io::Errno> for Failure {
    fn from(error: rustix::io::Errno) -> Self {
        // The engine has no descriptor left; the program may have.
        let is_own = error == rustix::io::Errno::MFILE;
        Self(if is_own { libc::ENFILE } else { error.raw_os_error() })
    }
}

/// The result of a call: the value for the program.
pub(crate) type Outcome = Result<Vec<u8>, Failure>;

/// An engine: see the module.
#[derive(Debug)]
pub struct Engine {
    number: EngineNumber,
    epoll: OwnedFd,
    wires: Wires,
    transports: Transports,
    requests: Requests,
    ports: Ports,
    sockets: BTreeMap<u64, Socket>,
    associations: BTreeMap<u32, Association>,
    /// The number of an association, by port and the endpoint's id.
    numbers: BTreeMap<(u16, u64), u32>,
    last_number: u32,
    autoclose: Autoclose,
    now: Instant,
    /// When the last program exited.
    idle_since: Option<Instant>,
    packet: Vec<u8>,
    buffer: Vec<u8>,
}

impl Engine {
    /// An engine that listens for requests at the abstract name of `number`, and speaks SCTP over UDP from `udp_port`,
    /// and over IP if `transports` and the system allow it.
    ///
    /// # Errors
    /// When a name or port is taken, or the system has no descriptor left.
    pub fn new(number: EngineNumber, udp_port: u16, transports: Transports) -> io::Result<Self> {
        let requests = Requests::listen(number)?;
        let wires = Wires::open(udp_port, transports.may_use_ip())?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        wires.watch(&epoll)?;
        epoll::add(
            &epoll,
            requests.listener(),
            EventData::new_u64(REQUESTS_TOKEN),
            EventFlags::IN,
        )?;
        Ok(Self {
            number,
            epoll,
            wires,
            transports,
            requests,
            ports: Ports::default(),
            sockets: BTreeMap::new(),
            associations: BTreeMap::new(),
            numbers: BTreeMap::new(),
            // Small numbers have a meaning of their own (SCTP_FUTURE_ASSOC, SCTP_ALL_ASSOC).
            last_number: 2,
            autoclose: Autoclose::default(),
            now: monotonic(),
            idle_since: None,
            packet: Vec::new(),
            buffer: pair::buffer(),
        })
    }

    /// The UDP port.
    #[must_use]
    pub fn udp_port(&self) -> u16 {
        self.wires.udp_port()
    }

    /// Serves programs until the last one has gone and its associations have ended.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        self.note_idleness();
        while self.idle_since.is_none_or(|since| self.now - since < IDLE_TIME) {
            let timeout = self.timeout();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, buffer, Some(&timeout)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.now = monotonic();
            for event in events.drain(..) {
                self.on_ready(event.data.u64(), event.flags);
            }
            if self.requests.is_paused() {
                self.accept_requests();
            }
            self.ports.expire(self.now);
            self.close_idle();
            self.settle();
            self.note_idleness();
        }
        Ok(())
    }

    fn on_ready(&mut self, token: u64, flags: EventFlags) {
        match token {
            ..=LAST_WIRE_TOKEN => {
                if flags.contains(EventFlags::OUT) {
                    self.wires.unblock(token);
                    self.wires.watch_room(&self.epoll);
                }
                self.receive_packets();
            }
            REQUESTS_TOKEN => self.accept_requests(),
            FIRST_REQUEST_TOKEN.. => self.on_request_ready(token),
            socket => self.on_socket_ready(socket, flags),
        }
    }

    /// Whether there were any.
    fn receive_packets(&mut self) -> bool {
        for round in 0..RECEIVED_PER_ROUND {
            let Self { wires, ports, now, .. } = self;
            let mut misdirected = None;
            let has_received = wires.receive(|route, ecn, packet| {
                if !ports.receive(*now, (route, ecn), packet) {
                    misdirected = Some((route, packet.to_vec()));
                }
            });
            if let Some((route, packet)) = misdirected {
                self.refuse(route, &packet);
            }
            if !has_received {
                return round != 0;
            }
        }
        true
    }

    /// Processes all pending packets of this machine to itself, and the answers to them. A call then finds the state
    /// that it would find with SCTP in a kernel, which processes such packets at once.
    pub(super) fn catch_up(&mut self) {
        for _ in 0..LOCAL_ROUNDS {
            self.settle();
            if !self.receive_packets() {
                return;
            }
        }
    }

    /// Answers a packet for an unused port (RFC 9260 §8.4), at most one per batch, which bounds the work.
    fn refuse(&mut self, route: rexmit_core::Route, packet: &[u8]) {
        let Some(port) = destination_port(packet).filter(|port| *port != 0) else { return };
        let config = rexmit_sctp::EndpointConfig::default().port(port);
        // It sends no cookie, so that its secrets are never used.
        let seed = rexmit_core::Seed::from_u64(0);
        let Ok(mut nobody) = Endpoint::new(config, &seed) else { return };
        nobody.handle_input(self.now, route, packet);
        while let Some(route) = nobody.poll_transmit(self.now, &mut self.packet) {
            self.wires.send(route, nobody.transmit_ecn(), &self.packet);
        }
        self.wires.flush();
    }

    /// Handles the events of all ports, and transmits.
    fn settle(&mut self) {
        let mut again = Vec::new();
        while let Some(number) = self.ports.take_touched() {
            self.take_events(number);
            let Self { ports, wires, packet, now, .. } = self;
            if let Some(port) = ports.get_mut(number) {
                let mut sent = 0;
                while !wires.is_blocked() && sent < SENT_PER_ROUND {
                    let Some(route) = port.endpoint.poll_transmit(*now, packet) else { break };
                    wires.send(route, port.endpoint.transmit_ecn(), packet);
                    sent += 1;
                }
                if sent == SENT_PER_ROUND || wires.is_blocked() {
                    again.push(number);
                }
            }
            self.take_events(number);
            self.ports.settle(number);
        }
        self.wires.flush();
        self.wires.watch_room(&self.epoll);
        for number in again {
            self.ports.touch_again(number);
        }
    }

    fn timeout(&self) -> Timespec {
        let wait = if self.ports.has_touched() && !self.wires.is_blocked() {
            Duration::ZERO
        } else {
            let idle = self.idle_since.map(|since| since + IDLE_TIME);
            let accept = self.requests.is_paused().then_some(self.now + ACCEPT_AGAIN);
            let other = self.autoclose.next_deadline().into_iter().chain(idle).chain(accept);
            let next = self.ports.next_deadline().into_iter().chain(other).min();
            next.map_or(Duration::from_secs(60), |at| at - self.now)
        };
        Timespec { tv_sec: wait.as_secs().min(60) as i64, tv_nsec: wait.subsec_nanos().into() }
    }

    /// Notes since when nothing uses the engine.
    fn note_idleness(&mut self) {
        let is_idle =
            self.sockets.is_empty() && self.ports.is_empty() && !self.requests.has_programs();
        self.idle_since = is_idle.then(|| self.idle_since.unwrap_or(self.now));
    }
}

/// Ensures that processes started from now on inherit only the standard descriptors of this one.
///
/// # Errors
/// When the kernel does not know how (before Linux 5.11).
pub fn keep_descriptors() -> io::Result<()> {
    // SAFETY: it changes no descriptor but for `exec`.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Ignores the signals that ask a process to end. Service managers and terminals send them to all processes of a service or
/// job, whose programs need the engine to say goodbye to their peers; it ends after the last of them.
pub fn outlive_programs() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        // SAFETY: no function is called.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// The SCTP port that a packet is for.
fn destination_port(packet: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(packet.get(2..4)?.try_into().ok()?))
}

fn monotonic() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
