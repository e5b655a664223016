//! The sockets that carry SCTP packets: UDP encapsulation (RFC 6951) and raw IP protocol 132.
//!
//! Both have the same interface: batches in, batches out, readiness from tokio. A UDP socket lets the kernel
//! cut and coalesce batches (GSO, GRO); a raw socket takes one packet at a time.

#[cfg(all(test, target_os = "linux"))]
mod ecn;
mod inbox;
mod outbox;
mod refusals;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use rexmit_core::{Ecn, Route};
use rexmit_udp::{EcnCodepoint, Transmit, UdpState};
use socket2::{Domain, Protocol, SockAddr, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

pub(crate) use inbox::Inbox;
pub(crate) use outbox::Outbox;
pub(crate) use refusals::Report;

/// The size requested from the kernel for each buffer of a socket.
const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// IP protocol number of SCTP.
#[cfg(all(feature = "raw", target_os = "linux"))]
const SCTP: i32 = 132;

/// How SCTP packets are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// SCTP in UDP datagrams.
    Udp,
    /// SCTP directly over IPv4; the kernel delivers packets with the IP header.
    #[cfg(all(feature = "raw", target_os = "linux"))]
    RawV4 { sctp_port: u16 },
    /// SCTP directly over IPv6.
    #[cfg(all(feature = "raw", target_os = "linux"))]
    RawV6 { sctp_port: u16 },
}

/// A non-blocking socket that carries SCTP packets.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpState,
    kind: Kind,
    local: SocketAddr,
    /// Whether ICMP errors are queued, and fail the next call that sends.
    reports_errors: AtomicBool,
}

impl Socket {
    /// A UDP socket. An IPv6 wildcard address accepts IPv4, too.
    pub(crate) fn bind_udp(address: SocketAddr) -> io::Result<Self> {
        Self::bind(Self::new_udp(address)?, address, Kind::Udp)
    }

