//! The handle of a relay's thread and of the thread that writes its capture.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::capture::{Output, Recorder, WriterThread};
use super::error::EmulatorError;
use super::relay::{Counts, Link, Relay, lock};
use super::statistics::EmulatorStatistics;

/// A running relay. Dropping it stops it.
#[derive(Debug)]
pub(super) struct Running {
    counts: Arc<Mutex<Counts>>,
    waker: Arc<mio::Waker>,
    thread: Option<JoinHandle<io::Result<()>>>,
    capture: Option<WriterThread>,
}

impl Running {
    pub(super) fn start<L>(relay: Relay<L>) -> Result<Self, EmulatorError>
    where
        L: Link<Tag: Send> + Send + 'static,
    {
        Self::spawn(relay, None)
    }

    pub(super) fn start_capturing<L>(
        mut relay: Relay<L>,
        output: Output,
    ) -> Result<Self, EmulatorError>
    where
        L: Link<Tag: Send> + Send + 'static,
    {
        let (recorder, writer) = Recorder::start(output)?;
        relay.set_recorder(recorder);
        Self::spawn(relay, Some(writer))
    }

    fn spawn<L>(relay: Relay<L>, capture: Option<WriterThread>) -> Result<Self, EmulatorError>
    where
        L: Link<Tag: Send> + Send + 'static,
    {
        let (counts, waker) = (relay.counts(), relay.waker());
        let thread = std::thread::Builder::new()
            .name("rexmit-emulator".into())
            .spawn(move || relay.run())?;
        Ok(Self { counts, waker, thread: Some(thread), capture })
    }

    pub(super) fn statistics(&self) -> EmulatorStatistics {
        lock(&self.counts).snapshot()
    }

    pub(super) fn finish_capture(&mut self) -> io::Result<()> {
        let Some(writer) = self.capture.take() else { return Ok(()) };
        // The writer ends when the relay is gone.
        self.join()?;
        join(writer)
    }

    pub(super) fn stop(mut self) -> io::Result<EmulatorStatistics> {
        self.finish_capture()?;
        self.join()?;
        Ok(self.statistics())
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.waker.wake()?;
        join(thread)
    }
}

fn join(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // The receiver is gone.
            let _ = self.finish_capture();
            let _ = self.join();
        }
    }
}
