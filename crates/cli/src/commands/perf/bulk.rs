//! `rexmit perf bulk`.

use std::time::Duration;

use clap::{Args, Subcommand};
use rexmit::Endpoint;
use rexmit_perf::load::result::BulkReceived;
use rexmit_perf::load::{receive, send};

use super::ends;
use super::sight::{Logs, SightOptions};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;
use crate::signals::{Signals, block_on};
use crate::transport::{Peers, Transport};
use crate::values::{self, Host};

/// Measure throughput.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf bulk recv --listen 127.0.0.1:9899
  rexmit perf bulk send --to 127.0.0.1:9899 --size 64kb --duration 10s

Both sides need the buffers of `--profile bulk` (4 MiB; otherwise 1 MiB) where the rate times the round
trip is more than 1 MiB."))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Recv(Recv),
    Send(Send),
}

/// Receive bulk data and print the goodput.
///
/// Ends when all connections have ended, or with SIGINT or SIGTERM.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit perf bulk recv --listen 127.0.0.1:9899 --json"))]
struct Recv {
    /// Address to listen on; port 0 for any.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:9899",
          value_parser = values::host)]
    listen: Host,
    /// Stop after this time, even if connections are open.
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    duration: Option<Duration>,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    format: Format,
}

/// Send at full speed and print the goodput.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf bulk send --to 127.0.0.1:9899 --connections 4 --duration 10s"))]
struct Send {
    /// Address on which `rexmit perf bulk recv` listens.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::host)]
    to: Host,
    /// Number of connections.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=16_000))]
    connections: u32,
    /// Size of a message in bytes.
    #[arg(long, value_name = "SIZE", default_value = "64kb", value_parser = values::size)]
    size: usize,
    /// Length of the sending phase.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::interval)]
    duration: Duration,
    /// Allow messages to be delivered out of order.
    #[arg(long)]
    unordered: bool,
    /// Time limit for each connection to be established.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::interval)]
    timeout: Duration,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    sight: SightOptions,
    #[command(flatten)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    match &arguments.command {
        Command::Recv(arguments) => recv(arguments),
        Command::Send(arguments) => bulk_send(arguments),
    }
}

fn recv(arguments: &Recv) -> Outcome {
    let Recv { listen, duration, transport, format } = arguments;
    let received = block_on(async {
        let signals = Signals::new()?;
        let endpoint = transport.listen(listen.local()?, &transport.association(|_| {}))?;
        Ok(receive::bulk(&[endpoint], ends::stop_after(&signals, *duration)).await?)
    })?;
    format.print(&received, BulkReceived::table)
}

fn bulk_send(arguments: &Send) -> Outcome {
    let Send { to, connections, size, duration, unordered, timeout, peers, transport, .. } =
        arguments;
    let association = transport.association(|_| {});
    let largest = association.messages.max_bytes;
    if *size > largest {
        let message = format!("--size is {size}: choose one up to {largest}");
        return Err(Failure::new(Kind::Usage, message));
    }
    let load = send::BulkLoad {
        connections: *connections,
        message_bytes: *size,
        duration: *duration,
        unordered: *unordered,
    };
    block_on(async {
        let signals = Signals::new()?;
        let target = transport.target(to.peer()?, peers, association, *timeout)?;
        let sight = arguments.sight.open().await?;
        let mut logs = None;
        let started = |endpoints: &[Endpoint], count: usize| {
            eprintln!("{count} connections set up");
            logs = Some(sight.begin(endpoints));
        };
        let (sent, lingering) =
            send::bulk(&target, &load, ends::stop_after(&signals, None), started).await?;
        arguments.format.print(&sent, |sent| sent.table(true))?;
        let ended = ends::end(&sent, lingering).await;
        logs.map_or(Ok(()), Logs::finish).and(ended)
    })
}
