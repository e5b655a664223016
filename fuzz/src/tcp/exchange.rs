//! An endpoint with a correct peer, and between them an attacker who sees everything: he drops, repeats, alters and
//! invents segments, while both applications act.
//!
//! Unless segments were invented or altered, the bytes that one application receives must be a prefix of those that the
//! other sent.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bolero::{TypeGenerator, produce};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_tcp::recovery::{RecoveryConfig, TCP_PROFILES};
use rexmit_tcp::wire::{Flags, Options, Segment, Timestamps};
use rexmit_tcp::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, Event, KeepAlive};

use super::SegmentDraft;
use super::segment::seal;
use crate::{inputs, timers};

/// The most segments and events that one input may cause; more indicate an endless loop.
const MOST_OUTPUTS: usize = 10_000;
/// The most captured segments that are kept for replay.
const MOST_CAPTURED: usize = 64;
/// The buffers of both endpoints.
const RECEIVE_BUFFER: usize = 8192;
const SEND_BUFFER: usize = 16_384;
/// The most connections of each endpoint, including remembered ones.
const MOST_CONNECTIONS: usize = 4;
const MOST_TIME_WAITS: usize = 2;
/// The port both listen on.
const PORT: u16 = 80;

/// One event.
#[derive(Clone, Debug, TypeGenerator)]
pub enum Act {
    /// The attacker invents a segment with a correct checksum.
    Invent(SegmentDraft, Aim),
    /// A captured segment is repeated, to either side.
    Repeat(u8, bool),
    /// A captured segment arrives with one byte changed and a correct checksum.
    Alter(u8, u8, u8, bool),
    /// This many segments in flight to each side arrive.
    Deliver(u8),
    /// The segments in flight to one side are reordered.
    Reverse(bool),
    /// This many segments in flight to each side are lost.
    Drop(u8),
    /// Time passes: a power of two of milliseconds.
    Wait(u8),
    /// The application of one side sends this many bytes.
    Send(bool, u16),
    /// The application of one side receives up to this many bytes.
    Receive(bool, u16),
    /// The application of one side finishes sending.
    Finish(bool),
    /// The application of one side closes the connection.
    Close(bool),
    /// The application of one side resets the connection.
    Abort(bool),
    /// The application of one side begins a new connection: from the usual port, or any.
    Connect(bool, bool),
    /// One side stops listening, or begins again.
    Listen(bool, bool),
}

/// The kind of an invented segment.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub struct Aim {
    /// To which side.
    pub side: bool,
    /// A small value gives the segment another source address.
    pub stranger: u8,
    /// Whether its numbers are moved close to the real ones: not if this is small.
    pub near: u8,
    /// Whether its timestamp is a valid one.
    pub is_stamped: bool,
}

