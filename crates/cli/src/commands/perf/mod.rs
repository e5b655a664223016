//! `rexmit perf`: load between two programs, and what it measures.

mod bulk;
mod recv;
mod send;

use std::time::Duration;

use clap::{Args, Subcommand};
use rexmit_lab::load::result::Sent;
use rexmit_lab::load::{Lingering, LoadError};

use super::examples;
use crate::carry::LINGER;
use crate::failure::{Failure, Kind, Outcome};
use crate::signals::{Signals, after};

/// Measure latency of many thin streams, or throughput, between two machines.
///
/// Start the receiver first. Latencies mean something only between two programs with the same
/// CLOCK_MONOTONIC: on one machine, for example through `rexmit emulate`.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf recv --listen 127.0.0.1:9899 --out latency.csv
  rexmit perf send --to 127.0.0.1:9899 --connections 100 --duration 60s
  rexmit perf bulk recv --listen 127.0.0.1:9899
  rexmit perf bulk send --to 127.0.0.1:9899 --duration 10s"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Recv(recv::Arguments),
    Send(send::Arguments),
    Bulk(bulk::Arguments),
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    match arguments.command {
        Command::Recv(arguments) => recv::run(&arguments),
        Command::Send(arguments) => send::run(&arguments),
        Command::Bulk(arguments) => bulk::run(&arguments),
    }
}

/// Ready when somebody asks to stop, or after `duration`.
async fn stop_after(signals: &Signals, duration: Option<Duration>) {
    tokio::select! {
        () = signals.stop() => {}
        () = after(duration) => {}
    }
}

/// Stays for a receiver that did not hear the end, and says whether everything was delivered.
async fn end(sent: &Sent, lingering: Lingering) -> Outcome {
    lingering.linger(LINGER).await;
    if sent.undelivered > 0 || sent.broken > 0 {
        let Sent { undelivered, broken, .. } = sent;
        let message = format!(
            "{broken} connections broke, {undelivered} messages were not delivered: check that the \
             receiver is running and the network"
        );
        return Err(Failure::new(Kind::Peer, message));
    }
    Ok(())
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Bind(error) => error.into(),
            LoadError::Connect(error) => error.into(),
            LoadError::Stopped => Self::new(Kind::Interrupted, error),
            LoadError::Io(error) => error.into(),
        }
    }
}
