//! A UDP socket with the ECN fields of its datagrams.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use rexmit_core::{Ecn, Route};
use rexmit_udp::{EcnCodepoint, RecvMeta, Transmit, UdpState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The size of the receive buffer in bytes: the kernel may coalesce datagrams of a peer.
const BUFFER_BYTES: usize = 1 << 16;
/// The longest datagram that is received.
const MAX_DATAGRAM: usize = 4096;

pub(super) struct Socket {
    io: UdpSocket,
    state: UdpState,
    local: SocketAddr,
    buffer: Vec<u8>,
}

impl Socket {
    pub(super) fn new(io: UdpSocket) -> io::Result<Self> {
        let state = UdpState::new(&io)?;
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
        let receive = || self.state.recv(&self.io, &mut buffers, &mut meta);
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
    pub(super) async fn send(&self, remote: SocketAddr, ecn: Ecn, data: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: remote,
            ecn: EcnCodepoint::from_bits(ecn.bits()),
            contents: data,
            segment_size: None,
            src_ip: None,
        };
        let send = || self.state.try_send(&self.io, &transmit);
        self.io.async_io(Interest::WRITABLE, send).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn datagrams_keep_their_ecn_fields() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let bind = || async { Socket::new(UdpSocket::bind(host).await.unwrap()).unwrap() };
            let (sender, mut receiver) = (bind().await, bind().await);
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
