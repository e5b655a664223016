//! `rexmit compare`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rexmit::Instant;
use rexmit::emulator::{Seed, netem};
use rexmit::path::PathConfig;
use rexmit_lab::connections::SocketsError;
use rexmit_lab::measure::LatencyDistribution;
use rexmit_lab::rivals::{ARE_BUILT, HOW_TO_BUILD};
use rexmit_lab::scenario::{MeasuredCost, RunOutcome, Traffic};
use rexmit_perf::kernel::programs::{self, Carry, LEAST_LINE, Programs, ProgramsOutcome};
use rexmit_study::comparison::{Compared, Comparison, FLOW, Limit, is_of_yours, labels};
use rexmit_study::runner::all_cores;

use super::study::{Cache, run_missing};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::names::unknown;
use crate::output::{Format, PageOption};
use crate::values;

/// The most messages of a run.
const MAX_MESSAGES: usize = 1_000_000;
/// The largest message.
const MAX_BYTES: u32 = 1 << 20;

/// Compare your own programs with profiles, over the same lossy link, in virtual time.
///
/// A server and a client run unchanged inside a Linux kernel whose clock jumps to the next event (scripts/kernel-host builds
/// it once): a minute takes seconds, and the same seed gives the same figures. Their link is emulated, with the server at
/// 10.90.0.1 ($REXMIT_SERVER) and the client at 10.90.0.2 ($REXMIT_CLIENT). The profiles send the same messages over the same
/// link in the simulator.
///
/// How messages are recognised: with `--carry lines` each message is a line of the client's standard input, which is
/// delivered when the server prints it; the first is written a second after the client starts. With `--carry runs` the
/// client is run once for each message, which is delivered when the client ends with exit code 0. With `--carry stamps`
/// both programs write a line `sent ID` or `received ID` (ID: a number) to the file $REXMIT_STAMPS when they send or
/// receive a message.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit compare --server 'nc -l 7000' --client 'nc $REXMIT_SERVER 7000' --against tcp-interactive
  rexmit compare ./mine --against interactive --fail-above p99=250ms      # ./mine server, ./mine client
  rexmit compare --carry runs --server './http-server' --client 'curl -sf http://$REXMIT_SERVER:8000/' --traffic 'every 1s size 1'
  rexmit compare ./mine --link 'delay 30ms loss gemodel 1% 30%' --fail-above p999=150% --json
  rexmit compare ./mine --report compare.html"))]
