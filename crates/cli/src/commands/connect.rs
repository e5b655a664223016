//! `rexmit connect`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rexmit::clock::{now, sleep_until};
use rexmit::{Association, Endpoint};
use rexmit_perf::load::{LoadError, Target};
use rexmit_qlog::VantagePoint;

use crate::carry::{Carry, LINGER};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::metrics::MetricsOption;
use crate::qlog;
use crate::signals::{Signals, block_on};
use crate::transport::{Peers, Transport};
use crate::values::{self, Host};

/// Establish an association and carry standard input and output over it.
///
/// Each line of the input is sent as one message, including its newline; each received message is
/// printed unchanged. When the input ends, the association is shut down once all messages are
/// delivered. Data that the peer has not sent by then is lost; --keep-open waits for it. An empty
/// input also waits for it.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  echo hello | rexmit connect 192.0.2.1:9899
  rexmit connect localhost:9899 --binary --profile lksctp < file
  rexmit connect 192.0.2.1:9899 --fingerprint 5E:0B:…:71 < file
  rexmit connect 192.0.2.1:9899 --unencrypted --peer 198.51.100.1 --local 192.0.2.7 --local 198.51.100.7"))]
pub(crate) struct Arguments {
    /// Address of the listening peer. With --raw the UDP port is ignored.
    #[arg(value_name = "ADDR:PORT", value_parser = values::host)]
    address: Host,
    /// Time limit for the association to be established.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::interval)]
    timeout: Duration,
    #[command(flatten)]
    peers: Peers,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    carry: Carry,
    /// File to write a trace to (qlog, for qvis and `rexmit trace page`: name it .sqlog).
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsOption,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { address, timeout, peers, transport, carry, qlog, metrics } = arguments;
    block_on(async {
        let signals = Signals::new()?;
        let association =
            transport.association(|association| association.streams.outbound = carry.streams);
        let remotes = address.peers()?;
        let target = transport.target(remotes[0], peers, association, *timeout)?;
        let listener = metrics.bind().await?;
        qlog.as_deref().map_or(Ok(()), qlog::create)?;
        carry.check()?;
        let (association, endpoint) = tokio::select! {
            connection = connect_first(&target, &remotes) => connection?,
            () = signals.stop() => {
                return Err(Failure::new(Kind::Interrupted, "interrupted: the peer had not answered"));
            }
        };
        if let Some(peer) = association.peer_fingerprint().filter(|_| !transport.names_peers()) {
            eprintln!("the peer is not verified: with --fingerprint {peer} it is");
        }
        let log = qlog::of_endpoint(qlog.as_deref(), &endpoint, VantagePoint::Client)?;
        let watched = endpoint.clone();
        listener.serve(move || watched.metrics());
        if carry.run(association, &signals).await? {
            sleep_until(now() + LINGER).await;
        }
        log.map_or(Ok(()), qlog::EndpointLog::finish)
    })
}

/// Connects to the first of these addresses that answers.
async fn connect_first(
    target: &Target,
    remotes: &[SocketAddr],
) -> Result<(Association, Endpoint), LoadError> {
    let (last, others) = remotes.split_last().unwrap_or((&target.remote, &[]));
    for &remote in others {
        if let Ok(connection) = (Target { remote, ..target.clone() }).connect().await {
            return Ok(connection);
        }
    }
    (Target { remote: *last, ..target.clone() }).connect().await
}
