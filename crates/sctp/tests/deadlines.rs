//! Messages with deadlines between two endpoints, over a path of 50 ms each way that loses packets.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Machine, Rng, Route, Seed};
use rexmit_sctp::recovery::{CopyBudget, Deadline};
use rexmit_sctp::{
    AssociationConfig, AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage, Reliability,
};

const DELAY: Duration = Duration::from_millis(50);
const MS: fn(u64) -> Duration = Duration::from_millis;

/// Two endpoints and the packets between them.
struct World {
    now: Instant,
    ends: [Endpoint; 2],
    /// Packets by arrival time, with the receiving end.
    packets: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    loss: f64,
    /// Each way, if losses come in bursts.
    bursts: Option<[Bursts; 2]>,
    rng: Rng,
    sender: AssociationId,
    receiver: Option<AssociationId>,
    /// The send time of each message, by its content.
    begun: Vec<Instant>,
    latencies: Vec<Duration>,
    infeasible: Vec<u32>,
}

/// A path that loses everything for a random time, and then nothing for a random time.
struct Bursts {
    share: f64,
    mean_bad: Duration,
    is_bad: bool,
    until: Instant,
}

impl Bursts {
    fn new(share: f64, mean_bad: Duration) -> Self {
        Self { share, mean_bad, is_bad: true, until: Instant::ZERO }
    }

    fn is_bad(&mut self, rng: &mut Rng, now: Instant) -> bool {
        while self.until <= now {
            self.is_bad = !self.is_bad;
            let longer = if self.is_bad { 1.0 } else { (1.0 - self.share) / self.share };
            self.until += self.mean_bad.mul_f64(longer * -(1.0 - rng.unit()).ln());
        }
        self.is_bad
    }
}

fn address(end: usize) -> SocketAddr {
    ([192, 0, 2, end as u8 + 1], 9899).into()
}

impl World {
    /// An association that is established.
    fn new(config: AssociationConfig) -> Self {
        let config = EndpointConfig::default().accept(true).association(Arc::new(config));
        let end = |n| Endpoint::new(config.clone(), &Seed::from_u64(n)).expect("it is valid");
        let mut ends = [end(1), end(2)];
        let route = Route { local: address(0), remote: address(1) };
        let sender = ends[0].connect(Instant::ZERO, route, 5000).expect("it may connect");
        let mut world = Self {
            now: Instant::ZERO,
            ends,
            packets: BTreeMap::new(),
            sent: 0,
            loss: 0.0,
            bursts: None,
            rng: Seed::from_u64(3).rng(),
            sender,
            receiver: None,
            begun: Vec::new(),
            latencies: Vec::new(),
            infeasible: Vec::new(),
        };
        world.run_until(Instant::from_millis(1000));
        world
    }

    fn drain(&mut self) {
        for end in 0..2 {
            let mut bytes = Vec::new();
            while self.ends[end].poll_transmit(self.now, &mut bytes).is_some() {
                self.sent += u64::from(end == 0);
                let bytes = std::mem::take(&mut bytes);
                let is_lost = match &mut self.bursts {
                    Some(bursts) => bursts[end].is_bad(&mut self.rng, self.now),
                    None => self.rng.chance(self.loss),
                };
                if !is_lost {
                    let key = (self.now + DELAY, self.rng.below(u64::MAX));
                    self.packets.insert(key, (1 - end, bytes));
                }
            }
            while let Some((id, event)) = self.ends[end].poll_event() {
                match event {
                    Event::Connected { .. } if end == 1 => self.receiver = Some(id),
                    Event::Infeasible { achievable_ppm } => self.infeasible.push(achievable_ppm),
                    _ => {}
                }
            }
        }
        let Some(receiver) = self.receiver else { return };
        while let Some(message) = self.ends[1].receive(self.now, receiver) {
            let number = u32::from_be_bytes(*message.payload.first_chunk().expect("a number"));
            self.latencies.push(self.now - self.begun[number as usize]);
        }
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            self.drain();
            let timeouts = self.ends.iter().filter_map(Machine::poll_timeout);
            let arrival = self.packets.keys().next().map(|&(at, _)| at);
            let next = timeouts.chain(arrival).min().unwrap_or(end);
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if arrival.is_some_and(|at| at <= self.now) {
                let (_, (to, bytes)) = self.packets.pop_first().expect("there is one");
                let route = Route { local: address(to), remote: address(1 - to) };
                self.ends[to].handle_input(self.now, route, &bytes);
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
        }
        self.now = end;
    }

