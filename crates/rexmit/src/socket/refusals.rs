//! ICMP errors: "port unreachable" of a peer's host, and "packet too big" of a router. On Linux the socket queues them
//! while it [reports](Socket::report_errors) them; other systems report no errors.

use std::io;
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;

#[cfg(target_os = "linux")]
use socket2::SockRef;

use super::Socket;

/// Bytes of the quoted SCTP packet that a report has: both ports and the verification tag.
const QUOTE_BYTES: usize = 8;

/// An ICMP error for a packet of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems report none"))]
pub(crate) enum Report {
    /// Nothing listens at this address ("port unreachable").
    Refused(SocketAddr),
    /// A packet to `remote` was larger than the next link of a router allows, `mtu` bytes of IP; `quote` is the beginning
    /// of the SCTP packet.
    TooBig { remote: SocketAddr, mtu: usize, quote: [u8; QUOTE_BYTES] },
}

impl Report {
    /// The address to which the packet was sent.
    pub(crate) const fn remote(&self) -> SocketAddr {
        match *self {
            Self::Refused(remote) | Self::TooBig { remote, .. } => remote,
        }
    }
}

#[cfg(target_os = "linux")]
impl Socket {
    /// Enables or disables reports of ICMP errors on this socket (`IP_RECVERR`); disabling empties the
    /// queue. While enabled, an error of one destination fails the next system call that sends, to any destination:
    /// [`try_send`](Self::try_send) repeats it.
    pub(crate) fn report_errors(&self, are_reported: bool) -> io::Result<()> {
        let v4 = (libc::IPPROTO_IP, libc::IP_RECVERR);
        let v6 = (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        // The wildcard address of IPv6 serves IPv4 too, but not on a raw socket.
        let is_v6 = self.local.is_ipv6();
        let serves_v4 = !is_v6 || self.local.ip().is_unspecified() && !self.is_raw();
        for (level, option) in [serves_v4.then_some(v4), is_v6.then_some(v6)].into_iter().flatten()
        {
            set_option(&SockRef::from(&self.io), level, option, are_reported.into())?;
        }
        self.reports_errors.store(are_reported, Ordering::Relaxed);
        if !are_reported {
            SockRef::from(&self.io).take_error()?; // It would fail the next send.
        }
        Ok(())
    }

    /// Waits for the next ICMP error of these kinds; others are skipped.
    ///
    /// # Errors
    /// Any other error of the socket.
    pub(crate) async fn report(&self) -> io::Result<Report> {
        use tokio::io::Interest;
        loop {
            self.io.ready(Interest::ERROR).await?;
            match self.io.try_io(Interest::ERROR, || self.next_error()) {
                Ok(Some(report)) => return Ok(report),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next error in the queue, if it is a report.
    fn next_error(&self) -> io::Result<Option<Report>> {
        use socket2::{MaybeUninitSlice, MsgHdrMut, SockAddr};
        use std::mem::MaybeUninit;
        let mut destination = SockAddr::from(self.local);
        let mut control = [MaybeUninit::new(0_u8); CONTROL_BYTES];
        let mut quote = [MaybeUninit::new(0_u8); QUOTE_BYTES];
        let mut buffers = [MaybeUninitSlice::new(&mut quote)];
        let mut message = MsgHdrMut::new()
            .with_addr(&mut destination)
            .with_buffers(&mut buffers)
            .with_control(&mut control);
        let quoted = SockRef::from(&self.io).recvmsg(&mut message, libc::MSG_ERRQUEUE)?;
        let control_len = message.control_len();
        // SAFETY: all of them were initialised above.
        let control = control.map(|byte| unsafe { byte.assume_init() });
        // SAFETY: as above.
        let quote = quote.map(|byte| unsafe { byte.assume_init() });
        let destination = destination.as_socket().unwrap_or(self.local);
        let remote = SocketAddr::new(destination.ip().to_canonical(), destination.port());
        let error = extended_error(control.get(..control_len).unwrap_or_default());
        Ok(match error {
            Some(ExtendedError { number: libc::ECONNREFUSED, .. }) => Some(Report::Refused(remote)),
            // Refusals of the system's own device are reported by the call that sends.
            Some(ExtendedError { number: libc::EMSGSIZE, is_icmp: true, info })
                if quoted == QUOTE_BYTES =>
            {
                Some(Report::TooBig { remote, mtu: info as usize, quote })
            }
            _ => None,
        })
    }
}

/// Sets an option of a socket that has an integer value.
#[cfg(target_os = "linux")]
pub(super) fn set_option(
    socket: &SockRef<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let (pointer, len) = ((&raw const value).cast(), size_of::<libc::c_int>());
    // SAFETY: the kernel reads `len` bytes at `pointer`, which are those of `value`.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, option, pointer, len as libc::socklen_t)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for the control messages of an error: the packet's addresses, and the error.
#[cfg(target_os = "linux")]
const CONTROL_BYTES: usize = 256;

/// What `sock_extended_err` says (`ip(7)`).
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ExtendedError {
    /// `ee_errno`.
    number: libc::c_int,
    /// Whether `ee_origin` is ICMP or ICMPv6.
    is_icmp: bool,
    /// `ee_info`: the MTU, for EMSGSIZE.
    info: u32,
}

/// The extended error among these control messages.
#[cfg(target_os = "linux")]
fn extended_error(mut control: &[u8]) -> Option<ExtendedError> {
    const WORD: usize = size_of::<usize>();
    const HEADER: usize = size_of::<libc::cmsghdr>().next_multiple_of(WORD);
    loop {
        let int = |at: usize| {
            let bytes = control.get(at..at + 4)?.try_into().ok()?;
            Some(libc::c_int::from_ne_bytes(bytes))
        };
        let len = usize::from_ne_bytes(control.get(..WORD)?.try_into().ok()?);
        let kind = (int(WORD)?, int(WORD + 4)?);
        if matches!(kind, (libc::IPPROTO_IP, libc::IP_RECVERR))
            || matches!(kind, (libc::IPPROTO_IPV6, libc::IPV6_RECVERR))
        {
            let &origin = control.get(HEADER + 4)?;
            let is_icmp = matches!(origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
            let info = int(HEADER + 8)?.cast_unsigned();
            return Some(ExtendedError { number: int(HEADER)?, is_icmp, info });
        }
        control = control.get(len.max(HEADER).next_multiple_of(WORD)..)?;
    }
}

#[cfg(not(target_os = "linux"))]
impl Socket {
    /// Does nothing: this system does not report ICMP errors to an unconnected socket.
    pub(crate) fn report_errors(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    /// Waits for ever.
    pub(crate) async fn report(&self) -> io::Result<Report> {
        std::future::pending().await
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use rexmit_core::Ecn;

    use super::*;

    const TRY: Duration = Duration::from_millis(50);

    /// The error is not the first of the control messages.
    #[test]
    fn the_error_is_found_behind_other_control_messages() {
        let mut control = Vec::new();
        let mut error = 90_i32.to_ne_bytes().to_vec();
        error.extend([libc::SO_EE_ORIGIN_ICMP, 3, 4, 0]);
        error.extend(1400_u32.to_ne_bytes());
        for (kind, data) in [(libc::IP_PKTINFO, vec![1; 12]), (libc::IP_RECVERR, error)] {
            let mut message = vec![0; size_of::<libc::cmsghdr>()];
            let len = message.len() + data.len();
            message[..size_of::<usize>()].copy_from_slice(&len.to_ne_bytes());
            let words = [libc::IPPROTO_IP, kind].map(i32::to_ne_bytes).concat();
            message[size_of::<usize>()..][..8].copy_from_slice(&words);
            message.extend(data);
            message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
            control.extend(message);
        }
        let expected = ExtendedError { number: libc::EMSGSIZE, is_icmp: true, info: 1400 };
        assert_eq!(extended_error(&control), Some(expected));
        for len in 0..control.len() - 8 {
            assert_eq!(extended_error(&control[..len]), None); // It does not panic.
        }
        assert_eq!(extended_error(&[0; 64]), None);
    }

    #[tokio::test]
    async fn a_port_that_nothing_listens_on_is_reported_and_later_none_is() {
        for (own, host) in
            [("127.0.0.1:0", "127.0.0.1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::1")]
        {
            let closed = std::net::UdpSocket::bind((host, 0)).unwrap().local_addr().unwrap();
            let socket = Socket::bind_udp(own.parse().unwrap()).unwrap();
            let route = rexmit_core::Route { local: socket.local_addr(), remote: closed };
            socket.report_errors(true).unwrap();
            // Until a child of another test that was just forked has closed its copy of the closed socket.
            let report = loop {
                socket.try_send(route, Ecn::NotEct, b"hello", 5).unwrap();
                if let Ok(report) = tokio::time::timeout(TRY, socket.report()).await {
                    break report.unwrap();
                }
            };
            assert_eq!(report, Report::Refused(closed), "{own}");
            // The queue is empty, and no send fails.
            assert_eq!(socket.next_error().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            socket.try_send(route, Ecn::NotEct, b"hello", 5).unwrap();
            socket.report_errors(false).unwrap();
            assert_eq!(socket.next_error().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            socket.try_send(route, Ecn::NotEct, b"hello", 5).unwrap();
            socket.try_send(route, Ecn::NotEct, b"hello", 5).unwrap();
        }
    }
}
