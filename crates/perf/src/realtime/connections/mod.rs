//! Independent connections of the same kind: each sends its own messages at their times, in one
//! direction, through one emulated link that all of them share.
//!
//! rexmit is at both ends. SCTP is carried in UDP between sockets on the loopback interface, TCP as
//! IP packets through TUN devices and two routing kernels. A connection is opened at its start
//! time, and the times of its messages count from its establishment. If a connection fails or is
//! never established, its messages are undelivered; this is a result. A message that arrives twice,
//! damaged or out of order is an error and ends the run.

mod arrivals;
mod ended;
mod sctp;
mod sender;
mod tcp;

use std::error::Error;
use std::io;
use std::panic::resume_unwind;
use std::thread;

use rexmit::emulator::Priority;
use rexmit_core::trace::TraceSink;
use rexmit_lab::connections::{Connections, Ends, Measured, Sockets, SocketsError};
use rexmit_lab::scenario::{RunOutcome, Scenario};
use rustix::io::Errno;
use tokio::runtime::Builder;

use super::error::RealtimeError;
use crate::kernel;

/// The sockets and devices of this machine, and kernels that it boots.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealSockets;

impl Sockets for RealSockets {
    /// Runs `connections` in a thread of its own.
    fn run(
        &self,
        connections: &Connections,
        trace: &mut (dyn FnMut() -> Box<dyn TraceSink> + Send),
    ) -> Result<Measured, SocketsError> {
        let run = || {
            Priority::raise();
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(measure(connections, trace))
        };
        // The better priority ends with the thread.
        let measured = thread::scope(|scope| scope.spawn(run).join());
        measured.unwrap_or_else(|panic| resume_unwind(panic)).map_err(in_words)
    }

    fn run_in_kernel(&self, scenario: &Scenario, seed: u64) -> Result<RunOutcome, SocketsError> {
        kernel::run(scenario, seed)
    }
}

async fn measure(
    connections: &Connections,
    trace: impl FnMut() -> Box<dyn TraceSink>,
) -> Result<Measured, RealtimeError> {
    match &connections.ends {
        Ends::Sctp { sender, receiver, unordered } => {
            let link = sctp::Link::new(connections, sender, receiver.clone())?;
            sctp::run(connections, link, *unordered, trace).await
        }
        Ends::Tcp { sender, receiver } => {
            let place = tcp::Place::new(connections, sender.clone(), receiver.clone())?;
            tcp::run(connections, place, trace).await
        }
    }
}

fn in_words(error: RealtimeError) -> SocketsError {
    match error {
        RealtimeError::Network(error) if error.is_not_permitted() => {
            SocketsError::NotPermitted(error.to_string())
        }
        _ if is_out_of_files(&error) => SocketsError::Failed(format!(
            "{error}: use fewer `connections`, or raise the limit on open files (`ulimit -n`)"
        )),
        _ => SocketsError::Failed(error.to_string()),
    }
}

/// Whether the error means that the limit on open files is reached.
fn is_out_of_files(error: &(dyn Error + 'static)) -> bool {
    let system = error.downcast_ref::<io::Error>();
    system.is_some_and(|error| error.raw_os_error() == Some(Errno::MFILE.raw_os_error()))
        || error.source().is_some_and(is_out_of_files)
}
