//! One run: the network, the two applications that execute the plan, and the checks at the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_netsim::network::{
    Context, Direction, HostId, LinkId, Network, Occurrence, SharedBuffer, TapPoint,
};
use rexmit_netsim::path::PathConfig;
use rexmit_sctp::{
    AssociationId, AssociationStatistics, CloseReason, Endpoint, Event, OutboundMessage, PathState,
    ResetError, SendError,
};

use crate::golden::Digest;
use crate::messages::{self, Messages, Side};
use crate::paths;
use crate::plan::{Burst, Op, Plan};
use crate::watch::{Limits, Watched, address, second_address};

/// A time longer than the slowest recovery or failure of an association: ten timeouts of a minute.
const TIME_LIMIT: Duration = Duration::from_secs(3600);
/// The most events of a run; more indicate an endless exchange of packets.
const MOST_EVENTS: u64 = 3_000_000;
/// The abort reason of our applications.
const ABORT_REASON: &[u8] = b"random abort";

/// The result of a run, for tests of the runs themselves.
#[derive(Debug)]
pub struct Outcome {
    /// Messages accepted, delivered and failed.
    pub counts: (usize, usize, usize),
    /// The close reasons that each side got.
    pub closed: Vec<CloseReason>,
    /// Chunks sent by type, of both sides.
    pub chunks: std::collections::BTreeMap<u8, u64>,
    /// The first TSN of each side's first association.
    pub first_tsns: [Option<u32>; 2],
    /// The number of events in the network.
    pub events: u64,
    /// The statistics of each association that was open in the quiet phase, with its host.
    pub statistics: Vec<(usize, AssociationStatistics)>,
    /// The packets that both sides sent in five idle seconds.
    pub quiet_packets: u64,
    /// A hash of what each host sent.
    pub sent: [Digest; 2],
    /// The packets at both hosts as pcapng, if requested.
    pub capture: Option<Vec<u8>>,
}

/// An association, as its application sees it.
#[derive(Debug)]
struct Known {
    side: Side,
    pair: usize,
    is_reading: bool,
    is_connected: bool,
    is_closed: bool,
    is_shut_down: bool,
    is_aborted: bool,
    waits_for_room: bool,
    waits_for_reset: bool,
    was_restarted: bool,
    /// Whether it ended while the other side had no association.
    has_ended_unknown: bool,
    /// The state of each path, as reported by events.
    path_states: BTreeMap<u8, PathState>,
}

impl Known {
    fn new(side: Side, pair: usize) -> Self {
        Self {
            side,
            pair,
            is_reading: true,
            is_connected: false,
            is_closed: false,
            is_shut_down: false,
            is_aborted: false,
            waits_for_room: false,
            waits_for_reset: false,
            was_restarted: false,
            has_ended_unknown: false,
            path_states: BTreeMap::from([(0, PathState::Active)]),
        }
    }
}

/// The applications at both hosts.
struct Applications<'a> {
    plan: &'a Plan,
    hosts: [HostId; 2],
    lives: [u32; 2],
    known: Vec<Known>,
    messages: Messages,
    closed: Vec<CloseReason>,
    is_calm: bool,
    tells: bool,
}

/// Executes `plan`. `tells` logs the events to standard error, `captures` records all packets.
///
/// # Panics
/// If a check fails.
#[must_use]
pub fn run(plan: &Plan, tells: bool, captures: bool) -> Outcome {
    let (mut network, hosts, links) = build(plan);
    let buffer = SharedBuffer::default();
    let tap = captures.then(|| {
        let points = hosts.map(TapPoint::Host);
        network.tap(&points, buffer.clone()).expect("memory takes every capture")
    });
    for (index, step) in plan.steps.iter().enumerate() {
        network.wake_at(hosts[step.host], step.at, index as u64);
    }
    let mut applications = Applications {
        plan,
        hosts,
        lives: [0; 2],
        known: Vec::new(),
        messages: Messages::default(),
        closed: Vec::new(),
        is_calm: false,
        tells,
    };
    advance(&mut network, &mut applications, plan.calm_at);
    calm_down(&mut network, &mut applications, &links);
    let (statistics, quiet_packets) = check_quiet(&mut network, &mut applications);
    close_all(&mut network, &mut applications);
    applications.messages.check_at_end();
    if let Some(tap) = tap {
        network.finish_tap(tap).expect("memory takes every capture");
    }
    let outcome = outcome(&network, applications);
    let capture = captures.then(|| buffer.bytes());
    Outcome { statistics, quiet_packets, capture, ..outcome }
}

