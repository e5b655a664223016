//! The UDP socket of an endpoint in an event loop: one descriptor to wait for, no threads.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rexmit_core::{Ecn, Instant, Machine, Route};
use rexmit_dtls::MaybeEncrypted;
use rexmit_udp::{EcnCodepoint, RecvMeta, Transmit, UdpState};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::status::Outcome;

/// The size of a receive buffer in bytes: the largest coalesced batch.
const BUFFER_BYTES: usize = 1 << 16;
/// The most batches received by one call, so that it returns even if packets keep arriving.
const RECEIVED_PER_CALL: usize = 64;
/// The most bytes of a batch to be sent.
const MAX_BATCH_BYTES: usize = 64_000;
/// How often entropy of the system is mixed into future secrets.
const ENTROPY_INTERVAL: Duration = Duration::from_secs(600);
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

/// A UDP socket, the timer of the endpoint, and the epoll descriptor that waits for both.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpState,
    local: SocketAddr,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// The deadline of the timer.
    armed: Option<Instant>,
    /// Whether the socket's buffer is full; `epoll` then waits for room.
    is_blocked: bool,
    /// The batches to be sent: one, or two while the socket's buffer is full.
    batches: VecDeque<Batch>,
    packet: Vec<u8>,
    buffer: Vec<u8>,
    entropy_due: Instant,
}

