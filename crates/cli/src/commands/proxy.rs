//! `rexmit proxy`.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use rexmit::proxy::setup::{self, Firewall, Setup, SetupConfig, SetupError};
use rexmit::proxy::{Proxy, ProxyConfig, ProxyEvent, serve_metrics};
use rexmit::recovery::TCP_PROFILES;
use rexmit::tcp::Stack;
use rexmit::tun::{AsyncTun, Tun, TunError};

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::metrics::bind;
use crate::output::print;
use crate::signals::{Signals, block_on};
use crate::values::{self, Network};

/// Serve the clients of a TCP service on this machine with rexmit's TCP, under a given recovery
/// profile. Service and clients stay unchanged.
///
/// Clients connect to --listen; their data is relayed to and from --upstream. Their packets arrive
/// through a TUN device. --setup creates the device and its firewall rules, as root, and removes
/// both at the end; --print-setup prints the commands instead, after which no privileges are
/// needed.
///
/// SIGTERM, SIGINT or SIGHUP stops it: no new clients are accepted, and connected ones may continue
/// for --drain. A second signal resets them at once. Connections from this machine itself bypass
/// the proxy and reach the service directly: test from another machine. See docs/proxy.md for
/// details.
#[derive(Debug, Args)]
#[command(after_help = examples!(
"  sudo rexmit proxy --listen 192.0.2.1:22 --upstream 127.0.0.1:22 --setup
  sudo rexmit proxy --listen 192.0.2.1:22 --remove-setup      # after a kill -9"))]
pub(crate) struct Arguments {
    /// Address that clients connect to: an address of this machine, or one that is routed to it.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: SocketAddr,
    /// Address of the service.
    #[arg(long, value_name = "ADDR:PORT", required_unless_present_any = ["print_setup", "remove_setup"])]
    upstream: Option<SocketAddr>,
    /// Recovery profile towards the clients.
    #[arg(long, value_name = "NAME", default_value = "tcp-interactive", help = profile_help())]
    profile: String,
    /// Largest number of concurrent clients; further ones are reset.
    #[arg(long, value_name = "NUMBER", default_value = "1024", value_parser = values::size)]
    max_connections: usize,
    /// Reset clients that exchange no data for this time [default: never].
    #[arg(long, value_name = "TIME", value_parser = values::interval)]
    idle_timeout: Option<Duration>,
    /// Time limit for connecting to the service.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::interval)]
    connect_timeout: Duration,
    /// Time for which connected clients may continue after a stop was requested.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::duration)]
    drain: Duration,
    /// Send each client's address to the service, by the PROXY protocol, version 2.
    #[arg(long)]
    proxy_protocol: bool,
    /// Address to serve metrics for Prometheus on, at /metrics. A port alone is one of 127.0.0.1.
    #[arg(long, value_name = "[ADDR:]PORT", value_parser = values::local_address)]
    metrics: Option<SocketAddr>,
    /// Do not log individual clients.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    place: Place,
}