pub(crate) struct Arguments {
    /// One program for both ends, run as `PROGRAM server` and `PROGRAM client`.
    #[arg(conflicts_with_all = ["server", "client"], required_unless_present_all = ["server", "client"])]
    program: Option<PathBuf>,
    /// Command line of the server, for the shell.
    #[arg(long, value_name = "COMMAND", requires = "client")]
    server: Option<String>,
    /// Command line of the client, for the shell.
    #[arg(long, value_name = "COMMAND", requires = "server")]
    client: Option<String>,
    /// How messages are recognised.
    #[arg(long, value_name = "WAY", value_enum, default_value_t = Way::Lines)]
    carry: Way,
    /// Profiles to compare with, including those of other implementations; see `rexmit profiles`.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "interactive")]
    against: Vec<String>,
    /// Both directions of the link, in netem's notation.
    #[arg(long, value_name = "PATH", default_value = "delay 50ms loss 5%")]
    link: String,
    /// The messages; each has at least 16 bytes. With `--carry stamps` this is the traffic of the profiles only.
    #[arg(long, value_name = "TRAFFIC", default_value = "every 51ms size 100")]
    traffic: String,
    /// How long messages are sent.
    #[arg(long, value_name = "TIME", value_parser = values::interval, default_value = "60s")]
    duration: Duration,
    /// How long to wait for missing messages afterwards.
    #[arg(long, value_name = "TIME", value_parser = values::duration, default_value = "10s")]
    drain: Duration,
    /// Number of runs of each system, each with its own losses.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Profiles deliver messages in any order, without waiting for earlier ones.
    #[arg(long)]
    unordered: bool,
    /// End with exit code 1 if this figure of your programs is larger: p99=250ms, or p99=120% of the first profile's.
    /// Undelivered messages count as later than any other.
    #[arg(long, value_name = "FIGURE=MOST", value_parser = Limit::from_str)]
    fail_above: Vec<Limit>,
    #[command(flatten)]
    report: PageOption,
    #[command(flatten)]
    cache: Cache,
    #[command(flatten)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Way {
    /// A message is a line from the client's standard input to the server's standard output.
    Lines,
    /// The programs report their messages.
    Stamps,
    /// A message is a run of the client.
    Runs,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { link, traffic, against, seeds, format, .. } = arguments;
    let is_ordered = !arguments.unordered;
    if let Some(name) = against.iter().find(|name| !labels(is_ordered).any(|it| it == **name)) {
        let kind = if is_ordered { "profile" } else { "profile for unordered messages" };
        let known = unknown(kind, name, labels(is_ordered));
        let more = if ARE_BUILT { "" } else { "; other implementations: " };
        let how = if ARE_BUILT { "" } else { HOW_TO_BUILD };
        return Err(Failure::new(Kind::Usage, format!("--against: {known}{more}{how}")));
    }
    let programs = arguments.programs()?;
    let comparison = Comparison {
        title: format!("{} over {link}", arguments.name()),
        about: format!("{traffic}, {}, {seeds} runs", netem::format_duration(arguments.duration)),
        link: link.clone(),
        traffic: traffic.clone(),
        duration: arguments.duration,
        seeds: *seeds,
        against: against.clone(),
        is_ordered,
    };
    let study = comparison.study().map_err(|error| Failure::new(Kind::Usage, error))?;
    let store = arguments.cache.open()?;
    let others: Vec<_> = study.plan().into_iter().filter(|it| !is_of_yours(it)).collect();
    let finished = run_missing(&others, all_cores(), &store, format.json)?;
    if let Some(failed) = finished.failed.values().next() {
        return Err(Failure::new(Kind::Failed, &failed.why));
    }
    let outcomes = run_programs(&programs, *seeds, format.json)?;
    let page = study.page(|document| match is_of_yours(document) {
        true => outcomes.get(usize::try_from(document.seed).ok()?.checked_sub(1)?).cloned(),
        false => store.outcome(&document.key()).ok(),
    });
    let compared = Compared::new(&page, &arguments.fail_above);
    format.print(&compared, Compared::to_string)?;
    arguments.report.write(&page)?;
    if compared.is_kept() { Ok(()) } else { Err(Failure::exit(1)) }
}

impl Arguments {
    fn name(&self) -> String {
        match (&self.program, &self.client) {
            (Some(program), _) => program.display().to_string(),
            (None, client) => client.clone().unwrap_or_default(),
        }
    }

