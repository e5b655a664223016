//! An endpoint with a correct peer, and between them an attacker with all keys: he drops, repeats, alters and
//! invents packets, while both applications act.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::time::Duration;

use bolero::{TypeGenerator, produce};
use hmac::{Hmac, KeyInit, Mac};
use rexmit_core::{Ecn, Instant, Machine, Route, Seed};
use rexmit_sctp::recovery::{
    BundlingConfig, CopyBudget, Deadline, DelayedCopyConfig, PROFILES, ProbeConfig,
    RetransmissionCopies, ThinConfig, ThinSctpConfig, ThinTest,
};
use rexmit_sctp::wire::{Chunk, Header, Packet, Params, kind, param_kind, write_checksum};
use rexmit_sctp::{
    AckCopies, AckCopyConfig, AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event,
    MAX_ADDRESSES, OutboundMessage, PathMtuConfig, Reliability, SourceAddresses,
};

use crate::{PacketDraft, inputs, timers};

/// The most packets and events that one input may cause; more indicate an endless loop.
const MOST_OUTPUTS: usize = 10_000;
/// The most captured packets that are kept for replay.
const MOST_CAPTURED: usize = 64;
/// The receive buffer of both endpoints.
const RECEIVE_BUFFER: usize = 8192;

/// One event.
#[derive(Clone, Debug, TypeGenerator)]
pub enum Act {
    /// The attacker invents a packet with the right tag and a correct checksum.
    Invent(PacketDraft, Aim),
    /// A captured packet is repeated, to either side.
    Repeat(u8, bool),
    /// A captured packet arrives with one byte changed and a correct checksum.
    Alter(u8, u8, u8, bool),
    /// This many packets in flight to each side arrive.
    Deliver(u8),
    /// This many packets in flight to each side are lost.
    Drop(u8),
    /// The packets in flight to one side are reordered.
    Reverse(bool),
    /// The chunks of one captured packet are appended to another, with a correct checksum.
    Join(u8, u8, bool),
    /// Time passes: a power of two of milliseconds.
    Wait(u8),
    /// The application of one side sends.
    Send(bool, SendDraft),
    /// The application of one side reads everything.
    Receive(bool),
    /// The application of one side resets a stream, or all.
    Reset(bool, u8),
    /// The application of one side ends the association gracefully.
    Shutdown(bool),
    /// The application of one side aborts the association.
    Abort(bool),
    /// The application of one side begins a new association.
    Connect(bool),
    /// The host of one side adds, deletes or prefers an address, or moves.
    Address(bool, u8, u8),
    /// The application of one side changes the thin-stream mechanisms of a stream, or of the association.
    Thin(bool, u8, u8),
    /// A router reports to one side that a packet was larger than this MTU, with the right tag or a wrong one.
    TooBig(bool, u16, bool),
}

/// The kind of an invented packet.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub struct Aim {
    /// To which side.
    pub side: bool,
    /// Selects the tag: usually the right one.
    pub tag: u8,
    /// Whether its sequence numbers are moved close to the real ones.
    pub is_near: bool,
    /// Selects the source: usually the peer's address.
    pub source: u8,
    /// Whether the chunks after an AUTH are authentic.
    pub is_signed: bool,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub struct SendDraft {
    stream: u8,
    len: u16,
    unordered: bool,
    reliability: u8,
}

/// The fate of the next packet in each direction.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub enum Handling {
    /// The packet arrives.
    Deliver,
    /// The packet is lost.
    Drop,
    /// The packet arrives twice.
    Twice,
    /// The packet arrives after later ones.
    Late,
    /// The packet arrives with one byte changed and a correct checksum: the offset, and the value.
    Alter(u16, u8),
    /// The packet arrives with one bit flipped and a correct checksum.
    Flip(u16, u8),
    /// The chunks of a captured packet are appended.
    Join(u8),
    /// A captured packet arrives instead.
    Instead(u8),
}

impl Handling {
    /// Whether this can also happen in a network without an attacker.
    #[must_use]
    pub const fn is_of_network(self) -> bool {
        matches!(self, Self::Deliver | Self::Drop | Self::Twice | Self::Late)
    }
}

