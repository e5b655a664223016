//! Received batches, and the packets in them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use quinn_udp::RecvMeta;
use rexmit_core::Route;

use super::Socket;

/// Batches that one system call may receive.
pub(super) const BUFFERS: usize = 8;
/// Maximum size of a coalesced batch.
const BUFFER_BYTES: usize = 1 << 16;

/// The receive buffers of one endpoint. The system allocates their memory when it is first written to.
pub(crate) struct Inbox {
    memory: Vec<u8>,
    meta: [RecvMeta; BUFFERS],
    received: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        let memory = vec![0; BUFFERS * BUFFER_BYTES];
        Self { memory, meta: [RecvMeta::default(); BUFFERS], received: 0 }
    }

    /// Fills the buffers by `receive`, which returns how many it has filled. Returns whether all were.
    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        self.received = 0;
        let mut chunks = self.memory.chunks_mut(BUFFER_BYTES).map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| chunks.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        self.received = receive(&mut buffers, &mut self.meta)?;
        Ok(self.received == BUFFERS)
    }

    /// The SCTP packets received by `socket`, in order, each with its way.
    pub(crate) fn packets<'a>(
        &'a self,
        socket: &'a Socket,
    ) -> impl Iterator<Item = (Route, &'a [u8])> {
        let batches = self.memory.chunks(BUFFER_BYTES).zip(&self.meta).take(self.received);
        // From UDP port 0 nothing can be answered: sending there is an error.
        let batches = batches.filter(|(_, meta)| socket.is_raw() || meta.addr.port() != 0);
        batches.flat_map(move |(buffer, meta)| {
            let route = route(meta, socket.local);
            let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
            datagrams.filter_map(move |datagram| Some((route, socket.sctp_packet(datagram)?)))
        })
    }
}

/// The route of a received packet, with IPv4-mapped IPv6 addresses as IPv4 addresses.
fn route(meta: &RecvMeta, bound: SocketAddr) -> Route {
    let local = meta.dst_ip.unwrap_or(bound.ip()).to_canonical();
    let remote = match meta.addr.ip().to_canonical() {
        IpAddr::V4(remote) => (remote, meta.addr.port()).into(),
        IpAddr::V6(_) => meta.addr,
    };
    Route { local: SocketAddr::new(local, bound.port()), remote }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_over_an_ipv6_socket_is_ipv4() {
        let mut meta = RecvMeta::default();
        meta.addr = "[::ffff:192.0.2.1]:9899".parse().unwrap();
        meta.dst_ip = Some("::ffff:192.0.2.2".parse().unwrap());
        let route = route(&meta, "[::]:4000".parse().unwrap());
        assert_eq!(route.remote, "192.0.2.1:9899".parse().unwrap());
        assert_eq!(route.local, "192.0.2.2:4000".parse().unwrap());
    }

    /// An answer to port 0 would be an error of every batch that it is in.
    #[tokio::test]
    async fn datagrams_from_port_0_are_dropped() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut inbox = Inbox::new();
        let fill = |inbox: &mut Inbox| {
            inbox.fill(|buffers, meta| {
                for (n, port) in [7, 0, 8].into_iter().enumerate() {
                    buffers[n][..4].fill(n as u8);
                    (meta[n].len, meta[n].stride) = (4, 4);
                    meta[n].addr = SocketAddr::from(([127, 0, 0, 1], port));
                }
                Ok(3)
            })
        };
        fill(&mut inbox).unwrap();
        let ports = |inbox: &Inbox, socket: &Socket| -> Vec<u16> {
            inbox.packets(socket).map(|(route, _)| route.remote.port()).collect()
        };
        assert_eq!(ports(&inbox, &socket), [7, 8]);
    }
}