/// The fate of the next segment in each direction.
#[derive(Clone, Copy, Debug, TypeGenerator)]
pub enum Handling {
    /// The segment arrives.
    Deliver,
    /// The segment is lost.
    Drop,
    /// The segment arrives twice.
    Twice,
    /// The segment arrives after the next one.
    Late,
    /// The segment arrives with one byte changed and a correct checksum: the offset, and the value.
    Alter(u16, u8),
    /// The segment arrives with one bit flipped and a correct checksum.
    Flip(u16, u8),
    /// A captured segment arrives instead.
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
    /// The share of attacked segments, in 1/256.
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

/// Everything that happens.
#[derive(Clone, Debug, TypeGenerator)]
pub struct Script {
    /// The state of the connection when the script begins, and the options of both sides.
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
    address: IpAddr,
    connections: Vec<ConnectionId>,
    /// Segments on the way to it.
    inbox: VecDeque<Vec<u8>>,
    /// The ports of its last segment, its own first.
    ports: (u16, u16),
    /// The sequence number after its last segment.
    next: u32,
    stamps: Option<Timestamps>,
}

/// Both sides.
pub struct Exchange {
    now: Instant,
    sides: [Side; 2],
    /// Captured segments, with the side that they were sent to.
    captured: VecDeque<(usize, Vec<u8>)>,
    /// The bytes that each side sent and received on its only connection, if there are no attacks.
    streams: Option<[(u64, u64); 2]>,
    /// The bytes that an application received last: kept, since clearing 64 KiB for each call took 3 % of the time.
    received: Vec<u8>,
}

impl Side {
    fn new(index: u8, abilities: u8, profile: &str) -> Self {
        let recovery = RecoveryConfig::tcp_profile(profile).expect("it exists");
        let [idle, interval] = [10, 5].map(Duration::from_secs);
        let keep_alive = KeepAlive::default().idle(idle).interval(interval).probes(3);
        let connection = ConnectionConfig::new(recovery)
            .receive_buffer_bytes(RECEIVE_BUFFER << (abilities & 4))
            .send_buffer_bytes(SEND_BUFFER)
            .max_held_segments(16)
            .timestamps(abilities & 1 == 0)
            .with_sack(abilities & 2 == 0)
            .keep_alive((abilities & 8 != 0).then_some(keep_alive));
        let config = EndpointConfig::default()
            .max_connections(MOST_CONNECTIONS)
            .syn_backlog(usize::from(abilities & 3))
            .max_time_wait(MOST_TIME_WAITS)
            .initial_sequence(Some(u32::MAX - 5000))
            .connection(Arc::new(connection));
        let mut endpoint =
            Endpoint::new(config, &Seed::from_u64(index.into())).expect("it is valid");
        endpoint.listen(PORT, None).expect("a free port");
        Self {
            endpoint,
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, index + 1)),
            connections: Vec::new(),
            inbox: VecDeque::new(),
            ports: (PORT, PORT),
            next: 0,
            stamps: None,
        }
    }

    fn newest(&self) -> Option<ConnectionId> {
        self.connections.last().copied()
    }

    /// Records its packets.
    fn note(&mut self, peer: IpAddr, packet: &[u8]) {
        let segment =
            Segment::parse(self.address, peer, packet).expect("a malformed segment was sent");
        let header = &segment.header;
        if !header.flags.has(Flags::RST) {
            self.ports = (header.source_port, header.destination_port);
            self.next = header.sequence.wrapping_add(segment.sequence_len());
            self.stamps = header.options.timestamps;
        }
    }

    fn check_limits(&self) {
        assert!(self.endpoint.connection_count() <= MOST_CONNECTIONS);
        assert!(self.endpoint.time_wait_count() <= MOST_TIME_WAITS);
        for &id in &self.connections {
            let Some(statistics) = self.endpoint.statistics(id) else { continue };
            assert!(statistics.receive_buffered_bytes <= RECEIVE_BUFFER << 4, "{statistics:?}");
            assert!(statistics.send_buffered_bytes <= SEND_BUFFER, "{statistics:?}");
            assert!(statistics.bytes_in_flight <= SEND_BUFFER as u64 + 1, "{statistics:?}");
        }
    }
}

impl Exchange {
    /// Two endpoints with the profile numbered `profile`, whose connection is in the state that `start` selects.
    #[must_use]
    pub fn new(start: u8, profile: u8) -> Self {
        let abilities = start >> 4;
        let (profile, _) = TCP_PROFILES[usize::from(profile) % TCP_PROFILES.len()];
        let sides = [Side::new(0, abilities, profile), Side::new(1, abilities, profile)];
        let now = Instant::from_millis(1000);
        let streams = Some([(0, 0); 2]);
        let mut exchange =
            Self { now, sides, captured: VecDeque::new(), streams, received: Vec::new() };
        let stage = start % 16;
        if stage > 0 {
            exchange.connect(false, false);
        }
        // SYN, SYN-ACK, ACK.
        for step in 0..stage.saturating_sub(1).min(3) {
            exchange.deliver(usize::from(step % 2 == 0), 1);
        }
        if stage > 5 {
            for side in 0..2 {
                exchange.send(side, 3000);
            }
        }
        if stage > 6 {
            exchange.act(&Act::Deliver(255));
            exchange.act(&Act::Finish(false));
        }
        match stage {
            8..=10 => exchange.act(&Act::Deliver(255)),
            11.. => {
                exchange.act(&Act::Finish(true));
                for step in 11..stage {
                    exchange.deliver(usize::from(step % 2 == 0), 255);
                }
            }
            _ => {}
        }
        exchange
    }

