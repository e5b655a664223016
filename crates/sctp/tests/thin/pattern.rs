//! One loss pattern for every mechanism: a table of the copies of each chunk that was sent, when and why,
//! and when the peer's application got it. The receiver is an unmodified `rfc9260` without SACK delay.
//!
//! The sender has a message of 100 bytes every 80 ms from 1 s on; 50 ms each way. The network drops the
//! first packets that carry one of the chunks; the pattern gives their number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rexmit_core::trace::{SendCause, SentRun, TraceEvent, TraceSink};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::recovery::RecoveryConfig;
use rexmit_sctp::{Endpoint, EndpointConfig, OutboundMessage};

use super::*;

const ONE_WAY: Duration = Duration::from_millis(50);
const EVERY_MS: u64 = 80;
const MESSAGES: u64 = 14;
/// The chunk, and how many of the first packets that carry it are lost. The last chunk has nothing
/// behind it that could report it missing.
const PATTERNS: [(u64, u32); 5] = [(3, 1), (3, 2), (3, 3), (MESSAGES, 1), (MESSAGES, 3)];

/// The transmissions of a chunk: time in ms, and cause.
type Left = Vec<(u64, &'static str)>;

/// The sender's trace, by chunk from 1.
#[derive(Clone, Default)]
struct Copies(Arc<Mutex<BTreeMap<u64, Left>>>);

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
        for (tsn, cause) in each {
            let word = match cause {
                SendCause::New => "new",
                SendCause::Redundant => "copy",
                SendCause::Bundled => "bundled",
                SendCause::Timeout => "timeout",
                SendCause::FastRetransmit => "fast",
                SendCause::Early => "early",
                SendCause::Probe => "probe",
                SendCause::WindowProbe => "window probe",
            };
            let chunk = tsn - (1 << 32) - u64::from(FIRST_TSN) + 1;
            let known = copies.entry(chunk).or_default();
            known.push((now.as_nanos() / 1_000_000, word));
        }
    }
}

/// Two endpoints and what is on its way between them.
struct Network {
    ends: [Endpoint; 2],
    route: Route,
    now: Instant,
    /// When it arrives, its number, at which end.
    on_the_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    lost: (u64, u32),
    delivered: Vec<u64>,
}

impl Network {
    fn new(recovery: RecoveryConfig, lost: (u64, u32)) -> (Self, Copies) {
        let association = AssociationConfig::rfc9260().recovery(recovery).heartbeat_interval(None);
        let receiver = AssociationConfig::rfc9260().sack_delay(Duration::ZERO);
        let config = |association, accept| {
            EndpointConfig::default()
                .association(Arc::new(association))
                .accept(accept)
                .initial_tsn(Some(FIRST_TSN))
        };
        let end = |config, seed| Endpoint::new(config, &Seed::from_u64(seed)).expect("valid");
        let copies = Copies::default();
        let mut sender = end(config(association, false), 1);
        sender.set_trace(Some(Box::new(copies.clone())));
        let network = Self {
            ends: [sender, end(config(receiver, true), 2)],
            route: Route { local: address(1, 9899), remote: address(2, 9899) },
            now: Instant::ZERO,
            on_the_way: BTreeMap::new(),
            sent: 0,
            lost,
            delivered: Vec::new(),
        };
        (network, copies)
    }

    fn route_of(&self, end: usize) -> Route {
        if end == 0 { self.route } else { self.route.reversed() }
    }

    /// Everything that is sent now is on its way, or lost.
    fn drain(&mut self) {
        for end in 0..2 {
            let mut packet = Vec::new();
            while self.ends[end].poll_transmit(self.now, &mut packet).is_some() {
                if end == 0 && self.is_lost(&packet) {
                    continue;
                }
                self.sent += 1;
                let at = (self.now + ONE_WAY, self.sent);
                self.on_the_way.insert(at, (1 - end, packet.clone()));
            }
            while let Some((id, event)) = self.ends[end].poll_event() {
                let is_readable = matches!(event, rexmit_sctp::Event::Readable);
                while is_readable && self.ends[end].receive(self.now, id).is_some() {
                    self.delivered.push(self.now.as_nanos() / 1_000_000);
                }
            }
        }
    }

    fn is_lost(&mut self, packet: &[u8]) -> bool {
        let packet = wire::Packet::parse(packet).expect("it can be read");
        let is_it = |raw: wire::RawChunk<'_>| match raw.decode() {
            Ok(Data(data)) => u64::from(data.tsn.wrapping_sub(tsn(0))) == self.lost.0,
            _ => false,
        };
        let is_lost = self.lost.1 > 0 && packet.chunks().flatten().any(is_it);
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
                let (_, (to, packet)) = self.on_the_way.pop_first().expect("it arrives");
                let route = self.route_of(to);
                self.ends[to].handle_input(self.now, route, &packet);
            }
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
        }
        self.now = end;
    }
}

/// The copies of the chunk with their times, in ms since it first left, and when the peer's application
/// got it.
fn line(recovery: RecoveryConfig, lost: (u64, u32)) -> String {
    let (mut network, copies) = Network::new(recovery, lost);
    let route = network.route;
    let id = network.ends[0].connect(Instant::ZERO, route, 5000).expect("a new association");
    for n in 0..MESSAGES {
        network.run_until(Instant::from_millis(1_000 + EVERY_MS * n));
        let message = OutboundMessage::new(0, vec![b'x'; 100]);
        network.ends[0].send(network.now, id, message).expect("accepted");
    }
    network.run_until(Instant::from_millis(30_000));
    assert_eq!(network.delivered.len() as u64, MESSAGES, "everything arrives, once");
    let chunk = lost.0;
    let sent = 1_000 + EVERY_MS * (chunk - 1);
    let copies = copies.0.lock().expect("one thread");
    let told: Vec<_> =
        copies[&chunk].iter().map(|(at, why)| format!("{why} {}", at - sent)).collect();
    let delivered = network.delivered[chunk as usize - 1] - sent;
    format!("{chunk:>2} x{}: {} -> {delivered}", lost.1, told.join(", "))
}

