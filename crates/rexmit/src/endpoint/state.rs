//! The state behind the endpoint's lock: the protocol, the socket's outbox, the timer, and pending
//! notifications.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rexmit_core::{Ecn, Instant, Machine as _, Route};
use rexmit_sctp::{
    AssociationId, AssociationStatistics, InboundMessage, MessageId, OutboundMessage, SendError,
    SourceAddresses,
};
use rustc_hash::FxHashMap;

use super::entry::{Entry, Recipients};
use super::handover::{Delivery, Handed, Member};
use super::protocol::Protocol;
use super::refusals::Refusals;
use super::statistics::{ACCEPT_BACKLOG, EndpointStatistics};
use super::wakes::{Waiting, Wakes};
use crate::association::Cell;
use crate::clock::Alarm;
use crate::limits::TimeLimits;
use crate::socket::{Inbox, Outbox, Socket};
use crate::turns::{self, NextTurn, Served};

/// The most packets that are sent while the lock is held once. The driver sends the others, and releases the lock
/// in between.
const PACKETS_PER_TURN: usize = 512;

/// The interval at which the endpoint gets new entropy, so that future secrets cannot be computed from
/// present ones.
const ENTROPY_INTERVAL: Duration = Duration::from_secs(600);

/// State shared by the handles and the driver.
pub(crate) type Shared = turns::Shared<State>;

/// The state of an endpoint.
pub(crate) struct State {
    pub(crate) sctp: Protocol,
    /// The socket; `None` once the endpoint has ended.
    pub(super) socket: Option<Arc<Socket>>,
    /// The address of the socket, also after it was closed.
    pub(super) local_addr: SocketAddr,
    pub(super) outbox: Outbox,
    /// The packet being built.
    packet: Vec<u8>,
    pub(crate) associations: FxHashMap<AssociationId, Entry>,
    /// Associations that have not ended.
    pub(super) open: usize,
    pub(super) incoming: Incoming,
    pub(super) refusals: Refusals,
    pub(crate) life: Life,
    /// The place among the shards of the endpoint, if there are several.
    pub(super) shard: Option<Member>,
    pub(super) next_turn: NextTurn,
    pub(super) wakes: Wakes,
    /// When the endpoint gets new entropy next.
    entropy_at: Instant,
    pub(super) counts: Counts,
}

/// Whether the endpoint is still in use: the number of its handles, and whether it is closing.
pub(crate) struct Life {
    /// Handles of the endpoint that exist.
    pub(super) handles: usize,
    /// Whether new associations are refused.
    pub(super) is_closing: bool,
    /// How long calls wait for a peer.
    pub(crate) time_limits: TimeLimits,
    /// The task that follows the addresses of the host, if enabled.
    #[cfg(all(feature = "netlink", target_os = "linux"))]
    pub(super) following: Option<crate::netlink::Following>,
}

/// Associations initiated by peers.
pub(super) struct Incoming {
    /// Whether the configuration accepts associations initiated by peers.
    pub(super) is_allowed: bool,
    /// Established and not accepted yet, oldest first.
    pub(super) waiting: VecDeque<Arc<Cell>>,
    /// The most of them: [`ACCEPT_BACKLOG`], or the part of this shard.
    pub(super) max_waiting: usize,
}

/// The endpoint's own counters; the others are in the protocol and the outbox.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets_received: u64,
    pub(super) packets_redirected: u64,
    pub(super) packets_dropped: u64,
    pub(super) receive_failures: u64,
    pub(super) not_accepted: u64,
}

/// The result of reading.
pub(crate) enum Received {
    Message(InboundMessage),
    /// No message yet.
    Nothing,
    /// No message any more.
    End,
}

impl State {
    pub(super) fn new(sctp: Protocol, accepts: bool, socket: Socket, alarm: Alarm) -> Self {
        Self {
            sctp,
            local_addr: socket.local_addr(),
            socket: Some(Arc::new(socket)),
            outbox: Outbox::default(),
            packet: Vec::new(),
            associations: FxHashMap::default(),
            open: 0,
            incoming: Incoming {
                is_allowed: accepts,
                waiting: VecDeque::new(),
                max_waiting: ACCEPT_BACKLOG,
            },
            refusals: Refusals::default(),
            life: Life {
                handles: 1,
                is_closing: false,
                time_limits: TimeLimits::default(),
                #[cfg(all(feature = "netlink", target_os = "linux"))]
                following: None,
            },
            shard: None,
            next_turn: NextTurn::new(alarm),
            wakes: Wakes::default(),
            entropy_at: Instant::ZERO,
            counts: Counts::default(),
        }
    }

