//! Why packets of clients cannot be directed to the stack.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use thiserror::Error;

/// Why packets of clients cannot be directed to the stack.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The address is unspecified, or the port is 0.
    #[error("{0} cannot be listened on: give the one address and port that clients connect to")]
    InvalidAddress(SocketAddr),
    /// The address is a loopback address, which only this machine reaches.
    #[error(
        "{0} is reached only from this machine, where nothing is lost: give an address that \
         clients connect to"
    )]
    Loopback(SocketAddr),
    /// The private network and the address are of different families.
    #[error("{listen} and the device's network {network} are of different families")]
    Families {
        /// Where clients connect to.
        listen: SocketAddr,
        /// The kernel's address in the network.
        network: IpAddr,
    },
    /// The device name does not begin with [`DEVICE_PREFIX`](super::DEVICE_PREFIX), or is not valid.
    #[error(
        "a device of the proxy cannot be called {0}: at most 15 letters and digits that begin with `rexmit`"
    )]
    DeviceName(String),
    /// There is no such interface, or its name cannot be used in a rule.
    #[error("there is no network interface {0}: `ip link` lists those that are")]
    NoInterface(String),
    /// The interface at which packets arrive could not be determined.
    #[error(
        "no interface has {0}: name the interface at which its packets arrive with --interface NAME"
    )]
    WhichInterface(IpAddr),
    /// Forwarding is enabled, but disabled on this interface, probably by the administrator.
    #[error(
        "forwarding is on, but not on {0}: if that may be changed, \
         `sudo sysctl -w net/ipv4/conf/{0}/forwarding=1`"
    )]
    ForwardingRefused(String),
    /// IPv6 forwarding is off, and can only be enabled for all interfaces, which also changes how routes are
    /// learned.
    #[error(
        "IPv6 is not forwarded, and that can be changed for the whole machine only: \
         `sudo sysctl -w net.ipv6.conf.all.forwarding=1` (with `accept_ra=2` on interfaces whose \
         routes come from router advertisements), then start again"
    )]
    Ipv6Forwarding,
    /// Forwarded packets would bypass a rule of the input filter; see
    /// [`ignores_input_filter`](super::SetupConfig::ignores_input_filter).
    #[error(
        "clients' packets would bypass a rule of the input filter ({rule}): repeat the filter for forwarded packets, \
         whose destination is the proxy's own address, then add --ignore-input-filter"
    )]
    InputFilter {
        /// The first such rule.
        rule: String,
    },
    /// Rules and devices require privileges.
    #[error("this needs root: `sudo {command}`")]
    Permission {
        /// The program.
        command: String,
    },
    /// Neither `nft` nor `iptables` is installed.
    #[error("neither nft nor iptables is installed: `sudo apt-get install nftables` (or iptables)")]
    NoFirewall,
    /// A program is missing.
    #[error("{program} cannot be run: {source} (Debian's package {package})")]
    NoProgram {
        /// The program.
        program: String,
        /// The package that has the program.
        package: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The whole command.
        command: String,
        /// The program's error output.
        said: String,
    },
    /// A kernel setting could not be changed.
    #[error("{}: {source}", path.display())]
    KernelSetting {
        /// The file of the setting.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}
