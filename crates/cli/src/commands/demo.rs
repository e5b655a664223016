//! `rexmit demo`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rexmit::{Deadline, RecoveryConfig};
use rexmit_lab::link::Link;
use rexmit_lab::load::{Load, LoadError};
use rexmit_lab::measure::Comparison;
use rexmit_lab::two_paths::{TwoPaths, TwoPathsError};
use rexmit_lab::{finding, table};
use rexmit_perf::realtime::{Progress, RealtimeError, Replay, ReplayOutcome, Transport};
use rexmit_qlog::MakeLog;
use rexmit_study::page;

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::names::unknown;
use crate::output::{self, Format};
use crate::qlog::Directory;
use crate::values;

/// The share of messages that should meet `--deadline`.
const DEADLINE_PROBABILITY: f64 = 0.999;

/// Replay a captured game over an emulated lossy link, once per recovery profile, and compare the
/// latencies.
///
/// Everything runs on this machine, over real UDP sockets, without privileges. A server sends the messages that the
/// game's server sent to two of its players; the table and the report compare their latencies, and show the packets
/// around the worst stall.
///
/// With --tcp, rexmit's TCP sends to the kernel's. This needs /dev/net/tun, and either root or
/// unprivileged user namespaces.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit demo
  rexmit demo --duration 2min --loss 1% --burst 3
  rexmit demo --trace ssh --profile rfc9260,lksctp --report ssh.html
  rexmit demo --reorder 5%
  rexmit demo --deadline 150ms --unordered
  rexmit demo --two-paths
  rexmit demo --tcp --trace bzflag-tcp
  rexmit demo --qlog logs && rexmit trace page logs/interactive.sqlog
  rexmit demo --json | jq '.runs[] | {profile, latency}'"))]
pub(crate) struct Arguments {
    /// Compare TCP instead of SCTP: rexmit sends, the kernel receives, over TUN devices in separate
    /// network namespaces.
    #[arg(long, conflicts_with = "unordered")]
    tcp: bool,
    /// Compare strategies for two paths when the first path fails half-way: failover with and
    /// without the potentially-failed state (RFC 7829), all paths at once, and a single path. Runs
    /// in virtual time.
    #[arg(long, conflicts_with_all = ["tcp", "unordered", "profile"])]
    two_paths: bool,
    /// Length of the replayed part of the trace, taken from its middle [default: 30s; with
    /// --two-paths 4min].
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    duration: Option<Duration>,
    /// Round-trip time of the link, half of it each way.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = values::duration)]
    rtt: Duration,
    /// Packet loss in each direction [default: 5%; with --two-paths 1%].
    #[arg(long, value_name = "PERCENT", value_parser = values::probability)]
    loss: Option<f64>,
    /// Lose packets in bursts of this mean length, in packets, instead of independently.
    #[arg(long, value_name = "PACKETS")]
    burst: Option<f64>,
    /// Largest deviation of a packet's delay from the mean. Jitter alone does not reorder packets.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = values::duration)]
    jitter: Duration,
    /// Share of packets that are delayed by a further quarter of the round-trip time, so that later
    /// packets overtake them.
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = values::probability)]
    reorder: f64,
    /// Recovery profiles to compare [default: rfc9260, lksctp, thin, thin-bundling, interactive,
    /// interactive-redundant; with --reorder rfc9260, thin, rr, thin-rr; with --tcp tcp-newreno,
    /// tcp-sack, tcp-thin, tcp-thin-rdb, tcp-interactive and tcp-interactive-redundant, or with
    /// --reorder tcp-newreno, tcp-sack, tcp-thin and tcp-rr] (see `rexmit profiles`).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    profile: Vec<String>,
    /// What to replay: bzflag-tcp, crossfire, ssh, vnc, or a file (CSV trace, pcap or pcapng).
    #[arg(long, value_name = "NAME", default_value = "crossfire")]
    trace: String,
    /// Seed of the emulator. The same seed drops and delays the same packets, counted in the order
    /// in which they are sent.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Deliver messages in any order, without waiting for earlier ones.
    #[arg(long)]
    unordered: bool,
    /// Deadline: the interactive profiles send copies of messages where necessary, so that 99.9 % of them arrive within
    /// this time if losses are independent.
    #[arg(long, value_name = "TIME", value_parser = values::interval, conflicts_with_all = ["tcp", "two_paths"])]
    deadline: Option<Duration>,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    format: Format,
}

