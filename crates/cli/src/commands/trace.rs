//! `rexmit trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use rexmit_lab::traffic::{Trace, TraceError, TraceStatistics};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;

/// Analyse traces and captures.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit trace stats traces/ssh.csv.gz"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Stats(Stats),
}

/// Print statistics of a trace or capture, per flow and direction and in total.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit trace stats traces/ssh.csv.gz
  rexmit trace stats --json capture.pcapng | jq '.total[].packets_per_second'"))]
struct Stats {
    /// Trace (CSV with the columns trace,flow_id,direction,time_us,payload_bytes) or capture (pcap
    /// or pcapng), optionally compressed by gzip.
    file: PathBuf,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Command::Stats(Stats { file, format }) = &arguments.command;
    let statistics = TraceStatistics::new(&Trace::open(file)?);
    format.print(&statistics, TraceStatistics::table)
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::new(Kind::File, error)
    }
}
