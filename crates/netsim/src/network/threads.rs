//! A run on several threads, one for each part of the network.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use rexmit_core::{Instant, Machine};

use super::Network;
use super::crossing::Crossing;
use super::run::Livelock;

/// How often a thread looks whether others have progressed before it sleeps.
const SPINS: u32 = 5000;
/// Into how many steps a thread divides the lookahead. After each, the others see how far it is; if it were one, threads
/// could take turns instead of running at the same time.
const STEPS: u32 = 4;
/// The longest sleep.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// The state that the threads share.
struct Shared {
    lookahead: Duration,
    parts: Vec<Part>,
    /// A thread has ended early.
    has_failed: AtomicBool,
}

/// Aligned so that threads do not write to the same line of the cache.
#[repr(align(128))]
struct Part {
    /// In nanoseconds: no packet from this part arrives sooner than the lookahead after this time, but for those in mailboxes.
    clock: AtomicU64,
    /// Packets from other parts.
    mailbox: Mutex<Vec<Crossing>>,
    thread: OnceLock<Thread>,
    /// Whether the thread sleeps until another one progresses.
    is_asleep: AtomicBool,
}

impl Part {
    const fn new(now: Instant) -> Self {
        Self {
            clock: AtomicU64::new(now.as_nanos()),
            mailbox: Mutex::new(Vec::new()),
            thread: OnceLock::new(),
            is_asleep: AtomicBool::new(false),
        }
    }

    fn take(&self) -> Vec<Crossing> {
        std::mem::take(&mut self.mailbox.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    /// The parts other than this.
    fn others(&self, own: usize) -> impl Iterator<Item = &Part> {
        self.parts.iter().enumerate().filter(move |&(part, _)| part != own).map(|(_, part)| part)
    }

    /// The earliest clock of the others.
    fn clock(&self, own: usize) -> Instant {
        let clocks = self.others(own).map(|part| part.clock.load(Ordering::SeqCst));
        Instant::from_nanos(clocks.min().unwrap_or(u64::MAX))
    }

    /// Waits until the earliest clock of the others is not `before` any more, and returns it; `None` if a thread has
    /// ended early.
    fn wait(&self, own: usize, before: Option<Instant>) -> Option<Instant> {
        let mut spins = 0;
        while !self.has_failed.load(Ordering::SeqCst) {
            let clock = self.clock(own);
            if before != Some(clock) {
                return Some(clock);
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
                continue;
            }
            let is_asleep = &self.parts[own].is_asleep;
            is_asleep.store(true, Ordering::SeqCst);
            if self.clock(own) == clock {
                std::thread::park_timeout(MAX_SLEEP);
            }
            is_asleep.store(false, Ordering::SeqCst);
        }
        None
    }

    /// Sets the clock of a part, and wakes the threads that wait for it.
    fn set_clock(&self, own: usize, clock: Instant) {
        self.parts[own].clock.store(clock.as_nanos(), Ordering::SeqCst);
        for part in self.others(own) {
            if part.is_asleep.swap(false, Ordering::SeqCst)
                && let Some(thread) = part.thread.get()
            {
                thread.unpark();
            }
        }
    }

    fn fail(&self) {
        self.has_failed.store(true, Ordering::SeqCst);
        self.parts.iter().filter_map(|part| part.thread.get()).for_each(Thread::unpark);
    }
}

/// Ends the other threads if this one panics.
struct EndOthers<'a>(&'a Shared);

impl Drop for EndOthers<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail();
        }
    }
}

