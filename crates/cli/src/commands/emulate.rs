//! `rexmit emulate`.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rexmit::clock::{now, sleep_until};
use rexmit::emulator::netem;
use rexmit::emulator::path::PathConfig;
use rexmit::emulator::{DirectionStatistics, Emulator, EmulatorConfig, EmulatorStatistics, Seed};
use serde::Serialize;

use super::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;
use crate::signals::{Signals, after, block_on};
use crate::values;

/// Time between two lines of progress on a terminal.
const PROGRESS: Duration = Duration::from_secs(5);
/// How much longer reordered packets take on a path without delay.
const REORDER_EXTRA: &str = "10ms";

/// Relay UDP packets over an emulated link, in netem's words.
///
/// Clients send to the emulator instead of the server. Both directions are the same, unless
/// --forward or --backward says otherwise: they take netem's words, which come after those of the
/// other options. Ends with SIGINT, SIGTERM or after --duration, and prints how many packets met
/// which fate and how exactly it kept the times.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --delay 50ms --loss 5%
  rexmit emulate --listen 0.0.0.0:9900 --to 192.0.2.1:9899 --delay 50ms --jitter 5ms \\
      --distribution normal --rate 10mbit --limit 100 --backward 'delay 20ms loss 0%'
  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --loss 5% --burst 3 \\
      --duration 60s --json
  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --loss 5% --pcap lossy.pcapng"))]
