//! `rexmit trace`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use rexmit_lab::analysis::{Analysis, AnalysisError, Cause, RangeRow};
use rexmit_lab::stalls::{AssociationStalls, Stalls};
use rexmit_lab::traffic::{Sender, Trace, TraceError, TraceStatistics};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::{Format, print, printable};
use rexmit_study::page;

/// Analyse traces and captures.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit trace stats traces/ssh.csv.gz
  rexmit trace analyse capture.pcapng
  rexmit trace page logs/interactive.sqlog"))]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Stats(Stats),
    Analyse(Analyse),
    Page(Page),
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

/// Write a page with the time-sequence graphs of the longest waits in a qlog file or a capture.
///
/// For qlog files of `--qlog`, and for captures of TCP and of SCTP that is not encrypted, made at the sender. A wait lasts from
/// the first transmission of data to its acknowledgement: how long data waited for its delivery is known to the receiver only.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit demo --qlog logs && rexmit trace page logs/interactive.sqlog
  rexmit trace page sender.pcapng --out sender.html"))]
struct Page {
    /// qlog file (.sqlog) or capture (pcap or pcapng), optionally compressed by gzip.
    file: PathBuf,
    /// File to write the page to [default: FILE with .html appended].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Print what a capture shows of loss recovery: latency per byte, retransmissions by cause, duplicate ACKs, redundant copies.
///
/// For TCP, and for SCTP that is not encrypted. From a capture at the sender, latency is measured to the ACK, and
/// losses and spurious retransmissions are estimated from ACKs. With a second capture at the other end, losses and
/// spurious retransmissions are known, and the latencies to arrival and delivery are reported, too.
#[derive(Debug, Args)]
#[command(visible_alias = "analyze", after_help = examples!(
"  rexmit trace analyse sender.pcapng
  rexmit trace analyse sender.pcapng --other-end receiver.pcapng
  rexmit trace analyse sender.pcapng --ranges ranges.csv
  rexmit trace analyse --json sender.pcapng | jq '.directions[].path.loss'"))]
struct Analyse {
    /// Capture (pcap or pcapng), optionally compressed by gzip.
    file: PathBuf,
    /// A second capture, made at the same time at the other end of the connections. The shortest delay is taken to be the same in both
    /// directions, which gives the difference between the clocks.
    #[arg(long, value_name = "FILE")]
    other_end: Option<PathBuf>,
    /// Number of the connection in the file [default: all].
    #[arg(long, value_name = "N")]
    flow: Option<u32>,
    /// File to write a row per range of data to, as CSV: when the range was sent, acknowledged and received, and why it
    /// was sent again.
    #[arg(long, value_name = "FILE")]
    ranges: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::Stats(Stats { file, format }) => {
            let statistics = TraceStatistics::new(&Trace::open(file)?);
            format.print(&statistics, TraceStatistics::table)
        }
        Command::Analyse(arguments) => analyse(arguments),
        Command::Page(arguments) => write_page(arguments),
    }
}

fn analyse(arguments: &Analyse) -> Outcome {
    let mut analysis = Analysis::open(&arguments.file, arguments.other_end.as_deref())?;
    if let Some(flow) = arguments.flow {
        let known: Vec<_> = analysis.directions.iter().map(|it| it.flow.to_string()).collect();
        analysis.directions.retain(|direction| direction.flow == flow);
        if analysis.directions.is_empty() {
            let what = format!("there is no flow {flow}: choose one of {}", known.join(", "));
            return Err(Failure::new(Kind::Usage, what));
        }
    }
    if let Some(file) = &arguments.ranges {
        write_ranges(&analysis, file).map_err(|error| {
            let what = format!("{}: {error}; choose another file with --ranges", file.display());
            Failure::new(Kind::File, what)
        })?;
    }
    arguments.format.print(&analysis, Analysis::to_string)
}

fn write_page(arguments: &Page) -> Outcome {
    let stalls = Stalls::open(&arguments.file).map_err(|error| {
        // The title in the file may contain any characters.
        Failure::new(Kind::File, printable(&error.to_string()))
    })?;
    let out = arguments.out.clone().unwrap_or_else(|| {
        let mut name = arguments.file.clone().into_os_string();
        name.push(".html");
        name.into()
    });
    let page = page::trace::html(&stalls).map_err(io::Error::from)?;
    fs::write(&out, page).map_err(|error| {
        let what = format!("{}: {error}; choose another file with --out", out.display());
        Failure::new(Kind::File, what)
    })?;
    let mut text = String::new();
    for AssociationStalls { name, packets, retransmissions, stalls, .. } in &stalls.associations {
        let longest = stalls.first().map_or(0.0, |stall| stall.message.wait_ms());
        text += &format!(
            "{name}: {packets} packets with data, {retransmissions} with retransmissions; the longest wait {longest:.0} ms\n"
        );
    }
    print(&format!("{text}The page: {}\n", out.display()))
}

fn write_ranges(analysis: &Analysis, file: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, "flow,direction,first,bytes,sent_s,ack_ms,arrival_ms,repeated")?;
    for direction in &analysis.directions {
        let side = match direction.direction {
            Sender::Client => "c2s",
            Sender::Server => "s2c",
        };
        for range in &direction.ranges {
            let RangeRow { first, bytes, sent_s, ack_ms, arrival_ms, repeated } = range;
            let [ack, arrival] =
                [ack_ms, arrival_ms].map(|ms| ms.map_or_else(String::new, |ms| format!("{ms:.6}")));
            let causes: Vec<&str> = repeated.iter().map(|it| Cause::word(*it)).collect();
            let causes = causes.join(" ");
            writeln!(
                out,
                "{},{side},{first},{bytes},{sent_s:.9},{ack},{arrival},{causes}",
                direction.flow
            )?;
        }
    }
    out.flush()
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::new(Kind::File, error)
    }
}

impl From<AnalysisError> for Failure {
    fn from(error: AnalysisError) -> Self {
        Self::new(Kind::File, error)
    }
}
