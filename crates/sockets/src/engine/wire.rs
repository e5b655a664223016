//! A socket of an engine for packets: of SCTP in UDP (RFC 6951), in batches if the kernel supports them, or of SCTP
//! directly over IP. Routes over IP have ports of 0.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rexmit_core::{Ecn, Route};
use rexmit_udp::{EcnCodepoint, RecvMeta, Transmit, UdpState};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::settings::LOOPBACK_MTU;

/// The size of a receive buffer in bytes: the largest coalesced batch.
const BUFFER_BYTES: usize = 1 << 16;
/// The most bytes of a batch to be sent.
const MAX_BATCH_BYTES: usize = 64_000;
/// The size requested from the kernel for each buffer of the socket.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// Packets of the same route, ECN field and length; the last one may be shorter.
#[derive(Debug)]
struct Batch {
    route: Route,
    ecn: Ecn,
    segment_bytes: usize,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Wire {
    io: UdpSocket,
    state: UdpState,
    max_segments: usize,
    /// The address with the UDP port, or port 0 for SCTP over IP. It is the local address of packets for which the
    /// kernel reports none.
    local: SocketAddr,
    batch: Option<Batch>,
    spare: Vec<u8>,
    is_blocked: bool,
    buffer: Vec<u8>,
}

impl Wire {
    /// A socket for both families at this port, or for IPv4 only if the system has no IPv6.
    pub(super) fn bind(port: u16) -> io::Result<Self> {
        let ipv6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port));
        let io = match ipv6 {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
            Err(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?,
            Ok(io) => io,
        };
        let local = io.local_addr()?;
        Self::new(io, local)
    }

    /// A socket for SCTP over IP of one family; it needs the capability CAP_NET_RAW.
    pub(super) fn over_ip(any: IpAddr) -> io::Result<Self> {
        let family = if any.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let protocol = Some(rustix::net::ipproto::SCTP);
        let io = socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        Self::new(io.into(), SocketAddr::new(any, 0))
    }