/// Real traffic, and the attacks on it.
#[derive(Clone, Debug, TypeGenerator)]
pub struct Traffic {
    /// As in [`Script`].
    pub start: u8,
    /// As in [`Script`].
    pub profile: u8,
    /// The share of attacked packets, in 1/256.
    pub share: u8,
    /// The attacks, each with a number that decides whether it is performed.
    #[generator(produce::<Vec<(u8, Handling)>>().with().len(0usize..400))]
    pub handlings: Vec<(u8, Handling)>,
}

impl Traffic {
    /// The fates of the packets, in their order.
    pub fn handlings(&self) -> impl Iterator<Item = Handling> {
        let is_in_share = |&(number, _): &(u8, Handling)| number < self.share;
        let handling =
            move |it: &(u8, Handling)| if is_in_share(it) { it.1 } else { Handling::Deliver };
        self.handlings.iter().map(handling)
    }
}

/// A test case: the initial state, and the actions.
#[derive(Clone, Debug, TypeGenerator)]
pub struct Script {
    /// The state of the association when the script begins.
    pub start: u8,
    /// Selects the profile of both sides.
    pub profile: u8,
    /// The actions, in their order.
    #[generator(produce::<Vec<Act>>().with().len(0usize..200))]
    pub acts: Vec<Act>,
}

/// One side.
struct Side {
    endpoint: Endpoint,
    route: Route,
    associations: Vec<AssociationId>,
    /// The packets in flight to it, with their routes.
    inbox: VecDeque<(Route, Vec<u8>)>,
    /// RANDOM, CHUNKS and HMAC-ALGO of its last INIT or INIT ACK.
    vector: Vec<u8>,
    /// The content of its last INIT or INIT ACK.
    tag: u32,
    /// The TSN it sent last, or the one before its first.
    tsn: u32,
}

/// The profile that a byte of an input selects: the default one more often than the others.
#[must_use]
pub fn profile_of(number: u8) -> &'static str {
    let of_others = PROFILES.get(usize::from(number) % (PROFILES.len() + 6));
    of_others.map_or("interactive", |(name, _)| name)
}

/// Two endpoints, and the packets between them.
pub struct Exchange {
    now: Instant,
    sides: [Side; 2],
    captured: VecDeque<Vec<u8>>,
    /// Whether packets have arrived that were altered, or sent to another endpoint.
    is_forged: bool,
}

/// A switch for each bit.
fn thin(switches: u8) -> ThinConfig {
    let is_on = |bit: u8| switches & (1 << bit) != 0;
    ThinConfig::OFF
        .test(if is_on(0) { ThinTest::Linux } else { ThinTest::PacketsInFlight })
        .rto_min(is_on(1).then_some(Duration::from_millis(200)))
        .restart_by_age(is_on(2))
        .linear_timeouts(if is_on(3) { NonZeroU8::new(6) } else { None })
        .first_indication(is_on(4))
        .bundling(is_on(5).then_some(BundlingConfig::ALL.bytes(NonZeroU32::new(if is_on(0) {
            200
        } else {
            0
        }))))
        .loss_hiding(is_on(3))
        .with_sctp(
            ThinSctpConfig::OFF
                .sack_immediately(is_on(6))
                .heartbeat_samples(is_on(7))
                .by_stream(is_on(5)),
        )
        .ack_delay_samples(is_on(6))
        .probe_timer(is_on(2).then_some(ProbeConfig::DEFAULT))
        .delayed_copies(
            DelayedCopyConfig::OFF
                .of_retransmissions(is_on(4).then_some(RetransmissionCopies::ONE))
                .of_last_after(is_on(7).then_some(Duration::from_millis(4))),
        )
        .copy_budget(CopyBudget::percent(NonZeroU16::new(switches.into()), None))
        .queue_delay_limit(is_on(3).then_some(Duration::from_millis(25)))
}

