//! Packets to be sent, gathered into batches that one system call sends.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};

use rexmit_core::{Ecn, Route};

use super::Socket;

/// The most bytes of one batch: until the kernel cuts it, a batch is one IPv4 datagram.
const MAX_BATCH_BYTES: usize = 64_000;
/// The most batch buffers kept for reuse.
const MAX_SPARE: usize = 4;
/// The most destinations that are remembered because batches to them fail.
const MAX_UNBATCHED: usize = 64;

/// Packets of the same route, ECN field and length; the last one may be shorter.
#[derive(Debug)]
struct Batch {
    route: Route,
    ecn: Ecn,
    bytes: Vec<u8>,
    segment_bytes: usize,
    packets: usize,
    /// Whether this batch is a part of one that the system refused.
    is_part: bool,
}

/// The error of the system instead of sending.
#[derive(Debug)]
struct SendFailure {
    remote: SocketAddr,
    error: io::Error,
}

/// Batches to be sent, oldest first.
///
/// It needs no limit of its own: its owner asks the protocol for no more packets while it
/// [`is_blocked`](Self::is_blocked).
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    batches: VecDeque<Batch>,
    spare: Vec<Vec<u8>>,
    is_blocked: bool,
    /// The destinations for which the system refused a batch but sends single packets. An error of one
    /// destination does not concern others.
    unbatched: VecDeque<IpAddr>,
    last_failure: Option<SendFailure>,
    /// Packets that the system accepted.
    pub(crate) sent: u64,
    /// Packets that the system refused, which the protocol treats as lost.
    pub(crate) failed: u64,
}

impl Outbox {
    /// Adds a packet, leaving an empty buffer in its place.
    pub(crate) fn push(
        &mut self,
        socket: &Socket,
        (route, ecn): (Route, Ecn),
        packet: &mut Vec<u8>,
    ) {
        let may_batch = self.unbatched.is_empty() || !self.unbatched.contains(&route.remote.ip());
        let max_packets = if may_batch { socket.max_segments() } else { 1 };
        if let Some(last) = self.batches.back_mut()
            && last.has_room((route, ecn), packet.len(), max_packets)
        {
            last.bytes.extend_from_slice(packet);
            last.packets += 1;
            return;
        }
        let spare = self.spare.pop().unwrap_or_default();
        let bytes = std::mem::replace(packet, spare);
        let segment_bytes = bytes.len();
        let batch = Batch { route, ecn, segment_bytes, bytes, packets: 1, is_part: false };
        self.batches.push_back(batch);
    }

    /// Whether the socket's buffer is full: [`resume`](Self::resume) when it is not any more.
    pub(crate) const fn is_blocked(&self) -> bool {
        self.is_blocked
    }

    /// Called when the socket accepts packets again.
    pub(crate) fn resume(&mut self) {
        self.is_blocked = false;
    }

    /// Acts as if the socket had refused a packet because it is full.
    #[cfg(test)]
    pub(crate) fn block(&mut self) {
        self.is_blocked = true;
    }

    /// Sends the complete batches, until the socket is full.
    pub(crate) fn flush_complete(&mut self, socket: &Socket) {
        self.flush_down_to(1, socket);
    }

    /// Sends all batches, until the socket is full.
    pub(crate) fn flush(&mut self, socket: &Socket) {
        self.flush_down_to(0, socket);
    }

    /// Forgets earlier failures: [`take_failure`](Self::take_failure) returns only later ones.
    pub(crate) fn forget_failure(&mut self) {
        self.last_failure = None;
    }

    /// The error of the last failure, if that packet was for `remote`.
    pub(crate) fn take_failure(&mut self, remote: SocketAddr) -> Option<io::Error> {
        let failure = self.last_failure.take()?;
        (failure.remote == remote).then_some(failure.error)
    }