    fn new_udp(address: SocketAddr) -> io::Result<socket2::Socket> {
        let domain = Domain::for_address(address);
        let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            socket.set_only_v6(!address.ip().is_unspecified())?;
        }
        Ok(socket)
    }

    /// Several UDP sockets at one address. `program` says for each packet which of them receives it. It is refused if another
    /// socket is at the address.
    #[cfg(target_os = "linux")]
    pub(crate) fn bind_group(
        address: SocketAddr,
        count: usize,
        program: &[libc::sock_filter],
    ) -> io::Result<Vec<Self>> {
        // The sockets of a group would share the address with another group of the same user.
        let mut address = Self::bind_udp(address)?.local;
        let mut sockets = Vec::new();
        for _ in 0..count {
            let socket = Self::new_udp(address)?;
            socket.set_reuse_port(true)?;
            let socket = Self::bind(socket, address, Kind::Udp)?;
            address = socket.local;
            sockets.push(socket);
        }
        if let Some(first) = sockets.first() {
            steer(first, program)?;
        }
        Ok(sockets)
    }

    /// A raw socket that receives the SCTP packets to `sctp_port`.
    #[cfg(all(feature = "raw", target_os = "linux"))]
    pub(crate) fn bind_raw(address: IpAddr, sctp_port: u16) -> io::Result<Self> {
        let address = SocketAddr::new(address, 0);
        let domain = Domain::for_address(address);
        let socket = socket2::Socket::new(domain, Type::RAW, Some(Protocol::from(SCTP)))?;
        let kind = match address {
            SocketAddr::V4(_) => Kind::RawV4 { sctp_port },
            SocketAddr::V6(_) => Kind::RawV6 { sctp_port },
        };
        Self::bind(socket, address, kind)
    }

    /// A socket whose queue is full, and the other end, which empties it by receiving. Nothing can be sent with it.
    #[cfg(all(test, unix))]
    pub(crate) fn full() -> (Self, std::os::unix::net::UnixDatagram) {
        let (here, there) = std::os::unix::net::UnixDatagram::pair().expect("two descriptors");
        here.set_nonblocking(true).expect("it is open");
        there.set_nonblocking(true).expect("it is open");
        while here.send(&[0; 1000]).is_ok() {}
        let mut socket = Self::bind_udp(([127, 0, 0, 1], 0).into()).expect("a free port");
        let here = std::net::UdpSocket::from(std::os::fd::OwnedFd::from(here));
        socket.io = UdpSocket::from_std(here).expect("it does not block");
        (socket, there)
    }

    fn bind(socket: socket2::Socket, address: SocketAddr, kind: Kind) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.bind(&SockAddr::from(address))?;
        let local = socket.local_addr()?.as_socket().unwrap_or(address);
        // A raw socket refuses the options that only UDP has; the library then assumes an old kernel.
        let state = UdpState::new(&socket)?;
        state.request_buffers(&socket, SOCKET_BUFFER_BYTES);
        let local = match kind {
            Kind::Udp => local,
            // The kernel shows the protocol number there.
            #[cfg(all(feature = "raw", target_os = "linux"))]
            Kind::RawV4 { .. } | Kind::RawV6 { .. } => SocketAddr::new(local.ip(), 0),
        };
        // tokio only waits for the socket, so a raw socket can be passed as a UDP socket.
        let io = UdpSocket::from_std(socket.into())?;
        Ok(Self { io, state, kind, local, reports_errors: AtomicBool::new(false) })
    }

    /// The address and UDP port it is bound to; port 0 for a raw socket.
    pub(crate) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) const fn is_raw(&self) -> bool {
        !matches!(self.kind, Kind::Udp)
    }

    /// The most packets to one destination that one call may send.
    const fn max_segments(&self) -> usize {
        self.state.max_segments()
    }

    /// Sends packets of `segment_bytes` each, the last one possibly shorter, or none of them.
    fn try_send(
        &self,
        route: Route,
        ecn: Ecn,
        contents: &[u8],
        segment_bytes: usize,
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.destination(route.remote),
            ecn: EcnCodepoint::from_bits(ecn.bits()),
            contents,
            segment_size: Some(segment_bytes),
            src_ip: self.source(route.local.ip()),
        };
        let send = || self.state.try_send(&self.io, &transmit);
        let mut result = send();
        if self.reports_errors.load(Ordering::Relaxed)
            && result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
        {
            result = send(); // The error may have been that of an earlier packet, perhaps of another destination.
        }
        match result {
            // Tried again through tokio, so that it registers that the socket is full. tokio is not asked first,
            // because it reports a new socket as writable only after the runtime has polled it.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.io.try_io(Interest::WRITABLE, send)
            }
            result => result,
        }
    }

    /// The address for the kernel: an IPv6 socket uses mapped IPv4 addresses.
    fn destination(&self, remote: SocketAddr) -> SocketAddr {
        match (self.local, remote) {
            (SocketAddr::V6(_), SocketAddr::V4(remote)) => {
                (remote.ip().to_ipv6_mapped(), remote.port()).into()
            }
            _ => remote,
        }
    }

    /// The source address for the packet, if the socket leaves a choice.
    fn source(&self, local: IpAddr) -> Option<IpAddr> {
        (self.local.ip().is_unspecified() && !local.is_unspecified()).then_some(local)
    }

    /// Ready when the socket may have room for [`try_send`](Self::try_send) again.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io.poll_send_ready(cx)
    }

    /// Receives the available packets for which `inbox` has room, in one system call.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let mut outcome = None;
            // "Would block" has tokio wait for the next arrival.
            let _ = self.io.try_io(Interest::READABLE, || {
                let received = inbox.fill(|buffers, meta| self.state.recv(&self.io, buffers, meta));
                // If there was room for more packets, no more had arrived. After an error other than `WouldBlock`, the
                // call is not repeated before another packet arrives, because the error may be permanent.
                let may_be_more = matches!(received, Ok(true));
                outcome = Some(received.map(drop));
                if may_be_more { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
            });
            match outcome {
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Some(outcome) => return Poll::Ready(outcome),
                None => {} // Nothing arrived after all.
            }
        }
    }

    /// The SCTP packet in a received datagram, unless it is for another endpoint.
    fn sctp_packet<'a>(&self, received: &'a [u8]) -> Option<&'a [u8]> {
        match self.kind {
            Kind::Udp => Some(received),
            #[cfg(all(feature = "raw", target_os = "linux"))]
            Kind::RawV4 { sctp_port } => {
                // RFC 791 §3.1: the low half of the first byte counts the header's words.
                let header_bytes = usize::from(received.first()? & 0x0f) * 4;
                for_port(received.get(header_bytes..)?, sctp_port)
            }
            #[cfg(all(feature = "raw", target_os = "linux"))]
            Kind::RawV6 { sctp_port } => for_port(received, sctp_port),
        }
    }
}