    /// Sends `count` messages, one every `interval_ms`; returns the packets for each.
    fn send(&mut self, count: u32, interval_ms: u64, message: &OutboundMessage) -> f64 {
        let before = self.sent;
        for _ in 0..count {
            let mut payload = (self.begun.len() as u32).to_be_bytes().to_vec();
            payload.resize(100, 0);
            self.begun.push(self.now);
            let message = message.clone().payload(payload.into());
            self.ends[0].send(self.now, self.sender, message).expect("it is accepted");
            self.run_until(self.now + MS(interval_ms));
        }
        (self.sent - before) as f64 / f64::from(count)
    }

    fn late(&self, within: Duration) -> usize {
        let in_time = self.latencies.iter().filter(|&&latency| latency <= within).count();
        self.begun.len() - in_time
    }
}

fn message() -> OutboundMessage {
    OutboundMessage::new(1, "").unordered(true)
}

fn within(ms: u64, probability: f64) -> OutboundMessage {
    message().deadline(Some(Deadline::new(MS(ms), probability)))
}

const COUNT: u32 = 20_000;

/// A lifetime of 100 ms at a round trip of 100 ms allows no retransmission: without copies, 95 % are delivered at 5 %
/// loss.
#[test]
fn a_lifetime_of_a_round_trip_delivers_999_of_1000_by_copies() {
    let mut plain = World::new(AssociationConfig::interactive());
    plain.loss = 0.05;
    let packets = plain.send(COUNT, 50, &message().reliability(Reliability::Timed(MS(100))));
    let lost = plain.begun.len() - plain.latencies.len();
    assert!(lost > 800 && packets < 1.2, "{lost} lost, {packets} packets");

    let mut planned = World::new(AssociationConfig::interactive());
    planned.loss = 0.05;
    let lasting = within(100, 0.999).reliability(Reliability::Timed(MS(100)));
    let packets = planned.send(COUNT, 50, &lasting);
    let lost = planned.begun.len() - planned.latencies.len();
    // 20 are expected, with a deviation of 4.5.
    assert!(lost <= 40, "{lost} lost, {packets} packets");
    assert!(packets < 3.3, "{packets} packets");
    assert_eq!(planned.infeasible, []);
}

/// 210 ms are enough for one retransmission, so only retransmissions have copies.
#[test]
fn with_time_for_a_retransmission_only_that_has_copies() {
    let mut world = World::new(AssociationConfig::interactive());
    world.loss = 0.05;
    let packets = world.send(COUNT, 250, &within(210, 0.999));
    let late = world.late(MS(210));
    assert!(late <= 40, "{late} late, {packets} packets");
    assert!(packets < 1.25, "{packets} packets");
}

/// Sends a burst of one to five messages every 120 ms. Returns the latencies of the bursts in ascending order, and the
/// packets of each.
fn send_bursts(message: &OutboundMessage) -> (Vec<Duration>, f64) {
    let mut world = World::new(AssociationConfig::interactive());
    world.loss = 0.05;
    let mut rng = Seed::from_u64(7).rng();
    let mut packets = 0.0;
    for _ in 0..5000 {
        let burst = 1 + rng.below(5);
        for _ in 1..burst {
            packets += world.send(1, rng.below(3), message);
        }
        packets += world.send(1, 120, message);
    }
    world.run_until(world.now + MS(2000));
    let mut latencies = std::mem::take(&mut world.latencies);
    latencies.sort_unstable();
    assert_eq!(latencies.len(), world.begun.len());
    (latencies, packets / world.begun.len() as f64)
}

/// If a retransmission would be too late, copies are bundled within a burst, and a burst has few packets with copies
/// only. No percentile is worse than without a deadline, although messages wait for earlier ones.
#[test]
fn bursts_meet_their_deadline_and_are_never_slower_than_without() {
    for unordered in [true, false] {
        let message = message().unordered(unordered);
        let (plain, _) = send_bursts(&message);
        let deadline = Deadline::new(MS(150), 0.999);
        let (planned, packets) = send_bursts(&message.clone().deadline(Some(deadline)));
        for q in [0.5, 0.9, 0.99, 0.999] {
            let [plain, planned] =
                [&plain, &planned].map(|sorted| sorted[(q * (sorted.len() - 1) as f64) as usize]);
            assert!(planned <= plain, "{planned:?} over {plain:?} at {q}, unordered: {unordered}");
        }
        let late = planned.iter().filter(|&&latency| latency > MS(150)).count();
        // Of 15,000, 15 are expected at most, with a deviation of 3.9.
        assert!(late <= 27, "{late} late of {}, unordered: {unordered}", planned.len());
        assert!(packets < 2.0, "{packets} packets, unordered: {unordered}");
    }
}

