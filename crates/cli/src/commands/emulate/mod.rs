//! `rexmit emulate`.

mod command;
mod link;
mod summary;
mod tun;
mod udp;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rexmit::clock::now;
use rexmit_qlog::{About, Log, VantagePoint};

use self::link::Link;
use self::tun::TunOptions;
use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;
use crate::qlog;
use crate::values::{self, Host};

/// Relay UDP, or the traffic of any program, over an emulated link with netem's impairments.
///
/// Without --tun it relays UDP: clients send to the emulator instead of the server. With --tun it
/// relays IP packets between two network interfaces: COMMAND runs in a network namespace whose only
/// route is the link. The far end is this machine, with the address 10.90.0.1, or with --serve
/// another namespace in which the server runs. With --serve no privileges are needed where
/// unprivileged user namespaces are allowed. The exit status is that of COMMAND.
///
/// Both directions behave alike unless --forward or --backward is given; these are appended to the other options. It
/// ends with COMMAND, with SIGINT or SIGTERM (with --tun SIGHUP, too), or after --duration, and then prints how many packets were delivered and
/// dropped, and the timing error of the emulator. If there is a COMMAND, it has the standard output, so these figures
/// are printed to standard error unless --json is given.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --delay 50ms --loss 5%
  rexmit emulate --listen 0.0.0.0:9900 --to 192.0.2.1:9899 --delay 50ms --jitter 5ms \\
      --distribution normal --rate 10mbit --limit 100 --backward 'delay 20ms loss 0%'
  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --loss 5% --burst 3 \\
      --duration 60s --json
  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --loss 5% --pcap lossy.pcapng
  rexmit emulate --listen 127.0.0.1:9900 --to 127.0.0.1:9899 --loss 5% --qlog lossy.sqlog
  rexmit emulate --tun --delay 50ms --loss 1% -- curl http://10.90.0.1:8000/
  rexmit emulate --tun --delay 50ms --loss 1% --serve 'iperf3 -s' -- iperf3 -c 10.90.0.1"))]
pub(crate) struct Arguments {
    /// Address that clients send to; port 0 for any.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::host)]
    #[arg(required_unless_present = "tun")]
    listen: Option<Host>,
    /// Address of the server.
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::host)]
    #[arg(required_unless_present = "tun")]
    to: Option<Host>,
    /// Relay to the IP address that the client sent to, with the port of --to: for a server with several addresses.
    #[arg(long, requires = "to")]
    keep_destination: bool,
    #[command(flatten)]
    tun: TunOptions,
    #[command(flatten)]
    link: Link,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    duration: Option<Duration>,
    /// Write to this file (pcapng, for Wireshark) the packets that arrive at either end of the link, and those that
    /// were dropped, with the reason as a comment.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write packets as they arrive at either end of the link, and dropped ones as lost, to this file (qlog, for qvis: name it
    /// .sqlog). Packets from clients count as sent.
    #[arg(long, value_name = "FILE", conflicts_with = "pcap")]
    qlog: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
    /// Program to run at the near end of the link; without it, the link exists until it is stopped.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    if arguments.tun.is_wanted(!arguments.command.is_empty())? {
        return tun::run(arguments);
    }
    match (&arguments.listen, &arguments.to) {
        (Some(listen), Some(to)) => udp::run(arguments, listen.local()?, to.peer()?),
        // clap asks for both, or for --tun.
        _ => Err(Failure::new(Kind::Usage, "--listen and --to, or --tun")),
    }
}

impl Arguments {
    /// Opens the file of --qlog.
    fn log(&self, protocol: &'static str) -> Result<Option<Log>, Failure> {
        let about = About::new("an emulated link").protocol(protocol);
        let about = about.vantage_point(VantagePoint::Network);
        self.qlog.as_deref().map(|path| qlog::file(path, about, now())).transpose()
    }

    /// The file of packets, if there is one.
    fn record(&self) -> Option<&Path> {
        self.pcap.as_deref().or(self.qlog.as_deref())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let what_to_do = match error.kind() {
        io::ErrorKind::NotFound => "create its folder first",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space or choose a file on another disk"
        }
        _ => "choose a file that you may write",
    };
    let path = path.display();
    Failure::new(Kind::File, format!("cannot write {path}: {error}; {what_to_do}"))
}