pub(crate) struct Arguments {
    /// Where clients send to; port 0 for any.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::address)]
    listen: SocketAddr,
    /// The server.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::address)]
    to: SocketAddr,
    #[command(flatten)]
    link: Link,
    /// More words for the direction to the server, such as 'delay 20ms loss 1%'.
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    forward: String,
    /// More words for the direction to the clients.
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    backward: String,
    /// Where the randomness comes from: the same packets meet the same fate.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End after this time.
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    duration: Option<Duration>,
    /// Write what leaves the link at either end, and what was dropped (with a comment that says
    /// why), to this file, for Wireshark (pcapng).
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// What both directions do to packets.
#[derive(Debug, Args)]
struct Link {
    /// One-way delay.
    #[arg(long, value_name = "TIME", default_value = "0")]
    delay: String,
    /// How much the delay varies; this reorders, unless --keep-order.
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// How the jitter is distributed: uniform, normal or pareto.
    #[arg(long, value_name = "NAME", requires = "jitter", default_value = "uniform")]
    distribution: String,
    /// Packets keep their order whatever the jitter.
    #[arg(long)]
    keep_order: bool,
    /// Share of packets that are lost.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    loss: String,
    /// Lose packets in bursts of so many packets (3), or of such a time (100ms), on average.
    #[arg(long, value_name = "PACKETS|TIME", requires = "loss")]
    burst: Option<String>,
    /// Lose packets by netem's two-state chain: P R [1-H [1-K]], such as '1% 10%'.
    #[arg(long, value_name = "P R", conflicts_with = "burst")]
    gemodel: Option<String>,
    /// Share of packets that take longer, so that others overtake them.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    reorder: String,
    /// How much longer these take [default: as long as the delay].
    #[arg(long, value_name = "TIME")]
    reorder_extra: Option<String>,
    /// Share of packets that arrive twice.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    duplicate: String,
    /// Share of packets in which a bit is flipped.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    corrupt: String,
    /// The link's rate, such as 10mbit.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Packets (100) or bytes (64kb) that may wait for the rate.
    #[arg(long, value_name = "N|SIZE")]
    limit: Option<String>,
}

impl Link {
    /// The options as netem's words.
    fn words(&self) -> String {
        let mut words = format!("delay {}", self.delay);
        if let Some(jitter) = &self.jitter {
            words += &format!(" {jitter} distribution {}", self.distribution);
        }
        if self.keep_order {
            words += " ordered";
        }
        words += &match &self.burst {
            Some(burst) => format!(" loss burst {} {burst}", self.loss),
            None => format!(" loss {}", self.loss),
        };
        if let Some(chain) = &self.gemodel {
            words += &format!(" loss gemodel {chain}");
        }
        let extra = match &self.reorder_extra {
            Some(extra) => extra,
            None if netem::parse_duration(&self.delay).is_ok_and(|delay| delay.is_zero()) => {
                REORDER_EXTRA
            }
            None => &self.delay,
        };
        words += &format!(" reorder {} {extra}", self.reorder);
        words += &format!(" duplicate {} corrupt {}", self.duplicate, self.corrupt);
        if let Some(rate) = &self.rate {
            words += &format!(" rate {rate}");
        }
        if let Some(limit) = &self.limit {
            words += &format!(" limit {limit}");
        }
        words
    }
}

/// What became of all packets.
#[derive(Serialize)]
struct Report {
    listen: SocketAddr,
    to: SocketAddr,
    seed: u64,
    packets: u64,
    dropped: u64,
    late_p50_us: f64,
    late_p99_us: f64,
    #[serde(rename = "late_p99.9_us")]
    late_p999_us: f64,
    late_max_us: f64,
    statistics: EmulatorStatistics,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { listen, to, link, forward, backward, seed, duration, pcap, format } = arguments;
    let config = EmulatorConfig {
        forward: path(link, forward)?,
        backward: path(link, backward)?,
        seed: Seed::from_u64(*seed),
        ..EmulatorConfig::new(*listen, *to)
    };
    let (listen, statistics, captured) = block_on(async {
        let signals = Signals::new()?;
        let mut emulator = start(&config, pcap.as_deref())?;
        let listen = emulator.local_addr();
        eprintln!("listening on {listen}, relaying to {to}");
        tokio::select! {
            () = signals.stop() => {}
            () = watch(&emulator) => {}
            () = after(*duration) => {}
        }
        let captured = emulator.finish_capture();
        Ok((listen, emulator.stop()?, captured))
    })?;
    let late = statistics.lateness;
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    let report = Report {
        listen,
        to: *to,
        seed: *seed,
        packets: statistics.forward.path.offered + statistics.backward.path.offered,
        dropped: dropped(&statistics.forward) + dropped(&statistics.backward) + statistics.refused,
        late_p50_us: micros(late.p50),
        late_p99_us: micros(late.p99),
        late_p999_us: micros(late.p999),
        late_max_us: micros(late.max),
        statistics,
    };
    format.print(&report, text)?;
    match (pcap, captured) {
        (Some(path), Err(error)) => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

fn start(config: &EmulatorConfig, pcap: Option<&Path>) -> Result<Emulator, Failure> {
    let Some(path) = pcap else { return Ok(Emulator::start(config)?) };
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    Ok(Emulator::start_capturing(config, file)?)
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let what_to_do = match error.kind() {
        io::ErrorKind::NotFound => "create its folder first",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or choose a file on another disk"
        }
        _ => "choose a file that you may write with --pcap",
    };
    let path = path.display();
    Failure::new(Kind::File, format!("cannot write {path}: {error}; {what_to_do}"))
}

fn path(link: &Link, more: &str) -> Result<PathConfig, Failure> {
    let words = format!("{} {more}", link.words());
    words.parse().map_err(|error| Failure::new(Kind::Usage, format!("{error} (see --help)")))
}

/// Tells the counts on a terminal, without an end.
async fn watch(emulator: &Emulator) {
    loop {
        sleep_until(now() + PROGRESS).await;
        if std::io::stderr().is_terminal() {
            let EmulatorStatistics { forward, backward, lateness, .. } = emulator.statistics();
            eprintln!(
                "forward {} packets, {} dropped; backward {}, {} dropped; late by {:?} (99 %)",
                forward.path.offered,
                dropped(&forward),
                backward.path.offered,
                dropped(&backward),
                lateness.p99,
            );
        }
    }
}

fn dropped(direction: &DirectionStatistics) -> u64 {
    direction.path.lost() + direction.overflowed + direction.unsent
}

fn text(report: &Report) -> String {
    let mut text = String::from(
        "           packets     lost  delivered  reordered  duplicated  corrupted  queue full\n",
    );
    for (name, direction) in
        [("forward", report.statistics.forward), ("backward", report.statistics.backward)]
    {
        let (path, arrivals) = (direction.path, direction.arrivals);
        text += &format!(
            "{name:9}{:9}{:9}{:11}{:11}{:12}{:11}{:12}\n",
            path.offered,
            path.lost() - path.lost_queue,
            arrivals.delivered,
            arrivals.reordered,
            path.duplicated,
            path.corrupted,
            path.lost_queue,
        );
    }
    let others = report.statistics.forward.overflowed
        + report.statistics.backward.overflowed
        + report.statistics.forward.unsent
        + report.statistics.backward.unsent
        + report.statistics.refused;
    if others > 0 {
        text += &format!("dropped by the emulator itself, over its limits: {others}\n");
    }
    if report.statistics.uncaptured > 0 {
        text += &format!("missing in the capture: {}\n", report.statistics.uncaptured);
    }
    text += &format!(
        "sent late by {:.3} ms (50 %), {:.3} ms (99 %), {:.3} ms (99.9 %), {:.3} ms at most\n",
        report.late_p50_us / 1e3,
        report.late_p99_us / 1e3,
        report.late_p999_us / 1e3,
        report.late_max_us / 1e3
    );
    text
}