#[test]
fn without_loss_and_without_a_deadline_nothing_is_copied() {
    for message in [message(), within(100, 0.999)] {
        let mut world = World::new(AssociationConfig::interactive());
        // The share of losses is not known at first.
        world.send(1000, 50, &message);
        let packets = world.send(1000, 50, &message);
        assert!(packets < 1.01, "{packets} packets");
    }
}

/// The deadline is met again after at most 50 messages, which are not counted here.
#[test]
fn losses_that_begin_are_met_after_fifty_messages() {
    let mut late = 0;
    for seed in 0..20 {
        let mut world = World::new(AssociationConfig::interactive());
        world.rng = Seed::from_u64(seed).rng();
        world.send(1000, 50, &within(110, 0.99));
        world.loss = 0.05;
        world.send(50, 50, &within(110, 0.99));
        let before = world.late(MS(110));
        world.send(100, 50, &within(110, 0.99));
        world.run_until(world.now + MS(1000));
        late += world.late(MS(110)).saturating_sub(before);
    }
    // Of 2000, 20 are expected, with a deviation of 4.5; without copies it would be 100.
    assert!(late <= 42, "{late} late");
}

/// Ten seconds (200 messages) after the losses have ended, at most 20 % more packets are sent than messages need.
#[test]
fn losses_that_end_are_not_paid_for_after_ten_seconds() {
    let (mut before, mut after) = (0.0, 0.0);
    for seed in 0..10 {
        let mut world = World::new(AssociationConfig::interactive());
        world.rng = Seed::from_u64(seed).rng();
        world.loss = 0.05;
        world.send(1500, 50, &within(110, 0.999));
        before += world.send(500, 50, &within(110, 0.999)) / 10.0;
        world.loss = 0.0;
        world.send(200, 50, &within(110, 0.999));
        after += world.send(200, 50, &within(110, 0.999)) / 10.0;
    }
    assert!(before > 1.4, "{before} packets with losses");
    assert!(after < 1.2, "{after} packets without");
}

#[test]
fn a_deadline_that_cannot_be_met_is_reported_at_once() {
    let mut world = World::new(AssociationConfig::interactive());
    world.send(20, 50, &message());
    world.send(1, 50, &within(40, 0.9));
    assert_eq!(world.infeasible, [0], "the path takes 50 ms");
    world.send(20, 50, &within(40, 0.9));
    assert_eq!(world.infeasible.len(), 1, "once");

    let mut config = AssociationConfig::interactive();
    config.recovery.thin.copy_budget = CopyBudget::percent(std::num::NonZeroU16::new(10), None);
    let mut world = World::new(config);
    world.loss = 0.05;
    world.send(300, 250, &within(60, 0.999));
    let achievable =
        world.infeasible.first().copied().expect("a copy for one in ten is not enough");
    assert!((900_000..990_000).contains(&achievable), "{achievable}");
    let packets = world.send(1000, 250, &within(60, 0.999));
    // Retransmissions for 5 % loss and for lost SACKs, and the budget.
    assert!(packets < 1.3, "{packets} packets");
}

/// In bursts of 30 ms, with time for a retransmission and a copy of it after the burst.
#[test]
fn a_deadline_is_met_in_bursts_of_losses() {
    let late = |message: &OutboundMessage| {
        let mut world = World::new(AssociationConfig::interactive());
        world.bursts = Some([0.05, 0.05].map(|share| Bursts::new(share, MS(30))));
        let packets = world.send(COUNT, 250, message);
        (world.late(MS(210)), packets)
    };
    let (plain, _) = late(&message());
    let (planned, packets) = late(&within(210, 0.998));
    // 40 may be late, with a deviation of 6.3; without a deadline there is no copy after a burst.
    assert!(planned <= 60 && plain > 60, "{planned} late, {plain} without a deadline");
    assert!(packets < 1.3, "{packets} packets");
}
