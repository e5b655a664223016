//! Hosts whose transport is that of an operating system's kernel: what a run needs of that kernel, without any I/O.
//!
//! A run with such hosts takes place inside the kernel: [`scenario::execute_in`](crate::scenario::execute_in) is called
//! by a process there, with a [`Kernel`] that creates the hosts and waits on its clock. The network between the hosts,
//! the programs on them and the meters are those of any other run.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use rexmit_core::{Instant, Route};

use crate::hosts::{ConnectionEvent, ReadResult, WriteResult};

/// The protocol of a host of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KernelProtocol {
    /// TCP.
    Tcp,
    /// SCTP, one association per socket.
    Sctp {
        /// Whether messages are delivered unordered.
        is_unordered: bool,
    },
}

/// A host of the kernel: its address, its peer, and its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPlan {
    /// The protocol.
    pub protocol: KernelProtocol,
    /// The host's address.
    pub address: IpAddr,
    /// The address of the only host that it exchanges packets with.
    pub peer: IpAddr,
    /// The port on which it accepts connections, if it does.
    pub listens_on: Option<u16>,
    /// The largest IP packet.
    pub mtu: u16,
    /// Whether small data waits for acknowledgements (Nagle's algorithm).
    pub has_nagle: bool,
    /// Settings of the kernel, by their names such as `net.ipv4.tcp_congestion_control`.
    pub settings: Vec<(String, String)>,
}

/// Identifies a socket of a host.
pub type SocketId = u32;

/// The kernel's counters of the SCTP of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SctpCounters {
    /// Expiries of T3-rtx.
    pub timeouts: u64,
    /// Fast retransmissions.
    pub fast_retransmits: u64,
}

/// A host of the kernel.
pub trait KernelHost: Send {
    /// Passes an arriving packet, without IP header, to the kernel.
    fn deliver(&mut self, route: Route, packet: &[u8]);

    /// Writes the next packet sent by the kernel, without IP header, into `packet`, which is cleared first.
    fn transmit(&mut self, packet: &mut Vec<u8>) -> Option<Route>;

    /// The next event of a socket.
    fn connection_event(&mut self) -> Option<(SocketId, ConnectionEvent)>;

    /// Opens a connection; `None` if the kernel refuses.
    fn connect(&mut self, remote: SocketAddr) -> Option<SocketId>;

    /// Passes bytes to a socket. A stream may accept a part of them, a message is accepted as a whole or refused.
    fn write(&mut self, id: SocketId, bytes: &mut Bytes) -> WriteResult;

    /// Reads all data that a socket has received.
    fn read(&mut self, id: SocketId, each: &mut dyn FnMut(&[u8])) -> ReadResult;

    /// Ends sending; accepted data is still delivered.
    fn finish(&mut self, id: SocketId);

    /// Aborts the connection.
    fn abort(&mut self, id: SocketId);

    /// The kernel's present counters; `None` for a host with another protocol.
    fn sctp_counters(&self) -> Option<SctpCounters>;
}

/// Why a kernel cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelError {
    /// The program does not run in such a kernel, or none has been built; with an explanation.
    Missing(&'static str),
    /// A call failed; with an explanation.
    Failed(String),
}

/// The kernel in which a run takes place.
pub trait Kernel {
    /// Creates a host. Hosts are numbered 0, 1, 2, … in the order of creation.
    ///
    /// # Errors
    /// If the kernel refuses, or does not know a setting.
    fn host(&mut self, plan: HostPlan) -> Result<Box<dyn KernelHost>, KernelError>;

    /// Waits until `until`, or until the kernel has packets or events for hosts, whose numbers it then writes into
    /// `ready`, which is cleared first. Returns the time since the first call of this function, on the kernel's clock.
    ///
    /// # Errors
    /// If a call of the system fails.
    fn wait(&mut self, until: Instant, ready: &mut Vec<usize>) -> Result<Instant, KernelError>;
}