/// Has `program` choose the socket of each packet, for all sockets at the address of `socket`.
#[cfg(target_os = "linux")]
pub(crate) fn steer(socket: &Socket, program: &[libc::sock_filter]) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let (value, size) = ((&raw const program).cast(), size_of_val(&program) as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF);
    // SAFETY: the kernel reads `size` bytes at `value`, which are those of `program`, and its `len` instructions, which it
    // does not change.
    let result = unsafe { libc::setsockopt(socket.io.as_raw_fd(), level, option, value, size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether no interface of this machine has the address.
pub(crate) fn is_foreign(address: IpAddr) -> bool {
    let bound = std::net::UdpSocket::bind((address, 0));
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

/// The packet if it is for `sctp_port`. A raw socket receives every SCTP packet of its host: answering
/// those for other ports with an ABORT would end the associations of others.
#[cfg(all(feature = "raw", target_os = "linux"))]
fn for_port(packet: &[u8], sctp_port: u16) -> Option<&[u8]> {
    (packet.get(2..4)? == sctp_port.to_be_bytes()).then_some(packet)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_removed_address_does_not_disable_batches() {
        let socket = Socket::bind_udp("[::]:0".parse().unwrap()).unwrap();
        let most = socket.max_segments();
        assert!(most > 1, "this kernel does not cut batches, so nothing is tested");
        let receiver = std::net::UdpSocket::bind("[::1]:0").unwrap();
        let route = |local: &str| Route {
            local: local.parse().unwrap(),
            remote: receiver.local_addr().unwrap(),
        };
        let gone = socket.try_send(route("[2001:db8::1]:0"), Ecn::NotEct, &[0; 200], 100);
        assert_eq!(gone.unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(socket.max_segments(), most);
        socket.try_send(route("[::1]:0"), Ecn::NotEct, &[0; 200], 100).unwrap();
        let mut packet = [0; 300];
        assert_eq!([(); 2].map(|()| receiver.recv(&mut packet).unwrap()), [100; 2]);
        // More segments than a batch may have, and a port that nothing can be sent to.
        assert!(socket.try_send(route("[::1]:0"), Ecn::NotEct, &vec![0; 10_000], 1).is_err());
        let nowhere = Route { remote: "[::1]:0".parse().unwrap(), ..route("[::1]:0") };
        assert!(socket.try_send(nowhere, Ecn::NotEct, &[0; 200], 100).is_err());
        socket
            .try_send(route("[::1]:0"), Ecn::NotEct, &[0; 200], 100)
            .expect("batches are still cut");
        assert_eq!([(); 2].map(|()| receiver.recv(&mut packet).unwrap()), [100; 2]);
    }

    #[tokio::test]
    async fn a_raw_packet_is_stripped_of_its_header_and_taken_only_for_its_port() {
        let mut socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let sctp = [0x13, 0x88, 0x13, 0x89, 1, 2, 3, 4];
        let with_header = |words: u8| {
            let mut packet = vec![0; usize::from(words) * 4];
            packet[0] = 0x40 | words;
            packet.extend(sctp);
            packet
        };
        assert_eq!(socket.sctp_packet(&sctp), Some(&sctp[..]));
        socket.kind = Kind::RawV6 { sctp_port: 5001 };
        assert_eq!(socket.sctp_packet(&sctp), Some(&sctp[..]));
        socket.kind = Kind::RawV6 { sctp_port: 5000 };
        assert_eq!(socket.sctp_packet(&sctp), None);
        assert_eq!(socket.sctp_packet(&sctp[..3]), None);
        socket.kind = Kind::RawV4 { sctp_port: 5001 };
        for words in [5, 15] {
            assert_eq!(socket.sctp_packet(&with_header(words)), Some(&sctp[..]));
        }
        for broken in [&[][..], &[0x4f; 20][..], &with_header(5)[..21]] {
            assert_eq!(socket.sctp_packet(broken), None);
        }
    }
}
