//! The addresses of this host, of which the peers of sockets are told that are bound to a wildcard.

use std::net::IpAddr;
use std::time::Duration;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::InterfaceFlags;
use rexmit_core::Instant;

/// The addresses are read again after this time: a peer can begin many associations.
const FRESH_TIME: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct HostAddresses {
    all: Vec<IpAddr>,
    read: Option<Instant>,
}

impl HostAddresses {
    /// The addresses of interfaces that are up, in their order, with the loopback ones last. Link-local ones of IPv6 are left
    /// out: they need an interface, which the routes of an association do not have.
    pub(super) fn get(&mut self, now: Instant) -> &[IpAddr] {
        if self.read.is_none_or(|read| now - read >= FRESH_TIME) {
            self.read = Some(now);
            // Without them the sockets have one address, that of the route.
            let all = getifaddrs().map(|all| all.filter_map(|each| usable(&each)).collect());
            self.all = all.unwrap_or_default();
            self.all.sort_by_key(IpAddr::is_loopback);
        }
        &self.all
    }
}

fn usable(interface: &InterfaceAddress) -> Option<IpAddr> {
    let storage = interface.address.as_ref()?;
    let ip: IpAddr = match (storage.as_sockaddr_in(), storage.as_sockaddr_in6()) {
        (Some(address), _) => address.ip().into(),
        (_, Some(address)) => address.ip().into(),
        _ => return None,
    };
    let needs_interface = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let is_up = interface.flags.contains(InterfaceFlags::IFF_UP);
    (is_up && !needs_interface).then_some(ip)
}
