//! Made-up runs: a thin stream over a made-up sender, for viewing and testing the page.
//!
//! None of this is a measurement. The sender is a sketch (one message per packet, one timer, a
//! count of missing reports) whose only purpose is events in a plausible order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

use rexmit_core::trace::{SendCause, SentRun, TraceEvent};
use rexmit_core::{Instant, Rng, Seed};
use rexmit_lab::measure::{Comparison, Counters, MessageRecord, Recorder, Run};

const PAYLOAD_BYTES: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(250);
const ONE_WAY: Duration = Duration::from_millis(50);
const LOSS: f64 = 0.05;
const FIRST_TSN: u64 = (1 << 32) + 2_871_004_113;

struct Sketch {
    profile: &'static str,
    about: &'static str,
    rto_min: Duration,
    is_linear: bool,
    missing_reports: u32,
    copies_what_is_in_flight: bool,
}

const SKETCHES: [Sketch; 3] = [
    Sketch {
        profile: "rfc9260",
        about: "The standard: RTO.min 1 s, doubled at each expiry; three missing reports.",
        rto_min: Duration::from_secs(1),
        is_linear: false,
        missing_reports: 3,
        copies_what_is_in_flight: false,
    },
    Sketch {
        profile: "freebsd-efr",
        about: "Early fast retransmit, sketched as two missing reports.",
        rto_min: Duration::from_secs(1),
        is_linear: false,
        missing_reports: 2,
        copies_what_is_in_flight: false,
    },
    Sketch {
        profile: "thin",
        about: "RTO.min 200 ms, linear timeouts, the first missing report.",
        rto_min: Duration::from_millis(200),
        is_linear: true,
        missing_reports: 1,
        copies_what_is_in_flight: true,
    },
];

/// Three made-up profiles over the same made-up path.
pub(crate) fn comparison(seed: u64, messages: u64) -> Comparison {
    let comparison = Comparison::new("Synthetic data: a thin stream at 5 % loss", seed)
        .with("data", "synthetic: made up by a generator, not measured")
        .with("traffic", "100 B every 250 ms, ordered")
        .with("associations", "2")
        .with("path", "RTT 100 ms, 5 % uniform loss")
        .with("messages", format!("{messages} per association"));
    SKETCHES.iter().fold(comparison, |comparison, sketch| {
        comparison.with_run(&run(sketch, &Seed::from_u64(seed), messages))
    })
}

fn run(sketch: &Sketch, seed: &Seed, messages: u64) -> Run {
    let recorder = Recorder::default();
    let mut run =
        Run { profile: sketch.profile.into(), about: sketch.about.into(), ..Run::default() };
    let mut events = Vec::new();
    for connection in 0..2 {
        let rng = seed.split(&format!("connection {connection}")).rng();
        let mut stream = Stream::new(sketch, rng, connection);
        stream.run(messages);
        run.ended = run.ended.max(stream.now);
        run.counters += stream.counters();
        run.messages.append(&mut stream.records);
        events.append(&mut stream.events);
    }
    // Each association ran for itself; a real endpoint reports both in the order of time.
    events.sort_by_key(|(at, ..)| *at);
    let mut sink = recorder.sink();
    events.iter().for_each(|(at, connection, event)| sink.record(*at, *connection, event));
    run.trace = recorder.take();
    run
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Send(u64),
    Arrive(u64),
    Ack(u64, Vec<(u64, u64)>),
    Timer(u64),
}

struct Outstanding {
    missing: u32,
    was_lost: bool,
    is_repeated: bool,
}

/// One association: its sender, its receiver and the path between them.
struct Stream<'a> {
    sketch: &'a Sketch,
    rng: Rng,
    connection: u32,
    now: Instant,
    steps: BinaryHeap<Reverse<(Instant, u64, Step)>>,
    scheduled: u64,
    outstanding: BTreeMap<u64, Outstanding>,
    timer: u64,
    rto: Duration,
    arrived: BTreeSet<u64>,
    next_in_order: u64,
    records: Vec<MessageRecord>,
    packets: u64,
    counters: Counters,
    events: Vec<(Instant, u32, TraceEvent)>,
}

impl<'a> Stream<'a> {
    fn new(sketch: &'a Sketch, rng: Rng, connection: u32) -> Self {
        Self {
            sketch,
            rng,
            connection,
            now: Instant::ZERO,
            steps: BinaryHeap::new(),
            scheduled: 0,
            outstanding: BTreeMap::new(),
            timer: 0,
            rto: sketch.rto_min,
            arrived: BTreeSet::new(),
            next_in_order: 0,
            records: Vec::new(),
            packets: 0,
            counters: Counters::default(),
            events: Vec::new(),
        }
    }

    fn run(&mut self, messages: u64) {
        for message in 0..messages {
            let jitter = Duration::from_micros(self.rng.below(20_000));
            let at = Instant::ZERO + INTERVAL * u32::try_from(message).unwrap() + jitter;
            self.records.push(MessageRecord {
                connection: self.connection,
                stream: 0,
                sequence: message,
                payload_bytes: PAYLOAD_BYTES,
                intended: at,
                delivered: None,
                transmissions: Some(0),
            });
            self.schedule(at, Step::Send(message));
        }
        while let Some(Reverse((at, _, step))) = self.steps.pop() {
            self.now = at;
            match step {
                Step::Send(message) => self.send_new(message),
                Step::Arrive(message) => self.on_arrival(message),
                Step::Ack(next, gaps) => self.on_ack(next, &gaps),
                Step::Timer(number) => self.on_timer(number),
            }
        }
    }

