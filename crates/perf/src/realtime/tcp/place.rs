//! The networks of a lane: a rexmit stack and a kernel, connected by a link.
//!
//! ```text
//! rexmit stack ── TUN ── router (a kernel) ── TUN ── link emulator ── TUN ── clients' kernel
//! ```

use std::net::Ipv4Addr;

use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::tcp::{Stack, StackConfig};
use rexmit::tun::{AsyncTun, NetNamespace, Tun, TunConfig, TunError};

use crate::realtime::error::RealtimeError;

/// The stack's address; the router has the next lower one.
pub(super) const STACK: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 1);
/// The router's address at the link.
const ROUTER_AT_LINK: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 1);
const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 2);

/// The kernel's switch for IPv4 forwarding.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// The namespaces and devices of a lane. Dropping this value removes them.
pub(super) struct Place {
    pub(super) stack: Stack,
    /// The namespace of the clients.
    pub(super) clients: NetNamespace,
    pub(super) emulator: TunEmulator,
    _router: NetNamespace,
}

impl Place {
    /// Creates the networks. The clients are at the near end of the link, so packets from the stack
    /// go backward.
    pub(super) fn new(link: &LinkConfig, config: StackConfig) -> Result<Self, RealtimeError> {
        let (router, clients) = (NetNamespace::new()?, NetNamespace::new()?);
        let device = |address, is_default_route| {
            TunConfig::default().ipv4(Some((address, 24))).is_default_route(is_default_route)
        };
        let to_stack = Tun::open_in(&router, &device(ROUTER, false))?;
        let far = Tun::open_in(&router, &device(ROUTER_AT_LINK, false))?;
        let near = Tun::open_in(&clients, &device(CLIENTS, true))?;
        let_route(&router)?;
        let emulator = TunEmulator::start(link, near, far)?;
        let stack = Stack::new(AsyncTun::new(to_stack)?, [STACK.into()], config)?;
        Ok(Self { stack, clients, emulator, _router: router })
    }
}

/// Enables IPv4 forwarding in a namespace.
pub(in crate::realtime) fn let_route(namespace: &NetNamespace) -> Result<(), TunError> {
    namespace.run(|| std::fs::write(FORWARDING, "1"))?.map_err(|source| TunError::Io {
        doing: "IPv4 forwarding cannot be enabled in a namespace (is /proc/sys writable?)",
        source,
    })
}
