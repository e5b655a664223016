//! Received batches, and the packets in them.

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use rexmit_core::{Ecn, Route};
use rexmit_udp::RecvMeta;

use super::Socket;

/// The most batches that one system call receives.
pub(super) const BUFFERS: usize = 8;
/// Maximum size of a coalesced batch.
const BUFFER_BYTES: usize = 1 << 16;

thread_local! {
    /// The buffers of this thread, while no endpoint has them. An endpoint has none between its turns: each page that was
    /// written to stays in memory, which is up to 512 KiB, and a process may have thousands of endpoints.
    static OF_THREAD: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

/// Receive buffers. The system allocates their memory when it is first written to.
struct Buffers {
    memory: Vec<u8>,
    meta: [RecvMeta; BUFFERS],
}

impl Default for Buffers {
    fn default() -> Self {
        Self { memory: vec![0; BUFFERS * BUFFER_BYTES], meta: [RecvMeta::default(); BUFFERS] }
    }
}

/// The packets that an endpoint received in its turn, in buffers that it borrows from the thread.
#[derive(Default)]
pub(crate) struct Inbox {
    buffers: Option<Box<Buffers>>,
    received: usize,
}

impl Inbox {
    /// Fills the buffers by `receive`, which returns how many it has filled. Returns whether all were.
    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        let buffers = self.buffers.get_or_insert_with(|| OF_THREAD.take().unwrap_or_default());
        let mut chunks = buffers.memory.chunks_mut(BUFFER_BYTES).map(IoSliceMut::new);
        let mut slices: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| chunks.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        match receive(&mut slices, &mut buffers.meta) {
            Ok(received) => {
                self.received = received;
                Ok(received == BUFFERS)
            }
            Err(error) => {
                self.release();
                Err(error)
            }
        }
    }

    /// Gives the buffers back to the thread, at the end of the turn.
    pub(crate) fn release(&mut self) {
        self.received = 0;
        if let Some(buffers) = self.buffers.take() {
            OF_THREAD.set(Some(buffers));
        }
    }

    /// The SCTP packets received by `socket`, in order, each with its route and the ECN field of its IP header.
    pub(crate) fn packets<'a>(
        &'a self,
        socket: &'a Socket,
    ) -> impl Iterator<Item = (Route, Ecn, &'a [u8])> {
        let buffers = self.buffers.iter();
        let batches = buffers.flat_map(|it| it.memory.chunks(BUFFER_BYTES).zip(&it.meta));
        let batches = batches.take(self.received);
        // From UDP port 0 nothing can be answered: sending there is an error.
        let batches = batches.filter(|(_, meta)| socket.is_raw() || meta.addr.port() != 0);
        batches.flat_map(move |(buffer, meta)| {
            let (route, ecn) = (route(meta, socket.local), ecn(meta));
            let datagrams = buffer[..meta.len].chunks(meta.stride.max(1));
            datagrams.filter_map(move |datagram| Some((route, ecn, socket.sctp_packet(datagram)?)))
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

/// The ECN field of a received batch. The kernel coalesces only packets with equal fields, and reports the field for raw
/// sockets, too.
fn ecn(meta: &RecvMeta) -> Ecn {
    meta.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8))
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

    /// Otherwise an answer to port 0 would fail, with the whole batch that contains it.
    #[tokio::test]
    async fn datagrams_from_port_0_are_dropped() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut inbox = Inbox::default();
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
            inbox.packets(socket).map(|(route, ..)| route.remote.port()).collect()
        };
        assert_eq!(ports(&inbox, &socket), [7, 8]);
    }

    /// Ten thousand endpoints of a process would keep 512 KiB each.
    #[test]
    fn endpoints_of_a_thread_share_the_buffers() {
        let mut inboxes = [Inbox::default(), Inbox::default()];
        let memory = inboxes.each_mut().map(|inbox| {
            inbox.fill(|_, _| Ok(1)).unwrap();
            let memory = inbox.buffers.as_ref().map(|it| it.memory.as_ptr());
            inbox.release();
            assert!(inbox.buffers.is_none());
            memory
        });
        assert!(memory[0].is_some() && memory[0] == memory[1]);
        assert!(inboxes[0].fill(|_, _| Err(io::ErrorKind::WouldBlock.into())).is_err());
        assert!(inboxes[0].buffers.is_none(), "kept while it waits");
    }
}