impl Side {
    fn new(index: u8, profile: &str) -> Self {
        let association = AssociationConfig::profile(profile)
            .expect("it exists")
            .receive_buffer_bytes(RECEIVE_BUFFER)
            .max_message_bytes(RECEIVE_BUFFER)
            .send_buffer_bytes(32_768)
            .path_mtu(Some(PathMtuConfig::default()))
            .ack_copies(AckCopyConfig::default().request(index == 0).send(AckCopies::Always))
            .max_held_chunks(64)
            .max_gap_ranges(16)
            .report_sent(true)
            .report_acknowledged(true);
        let config = EndpointConfig::default()
            .accept(true)
            .max_associations(4)
            .association(Arc::new(association));
        let address = |index: u8| ([10, 0, 0, index], 0).into();
        // The associations of the first one share one receive buffer; the second one is on a host with two addresses, whose
        // routes choose between them.
        let config = match index {
            0 => config.max_receive_bytes(RECEIVE_BUFFER),
            _ => config
                .addresses(vec![[10, 0, 0, index].into(), [10, 0, 1, index].into()])
                .source_addresses(SourceAddresses::Routed),
        };
        let endpoint = Endpoint::new(config, &Seed::from_u64(index.into())).expect("it is valid");
        let route = Route { local: address(index), remote: address(1 - index) };
        let (associations, inbox) = (Vec::new(), VecDeque::new());
        Self { endpoint, route, associations, inbox, vector: Vec::new(), tag: 0, tsn: 0 }
    }

    fn newest(&self) -> Option<AssociationId> {
        self.associations.last().copied()
    }

    fn connect(&mut self, now: Instant) {
        if let Ok(id) = self.endpoint.connect(now, self.route, 5000) {
            self.associations.push(id);
        }
    }

    /// Records its packets.
    fn note(&mut self, packet: &[u8]) {
        let packet = Packet::parse(packet).expect("a malformed packet was sent");
        for raw in packet.chunks() {
            let raw = raw.expect("a malformed chunk was sent");
            match raw.decode().expect("a malformed chunk was sent") {
                Chunk::Init(init) | Chunk::InitAck(init) => {
                    self.tag = init.initiate_tag;
                    self.tsn = init.initial_tsn.wrapping_sub(1);
                    self.vector = vector(init.params());
                }
                Chunk::Data(data) => self.tsn = data.tsn,
                Chunk::IData(data) => self.tsn = data.tsn,
                _ => {}
            }
        }
    }

    fn check_limits(&self, is_forged: bool) {
        assert!(self.endpoint.association_count() <= 4);
        for &id in &self.associations {
            let Some(statistics) = self.endpoint.statistics(id) else { continue };
            assert!(statistics.receive_buffered_bytes <= 2 * RECEIVE_BUFFER);
            assert!(statistics.send_buffered_bytes <= 32_768 + RECEIVE_BUFFER);
            assert!(statistics.paths.len() <= 2 * MAX_ADDRESSES + 2, "{statistics:?}");
            // Data that was dropped after it was acknowledged, or declared lost wrongly, is in flight again in a packet that
            // has ended.
            let may_return = is_forged || statistics.recovery.spurious_events.undone > 0;
            for path in statistics.paths.iter().filter(|_| !may_return) {
                assert!(path.packets_in_flight > 0 || path.bytes_in_flight == 0, "{statistics:?}");
            }
        }
    }
}

impl Exchange {
    /// Two endpoints with the profile numbered `profile`, whose association is in the state that `start` selects.
    #[must_use]
    pub fn new(start: u8, profile: u8) -> Self {
        let profile = profile_of(profile);
        let sides = [Side::new(0, profile), Side::new(1, profile)];
        let (now, captured) = (Instant::from_millis(1000), VecDeque::new());
        let mut exchange = Self { now, sides, captured, is_forged: false };
        let stage = start % 16;
        if stage > 0 {
            exchange.sides[0].connect(now);
            exchange.settle(0);
        }
        // One packet each way per step: INIT, INIT ACK, COOKIE ECHO, COOKIE ACK.
        for step in 0..stage.saturating_sub(1).min(4) {
            exchange.deliver(usize::from(step % 2 == 0), 1);
        }
        if stage > 6 {
            for side in [false, true] {
                let draft = SendDraft { stream: 1, len: 3000, unordered: false, reliability: 0 };
                exchange.act(&Act::Send(side, draft));
            }
        }
        match stage {
            8 => exchange.act(&Act::Reset(false, 0)),
            9 => exchange.act(&Act::Shutdown(false)),
            10.. => {
                exchange.act(&Act::Deliver(255));
                exchange.act(&Act::Shutdown(false));
                for step in 10..stage {
                    exchange.deliver(usize::from(step % 2 == 0), 1);
                }
            }
            _ => {}
        }
        exchange
    }