    /// Ends a turn, and leaves its packets and events to the driver.
    fn leave_to_driver(&mut self) -> Wakes {
        self.next_turn.driver.note_work();
        self.take_wakes()
    }

    fn take_wakes(&mut self) -> Wakes {
        if let Some(shard) = &self.shard {
            shard.end_turn();
        }
        self.wakes.driver = self.next_turn.driver.take();
        std::mem::take(&mut self.wakes)
    }

    #[cfg(test)]
    pub(super) fn is_driver_called(&self) -> bool {
        self.next_turn.driver.is_made()
    }

    /// Accepts a message, and sends it or leaves that to the driver.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        id: AssociationId,
        message: OutboundMessage,
    ) -> (Result<MessageId, SendError>, Wakes) {
        let result = self.sctp.send(now, id, message);
        let wakes = if result.is_err() || self.next_turn.promptness.take(now) {
            self.settle(now)
        } else {
            self.leave_to_driver()
        };
        (result, wakes)
    }

    /// Replaces the socket; every association continues from the new one. `is_told`: whether the INITs of new
    /// associations list its address.
    pub(super) fn rebind(&mut self, now: Instant, socket: Socket, is_told: bool) {
        if self.socket.is_none() {
            return; // It has ended.
        }
        self.local_addr = socket.local_addr();
        self.socket = Some(Arc::new(socket));
        self.refusals.release_socket();
        self.report_sizes();
        self.outbox.resume();
        let here = self.local_addr.ip();
        if is_told {
            let told = (!here.is_unspecified()).then_some(here);
            // A single address is always allowed.
            let _ = self.sctp.set_addresses(told.into_iter().collect(), SourceAddresses::Paired);
        }
        let mut open: Vec<_> = self.associations.keys().copied().collect();
        open.sort_unstable();
        for id in open {
            // An association that is not established, or whose peer does not support it, is not changed.
            let _ = self.sctp.move_to(now, id, here);
        }
        self.next_turn.driver.note_work(); // It waits for the one before.
    }

    /// Collects the packets that the protocol has to send, and sends them.
    pub(super) fn transmit(&mut self, now: Instant) {
        let Some(socket) = self.socket.clone() else { return };
        let was_blocked = self.outbox.is_blocked();
        if !self.gather(now, &socket, PACKETS_PER_TURN) {
            self.next_turn.driver.note_work(); // Others first.
        }
        self.outbox.flush(&socket);
        if self.outbox.is_blocked() && !was_blocked {
            self.next_turn.driver.note_work(); // It waits for the socket.
        }
    }

    /// Collects packets from the protocol, and sends batches as they become full. Returns whether there are
    /// no more, or the socket is full.
    fn gather(&mut self, now: Instant, socket: &Socket, budget: usize) -> bool {
        for _ in 0..budget {
            if self.outbox.is_blocked() {
                return true;
            }
            let Some(route) = self.sctp.poll_transmit(now, &mut self.packet) else { return true };
            let ecn = self.sctp.transmit_ecn();
            self.outbox.push(socket, (route, ecn), &mut self.packet);
            self.outbox.flush_complete(socket);
        }
        false
    }

    pub(super) fn statistics(&self) -> EndpointStatistics {
        EndpointStatistics {
            packets_sent: self.outbox.sent,
            packets_unsent: self.outbox.failed,
            packets_received: self.counts.packets_received,
            packets_redirected: self.counts.packets_redirected,
            packets_dropped: self.counts.packets_dropped,
            receive_failures: self.counts.receive_failures,
            not_accepted: self.counts.not_accepted,
            protocol: *self.sctp.endpoint_statistics(),
            #[cfg(feature = "dtls")]
            encryption: match &self.sctp {
                Protocol::Encrypted(dtls, _) => Some(dtls.statistics()),
                Protocol::Unencrypted(_) => None,
            },
        }
    }

    #[cfg(feature = "metrics")]
    pub(super) fn metrics(&self, room: usize) -> crate::metrics::EndpointMetrics {
        use crate::metrics::{AssociationMetrics, EndpointMetrics};
        let open = |(id, entry): (&AssociationId, &Entry)| {
            let peer = entry.established.filter(|_| entry.closed.is_none())?.peer;
            Some((id.index(), *id, peer))
        };
        let mut shown: Vec<_> = self.associations.iter().filter_map(open).collect();
        shown.sort_unstable_by_key(|(index, ..)| *index);
        shown.truncate(room);
        let associations = shown.into_iter().map(|(_, id, peer)| {
            let statistics = self.association_statistics(id);
            AssociationMetrics { number: self.number(id).to_string(), peer, statistics }
        });
        let associations = associations.collect();
        let (statistics, open) = (self.statistics(), self.open);
        let shard = self.shard.as_ref().map(|shard| (shard.index().to_string(), open));
        EndpointMetrics {
            statistics,
            open,
            open_by_shard: shard.into_iter().collect(),
            associations,
        }
    }

    /// The number of an association in trace events and metrics, which is unique in the endpoint.
    pub(crate) fn number(&self, id: AssociationId) -> u32 {
        self.shard.as_ref().map_or(id.index(), |it| it.number(id.index()))
    }

    /// The counters of an association, final if it has ended.
    pub(crate) fn association_statistics(&self, id: AssociationId) -> AssociationStatistics {
        let at_end = self.associations.get(&id).and_then(|entry| entry.statistics.as_deref());
        at_end.cloned().or_else(|| self.sctp.statistics(id)).unwrap_or_default()
    }

    /// The next message of an association for the reader of `stream` or, with `None`, for `recv`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        id: AssociationId,
        stream: Option<u16>,
    ) -> Received {
        let head = self.associations.get_mut(&id).and_then(|entry| entry.recipients.take_head());
        let Some(message) = head.or_else(|| self.receive_next(now, id)) else {
            return match self.associations.get(&id) {
                Some(entry) if entry.closed.is_none() => Received::Nothing,
                _ => Received::End,
            };
        };
        let Some(entry) = self.associations.get_mut(&id) else { return Received::Message(message) };
        let Some(message) = entry.recipients.take_if_for(stream, message) else {
            return Received::Nothing;
        };
        if entry.recipients.has_readers() {
            // The next message may be for another recipient.
            self.wakes.association(&entry.cell, Waiting::Readable);
        }
        Received::Message(message)
    }

    fn receive_next(&mut self, now: Instant, id: AssociationId) -> Option<InboundMessage> {
        let message = self.sctp.receive(now, id)?;
        self.count_received_after_end(id, &message);
        Some(message)
    }

    /// Changes which recipient gets which messages, and wakes all of them, because the next message may now be for
    /// another one.
    pub(crate) fn change_recipients(
        &mut self,
        id: AssociationId,
        change: impl FnOnce(&mut Recipients),
    ) {
        if let Some(entry) = self.associations.get_mut(&id) {
            change(&mut entry.recipients);
            self.wakes.association(&entry.cell, Waiting::Readable);
        }
    }

    /// Adds packets received after the end to the final statistics.
    fn count_received_after_end(&mut self, id: AssociationId, message: &InboundMessage) {
        let entry = self.associations.get_mut(&id);
        if let Some(statistics) = entry.and_then(|entry| entry.statistics.as_deref_mut()) {
            let len = message.payload.len();
            statistics.traffic.messages_delivered += 1;
            statistics.traffic.payload_delivered_bytes += len as u64;
            statistics.receive_buffered_bytes -= len;
        }
    }

    fn mix_entropy(&mut self, now: Instant) {
        let mut entropy = [0; 32];
        // Without any, secrets still do not reveal earlier ones.
        if now >= self.entropy_at && getrandom::fill(&mut entropy).is_ok() {
            self.entropy_at = now + ENTROPY_INTERVAL;
            self.sctp.mix_entropy(&entropy);
        }
    }

    /// Packets that arrived.
    fn handle_packets(&mut self, now: Instant, socket: &Socket, inbox: &Inbox) {
        self.mix_entropy(now);
        for (route, ecn, packet) in inbox.packets(socket) {
            let delivery = self.shard.as_ref().map(|it| it.hand_over_packet(route, ecn, packet));
            match delivery.unwrap_or(Delivery::Here) {
                Delivery::Here => self.handle_packet(now, socket, (route, ecn), packet),
                Delivery::HandedOver => self.counts.packets_redirected += 1,
                Delivery::Dropped => self.counts.packets_dropped += 1,
            }
        }
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        socket: &Socket,
        (route, ecn): (Route, Ecn),
        packet: &[u8],
    ) {
        self.counts.packets_received += 1;
        self.refusals.note_answer(route.remote);
        self.sctp.handle_input_with_ecn(now, route, ecn, packet);
        // After each one, as acknowledgements are due after every second one.
        self.gather(now, socket, PACKETS_PER_TURN);
    }

    /// Handles what other shards have received for this one.
    fn handle_handed(&mut self, now: Instant) {
        let (Some(shard), Some(socket)) = (&self.shard, self.socket.clone()) else { return };
        for handed in shard.take_handed() {
            match handed {
                Handed::Packet(route, ecn, packet) => {
                    self.handle_packet(now, &socket, (route, ecn), &packet);
                }
                Handed::Report(report) => self.on_report(now, report),
            }
        }
    }
}

