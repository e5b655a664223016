//! `rexmit perf recv`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rexmit_perf::load::receive;
use rexmit_perf::load::result::{Progress, Received};

use super::ends;
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;
use crate::signals::{Signals, block_on};
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
  rexmit perf recv --listen 0.0.0.0:9899 --duration 60s --json | jq .latency"))]
pub(super) struct Arguments {
    /// Address to listen on; port 0 for any.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:9899",
          value_parser = values::host)]
    listen: Host,
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
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { listen, out, duration, progress, transport, format } = arguments;
    let is_shown = *progress;
    let out: Box<dyn Write + Send> = match out {
        Some(path) => Box::new(create(path)?),
        None => Box::new(io::sink()),
    };
    let received = block_on(async {
        let signals = Signals::new()?;
        let endpoint = transport.listen(listen.local()?, transport.association(|_| {}))?;
        let stop = ends::stop_after(&signals, *duration);
        Ok(receive::thin(&endpoint, out, move |it| show(is_shown, it), stop).await?)
    })?;
    format.print(&received, Received::table)
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