/// Files that the demo writes.
#[derive(Debug, Args)]
struct Files {
    /// File to write the report to [default: rexmit-demo.html; none with --json].
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Directory to write a qlog file of each profile's server to, for qvis and `rexmit trace page`.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let report = match (&arguments.files.report, arguments.format.json) {
        (Some(path), _) => Some(path.clone()),
        (None, false) => Some(PathBuf::from("rexmit-demo.html")),
        (None, true) => None,
    };
    let json = arguments.format.json;
    // Checked before the runs, which take half a minute.
    if let Some(path) = &report {
        check_writable(path).map_err(|error| unwritable(path, &error))?;
    }
    let logs = arguments.files.qlog.as_deref().map(Directory::create).transpose()?.map(Arc::new);
    let (comparison, mut timing) = if arguments.two_paths {
        let compared = TwoPaths { logs: made_by(logs.as_ref()), ..two_paths(&arguments)? }.run()?;
        (compared, String::new())
    } else {
        let replay = Replay { logs: made_by(logs.as_ref()), ..replay(arguments)? };
        let measured = measure(&replay, json)?;
        let timing = timing(&measured);
        (measured.comparison, timing)
    };
    if let Some(logs) = &logs {
        timing += &format!("{} qlog files: {}\n", logs.files(), logs.path().display());
    }
    tell(&comparison, report.as_deref(), json, &timing)?;
    logs.map_or(Ok(()), |logs| logs.finish())
}

fn made_by(logs: Option<&Arc<Directory>>) -> Option<Arc<dyn MakeLog>> {
    logs.map(|logs| Arc::clone(logs) as _)
}

/// Runs the comparison in real time.
fn measure(replay: &Replay, is_quiet: bool) -> Result<ReplayOutcome, Failure> {
    if replay.transport == Transport::Tcp {
        super::networks::permit()?;
    }
    let bars = Bars::new(replay, is_quiet);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watch = Arc::clone(&bars);
    let measured = runtime.block_on(replay.run(Arc::new(move |progress| watch.show(progress))));
    bars.clear();
    Ok(measured?)
}

/// Prints the comparison, followed by `timing`, and writes the report.
fn tell(comparison: &Comparison, report: Option<&Path>, json: bool, timing: &str) -> Outcome {
    if let Some(path) = report {
        let html = page::comparison::html(comparison).map_err(io::Error::from)?;
        fs::write(path, html).map_err(|error| unwritable(path, &error))?;
    }
    if json {
        return output::json_line(&comparison.without_curves());
    }
    output::print(&text(comparison, report, timing))
}

fn two_paths(arguments: &Arguments) -> Result<TwoPaths, Failure> {
    let Arguments { rtt, burst, jitter, reorder, .. } = *arguments;
    let duration = arguments.duration.unwrap_or(Duration::from_secs(240));
    let loss = arguments.loss.unwrap_or(0.01);
    Ok(TwoPaths {
        load: Load::open(&arguments.trace, duration)?,
        link: Link { rtt, loss, burst, jitter, reorder },
        fails_at: duration / 2,
        seed: arguments.seed,
        logs: None,
    })
}

fn replay(arguments: Arguments) -> Result<Replay, Failure> {
    let Arguments { rtt, burst, jitter, reorder, .. } = arguments;
    let loss = arguments.loss.unwrap_or(0.05);
    let transport = if arguments.tcp { Transport::Tcp } else { Transport::Sctp };
    let link = Link { rtt, loss, burst, jitter, reorder };
    let standard = || transport.compared(&link).iter().copied().map(String::from).collect();
    let profiles = if arguments.profile.is_empty() { standard() } else { arguments.profile };
    check_profiles(transport, &profiles)?;
    Ok(Replay {
        load: Load::open(&arguments.trace, arguments.duration.unwrap_or(Duration::from_secs(30)))?,
        link,
        transport,
        profiles,
        seed: arguments.seed,
        unordered: arguments.unordered,
        deadline: arguments.deadline.map(|within| Deadline::new(within, DEADLINE_PROBABILITY)),
        logs: None,
    })
}

