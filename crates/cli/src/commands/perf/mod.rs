//! `rexmit perf`: generate load between two programs and measure it.

mod bulk;
mod ends;
mod recv;
mod send;
mod sight;

use clap::{Args, Subcommand};

use crate::commands::examples::examples;
use crate::failure::Outcome;

/// Measure latency of many thin streams, or throughput, between two machines.
///
/// Start the receiver first. Latencies are valid only if both programs use the same
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
