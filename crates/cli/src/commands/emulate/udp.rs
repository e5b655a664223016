//! The emulator for UDP.

use std::fs::File;
use std::net::SocketAddr;

use rexmit::emulator::{Emulator, EmulatorConfig};
use serde::Serialize;

use super::summary::{Summary, text, watch};
use super::{Arguments, unwritable};
use crate::failure::{Failure, Outcome};
use crate::signals::{Signals, after, block_on};

/// The most clients at one time: the most connections of `perf send`.
const MAX_CLIENTS: usize = 16_000;

/// The addresses of both ends.
#[derive(Serialize)]
struct Ends {
    listen: SocketAddr,
    to: SocketAddr,
}

/// Relays between `listen` and `to`.
pub(super) fn run(arguments: &Arguments, listen: SocketAddr, to: SocketAddr) -> Outcome {
    let Arguments { link, duration, format, keep_destination, .. } = arguments;
    let paths = link.config()?;
    let config = EmulatorConfig::new(listen, to)
        .forward(paths.forward)
        .backward(paths.backward)
        .keep_destination(*keep_destination)
        .max_clients(MAX_CLIENTS)
        .batch(paths.batch)
        .seed(paths.seed);
    let (listen, statistics, captured) = block_on(async {
        let signals = Signals::new()?;
        let mut emulator = start(&config, arguments)?;
        let listen = emulator.local_addr();
        eprintln!("listening on {listen}, relaying to {to}");
        tokio::select! {
            () = signals.stop() => {}
            () = watch(|| emulator.statistics()) => {}
            () = after(*duration) => {}
        }
        let captured = emulator.finish_capture();
        Ok((listen, emulator.stop()?, captured))
    })?;
    format.print(&Summary::new(Ends { listen, to }, link.seed, statistics), text)?;
    match (arguments.record(), captured) {
        (Some(path), Err(error)) => Err(unwritable(path, &error)),
        _ => Ok(()),
    }
}

fn start(config: &EmulatorConfig, arguments: &Arguments) -> Result<Emulator, Failure> {
    if let Some(log) = arguments.log("udp")? {
        return Ok(Emulator::start_logging(config, log)?);
    }
    let Some(path) = arguments.pcap.as_deref() else { return Ok(Emulator::start(config)?) };
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    Ok(Emulator::start_capturing(config, file)?)
}