fn outcome(network: &Network<Watched>, applications: Applications<'_>) -> Outcome {
    let mut chunks = std::collections::BTreeMap::new();
    for host in applications.hosts {
        for (&kind, &count) in &network.machine(host).chunks_sent {
            *chunks.entry(kind).or_default() += count;
        }
    }
    Outcome {
        counts: applications.messages.counts(),
        closed: applications.closed,
        chunks,
        first_tsns: applications.hosts.map(|host| network.machine(host).first_tsn),
        events: network.stats().events,
        statistics: Vec::new(),
        quiet_packets: 0,
        sent: applications.hosts.map(|host| network.machine(host).sent),
        capture: None,
    }
}

fn endpoint(plan: &Plan, host: usize, life: u32) -> Watched {
    let config = plan.configs[host].clone();
    let limits = Limits {
        max_packet_bytes: plan.largest_packet(host),
        receive_buffer_bytes: config.association.buffers.receive_bytes,
        peer_window: plan.configs[1 - host].association.buffers.receive_bytes,
        is_flight_visible: !plan.has_partial_reliability(),
        may_exceed_window: config.association.recovery.thin.sctp.by_stream,
    };
    let seed = match plan.endpoint_seeds[host] {
        Some(seed) if life == 0 => Seed::from_u64(seed),
        _ => Seed::from_u64(plan.seed).split(&format!("endpoint {host}, life {life}")),
    };
    Watched::new(Endpoint::new(config, &seed).expect("plans are valid"), limits)
}

fn build(plan: &Plan) -> (Network<Watched>, [HostId; 2], Vec<LinkId>) {
    let mut network = Network::new(&Seed::from_u64(plan.seed).split("network"));
    let hosts = [0, 1].map(|host| network.add_host(["a", "b"][host], endpoint(plan, host, 0)));
    let mut links = vec![add_link(&mut network, hosts, &plan.paths, plan.pairs, address)];
    if let Some(second) = &plan.second {
        links.push(add_link(&mut network, hosts, second, plan.pairs, second_address));
    }
    (network, hosts, links)
}

fn add_link(
    network: &mut Network<Watched>,
    hosts: [HostId; 2],
    paths: &[(Instant, [PathConfig; 2])],
    pairs: usize,
    address: fn(usize, usize) -> std::net::IpAddr,
) -> LinkId {
    let [a, b] = hosts.map(|host| network.host_node(host));
    let (_, [there, back]) = paths[0].clone();
    let link = network.add_link(a, b, there, back).expect("plans are valid");
    for pair in 0..pairs {
        for (host, id) in hosts.into_iter().enumerate() {
            network.add_address(id, address(host, pair), link).expect("distinct");
        }
    }
    for (at, [there, back]) in paths[1..].iter().cloned() {
        let directions = [(Direction::Forward, there), (Direction::Backward, back)];
        for (direction, path) in directions {
            network.change_path_at(link, direction, at, path).expect("plans are valid");
        }
    }
    link
}

fn advance(network: &mut Network<Watched>, applications: &mut Applications<'_>, until: Instant) {
    let app = |context: &mut Context<'_, Watched>, occurrence| {
        applications.on_occurrence(context, occurrence);
    };
    network.run_until(until, app).expect("no livelock");
    let events = network.stats().events;
    assert!(events < MOST_EVENTS, "{events} events by {:?}", network.now());
}