impl Served for State {
    type Device = Socket;
    type Inbox = Inbox;
    type Wakes = Wakes;

    fn settle(&mut self, now: Instant) -> Wakes {
        loop {
            self.transmit(now);
            if !self.dispatch_events(now) {
                break;
            }
        }
        if let Some(deadline) = self.sctp.poll_timeout() {
            self.next_turn.arm(deadline);
        }
        self.release_socket_at_end();
        self.take_wakes()
    }

    fn register_driver(&mut self, cx: &Context<'_>) -> Option<Arc<Socket>> {
        self.next_turn.driver.register(cx);
        if let Some(shard) = &self.shard {
            shard.register(cx.waker());
        }
        self.socket.clone()
    }

    fn poll_receive(
        socket: &Socket,
        cx: &mut Context<'_>,
        inbox: &mut Inbox,
    ) -> Poll<io::Result<()>> {
        socket.poll_receive(cx, inbox)
    }

    fn handle_received(&mut self, now: Instant, socket: &Socket, received: io::Result<&mut Inbox>) {
        match received {
            Ok(inbox) => {
                self.handle_packets(now, socket, inbox);
                inbox.release();
            }
            Err(_) => self.counts.receive_failures += 1,
        }
    }

    fn poll_readiness(&mut self, cx: &mut Context<'_>, now: Instant) {
        self.poll_reports(cx, now);
        self.handle_handed(now);
        if let Some(socket) = &self.socket
            && self.outbox.is_blocked()
            && socket.poll_writable(cx).is_ready()
        {
            self.outbox.resume();
        }
        // A probe would repeat packets that may still be in the full queue.
        self.next_turn.hold_timers(now, self.outbox.is_blocked());
        self.next_turn.poll_alarm(&mut self.sctp, cx, now);
    }