impl Socket {
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let io = UdpSocket::bind(address)?;
        io.set_nonblocking(true)?;
        let state = UdpState::new(&io)?;
        state.request_buffers(&io, SOCKET_BUFFER_BYTES);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(&epoll, &io, EventData::new_u64(0), EventFlags::IN)?;
        epoll::add(&epoll, &timer, EventData::new_u64(1), EventFlags::IN)?;
        Ok(Self {
            local: io.local_addr()?,
            io,
            state,
            epoll,
            timer,
            armed: None,
            is_blocked: false,
            batches: VecDeque::new(),
            packet: Vec::new(),
            buffer: vec![0; BUFFER_BYTES],
            entropy_due: Instant::ZERO,
        })
    }

    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn descriptor(&self) -> i32 {
        self.epoll.as_raw_fd()
    }

    /// Receives and lets timers expire.
    pub(crate) fn process(&mut self, sctp: &mut MaybeEncrypted, now: Instant) -> Outcome {
        if now >= self.entropy_due {
            let mut entropy = [0; 32];
            if getrandom::fill(&mut entropy).is_ok() {
                sctp.mix_entropy(&entropy);
            }
            self.entropy_due = now + ENTROPY_INTERVAL;
        }
        if self.armed.is_some_and(|deadline| deadline <= now) {
            // What expired makes the descriptor readable until it is read.
            let mut count = [0; 8];
            let _ = rustix::io::read(&self.timer, &mut count);
            self.armed = None;
        }
        self.set_blocked(false)?;
        for _ in 0..RECEIVED_PER_CALL {
            if !self.receive(sctp, now)? {
                break;
            }
        }
        if sctp.poll_timeout().is_some_and(|deadline| deadline <= now) {
            sctp.handle_timeout(now);
        }
        Ok(())
    }

    /// Receives a batch. Returns whether there was one.
    fn receive(&mut self, sctp: &mut MaybeEncrypted, now: Instant) -> io::Result<bool> {
        let mut meta = [RecvMeta::default()];
        let mut buffers = [IoSliceMut::new(&mut self.buffer)];
        match self.state.recv(&self.io, &mut buffers, &mut meta) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            // An ICMP message about an earlier packet: of one destination, and perhaps forged.
            Err(error) if is_of_one_destination(&error) => return Ok(true),
            Err(error) => return Err(error),
        }
        let [meta] = meta;
        if meta.addr.port() == 0 {
            return Ok(true);
        }
        let local = meta.dst_ip.unwrap_or(self.local.ip()).to_canonical();
        let remote = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
        let route = Route { local: SocketAddr::new(local, self.local.port()), remote };
        let ecn = meta.ecn.map_or(Ecn::NotEct, |codepoint| Ecn::from_bits(codepoint as u8));
        for packet in self.buffer[..meta.len].chunks(meta.stride.max(1)) {
            sctp.handle_input_with_ecn(now, route, ecn, packet);
        }
        Ok(true)
    }

    /// Sends the endpoint's packets until the socket is full, and sets the timer.
    pub(crate) fn transmit(&mut self, sctp: &mut MaybeEncrypted, now: Instant) -> Outcome {
        self.flush()?;
        while !self.is_blocked {
            let Some(route) = sctp.poll_transmit(now, &mut self.packet) else {
                self.flush()?;
                break;
            };
            let ecn = sctp.transmit_ecn();
            if !self.append(route, ecn) {
                let bytes = std::mem::take(&mut self.packet);
                self.flush()?;
                self.batches.push_back(Batch { route, ecn, segment_bytes: bytes.len(), bytes });
            }
        }
        self.arm(sctp.poll_timeout())?;
        Ok(())
    }

    /// Adds the packet to the batch, if it has room for it.
    fn append(&mut self, route: Route, ecn: Ecn) -> bool {
        let (packet, max_segments) = (&self.packet, self.state.max_segments());
        let Some(batch) = self.batches.back_mut() else { return false };
        let has_room = batch.route == route
            && batch.ecn == ecn
            && batch.bytes.len().is_multiple_of(batch.segment_bytes)
            && packet.len() <= batch.segment_bytes
            && batch.bytes.len() / batch.segment_bytes < max_segments
            && batch.bytes.len() + packet.len() <= MAX_BATCH_BYTES;
        if has_room {
            batch.bytes.extend_from_slice(packet);
        }
        has_room
    }

    /// Sends the batches. They stay while the socket's buffer is full.
    fn flush(&mut self) -> io::Result<()> {
        while !self.is_blocked {
            let Some(batch) = self.batches.pop_front() else { break };
            match self.send(&batch, &batch.bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.batches.push_front(batch);
                    return self.set_blocked(true);
                }
                Err(_) if batch.bytes.len() > batch.segment_bytes => {
                    // Not every route supports batches (GSO). A packet that fails alone, too, counts as lost.
                    for packet in batch.bytes.chunks(batch.segment_bytes) {
                        let _ = self.send(&batch, packet);
                    }
                }
                _ => {}
            }
            self.packet = batch.bytes;
        }
        Ok(())
    }

    /// Sends all or a part of a batch.
    fn send(&mut self, batch: &Batch, contents: &[u8]) -> io::Result<()> {
        let route = batch.route;
        let destination = match (self.local, route.remote) {
            (SocketAddr::V6(_), SocketAddr::V4(remote)) => {
                (remote.ip().to_ipv6_mapped(), remote.port()).into()
            }
            _ => route.remote,
        };
        let source = route.local.ip();
        let has_source = !source.is_unspecified() && source.is_ipv4() == self.local.is_ipv4();
        let transmit = Transmit {
            destination,
            ecn: EcnCodepoint::from_bits(batch.ecn.bits()),
            contents,
            segment_size: Some(batch.segment_bytes),
            src_ip: has_source.then_some(source),
        };
        self.state.try_send(&self.io, &transmit)
    }

    /// Makes `epoll` wait for room in the socket's buffer, or stop waiting.
    fn set_blocked(&mut self, is_blocked: bool) -> io::Result<()> {
        if self.is_blocked != is_blocked {
            let room = if is_blocked { EventFlags::OUT } else { EventFlags::empty() };
            epoll::modify(&self.epoll, &self.io, EventData::new_u64(0), EventFlags::IN | room)?;
            self.is_blocked = is_blocked;
        }
        Ok(())
    }

    fn arm(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        if deadline == self.armed {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A value of zero would switch the timer off.
        let nanos = deadline.map_or(0, |deadline| deadline.as_nanos().max(1));
        let value = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        };
        let setting = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.armed = deadline;
        Ok(())
    }
}

fn is_of_one_destination(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_where_the_ecn_field_changes() {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut socket = Socket::bind(local).unwrap();
        let receiver = UdpSocket::bind(local).unwrap();
        let state = UdpState::new(&receiver).unwrap();
        let route = Route { local, remote: receiver.local_addr().unwrap() };
        let bytes = vec![0; 100];
        socket.batches.push_back(Batch { route, ecn: Ecn::Ect0, segment_bytes: 100, bytes });
        socket.packet = vec![1; 100];
        assert!(!socket.append(route, Ecn::NotEct));
        assert!(socket.append(route, Ecn::Ect0));
        socket.flush().unwrap();
        receiver.set_nonblocking(false).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut received = 0;
        while received < 200 {
            let (mut buffer, mut meta) = ([0; 1000], [RecvMeta::default()]);
            let mut buffers = [IoSliceMut::new(&mut buffer)];
            state.recv(&receiver, &mut buffers, &mut meta).unwrap();
            assert_eq!(meta[0].ecn, Some(EcnCodepoint::Ect0));
            received += meta[0].len;
        }
    }
}