/// Makes the path mild and resumes reading, and waits until everything is completed.
fn calm_down(
    network: &mut Network<Watched>,
    applications: &mut Applications<'_>,
    links: &[LinkId],
) {
    applications.tell(network.now(), || "calm".to_owned());
    applications.is_calm = true;
    for &link in links {
        for direction in [Direction::Forward, Direction::Backward] {
            let now = network.now();
            network.change_path_at(link, direction, now, paths::mild()).expect("a valid path");
        }
    }
    for index in 0..applications.known.len() {
        applications.known[index].is_reading = true;
        let host = applications.hosts[applications.known[index].side.host];
        let now = network.now();
        applications.read(now, network.machine_mut(host), index);
    }
    let deadline = network.now() + TIME_LIMIT;
    while !applications.is_content(network) {
        assert!(network.now() < deadline, "stuck: {}", applications.complaints(network));
        let until = network.now() + Duration::from_secs(5);
        advance(network, applications, until);
    }
}

/// Checks that nothing is outstanding, and that only heartbeats are sent.
fn check_quiet(
    network: &mut Network<Watched>,
    applications: &mut Applications<'_>,
) -> (Vec<(usize, AssociationStatistics)>, u64) {
    let mut all = Vec::new();
    for known in applications.known.iter().filter(|known| !known.is_closed) {
        let machine = network.machine(applications.hosts[known.side.host]);
        let Some(statistics) = machine.endpoint.statistics(known.side.id) else {
            panic!("gone without an event: {known:?}")
        };
        for path in &statistics.paths {
            let in_flight = (path.packets_in_flight, path.bytes_in_flight);
            assert_eq!(in_flight, (0, 0), "in flight: {known:?}");
        }
        assert_eq!(statistics.send_buffered_bytes, 0, "in the send buffer: {known:?}");
        // An association of a peer that is gone stays until a heartbeat fails.
        let is_whole = applications.known.iter().any(|other| {
            (other.side.host, other.pair, other.is_closed)
                == (1 - known.side.host, known.pair, false)
        });
        let held = statistics.receive_buffered_bytes;
        assert!(held == 0 || !is_whole, "{held} bytes in the receive buffer: {known:?}");
        all.push((known.side.host, statistics));
    }
    let sent = |network: &Network<Watched>, applications: &Applications<'_>| -> u64 {
        applications.hosts.iter().map(|&host| network.host_stats(host).packets_out).sum()
    };
    // Packets for a past run may still be in a queue, and get replies.
    let until = network.now() + Duration::from_secs(10);
    advance(network, applications, until);
    let before = sent(network, applications);
    let until = network.now() + Duration::from_secs(5);
    advance(network, applications, until);
    // The shortest heartbeat interval of a plan is 300 ms.
    let packets = sent(network, applications) - before;
    let links = 1 + u64::from(applications.plan.second.is_some());
    assert!(packets <= 80 * links * applications.plan.pairs as u64, "{packets} while idle");
    (all, packets)
}

/// Shuts everything down, and checks that nothing remains to be done.
fn close_all(network: &mut Network<Watched>, applications: &mut Applications<'_>) {
    let closer = applications.plan.closer;
    for host in [0, 1].into_iter().filter(|&host| closer.is_none_or(|closer| closer == host)) {
        applications.shut_down_all(network, host);
    }
    let until = network.now() + TIME_LIMIT;
    advance(network, applications, until);
    // What one side has lost without the other noticing ends only now.
    for host in 0..2 {
        applications.shut_down_all(network, host);
    }
    let until = network.now() + TIME_LIMIT;
    advance(network, applications, until);
    for known in &applications.known {
        assert!(known.is_closed, "not closed: {known:?}");
    }
    for host in applications.hosts {
        let endpoint = &network.machine(host).endpoint;
        assert_eq!(endpoint.association_count(), 0, "associations left");
        assert_eq!(endpoint.poll_timeout(), None, "a timer left");
        assert!(endpoint.is_idle());
    }
    assert_eq!(network.next_at(), None, "something is left to happen");
}

