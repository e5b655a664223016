//! Connections between two rexmit stacks, with routing kernels in between.
//!
//! ```text
//! senders' stack ── TUN ── kernel ── TUN ── link emulator ── TUN ── kernel ── TUN ── receivers' stack
//! ```
//!
//! rexmit is at both ends, as in a run in virtual time: the kernel delays acknowledgements in its
//! own way.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::tcp::{ConnectionConfig, Stack, StackConfig, TcpListener, TcpStream};
use rexmit::tun::{AsyncTun, NetNamespace, Tun, TunConfig};
use rexmit_core::trace::TraceSink;
use rexmit_lab::connections::{Connections, Measured};
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::recovery::RecoveryStatistics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use super::arrivals::Arrivals;
use super::ended::Ended;
use super::sender::{Course, Sender, times};
use crate::realtime::error::RealtimeError;
use crate::realtime::tcp::{Framing, READ_BYTES, let_route};

/// The addresses of the senders' stack and of the kernel's devices: next to the stack, and at the link.
const SENDERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 91, 0, 2), Ipv4Addr::new(10, 91, 0, 1), Ipv4Addr::new(10, 92, 0, 1)];
/// The same addresses on the receivers' side.
const RECEIVERS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 93, 0, 2), Ipv4Addr::new(10, 93, 0, 1), Ipv4Addr::new(10, 92, 0, 2)];

/// The server port of connection 0. Connection `n` uses this port plus `n`, so that ports
/// distinguish connections.
const FIRST_PORT: u16 = 7000;

/// The IPv4 header of every packet on the link.
const IP_BYTES: u64 = 20;

/// The namespaces and devices of the connections. Dropping this value removes them.
pub(super) struct Place {
    senders: Stack,
    receivers: Stack,
    emulator: TunEmulator,
    _kernels: [NetNamespace; 2],
}

impl Place {
    pub(super) fn new(
        connections: &Connections,
        sender: ConnectionConfig,
        receiver: ConnectionConfig,
    ) -> Result<Self, RealtimeError> {
        let (senders, near, near_kernel) = side(SENDERS, sender)?;
        let (receivers, far, far_kernel) = side(RECEIVERS, receiver)?;
        let link = LinkConfig::default()
            .forward(connections.forward.clone())
            .backward(connections.backward.clone())
            .seed(connections.seed.clone());
        let emulator = TunEmulator::start(&link, near, far)?;
        Ok(Self { senders, receivers, emulator, _kernels: [near_kernel, far_kernel] })
    }
}

/// Creates a stack with its kernel, and that kernel's device at the link.
fn side(
    [stack, kernel, at_link]: [Ipv4Addr; 3],
    connection: ConnectionConfig,
) -> Result<(Stack, Tun, NetNamespace), RealtimeError> {
    let namespace = NetNamespace::new()?;
    let device = |address, is_default_route| {
        TunConfig::default().ipv4(Some((address, 24))).is_default_route(is_default_route)
    };
    let to_stack = Tun::open_in(&namespace, &device(kernel, false))?;
    let to_link = Tun::open_in(&namespace, &device(at_link, true))?;
    let_route(&namespace)?;
    let config = StackConfig::default().connection(Arc::new(connection));
    let stack = Stack::new(AsyncTun::new(to_stack)?, [stack.into()], config)?;
    Ok((stack, to_link, namespace))
}

/// Runs all connections.
pub(super) async fn run(
    connections: &Connections,
    place: Place,
    mut trace: impl FnMut() -> Box<dyn TraceSink>,
) -> Result<Measured, RealtimeError> {
    let arrivals = Arrivals::of(connections, false);
    let times = times(connections);
    place.senders.set_trace(Some(trace()));
    let (mut flows, mut receiving) = (JoinSet::new(), JoinSet::new());
    for (port, (index, planned)) in (FIRST_PORT..).zip(connections.flows.iter().enumerate()) {
        let listener = place.receivers.listen(port)?;
        receiving.spawn(receive(listener, index, planned.messages.clone(), arrivals.clone()));
        let course = Course { index, planned: planned.clone(), arrivals: arrivals.clone(), times };
        let stack = place.senders.clone();
        flows.spawn(
            course.run(async move { stack.connect((RECEIVERS[0], port).into()).await.ok() }),
        );
    }
    let ended = Ended::wait(flows).await?;
    let measured = ended.measured(times.0, &arrivals, place.emulator.stop()?)?;
    Ok(Measured { ip_bytes: IP_BYTES, ..measured })
}

/// Receives on the one connection that `listener` accepts.
async fn receive(
    listener: TcpListener,
    connection: usize,
    messages: Vec<Message>,
    arrivals: Arrivals,
) {
    let Ok((mut receiver, _)) = listener.accept().await else { return };
    let mut framing = Framing::new(&messages);
    let mut bytes = vec![0; READ_BYTES];
    while let Ok(len @ 1..) = receiver.read(&mut bytes).await {
        let each = |number, message: &[u8]| {
            arrivals.on_arrival(connection, number, message);
            Ok::<_, std::convert::Infallible>(())
        };
        let Ok(()) = framing.take(&bytes[..len], each);
    }
}

impl Sender for TcpStream {
    async fn send(&mut self, _: u32, message: Vec<u8>) -> bool {
        self.write_all(&message).await.is_ok()
    }

    fn is_closed(&self) -> bool {
        self.close_reason().is_some()
    }

    fn recovery(&self) -> RecoveryStatistics {
        self.statistics().recovery
    }
}