    fn programs(&self) -> Result<Programs, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(Kind::Usage, error);
        let of = |option, error: &dyn std::fmt::Display| usage(&format!("{option}: {error}"));
        let _: PathConfig = self.link.parse().map_err(|error| of("--link", &error))?;
        let traffic: Traffic = self.traffic.parse().map_err(|error| of("--traffic", &error))?;
        // As in the simulator, the traffic of all runs is the same.
        let source = traffic.source(&Seed::from_u64(1)).map_err(|error| usage(&error))?;
        let within = source.map(|(at, bytes)| (at - Instant::ZERO, bytes));
        let within = within.take_while(|(at, _)| *at < self.duration);
        let messages: Vec<_> = within
            .take(MAX_MESSAGES + 1)
            .map(|(at, bytes)| (at.as_micros() as u64, u32::try_from(bytes).unwrap_or(u32::MAX)))
            .collect();
        let is_large = messages.iter().any(|(_, bytes)| *bytes > MAX_BYTES);
        if messages.len() > MAX_MESSAGES || is_large {
            let what = format!("--traffic: at most {MAX_MESSAGES} messages of {MAX_BYTES} bytes");
            return Err(Failure::new(Kind::Usage, what));
        }
        let is_short = messages.iter().any(|(_, bytes)| *bytes < LEAST_LINE);
        if self.carry == Way::Lines && is_short {
            let what =
                format!("--traffic: a message of --carry lines has {LEAST_LINE} bytes at least");
            return Err(Failure::new(Kind::Usage, what));
        }
        if messages.is_empty() {
            return Err(Failure::new(Kind::Usage, "--traffic: there is no message in --duration"));
        }
        let folder = std::env::current_dir()?;
        let of = |given: &Option<String>, role| match (&self.program, given) {
            (Some(program), _) => {
                let program = program.display().to_string().replace('\'', r"'\''");
                format!("exec '{program}' {role}")
            }
            (None, given) => given.clone().unwrap_or_default(),
        };
        Ok(Programs {
            server: of(&self.server, "server"),
            client: of(&self.client, "client"),
            carry: match self.carry {
                Way::Lines => Carry::Lines,
                Way::Stamps => Carry::Stamps,
                Way::Runs => Carry::Runs,
            },
            link: self.link.clone(),
            messages,
            drain: self.drain,
            folder,
            path: std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into()),
        })
    }
}

/// Runs the programs with the seeds 1, 2, 3, …, and returns the results.
fn run_programs(
    programs: &Programs,
    seeds: u64,
    is_quiet: bool,
) -> Result<Vec<RunOutcome>, Failure> {
    let target = if is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let style = ProgressStyle::with_template("{bar:40}  {pos} of {len} runs, {elapsed} so far");
    let bar = ProgressBar::with_draw_target(Some(seeds), target)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut outcomes = Vec::new();
    for seed in 1..=seeds {
        bar.set_position(seed - 1);
        let outcome = programs::run(programs, seed)?;
        let is_broken = programs.carry != Carry::Runs && outcome.failed.is_some();
        if outcome.latencies.is_empty() || is_broken {
            return Err(Failure::new(Kind::Failed, explained(programs.carry, &outcome)));
        }
        outcomes.push(measured(programs, &outcome));
    }
    bar.finish_and_clear();
    Ok(outcomes)
}

/// Why a run is no measurement.
fn explained(carry: Carry, outcome: &ProgramsOutcome) -> String {
    let ProgramsOutcome { sent, packets, failed, errors, .. } = outcome;
    let what = match (failed, carry) {
        (Some(failed), _) => failed.clone(),
        (None, Carry::Lines) => format!(
            "none of {sent} messages was delivered, and {packets} packets were sent: does the client read its standard \
             input, and the server print each line at once?"
        ),
        (None, Carry::Runs) => format!("none of {sent} runs of the client ended with exit code 0"),
        (None, Carry::Stamps) => format!(
            "{sent} lines `sent ID` were written to $REXMIT_STAMPS, none with a line `received ID`"
        ),
    };
    let said = if errors.is_empty() { "the programs printed no error" } else { errors };
    format!("{what}\n{said}")
}

fn measured(programs: &Programs, outcome: &ProgramsOutcome) -> RunOutcome {
    let mut latency = LatencyDistribution::new();
    for &nanos in &outcome.latencies {
        latency.record(Duration::from_nanos(nanos));
    }
    // The sizes of messages that programs report are not known.
    let sizes = programs.messages.iter().filter(|_| programs.carry != Carry::Stamps);
    let sizes = sizes.map(|(_, bytes)| u64::from(*bytes));
    let cost = MeasuredCost {
        messages: outcome.sent,
        payload_bytes: sizes.sum(),
        packets: outcome.packets,
        wire_bytes: outcome.bytes,
    };
    RunOutcome::measured(FLOW, &latency, cost)
}

impl From<SocketsError> for Failure {
    fn from(error: SocketsError) -> Self {
        let why = match error {
            SocketsError::NotPermitted(why) | SocketsError::Failed(why) => why,
            SocketsError::NoKernel(what) => what.to_owned(),
        };
        Self::new(Kind::Failed, why)
    }
}