impl Applications<'_> {
    fn tell(&self, now: Instant, story: impl FnOnce() -> String) {
        if self.tells {
            eprintln!("{now:?} {}", story());
        }
    }

    fn on_occurrence(
        &mut self,
        context: &mut Context<'_, Watched>,
        occurrence: Occurrence<(AssociationId, Event)>,
    ) {
        let host = usize::from(context.host() == self.hosts[1]);
        let now = context.now();
        match occurrence {
            Occurrence::Event((id, event)) => {
                let side = Side { host, life: self.lives[host], id };
                self.tell(now, || format!("{side:?}: {event:?}").chars().take(300).collect());
                self.on_event(now, context.machine(), side, event);
            }
            Occurrence::Wake(token) => {
                let step = &self.plan.steps[token as usize];
                self.tell(now, || format!("{step:?}"));
                self.on_step(now, context.machine(), (host, step.pair), &step.op);
            }
        }
    }

    fn on_step(
        &mut self,
        now: Instant,
        machine: &mut Watched,
        (host, pair): (usize, usize),
        op: &Op,
    ) {
        let index = self.present(host, pair);
        match (op, index) {
            (Op::Connect, None) => self.connect(now, machine, (host, pair)),
            (Op::Restart, _) => self.restart(now, machine, host),
            (Op::Connect, _) | (_, None) => {}
            (Op::Send(burst), Some(index)) => self.send(now, machine, index, burst),
            (Op::Pause, Some(index)) => self.known[index].is_reading = false,
            (Op::Resume, Some(index)) => {
                self.known[index].is_reading = true;
                self.read(now, machine, index);
            }
            (Op::Reset(streams), Some(index)) => self.reset(now, machine, index, streams),
            (Op::Shutdown, Some(index)) => {
                self.known[index].is_shut_down = true;
                machine.endpoint.shutdown(now, self.known[index].side.id);
            }
            (Op::Thin { stream, thin }, Some(index)) => {
                let id = self.known[index].side.id;
                // A stream that is not there is refused.
                let _ = match *stream {
                    Some(stream) => machine.endpoint.set_stream_thin(now, id, stream, *thin),
                    None => machine.endpoint.set_thin(now, id, thin.unwrap_or_default()),
                };
            }
            (Op::SetPrimary(path), Some(index)) => {
                // A path that is not there, or not confirmed, is refused.
                let id = self.known[index].side.id;
                let _ = machine.endpoint.set_primary(now, id, *path);
            }
            (Op::Abort, Some(index)) => {
                self.known[index].is_aborted = true;
                machine.endpoint.abort(now, self.known[index].side.id, ABORT_REASON);
            }
        }
    }

    /// The newest association of the application on this pair that is not closed.
    fn present(&self, host: usize, pair: usize) -> Option<usize> {
        let is_it = |known: &Known| {
            (known.side.host, known.side.life, known.pair, known.is_closed)
                == (host, self.lives[host], pair, false)
        };
        self.known.iter().rposition(is_it)
    }

    fn connect(&mut self, now: Instant, machine: &mut Watched, (host, pair): (usize, usize)) {
        let route = Route {
            local: SocketAddr::new(address(host, pair), 0),
            remote: SocketAddr::new(address(1 - host, pair), 0),
        };
        let id = machine.endpoint.connect(now, route, 5000).expect("a new one");
        machine.watch(id);
        let side = Side { host, life: self.lives[host], id };
        self.known.push(Known::new(side, pair));
    }

    fn restart(&mut self, now: Instant, machine: &mut Watched, host: usize) {
        self.messages.on_restart(now, host);
        self.known.retain(|known| known.side.host != host);
        self.lives[host] += 1;
        let sent = machine.sent;
        *machine = endpoint(self.plan, host, self.lives[host]);
        machine.sent = sent;
    }

    fn send(&mut self, now: Instant, machine: &mut Watched, index: usize, burst: &Burst) {
        for _ in 0..burst.count {
            let ppid = self.messages.next_ppid();
            let payload = messages::payload(ppid, burst.len);
            let message = OutboundMessage::new(burst.stream, payload)
                .ppid(ppid)
                .unordered(burst.unordered)
                .immediate(burst.immediate)
                .reliability(burst.reliability);
            let known = &mut self.known[index];
            match machine.endpoint.send(now, known.side.id, message.clone()) {
                Ok(id) => self.messages.on_accepted(now, known.side, id, message),
                Err(SendError::BufferFull) => return known.waits_for_room = true,
                Err(SendError::InvalidStream { streams }) => {
                    return assert!(burst.stream >= streams);
                }
                Err(SendError::Closing) => return,
                Err(error) => panic!("{error}: {known:?}"),
            }
        }
    }

    fn reset(&mut self, now: Instant, machine: &mut Watched, index: usize, streams: &[u16]) {
        let known = &mut self.known[index];
        match machine.endpoint.reset_streams(now, known.side.id, streams) {
            Ok(()) => known.waits_for_reset = true,
            Err(ResetError::InProgress | ResetError::InvalidStream) => {}
            Err(ResetError::NotEstablished | ResetError::NotSupported) => {}
            Err(error) => panic!("{error}: {known:?}"),
        }
    }

    fn read(&mut self, now: Instant, machine: &mut Watched, index: usize) {
        let Known { side, is_reading: true, has_ended_unknown, .. } = self.known[index] else {
            return;
        };
        while let Some(message) = machine.endpoint.receive(now, side.id) {
            let sender = self.messages.sender(message.ppid);
            let is_sender = |known: &&Known| Some(known.side) == sender;
            let sender = self.known.iter().find(is_sender);
            let is_connected = sender.is_none_or(|known| known.is_connected);
            let is_established = is_connected && !has_ended_unknown;
            self.messages.on_delivered(side, &message, is_established);
        }
    }

    fn index_of(&mut self, side: Side, event: &Event) -> usize {
        if let Some(index) = self.known.iter().position(|known| known.side == side) {
            return index;
        }
        let Event::Connected { incoming: true, peer, .. } = event else {
            panic!("an association begins with {event:?}")
        };
        let is_it = |&pair: &usize| {
            let peers = [address(1 - side.host, pair), second_address(1 - side.host, pair)];
            peers.contains(&peer.ip())
        };
        let pair = (0..self.plan.pairs).find(is_it);
        self.known.push(Known::new(side, pair.expect("an address of the peer")));
        self.known.len() - 1
    }

    fn on_event(&mut self, now: Instant, machine: &mut Watched, side: Side, event: Event) {
        let index = self.index_of(side, &event);
        let known = &mut self.known[index];
        assert!(!known.is_closed, "{event:?} after the last event: {known:?}");
        match event {
            Event::Connected { .. } => {
                assert!(!known.is_connected, "connected twice: {known:?}");
                known.is_connected = true;
            }
            Event::Readable => self.read(now, machine, index),
            Event::Writable => {
                assert!(
                    known.waits_for_room,
                    "a Writable event without a waiting sender: {known:?}"
                );
                known.waits_for_room = false;
            }
            Event::MessageSent(id) => self.messages.on_sent_told(side, id),
            Event::MessageAcknowledged(id) => self.messages.on_acknowledged(side, id),
            Event::MessageFailed { id, reason, was_begun, message } => {
                self.messages.on_failed(side, id, (reason, was_begun), &message);
            }
            Event::PeerRestarted => {
                assert!(known.is_connected, "restarted before it was connected: {known:?}");
                known.is_connected = false; // Connected follows.
                // It ended the association that is no more (RFC 9260 §5.2.4 A).
                known.is_shut_down = false;
                known.was_restarted = true;
                known.waits_for_reset = false;
                known.path_states = BTreeMap::from([(0, PathState::Active)]);
            }
            Event::StreamsReset { .. } => {
                assert!(known.waits_for_reset, "a reset event without a request: {known:?}");
                known.waits_for_reset = false;
            }
            Event::PathStatus { path, state, .. } => {
                let before = known.path_states.insert(path, state);
                let before = before.unwrap_or(PathState::Unconfirmed);
                assert_ne!(before, state, "no change: {known:?}");
            }
            Event::DataPathChanged { .. } => {}
            Event::PeerError(code) => {
                let has = |host: usize| {
                    self.plan.configs[host].association.extensions.partial_reliability
                };
                // "Unrecognized Parameters", which Forward-TSN-Supported is to a peer without it.
                let is_unknown = code == 8 && has(side.host) && !has(1 - side.host);
                // "Cookie received while shutting down".
                assert!(code == 10 || is_unknown, "the peer reports error {code}: {known:?}");
            }
            Event::Infeasible { achievable_ppm } => {
                let thin = &self.plan.configs[side.host].association.recovery.thin;
                let asked = thin.deadline.map_or(0.0, |deadline| deadline.probability());
                assert!(f64::from(achievable_ppm) < 1e6 * asked, "{asked} can be had: {event:?}");
            }
            Event::PeerShutdown | Event::PeerResetStreams(_) => {}
            Event::PeerAddressAdded { .. }
            | Event::PeerAddressDeleted { .. }
            | Event::AddressChanged { .. } => panic!("no address changed: {event:?}, {known:?}"),
            Event::Closed(reason) => self.on_closed(now, machine, index, reason),
            other => panic!("an event that this world does not know: {other:?}"),
        }
    }

    fn on_closed(
        &mut self,
        now: Instant,
        machine: &mut Watched,
        index: usize,
        reason: CloseReason,
    ) {
        let Known { side, pair, .. } = self.known[index];
        let is_known = self.known.iter().any(|other| {
            other.side.host != side.host
                && other.pair == pair
                && other.is_connected
                && !other.is_closed
        });
        let known = &mut self.known[index];
        known.is_closed = true;
        known.has_ended_unknown = !is_known;
        known.waits_for_room = false;
        known.waits_for_reset = false;
        let failed = self.messages.on_closed(known.side);
        let guard: &[u8] = b"the shutdown took longer than its guard allows";
        let is_explained = match &reason {
            CloseReason::Shutdown => known.was_restarted || failed == 0,
            CloseReason::Aborted { reason } if reason == ABORT_REASON => known.is_aborted,
            CloseReason::Aborted { reason } => {
                known.is_shut_down
                    && (reason == guard || &reason[..] == b"shut down before it was established")
            }
            // No cause: the peer knows nothing of the association.
            CloseReason::AbortedByPeer { cause: 0, .. } => true,
            CloseReason::AbortedByPeer { cause: 12, reason } => {
                reason == ABORT_REASON || &reason[..] == b"shut down before it was established"
            }
            CloseReason::AbortedByPeer { cause: 13, reason } => reason == guard,
            CloseReason::AbortedByPeer { .. } => false,
            CloseReason::Unreachable | CloseReason::ConnectTimedOut => true,
            _ => false,
        };
        assert!(is_explained, "closed because of {reason:?}, {failed} failed: {known:?}");
        self.closed.push(reason);
        if self.is_calm {
            self.known[index].is_reading = true;
        }
        self.read(now, machine, index);
    }

    fn shut_down_all(&mut self, network: &mut Network<Watched>, host: usize) {
        let now = network.now();
        for known in self.known.iter_mut().filter(|known| known.side.host == host) {
            if !known.is_closed {
                known.is_shut_down = true;
                let machine = network.machine_mut(self.hosts[host]);
                machine.endpoint.shutdown(now, known.side.id);
            }
        }
    }

    /// Whether everything is completed: no message, request of an application, or answer to a peer is pending.
    fn is_content(&self, network: &Network<Watched>) -> bool {
        let waits = |known: &Known| {
            let has_wish = known.waits_for_room || known.waits_for_reset || known.is_shut_down;
            !known.is_closed && (has_wish || !known.is_connected)
        };
        self.messages.open().next().is_none()
            && !self.known.iter().any(waits)
            && self.hosts.iter().all(|&host| network.machine(host).endpoint.is_idle())
    }

    fn complaints(&self, network: &Network<Watched>) -> String {
        use std::fmt::Write as _;
        let mut text = String::new();
        for sent in self.messages.open().take(3) {
            let _ = write!(text, "\n  open: {:?} {:?} {:?}", sent.from, sent.id, sent.at);
        }
        for known in self.known.iter().filter(|known| !known.is_closed) {
            let endpoint = &network.machine(self.hosts[known.side.host]).endpoint;
            let statistics = endpoint.statistics(known.side.id);
            let _ = write!(text, "\n  {known:?}\n    {statistics:?}");
        }
        for host in self.hosts {
            let endpoint = &network.machine(host).endpoint;
            let _ = write!(text, "\n  idle: {}, {:?}", endpoint.is_idle(), endpoint.poll_timeout());
        }
        text
    }
}
