//! How the packets of clients reach the stack of a proxy, and how that is undone.
//!
//! The stack is a host of its own behind a TUN device. For an address of this machine the kernel
//! translates the destination of the clients' packets (DNAT) to the stack's address and that of the
//! answers back; the clients' own addresses stay as they are. For an address that is routed to this
//! machine and that nobody here has, a route to the device is all there is.
//!
//! What is changed, in this order, and taken back in the other:
//!
//! 1. a TUN device with a private network; gone with the process,
//! 2. rules: the translation; a RST for clients while the device is gone; and, where forwarding was
//!    off, one that keeps this machine from forwarding anything else,
//! 3. forwarding, on that device and on the interface where the clients come in, not elsewhere.
//!
//! Rules have the listening address in their name, by which [`remove`] finds them, also those of a
//! process that was killed. Until then, they are harmless: no packet is forwarded that was not
//! before, and clients are reset.

mod host;
mod iptables;
mod nft;
mod plan;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use thiserror::Error;

pub use plan::{Applied, Setup};

/// What the names of our devices begin with, by which rules tell them.
pub const DEVICE_PREFIX: &str = "rexmit";

/// What makes rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firewall {
    /// nftables' `nft`.
    Nft,
    /// `iptables` and `ip6tables`.
    Iptables,
}

/// What a setup is to be like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetupConfig {
    /// Where clients connect to.
    pub listen: SocketAddr,
    /// The device's name, which begins with [`DEVICE_PREFIX`]. Default: that and the port.
    pub device: String,
    /// The kernel's address and the stack's in the private network behind the device; of the
    /// family of `listen`. Default `10.94.0.1` and `10.94.0.2`, or `fd94:9494::1` and
    /// `fd94:9494::2`.
    pub network: (IpAddr, IpAddr),
    /// The length of that network's prefix. Default 30, or 126.
    pub prefix: u8,
    /// The longest packet of the device. Default 1500.
    pub mtu: u16,
    /// Where clients' packets come in. Default empty: at the interface that has the address.
    pub interfaces: Vec<String>,
    /// Default `None`: `nft` if it is installed, else `iptables`.
    pub firewall: Option<Firewall>,
}

impl SetupConfig {
    /// The defaults for this address.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        let (network, prefix) = if listen.is_ipv4() {
            let host = |last| IpAddr::V4(Ipv4Addr::new(10, 94, 0, last));
            ((host(1), host(2)), 30)
        } else {
            let host = |last| IpAddr::V6(Ipv6Addr::new(0xfd94, 0x9494, 0, 0, 0, 0, 0, last));
            ((host(1), host(2)), 126)
        };
        Self {
            listen,
            device: format!("{DEVICE_PREFIX}{}", listen.port()),
            network,
            prefix,
            mtu: 1500,
            interfaces: Vec::new(),
            firewall: None,
        }
    }
}

/// Why clients cannot be brought to the stack.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The address or port does not name one place.
    #[error("{0} cannot be listened on: give the one address and port that clients connect to")]
    NoPlace(SocketAddr),
    /// Clients of this machine have no need.
    #[error(
        "{0} is reached from this machine alone, where nothing is lost: give an address that \
         clients connect to"
    )]
    Loopback(SocketAddr),
    /// The private network is of another family.
    #[error("{listen} and the device's network {network} are of different families")]
    Families {
        /// Where clients connect to.
        listen: SocketAddr,
        /// The kernel's address in the network.
        network: IpAddr,
    },
    /// Rules would not know the device.
    #[error(
        "a device of the proxy cannot be called {0}: at most 15 letters and digits, of which the first are `rexmit`"
    )]
    DeviceName(String),
    /// No such interface, or a name that would not survive a rule.
    #[error("there is no network interface {0}: `ip link` lists those that are")]
    NoInterface(String),
    /// It cannot be known where the packets come in.
    #[error("no interface has {0}: say where its packets come in with --interface NAME")]
    WhichInterface(IpAddr),
    /// Somebody has decided against it.
    #[error(
        "forwarding is on, but not on {0}: if that may be changed, \
         `sudo sysctl -w net/ipv4/conf/{0}/forwarding=1`"
    )]
    ForwardingRefused(String),
    /// It concerns every interface, and where routes come from.
    #[error(
        "IPv6 is not forwarded, and that can be changed for the whole machine only: \
         `sudo sysctl -w net.ipv6.conf.all.forwarding=1` (with `accept_ra=2` on interfaces whose \
         routes come from router advertisements), then start again"
    )]
    Ipv6Forwarding,
    /// Rules and devices are not for everybody.
    #[error("this needs root: `sudo {command}`")]
    Permission {
        /// What was called.
        command: String,
    },
    /// Neither of the programs is there.
    #[error("neither nft nor iptables is installed: `sudo apt-get install nftables` (or iptables)")]
    NoFirewall,
    /// A program is missing.
    #[error("{program} cannot be run: {source} (Debian's package {package})")]
    NoProgram {
        /// The program.
        program: String,
        /// Where it comes from.
        package: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The whole command.
        command: String,
        /// What it said.
        said: String,
    },
    /// A switch of the kernel.
    #[error("{}: {source}", path.display())]
    Switch {
        /// Its file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// What could not be done.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
}

/// Removes what a proxy at `listen` has left of its rules, if anything, and switches forwarding back
/// off where it had switched it on and nobody else needs it. Whether there was anything.
///
/// # Errors
/// What could not be removed.
pub fn remove(listen: SocketAddr) -> Result<bool, SetupError> {
    let mut has_removed = false;
    for firewall in [Firewall::Nft, Firewall::Iptables] {
        if host::is_installed(firewall, listen.is_ipv4()) {
            has_removed |= plan::remove_with(firewall, listen)?;
        }
    }
    Ok(has_removed)
}

/// The name of what belongs to a listening address.
fn name(listen: SocketAddr) -> String {
    // Letters, digits, dots and underscores are all that nft takes everywhere.
    format!("{NAME_PREFIX}{}_{}", listen.ip().to_string().replace(':', "_"), listen.port())
}

/// What every such name begins with.
const NAME_PREFIX: &str = "rexmit_proxy_";
/// The comment of the rule that keeps an interface from forwarding anything else.
const GUARD: &str = "forwarding-was-off";