    fn on_driver_gone(&mut self, now: Instant) {
        self.abort(now, b"the runtime was shut down");
        self.transmit(now);
        self.release_socket();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::task::Waker;

    use rexmit_core::Seed;
    use rexmit_sctp as sctp;

    use super::*;

    const BEGIN: Instant = Instant::from_millis(1000);

    /// An endpoint whose first timer, of an INIT, expires within a second after [`BEGIN`].
    fn connecting(socket: Socket) -> State {
        let config = sctp::EndpointConfig::default();
        let mut sctp = sctp::Endpoint::new(config, &Seed::from_u64(1)).unwrap();
        let [local, remote] = [5001, 5002].map(|port| ([127, 0, 0, 1], port).into());
        sctp.connect(BEGIN, Route { local, remote }, 5000).unwrap();
        let protocol = Protocol::Unencrypted(Box::new(sctp));
        let mut state = State::new(protocol, false, socket, Alarm::new().unwrap());
        state.gather(BEGIN, &Socket::bind_udp(([127, 0, 0, 1], 0).into()).unwrap(), 1);
        state.outbox.block();
        state
    }

    /// The driver's turn `ms` after [`BEGIN`], with the alarm expired. Returns the deadline of the next timer: `None`
    /// after T1-init has expired, until the INIT is sent again.
    async fn turn(state: &mut State, ms: u64) -> Option<Instant> {
        state.next_turn.arm(Instant::ZERO);
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = BEGIN + Duration::from_millis(ms);
        state.poll_readiness(&mut Context::from_waker(Waker::noop()), now);
        state.sctp.poll_timeout()
    }

    #[tokio::test]
    async fn timers_wait_while_the_socket_is_full() {
        let (socket, there) = Socket::full();
        let mut state = connecting(socket);
        let deadline = state.sctp.poll_timeout();
        assert!(deadline.is_some_and(|at| at < BEGIN + Duration::from_secs(1)));
        for ms in [1000, 1500, 1999] {
            assert_eq!(turn(&mut state, ms).await, deadline);
        }
        let mut packet = [0; 2000];
        while there.recv(&mut packet).is_ok() {}
        // The first turn in which the socket is writable again.
        assert_ne!(turn(&mut state, 1999).await, deadline);
        assert!(!state.outbox.is_blocked());
    }

    #[tokio::test]
    async fn a_socket_that_stays_full_holds_timers_for_a_second() {
        let (socket, _there) = Socket::full();
        let mut state = connecting(socket);
        let deadline = state.sctp.poll_timeout();
        assert_eq!(turn(&mut state, 1000).await, deadline);
        assert_eq!(turn(&mut state, 1999).await, deadline);
        assert_ne!(turn(&mut state, 2001).await, deadline);
        assert!(state.outbox.is_blocked());
    }
}
