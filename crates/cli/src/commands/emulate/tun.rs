//! The emulator between TUN devices: the namespaces, the devices, and the programs at both ends.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use clap::Args;
use rexmit::clock::{now, sleep_until};
use rexmit::emulator::{EmulatorStatistics, LinkConfig, TunEmulator};
use rexmit::tun::{
    NetNamespace, Tun, TunConfig, TunError, enter_user_namespace, may_create_namespaces,
};
use serde::Serialize;
use tokio::process::Child;

use super::command::{self, Ended};
use super::summary::{Summary, text, watch};
use super::{Arguments, unwritable};
use crate::failure::{Failure, Kind, Outcome};
use crate::signals::{Signals, after, block_on};
use crate::values::{self, Network};

/// Packets that may wait at either end until they are read; larger than any burst of the kernel.
const QUEUE_PACKETS: u32 = 10_000;

/// Longest time for which packets are still relayed after COMMAND has ended.
const LAST_PACKETS: Duration = Duration::from_secs(2);
/// Interval of the checks for remaining packets.
const LOOK: Duration = Duration::from_millis(5);

/// The options of `--tun`.
#[derive(Debug, Args)]
pub(super) struct TunOptions {
    /// Relay IP packets between two TUN devices instead of UDP.
    #[arg(long, conflicts_with_all = ["listen", "to"])]
    tun: bool,
    /// Network of the link, given once per address family: its first address is that of the far
    /// end, its second one that of the near end [default: 10.90.0.0/24,fd90:9090::/64].
    #[arg(long, value_name = "CIDR", value_parser = values::network, value_delimiter = ',')]
    tun_network: Vec<Network>,
    /// MTU of the link, in bytes; below 1280 there is no IPv6 [default: 1500].
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,
    /// Command line of a server (run by the shell) in a separate namespace at the far end.
    #[arg(long, value_name = "COMMAND")]
    serve: Option<String>,
    /// Put the far end in this existing namespace of `ip netns` instead of this machine's own.
    #[arg(long, value_name = "NAME")]
    far_netns: Option<String>,
}

/// The default networks of a link.
const NETWORKS: [Network; 2] = [
    Network { address: IpAddr::V4(Ipv4Addr::new(10, 90, 0, 0)), prefix: 24 },
    Network { address: IpAddr::V6(Ipv6Addr::new(0xfd90, 0x9090, 0, 0, 0, 0, 0, 0)), prefix: 64 },
];

/// The addresses of both ends.
#[derive(Serialize)]
struct Ends {
    near: Vec<IpAddr>,
    far: Vec<IpAddr>,
}

/// The namespaces of both ends.
struct Place {
    near: NetNamespace,
    far: NetNamespace,
    /// Whether the namespace of the far end was created for this link.
    is_far_own: bool,
}

pub(super) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { tun, link, format, command, .. } = arguments;
    let config = link.config()?;
    tun.check_networks()?;
    let place = tun.place()?;
    let devices = (
        Tun::open_in(&place.near, &tun.device(Network::second, true))?,
        Tun::open_in(&place.far, &tun.device(Network::first, place.is_far_own))?,
    );
    let (statistics, ended, captured) = block_on(async {
        let signals = Signals::with_hangup()?;
        let far_name = devices.1.name().to_owned();
        let mut emulator = start(&config, devices, arguments)?;
        let ended = at_both_ends(arguments, &place, &far_name, (&signals, &emulator)).await;
        let captured = emulator.finish_capture();
        Ok((emulator.stop()?, ended?, captured))
    })?;
    let ends = Ends { near: tun.addresses(Network::second), far: tun.addresses(Network::first) };
    let summary = Summary::new(ends, link.seed, statistics);
    if command.is_empty() || format.json {
        format.print(&summary, text)?;
    } else {
        eprint!("{}", text(&summary));
    }
    match (arguments.record(), captured, ended) {
        (Some(path), Err(error), _) => Err(unwritable(path, &error)),
        (_, _, Some(Ended { code: code @ 1.. })) => Err(Failure::exit(code)),
        _ => Ok(()),
    }
}

/// Runs the server and COMMAND until COMMAND ends or a signal arrives; returns how COMMAND ended.
async fn at_both_ends(
    arguments: &Arguments,
    place: &Place,
    far_name: &str,
    (signals, emulator): (&Signals, &TunEmulator),
) -> Result<Option<Ended>, Failure> {
    let Arguments { tun, command, duration, .. } = arguments;
    let mut server = match &tun.serve {
        Some(line) => Some(command::serve(&place.far, line)?),
        None => None,
    };
    command::until_listening(&place.far, server.as_mut()).await?;
    tun.tell(place, far_name, command.is_empty());
    let watched = watch(|| emulator.statistics());
    let ended = if command.is_empty() {
        tokio::select! {
            () = signals.stop() => {}
            () = watched => {}
            () = after(*duration) => {}
            () = ends(server.as_mut()) => eprintln!("the server has ended"),
        }
        None
    } else {
        let child = command::start(&place.near, command)?;
        tokio::select! {
            ended = command::wait(child, signals, *duration) => {
                tokio::select! {
                    () = drained(emulator) => {}
                    () = signals.stop() => {}
                }
                Some(ended?)
            }
            () = watched => None,
        }
    };
    if let Some(server) = server {
        command::end(server).await;
    }
    Ok(ended)
}

