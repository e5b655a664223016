//! The exchange itself: connect, send and receive at the same time, shut down, report.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use workload::{Options, Report, Role, Sender, Verifier};

use crate::out_of_the_blue;
use crate::packet::Ending;
use crate::stack::{Notice, Stack};
use crate::udp::Udp;

/// The most bytes that may be queued in a stack before it gets the next message: enough to keep it busy, but few enough
/// that no socket buffer overflows by accident.
const QUEUE_LIMIT: usize = 64 * 1024;

/// The longest single wait.
const TIME_LIMIT: Duration = Duration::from_millis(50);

/// The most packets processed before the stack may answer.
const INPUT_BATCH: usize = 64;

/// Runs `stack` as `options` require, prints the report, and does not return.
pub fn run<S: Stack>(options: &Options, stack: S) -> ! {
    let mut exchange = Exchange::new(options, stack).unwrap_or_else(|error| {
        eprintln!("cannot bind {}: {error}", options.local);
        std::process::exit(2);
    });
    let started = Instant::now();
    let error = exchange.until_end(started).err();
    let report = exchange.report(started.elapsed(), error);
    println!("{report}");
    if options.role == Role::Client && exchange.ending.has_shutdown_complete {
        leave_with_the_input(report.exit_code());
        let _ = exchange.linger();
    }
    std::process::exit(report.exit_code());
}

/// Ends the process at the end of its standard input.
fn leave_with_the_input(code: i32) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        std::process::exit(code);
    });
}

struct Exchange<'a, S> {
    options: &'a Options,
    stack: S,
    udp: Udp,
    sender: Sender,
    verifier: Verifier,
    ending: Ending,
    sent: u32,
    is_connected: bool,
    is_shutting_down: bool,
    closed: Option<Option<String>>,
}

impl<'a, S: Stack> Exchange<'a, S> {
    fn new(options: &'a Options, stack: S) -> io::Result<Self> {
        Ok(Self {
            udp: Udp::bind(options.local, options.remote.filter(|_| options.role == Role::Client))?,
            sender: Sender::new(options.outgoing(), options.fault),
            verifier: Verifier::new(options.incoming()),
            ending: Ending::default(),
            sent: 0,
            is_connected: false,
            is_shutting_down: false,
            closed: None,
            options,
            stack,
        })
    }

    fn until_end(&mut self, started: Instant) -> Result<(), String> {
        if let (Role::Client, Some(remote)) = (self.options.role, self.options.remote) {
            self.stack.connect(started, remote);
        }
        while !self.is_over() {
            if started.elapsed() > self.options.timeout {
                return Err("timeout".into());
            }
            self.fill()?;
            self.transmit();
            self.wait().map_err(|error| format!("socket: {error}"))?;
            self.take_notices();
            self.shut_down_when_done();
        }
        self.transmit();
        match self.closed.take().flatten() {
            Some(error) if !self.ending.has_shutdown_complete => Err(error),
            _ => Ok(()),
        }
    }

    /// Whether the association is over: SHUTDOWN COMPLETE ends it on both sides, even if the stack does not report it.
    fn is_over(&self) -> bool {
        self.closed.is_some() || self.ending.has_shutdown_complete
    }

    fn fill(&mut self) -> Result<(), String> {
        while self.is_connected && self.closed.is_none() && self.stack.queued() < QUEUE_LIMIT {
            let Some(next) = self.sender.next() else { break };
            self.stack.send(next.stream, next.is_unordered, next.payload)?;
            self.sent += 1;
        }
        Ok(())
    }

    fn transmit(&mut self) {
        while let Some(packet) = self.stack.poll_transmit(Instant::now()) {
            self.ending.on_packet(&packet);
            self.udp.send(&packet);
        }
    }

    fn wait(&mut self) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let now = Instant::now();
        let due =
            self.stack.poll_timeout().map_or(TIME_LIMIT, |at| at.saturating_duration_since(now));
        let mut received = self.udp.wait(due.min(TIME_LIMIT))?;
        let mut room = INPUT_BATCH;
        while let Some((from, packet)) = received {
            self.ending.on_packet(packet);
            self.stack.handle_input(Instant::now(), from, packet);
            room -= 1;
            received = if room > 0 { self.udp.take()? } else { None };
        }
        let now = Instant::now();
        if self.stack.poll_timeout().is_some_and(|at| at <= now) {
            self.stack.handle_timeout(now);
        }
        Ok(())
    }

    fn take_notices(&mut self) {
        while let Some(notice) = self.stack.poll_notice() {
            match notice {
                Notice::Connected => self.is_connected = true,
                Notice::Message { stream, payload } => self.verifier.on_delivery(stream, &payload),
                Notice::Closed(error) => self.closed = Some(error),
            }
        }
    }

    fn shut_down_when_done(&mut self) {
        if self.options.role == Role::Client
            && self.is_connected
            && !self.is_shutting_down
            && self.sender.remaining() == 0
            && self.verifier.is_complete()
            && self.stack.is_acknowledged()
        {
            self.is_shutting_down = true;
            self.stack.shutdown();
        }
    }

    fn report(&self, elapsed: Duration, error: Option<String>) -> Report {
        Report {
            implementation: S::NAME,
            role: self.options.role,
            sent: self.sent,
            counts: self.verifier.counts(),
            is_graceful: self.ending.has_shutdown_complete && !self.ending.has_abort,
            own: Vec::new(),
            elapsed,
            error,
        }
    }

    fn linger(&mut self) -> io::Result<()> {
        let until = Instant::now() + self.options.linger;
        while Instant::now() < until {
            let answer = self.udp.wait(TIME_LIMIT)?.and_then(|(_, p)| out_of_the_blue::answer(p));
            if let Some(answer) = answer {
                self.udp.send(&answer);
            }
        }
        Ok(())
    }
}
