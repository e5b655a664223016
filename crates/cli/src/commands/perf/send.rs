//! `rexmit perf send`.

use std::time::Duration;

use clap::Args;
use rexmit::Endpoint;
use rexmit_perf::load::schedule::ThinLoad;
use rexmit_perf::load::send;
use rexmit_perf::load::stamp::STAMP_BYTES;

use super::ends;
use super::sight::{Logs, SightOptions};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;
use crate::signals::{Signals, block_on};
use crate::transport::{Peers, Transport};
use crate::values::{self, Host};

/// Send thin streams: many connections with one small message per interval each.
///
/// The first messages are spread over one interval. SIGINT or SIGTERM ends the load early; messages
/// already accepted are still delivered. Prints the retransmissions by cause, and the bytes on the
/// wire per byte of payload (sent by this side, with UDP and IP headers).
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf send --to 127.0.0.1:9899 --connections 100 --interval 250ms --size 100 --duration 60s
  rexmit perf send --to 192.0.2.1:9899 --poisson --profile lksctp --json
  rexmit perf send --to 192.0.2.1:9899 --metrics 9100     # and in another shell: rexmit top localhost:9100
  rexmit perf send --to 192.0.2.1:9899 --qlog logs && rexmit trace page logs/connection0.sqlog"))]
pub(super) struct Arguments {
    /// Address on which `rexmit perf recv` listens.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::host)]
    to: Host,
    #[command(flatten)]
    connections: Connections,
    /// Time between two messages of a connection.
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = values::interval)]
    interval: Duration,
    /// Size of a message in bytes, at least 24.
    #[arg(long, value_name = "SIZE", default_value = "100", value_parser = values::size)]
    size: usize,
    /// Length of the sending phase.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::interval)]
    duration: Duration,
    /// Use independent, exponentially distributed intervals with this mean, instead of constant
    /// ones.
    #[arg(long)]
    poisson: bool,
    /// Allow messages to be delivered out of order.
    #[arg(long, conflicts_with = "ordered")]
    unordered: bool,
    /// Deliver messages in order; the default.
    #[arg(long)]
    ordered: bool,
    /// Seed of the exponential intervals.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Send messages in batches, once in this time (1ms): less processor time with many connections, whose messages are
    /// late by up to this time [default: each when it is due].
    #[arg(long, value_name = "TIME", value_parser = values::batch)]
    batch: Option<Duration>,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    sight: SightOptions,
    #[command(flatten)]
    format: Format,
}

/// The connections of the load.
#[derive(Debug, Args)]
struct Connections {
    /// Number of connections.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=16_000))]
    connections: u32,
    /// Receivers, at consecutive addresses beginning with that of --to (`perf recv --addresses`). Connections to
    /// different receivers share a socket; otherwise each has its own.
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "peers",
          value_parser = values::addresses())]
    addresses: u32,
    /// Number of the first connection in the receiver's record, if several senders share a receiver.
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = clap::value_parser!(u32).range(..1 << 31))]
    first_number: u32,
    /// Time limit for each connection to be established.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::interval)]
    timeout: Duration,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { to, connections, size, peers, transport, sight, .. } = arguments;
    let association = transport.association(|_| {});
    let largest = association.messages.max_bytes;
    if !(STAMP_BYTES..=largest).contains(size) {
        let message = format!("--size is {size}: choose one from {STAMP_BYTES} to {largest}");
        return Err(Failure::new(Kind::Usage, message));
    }
    let load = ThinLoad {
        connections: connections.connections,
        first_connection: connections.first_number,
        interval: arguments.interval,
        message_bytes: *size,
        duration: arguments.duration,
        poisson: arguments.poisson,
        unordered: arguments.unordered,
        seed: arguments.seed,
        batch: arguments.batch.unwrap_or_default(),
    };
    block_on(async {
        let signals = Signals::new()?;
        let mut target = transport.target(to.peer()?, peers, association, connections.timeout)?;
        let receivers = values::consecutive(target.remote.ip(), connections.addresses)?;
        target.more_receivers = receivers[1..].to_vec();
        let sight = sight.open().await?;
        let mut logs = None;
        let started = |endpoints: &[Endpoint], count: usize| {
            eprintln!("{count} connections set up");
            logs = Some(sight.begin(endpoints));
        };
        let (sent, lingering) =
            send::thin(&target, &load, ends::stop_after(&signals, None), started).await?;
        arguments.format.print(&sent, |sent| sent.table(false))?;
        let ended = ends::end(&sent, lingering).await;
        logs.map_or(Ok(()), Logs::finish).and(ended)
    })
}
