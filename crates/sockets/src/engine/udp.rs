//! The UDP socket of an engine: packets of SCTP in UDP (RFC 6951), in batches where the kernel takes them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rexmit_core::Route;

/// Bytes of a receive buffer: what one coalesced batch has at most.
const BUFFER_BYTES: usize = 1 << 16;
/// Bytes of a batch to be sent at most.
const MAX_BATCH_BYTES: usize = 64_000;
/// The size requested from the kernel for each buffer of the socket.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Packets of the same route and length; the last one may be shorter.
#[derive(Debug)]
struct Batch {
    route: Route,
    segment_bytes: usize,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Udp {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    batch: Option<Batch>,
    spare: Vec<u8>,
    is_blocked: bool,
    buffer: Vec<u8>,
}

impl Udp {
    /// A socket for both families at this port, or for IPv4 alone where there is no IPv6.
    pub(super) fn bind(port: u16) -> io::Result<Self> {
        let ipv6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port));
        let io = match ipv6 {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?,
            Ok(io) => io,
        };
        io.set_nonblocking(true)?;
        let state = UdpSocketState::new((&io).into())?;
        let _ = state.set_recv_buffer_size((&io).into(), SOCKET_BUFFER_BYTES);
        let _ = state.set_send_buffer_size((&io).into(), SOCKET_BUFFER_BYTES);
        Ok(Self {
            local: io.local_addr()?,
            io,
            state,
            batch: None,
            spare: Vec::new(),
            is_blocked: false,
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    pub(super) const fn port(&self) -> u16 {
        self.local.port()
    }

    /// Whether the kernel had no room; then the socket is to be watched until it is writable.
    pub(super) const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    pub(super) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// Gives the packets of one batch to `take`; whether there was something.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Route, &[u8])) -> io::Result<bool> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        match self.state.recv((&self.io).into(), &mut buffers, &mut meta) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP message about an earlier packet: of one destination, and perhaps forged.
            Err(_) => return Ok(true),
        }
        let [meta] = meta;
        if meta.addr.port() != 0 {
            let local = meta.dst_ip.unwrap_or(self.local.ip()).to_canonical();
            let remote = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
            let route = Route { local: SocketAddr::new(local, self.local.port()), remote };
            for packet in self.buffer[..meta.len].chunks(meta.stride.max(1)) {
                take(route, packet);
            }
        }
        Ok(true)
    }

    /// Sends a packet, now or with those that follow. Call [`flush`](Self::flush) after the last one.
    pub(super) fn send(&mut self, route: Route, packet: &[u8]) {
        if let Some(batch) = &mut self.batch {
            let has_room = batch.route == route
                && batch.bytes.len().is_multiple_of(batch.segment_bytes)
                && packet.len() <= batch.segment_bytes
                && batch.bytes.len() / batch.segment_bytes < self.state.max_gso_segments()
                && batch.bytes.len() + packet.len() <= MAX_BATCH_BYTES;
            if has_room {
                batch.bytes.extend_from_slice(packet);
                return;
            }
        }
        self.flush();
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        bytes.extend_from_slice(packet);
        self.batch = Some(Batch { route, segment_bytes: packet.len().max(1), bytes });
    }

    /// Sends what [`send`](Self::send) has collected. What the kernel has no room for is lost, as in a full queue of
    /// the network; nothing more should be sent until there is room.
    pub(super) fn flush(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        match self.transmit(batch.route, &batch.bytes, batch.segment_bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_blocked = true,
            Err(_) if batch.bytes.len() > batch.segment_bytes => {
                // Not every way takes batches.
                for packet in batch.bytes.chunks(batch.segment_bytes) {
                    let _ = self.transmit(batch.route, packet, packet.len());
                }
            }
            _ => {}
        }
        self.spare = batch.bytes;
    }

    fn transmit(&self, route: Route, contents: &[u8], segment_bytes: usize) -> io::Result<()> {
        let destination = match (self.local, route.remote) {
            (SocketAddr::V6(_), SocketAddr::V4(remote)) => {
                (remote.ip().to_ipv6_mapped(), remote.port()).into()
            }
            _ => route.remote,
        };
        let source = route.local.ip();
        let transmit = Transmit {
            destination,
            ecn: None,
            contents,
            segment_size: Some(segment_bytes),
            src_ip: (!source.is_unspecified()).then_some(source),
        };
        self.state.try_send((&self.io).into(), &transmit)
    }
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// The local address from which the kernel reaches `remote`, and the MTU of the way; `None` without a route.
pub(super) fn way_to(remote: IpAddr) -> Option<(IpAddr, usize)> {
    let any: IpAddr = match remote {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting a UDP socket sends nothing.
    let probe = UdpSocket::bind((any, 0)).ok()?;
    probe.connect((remote, 9)).ok()?;
    let mtu = match remote {
        IpAddr::V4(_) => rustix::net::sockopt::ip_mtu(&probe),
        IpAddr::V6(_) => rustix::net::sockopt::ipv6_mtu(&probe),
    };
    Some((probe.local_addr().ok()?.ip(), mtu.map_or(0, |mtu| mtu as usize)))
}
