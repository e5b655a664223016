//! Signals that request a stop: SIGINT and SIGTERM, and SIGHUP for commands with state to restore.

use std::io;
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Kind};

/// A handler of SIGINT and SIGTERM, which would otherwise end the process.
#[derive(Clone)]
pub(crate) struct Signals(watch::Receiver<Seen>);

#[derive(Clone, Copy, Default)]
struct Seen {
    first: Option<Signal>,
    count: u32,
}

impl Signals {
    /// Installs the handler: the first signal requests a stop, the second one ends the process at
    /// once.
    pub(crate) fn new() -> io::Result<Self> {
        Self::watch(false, end_at_the_second)
    }

    /// As [`new`](Self::new), for a command that has started others: SIGHUP requests a stop, too, unless it is ignored, as under
    /// nohup.
    pub(crate) fn with_hangup() -> io::Result<Self> {
        Self::watch(!is_hangup_ignored(), end_at_the_second)
    }

    /// Installs the handler for a command with state to restore: the second signal ends
    /// [`hurry`](Self::hurry) instead of the process, and SIGHUP (the terminal was closed) requests
    /// a stop, too.
    pub(crate) fn graceful() -> io::Result<Self> {
        Self::watch(true, |_| {})
    }

    fn watch(minds_hangup: bool, on_signal: impl Fn(Seen) + Send + 'static) -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = minds_hangup.then(|| signal(SignalKind::hangup())).transpose()?;
        let (seen, signals) = watch::channel(Seen::default());
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::INT,
                    _ = terminate.recv() => Signal::TERM,
                    _ = async { hangup.as_mut().expect("asked before").recv().await },
                        if hangup.is_some() => Signal::HUP,
                };
                seen.send_modify(|seen| {
                    seen.first.get_or_insert(signal);
                    seen.count += 1;
                });
                on_signal(*seen.borrow());
            }
        });
        Ok(Self(signals))
    }

    /// Waits for the second signal.
    pub(crate) async fn hurry(&self) {
        let _ = self.0.clone().wait_for(|seen| seen.count > 1).await;
    }

    /// Waits for a signal that requests a stop.
    pub(crate) async fn stop(&self) {
        self.signal().await;
    }

    /// As [`stop`](Self::stop); returns the signal.
    pub(crate) async fn signal(&self) -> Signal {
        // The task that watches ends with the runtime, and so does every waiter.
        let mut signals = self.0.clone();
        let seen = signals.wait_for(|seen| seen.count > 0).await;
        let signal = seen.ok().and_then(|seen| seen.first);
        signal.unwrap_or(Signal::TERM)
    }
}

fn end_at_the_second(seen: Seen) {
    if seen.count > 1 {
        std::process::exit(Kind::Interrupted as i32);
    }
}

/// Whether this process was started with SIGHUP ignored (proc(5): the mask has a bit for each signal, from 1 on).
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 != 0)
}

/// Runs a subcommand on a runtime of one thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// As [`block_on`], with `threads` for the tasks if there are several.
pub(crate) fn block_on_threads<T>(
    threads: usize,
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    if threads == 1 {
        return block_on(future);
    }
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).enable_all().build()?.block_on(future)
}

/// Waits for `duration`, or forever if it is `None`.
pub(crate) async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep_until(now() + duration).await,
        None => std::future::pending().await,
    }
}