impl<M: Machine + Send> Network<M> {
    /// Processes all events up to and including `deadline`, as [`run_until`](Self::run_until) does with an application
    /// that ignores its notifications, on up to `threads` threads. The result is the same, byte by byte.
    ///
    /// The network is divided at links whose delay never falls below 100 µs in either direction: the longest are chosen,
    /// and each part has a thread. It stays whole, on one thread, without such links, with observers, with scheduled
    /// calls, with a capture at points of several parts, without a finite deadline, and if it was not made by
    /// [`for_threads`](Self::for_threads). Returns the number of threads. More threads than
    /// idle processors make it slower.
    ///
    /// # Errors
    /// [`Livelock`] if a host does not become idle at one instant. Other parts may then be at another time, and if hosts of
    /// several parts do not become idle, it may be any of them.
    pub fn run_on_threads(&mut self, deadline: Instant, threads: usize) -> Result<usize, Livelock> {
        let has_end = self.now < deadline && deadline < Instant::FAR_FUTURE;
        let may_divide = threads > 1 && has_end && self.agenda.is_ranked();
        let partition = may_divide.then(|| self.partition(threads)).flatten();
        let Some(partition) = partition.filter(|it| self.can_be_divided(it)) else {
            return self.run_until(deadline, |_, _| {}).map(|()| 1);
        };
        self.run_until(self.now, |_, _| {})?;
        let mut parts = self.divide(&partition);
        let shared = Shared {
            lookahead: partition.lookahead,
            parts: parts.iter().map(|_| Part::new(self.now)).collect(),
            has_failed: AtomicBool::new(false),
        };
        let results: Vec<_> = std::thread::scope(|scope| {
            let shared = &shared;
            let mut threads = Vec::new();
            for (own, part) in parts.iter_mut().enumerate() {
                let run = move || part.run_part(own, shared, deadline);
                match std::thread::Builder::new().spawn_scoped(scope, run) {
                    Ok(thread) => threads.push(thread),
                    // The system allows no more threads.
                    Err(_) => shared.fail(),
                }
            }
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
        });
        parts.iter_mut().for_each(|part| part.deliver(&shared));
        for (part, shared) in parts.iter_mut().zip(&shared.parts) {
            shared.take().into_iter().for_each(|crossing| part.receive(crossing));
        }
        self.unite(parts);
        if results.len() < partition.count {
            return self.run_until(deadline, |_, _| {}).map(|()| 1);
        }
        let mut first = Ok(partition.count);
        for result in results {
            let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            if let Err(livelock) = result
                && first.as_ref().err().is_none_or(|other: &Livelock| livelock.at < other.at)
            {
                first = Err(livelock);
            }
        }
        first
    }

    /// Runs one part, until no packet from another part can arrive by the deadline.
    fn run_part(&mut self, own: usize, shared: &Shared, deadline: Instant) -> Result<(), Livelock> {
        let _guard = EndOthers(shared);
        let _ = shared.parts[own].thread.set(std::thread::current());
        let step = shared.lookahead / STEPS;
        let mut before = None;
        // First the clocks, then the mailbox: what the others sent before they set their clocks is in it.
        while let Some(clock) = shared.wait(own, before) {
            shared.parts[own].take().into_iter().for_each(|crossing| self.receive(crossing));
            // The first instant at which a packet may still arrive.
            let open = clock + shared.lookahead;
            let next = self.next_at().unwrap_or(open).min(open);
            let limit = (open - Duration::from_nanos(1)).min(next + step).min(deadline);
            self.process(limit, &mut |_, _| {}).inspect_err(|_| shared.fail())?;
            self.deliver(shared);
            let next = self.next_at().unwrap_or(open).min(open);
            if next > deadline {
                shared.set_clock(own, Instant::FAR_FUTURE);
                self.now = self.now.max(deadline);
                break;
            }
            shared.set_clock(own, next);
            before = (next == open).then_some(clock);
        }
        Ok(())
    }

    /// Puts packets for other parts into their mailboxes.
    fn deliver(&mut self, shared: &Shared) {
        let Some(others) = &mut self.others else { return };
        for (crossings, part) in others.outbox.iter_mut().zip(&shared.parts) {
            if !crossings.is_empty() {
                part.mailbox.lock().unwrap_or_else(PoisonError::into_inner).append(crossings);
            }
        }
    }
}
