//! The state behind the stack's lock: the protocol, the device, the timer, and pending notifications.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use rexmit_core::{Instant, Machine as _};
use rexmit_tcp::{self as tcp, ConnectionId, ConnectionStatistics, ReceiveError};
use rustc_hash::FxHashMap;
use tokio::sync::Notify;

use super::device::PacketDevice;
use super::entry::{Entry, register};
use super::statistics::StackStatistics;
use super::wakes::Wakes;
use crate::clock::Alarm;
use crate::limits::TimeLimits;
use crate::tun::Batch;
use crate::tun::ip::{HeaderConfig, PacketFilter};
use crate::turns::{NextTurn, Served};

/// TCP's IP protocol number.
const TCP: u8 = 6;
/// The most segments that one turn under the lock sends; the driver sends the others after releasing the lock.
const SEGMENTS_PER_TURN: usize = 512;

/// The state of a stack, shared by the handles and the driver.
pub(super) type Shared = crate::turns::Shared<StackState>;

/// The state of a stack.
pub(super) struct StackState {
    pub(super) tcp: tcp::Endpoint,
    /// `None` once the stack has ended.
    pub(super) device: Option<Arc<dyn PacketDevice>>,
    filter: PacketFilter,
    header: HeaderConfig,
    /// The segment being built.
    segment: Vec<u8>,
    pub(super) connections: FxHashMap<ConnectionId, Entry>,
    /// Connections that have not ended.
    pub(super) open: usize,
    pub(super) listeners: BTreeMap<u16, Listening>,
    /// Whether no handle of the stack and no listener remains.
    pub(super) is_released: bool,
    /// Whether new connections are refused.
    pub(super) is_closing: bool,
    pub(super) time_limits: TimeLimits,
    pub(super) next_turn: NextTurn,
    pub(super) wakes: Wakes,
    last_failure: Option<SendFailure>,
    pub(super) counts: Counts,
}

/// The stack's own counters; the others are in the protocol and the IP layer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    packets_sent: u64,
    packets_unsent: u64,
    receive_failures: u64,
    pub(super) not_accepted: u64,
}

/// A segment that the TUN device refused: its destination, and the device's error.
struct SendFailure {
    remote: IpAddr,
    error: io::Error,
}

/// One listening port.
#[derive(Debug)]
pub(super) struct Listening {
    /// Established and not accepted yet, oldest first.
    pub(super) incoming: VecDeque<ConnectionId>,
    pub(super) backlog: usize,
    pub(super) waiting: Arc<Notify>,
}

impl StackState {
    pub(super) fn new(
        tcp: tcp::Endpoint,
        device: Arc<dyn PacketDevice>,
        addresses: &[IpAddr],
        alarm: Alarm,
    ) -> Self {
        Self {
            tcp,
            device: Some(device),
            filter: PacketFilter::new(TCP, addresses.iter().copied()),
            header: HeaderConfig::new(TCP),
            segment: Vec::new(),
            connections: FxHashMap::default(),
            open: 0,
            listeners: BTreeMap::new(),
            is_released: false,
            is_closing: false,
            time_limits: TimeLimits::default(),
            next_turn: NextTurn::new(alarm),
            wakes: Wakes::default(),
            last_failure: None,
            counts: Counts::default(),
        }
    }

    fn take_wakes(&mut self) -> Wakes {
        self.wakes.driver = self.next_turn.driver.take();
        std::mem::take(&mut self.wakes)
    }

    /// Reads received bytes into `into`, or registers the task of `cx` to be woken when there are some.
    pub(super) fn poll_receive(
        &mut self,
        cx: Option<&Context<'_>>,
        now: Instant,
        id: ConnectionId,
        into: &mut [u8],
    ) -> (Poll<io::Result<usize>>, Wakes) {
        let Some(entry) = self.connections.get_mut(&id) else {
            return (Poll::Ready(Err(io::ErrorKind::NotConnected.into())), self.take_wakes());
        };
        if entry.is_readable {
            match self.tcp.receive(now, id, into) {
                Ok(len) => {
                    entry.count_received_after_end(len);
                    return (Poll::Ready(Ok(len)), self.settle(now));
                }
                Err(ReceiveError::Empty) => entry.is_readable = false,
                // Ended, or unknown.
                Err(_) => {
                    let result = entry.read_at_end();
                    return (Poll::Ready(result), self.settle(now));
                }
            }
        }
        if let Some(cx) = cx {
            register(&mut entry.reader, cx);
        }
        (Poll::Pending, self.take_wakes())
    }