    /// Performs `act`, and handles everything that it causes in the endpoints.
    pub fn act(&mut self, act: &Act) {
        let now = self.now;
        self.is_forged |=
            matches!(act, Act::Invent(..) | Act::Repeat(..) | Act::Alter(..) | Act::Join(..));
        match act {
            Act::Invent(draft, aim) => self.invent(draft, *aim),
            Act::Repeat(which, to) => {
                let packet = self.pick(*which);
                self.attack((*to).into(), None, &packet);
            }
            Act::Alter(which, at, byte, to) => {
                let mut packet = self.pick(*which);
                // Behind the tag, which is right more often so.
                let at = 12 + usize::from(*at) % packet.len().saturating_sub(12).max(1);
                if let Some(place) = packet.get_mut(at) {
                    *place = *byte;
                    write_checksum(&mut packet);
                }
                self.attack((*to).into(), None, &packet);
            }
            Act::Deliver(count) => {
                for _ in 0..*count {
                    for side in 0..2 {
                        self.deliver(side, 1);
                    }
                    if self.sides.iter().all(|side| side.inbox.is_empty()) {
                        break;
                    }
                }
            }
            Act::Drop(count) => {
                for side in &mut self.sides {
                    let count = usize::from(*count).min(side.inbox.len());
                    side.inbox.drain(..count);
                }
            }
            Act::Reverse(side) => {
                self.sides[usize::from(*side)].inbox.make_contiguous().reverse();
            }
            Act::Join(first, second, to) => {
                let packet = joined(self.pick(*first), &self.pick(*second));
                self.attack((*to).into(), None, &packet);
            }
            Act::Wait(power) => self.wait(Duration::from_millis(1 << (power % 18))),
            Act::Send(side, draft) => self.send((*side).into(), *draft),
            Act::Receive(side) => {
                let side = &mut self.sides[usize::from(*side)];
                for &id in &side.associations {
                    while side.endpoint.receive(now, id).is_some() {}
                }
            }
            Act::Reset(side, stream) => self.with_newest(*side, |endpoint, id| {
                let streams = [u16::from(stream % 4)];
                let streams = if *stream > 200 { &[][..] } else { &streams };
                let _ = endpoint.reset_streams(now, id, streams);
            }),
            Act::Shutdown(side) => {
                self.with_newest(*side, |endpoint, id| endpoint.shutdown(now, id));
            }
            Act::Abort(side) => {
                self.with_newest(*side, |endpoint, id| endpoint.abort(now, id, b"fuzz"));
            }
            Act::TooBig(side, mtu, is_forged) => self.refuse_size(*side, *mtu, *is_forged),
            Act::Thin(side, which, switches) => self.set_thin(*side, *which, *switches),
            Act::Address(side, what, host) => self.change_address(*side, *what, *host),
            Act::Connect(side) => self.sides[usize::from(*side)].connect(now),
        }
        self.settle(0);
        self.settle(1);
    }

    /// A router reports to `side` that packets of more than `mtu` bytes do not pass. A forged report has a wrong tag.
    fn refuse_size(&mut self, side: bool, mtu: u16, is_forged: bool) {
        let tag = self.sides[usize::from(!side)].tag ^ u32::from(is_forged);
        let Side { endpoint, route, .. } = &mut self.sides[usize::from(side)];
        let quote = [&[0x13, 0x88, 0x13, 0x88][..], &tag.to_be_bytes()].concat();
        endpoint.handle_packet_too_big(self.now, *route, mtu.into(), &quote);
    }

