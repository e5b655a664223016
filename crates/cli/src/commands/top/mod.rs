//! `rexmit top`.

mod page;
mod table;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use rexmit::clock::{now, sleep_until};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::{self, print};
use crate::signals::{Signals, block_on};
use page::Place;
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
  rexmit top 9100 --sort rtt --once
  rexmit top localhost:9100 --json | jq '.associations[] | {peer, srtt_ms}'"))]
pub(crate) struct Arguments {
    /// Address of the metrics: a port of this machine, an address or name with a port, or a URL of HTTP.
    #[arg(value_name = "[ADDR:]PORT", value_parser = page::place)]
    address: Place,
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

async fn watch(place: &Place, sort: Sort, once: bool, json: bool) -> Outcome {
    let addresses = resolved(place).await?;
    let is_live = io::stdout().is_terminal() && !json && !once;
    let mut before: Option<(Sample, rexmit::Instant)> = None;
    loop {
        let at = now();
        let mut sample = page::fetch(place, &addresses)
            .await
            .and_then(|page| Sample::of(&page::read(&page)))
            .map_err(|error| failure(place, &error, before.is_some()))?;
        sample.sort(sort);
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

/// All addresses of `place`: a name may have some on which nothing listens, as `localhost` has in IPv6.
async fn resolved(place: &Place) -> Result<Vec<SocketAddr>, Failure> {
    let host = &place.host;
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

/// The failure of a request, the first one or, if the program `has_answered`, a later one.
fn failure(place: &Place, error: &io::Error, has_answered: bool) -> Failure {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset};
    let advice = match error.kind() {
        ConnectionRefused | ConnectionReset if has_answered => "the program has ended".to_owned(),
        // It answers, but not as a program of rexmit.
        io::ErrorKind::InvalidData => "give the address after --metrics of the program".to_owned(),
        _ => format!("does the program run with --metrics {}?", place.host),
    };
    Failure::new(Kind::Peer, format!("{place}: {error}; {advice}"))
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
