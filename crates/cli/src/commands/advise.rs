//! `rexmit advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rexmit_lab::traffic::Sender;
use rexmit_study::advice::{
    Advice, DEFAULT_MAX_COST, DEFAULT_SEEDS, PathGiven, Question, QuestionError,
};
use rexmit_study::runner::all_cores;

use super::study::{Cache, run_missing};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::{Format, PageOption};
use crate::values;

/// Say which profile to choose for captured traffic: what it gains, and what it costs.
///
/// Replays the messages of one connection under every profile for messages over a simulated path, in virtual time: at
/// most ten minutes of them, and five runs per profile. The table shows latencies and costs; the last line recommends
/// the profile with the lowest 99.9th percentile among those within --max-cost. The path is given, or estimated from a
/// capture of TCP or of SCTP that is not encrypted.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit advise capture.pcapng                        # over the path that the capture shows
  rexmit advise capture.pcapng --rtt 80ms --loss 2%
  rexmit advise traces/ssh.csv.gz --direction s2c --flow 1 --ordered
  rexmit advise capture.pcapng --link 'delay 40ms 5ms loss gemodel 1% 25%' --report advice.html
  rexmit advise capture.pcapng --json | jq .recommended"))]
pub(crate) struct Arguments {
    /// Capture (pcap or pcapng) or trace (CSV with the columns trace,flow_id,direction,time_us,payload_bytes), optionally
    /// compressed by gzip.
    file: PathBuf,
    /// Round-trip time of the path, half of it each way [default: estimated from ACKs in the capture, else 100 ms].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    rtt: Option<Duration>,
    /// Packet loss in each direction [default: estimated from ACKs in the capture, with its bursts, else 2 %].
    #[arg(long, value_name = "PERCENT", value_parser = values::probability)]
    loss: Option<f64>,
    /// Both directions of the path as netem writes them, instead of --rtt and --loss.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["rtt", "loss"])]
    link: Option<String>,
    /// Whose messages to replay: those of the side that connected (c2s), or of the side that accepted (s2c).
    #[arg(long, value_name = "SIDE", value_enum, default_value_t = Direction::S2c)]
    direction: Direction,
    /// Number of the connection in the file, as `rexmit trace stats` shows it [default: the one with most messages].
    #[arg(long, value_name = "N")]
    flow: Option<u32>,
    /// Deliver messages in order; otherwise a lost message delays no other.
    #[arg(long)]
    ordered: bool,
    /// Runs per profile.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEEDS, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// The most bytes that a recommended profile may send, as a multiple of those of rfc9260.
    #[arg(long, value_name = "FACTOR", default_value_t = DEFAULT_MAX_COST)]
    max_cost: f64,
    #[command(flatten)]
    report: PageOption,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Direction {
    C2s,
    S2c,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let sender = match arguments.direction {
        Direction::C2s => Sender::Client,
        Direction::S2c => Sender::Server,
    };
    let given =
        PathGiven { rtt: arguments.rtt, loss: arguments.loss, link: arguments.link.clone() };
    let mut question = Question::open(&arguments.file, arguments.flow, sender, &given)?;
    question.is_ordered = arguments.ordered;
    question.seeds = arguments.seeds;
    let study = question.study()?;
    let store = arguments.cache.open()?;
    let finished = run_missing(&study.plan(), all_cores(), &store, arguments.format.json)?;
    if let Some(failed) = finished.failed.values().next() {
        return Err(Failure::new(Kind::Failed, &failed.why));
    }
    let page = study.page(|document| store.outcome(&document.key()).ok());
    arguments.format.print(&Advice::new(&page, arguments.max_cost), Advice::to_string)?;
    arguments.report.write(&page)
}

impl From<QuestionError> for Failure {
    fn from(error: QuestionError) -> Self {
        match error {
            QuestionError::Unreadable(error) => error.into(),
            error => Self::new(Kind::Usage, error),
        }
    }
}
