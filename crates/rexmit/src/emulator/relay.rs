//! The relay's thread: reads packets, passes them to the paths, and sends them when they are due. A [`Link`] receives
//! and sends them.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use rexmit_core::Instant;
use rexmit_netsim::path::Arrival;

use super::capture::{Recorder, Shown};
use super::config::LinkConfig;
use super::direction::{Bound, Packet, Tag};
use super::error::EmulatorError;
use super::lateness::Lateness;
use super::lateness::LatenessHistogram;
use super::priority::Priority;
use super::statistics::EmulatorStatistics;
use super::two_way::TwoWay;
use crate::clock::{self, TimerFd};

const STOP: Token = Token(0);
const TIMER: Token = Token(1);
/// The first token that the link may use.
pub(super) const FIRST_TOKEN: usize = 2;

// What captures say about packets and drops of the emulator itself.
const UNSENT: &str = "dropped by the emulator: the system refused to send it";
const DAMAGED: &str = "one bit flipped";

/// The devices or sockets between which a relay carries packets.
pub(super) trait Link {
    /// The link's data about a packet on the path.
    type Tag: Tag;

    /// Reads a bounded number of packets from the readable source, and offers them to the paths. Returns
    /// whether there may be more.
    fn receive(&mut self, token: Token, paths: &mut TwoWay<Self::Tag>) -> bool;

    /// Sends a packet now or never.
    fn send(&mut self, bound: Bound, packet: &Packet<Self::Tag>) -> io::Result<()>;

    /// The form in which captures show a packet; `None` if that is not known anymore.
    fn shown(&self, bound: Bound, tag: &Self::Tag) -> Option<Shown>;

    /// When [`expire`](Self::expire) is to be called again.
    fn next_expiry(&self) -> Instant {
        Instant::FAR_FUTURE
    }

    /// Forgets clients that were idle for too long.
    fn expire(&mut self, _now: Instant) {}

    /// Adds the link's own counts.
    fn count(&self, _statistics: &mut EmulatorStatistics) {}
}

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
pub(super) struct Relay<L: Link> {
    link: L,
    paths: TwoWay<L::Tag>,
    poll: Poll,
    timer: TimerFd,
    waker: Arc<Waker>,
    /// Sources that may have more to read: the kernel reports each only once.
    readable: Vec<Token>,
    batch: Duration,
    raise_priority: bool,
    priority: Priority,
    counts: Arc<Mutex<Counts>>,
}

impl<L: Link> Relay<L> {
    /// A relay for the link created by `open`, which registers the descriptors that the link reads.
    pub(super) fn new(
        config: &LinkConfig,
        open: impl FnOnce(&Registry) -> Result<L, EmulatorError>,
    ) -> Result<Self, EmulatorError> {
        if config.batch > LinkConfig::MAX_BATCH {
            return Err(EmulatorError::BatchTooLong(config.batch));
        }
        let (poll, timer) = (Poll::new()?, TimerFd::new()?);
        let registry = poll.registry();
        registry.register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(Self {
            link: open(registry)?,
            paths: TwoWay::new(config)?,
            waker: Arc::new(Waker::new(registry, STOP)?),
            readable: Vec::new(),
            batch: config.batch,
            raise_priority: config.raise_priority,
            priority: Priority::Normal,
            counts: Arc::default(),
            poll,
            timer,
        })
    }

    /// Records all packets from now on.
    pub(super) fn set_recorder(&mut self, recorder: Recorder) {
        self.paths.set_recorder(recorder);
    }

    pub(super) const fn link(&self) -> &L {
        &self.link
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
                if self.link.receive(token, &mut self.paths) {
                    self.readable.push(token);
                }
                self.deliver();
            }
            self.deliver();
            self.link.expire(clock::now());
            self.publish();
        }
        Ok(())
    }

    /// Waits for packets to read, packets to send, or the end; false at the end.
    fn wait(&mut self, events: &mut Events) -> io::Result<bool> {
        let mut timeout = Some(Duration::ZERO);
        if self.readable.is_empty() {
            self.gather();
            self.timer.arm(self.paths.next_arrival().min(self.link.next_expiry()));
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

    /// Lets packets gather, if they are handled in batches.
    #[expect(clippy::disallowed_methods, reason = "the relay has a thread of its own")]
    fn gather(&self) {
        if !self.batch.is_zero() {
            std::thread::sleep(self.batch);
        }
    }

    /// Sends the packets that are due in both directions, and records those that were dropped from a queue.
    fn deliver(&mut self) {
        for bound in [Bound::Forward, Bound::Backward] {
            while let Some(arrival) = self.paths.poll_arrival(bound, clock::now()) {
                self.send(bound, arrival);
            }
            while let Some((packet, cause)) = self.paths.poll_dropped(bound) {
                let whose = (bound, self.link.shown(bound, &packet.tag));
                self.paths.on_left(clock::now(), whose, packet.bytes, Some(cause));
            }
        }
    }

    /// Sends a packet that is due.
    fn send(&mut self, bound: Bound, arrival: Arrival<Packet<L::Tag>>) {
        let sent = self.link.send(bound, &arrival.packet);
        let Packet { tag, bytes } = arrival.packet;
        let now = clock::now();
        let comment = if let Ok(()) = sent {
            lock(&self.counts).lateness.record(arrival.at, now);
            arrival.corruption.map(|_| DAMAGED)
        } else {
            self.paths.on_unsent(bound);
            Some(UNSENT)
        };
        self.paths.on_left(now, (bound, self.link.shown(bound, &tag)), bytes, comment);
    }

    fn publish(&self) {
        let mut statistics = EmulatorStatistics {
            forward: self.paths.forward.statistics(),
            backward: self.paths.backward.statistics(),
            uncaptured: self.paths.missed(),
            priority: self.priority,
            lateness: Lateness::default(),
            ..EmulatorStatistics::default()
        };
        self.link.count(&mut statistics);
        lock(&self.counts).statistics = statistics;
    }
}

/// Locks the counts, which remain valid after a panic of another thread.
pub(super) fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
