//! One loss pattern for every mechanism: a table of the copies of a message's bytes that were sent, when and
//! why, and when the peer's application got them. The receiver is an unmodified `tcp-sack` without
//! delayed acknowledgements.
//!
//! The sender has a message of 100 bytes every 80 ms from 1 s on, each of which is a segment; 50 ms
//! each way. The network drops the first segments that carry one of the messages; their number is in the
//! pattern says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit_core::trace::{SendCause, SentRun, TraceEvent, TraceSink};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_tcp::recovery::{RecoveryConfig, ThinConfig};
use rexmit_tcp::wire::Segment;
use rexmit_tcp::{ConnectionConfig, ConnectionId, Endpoint, EndpointConfig};

const ONE_WAY: Duration = Duration::from_millis(50);
const EVERY_MS: u64 = 80;
const MESSAGES: u64 = 14;
const LEN: u64 = 100;
/// The sequence numbers wrap within the third message.
const ISS: u32 = u32::MAX - 250;
/// The message, and how many of the first segments that carry it are lost. The last one has nothing
/// behind it that could report it missing.
const PATTERNS: [(u64, u32); 5] = [(3, 1), (3, 2), (3, 3), (MESSAGES, 1), (MESSAGES, 3)];

/// The sender's trace, by message from 1: time and cause of each copy.
#[derive(Clone, Default)]
struct Copies(Arc<Mutex<BTreeMap<u64, Vec<Told>>>>);

type Told = (u64, &'static str);

impl TraceSink for Copies {
    fn record(&mut self, now: Instant, _: u32, event: &TraceEvent) {
        let of_run = |run: &SentRun| (run.lowest, run.highest, run.cause);
        let as_copies = |&(from, to): &(u64, u64)| (from, to, SendCause::Redundant);
        let runs: Vec<_> = match event {
            TraceEvent::PacketSent { runs, .. } => runs.iter().map(of_run).collect(),
            TraceEvent::CopiesSent { runs, .. } => runs.iter().map(as_copies).collect(),
            _ => return,
        };
        let mut copies = self.0.lock().expect("one thread");
        let each = runs.iter().flat_map(|&(from, to, cause)| (from..=to).map(move |n| (n, cause)));
        for (message, cause) in each {
            let word = match cause {
                SendCause::New => "new",
                SendCause::Redundant => "copy",
                SendCause::Bundled => "with",
                SendCause::Timeout => "timeout",
                SendCause::FastRetransmit => "fast",
                other => panic!("{other:?}?"),
            };
            let known = copies.entry(message).or_default();
            known.push((now.as_nanos() / 1_000_000, word));
        }
    }
}

/// Two endpoints and what is on its way between them.
struct Network {
    ends: [Endpoint; 2],
    /// The receiver's.
    accepted: Option<ConnectionId>,
    now: Instant,
    /// When it arrives, its number, at which end, from where.
    on_the_way: BTreeMap<(Instant, u64), (usize, Route, Vec<u8>)>,
    sent: u64,
    lost: (u64, u32),
    /// When each byte was read.
    delivered: Vec<u64>,
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

impl Network {
    fn new(recovery: RecoveryConfig, lost: (u64, u32)) -> (Self, Copies) {
        let sender = ConnectionConfig::sack().recovery(recovery).nagle(false);
        let receiver = ConnectionConfig::sack().ack_delay(Duration::ZERO);
        let end = |connection, seed| {
            let config = EndpointConfig::default()
                .connection(Arc::new(connection))
                .initial_sequence(Some(ISS));
            Endpoint::new(config, &Seed::from_u64(seed)).expect("valid")
        };
        let copies = Copies::default();
        let (mut sender, mut receiver) = (end(sender, 1), end(receiver, 2));
        sender.set_trace(Some(Box::new(copies.clone())));
        receiver.listen(80, None).expect("a free port");
        let network = Self {
            ends: [sender, receiver],
            accepted: None,
            now: Instant::ZERO,
            on_the_way: BTreeMap::new(),
            sent: 0,
            lost,
            delivered: Vec::new(),
        };
        (network, copies)
    }

    /// Everything that is sent now is on its way, or lost.
    fn drain(&mut self) {
        for end in 0..2 {
            let mut packet = Vec::new();
            while let Some(route) = self.ends[end].poll_transmit(self.now, &mut packet) {
                if end == 0 && self.is_lost(&packet) {
                    continue;
                }
                self.sent += 1;
                let at = (self.now + ONE_WAY, self.sent);
                self.on_the_way.insert(at, (1 - end, route.reversed(), packet.clone()));
            }
            while let Some((id, _)) = self.ends[end].poll_event() {
                if end == 1 {
                    self.accepted = Some(id);
                }
            }
        }
        let mut into = [0; 1000];
        while let Some(id) = self.accepted
            && let Ok(len @ 1..) = self.ends[1].receive(self.now, id, &mut into)
        {
            self.delivered.extend(std::iter::repeat_n(self.now.as_nanos() / 1_000_000, len));
        }
    }

    fn is_lost(&mut self, packet: &[u8]) -> bool {
        let segment = Segment::parse(address(1, 0).ip(), address(2, 0).ip(), packet);
        let segment = segment.expect("it can be read");
        let from = u64::from(segment.header.sequence.wrapping_sub(ISS).wrapping_sub(1));
        let message = (self.lost.0 - 1) * LEN;
        let is_it = from <= message && message < from + segment.payload.len() as u64;
        let is_lost = self.lost.1 > 0 && is_it;
        self.lost.1 -= u32::from(is_lost);
        is_lost
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            self.drain();
            let arrival = self.on_the_way.keys().next().map(|&(at, _)| at);
            let timers = self.ends.iter().filter_map(Machine::poll_timeout).min();
            let next = arrival.into_iter().chain(timers).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (to, route, packet)) = self.on_the_way.pop_first().expect("it arrives");
                self.ends[to].handle_input(self.now, route, &packet);
            }
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
        }
        self.now = end;
    }
}

