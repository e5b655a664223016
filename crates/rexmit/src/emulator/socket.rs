//! The relay's sockets: UDP in batches, with the kernel's time stamps.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};

/// Receive buffers per system call. Each holds one batch that the kernel coalesced (UDP GRO).
pub(super) const RECEIVE_BUFFERS: usize = 8;
/// Maximum size of a coalesced batch.
pub(super) const RECEIVE_BUFFER_BYTES: usize = 1 << 16;
/// How packets arrive at a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Coalescing {
    /// Batches as the kernel coalesced them. Their ECN field is lost, as their control messages do not fit beside the time
    /// stamp into the library's buffer.
    On,
    /// One by one, with their ECN field.
    Off,
}

/// The size requested from the kernel for the buffers of each socket; it grants what its limits allow.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// A UDP socket of the relay, with the buffers for batched system calls.
#[derive(Debug)]
pub(super) struct RelaySocket {
    io: UdpSocket,
    state: UdpSocketState,
}

impl RelaySocket {
    pub(super) fn open(
        registry: &Registry,
        token: Token,
        address: SocketAddr,
        coalescing: Coalescing,
    ) -> io::Result<Self> {
        let io = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&io).into())?;
        if coalescing == Coalescing::Off {
            disable_coalescing(&io)?;
        }
        // Best effort: the kernel has limits of its own, and smaller buffers work.
        let _ = state.set_recv_buffer_size((&io).into(), SOCKET_BUFFER_BYTES);
        let _ = state.set_send_buffer_size((&io).into(), SOCKET_BUFFER_BYTES);
        registry.register(&mut SourceFd(&io.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { io, state })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Reads at most [`RECEIVE_BUFFERS`] batches, each into its part of `buffers`.
    pub(super) fn receive(&self, buffers: &mut [u8], meta: &mut [RecvMeta]) -> io::Result<usize> {
        let mut chunks = buffers.chunks_mut(RECEIVE_BUFFER_BYTES).map(IoSliceMut::new);
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] =
            std::array::from_fn(|_| chunks.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        self.state.recv((&self.io).into(), &mut slices, meta)
    }

    /// Sends one packet, or drops it if the socket is full. `source` is the local address, which otherwise the system
    /// chooses.
    pub(super) fn send(
        &self,
        (source, destination): (Option<IpAddr>, SocketAddr),
        ecn: Option<EcnCodepoint>,
        contents: &[u8],
    ) -> io::Result<()> {
        let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: source };
        self.state.try_send((&self.io).into(), &transmit)
    }
}

fn disable_coalescing(socket: &UdpSocket) -> io::Result<()> {
    let off: libc::c_int = 0;
    let (value, len) = ((&raw const off).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    let (level, option) = (libc::SOL_UDP, libc::UDP_GRO);
    // SAFETY: the kernel reads `len` bytes at `value`, which are those of `off`.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