    /// Performs `act`, and handles everything that it causes in the endpoints.
    pub fn act(&mut self, act: &Act) {
        match act {
            Act::Invent(draft, aim) => self.invent(draft.clone(), *aim),
            Act::Repeat(which, to) => {
                let (meant_for, packet) = self.pick(*which);
                if meant_for != usize::from(*to) {
                    // Its addresses are other ones then, and the checksum does not see it.
                    self.streams = None;
                }
                self.attack((*to).into(), &packet);
            }
            Act::Alter(which, at, byte, to) => self.alter(*which, (*at, *byte), (*to).into()),
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
            Act::Reverse(side) => {
                self.sides[usize::from(*side)].inbox.make_contiguous().reverse();
            }
            Act::Drop(count) => {
                for side in &mut self.sides {
                    let count = usize::from(*count).min(side.inbox.len());
                    side.inbox.drain(..count);
                }
            }
            Act::Wait(power) => self.wait(Duration::from_millis(1 << (power % 18))),
            Act::Send(side, len) => _ = self.send((*side).into(), *len),
            Act::Receive(side, most) => self.receive((*side).into(), *most),
            Act::Finish(side) => self.with_newest(*side, Endpoint::finish),
            Act::Close(side) => self.with_newest(*side, Endpoint::close),
            Act::Abort(side) => self.with_newest(*side, Endpoint::abort),
            Act::Connect(side, ephemeral) => self.connect(*side, *ephemeral),
            Act::Listen(side, on) => {
                let endpoint = &mut self.sides[usize::from(*side)].endpoint;
                if *on {
                    let _ = endpoint.listen(PORT, None);
                } else {
                    endpoint.stop_listening(PORT);
                }
            }
        }
        self.settle(0);
        self.settle(1);
    }

    /// Handles the next segment in flight to each side by `handling`. If none is in flight, both applications send and
    /// read, and time passes.
    pub fn handle_next(&mut self, handling: Handling) {
        if self.sides.iter().all(|side| side.inbox.is_empty()) {
            return self.make_traffic();
        }
        for to in 0..2 {
            let Some(packet) = self.sides[to].inbox.pop_front() else { continue };
            match handling {
                Handling::Deliver => self.input(to, &packet),
                Handling::Drop => {}
                Handling::Twice => {
                    self.input(to, &packet);
                    self.attack(to, &packet);
                }
                Handling::Late => {
                    if let Some(after) = self.sides[to].inbox.pop_front() {
                        self.attack(to, &after);
                    }
                    self.input(to, &packet);
                }
                Handling::Alter(at, byte) => self.input_altered(to, packet, at, |_| byte),
                Handling::Flip(at, bit) => {
                    self.input_altered(to, packet, at, |byte| byte ^ (1 << (bit % 8)));
                }
                Handling::Instead(which) => {
                    let (_, packet) = self.pick(which);
                    self.streams = None;
                    self.attack(to, &packet);
                }
            }
        }
    }

    fn input_altered(
        &mut self,
        to: usize,
        mut packet: Vec<u8>,
        at: u16,
        change: impl FnOnce(u8) -> u8,
    ) {
        self.streams = None;
        let at = 4 + usize::from(at) % packet.len().saturating_sub(4).max(1);
        if let Some(place) = packet.get_mut(at) {
            *place = change(*place);
            seal((self.sides[1 - to].address, self.sides[to].address), &mut packet);
        }
        self.attack(to, &packet);
    }

