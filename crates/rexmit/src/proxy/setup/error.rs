//! Why clients cannot be brought to the stack.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use thiserror::Error;

/// Why clients cannot be brought to the stack.
#[derive(Debug, Error)]
#[non_exhaustive]
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
    /// It was refused by the administrator.
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
    /// Packets that are forwarded do not meet the rules for input.
    #[error(
        "clients' packets would bypass a rule of the input filter ({rule}): repeat the filter for forwarded packets, \
         whose destination is the proxy's own address, then add --ignore-input-filter"
    )]
    InputFilter {
        /// The first such rule.
        rule: String,
    },
    /// Rules and devices are not for everybody.
    #[error("this needs root: `sudo {command}`")]
    Permission {
        /// The program.
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
        /// The error of the system.
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
        /// The error of the system.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// What could not be done.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}