    /// Handles the next packet in flight to each side by `handling`. If none is in flight, both applications send and
    /// read, and time passes.
    pub fn handle_next(&mut self, handling: Handling) {
        if self.sides.iter().all(|side| side.inbox.is_empty()) {
            return self.make_traffic();
        }
        for to in 0..2 {
            let Some((route, packet)) = self.sides[to].inbox.pop_front() else { continue };
            let route = Some(route);
            self.is_forged |= !handling.is_of_network();
            match handling {
                Handling::Deliver => self.input(to, route, &packet),
                Handling::Drop => {}
                Handling::Twice => {
                    self.input(to, route, &packet);
                    self.attack(to, route, &packet);
                }
                Handling::Late => {
                    let after = self.sides[to].inbox.pop_front();
                    if let Some((way, other)) = after {
                        self.attack(to, Some(way), &other);
                    }
                    self.input(to, route, &packet);
                }
                Handling::Alter(at, byte) => self.attack(to, route, &altered(packet, at, |_| byte)),
                Handling::Flip(at, bit) => {
                    self.attack(to, route, &altered(packet, at, |byte| byte ^ (1 << (bit % 8))));
                }
                Handling::Join(which) => {
                    let packet = joined(packet, &self.pick(which));
                    self.attack(to, route, &packet);
                }
                Handling::Instead(which) => {
                    let packet = self.pick(which);
                    self.attack(to, route, &packet);
                }
            }
        }
    }

    /// Both applications read and send, and time advances until a timer is due. If the association of the first side has
    /// ended, by an attack or by a shutdown with which the exchange began, that side begins another one.
    fn make_traffic(&mut self) {
        let first = &mut self.sides[0];
        first.associations.retain(|&id| first.endpoint.statistics(id).is_some());
        if first.associations.is_empty() {
            self.act(&Act::Connect(false));
        }
        for side in [false, true] {
            self.act(&Act::Receive(side));
            let len = if side { 100 } else { 2500 };
            self.act(&Act::Send(
                side,
                SendDraft { stream: 1, len, unordered: false, reliability: 0 },
            ));
        }
        if self.sides.iter().all(|side| side.inbox.is_empty())
            && let Some(next) = self.next_timeout()
        {
            self.wait(next - self.now);
        }
    }

    fn set_thin(&mut self, side: bool, which: u8, switches: u8) {
        let now = self.now;
        self.with_newest(side, |endpoint, id| {
            let stream = u16::from(which % 4);
            let _ = match which {
                ..100 => endpoint.set_thin(now, id, thin(switches)),
                100..200 => endpoint.set_stream_thin(now, id, stream, Some(thin(switches))),
                200.. => endpoint.set_stream_thin(now, id, stream, None),
            };
        });
    }

    fn change_address(&mut self, side: bool, what: u8, host: u8) {
        let now = self.now;
        self.with_newest(side, |endpoint, id| {
            let address = match host % 8 {
                0 => IpAddr::from([0, 0, 0, 0]),
                host => IpAddr::from([10, 0, 0, host + u8::from(side) * 8]),
            };
            let _ = match what % 4 {
                0 => endpoint.add_address(now, id, address),
                1 => endpoint.delete_address(now, id, address),
                2 => endpoint.set_peer_primary(now, id, address),
                _ => endpoint.move_to(now, id, address),
            };
        });
    }

    /// Nothing more arrives: checks that the endpoints become idle in bounded time.
    pub fn run_out(&mut self) {
        inputs::report();
        for side in &mut self.sides {
            side.inbox.clear();
        }
        for _ in 0..100 {
            let Some(next) = self.next_timeout() else { break };
            self.wait(next - self.now);
            for side in &mut self.sides {
                side.inbox.clear();
            }
        }
    }

    fn with_newest(&mut self, side: bool, f: impl FnOnce(&mut Endpoint, AssociationId)) {
        let side = &mut self.sides[usize::from(side)];
        if let Some(id) = side.newest() {
            f(&mut side.endpoint, id);
        }
    }

