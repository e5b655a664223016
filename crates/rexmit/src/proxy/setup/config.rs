//! The configuration of a setup, and the names of its device and rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rexmit_core::config;

/// The prefix of the names of our devices, by which rules match them.
pub const DEVICE_PREFIX: &str = "rexmit";

/// The program that changes the firewall rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Firewall {
    /// nftables' `nft`.
    Nft,
    /// `iptables` and `ip6tables`.
    Iptables,
}

config! {
    /// The configuration of a setup.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct SetupConfig {
        /// The address and port that clients connect to.
        pub listen: SocketAddr,
        /// The name of the TUN device, which must begin with [`DEVICE_PREFIX`]. Default: the prefix and the
        /// port.
        pub device: String,
        /// The kernel's address and the stack's in the private network behind the device; of the
        /// family of `listen`. Default `10.94.0.1` and `10.94.0.2`, or `fd94:9494::1` and
        /// `fd94:9494::2`.
        pub network: (IpAddr, IpAddr),
        /// The length of that network's prefix. Default 30, or 126.
        pub prefix: u8,
        /// The MTU of the device, in bytes. Default 1500.
        pub mtu: u16,
        /// The interfaces at which clients' packets arrive. Default empty: the interface that has the
        /// address.
        pub interfaces: Vec<String>,
        /// The program that makes the rules; `None` uses `nft` if it is installed, else `iptables`. Default
        /// `None`.
        pub firewall: Option<Firewall>,
        /// Whether to continue if rules of the input filter exist. Clients' packets bypass them, because they are
        /// forwarded. Set it if these rules are repeated for forwarded packets. Default false:
        /// [`plan`](super::Setup::plan) then fails.
        pub ignores_input_filter: bool,
    }
}

impl SetupConfig {
    /// The default configuration for the address `listen`.
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
            ignores_input_filter: false,
            firewall: None,
        }
    }
}

/// The name of the rules and device for a listening address.
pub(super) fn name(listen: SocketAddr) -> String {
    // Letters, digits, dots and underscores are all that nft takes everywhere.
    format!("{NAME_PREFIX}{}_{}", listen.ip().to_string().replace(':', "_"), listen.port())
}

/// The prefix of all names of rules.
pub(super) const NAME_PREFIX: &str = "rexmit_proxy_";
/// The comment of the rule that prevents all other forwarding on an interface.
pub(super) const GUARD: &str = "forwarding-was-off";