    /// Both applications read and send, and time advances until a timer is due. A connection over which neither can send
    /// any more is closed, and another one takes the place of one that has ended.
    fn make_traffic(&mut self) {
        let mut may_send = false;
        for side in 0..2 {
            self.receive(side, u16::MAX);
            may_send |= self.send(side, if side == 0 { 2500 } else { 100 });
        }
        if !may_send {
            self.begin_another();
        }
        if self.sides.iter().all(|side| side.inbox.is_empty())
            && let Some(next) = self.next_timeout()
        {
            self.wait(next - self.now);
        }
    }

    /// Nothing more arrives: checks that the endpoints become idle in bounded time.
    pub fn run_out(&mut self) {
        inputs::report();
        for _ in 0..100 {
            for side in &mut self.sides {
                side.inbox.clear();
            }
            let Some(next) = self.next_timeout() else { break };
            self.wait(next - self.now);
        }
    }

    /// Begins another connection if both sides have forgotten theirs; closes or aborts what is left of one otherwise.
    fn begin_another(&mut self) {
        let has_ended =
            |side: &Side| side.newest().is_none_or(|id| side.endpoint.statistics(id).is_none());
        if !self.sides.iter().all(has_ended) {
            for side in [false, true] {
                self.with_newest(side, Endpoint::close);
                self.settle(side.into());
            }
            return;
        }
        self.sides.iter_mut().for_each(|side| side.connections.clear());
        self.streams = self.streams.map(|_| [(0, 0); 2]);
        self.connect(false, true);
    }

    fn connect(&mut self, side: bool, ephemeral: bool) {
        let (from, to) = (usize::from(side), usize::from(!side));
        let remote = SocketAddr::new(self.sides[to].address, PORT);
        let from = &mut self.sides[from];
        let local = SocketAddr::new(from.address, if ephemeral { 0 } else { PORT });
        if let Ok(id) = from.endpoint.connect(self.now, local, remote) {
            if !from.connections.is_empty() {
                self.streams = None;
            }
            from.connections.push(id);
        }
        self.settle(side.into());
    }

    fn with_newest(&mut self, side: bool, f: fn(&mut Endpoint, Instant, ConnectionId)) {
        let side = &mut self.sides[usize::from(side)];
        if let Some(id) = side.newest() {
            f(&mut side.endpoint, self.now, id);
        }
    }

    /// Sends up to `len` bytes. Returns whether `side` may send, now or later.
    fn send(&mut self, side: usize, len: u16) -> bool {
        let to = &mut self.sides[side];
        let Some(id) = to.newest() else { return false };
        let sent = self.streams.map_or(0, |streams| streams[side].0);
        let bytes = content(side, sent, len.into());
        let result = to.endpoint.send(self.now, id, bytes);
        let accepted = result.unwrap_or(0);
        assert!(accepted <= bytes.len());
        if let Some(streams) = &mut self.streams {
            streams[side].0 += accepted as u64;
        }
        self.settle(side);
        result.is_ok()
    }

    fn receive(&mut self, side: usize, most: u16) {
        let to = &mut self.sides[side];
        let Some(id) = to.newest() else { return };
        let bytes = &mut self.received;
        if bytes.len() < most.into() {
            bytes.resize(most.into(), 0);
        }
        let bytes = &mut bytes[..most.into()];
        let len = to.endpoint.receive(self.now, id, bytes).unwrap_or(0);
        if let Some(streams) = &mut self.streams {
            let sent = content(1 - side, streams[side].1, len);
            assert!(bytes[..len] == *sent, "other bytes than were sent");
            streams[side].1 += len as u64;
            assert!(streams[side].1 <= streams[1 - side].0, "more bytes than were sent");
        }
    }

    fn pick(&self, which: u8) -> (usize, Vec<u8>) {
        let count = self.captured.len().max(1);
        self.captured.get(usize::from(which) % count).cloned().unwrap_or_default()
    }