    fn flush_down_to(&mut self, left: usize, socket: &Socket) {
        while !self.is_blocked && self.batches.len() > left {
            let Some(batch) = self.batches.front() else { break };
            match batch.send(socket) {
                Ok(()) => {
                    self.sent += batch.packets as u64;
                    if batch.is_part {
                        let destination = batch.route.remote.ip();
                        self.send_singly_to(destination);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return;
                }
                // The system may not be able to segment batches (GSO) on this route.
                Err(error) if batch.packets > 1 => {
                    self.split_first(may_be_cutting(&error));
                    continue;
                }
                Err(error) => {
                    self.failed += 1;
                    if is_too_large(&error) {
                        // The batch was refused because of the size of its packets, and not because the system cannot
                        // segment batches.
                        let parts = self.batches.iter_mut().take_while(|batch| batch.is_part);
                        parts.for_each(|part| part.is_part = false);
                    }
                    let Some(batch) = self.batches.front() else { break };
                    self.last_failure = Some(SendFailure { remote: batch.route.remote, error });
                }
            }
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        if let Some(mut batch) = self.batches.pop_front()
            && self.spare.len() < MAX_SPARE
        {
            batch.bytes.clear();
            self.spare.push(batch.bytes);
        }
    }

    fn send_singly_to(&mut self, destination: IpAddr) {
        if self.unbatched.contains(&destination) {
            return;
        }
        if self.unbatched.len() >= MAX_UNBATCHED {
            self.unbatched.pop_front();
        }
        self.unbatched.push_back(destination);
    }

    /// Replaces the first batch by batches of one packet each.
    fn split_first(&mut self, is_part: bool) {
        let Some(Batch { route, ecn, bytes, segment_bytes, .. }) = self.batches.pop_front() else {
            return;
        };
        for packet in bytes.chunks(segment_bytes.max(1)).rev() {
            let (bytes, segment_bytes) = (packet.to_vec(), packet.len());
            let part = Batch { route, ecn, bytes, segment_bytes, packets: 1, is_part };
            self.batches.push_front(part);
        }
    }
}

/// Whether the system may have refused a batch because it cannot segment it.
fn may_be_cutting(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    return matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO));
    #[cfg(not(target_os = "linux"))]
    return error.kind() != io::ErrorKind::NetworkUnreachable;
}

/// Whether the packet is larger than the link allows: a probe of the path MTU, for example.
fn is_too_large(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    return error.raw_os_error() == Some(libc::EMSGSIZE);
    #[cfg(not(target_os = "linux"))]
    return {
        _ = error;
        false
    };
}

impl Batch {
    fn has_room(&self, (route, ecn): (Route, Ecn), len: usize, max_packets: usize) -> bool {
        let is_open = self.bytes.len() == self.segment_bytes * self.packets;
        is_open
            && route == self.route
            && ecn == self.ecn
            && len <= self.segment_bytes
            && self.packets < max_packets
            && self.bytes.len() + len <= MAX_BATCH_BYTES
    }

    fn send(&self, socket: &Socket) -> io::Result<()> {
        socket.try_send(self.route, self.ecn, &self.bytes, self.segment_bytes)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use super::*;

    fn route(remote: &str) -> Route {
        Route { local: "0.0.0.0:0".parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn shape(outbox: &Outbox) -> Vec<(usize, usize)> {
        outbox.batches.iter().map(|batch| (batch.packets, batch.bytes.len())).collect()
    }

    #[tokio::test]
    async fn batches_contain_packets_of_equal_size_and_route() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let most = socket.max_segments();
        assert!(most > 1, "this kernel does not cut batches, so nothing is tested");
        let (here, there) = (route("127.0.0.1:1"), route("127.0.0.1:2"));
        let mut outbox = Outbox::default();
        for (route, len) in [(here, 100), (here, 100), (here, 40), (here, 40), (there, 40)] {
            outbox.push(&socket, (route, Ecn::NotEct), &mut vec![0; len]);
        }
        // The third one is shorter and closes its batch.
        assert_eq!(shape(&outbox), [(3, 240), (1, 40), (1, 40)]);
        outbox = Outbox::default();
        for _ in 0..=most {
            outbox.push(&socket, (here, Ecn::NotEct), &mut vec![0; 10]);
        }
        assert_eq!(shape(&outbox), [(most, most * 10), (1, 10)]);
        outbox = Outbox::default();
        for _ in 0..3 {
            outbox.push(&socket, (here, Ecn::NotEct), &mut vec![0; MAX_BATCH_BYTES / 2]);
        }
        assert_eq!(shape(&outbox).len(), 2);
    }

    #[tokio::test]
    async fn a_batch_ends_where_the_ecn_field_changes() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let (there, mut outbox) = (route("127.0.0.1:1"), Outbox::default());
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::NotEct] {
            outbox.push(&socket, (there, ecn), &mut vec![0; 10]);
        }
        assert_eq!(shape(&outbox), [(1, 10), (2, 20), (1, 10)]);
        // Parts of a batch keep its field.
        outbox.batches.pop_front();
        outbox.split_first(true);
        let fields: Vec<_> = outbox.batches.iter().map(|batch| batch.ecn).collect();
        assert_eq!(fields, [Ecn::Ect0, Ecn::Ect0, Ecn::NotEct]);
    }

