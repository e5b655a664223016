//! `rexmit top`.

mod page;
mod table;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rexmit::clock::{now, sleep_until};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::{self, print};
use crate::signals::{Signals, block_on};
use table::{Sample, Screen, Sort};

/// How often the view is refreshed.
const INTERVAL: Duration = Duration::from_secs(1);
/// A terminal whose size is unknown.
const UNKNOWN: Screen = Screen { columns: 80, rows: 24 };

/// Show the live associations of a program on a terminal, once a second: round-trip times, loss, retransmissions by cause,
/// redundant copies.
///
/// The program serves its metrics: `--metrics` of `rexmit listen`, `connect`, `perf send`, `perf recv`, `perf bulk send` and `proxy`, or
/// `Endpoint::metrics` of the library. With `perf recv`, there are latencies of messages, too; the clients of `proxy` are shown
/// together. Interrupt it to end it.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit perf send --to 192.0.2.1:9899 --metrics 9100     # and in another shell:
  rexmit top localhost:9100
  rexmit top localhost:9100 --sort rtt --once
  rexmit top localhost:9100 --json | jq '.associations[] | {peer, srtt_ms}'"))]
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
    block_on(async {
        let signals = Signals::new()?;
        tokio::select! {
            outcome = watch(address, *sort, *once, *json) => outcome,
            () = signals.stop() => Ok(()),
        }
    })
}

async fn watch(host: &str, sort: Sort, once: bool, json: bool) -> Outcome {
    let addresses = resolved(host).await?;
    let is_live = std::io::stdout().is_terminal() && !json && !once;
    let mut before: Option<(Sample, rexmit::Instant)> = None;
    loop {
        let at = now();
        let sample = sample(host, &addresses, sort).await?;
        let earlier =
            before.as_ref().map(|(sample, then)| (sample, (at - *then).as_secs_f64().max(1e-3)));
        show(&sample, earlier, json, is_live)?;
        if once {
            return Ok(());
        }
        before = Some((sample, at));
        sleep_until(at + INTERVAL).await;
    }
}

/// All addresses of `host`: a name may have some on which nothing listens, as `localhost` has in IPv6.
async fn resolved(host: &str) -> Result<Vec<SocketAddr>, Failure> {
    let addresses = tokio::net::lookup_host(host).await.map_err(|error| {
        let what = format!("{host}: {error}: give the address and port of the metrics");
        Failure::new(Kind::Usage, what)
    })?;
    let addresses: Vec<_> = addresses.collect();
    if addresses.is_empty() {
        return Err(Failure::new(Kind::Usage, format!("{host} has no address")));
    }
    Ok(addresses)
}

async fn sample(host: &str, addresses: &[SocketAddr], sort: Sort) -> Result<Sample, Failure> {
    let page = page::fetch(host, addresses).await.map_err(|error| {
        let what =
            format!("http://{host}/metrics: {error}; does the program run with --metrics {host}?");
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
        return print(&sample.table(before, Screen { columns: usize::MAX, rows: usize::MAX }));
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
    let known = |length: Option<u16>, otherwise| match length {
        Some(length) if length > 0 => length.into(),
        _ => otherwise,
    };
    let screen = Screen {
        columns: known(size.map(|size| size.ws_col), UNKNOWN.columns),
        rows: known(size.map(|size| size.ws_row), UNKNOWN.rows),
    };
    // The screen is overwritten from its first line on, and what is left of the view before is erased.
    let table = sample.table(before, screen).replace('\n', "\x1b[K\n");
    print(&format!("\x1b[H{table}\x1b[J"))
}
