//! The wishes of the person at the keyboard, or of a supervisor: SIGINT and SIGTERM.

use std::io;
use std::time::Duration;

use rexmit::clock::{now, sleep_until};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::{Failure, Kind};

/// SIGINT and SIGTERM, taken over from the system, which would end the process.
#[derive(Clone)]
pub(crate) struct Signals(watch::Receiver<bool>);

impl Signals {
    /// The first signal from now on asks to stop, the second one ends the process at once.
    pub(crate) fn new() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let (stopped, stop) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if stopped.send_replace(true) {
                    std::process::exit(Kind::Interrupted as i32);
                }
            }
        });
        Ok(Self(stop))
    }

    /// Waits until somebody asks to stop.
    pub(crate) async fn stop(&self) {
        // The task that watches ends with the runtime, and so does whoever waits here.
        let _ = self.0.clone().wait_for(|stopped| *stopped).await;
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
