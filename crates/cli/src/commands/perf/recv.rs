//! `rexmit perf recv`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clap::Args;
use rexmit::Endpoint;
use rexmit::metrics::Metrics;
use rexmit_lab::measure::LatencySummary;
use rexmit_perf::load::receive;
use rexmit_perf::load::result::{Progress, Received};

use super::ends;
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::metrics::MetricsOption;
use crate::output::Format;
use crate::signals::{Signals, block_on_threads};
use crate::transport::Transport;
use crate::values::{self, Host};

/// Receive thin streams, record every message, and print the distribution of the latency.
///
/// Ends when all connections have ended, or with SIGINT or SIGTERM; the file contains all messages
/// received until then. Its columns are conn,seq,send_ns,recv_ns, in the order of delivery; send_ns
/// is the time at which the message was due.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf recv --listen 127.0.0.1:9899 --out latency.csv
  rexmit perf recv --listen 0.0.0.0:9899 --duration 60s --json | jq .latency
  rexmit perf recv --listen 0.0.0.0:9899 --unencrypted --shards 8
  rexmit perf recv --metrics 9100     # and in another shell: rexmit top localhost:9100"))]
pub(super) struct Arguments {
    /// Address to listen on; port 0 for any.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:9899",
          value_parser = values::host)]
    listen: Host,
    /// Listen on this many consecutive addresses, beginning with that of --listen, each of which is a receiver for
    /// `perf send --addresses`.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "locals",
          value_parser = values::addresses())]
    addresses: u32,
    /// Sockets at each address, each with a task of its own, and as many threads, to use so many processors (Linux). Associations are spread
    /// over them by the addresses of the senders. With metrics, rexmit_shard_associations is the number on each.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::shards())]
    shards: usize,
    /// File to write the record to; an existing file is replaced.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Stop after this time, even if connections are open.
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    duration: Option<Duration>,
    /// Print the figures so far to standard error once a second, as a line of JSON.
    #[arg(long)]
    progress: bool,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    metrics: MetricsOption,
    #[command(flatten)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments {
        listen,
        addresses,
        shards,
        out,
        duration,
        progress,
        transport,
        metrics,
        format,
    } = arguments;
    let is_shown = *progress;
    let out: Box<dyn Write + Send> = match out {
        Some(path) => Box::new(create(path)?),
        None => Box::new(io::sink()),
    };
    let received = block_on_threads(*shards, async {
        let signals = Signals::new()?;
        let first = listen.local()?;
        if *addresses > 1 && first.port() == 0 {
            let message = "--addresses needs a port in --listen that all addresses have, not 0";
            return Err(Failure::new(Kind::Usage, message));
        }
        let association = transport.association(|_| {});
        let endpoints: Arc<[_]> =
            transport.listen_at(first, *addresses, *shards, &association)?.into();
        let latency: Arc<Mutex<Option<(u64, LatencySummary)>>> = Arc::default();
        let shared = Arc::clone(&latency);
        let shown = Arc::clone(&endpoints);
        let page = move || Endpoint::metrics_of_all(&shown) + &latencies(*lock(&shared));
        metrics.bind().await?.serve(page);
        let stop = ends::stop_after(&signals, *duration);
        let progress = move |progress: &Progress| {
            let Received { messages, latency: measured, .. } = &progress.received;
            *lock(&latency) = measured.map(|measured| (*messages, measured));
            show(is_shown, progress);
        };
        Ok(receive::thin(&endpoints, out, progress, stop).await?)
    })?;
    format.print(&received, Received::table)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is complete when the lock is released.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The latency of the messages received so far, as metrics.
fn latencies(latency: Option<(u64, LatencySummary)>) -> String {
    let Some((count, it)) = latency else { return String::new() };
    let mut metrics = Metrics::new("rexmit");
    let quantiles = [(0.5, it.p50), (0.9, it.p90), (0.99, it.p99), (0.999, it.p999), (1.0, it.max)];
    let quantiles = quantiles.map(|(quantile, time)| (quantile, time.as_secs_f64()));
    let about = "Latency of all messages from when they were due, as of at most a second ago.";
    let sum = it.mean.as_secs_f64() * count as f64;
    metrics.summary("message_latency_seconds", about, quantiles, (count, sum));
    metrics.into_text()
}

fn show(is_shown: bool, progress: &Progress) {
    if is_shown && let Ok(line) = serde_json::to_string(progress) {
        eprintln!("{line}");
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| {
        let path = path.display();
        let message = format!("{path} cannot be written: {error}; choose another file with --out");
        Failure::new(Kind::File, message)
    })
}
