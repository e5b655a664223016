//! The transport of a kernel, used as that of a simulated host.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route};

use super::transport::{ConnectionEvent, ReadResult, Transport, Watch, WriteResult};
use super::{FragmentWatch, SegmentWatch};
use crate::kernel::{KernelHost, SctpCounters, SocketId};

/// The properties of a kernel's protocol that programs and meters need.
pub trait Protocol: Send + 'static {
    /// See [`Transport::Watch`].
    type Watch: Watch;
    /// See [`Transport::IP_PROTOCOL`].
    const IP_PROTOCOL: u8;
    /// See [`Transport::KEEPS_BOUNDARIES`].
    const KEEPS_BOUNDARIES: bool;
    /// See [`Transport::WRITE_BYTES`].
    const WRITE_BYTES: usize;
}

/// The TCP of a kernel.
#[derive(Debug)]
pub struct Tcp;

/// The SCTP of a kernel.
#[derive(Debug)]
pub struct Sctp;

impl Protocol for Tcp {
    type Watch = SegmentWatch;
    const IP_PROTOCOL: u8 = 6;
    const KEEPS_BOUNDARIES: bool = false;
    const WRITE_BYTES: usize = 16 * 1024;
}

impl Protocol for Sctp {
    type Watch = FragmentWatch;
    const IP_PROTOCOL: u8 = 132;
    const KEEPS_BOUNDARIES: bool = true;
    /// The payload of a full packet of 1500 bytes.
    const WRITE_BYTES: usize = 1452;
}

/// A host of a kernel. The kernel has its own timers: the caller, which runs the network, calls this machine when the
/// kernel has sent something (see [`Kernel::wait`](crate::kernel::Kernel::wait)).
pub struct KernelMachine<P> {
    host: Box<dyn KernelHost>,
    protocol: PhantomData<fn() -> P>,
}

impl<P> KernelMachine<P> {
    /// A host whose protocol is `P`, for which the kernel has created it.
    #[must_use]
    pub fn new(host: Box<dyn KernelHost>) -> Self {
        Self { host, protocol: PhantomData }
    }

    /// The kernel's present counters; `None` for a host with another protocol.
    #[must_use]
    pub fn sctp_counters(&self) -> Option<SctpCounters> {
        self.host.sctp_counters()
    }
}

impl<P> fmt::Debug for KernelMachine<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelMachine").finish_non_exhaustive()
    }
}

impl<P> Machine for KernelMachine<P> {
    type Event = (SocketId, ConnectionEvent);

    fn handle_input(&mut self, _: Instant, route: Route, packet: &[u8]) {
        self.host.deliver(route, packet);
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        self.host.transmit(packet)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.host.connection_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

impl<P: Protocol> Transport for KernelMachine<P> {
    type Id = SocketId;
    type Watch = P::Watch;
    const IP_PROTOCOL: u8 = P::IP_PROTOCOL;
    const KEEPS_BOUNDARIES: bool = P::KEEPS_BOUNDARIES;
    const WRITE_BYTES: usize = P::WRITE_BYTES;

    /// The local address is ignored: a host has one address, which the kernel uses.
    fn begin(&mut self, _: Instant, _: SocketAddr, remote: SocketAddr) -> Option<SocketId> {
        self.host.connect(remote)
    }

    fn connection_event(event: &Self::Event) -> Option<(SocketId, ConnectionEvent)> {
        Some(*event)
    }

    fn write(&mut self, _: Instant, id: SocketId, bytes: &mut Bytes) -> WriteResult {
        self.host.write(id, bytes)
    }

    fn read(&mut self, _: Instant, id: SocketId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        self.host.read(id, each)
    }

    fn finish(&mut self, _: Instant, id: SocketId) {
        self.host.finish(id);
    }

    fn abort(&mut self, _: Instant, id: SocketId) {
        self.host.abort(id);
    }
}