/// How clients' packets reach the proxy.
#[derive(Debug, Args)]
struct Place {
    /// Create the device and the rules, and remove them at the end (as root).
    #[arg(long)]
    setup: bool,
    /// Print the commands that create and remove the device and the rules, and exit.
    #[arg(long, conflicts_with = "setup")]
    print_setup: bool,
    /// Remove the rules that a killed proxy left behind, and exit.
    #[arg(long, conflicts_with_all = ["setup", "print_setup"])]
    remove_setup: bool,
    /// Name of the TUN device, beginning with `rexmit` [default: rexmitPORT].
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Private network of the device; the proxy is its second host [default: 10.94.0.0/30 or
    /// fd94:9494::/126].
    #[arg(long, value_name = "CIDR", value_parser = values::network)]
    tun_network: Option<Network>,
    /// MTU of the device, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    mtu: u16,
    /// Interface at which clients' packets arrive; may be repeated [default: the interface that has
    /// the address].
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// Firewall tool that creates the rules [default: nft, if it is installed].
    #[arg(long, value_name = "PROGRAM")]
    firewall: Option<FirewallName>,
    /// Start even if rules of the input filter exist, which clients' packets bypass; set it if these rules are repeated
    /// for forwarded packets.
    #[arg(long)]
    ignore_input_filter: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FirewallName {
    Nft,
    Iptables,
}

fn profile_help() -> String {
    let names: Vec<_> =
        TCP_PROFILES.iter().map(|(name, about)| format!("{name}: {about}")).collect();
    format!("Recovery profile towards the clients; {}", names.join("; "))
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { listen, place, .. } = arguments;
    if place.remove_setup {
        let removed = if setup::remove(*listen)? { "removed" } else { "there was nothing" };
        eprintln!("rules for {listen}: {removed}");
        return Ok(());
    }
    if place.print_setup {
        return print(&Setup::plan(place.config(*listen))?.script()?);
    }
    let Some(upstream) = arguments.upstream else {
        return Err(Failure::new(Kind::Usage, "--upstream is missing")); // clap asks for it.
    };
    let config = arguments.config(upstream)?;
    block_on(serve(arguments, config))
}

async fn serve(arguments: &Arguments, config: ProxyConfig) -> Outcome {
    let Arguments { listen, place, profile, .. } = arguments;
    let signals = Signals::graceful()?;
    let setup = place.plan(*listen)?;
    if config.upstream.ip() == setup.address() {
        let message = "--upstream is the proxy's own address: give that of the service";
        return Err(Failure::new(Kind::Usage, message));
    }
    let metrics = match arguments.metrics {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let device = AsyncTun::new(place.device(&setup)?)?;
    let stack = Stack::new(device, [setup.address()], config.stack()).map_err(usage)?;
    let listener = stack.listen(listen.port()).map_err(usage)?;
    let upstream = config.upstream;
    let proxy = Proxy::new(listener, config).observed(Arc::new(log(arguments.quiet)));
    if let Some(metrics) = metrics {
        eprintln!("metrics at http://{}/metrics", metrics.local_addr()?);
        tokio::spawn(serve_metrics(metrics, proxy.monitor()));
    }
    let applied = if place.setup { Some(setup.apply()?) } else { None };
    setup::keep_needed_capabilities(place.setup)?;
    eprintln!("listening on {listen}, for {upstream}, with {profile}");
    eprintln!(
        "connections from this machine go to the service directly and bypass the proxy: test from \
         another machine"
    );
    let stop = async {
        signals.stop().await;
        tell(format_args!(
            "stopping: clients may continue for {:.1} s",
            arguments.drain.as_secs_f64()
        ));
    };
    let monitor = proxy.monitor();
    proxy.run(stop, signals.hurry()).await;
    if let Some(applied) = applied {
        applied.remove()?;
    }
    match monitor.statistics().stopped {
        0 => Ok(()),
        count => Err(Failure::new(Kind::Interrupted, format!("{count} clients were reset"))),
    }
}

fn log(is_quiet: bool) -> impl Fn(&ProxyEvent<'_>) + Send + Sync {
    move |event| {
        let is_of_one = matches!(event, ProxyEvent::Connected { .. } | ProxyEvent::Ended { .. });
        if !(is_quiet && is_of_one) {
            tell(event);
        }
    }
}

/// Prints a log line. Errors are ignored, so that the proxy keeps serving clients after its terminal was closed.
fn tell(what: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

impl Arguments {
    fn config(&self, upstream: SocketAddr) -> Result<ProxyConfig, Failure> {
        let recovery = values::tcp_profile(&self.profile).map_err(usage)?;
        Ok(ProxyConfig::new(upstream)
            .recovery(recovery)
            .max_connections(self.max_connections)
            .idle_timeout(self.idle_timeout)
            .connect_timeout(self.connect_timeout)
            .drain(self.drain)
            .proxy_protocol(self.proxy_protocol)
            .public_address(Some(self.listen)))
    }
}

impl Place {
    fn config(&self, listen: SocketAddr) -> SetupConfig {
        let mut config = SetupConfig::new(listen);
        if let Some(device) = &self.device {
            config.device.clone_from(device);
        }
        if let Some(network) = self.tun_network {
            (config.network, config.prefix) = ((network.first(), network.second()), network.prefix);
        }
        config.mtu = self.mtu;
        config.interfaces.clone_from(&self.interface);
        config.ignores_input_filter = self.ignore_input_filter;
        config.firewall = self.firewall.map(|name| match name {
            FirewallName::Nft => Firewall::Nft,
            FirewallName::Iptables => Firewall::Iptables,
        });
        config
    }

    /// The setup plan; remains of an earlier start are removed first.
    fn plan(&self, listen: SocketAddr) -> Result<Setup, Failure> {
        if self.setup {
            let setup = Setup::plan(self.config(listen))?;
            setup.check_permission()?;
            if setup::remove(listen)? {
                eprintln!("removed the rules that an earlier proxy left behind");
            }
        }
        Ok(Setup::plan(self.config(listen))?)
    }

    fn device(&self, setup: &Setup) -> Result<Tun, Failure> {
        if self.setup {
            return Ok(Tun::open(&setup.tun())?);
        }
        Tun::attach(setup.device()).map_err(|error| match error {
            TunError::NoDevice { .. } => {
                let how = "run as root with --setup, or first run the commands of --print-setup";
                Failure::new(Kind::Address, format!("{error}: {how}"))
            }
            error => error.into(),
        })
    }
}

fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Usage, error)
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        let kind = match error {
            SetupError::InvalidAddress(_)
            | SetupError::Loopback(_)
            | SetupError::Families { .. }
            | SetupError::DeviceName(_)
            | SetupError::NoInterface(_)
            | SetupError::WhichInterface(_) => Kind::Usage,
            SetupError::Permission { .. } => Kind::Address,
            _ => Kind::Failed,
        };
        Self::new(kind, error)
    }
}