    /// Writes what fits, or registers the task of `cx` to be woken when there is room.
    pub(super) fn poll_send(
        &mut self,
        cx: Option<&Context<'_>>,
        now: Instant,
        id: ConnectionId,
        bytes: &[u8],
    ) -> (Poll<io::Result<usize>>, Wakes) {
        let Some(entry) = self.connections.get_mut(&id) else {
            return (Poll::Ready(Err(io::ErrorKind::NotConnected.into())), self.take_wakes());
        };
        if entry.is_writable {
            match self.tcp.send(now, id, bytes) {
                Ok(0) => entry.is_writable = false,
                Ok(len) => {
                    entry.is_writable = len == bytes.len();
                    return (Poll::Ready(Ok(len)), self.settle_soon(now));
                }
                Err(_) => return (Poll::Ready(Err(entry.write_error())), self.settle(now)),
            }
        }
        if let Some(cx) = cx {
            register(&mut entry.writer, cx);
        }
        (Poll::Pending, self.take_wakes())
    }

    /// Ends a turn in which the application wrote. Data is sent at once, or in the driver's next turn if the application
    /// writes often (see `Promptness`).
    fn settle_soon(&mut self, now: Instant) -> Wakes {
        if self.next_turn.promptness.take(now) {
            return self.settle(now);
        }
        self.next_turn.driver.note_work();
        self.take_wakes()
    }

    /// Sends what the protocol has to send.
    pub(super) fn transmit(&mut self, now: Instant) {
        let Some(device) = self.device.clone() else { return };
        for _ in 0..SEGMENTS_PER_TURN {
            let Some(route) = self.tcp.poll_transmit(now, &mut self.segment) else { return };
            let sent = match self.header.header(route, self.segment.len()) {
                Ok(header) => device.try_send(&header, &self.segment),
                Err(error) => Err(io::Error::other(error)),
            };
            match sent {
                Ok(()) => self.counts.packets_sent += 1,
                Err(error) => {
                    self.counts.packets_unsent += 1;
                    self.last_failure = Some(SendFailure { remote: route.remote.ip(), error });
                }
            }
        }
        self.next_turn.driver.note_work(); // Others first.
    }

    /// Why the last packet to `remote` in this turn could not be sent; `None` if it was, or if the device was only
    /// full.
    pub(super) fn take_failure(&mut self, remote: SocketAddr) -> Option<io::Error> {
        let failure = self.last_failure.take()?;
        let is_full = failure.error.kind() == io::ErrorKind::WouldBlock;
        (failure.remote == remote.ip() && !is_full).then_some(failure.error)
    }

    pub(super) fn statistics(&self) -> StackStatistics {
        StackStatistics {
            packets_sent: self.counts.packets_sent,
            packets_unsent: self.counts.packets_unsent,
            receive_failures: self.counts.receive_failures,
            not_accepted: self.counts.not_accepted,
            ip: *self.filter.statistics(),
            protocol: *self.tcp.endpoint_statistics(),
        }
    }

    /// The counters of a connection, final if it has ended.
    pub(super) fn connection_statistics(&self, id: ConnectionId) -> ConnectionStatistics {
        let at_end = self.connections.get(&id).and_then(|entry| entry.statistics.as_deref());
        at_end.copied().or_else(|| self.tcp.statistics(id)).unwrap_or_default()
    }
}

impl Entry {
    /// The result of reading after all received data was read.
    fn read_at_end(&self) -> io::Result<usize> {
        match self.closed {
            Some(tcp::CloseReason::Finished) => Ok(0),
            _ => Err(self.read_error()),
        }
    }
}

impl Served for StackState {
    type Device = dyn PacketDevice;
    type Inbox = Batch;
    type Wakes = Wakes;

    fn settle(&mut self, now: Instant) -> Wakes {
        loop {
            self.transmit(now);
            if !self.dispatch_events(now) {
                break;
            }
        }
        if let Some(deadline) = self.tcp.poll_timeout() {
            self.next_turn.arm(deadline);
        }
        self.release_device_at_end();
        self.take_wakes()
    }

    fn register_driver(&mut self, cx: &Context<'_>) -> Option<Arc<dyn PacketDevice>> {
        self.next_turn.driver.register(cx);
        self.device.clone()
    }

    fn poll_receive(
        device: &dyn PacketDevice,
        cx: &mut Context<'_>,
        batch: &mut Batch,
    ) -> Poll<io::Result<()>> {
        device.poll_receive(cx, batch)
    }

    /// Handles all received packets before anything is sent, so that one ACK reports all of them.
    fn handle_received(
        &mut self,
        now: Instant,
        _device: &dyn PacketDevice,
        received: io::Result<&mut Batch>,
    ) {
        let Ok(batch) = received else {
            self.counts.receive_failures += 1;
            return;
        };
        for packet in batch.iter() {
            if let Some((route, segment)) = self.filter.accept(packet) {
                self.tcp.handle_input(now, route, segment);
            }
        }
    }

    /// Timers never wait for the device: it has no queue that is full for a while, and a packet that it refuses is
    /// lost.
    fn poll_readiness(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.next_turn.poll_alarm(&mut self.tcp, cx, now);
    }

    fn on_driver_gone(&mut self, now: Instant) {
        self.abort(now);
        self.transmit(now);
        self.device = None;
    }
}
