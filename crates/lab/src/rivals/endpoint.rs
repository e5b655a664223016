//! Another implementation as a transport of simulated hosts.

use std::fmt;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route, Seed};
use send_wrapper::SendWrapper;

use super::dcsctp::DcSctp;
use super::kcp::KcpStack;
use super::quinn::Quinn;
use super::sctp_proto::SctpProto;
use super::stack::Stack;
use super::{Rival, Role};
use crate::hosts::{ConnectionEvent, FragmentWatch, ReadResult, Transport, UDP, WriteResult};

/// One host's end of the single connection of an implementation.
///
/// It stays on the thread that created it: dcsctp shares state without locks.
pub struct RivalEndpoint {
    rival: Rival,
    stack: SendWrapper<Box<dyn Stack>>,
    route: Option<Route>,
    due: Option<Instant>,
}

impl RivalEndpoint {
    /// An end whose randomness comes from `seed`.
    ///
    /// # Errors
    /// If the implementation rejects its settings.
    pub fn new(rival: Rival, role: Role, is_unordered: bool, seed: &Seed) -> Result<Self, String> {
        Self::build((rival, role), is_unordered, false, seed)
    }

    /// An end whose messages are sent beside a transfer: quinn discovers the path MTU, up to 1500 bytes, as the profiles
    /// `bulk` and `mixed` do.
    ///
    /// # Errors
    /// If the implementation rejects its settings.
    pub fn with_transfer(
        rival: Rival,
        role: Role,
        is_unordered: bool,
        seed: &Seed,
    ) -> Result<Self, String> {
        Self::build((rival, role), is_unordered, true, seed)
    }

    fn build(
        (rival, role): (Rival, Role),
        is_unordered: bool,
        has_transfer: bool,
        seed: &Seed,
    ) -> Result<Self, String> {
        let stack: Box<dyn Stack> = match rival {
            Rival::DcSctp(profile) => Box::new(DcSctp::new(profile, is_unordered, seed)),
            Rival::SctpProto => Box::new(SctpProto::new(role, is_unordered)),
            Rival::Kcp { is_tuned } => Box::new(KcpStack::new(role, is_tuned)?),
            Rival::Quinn(profile) => {
                Box::new(Quinn::new((role, profile), is_unordered, has_transfer, seed))
            }
        };
        Ok(Self { rival, stack: SendWrapper::new(stack), route: None, due: None })
    }

    /// Accepts as much of a greedy transfer as the implementation should queue behind the messages.
    pub(super) fn fill_transfer(&mut self, now: Instant) {
        self.stack.fill_transfer(now);
    }

    /// The bytes of the transfer received since the last call.
    pub(super) fn take_transfer(&mut self) -> u64 {
        self.stack.take_transfer()
    }

    fn look_at_the_time(&mut self, now: Instant) {
        self.due = self.stack.poll_timeout(now);
    }
}

impl fmt::Debug for RivalEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RivalEndpoint").field("rival", &self.rival).finish_non_exhaustive()
    }
}

impl Machine for RivalEndpoint {
    type Event = ConnectionEvent;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        self.route.get_or_insert(route);
        self.stack.handle_input(now, route, packet);
        self.look_at_the_time(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.stack.handle_timeout(now);
        self.look_at_the_time(now);
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        packet.clear();
        let has_packet = self.stack.poll_transmit(now, packet);
        self.look_at_the_time(now);
        self.route.filter(|_| has_packet)
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.stack.poll_event()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

impl Transport for RivalEndpoint {
    type Id = ();
    /// Detects arrival from SCTP packets only; with other protocols, data counts as arrived when it
    /// is delivered.
    type Watch = FragmentWatch;
    const IP_PROTOCOL: u8 = UDP;
    const KEEPS_BOUNDARIES: bool = true;
    const WRITE_BYTES: usize = 1024;

    fn ip_protocol(&self) -> u8 {
        if self.rival.is_over_udp() { UDP } else { rexmit_sctp::Endpoint::IP_PROTOCOL }
    }

    fn begin(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) -> Option<()> {
        let port = if self.rival.is_over_udp() { remote.port() } else { 0 };
        let [local, remote] = [local, remote].map(|end| SocketAddr::new(end.ip(), port));
        self.route = Some(Route { local, remote });
        self.stack.connect(now, remote);
        self.look_at_the_time(now);
        Some(())
    }

    fn connection_event(event: &ConnectionEvent) -> Option<((), ConnectionEvent)> {
        Some(((), *event))
    }

    fn write(&mut self, now: Instant, (): (), bytes: &mut Bytes) -> WriteResult {
        let given = self.stack.write(now, bytes);
        if given == WriteResult::All {
            bytes.clear();
        }
        self.look_at_the_time(now);
        given
    }

    fn read(&mut self, _: Instant, (): (), each: &mut dyn FnMut(&[u8])) -> ReadResult {
        self.stack.hand_over(each);
        ReadResult::Open
    }

    fn finish(&mut self, now: Instant, (): ()) {
        self.stack.finish(now);
    }

    /// As [`finish`](Self::finish): no program aborts these connections.
    fn abort(&mut self, now: Instant, (): ()) {
        self.stack.finish(now);
    }
}
