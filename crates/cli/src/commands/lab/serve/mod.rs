//! `rexmit lab serve`: a page whose settings are run by this process.
//!
//! [`site`] answers requests, [`guard`] refuses those of other sites, [`listener`] bounds connections, [`queue`] bounds
//! questions, and [`work`] runs them. `rexmit_study::explore` defines the questions, and has the page.

mod guard;
mod listener;
mod queue;
mod site;
mod work;

use std::net::SocketAddr;

use clap::Args;
use rexmit_study::page::explore;
use rexmit_study::runner::all_cores;
use tokio::net::TcpListener;

use self::listener::{Limited, Limits};
use self::site::Site;
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output;
use crate::signals::{Signals, block_on};
use crate::values;

/// Serve a page with sliders for messages and link, which shows the latency of profiles at once.
///
/// The page runs one stream of messages over one link under the selected profiles, in virtual time in this process, and shows
/// the distribution of the latency and the costs. Its settings are in the address of the page, and can be saved as the file of
/// a study, which `rexmit study run` runs with the same figures and the page can load.
///
/// Everyone who can reach the address can use all cores of this machine; by default only this machine can. Requests
/// made by pages of other sites are refused, and so are requests for other host names than IP addresses, localhost and
/// --allow-host.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit lab serve                                 # open the printed address in a browser
  rexmit lab serve --listen 0 --jobs 2
  ssh -L 8080:127.0.0.1:8080 server rexmit lab serve
  rexmit lab serve --listen 192.0.2.1:8080 --allow-host lab.example"))]
pub(super) struct Arguments {
    /// Address to listen on; a port alone is one of 127.0.0.1, port 0 any.
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:8080", value_parser = values::local_address)]
    listen: SocketAddr,
    /// Host name under which browsers reach the page, in addition to IP addresses and localhost. Repeatable.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Number of concurrent runs [default: all cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let page = explore::html().map_err(|error| Failure::new(Kind::Failed, error))?;
    let jobs = arguments.jobs.map_or(all_cores().get(), usize::from);
    let site = Site::new(page, arguments.allow_host.clone(), jobs);
    block_on(async {
        let signals = Signals::new()?;
        let listener = TcpListener::bind(arguments.listen).await.map_err(|error| {
            let what = format!("{}: {error}; choose another with --listen", arguments.listen);
            Failure::new(Kind::Address, what)
        })?;
        output::print(&format!("http://{}/\n", listener.local_addr()?))?;
        let listener = Limited::new(listener, Limits::default());
        tokio::select! {
            result = axum::serve(listener, site.router()).into_future() => Ok(result?),
            () = signals.stop() => Ok(()),
        }
    })
}