    fn send(&mut self, side: usize, draft: SendDraft) {
        let (now, side) = (self.now, &mut self.sides[side]);
        let Some(id) = side.newest() else { return };
        let message = OutboundMessage::new(u16::from(draft.stream % 18), vec![7; draft.len.into()])
            .unordered(draft.unordered)
            .reliability(match draft.reliability % 4 {
                0 | 1 => Reliability::Full,
                2 => Reliability::Timed(Duration::from_millis(draft.reliability.into())),
                _ => Reliability::MaxRetransmissions(u16::from(draft.reliability >> 6)),
            });
        let within = Duration::from_millis(u64::from(draft.reliability) * 4);
        let deadline = Deadline::new(within, f64::from(draft.reliability) / 256.0);
        let message = message.deadline((draft.reliability & 4 != 0).then_some(deadline));
        let _ = side.endpoint.send(now, id, message);
    }

    fn pick(&self, which: u8) -> Vec<u8> {
        let count = self.captured.len().max(1);
        self.captured.get(usize::from(which) % count).cloned().unwrap_or_default()
    }

    fn invent(&mut self, draft: &PacketDraft, aim: Aim) {
        let (to, from) = (&self.sides[usize::from(aim.side)], &self.sides[usize::from(!aim.side)]);
        let verification_tag = match aim.tag % 16 {
            0 => 0,
            1 => from.tag,
            2 => u32::from(aim.tag),
            _ => to.tag,
        };
        let mut packet =
            draft.bytes(Header { source_port: 5000, destination_port: 5000, verification_tag });
        if aim.is_near {
            move_near(&mut packet, from.tsn, to.tsn);
        }
        if aim.is_signed {
            sign(&mut packet, &from.vector, &to.vector);
        }
        let mut route = to.route;
        if aim.source.is_multiple_of(4) {
            route.remote.set_ip(IpAddr::from([10, 0, 0, aim.source / 4 % 16]));
        }
        self.attack(aim.side.into(), Some(route), &packet);
    }

    fn deliver(&mut self, side: usize, count: usize) {
        for _ in 0..count {
            if let Some((route, packet)) = self.sides[side].inbox.pop_front() {
                self.input(side, Some(route), &packet);
            }
        }
    }

    /// A packet arrives that a correct peer and a perfect network would not deliver: an input.
    fn attack(&mut self, side: usize, route: Option<Route>, packet: &[u8]) {
        inputs::count();
        self.input(side, route, packet);
    }

    fn input(&mut self, side: usize, route: Option<Route>, packet: &[u8]) {
        let to = &mut self.sides[side];
        // By the first byte of the checksum, which is as good as random: routers mark an eighth of the packets.
        let is_marked = packet.get(8).is_some_and(|byte| byte % 8 == 0);
        let ecn = if is_marked { Ecn::Ce } else { Ecn::Ect0 };
        to.endpoint.handle_input_with_ecn(self.now, route.unwrap_or(to.route), ecn, packet);
        self.settle(side);
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.sides.iter().filter_map(|side| side.endpoint.poll_timeout()).min()
    }

    /// Handles the timers of `side` that are due.
    fn expire(&mut self, side: usize) {
        let is_due = |exchange: &Self| {
            exchange.sides[side].endpoint.poll_timeout().is_some_and(|at| at <= exchange.now)
        };
        timers::expire(self, is_due, |exchange| {
            exchange.sides[side].endpoint.handle_timeout(exchange.now);
            exchange.settle(side);
        });
    }

    fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        for _ in 0..MOST_OUTPUTS {
            let Some(at) = self.next_timeout().filter(|&at| at <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(at);
            for side in 0..2 {
                self.expire(side);
            }
        }
        panic!("too many timeouts in {duration:?}");
    }