fn check_profiles(transport: Transport, profiles: &[String]) -> Outcome {
    let known = || transport.profiles().iter().map(|(name, _)| *name);
    match profiles.iter().find(|name| known().all(|known| known != name.as_str())) {
        Some(name) => {
            let message = match transport {
                Transport::Sctp if RecoveryConfig::tcp_profile(name).is_some() => {
                    format!("`{name}` is a profile of TCP: give --tcp, or choose one of SCTP")
                }
                Transport::Tcp if RecoveryConfig::profile(name).is_some() => {
                    format!("`{name}` is a profile of SCTP: leave out --tcp, or choose one of TCP")
                }
                _ => unknown("recovery profile", name, known()),
            };
            Err(Failure::new(Kind::Usage, message))
        }
        None => Ok(()),
    }
}

fn text(comparison: &Comparison, report: Option<&Path>, timing: &str) -> String {
    let mut text = format!("{}, seed {}\n\n", comparison.title, comparison.seed);
    text += &table::render(comparison);
    if let Some(sentence) = finding::sentence(comparison) {
        text += &format!("\n{sentence}\n");
    }
    text += timing;
    if let Some(path) = report {
        text += &format!("The report with the curves and the worst stalls: {}\n", path.display());
    }
    text
}

fn timing(measured: &ReplayOutcome) -> String {
    let millis = |duration: Duration| format!("{:.2} ms", duration.as_secs_f64() * 1e3);
    format!(
        "\nTiming error (99th percentile, in the latencies): emulated link {}, sender {}.\n",
        millis(measured.timing_error()),
        millis(measured.sending.quantile(0.99)),
    )
}

/// Whether a file can be written. Leaves an existing file unchanged, and creates none.
fn check_writable(path: &Path) -> io::Result<()> {
    match File::create_new(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            File::options().append(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::new(
        Kind::File,
        format!("the report cannot be written to {path}: {error}; choose another with --report"),
    )
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Trace(_) => Self::new(Kind::File, error),
            LoadError::Unknown { name } => {
                let known = rexmit_lab::load::BUNDLED.iter().map(|trace| trace.name);
                let message = unknown("trace", &name, known);
                Self::new(Kind::Usage, format!("{message}; or give a file"))
            }
            error => Self::new(Kind::Usage, error),
        }
    }
}

impl From<TwoPathsError> for Failure {
    fn from(error: TwoPathsError) -> Self {
        let kind = match error {
            TwoPathsError::Link(_) => Kind::Usage,
            TwoPathsError::Livelock(_) => Kind::Failed,
        };
        Self::new(kind, error)
    }
}

impl From<RealtimeError> for Failure {
    fn from(error: RealtimeError) -> Self {
        match error {
            RealtimeError::UnknownProfile { .. } | RealtimeError::Unordered => {
                Self::new(Kind::Usage, error)
            }
            RealtimeError::Network(error) => error.into(),
            RealtimeError::Emulator(error) => error.into(),
            RealtimeError::Bind(error) => error.into(),
            error => Self::new(Kind::Failed, error),
        }
    }
}

/// A progress bar per profile on standard error; none unless that is a terminal.
struct Bars {
    all: MultiProgress,
    lanes: Vec<ProgressBar>,
}

impl Bars {
    fn new(replay: &Replay, is_hidden: bool) -> Arc<Self> {
        let target =
            if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let all = MultiProgress::with_draw_target(target);
        let widest = replay.profiles.iter().map(String::len).max().unwrap_or_default();
        let style = ProgressStyle::with_template(
            "{prefix}  {bar:30}  {pos:>5} of {len} messages delivered, worst wait {msg}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let lane = |name: &String| {
            let bar = ProgressBar::new(replay.load.messages() as u64).with_style(style.clone());
            let bar = all.add(bar);
            bar.set_prefix(format!("{name:widest$}"));
            bar.set_message("–");
            bar
        };
        let lanes = replay.profiles.iter().map(lane).collect();
        Arc::new(Self { all, lanes })
    }

    fn show(&self, progress: Progress) {
        match progress {
            Progress::Started { .. } => self.lanes.iter().for_each(ProgressBar::tick),
            Progress::Delivered { lane, worst } => {
                if let Some(bar) = self.lanes.get(lane) {
                    bar.set_message(format!("{:.2} s", worst.as_secs_f64()));
                    bar.inc(1);
                }
            }
        }
    }

    fn clear(&self) {
        let _ = self.all.clear();
    }
}