/// The copies of the message with their times, in ms since it first left, and when the peer's
/// application got it.
fn line(recovery: RecoveryConfig, lost: (u64, u32)) -> String {
    let (mut network, copies) = Network::new(recovery, lost);
    let (local, remote) = (address(1, 0), address(2, 80));
    let id = network.ends[0].connect(Instant::ZERO, local, remote).expect("a new connection");
    for n in 0..MESSAGES {
        network.run_until(Instant::from_millis(1_000 + EVERY_MS * n));
        let sent = network.ends[0].send(network.now, id, &[b'x'; LEN as usize]);
        assert_eq!(sent, Ok(LEN as usize));
    }
    network.run_until(Instant::from_millis(30_000));
    assert_eq!(network.delivered.len() as u64, MESSAGES * LEN, "everything arrives, once");
    let message = lost.0;
    let sent = 1_000 + EVERY_MS * (message - 1);
    let copies = copies.0.lock().expect("one thread");
    assert_eq!(copies[&message][0], (sent, "new"), "so far each message was a segment");
    let told: Vec<_> =
        copies[&message].iter().map(|(at, why)| format!("{why} {}", at - sent)).collect();
    let delivered = network.delivered[(message * LEN) as usize - 1] - sent;
    format!("{message:>2} x{}: {} -> {delivered}", lost.1, told.join(", "))
}

#[track_caller]
fn assert_table(recovery: &RecoveryConfig, expected: [&str; PATTERNS.len()]) {
    let table = PATTERNS.map(|lost| line(recovery.clone(), lost));
    assert_eq!(table.join("\n"), expected.join("\n"));
}

fn profile(name: &str) -> RecoveryConfig {
    RecoveryConfig::tcp_profile(name).expect("a profile")
}

fn sack_with(thin: ThinConfig) -> RecoveryConfig {
    profile("tcp-sack").with_thin(thin)
}

