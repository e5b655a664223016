//! `rexmit top`.

mod page;
mod table;

use std::io::IsTerminal as _;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use clap::Args;
use rexmit::clock::{now, sleep_until};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::{self, print};
use crate::signals::{Signals, block_on};
use table::{Sample, Sort};

/// How often the view is refreshed.
const INTERVAL: Duration = Duration::from_secs(1);
/// Lines of a terminal whose size is unknown.
const HEIGHT: usize = 24;

/// Show the live associations of a program on a terminal, once a second: round-trip times, loss, retransmissions by cause,
/// redundant copies.
///
/// The program serves its metrics: `--metrics` of `rexmit listen`, `perf recv` and `proxy`, or `Endpoint::metrics` of the library.
/// With `perf recv`, there are latencies of messages, too; the clients of `proxy` are shown together. Interrupt it to end it.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf recv --metrics 127.0.0.1:9100     # and in another shell:
  rexmit top 127.0.0.1:9100
  rexmit top 127.0.0.1:9100 --sort rtt --once
  rexmit top 127.0.0.1:9100 --json | jq '.associations[] | {peer, srtt_ms}'"))]
pub(crate) struct Arguments {
    /// Address of the metrics.
    #[arg(value_name = "ADDR:PORT")]
    address: String,
    /// What to sort by, the largest first.
    #[arg(long, value_name = "WHAT", default_value = "loss")]
    sort: Sort,
    /// Print the present values once, and end.
    #[arg(long)]
    once: bool,
    /// Print each sample as a line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { address, sort, once, json } = arguments;
    let address = resolved(address)?;
    if *once {
        return show(&sample(address, *sort)?, None, *json, false);
    }
    block_on(async {
        let signals = Signals::new()?;
        let is_live = std::io::stdout().is_terminal() && !json;
        let mut before: Option<(Sample, rexmit::Instant)> = None;
        loop {
            let at = now();
            let sample = sample(address, *sort)?;
            let earlier = before
                .as_ref()
                .map(|(sample, then)| (sample, (at - *then).as_secs_f64().max(1e-3)));
            show(&sample, earlier, *json, is_live)?;
            before = Some((sample, at));
            tokio::select! {
                () = sleep_until(at + INTERVAL) => {}
                () = signals.stop() => return Ok(()),
            }
        }
    })
}

fn resolved(address: &str) -> Result<SocketAddr, Failure> {
    let addresses = address.to_socket_addrs().map_err(|error| {
        Failure::new(
            Kind::Usage,
            format!("{address}: {error}: give the address and port of the metrics"),
        )
    })?;
    addresses
        .into_iter()
        .next()
        .ok_or_else(|| Failure::new(Kind::Usage, format!("{address} has no address")))
}

fn sample(address: SocketAddr, sort: Sort) -> Result<Sample, Failure> {
    let page = page::fetch(address).map_err(|error| {
        let what = format!(
            "http://{address}/metrics: {error}; does the program run with --metrics {address}?"
        );
        Failure::new(Kind::Peer, what)
    })?;
    let mut sample = Sample::of(&page::read(&page));
    sample.sort(sort);
    Ok(sample)
}

fn show(sample: &Sample, before: Option<(&Sample, f64)>, json: bool, is_live: bool) -> Outcome {
    if json {
        return output::json_line(sample);
    }
    if !is_live {
        return print(&sample.table(before, usize::MAX));
    }
    let height =
        rustix::termios::tcgetwinsize(std::io::stdout()).map_or(HEIGHT, |size| size.ws_row.into());
    // The screen is overwritten from its first line on, and what is left of the view before is erased.
    let table = sample.table(before, height).replace('\n', "\x1b[K\n");
    print(&format!("\x1b[H{table}\x1b[J"))
}
