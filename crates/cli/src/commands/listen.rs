//! `rexmit listen`.

use std::net::SocketAddr;

use clap::Args;
use rexmit::clock::{now, sleep_until};

use crate::carry::{Carry, LINGER};
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::signals::{Signals, block_on};
use crate::transport::Transport;
use crate::values;

/// Wait for one association and carry standard input and output over it.
///
/// Each line of the input is a message (with its end of line), each message that arrives is printed
/// as it is. The end of the input ends the association once everything is delivered, and with it
/// data that the peer has not sent by then is lost; --keep-open waits for it, and so does an empty input.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit listen 0.0.0.0:9899 > received     # and on another machine:
  rexmit connect 192.0.2.1:9899 < file
  rexmit listen 192.0.2.1:9899 --local 198.51.100.1 > received"))]
pub(crate) struct Arguments {
    /// Where to listen; port 0 for any. With --raw the UDP port means nothing.
    #[arg(value_name = "ADDR:PORT", default_value = "0.0.0.0:9899", value_parser = values::address)]
    address: SocketAddr,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    carry: Carry,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { address, transport, carry } = arguments;
    block_on(async {
        let signals = Signals::new()?;
        let association =
            transport.association(|association| association.outbound_streams = carry.streams);
        let endpoint = transport.listen(*address, association)?;
        let association = tokio::select! {
            association = endpoint.accept() => association,
            () = signals.stop() => {
                return Err(Failure::new(Kind::Interrupted, "interrupted: no peer had connected"));
            }
        };
        let association =
            association.ok_or_else(|| Failure::new(Kind::Failed, "the endpoint was closed"))?;
        if carry.run(association, &signals).await? {
            sleep_until(now() + LINGER).await;
        }
        Ok(())
    })
}
