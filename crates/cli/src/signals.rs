//! The wishes of the person at the keyboard, or of a supervisor: SIGINT and SIGTERM.

use std::io;
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Kind};

/// SIGINT and SIGTERM, taken over from the system, which would end the process.
#[derive(Clone)]
pub(crate) struct Signals(watch::Receiver<Option<Signal>>);

impl Signals {
    /// The first signal from now on asks to stop, the second one ends the process at once.
    pub(crate) fn new() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (stopped, stop) = watch::channel(None);
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::INT,
                    _ = terminate.recv() => Signal::TERM,
                };
                if stopped.send_replace(Some(signal)).is_some() {
                    std::process::exit(Kind::Interrupted as i32);
                }
            }
        });
        Ok(Self(stop))
    }

    /// Waits until somebody asks to stop.
    pub(crate) async fn stop(&self) {
        self.signal().await;
    }

    /// As [`stop`](Self::stop); returns the signal that asked.
    pub(crate) async fn signal(&self) -> Signal {
        // The task that watches ends with the runtime, and so does whoever waits here.
        let mut stopped = self.0.clone();
        let signal = stopped.wait_for(Option::is_some).await.ok().and_then(|signal| *signal);
        signal.unwrap_or(Signal::TERM)
    }
}

/// Runs a subcommand on a runtime of one thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// Waits for `duration`, or without an end.
pub(crate) async fn after(duration: Option<Duration>) {
    match duration {
        Some(duration) => sleep_until(now() + duration).await,
        None => std::future::pending().await,
    }
}
