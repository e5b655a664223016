//! `rexmit listen`.

use std::path::PathBuf;

use clap::Args;
use rexmit::clock::{now, sleep_until};
use rexmit_qlog::VantagePoint;

use crate::carry::{Carry, LINGER};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::metrics::MetricsOption;
use crate::qlog;
use crate::signals::{Signals, block_on};
use crate::transport::Transport;
use crate::values::{self, Host};

/// Wait for one association and carry standard input and output over it.
///
/// Once there is one, others are refused.
/// Each line of the input is sent as one message, including its newline; each received message is
/// printed unchanged. When the input ends, the association is shut down once all messages are
/// delivered. Data that the peer has not sent by then is lost; --keep-open waits for it. An empty
/// input also waits for it.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit listen 0.0.0.0:9899 > received     # and on another machine:
  rexmit connect 192.0.2.1:9899 < file
  rexmit listen 192.0.2.1:9899 --unencrypted --local 198.51.100.1 > received
  rexmit listen 0.0.0.0:9899 --cert cert.pem --key key.pem > received"))]
pub(crate) struct Arguments {
    /// Address to listen on; port 0 for any. With --raw the UDP port is ignored.
    #[arg(value_name = "ADDR:PORT", default_value = "0.0.0.0:9899", value_parser = values::host)]
    address: Host,
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
    let Arguments { address, transport, carry, qlog, metrics } = arguments;
    block_on(async {
        let signals = Signals::new()?;
        carry.check()?;
        let association =
            transport.association(|association| association.streams.outbound = carry.streams);
        let endpoint = transport.listen(address.local()?, &association)?;
        let log = qlog::of_endpoint(qlog.as_deref(), &endpoint, VantagePoint::Server)?;
        metrics.serve(&endpoint).await?;
        let association = tokio::select! {
            association = endpoint.accept() => association,
            () = signals.stop() => {
                return Err(Failure::new(Kind::Interrupted, "interrupted: no peer had connected"));
            }
        };
        let association =
            association.ok_or_else(|| Failure::new(Kind::Failed, "the endpoint was closed"))?;
        endpoint.stop_accepting(); // The data of others would have no reader.
        if carry.run(association, &signals).await? {
            sleep_until(now() + LINGER).await;
        }
        log.map_or(Ok(()), qlog::EndpointLog::finish)
    })
}