    fn alter(&mut self, which: u8, (at, byte): (u8, u8), to: usize) {
        self.streams = None;
        let (_, mut packet) = self.pick(which);
        // Behind the ports, which are right more often so.
        let at = 4 + usize::from(at) % packet.len().saturating_sub(4).max(1);
        if let Some(place) = packet.get_mut(at) {
            *place = byte;
            seal((self.sides[1 - to].address, self.sides[to].address), &mut packet);
        }
        self.attack(to, &packet);
    }

    fn invent(&mut self, mut draft: SegmentDraft, aim: Aim) {
        self.streams = None;
        let (to, from) = (&self.sides[usize::from(aim.side)], &self.sides[usize::from(!aim.side)]);
        if aim.near >= 32 {
            let near = |base: u32, far: u32| base.wrapping_add_signed(far as i32 >> 22);
            draft.sequence = near(from.next, draft.sequence);
            draft.acknowledgment = near(to.next, draft.acknowledgment);
        }
        let (own, other) = from.ports;
        let port = if aim.stranger < 32 { u16::from(aim.stranger) } else { own };
        let mut packet = draft.bytes((from.address, port), (to.address, other));
        if let (true, Some(stamps), Ok(segment)) =
            (aim.is_stamped, from.stamps, Segment::parse(from.address, to.address, &packet))
        {
            let options = Options { timestamps: Some(stamps), ..Options::default() };
            let header = rexmit_tcp::wire::Header { options, ..segment.header };
            let mut stamped = Vec::new();
            header.write((from.address, to.address), (segment.payload, &[]), &mut stamped);
            packet = stamped;
        }
        self.attack(aim.side.into(), &packet);
    }

    fn deliver(&mut self, side: usize, count: usize) {
        for _ in 0..count {
            if let Some(packet) = self.sides[side].inbox.pop_front() {
                self.input(side, &packet);
            }
        }
    }

    /// A segment arrives that a correct peer and a perfect network would not deliver: an input.
    fn attack(&mut self, side: usize, packet: &[u8]) {
        inputs::count();
        self.input(side, packet);
    }

    fn input(&mut self, side: usize, packet: &[u8]) {
        let route = Route {
            local: (self.sides[side].address, 0).into(),
            remote: (self.sides[1 - side].address, 0).into(),
        };
        self.sides[side].endpoint.handle_input(self.now, route, packet);
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

    /// Reads all segments and events of an endpoint.
    fn settle(&mut self, side: usize) {
        let mut packet = Vec::new();
        let other = 1 - side;
        let peer = self.sides[other].address;
        for _ in 0..MOST_OUTPUTS {
            if self.sides[side].endpoint.poll_transmit(self.now, &mut packet).is_some() {
                self.sides[side].note(peer, &packet);
                if self.captured.len() == MOST_CAPTURED {
                    self.captured.pop_front();
                }
                self.captured.push_back((other, packet.clone()));
                self.sides[other].inbox.push_back(packet.clone());
            } else if let Some((id, event)) = self.sides[side].endpoint.poll_event() {
                let connections = &mut self.sides[side].connections;
                if matches!(event, Event::Connected { .. }) && !connections.contains(&id) {
                    if !connections.is_empty() {
                        self.streams = None;
                    }
                    connections.push(id);
                }
            } else {
                return self.sides[side].check_limits();
            }
        }
        panic!("an endpoint does not become idle");
    }
}

/// The `len` bytes at `at` in the data of `side`, which has a period of 2¹⁶; `len` is no larger.
fn content(side: usize, at: u64, len: usize) -> &'static [u8] {
    static BOTH: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        let byte = |side: usize, at: usize| (at * 31 + (at >> 8) * 7 + side * 101) as u8;
        [0, 1].map(|side| (0..2 << 16).map(|at| byte(side, at)).collect())
    });
    &BOTH[side][(at % (1 << 16)) as usize..][..len]
}