/// Waits until no packet is on the link, at most [`LAST_PACKETS`], so that the far end receives the
/// last packets of COMMAND's connections.
async fn drained(emulator: &TunEmulator) {
    let deadline = now() + LAST_PACKETS;
    let under_way = || {
        let EmulatorStatistics { forward, backward, .. } = emulator.statistics();
        [forward, backward].iter().any(|direction| {
            direction.path.passed + direction.path.duplicated > direction.arrivals.delivered
        })
    };
    // An immediate check would precede the packets that the kernel sends when COMMAND ends.
    loop {
        sleep_until(now() + LOOK).await;
        if !under_way() || now() >= deadline {
            return;
        }
    }
}

async fn ends(server: Option<&mut Child>) {
    match server {
        // Waits until the server has ended, whatever its status.
        Some(server) => drop(server.wait().await),
        None => std::future::pending().await,
    }
}

fn start(
    config: &LinkConfig,
    (near, far): (Tun, Tun),
    arguments: &Arguments,
) -> Result<TunEmulator, Failure> {
    if let Some(log) = arguments.log("ip")? {
        return Ok(TunEmulator::start_logging(config, (near, far), log)?);
    }
    let Some(path) = arguments.pcap.as_deref() else {
        return Ok(TunEmulator::start(config, near, far)?);
    };
    let file = File::create(path).map_err(|error| unwritable(path, &error))?;
    Ok(TunEmulator::start_capturing(config, (near, far), file)?)
}

impl TunOptions {
    /// Whether `--tun` is given. Without it, an option that requires it is an error.
    pub(super) fn is_wanted(&self, has_command: bool) -> Result<bool, Failure> {
        let has_options = self.mtu.is_some()
            || self.serve.is_some()
            || self.far_netns.is_some()
            || !self.tun_network.is_empty();
        if !self.tun && (has_options || has_command) {
            let message = "COMMAND, --tun-network, --mtu, --serve and --far-netns require --tun";
            return Err(Failure::new(Kind::Usage, message));
        }
        Ok(self.tun)
    }

    fn mtu(&self) -> u16 {
        self.mtu.unwrap_or(TunConfig::default().mtu)
    }

    /// Returns an error for two networks of one family.
    fn check_networks(&self) -> Outcome {
        let count = |is_ipv4| {
            self.tun_network.iter().filter(|network| network.address.is_ipv4() == is_ipv4).count()
        };
        if count(true) > 1 || count(false) > 1 {
            let message = "--tun-network: at most one IPv4 and one IPv6 network";
            return Err(Failure::new(Kind::Usage, message));
        }
        Ok(())
    }

    /// The networks that are possible with the MTU.
    fn networks(&self) -> impl Iterator<Item = &Network> {
        let has_ipv6 = self.mtu() >= TunConfig::MIN_MTU_IPV6;
        let networks =
            if self.tun_network.is_empty() { &NETWORKS[..] } else { &self.tun_network[..] };
        networks.iter().filter(move |network| has_ipv6 || network.address.is_ipv4())
    }

    fn addresses(&self, of: fn(&Network) -> IpAddr) -> Vec<IpAddr> {
        self.networks().map(of).collect()
    }

    fn device(&self, of: fn(&Network) -> IpAddr, is_default_route: bool) -> TunConfig {
        let mut config = TunConfig::default()
            .mtu(self.mtu())
            .queue_packets(QUEUE_PACKETS)
            .is_default_route(is_default_route);
        for network in self.networks() {
            match of(network) {
                IpAddr::V4(address) => config.ipv4 = Some((address, network.prefix)),
                IpAddr::V6(address) => config.ipv6.push((address, network.prefix)),
            }
        }
        config
    }

    /// Creates or opens the namespaces. Must be called before any thread is started.
    fn place(&self) -> Result<Place, Failure> {
        let is_far_own = self.serve.is_some() && self.far_netns.is_none();
        if !may_create_namespaces() {
            if !is_far_own {
                let program = std::env::current_exe().unwrap_or_else(|_| "rexmit".into());
                let error = TunError::Permission { program };
                let hint = "with --serve 'COMMAND' it needs no privileges";
                return Err(Failure::new(Kind::Address, format!("{error}; {hint}")));
            }
            enter_user_namespace()?;
        }
        let far = match &self.far_netns {
            Some(name) => NetNamespace::named(name)?,
            None if is_far_own => NetNamespace::new()?,
            None => NetNamespace::current()?,
        };
        Ok(Place { near: NetNamespace::new()?, far, is_far_own })
    }

    fn tell(&self, place: &Place, far_name: &str, is_without_command: bool) {
        let list = |of| {
            let addresses = self.addresses(of);
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
        };
        let (near, far) = (list(Network::second), list(Network::first));
        eprintln!("link up: near end {near}, far end {far} ({far_name})");
        if is_without_command {
            let path = place.near.path();
            eprintln!("at the near end, run programs by: sudo nsenter --net={path} COMMAND");
        }
    }
}

impl From<TunError> for Failure {
    fn from(error: TunError) -> Self {
        match error {
            TunError::InvalidConfig(_) => Self::new(Kind::Usage, error),
            TunError::Io { .. } => Self::new(Kind::Failed, error),
            TunError::AddressTaken { .. } => {
                Self::new(Kind::Address, format!("{error} with --tun-network"))
            }
            _ => Self::new(Kind::Address, error),
        }
    }
}
