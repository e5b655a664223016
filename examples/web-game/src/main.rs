//! A game in a page: a server sends the positions of its balls 20 times a second, over data channels with different
//! recovery profiles and over a plain WebSocket, and the page shows how late each snapshot arrives.
//!
//! `make web-demo` starts it. A switch in the page puts an emulated link in between: a TUN device between this machine
//! and a network namespace, in which a second set of the same servers is. That needs root; without it there is no
//! switch. `--measure 60` opens a browser by itself, and prints a table.

mod browser;
mod devtools;
mod game;
mod link;
mod rival;
mod site;

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;

use browser::Browser;
use link::Link;
use rival::Rival;
use site::{Servers, Site};

#[derive(Parser)]
#[command(args_override_self = true)]
#[command(about = "A game in a page, and how late its snapshots are per recovery profile")]
struct Options {
    /// Address of the page.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Loss of the emulated link, each way.
    #[arg(long, default_value = "5%")]
    loss: String,
    /// Delay of the emulated link, one way.
    #[arg(long, default_value = "50ms")]
    delay: String,
    /// Opens the page in a browser without a screen, measures for this many seconds, and prints a table.
    #[arg(long, value_name = "SECONDS")]
    measure: Option<u64>,
    /// The browser for measurements.
    #[arg(long, value_enum, default_value_t = Browser::Chromium)]
    browser: Browser,
    /// Browsers that measure at the same time, each with connections of its own. A table for each is printed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..))]
    browsers: u8,
    /// Measures without the emulated link.
    #[arg(long)]
    clear: bool,
    /// Connections of each kind while measuring.
    #[arg(long, default_value_t = 4)]
    copies: u32,
    /// Instead, measures this many times how long it takes from `new RTCPeerConnection()` to the first snapshot.
    #[arg(long, value_name = "TIMES")]
    setups: Option<u32>,
    /// Channels of ours are announced (DCEP), as those of other servers, instead of known to both sides in advance.
    #[arg(long)]
    dcep: bool,
    /// Writes a picture of the page in Chromium, as it is after the measurement, into this file (PNG).
    #[arg(long, value_name = "FILE", requires = "measure", conflicts_with = "setups")]
    screenshot: Option<PathBuf>,
    /// An additional server of snapshots behind the emulated link (repeatable): a program that reads offers and
    /// prints answers, as those in `rivals/`.
    #[arg(long, value_name = "NAME=COMMAND")]
    rival: Vec<String>,
}

/// Columns of the tables, as the page names them.
const LATENCY_COLUMNS: [&str; 5] = ["p50", "p99", "p999", "max", "setup"];
const SETUP_COLUMNS: [&str; 4] = ["p50", "p95", "p99", "max"];

fn print_table(found: &Value, columns: &[&str]) {
    print!("{:<36}{:>9}", "ms", "count");
    for column in columns {
        print!("{:>8}", column.replace("p999", "p99.9"));
    }
    println!();
    for row in found.as_array().into_iter().flatten() {
        let name = row["name"].as_str().unwrap_or("?");
        print!("{name:<36}{:>9}", row["count"]);
        for &column in columns {
            print!("{:>8.0}", row[column].as_f64().unwrap_or(f64::NAN));
        }
        println!();
    }
}

/// An address of this machine beside the loopback interface's, to which Firefox does not connect; that one if there is
/// no other. Nothing is sent to find it.
fn own_address() -> Ipv4Addr {
    let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| socket.connect("198.51.100.1:9").and_then(|()| socket.local_addr()));
    match probe.map(|own| own.ip()) {
        Ok(IpAddr::V4(own)) if !own.is_unspecified() => own,
        _ => Ipv4Addr::LOCALHOST,
    }
}

/// A browser with the directory of its profile. It ends with this value.
struct Opened(Child, TempDir);

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The time limit of the browser for a picture of the page.
const SCREENSHOT_LIMIT: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let (results, mut found) = mpsc::channel(usize::from(options.browsers));
    let link = Link::start(&options.delay, &options.loss)
        .inspect_err(|error| eprintln!("without an emulated link: {error}"))
        .ok();
    let clear = Servers::start(own_address(), |bind| Ok(bind()))?;
    let lossy = match &link {
        Some(link) => Some(Servers::start(link.far, |bind| link.beyond(bind))?),
        None => None,
    };
    let rivals = options.rival.iter().map(|text| {
        let Some(link) = &link else { return Err("rivals are behind the emulated link".into()) };
        Rival::start(text, |program| link.command(program))
    });
    let rivals = rivals.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let site = Arc::new(Site { clear, lossy, rivals, results });
    let listener = tokio::net::TcpListener::bind(options.listen).await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let router = site::router(site);
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let copies = options.copies;
    let (query, columns, limit_s) = match (options.setups, options.measure) {
        (Some(times), _) => (format!("setups={times}"), &SETUP_COLUMNS[..], u64::from(times) * 20),
        (None, Some(seconds)) => {
            (format!("seconds={seconds}&copies={copies}"), &LATENCY_COLUMNS[..], seconds)
        }
        (None, None) => {
            println!("open {url}");
            return Ok(serving.await??);
        }
    };
    let kind = if link.is_some() && !options.clear { "lossy" } else { "clear" };
    let dcep = if options.dcep { "&dcep=1" } else { "" };
    let page = format!("{url}?link={kind}&{query}{dcep}");
    let mut open = Vec::new();
    for _ in 0..options.browsers {
        let profile = tempfile::tempdir()?;
        open.push(Opened(options.browser.open(&page, profile.path())?, profile));
    }
    let limit = Duration::from_secs(limit_s + 120);
    for _ in &open {
        let found = tokio::time::timeout(limit, found.recv()).await?;
        let found = found.ok_or("a page has reported nothing")?;
        if !found.is_array() {
            return Err(format!("a page reports {found}").into());
        }
        print_table(&found, columns);
    }
    if let (Some(file), Some(Opened(_, profile))) = (&options.screenshot, open.first()) {
        let shot = tokio::time::timeout(SCREENSHOT_LIMIT, devtools::screenshot(profile.path()));
        std::fs::write(file, shot.await??)?;
    }
    Ok(())
}
