//! The configuration of a setup, and the names of its device and rules.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rexmit_core::config;

/// The prefix of the names of our devices, by which rules match them.
pub const DEVICE_PREFIX: &str = "rexmit";

/// What makes rules.
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
        /// Whether rules for input that clients' packets no longer meet are no reason to refuse: they are repeated
        /// for forwarded packets. Default false.
        pub ignores_input_filter: bool,
    }
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
            ignores_input_filter: false,
            firewall: None,
        }
    }
}

/// The name of what belongs to a listening address.
pub(super) fn name(listen: SocketAddr) -> String {
    // Letters, digits, dots and underscores are all that nft takes everywhere.
    format!("{NAME_PREFIX}{}_{}", listen.ip().to_string().replace(':', "_"), listen.port())
}

/// What every such name begins with.
pub(super) const NAME_PREFIX: &str = "rexmit_proxy_";
/// The comment of the rule that keeps an interface from forwarding anything else.
pub(super) const GUARD: &str = "forwarding-was-off";
