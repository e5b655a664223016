//! A UDP socket with the ECN fields of its datagrams.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rexmit_core::{Ecn, Route};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The size of the receive buffer in bytes: the kernel may coalesce datagrams of a peer.
const BUFFER_BYTES: usize = 1 << 16;
/// The longest datagram that is received.
const MAX_DATAGRAM: usize = 4096;

pub(super) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    buffer: Vec<u8>,
}

impl Socket {
    pub(super) fn new(io: UdpSocket) -> io::Result<Self> {
        let state = new_state(&io)?;
        Ok(Self { local: io.local_addr()?, state, io, buffer: vec![0; BUFFER_BYTES] })
    }

    pub(super) async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }

    /// Passes coalesced datagrams to `take`, each with its route and ECN field. Returns their number.
    pub(super) fn try_receive(
        &mut self,
        mut take: impl FnMut(Route, Ecn, &[u8]),
    ) -> io::Result<usize> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        let receive = || self.state.recv((&self.io).into(), &mut buffers, &mut meta);
        self.io.try_io(Interest::READABLE, receive)?;
        let [meta] = meta;
        let route = Route { local: self.local, remote: meta.addr };
        let ecn = meta.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8));
        let datagrams = self.buffer[..meta.len].chunks(meta.stride.max(1));
        let received = datagrams.len().max(1);
        datagrams.filter(|it| it.len() <= MAX_DATAGRAM).for_each(|it| take(route, ecn, it));
        Ok(received)
    }

    /// Sends a datagram once the kernel has room.
    pub(super) async fn send(
        &mut self,
        remote: SocketAddr,
        ecn: Ecn,
        data: &[u8],
    ) -> io::Result<()> {
        let transmit = Transmit {
            destination: remote,
            ecn: EcnCodepoint::from_bits(ecn.bits()),
            contents: data,
            segment_size: None,
            src_ip: None,
        };
        let send = || self.state.try_send((&self.io).into(), &transmit);
        let result = self.io.async_io(Interest::WRITABLE, send).await;
        if result.as_ref().is_err_and(ends_ecn)
            && let Ok(state) = new_state(&self.io)
        {
            self.state = state;
        }
        result
    }
}

/// The library's state for a socket, with the socket's options set.
fn new_state(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(socket.into())?;
    // The library enables time stamps, with which the control messages of a coalesced batch do not fit into its buffer: the
    // ECN field would be missing.
    #[cfg(target_os = "linux")]
    disable_time_stamps(socket)?;
    Ok(state)
}

#[cfg(target_os = "linux")]
fn disable_time_stamps(socket: &UdpSocket) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let off: libc::c_int = 0;
    let (value, len) = ((&raw const off).cast(), size_of::<libc::c_int>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS);
    // SAFETY: the kernel reads `len` bytes at `value`, which are those of `off`.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether the library sends no ECN field over IPv4 after this error, to any destination, unless its state is replaced.
#[cfg(target_os = "linux")]
fn ends_ecn(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO))
}

#[cfg(not(target_os = "linux"))]
const fn ends_ecn(_: &io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn datagrams_keep_their_ecn_fields() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let bind = || async { Socket::new(UdpSocket::bind(host).await.unwrap()).unwrap() };
            let (mut sender, mut receiver) = (bind().await, bind().await);
            let fields = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
            for ecn in fields {
                sender.send(receiver.local, ecn, b"data").await.unwrap();
            }
            let mut received = Vec::new();
            while received.len() < fields.len() {
                let readable = tokio::time::timeout(Duration::from_secs(20), receiver.readable());
                readable.await.expect("a datagram").unwrap();
                // It may turn out not to be readable.
                let _ = receiver.try_receive(|route, ecn, datagram| {
                    assert_eq!((route.remote, datagram), (sender.local, &b"data"[..]));
                    received.push(ecn);
                });
            }
            assert_eq!(received, fields, "{host}");
        }
    }
}