/// The third SACK with a gap comes 340 ms after the message left; RTO.Min is 1 s, and the
/// acknowledgement of the message before starts the timer after 20 ms. The retransmission does not
/// start it anew (RFC 6298 §5).
#[test]
fn without_mechanisms() {
    assert_table(
        &sack_with(ThinConfig::OFF),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1020 -> 1070",
            " 3 x3: new 0, fast 340, timeout 1020, timeout 3020 -> 3070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// TCP of 2009: no reports, and 200 ms beside SRTT in the timeout, before the third duplicate.
#[test]
fn of_2009() {
    assert_table(
        &profile("tcp-newreno"),
        [
            " 3 x1: new 0, timeout 320 -> 370",
            " 3 x2: new 0, timeout 320, timeout 920 -> 970",
            " 3 x3: new 0, timeout 320, timeout 920, timeout 2120 -> 2170",
            "14 x1: new 0, timeout 320 -> 370",
            "14 x3: new 0, timeout 320, timeout 920, timeout 2120 -> 2170",
        ],
    );
}

/// After the handshake and one sample of data RTTVAR is 37.5 ms: 250 ms after the acknowledgement at
/// 20 ms. A SACK after the loss makes it 28 ms: twice 212.5 ms after the first timeout. Later it is
/// RTO.Min: 200 ms.
#[test]
fn with_m1_alone() {
    let m1 = ThinConfig::OFF.rto_min(Some(Duration::from_millis(200)));
    assert_table(
        &sack_with(m1),
        [
            " 3 x1: new 0, timeout 270 -> 320",
            " 3 x2: new 0, timeout 270, timeout 695 -> 745",
            " 3 x3: new 0, timeout 270, timeout 695, timeout 1545 -> 1595",
            "14 x1: new 0, timeout 220 -> 270",
            "14 x3: new 0, timeout 220, timeout 620, timeout 1420 -> 1470",
        ],
    );
}

/// The 20 ms are gone.
#[test]
fn with_m2_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.restart_by_age(true)),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1000 -> 1050",
            " 3 x3: new 0, fast 340, timeout 1000, timeout 3000 -> 3050",
            "14 x1: new 0, timeout 1000 -> 1050",
            "14 x3: new 0, timeout 1000, timeout 3000, timeout 7000 -> 7050",
        ],
    );
}

#[test]
fn with_t1_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.linear_timeouts(6)),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1020 -> 1070",
            " 3 x3: new 0, fast 340, timeout 1020, timeout 2020 -> 2070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 2020, timeout 3020 -> 3070",
        ],
    );
}

/// The first SACK with a gap comes after 180 ms.
#[test]
fn with_t2_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.first_indication(true)),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 1020 -> 1070",
            " 3 x3: new 0, fast 180, timeout 1020, timeout 3020 -> 3070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// The next message takes the one before along, 80 ms later. If both are lost, so is a copy of the
/// next, which the SACK after 260 ms reports: a recovery begins, in which the hole below is retransmitted
/// (RFC 6675 §4, `NextSeg` rule 3).
#[test]
fn with_rdb_alone() {
    assert_table(
        &sack_with(ThinConfig::OFF.max_bundle_packets(1)),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, fast 260 -> 310",
            " 3 x3: new 0, copy 80, fast 260, timeout 1020 -> 1070",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// T1, T2, M1 and M2, with the timeout of Linux: 200 ms beside SRTT. The fast retransmit starts the
/// timer anew, from when the message in flight longest left, at 160 ms.
#[test]
fn with_all_but_rdb() {
    assert_table(
        &profile("tcp-thin"),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 460 -> 510",
            " 3 x3: new 0, fast 180, timeout 460, timeout 760 -> 810",
            "14 x1: new 0, timeout 300 -> 350",
            "14 x3: new 0, timeout 300, timeout 600, timeout 900 -> 950",
        ],
    );
}

/// In flight longest after 260 ms is what was transmitted at 240 ms.
#[test]
fn with_all() {
    assert_table(
        &profile("tcp-thin-rdb"),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, fast 260 -> 310",
            " 3 x3: new 0, copy 80, fast 260, timeout 540 -> 590",
            "14 x1: new 0, timeout 300 -> 350",
            "14 x3: new 0, timeout 300, timeout 600, timeout 900 -> 950",
        ],
    );
}
