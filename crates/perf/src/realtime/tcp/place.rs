//! The networks of a lane: a stack of ours and a kernel that are a link apart.
//!
//! ```text
//! our stack ── TUN ── router (a kernel that routes) ── TUN ── link emulator ── TUN ── clients' kernel
//! ```

use std::net::Ipv4Addr;

use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::tcp::{Stack, StackConfig};
use rexmit::tun::{AsyncTun, NetNamespace, Tun, TunConfig, TunError};

use crate::realtime::error::RealtimeError;

/// The stack's address; the router's is next to it.
pub(super) const STACK: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 1);
/// Both ends of the link.
const ROUTER_AT_LINK: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 1);
const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 2);

/// The switch of a kernel that routes.
const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// Where a lane runs. All of it is gone when this is dropped.
pub(super) struct Place {
    pub(super) stack: Stack,
    /// Where the clients are.
    pub(super) clients: NetNamespace,
    pub(super) emulator: TunEmulator,
    _router: NetNamespace,
}

impl Place {
    /// The clients are the link's near end, and what comes from the stack goes backward.
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

/// Makes the kernel of a namespace route.
pub(in crate::realtime) fn let_route(namespace: &NetNamespace) -> Result<(), TunError> {
    namespace.run(|| std::fs::write(FORWARDING, "1"))?.map_err(|source| TunError::Io {
        doing: "a namespace cannot be made to route (is /proc/sys writable?)",
        source,
    })
}