    fn new(io: UdpSocket, local: SocketAddr) -> io::Result<Self> {
        io.set_nonblocking(true)?;
        let state = UdpState::new(&io)?;
        state.request_buffers(&io, SOCKET_BUFFER_BYTES);
        Ok(Self {
            local,
            io,
            max_segments: state.max_segments(),
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

    const fn is_over_ip(&self) -> bool {
        self.local.port() == 0
    }

    /// Whether the socket carries packets of this route.
    pub(super) const fn carries(&self, route: &Route) -> bool {
        let is_over_ip = route.remote.port() == 0;
        self.is_over_ip() == is_over_ip
            && (!is_over_ip || self.local.is_ipv4() == route.remote.is_ipv4())
    }

    /// Whether the kernel had no room; then the caller watches the socket until it is writable.
    pub(super) const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    pub(super) const fn unblock(&mut self) {
        self.is_blocked = false;
    }

    /// Passes the packets of one batch to `take`, each with its route and the ECN field of its IP header. Returns whether
    /// there were any.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Route, Ecn, &[u8])) -> io::Result<bool> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        match self.state.recv(&self.io, &mut buffers, &mut meta) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP message about an earlier packet: of one destination, and perhaps forged.
            Err(_) => return Ok(true),
        }
        let [meta] = meta;
        let local = meta.dst_ip.unwrap_or(self.local.ip()).to_canonical();
        let local = SocketAddr::new(local, self.local.port());
        let remote = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
        let ecn = meta.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8));
        let bytes = &self.buffer[..meta.len];
        if self.is_over_ip() {
            // The kernel passes the header of IPv4 on, and strips that of IPv6.
            let header = bytes.first().map_or(0, |first| usize::from(first & 0xF) * 4);
            let header = if self.local.is_ipv4() { header } else { 0 };
            let remote = SocketAddr::new(remote.ip(), 0);
            take(Route { local, remote }, ecn, bytes.get(header..).unwrap_or_default());
        } else if remote.port() != 0 {
            for packet in bytes.chunks(meta.stride.max(1)) {
                take(Route { local, remote }, ecn, packet);
            }
        }
        Ok(true)
    }

    /// Sends a packet at once, or in one system call with the packets that follow it. Call [`flush`](Self::flush) after the last one.
    pub(super) fn send(&mut self, route: Route, ecn: Ecn, packet: &[u8]) {
        let is_over_ip = self.is_over_ip();
        if let Some(batch) = &mut self.batch {
            let has_room = !is_over_ip
                && batch.route == route
                && batch.ecn == ecn
                && batch.bytes.len().is_multiple_of(batch.segment_bytes)
                && packet.len() <= batch.segment_bytes
                && batch.bytes.len() / batch.segment_bytes < self.max_segments
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
        self.batch = Some(Batch { route, ecn, segment_bytes: packet.len().max(1), bytes });
    }

    /// Sends the packets collected by [`send`](Self::send). Those for which the kernel has no room are lost, as in a
    /// full queue of the network; nothing more should be sent until there is room.
    pub(super) fn flush(&mut self) {
        let Some(batch) = self.batch.take() else { return };
        match self.transmit(&batch, &batch.bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_blocked = true,
            Err(_) if batch.bytes.len() > batch.segment_bytes => {
                // Not every way takes batches.
                for packet in batch.bytes.chunks(batch.segment_bytes) {
                    let _ = self.transmit(&batch, packet);
                }
            }
            _ => {}
        }
        self.spare = batch.bytes;
    }

    /// Sends all or a part of a batch.
    fn transmit(&mut self, batch: &Batch, contents: &[u8]) -> io::Result<()> {
        let route = batch.route;
        let destination = match (self.local, route.remote) {
            (SocketAddr::V6(_), SocketAddr::V4(remote)) => {
                (remote.ip().to_ipv6_mapped(), remote.port()).into()
            }
            _ => route.remote,
        };
        let source = route.local.ip();
        let transmit = Transmit {
            destination,
            ecn: EcnCodepoint::from_bits(batch.ecn.bits()),
            contents,
            segment_size: Some(batch.segment_bytes),
            src_ip: (!source.is_unspecified()).then_some(source),
        };
        let result = self.state.try_send(&self.io, &transmit);
        if result.as_ref().is_err_and(rexmit_udp::may_concern_batches) {
            self.max_segments = 1;
        }
        result
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// The local address from which the kernel reaches `remote`, and the MTU of the route; `None` if there is no route.
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

/// Whether packets to this address stay on this host. (With `ip_nonlocal_bind` a socket can be bound to the addresses of others.)
pub(super) fn leads_to_own_host(remote: IpAddr) -> bool {
    way_to(remote).is_some_and(|(_, mtu)| mtu >= LOOPBACK_MTU)
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    const FIELDS: [Ecn; 5] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ect1];

    /// The numbers and fields of the packets that arrive, one for each of `FIELDS`.
    fn receive(wire: &mut Wire) -> Vec<(u8, Ecn)> {
        let mut received = Vec::new();
        while received.len() < FIELDS.len() {
            let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
            let mut readable = [PollFd::new(&*wire, PollFlags::IN)];
            assert_eq!(poll(&mut readable, Some(&limit)), Ok(1), "{received:?}");
            wire.receive(|_, ecn, packet| received.push((packet[0], ecn))).unwrap();
        }
        received
    }

    fn exchange(sender: &mut Wire, receiver: &mut Wire, remote: SocketAddr) {
        let any =
            if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::from([0; 16]) };
        let route = Route { local: SocketAddr::new(any, sender.port()), remote };
        for (ecn, n) in FIELDS.into_iter().zip(0..) {
            sender.send(route, ecn, &[n; 100]);
        }
        sender.flush();
        let expected: Vec<_> = (0..).zip(FIELDS).collect();
        assert_eq!(receive(receiver), expected, "{remote}");
    }

    #[test]
    fn packets_keep_their_ecn_fields_and_order() {
        let [mut sender, mut receiver] = [(); 2].map(|()| Wire::bind(0).unwrap());
        let hosts: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        // Without IPv6, the system has a socket for IPv4 only.
        let count = if receiver.local.is_ipv6() { 2 } else { 1 };
        for host in &hosts[..count] {
            let remote = SocketAddr::new(*host, receiver.port());
            exchange(&mut sender, &mut receiver, remote);
        }
    }

    #[test]
    fn packets_over_ip_keep_their_ecn_fields() {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let wires = [(); 2].map(|()| Wire::over_ip(any));
        let [Ok(mut sender), Ok(mut receiver)] = wires else {
            return rexmit_testkit::not_run("needs CAP_NET_RAW");
        };
        exchange(&mut sender, &mut receiver, (Ipv4Addr::LOCALHOST, 0).into());
    }
}
