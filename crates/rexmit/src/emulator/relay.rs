//! The relay's thread: reads packets, lets the paths decide, sends them when they are due.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use quinn_udp::RecvMeta;
use rexmit_core::Instant;
use rexmit_netsim::path::{Arrival, PathConfig};

use super::capture::{Bound, Recorder};
use super::clients::{ClientId, Clients};
use super::direction::{Direction, Packet};
use super::lateness::LatenessHistogram;
use super::socket::{RECEIVE_BUFFER_BYTES, RECEIVE_BUFFERS, RelaySocket};
use super::{EmulatorConfig, EmulatorError, EmulatorStatistics, Lateness, Priority};
use crate::clock::{self, TimerFd};
use crate::error::BindError;

const STOP: Token = Token(0);
const TIMER: Token = Token(1);
const LISTENER: Token = Token(2);
const FIRST_CLIENT: ClientId = 3;

// What captures say about packets and drops of the emulator itself.
const REFUSED: &str = "dropped by the emulator: one client too many";
const UNSENT: &str = "dropped by the emulator: the system refused to send it";
const DAMAGED: &str = "one bit flipped";

/// The counts that the handle reads while the relay works.
#[derive(Debug, Default)]
pub(super) struct Counts {
    statistics: EmulatorStatistics,
    lateness: LatenessHistogram,
}

impl Counts {
    pub(super) fn snapshot(&self) -> EmulatorStatistics {
        EmulatorStatistics { lateness: self.lateness.snapshot(), ..self.statistics }
    }
}

/// Everything the thread owns.
#[derive(Debug)]
pub(super) struct Relay {
    server: SocketAddr,
    poll: Poll,
    timer: TimerFd,
    waker: Arc<Waker>,
    listener: RelaySocket,
    clients: Clients,
    forward: Direction,
    backward: Direction,
    /// Sockets that may have more to read: the kernel reports each only once.
    readable: Vec<Token>,
    buffers: Vec<u8>,
    refused: u64,
    raise_priority: bool,
    priority: Priority,
    counts: Arc<Mutex<Counts>>,
    recorder: Option<Recorder>,
}