    #[tokio::test]
    async fn pushed_packets_arrive_in_order() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let there = route(&receiver.local_addr().unwrap().to_string());
        let mut outbox = Outbox::default();
        let lengths = [100, 100, 30, 200, 200, 200, 1, 1200];
        for (number, &len) in lengths.iter().enumerate() {
            outbox.push(&socket, (there, Ecn::NotEct), &mut vec![number as u8; len]);
        }
        outbox.flush(&socket);
        assert!(outbox.take_failure(there.remote).is_none());
        assert_eq!((outbox.sent, outbox.batches.len()), (lengths.len() as u64, 0));
        for (number, &len) in lengths.iter().enumerate() {
            let mut packet = [0; 2000];
            let received = receiver.recv(&mut packet).unwrap();
            assert_eq!(&packet[..received], vec![number as u8; len]);
        }
    }

    #[tokio::test]
    async fn a_batch_that_fails_is_tried_packet_by_packet() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut outbox = Outbox::default();
        let nowhere = route("127.0.0.1:0"); // Port 0 takes nothing.
        for _ in 0..3 {
            outbox.push(&socket, (nowhere, Ecn::NotEct), &mut vec![0; 10]);
        }
        outbox.flush(&socket);
        assert!(outbox.take_failure(nowhere.remote).is_some(), "nothing can be sent there");
        outbox.push(&socket, (nowhere, Ecn::NotEct), &mut vec![0; 10]);
        outbox.flush(&socket);
        assert!(outbox.take_failure(route("127.0.0.1:9").remote).is_none(), "of another");
        assert_eq!((outbox.sent, outbox.failed), (0, 4));
    }

    /// The kernel refuses a batch that begins with such a packet with the same error that it uses when batches are not
    /// supported.
    #[tokio::test]
    async fn a_packet_that_is_too_large_does_not_switch_batches_off() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut outbox = Outbox::default();
        for len in [65_508, 10] {
            let (bytes, route) = (vec![0; len], route("127.0.0.1:9"));
            let ecn = Ecn::NotEct;
            let part = Batch { route, ecn, bytes, segment_bytes: len, packets: 1, is_part: true };
            outbox.batches.push_back(part);
        }
        outbox.flush(&socket);
        assert_eq!((outbox.sent, outbox.failed), (1, 1));
        assert!(outbox.unbatched.is_empty());
    }

    /// In an earlier version, two INITs from UDP port 0 disabled batches for all destinations.
    #[tokio::test]
    async fn an_error_of_one_destination_changes_nothing_for_others() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(socket.max_segments() > 1, "this kernel does not cut batches");
        let mut outbox = Outbox::default();
        for _ in 0..2 {
            outbox.push(&socket, (route("127.0.0.1:0"), Ecn::NotEct), &mut vec![0; 10]);
        }
        outbox.flush(&socket);
        assert_eq!(outbox.failed, 2, "nothing can be sent there");
        for _ in 0..3 {
            outbox.push(&socket, (route("127.0.0.1:9"), Ecn::NotEct), &mut vec![0; 10]);
        }
        assert_eq!(shape(&outbox), [(3, 30)]);
    }

    #[tokio::test]
    async fn a_destination_that_takes_no_batches_gets_single_packets_and_others_batches() {
        let socket = Socket::bind_udp("127.0.0.1:0".parse().unwrap()).unwrap();
        let receiver = std::net::UdpSocket::bind("127.0.0.2:0").unwrap();
        let there = route(&receiver.local_addr().unwrap().to_string());
        let mut outbox = Outbox::default();
        // A batch with too many segments is refused as by a device that cannot segment batches.
        let most = 1_000;
        let bytes = vec![0; 10 * most];
        outbox.batches.push_back(Batch {
            route: there,
            ecn: Ecn::NotEct,
            bytes,
            segment_bytes: 10,
            packets: most,
            is_part: false,
        });
        outbox.flush(&socket);
        assert_eq!(outbox.unbatched, [there.remote.ip()]);
        for to in [there, there, route("127.0.0.1:9"), route("127.0.0.1:9")] {
            outbox.push(&socket, (to, Ecn::NotEct), &mut vec![0; 10]);
        }
        assert_eq!(shape(&outbox), [(1, 10), (1, 10), (2, 20)]);
        for n in 0..2 * MAX_UNBATCHED as u32 {
            outbox.send_singly_to(IpAddr::from(n.to_be_bytes()));
        }
        assert_eq!(outbox.unbatched.len(), MAX_UNBATCHED);
    }
}