#[track_caller]
fn assert_table(recovery: &RecoveryConfig, expected: [&str; PATTERNS.len()]) {
    let table = PATTERNS.map(|lost| line(recovery.clone(), lost));
    assert_eq!(table.join("\n"), expected.join("\n"));
}

fn lksctp_with(thin: ThinConfig) -> RecoveryConfig {
    RecoveryConfig::profile("lksctp").expect("a profile").with_thin(thin)
}

/// The third SACK with a gap comes 340 ms after the chunk left; RTO.Min is 1 s.
#[test]
fn without_mechanisms() {
    assert_table(
        &lksctp_with(ThinConfig::OFF),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1340 -> 1390",
            " 3 x3: new 0, fast 340, timeout 1340, timeout 3340 -> 3390",
            // The SACK of the chunk before restarts the timer after 20 ms.
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// After two round trips in the handshake and one of data RTTVAR is 50 · (3/4)² = 28 ms: 212 ms after
/// the SACK at 20 ms. Later it is RTO.Min: 200 ms.
#[test]
fn with_m1_alone() {
    assert_table(
        &lksctp_with(m1()),
        [
            " 3 x1: new 0, timeout 232 -> 282",
            // Three reports that count anew from the timeout on.
            " 3 x2: new 0, timeout 232, fast 420 -> 470",
            " 3 x3: new 0, timeout 232, fast 420, timeout 620 -> 670",
            "14 x1: new 0, timeout 220 -> 270",
            "14 x3: new 0, timeout 220, timeout 620, timeout 1420 -> 1470",
        ],
    );
}

/// The 20 ms are gone.
#[test]
fn with_m2_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.restart_by_age(true)),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1340 -> 1390",
            " 3 x3: new 0, fast 340, timeout 1340, timeout 3340 -> 3390",
            "14 x1: new 0, timeout 1000 -> 1050",
            "14 x3: new 0, timeout 1000, timeout 3000, timeout 7000 -> 7050",
        ],
    );
}

#[test]
fn with_m3_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.linear_timeouts(6)),
        [
            " 3 x1: new 0, fast 340 -> 390",
            " 3 x2: new 0, fast 340, timeout 1340 -> 1390",
            " 3 x3: new 0, fast 340, timeout 1340, timeout 2340 -> 2390",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 2020, timeout 3020 -> 3070",
        ],
    );
}

/// The first SACK with a gap comes after 180 ms. A chunk has one fast retransmit.
#[test]
fn with_m4_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.first_indication(true)),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 1180 -> 1230",
            " 3 x3: new 0, fast 180, timeout 1180, timeout 3180 -> 3230",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

#[test]
fn with_all_four() {
    assert_table(
        &lksctp_with(ThinConfig::M1_TO_M4),
        [
            " 3 x1: new 0, fast 180 -> 230",
            " 3 x2: new 0, fast 180, timeout 380 -> 430",
            " 3 x3: new 0, fast 180, timeout 380, timeout 580 -> 630",
            "14 x1: new 0, timeout 200 -> 250",
            "14 x3: new 0, timeout 200, timeout 400, timeout 600 -> 650",
        ],
    );
}

/// The next message takes the last packet along, 80 ms later. Two losses in a row are beyond that, and
/// a chunk with nothing behind it, too.
#[test]
fn with_copies_alone() {
    assert_table(
        &lksctp_with(ThinConfig::OFF.max_bundle_packets(1)),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, fast 420, copy 480 -> 470",
            " 3 x3: new 0, copy 80, fast 420, copy 480 -> 530",
            "14 x1: new 0, timeout 1020 -> 1070",
            "14 x3: new 0, timeout 1020, timeout 3020, timeout 7020 -> 7070",
        ],
    );
}

/// The timer runs from when the chunk left: 212 ms. The SACK at 260 ms, of what was transmitted before that
/// timeout, counts as a report all the same (RFC 9260 §7.2.4).
#[test]
fn with_all_four_and_copies() {
    assert_table(
        &lksctp_with(ThinConfig::M1_TO_M4.max_bundle_packets(1)),
        [
            " 3 x1: new 0, copy 80 -> 130",
            " 3 x2: new 0, copy 80, timeout 212, copy 240, fast 260 -> 262",
            " 3 x3: new 0, copy 80, timeout 212, copy 240, fast 260, copy 320 -> 290",
            "14 x1: new 0, timeout 200 -> 250",
            "14 x3: new 0, timeout 200, timeout 400, timeout 600 -> 650",
        ],
    );
}

/// SRTT + RTTVAR is 128 ms at first and 105 ms at the end; no bundling, RTO.Min 1 s.
#[test]
fn with_early_fast_retransmit() {
    assert_table(
        &RecoveryConfig::profile("freebsd-efr").expect("a profile"),
        [
            " 3 x1: new 0, early 128 -> 178",
            " 3 x2: new 0, early 128, fast 340 -> 390",
            " 3 x3: new 0, early 128, fast 340, timeout 1340 -> 1390",
            "14 x1: new 0, early 105 -> 155",
            "14 x3: new 0, early 105, timeout 1105, timeout 3105 -> 3155",
        ],
    );
}