impl Relay {
    pub(super) fn new(config: &EmulatorConfig) -> Result<Self, EmulatorError> {
        let direction = |name: &'static str, path: &PathConfig| {
            Direction::new(path, &config.seed.split(name), config.max_packets_under_way)
                .map_err(|source| EmulatorError::Path { direction: name, source })
        };
        let (poll, timer) = (Poll::new()?, TimerFd::new()?);
        let registry = poll.registry();
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let listener = RelaySocket::open(registry, LISTENER, config.listen)
            .map_err(|source| BindError::new(config.listen, source))?;
        Ok(Self {
            server: config.to,
            waker: Arc::new(Waker::new(registry, STOP)?),
            listener,
            clients: Clients::new(FIRST_CLIENT, config.max_clients, config.client_idle_timeout),
            forward: direction("forward", &config.forward)?,
            backward: direction("backward", &config.backward)?,
            readable: Vec::new(),
            buffers: vec![0; RECEIVE_BUFFERS * RECEIVE_BUFFER_BYTES],
            refused: 0,
            raise_priority: config.raise_priority,
            priority: Priority::Normal,
            counts: Arc::default(),
            recorder: None,
            poll,
            timer,
        })
    }

    /// Shows the recorder all packets from now on.
    pub(super) fn set_recorder(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(super) fn counts(&self) -> Arc<Mutex<Counts>> {
        Arc::clone(&self.counts)
    }

    pub(super) fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Relays until the waker is used.
    pub(super) fn run(mut self) -> io::Result<()> {
        if self.raise_priority {
            self.priority = Priority::raise();
        }
        let mut events = Events::with_capacity(256);
        while self.wait(&mut events)? {
            for token in std::mem::take(&mut self.readable) {
                if self.receive(token) {
                    self.readable.push(token);
                }
                self.deliver();
            }
            self.deliver();
            self.clients.expire(clock::now());
            self.publish();
        }
        Ok(())
    }

    /// Waits for packets to read, packets to send, or the end; false at the end.
    fn wait(&mut self, events: &mut Events) -> io::Result<bool> {
        let mut timeout = Some(Duration::ZERO);
        if self.readable.is_empty() {
            let arrivals = [self.forward.next_arrival(), self.backward.next_arrival()];
            let expiry = self.clients.next_expiry();
            self.timer.arm(arrivals.into_iter().flatten().fold(expiry, Instant::min));
            timeout = None;
        }
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            result => result?,
        }
        for event in events.iter() {
            match event.token() {
                STOP => return Ok(false),
                // Nothing to take if it was re-armed meanwhile.
                TIMER => drop(self.timer.take_expiry()),
                token if !self.readable.contains(&token) => self.readable.push(token),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Reads one round of batches from a socket. Whether there may be more.
    fn receive(&mut self, token: Token) -> bool {
        let mut buffers = std::mem::take(&mut self.buffers);
        let mut meta = [RecvMeta::default(); RECEIVE_BUFFERS];
        let socket = match token {
            LISTENER => Some(&self.listener),
            Token(id) => self.clients.client(id).map(|client| &client.socket),
        };
        // An error is either that there is nothing, or of one packet that is dropped by it.
        let received = socket.map_or(Ok(0), |socket| socket.receive(&mut buffers, &mut meta));
        let received = received.unwrap_or(0);
        let (now, offset) = (clock::now(), clock::wall_clock_offset());
        for (buffer, meta) in buffers.chunks(RECEIVE_BUFFER_BYTES).zip(&meta[..received]) {
            // A stamp from before the wall clock was set may lie anywhere but not in the future.
            let stamp = meta.timestamp.and_then(|stamp| stamp.checked_sub(offset));
            let arrival = stamp.map_or(now, |stamp| (Instant::ZERO + stamp).min(now));
            for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                self.on_packet(token, arrival, meta, bytes);
            }
        }
        self.buffers = buffers;
        received == RECEIVE_BUFFERS
    }

    fn on_packet(&mut self, from: Token, arrival: Instant, meta: &RecvMeta, bytes: &[u8]) {
        let (direction, bound, client) = if from == LISTENER {
            let Some(client) = self.sender(arrival, meta.addr) else {
                self.refused += 1;
                self.capture(arrival, (Bound::Server, Some(meta.addr)), bytes, Some(REFUSED));
                return;
            };
            (&mut self.forward, Bound::Server, client)
        } else if (meta.addr.ip(), meta.addr.port()) == (self.server.ip(), self.server.port()) {
            self.clients.touch(arrival, from.0);
            (&mut self.backward, Bound::Client, from.0)
        } else {
            return; // A stranger's: the client did not ask it anything.
        };
        let packet = Packet { client, ecn: meta.ecn, bytes: bytes.to_vec() };
        if let Some(dropped) = direction.offer(arrival, packet) {
            let address = self.clients.client(client).map(|client| client.address);
            self.capture(arrival, (bound, address), bytes, Some(dropped));
        }
    }

    /// Shows a packet to the recorder, if there is one; not those of clients forgotten since.
    fn capture(
        &mut self,
        at: Instant,
        (bound, client): (Bound, Option<SocketAddr>),
        bytes: impl Into<Vec<u8>>,
        comment: Option<&'static str>,
    ) {
        if let (Some(recorder), Some(client)) = (&mut self.recorder, client) {
            recorder.record(at, (bound, client), bytes.into(), comment);
        }
    }

    /// The client with this address, if need be a new one; `None` if there are too many.
    fn sender(&mut self, now: Instant, address: SocketAddr) -> Option<ClientId> {
        if let Some(id) = self.clients.find(now, address) {
            return Some(id);
        }
        let any: SocketAddr = match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let registry = self.poll.registry();
        let open = |id| RelaySocket::open(registry, Token(id), any);
        // No descriptor left: one client too many as well.
        self.clients.insert(now, address, open).ok().flatten()
    }

    /// Sends what is due in both directions.
    fn deliver(&mut self) {
        while let Some(arrival) = self.forward.poll_arrival(clock::now()) {
            self.send(Bound::Server, arrival);
        }
        while let Some(arrival) = self.backward.poll_arrival(clock::now()) {
            self.send(Bound::Client, arrival);
        }
    }

    /// Sends a packet that is due.
    fn send(&mut self, bound: Bound, arrival: Arrival<Packet>) {
        let Packet { client, ecn, bytes } = arrival.packet;
        let client = self.clients.client(client);
        let sent = client.map(|client| match bound {
            Bound::Server => client.socket.send(self.server, ecn, &bytes),
            Bound::Client => self.listener.send(client.address, ecn, &bytes),
        });
        let address = client.map(|client| client.address);
        let now = clock::now();
        let comment = if let Some(Ok(())) = sent {
            lock(&self.counts).lateness.record(arrival.at, now);
            arrival.corruption.map(|_| DAMAGED)
        } else {
            match bound {
                Bound::Server => self.forward.on_unsent(),
                Bound::Client => self.backward.on_unsent(),
            }
            Some(UNSENT)
        };
        self.capture(now, (bound, address), bytes, comment);
    }

    fn publish(&self) {
        let statistics = EmulatorStatistics {
            forward: self.forward.statistics(),
            backward: self.backward.statistics(),
            clients: self.clients.len(),
            refused: self.refused,
            uncaptured: self.recorder.as_ref().map_or(0, Recorder::missed),
            lateness: Lateness::default(),
            priority: self.priority,
        };
        lock(&self.counts).statistics = statistics;
    }
}

/// The counts are plain numbers, as valid after a panic as before it.
pub(super) fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
