//! Our TCP and the kernel's at the two ends of a TUN device, or of an emulated link.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::tcp::{ConnectionConfig, Stack, StackConfig};
use rexmit::tun::{AsyncTun, NetNamespace, Tun, TunConfig};

use super::netns::{self, KERNEL_V4, KERNEL_V6, OURS_V4, OURS_V6};

/// The kernel's addresses beyond an emulated link, and those of the near end of that link.
const FAR_V4: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 2);
const FAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd92, 0, 0, 0, 0, 0, 0, 2);
const NEAR_V4: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 1);
const NEAR_V6: Ipv6Addr = Ipv6Addr::new(0xfd92, 0, 0, 0, 0, 0, 0, 1);

/// A stack of ours, and a kernel that reaches it.
pub(crate) struct Site {
    pub(crate) kernel: NetNamespace,
    pub(crate) stack: Stack,
    /// The kernel's addresses, IPv4 and IPv6.
    pub(crate) theirs: [IpAddr; 2],
    /// The stack's.
    pub(crate) ours: [IpAddr; 2],
    /// The emulated link, which ends when this is dropped.
    pub(crate) link: Option<Link>,
}

/// An emulated link, and the namespace that routes between it and the stack.
pub(crate) struct Link {
    pub(crate) emulator: TunEmulator,
    _router: NetNamespace,
}

impl Site {
    /// The stack directly at the kernel's TUN device; `None` if not permitted.
    pub(crate) fn direct(connection: ConnectionConfig) -> Option<Self> {
        let (kernel, tun) = netns::tun_to_kernel()?;
        Some(Self::new(kernel, tun, connection, [KERNEL_V4.into(), KERNEL_V6.into()], None))
    }

    /// The stack and the kernel at the ends of a link that is `path` both ways.
    pub(crate) fn over(path: &str, connection: ConnectionConfig) -> Option<Self> {
        Self::linked(connection, |near, far| {
            TunEmulator::start(&config(path), near, far).expect("an emulator")
        })
    }

    /// As [`over`](Self::over), with a capture of packets after the link.
    pub(crate) fn over_capturing(path: &str, out: impl Write + Send + 'static) -> Option<Self> {
        Self::linked(ConnectionConfig::default(), |near, far| {
            TunEmulator::start_capturing(&config(path), (near, far), out).expect("an emulator")
        })
    }

    /// The chain: our stack, TUN, a routing kernel, TUN, the emulator, TUN, the kernel.
    fn linked(
        connection: ConnectionConfig,
        emulate: impl FnOnce(Tun, Tun) -> TunEmulator,
    ) -> Option<Self> {
        let (router, tun) = netns::tun_to_kernel()?;
        let kernel = netns::namespace()?;
        let end = |v4, v6, is_default_route| {
            TunConfig::default()
                .ipv4(Some((v4, 24)))
                .ipv6(vec![(v6, 64)])
                .is_default_route(is_default_route)
        };
        let near = netns::if_permitted(Tun::open_in(&router, &end(NEAR_V4, NEAR_V6, false)))?;
        let far = netns::if_permitted(Tun::open_in(&kernel, &end(FAR_V4, FAR_V6, true)))?;
        let forward = || {
            for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                std::fs::write(format!("/proc/sys/net/{switch}"), "1").expect("a router");
            }
        };
        router.run(forward).expect("the router's namespace");
        let link = Link { emulator: emulate(near, far), _router: router };
        Some(Self::new(kernel, tun, connection, [FAR_V4.into(), FAR_V6.into()], Some(link)))
    }

    fn new(
        kernel: NetNamespace,
        tun: Tun,
        connection: ConnectionConfig,
        theirs: [IpAddr; 2],
        link: Option<Link>,
    ) -> Self {
        let ours = [IpAddr::from(OURS_V4), IpAddr::from(OURS_V6)];
        let config = StackConfig::default().connection(Arc::new(connection));
        let device = AsyncTun::new(tun).expect("a device");
        let stack = Stack::new(device, ours, config).expect("a stack");
        Self { kernel, stack, theirs, ours, link }
    }

    /// Sets a switch of the kernel's TCP, as in `sysctl net.ipv4.tcp_sack=0`.
    pub(crate) fn set_kernel(&self, switch: &str, value: &str) {
        let path = format!("/proc/sys/net/ipv4/{switch}");
        let set = || std::fs::write(path, value);
        self.kernel.run(set).expect("the namespace").expect("a switch");
    }

    /// A socket of the kernel's that listens.
    pub(crate) fn kernel_listener(&self, address: IpAddr) -> (TcpListener, SocketAddr) {
        let bind = || TcpListener::bind((address, 0));
        let listener = self.kernel.run(bind).expect("the namespace").expect("a listener");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }

    /// A socket of the kernel's that connects.
    pub(crate) fn kernel_connect(
        &self,
        to: SocketAddr,
    ) -> tokio::task::JoinHandle<std::io::Result<TcpStream>> {
        let kernel = self.kernel.clone();
        in_thread(move || {
            let connect = || TcpStream::connect(to);
            kernel.run(connect).expect("the namespace").map(with_time_limit)
        })
    }
}

/// Runs the kernel's side in a thread, because its calls block.
pub(crate) fn in_thread<T: Send + 'static>(
    task: impl FnOnce() -> T + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::task::spawn_blocking(task)
}

/// Sets time limits on the socket, so that a failing test ends.
pub(crate) fn with_time_limit(stream: TcpStream) -> TcpStream {
    let limit = Some(Duration::from_secs(60));
    stream.set_read_timeout(limit).expect("a socket");
    stream.set_write_timeout(limit).expect("a socket");
    stream
}

fn config(path: &str) -> LinkConfig {
    let path: rexmit::path::PathConfig = path.parse().expect("a path");
    LinkConfig::default().forward(path.clone()).backward(path)
}
