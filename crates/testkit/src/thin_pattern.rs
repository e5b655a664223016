//! A thin stream between two endpoints: a message every 80 ms from 1 s on, 50 ms each way. The network
//! drops the first packets that carry one of the messages; the pattern gives their number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit_core::trace::{SendCause, SentRun, TraceEvent, TraceSink};
use rexmit_core::{Instant, Machine, Route};

const ONE_WAY: Duration = Duration::from_millis(50);
const EVERY_MS: u64 = 80;
/// The number of messages of the stream.
pub const MESSAGES: u64 = 14;
/// The bytes of each message.
pub const LEN: usize = 100;

/// A message, counted from 1, and how many of the first packets that carry it are lost.
pub type Pattern = (u64, u32);

/// The loss patterns of a table. No message follows the last one, so no later packet can cause a missing report for it.
pub const PATTERNS: [Pattern; 5] = [(3, 1), (3, 2), (3, 3), (MESSAGES, 1), (MESSAGES, 3)];

/// The stream over one protocol.
pub trait Stream {
    /// The sender and the receiver.
    type Endpoint: Machine;

    /// The unit of the first message in the sender's trace.
    const FIRST_UNIT: u64;

    /// The sender, whose trace goes to `sink`, and the receiver, both before they are connected.
    fn endpoints(&self, sink: Box<dyn TraceSink>) -> [Self::Endpoint; 2];

    /// The sender connects to the receiver.
    fn connect(&mut self, sender: &mut Self::Endpoint);

    /// The sender sends one message.
    fn send(&mut self, now: Instant, sender: &mut Self::Endpoint);

    /// The receiver's application reads what has arrived; returns the number of messages completed.
    fn receive(&mut self, now: Instant, receiver: &mut Self::Endpoint) -> usize;

    /// Whether a packet of the sender carries `message`, counted from 1.
    fn carries(packet: &[u8], message: u64) -> bool;
}

/// The transmissions of a message: time in ms, and cause.
type Transmissions = Vec<(u64, &'static str)>;

/// The sender's trace, by message from 1.
#[derive(Clone)]
struct Copies {
    first_unit: u64,
    by_message: Arc<Mutex<BTreeMap<u64, Transmissions>>>,
}

impl TraceSink for Copies {
    fn record(&mut self, now: Instant, _: u32, event: &TraceEvent) {
        let of_run = |run: &SentRun| (run.lowest, run.highest, run.cause);
        let as_copies = |&(from, to): &(u64, u64)| (from, to, SendCause::Redundant);
        let runs: Vec<_> = match event {
            TraceEvent::PacketSent { runs, .. } => runs.iter().map(of_run).collect(),
            TraceEvent::CopiesSent { runs, .. } => runs.iter().map(as_copies).collect(),
            _ => return,
        };
        let mut copies = self.by_message.lock().expect("one thread");
        let each = runs.iter().flat_map(|&(from, to, cause)| (from..=to).map(move |n| (n, cause)));
        for (unit, cause) in each {
            let word = match cause {
                SendCause::New => "new",
                SendCause::Redundant => "copy",
                SendCause::Bundled => "bundled",
                SendCause::Timeout => "timeout",
                SendCause::FastRetransmit => "fast",
                SendCause::Early => "early",
                SendCause::Probe => "probe",
                SendCause::WindowProbe => "window probe",
                other => other.name(),
            };
            let known = copies.entry(unit + 1 - self.first_unit).or_default();
            known.push((now.as_nanos() / 1_000_000, word));
        }
    }
}

/// Two endpoints and the packets between them.
struct Network<S: Stream> {
    stream: S,
    ends: [S::Endpoint; 2],
    now: Instant,
    /// By time of arrival and packet number: the receiving end, the route and the bytes.
    in_flight: BTreeMap<(Instant, u64), (usize, Route, Vec<u8>)>,
    sent: u64,
    lost: Pattern,
    /// When each message was received, in ms.
    delivered: Vec<u64>,
}

impl<S: Stream> Network<S> {
    /// Puts every packet that is transmitted now in flight, or drops it as the pattern says; reads received messages.
    fn drain(&mut self) {
        for end in 0..2 {
            let mut packet = Vec::new();
            while let Some(route) = self.ends[end].poll_transmit(self.now, &mut packet) {
                if end == 0 && self.take_loss(&packet) {
                    continue;
                }
                self.sent += 1;
                let at = (self.now + ONE_WAY, self.sent);
                self.in_flight.insert(at, (1 - end, route.reversed(), packet.clone()));
            }
        }
        let received = self.stream.receive(self.now, &mut self.ends[1]);
        self.delivered.extend(std::iter::repeat_n(self.now.as_nanos() / 1_000_000, received));
        while self.ends[0].poll_event().is_some() {}
    }

    fn take_loss(&mut self, packet: &[u8]) -> bool {
        let is_lost = self.lost.1 > 0 && S::carries(packet, self.lost.0);
        self.lost.1 -= u32::from(is_lost);
        is_lost
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            self.drain();
            let arrival = self.in_flight.keys().next().map(|&(at, _)| at);
            let timers = self.ends.iter().filter_map(Machine::poll_timeout).min();
            let next = arrival.into_iter().chain(timers).min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (to, route, packet)) = self.in_flight.pop_first().expect("it arrives");
                self.ends[to].handle_input(self.now, route, &packet);
            }
            self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
        }
        self.now = end;
    }
}

/// Runs the stream and describes the message of `lost`: the cause and time of each transmission, and the time of its
/// delivery, in ms since the application sent it.
///
/// # Panics
/// If a message is not delivered exactly once, or the described one is not transmitted at once.
pub fn line<S: Stream>(stream: S, lost: Pattern) -> String {
    let copies = Copies { first_unit: S::FIRST_UNIT, by_message: Arc::default() };
    let ends = stream.endpoints(Box::new(copies.clone()));
    let (now, in_flight) = (Instant::ZERO, BTreeMap::new());
    let mut network = Network { stream, ends, now, in_flight, sent: 0, lost, delivered: vec![] };
    network.stream.connect(&mut network.ends[0]);
    for n in 0..MESSAGES {
        network.run_until(Instant::from_millis(1_000 + EVERY_MS * n));
        network.stream.send(network.now, &mut network.ends[0]);
    }
    network.run_until(Instant::from_millis(30_000));
    assert_eq!(network.delivered.len() as u64, MESSAGES, "everything arrives, once");
    let (message, packets) = lost;
    let sent = 1_000 + EVERY_MS * (message - 1);
    let copies = copies.by_message.lock().expect("one thread");
    assert_eq!(copies[&message][0], (sent, "new"), "each message is a unit of its own");
    let transmissions: Vec<_> =
        copies[&message].iter().map(|(at, cause)| format!("{cause} {}", at - sent)).collect();
    let delivered = network.delivered[message as usize - 1] - sent;
    format!("{message:>2} x{packets}: {} -> {delivered}", transmissions.join(", "))
}

/// Runs the stream that `stream` makes with each of the [`PATTERNS`].
///
/// # Panics
/// If their lines are not as `expected`.
#[track_caller]
pub fn assert_table<S: Stream>(stream: impl Fn() -> S, expected: [&str; PATTERNS.len()]) {
    let table = PATTERNS.map(|lost| line(stream(), lost));
    assert_eq!(table.join("\n"), expected.join("\n"));
}