    /// Reads all packets and events of an endpoint.
    fn settle(&mut self, side: usize) {
        let mut packet = Vec::new();
        let other = 1 - side;
        for _ in 0..MOST_OUTPUTS {
            let way = self.sides[side].endpoint.poll_transmit(self.now, &mut packet);
            if let Some(mut way) = way {
                if way.local.ip().is_unspecified() {
                    way.local = self.sides[side].route.local;
                }
                self.sides[side].note(&packet);
                if self.captured.len() == MOST_CAPTURED {
                    self.captured.pop_front();
                }
                self.captured.push_back(packet.clone());
                self.sides[other].inbox.push_back((way.reversed(), packet.clone()));
            } else if let Some((id, event)) = self.sides[side].endpoint.poll_event() {
                let associations = &mut self.sides[side].associations;
                if matches!(event, Event::Connected { .. }) && !associations.contains(&id) {
                    associations.push(id);
                }
            } else {
                return self.sides[side].check_limits(self.is_forged);
            }
        }
        panic!("an endpoint does not become idle");
    }
}

/// `packet` with one byte after the tag changed, and a correct checksum.
fn altered(mut packet: Vec<u8>, at: u16, change: impl FnOnce(u8) -> u8) -> Vec<u8> {
    let at = 12 + usize::from(at) % packet.len().saturating_sub(12).max(1);
    if let Some(place) = packet.get_mut(at) {
        *place = change(*place);
        write_checksum(&mut packet);
    }
    packet
}

/// `packet` with the chunks of `other` appended, and a correct checksum.
fn joined(mut packet: Vec<u8>, other: &[u8]) -> Vec<u8> {
    packet.extend(other.get(12..).unwrap_or_default());
    if packet.len() >= 12 {
        write_checksum(&mut packet);
    }
    packet
}

/// The key vector of the sender of these parameters (RFC 4895 §6.1).
fn vector(params: Params<'_>) -> Vec<u8> {
    let wanted = [param_kind::RANDOM, param_kind::CHUNKS, param_kind::HMAC_ALGO];
    let of = |kind| params.flatten().find(move |param| param.kind == kind);
    wanted.into_iter().filter_map(of).flat_map(|param| param.bytes.to_vec()).collect()
}

/// Corrects the MAC of the first AUTH, as an attacker that has both key vectors can.
fn sign(packet: &mut [u8], a: &[u8], b: &[u8]) {
    let mut at = 12;
    while at + 8 <= packet.len() {
        let len = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        if packet[at] == kind::AUTH && len == 40 && at + 40 <= packet.len() {
            let (small, large) = if (a.len(), a) < (b.len(), b) { (a, b) } else { (b, a) };
            let key = [small, large].concat();
            packet[at + 8..at + 40].fill(0);
            let mac = Hmac::<sha2::Sha256>::new_from_slice(&key).expect("of any length");
            let mac = mac.chain_update(&packet[at..]).finalize().into_bytes();
            packet[at + 8..at + 40].copy_from_slice(&mac);
            break;
        }
        at += len.max(4).next_multiple_of(4);
    }
    write_checksum(packet);
}

/// Moves the sequence numbers of chunks close to the real ones: the sender's own TSNs, and those that it acknowledges.
fn move_near(packet: &mut [u8], own: u32, acknowledged: u32) {
    let mut at = 12;
    while at + 8 <= packet.len() {
        let len = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        let near = |base: u32, byte: u8| base.wrapping_add_signed(i32::from(byte as i8) / 8);
        let place = match packet[at] {
            kind::DATA | kind::FORWARD_TSN | kind::I_DATA | kind::I_FORWARD_TSN => {
                Some((at + 4, own))
            }
            kind::SACK | kind::SHUTDOWN => Some((at + 4, acknowledged)),
            kind::RE_CONFIG => Some((at + 8, own)),
            kind::ASCONF => Some((at + 4, own)),
            kind::ASCONF_ACK => Some((at + 4, acknowledged)),
            _ => None,
        };
        if let Some((place, base)) = place
            && let Some(bytes) = packet.get_mut(place..place + 4)
        {
            let moved = near(base, bytes[3]);
            bytes.copy_from_slice(&moved.to_be_bytes());
        }
        at += len.max(4).next_multiple_of(4);
    }
    write_checksum(packet);
}