    fn schedule(&mut self, at: Instant, step: Step) {
        self.scheduled += 1;
        self.steps.push(Reverse((at, self.scheduled, step)));
    }

    fn tell(&mut self, event: TraceEvent) {
        self.events.push((self.now, self.connection, event));
    }

    fn send_new(&mut self, message: u64) {
        let tsn = FIRST_TSN + message;
        self.tell(TraceEvent::MessageNumbered { message, stream: 0, sequence: (tsn, tsn) });
        if self.outstanding.is_empty() {
            self.restart_timer();
        }
        self.send(message, SendCause::New);
    }

    fn send(&mut self, message: u64, cause: SendCause) {
        let (packet, tsn) = (self.packets, FIRST_TSN + message);
        self.packets += 1;
        let was_lost = self.rng.chance(LOSS);
        let is_slow = self.rng.chance(0.004);
        let is_repeated = cause != SendCause::New;
        self.outstanding.insert(message, Outstanding { missing: 0, was_lost, is_repeated });
        self.records[usize::try_from(message).unwrap()].transmissions =
            self.records[usize::try_from(message).unwrap()].transmissions.map(|n| n + 1);
        let runs = vec![SentRun::new(tsn, tsn, cause)];
        self.tell(TraceEvent::PacketSent { packet, path: 0, units: 1, bytes: PAYLOAD_BYTES, runs });
        // For the picture only: these copies repair nothing.
        if self.sketch.copies_what_is_in_flight
            && cause == SendCause::New
            && self.outstanding.contains_key(&message.wrapping_sub(1))
        {
            let runs = vec![(tsn - 1, tsn - 1)];
            self.tell(TraceEvent::CopiesSent { packet, path: 0, runs });
        }
        if !was_lost {
            let queued = Duration::from_micros(self.rng.below(6_000));
            let spike = Duration::from_millis(if is_slow { 260 } else { 0 });
            self.schedule(self.now + ONE_WAY + queued + spike, Step::Arrive(message));
        }
    }

    fn send_again(&mut self, message: u64, cause: SendCause) {
        if !self.outstanding[&message].was_lost {
            self.tell(TraceEvent::PacketSpurious { packet: message });
            self.counters.spurious.count(cause);
        }
        self.counters.retransmissions.count(cause);
        self.send(message, cause);
    }

    fn counters(&self) -> Counters {
        let mut counters = self.counters;
        let payloads = self.records.len() as u64 + counters.retransmissions.total();
        counters.on_wire(self.packets, self.packets * 60 + payloads * u64::from(PAYLOAD_BYTES));
        counters
    }

    fn on_arrival(&mut self, message: u64) {
        if message >= self.next_in_order {
            self.arrived.insert(message);
        }
        while self.arrived.remove(&self.next_in_order) {
            self.records[usize::try_from(self.next_in_order).unwrap()].delivered = Some(self.now);
            self.next_in_order += 1;
        }
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        for &message in &self.arrived {
            match gaps.last_mut() {
                Some(gap) if gap.1 + 1 == message => gap.1 = message,
                _ => gaps.push((message, message)),
            }
        }
        self.packets += 1;
        self.schedule(self.now + ONE_WAY, Step::Ack(self.next_in_order, gaps));
    }

    fn on_ack(&mut self, next: u64, gaps: &[(u64, u64)]) {
        let tsns = gaps.iter().map(|&(a, b)| (FIRST_TSN + a, FIRST_TSN + b)).collect();
        self.tell(TraceEvent::AckReceived { cumulative: FIRST_TSN + next - 1, gaps: tsns });
        let before = self.outstanding.len();
        self.outstanding.retain(|&message, _| message >= next);
        if self.outstanding.len() < before {
            self.rto = self.sketch.rto_min;
            self.restart_timer();
        }
        let highest = gaps.last().map_or(0, |gap| gap.1);
        let threshold = self.sketch.missing_reports;
        let mut due = Vec::new();
        for (&message, state) in self.outstanding.range_mut(..highest) {
            if !gaps.iter().any(|gap| (gap.0..=gap.1).contains(&message)) && !state.is_repeated {
                state.missing += 1;
                due.extend((state.missing >= threshold).then_some(message));
            }
        }
        due.into_iter().for_each(|message| self.send_again(message, SendCause::FastRetransmit));
    }

    fn restart_timer(&mut self) {
        self.timer += 1;
        self.schedule(self.now + self.rto, Step::Timer(self.timer));
    }

    fn on_timer(&mut self, number: u64) {
        let Some((&oldest, _)) = self.outstanding.first_key_value() else { return };
        if number != self.timer {
            return;
        }
        if !self.sketch.is_linear {
            self.rto *= 2;
        }
        self.tell(TraceEvent::RetransmissionTimeout { path: 0, rto: self.rto });
        self.send_again(oldest, SendCause::Timeout);
        self.restart_timer();
    }
}
