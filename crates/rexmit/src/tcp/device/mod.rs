//! The devices over which a stack exchanges IP packets.

mod memory;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::tun::{AsyncTun, Batch};
pub use memory::{MemoryDevice, QUEUE_PACKETS};

/// Exchanges IP packets with a network: a TUN device ([`AsyncTun`]), another stack in this process
/// ([`MemoryDevice`]), or a tunnel of the application.
pub trait PacketDevice: Send + Sync + 'static {
    /// The longest packet, in bytes.
    fn mtu(&self) -> u16;

    /// Ready once packets have arrived; `batch` then contains at least one. A single task calls this.
    ///
    /// # Errors
    /// The error of the system. The stack counts it and tries again once it is woken up.
    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>>;

    /// Sends one packet, with IP header and segment in separate slices. It must not wait.
    ///
    /// # Errors
    /// If the packet was not sent; [`WouldBlock`](io::ErrorKind::WouldBlock) for a full queue. The stack
    /// counts it; the protocol treats it as lost.
    fn try_send(&self, header: &[u8], segment: &[u8]) -> io::Result<()>;
}

impl PacketDevice for AsyncTun {
    fn mtu(&self) -> u16 {
        crate::tun::Tun::mtu(self)
    }

    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        Self::poll_receive(self, cx, batch)
    }

    fn try_send(&self, header: &[u8], segment: &[u8]) -> io::Result<()> {
        Self::try_send(self, header, segment)
    }
}

impl<D: PacketDevice + ?Sized> PacketDevice for Arc<D> {
    fn mtu(&self) -> u16 {
        (**self).mtu()
    }

    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        (**self).poll_receive(cx, batch)
    }

    fn try_send(&self, header: &[u8], segment: &[u8]) -> io::Result<()> {
        (**self).try_send(header, segment)
    }
}
