//! ICMP errors: "port unreachable" of a peer's host. On Linux the socket queues them while it
//! [reports](Socket::report_errors) them; other systems report no errors.

use std::io;
use std::net::SocketAddr;

use super::Socket;

#[cfg(target_os = "linux")]
impl Socket {
    /// Enables or disables reports of ICMP errors on this UDP socket (`IP_RECVERR`); disabling empties the
    /// queue. While enabled, an error of one destination fails the next send to any.
    pub(crate) fn report_errors(&self, are_reported: bool) -> io::Result<()> {
        let v4 = (libc::IPPROTO_IP, libc::IP_RECVERR);
        let v6 = (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        // The wildcard address of IPv6 serves IPv4 too.
        let is_v6 = self.local.is_ipv6();
        let serves_v4 = !is_v6 || self.local.ip().is_unspecified();
        for (level, option) in [serves_v4.then_some(v4), is_v6.then_some(v6)].into_iter().flatten()
        {
            self.set_option(level, option, are_reported.into())?;
        }
        if !are_reported {
            socket2::SockRef::from(&self.io).take_error()?; // It would fail the next send.
        }
        Ok(())
    }

    fn set_option(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        value: libc::c_int,
    ) -> io::Result<()> {
        use std::os::fd::AsRawFd as _;
        let (pointer, len) = ((&raw const value).cast(), size_of::<libc::c_int>());
        // SAFETY: the kernel reads `len` bytes at `pointer`, which are those of `value`.
        let result = unsafe {
            libc::setsockopt(self.io.as_raw_fd(), level, option, pointer, len as libc::socklen_t)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for an ICMP "port unreachable" and returns the destination of the packet that it answers. ICMP
    /// errors of other kinds are skipped.
    ///
    /// # Errors
    /// Any other error of the socket.
    pub(crate) async fn refused(&self) -> io::Result<SocketAddr> {
        use tokio::io::Interest;
        loop {
            self.io.ready(Interest::ERROR).await?;
            match self.io.try_io(Interest::ERROR, || self.next_error()) {
                Ok((destination, libc::ECONNREFUSED)) => return Ok(destination),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next error in the queue: the destination of the packet, and the error number.
    fn next_error(&self) -> io::Result<(SocketAddr, libc::c_int)> {
        use socket2::{MsgHdrMut, SockAddr, SockRef};
        use std::mem::MaybeUninit;
        let mut destination = SockAddr::from(self.local);
        let mut control = [MaybeUninit::new(0_u8); CONTROL_BYTES];
        let mut message = MsgHdrMut::new().with_addr(&mut destination).with_control(&mut control);
        SockRef::from(&self.io).recvmsg(&mut message, libc::MSG_ERRQUEUE)?;
        let control_len = message.control_len();
        // SAFETY: all of them were initialised above.
        let control = control.map(|byte| unsafe { byte.assume_init() });
        let number = error_number(control.get(..control_len).unwrap_or_default()).unwrap_or(0);
        let destination = destination.as_socket().unwrap_or(self.local);
        Ok((SocketAddr::new(destination.ip().to_canonical(), destination.port()), number))
    }
}

/// Room for the control messages of an error: the packet's addresses, and the error.
#[cfg(target_os = "linux")]
const CONTROL_BYTES: usize = 256;

/// `ee_errno`, the first word of the extended error (`ip(7)`) among these control messages.
#[cfg(target_os = "linux")]
fn error_number(mut control: &[u8]) -> Option<libc::c_int> {
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
            return int(HEADER);
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
    pub(crate) async fn refused(&self) -> io::Result<SocketAddr> {
        std::future::pending().await
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The error is not the first of the control messages.
    #[test]
    fn the_error_number_is_found_behind_other_control_messages() {
        let mut control = Vec::new();
        for (kind, data) in
            [(libc::IP_PKTINFO, vec![1; 12]), (libc::IP_RECVERR, vec![111, 0, 0, 0])]
        {
            let mut message = vec![0; size_of::<libc::cmsghdr>()];
            let len = message.len() + data.len();
            message[..size_of::<usize>()].copy_from_slice(&len.to_ne_bytes());
            let words = [libc::IPPROTO_IP, kind].map(i32::to_ne_bytes).concat();
            message[size_of::<usize>()..][..8].copy_from_slice(&words);
            message.extend(data);
            message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
            control.extend(message);
        }
        assert_eq!(error_number(&control), Some(i32::from_ne_bytes([111, 0, 0, 0])));
        for len in 0..control.len() - 8 {
            error_number(&control[..len]); // It does not panic.
        }
        assert_eq!(error_number(&[0; 64]), None);
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
            socket.try_send(route, b"hello", 5).unwrap();
            assert_eq!(socket.refused().await.unwrap(), closed, "{own}");
            // The queue is empty, and no send fails.
            assert_eq!(socket.next_error().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            socket.try_send(route, b"hello", 5).unwrap();
            socket.report_errors(false).unwrap();
            assert_eq!(socket.next_error().unwrap_err().kind(), io::ErrorKind::WouldBlock);
            socket.try_send(route, b"hello", 5).unwrap();
            socket.try_send(route, b"hello", 5).unwrap();
        }
    }
}
