//! The least cost of meeting a deadline with a probability, of any sender.
//!
//! The model: a message every T, a one-way delay D each way, RTT = 2·D. A packet is lost with probability p, a SACK with
//! probability a, independently. The receiver answers every packet at once, and each SACK reports all that has arrived, so that the
//! SACKs of later messages report this one, too. The sender knows p, a and D, and when later messages are due.
//!
//! A copy is useful if it is sent until the deadline less D. It costs a packet, or is bundled with a later message. If
//! nothing new is known since the last decision, it is best to send copies at once: the cost is the same, and their
//! SACKs arrive earlier. So the sender decides when the message is sent, when a SACK is due, and, about bundled copies,
//! when a later message is sent: at the sums of multiples of T and of RTT. The sender's knowledge of the copies so far:
//! which of them wait for their SACK, and how many got none although it was due. Each of the latter is lost with
//! probability q = p / (p + (1−p)·a), until the SACK of a later message shows whether all of them are. [`least_cost`]
//! finds the best decision in each of these states, backwards from the deadline (dynamic programming).
//!
//! After the deadline the sender waits for the SACK of a later message, and pays only for messages that are lost, 1 /
//! (1−p) packets each.
//!
//! With a price for each late message, the cheapest plan is deterministic; with a limit on their share, it is a random
//! choice between two such plans.

use std::collections::HashMap;
use std::time::Duration;

use super::LossModel;

/// The most copies in a state that were sent and are neither acknowledged nor known to be lost.
const MAX_UNRESOLVED: u32 = 6;
/// The most instants of decisions; a state has bits for each.
const MAX_INSTANTS: usize = 32;
const BITS: usize = 4;
/// Of these: the packet of the message sent then carried a copy.
const BUNDLED: u128 = 8;
const COPIES: u128 = 7;

/// A path, and the messages that are sent over it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Messages {
    /// The time between two messages: T. `None` if no other is near.
    pub interval: Option<Duration>,
    /// The one-way delay: D.
    pub delay: Duration,
    /// The share of packets lost: p.
    pub loss: f64,
    /// The share of SACKs lost: a.
    pub sack_loss: f64,
}

/// The time within which messages must arrive, and the share of them for which that must hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Deadline {
    /// The largest latency that is in time.
    pub within: Duration,
    /// The share of messages that must be in time.
    pub probability: f64,
}

/// The cost of a copy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prices {
    /// In a packet of its own.
    pub packet: f64,
    /// The price of a copy bundled with a later message.
    pub bundled: f64,
}

impl Prices {
    /// Costs are packets: bundled copies are free.
    pub const PACKETS: Self = Self { packet: 1.0, bundled: 0.0 };

    /// Prices in bytes: `chunk` for a bundled copy, `headers` more for one in a packet of its own.
    #[must_use]
    pub fn bytes(chunk: u32, headers: u32) -> Self {
        Self { packet: f64::from(chunk + headers), bundled: chunk.into() }
    }
}

/// The cost of a plan per message, and the share of messages that are late.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PlanCost {
    /// Beyond the first packet of each message.
    pub cost: f64,
    /// The share that is late.
    pub late: f64,
}

/// The least cost, beyond that of the first packet of each message, of any sender in this model that meets `deadline`.
///
/// `None` if the deadline is shorter than the delay, if six copies at once do not suffice, or if there are more than
/// 32 instants of decisions.
///
/// ```
/// use std::time::Duration;
/// use rexmit_lab::bound::{Deadline, Messages, Prices, least_cost};
/// let ms = Duration::from_millis;
/// let alone = Messages { interval: None, delay: ms(50), loss: 0.05, sack_loss: 0.05 };
/// let percent = |within, probability| {
///     let deadline = Deadline { within: ms(within), probability };
///     let least = least_cost(&alone, &deadline, &Prices::PACKETS).unwrap();
///     (1000.0 * least.cost).round() / 10.0
/// };
/// assert_eq!(percent(60, 0.99), 85.3); // Two packets at once for most messages.
/// assert_eq!(percent(160, 0.999), 16.0); // One, and then one or two.
/// assert_eq!(percent(260, 0.999), 10.5); // One after each round trip without an ACK.
/// ```
#[must_use]
pub fn least_cost(messages: &Messages, deadline: &Deadline, prices: &Prices) -> Option<PlanCost> {
    Some(least(messages, deadline, prices)?.outlay)
}

/// The least share of messages that are late at any cost, if a packet takes `delay`: copies are sent continuously until
/// the deadline less the delay. With independent losses one of them always arrives; a burst that lasts until then loses
/// all of them.
///
/// ```
/// use std::time::Duration;
/// use rexmit_lab::bound::{LossModel, least_late};
/// let ms = Duration::from_millis;
/// let bursts = LossModel::Bursts { share: 0.05, mean_bad: ms(30) };
/// assert_eq!(least_late(bursts, ms(50), ms(110)), 0.05 * f64::exp(-2.0));
/// assert_eq!(least_late(LossModel::Uniform(0.05), ms(50), ms(110)), 0.0);
/// assert_eq!(least_late(bursts, ms(50), ms(49)), 1.0);
/// ```
#[must_use]
pub fn least_late(losses: LossModel, delay: Duration, within: Duration) -> f64 {
    match (within.checked_sub(delay), losses) {
        (None, _) => 1.0,
        (Some(_), LossModel::Uniform(share)) => share.floor(),
        (Some(left), LossModel::Bursts { share, mean_bad }) => {
            share * (-left.as_secs_f64() / mean_bad.as_secs_f64()).exp()
        }
    }
}

fn least<'a>(
    messages: &'a Messages,
    deadline: &Deadline,
    prices: &'a Prices,
) -> Option<Hull<Plan<'a>>> {
    let instants = instants(messages, deadline.within)?;
    let plan = |price_of_late| Plan::new(messages, prices, instants.clone(), price_of_late);
    hull(1.0 - deadline.probability, prices, plan, |plan| plan.outlay)
}

/// The least cost, and the plans that have it.
#[cfg_attr(not(test), expect(dead_code, reason = "tests simulate the plans"))]
pub(super) struct Hull<P> {
    pub(super) outlay: PlanCost,
    /// Two plans; a message follows the second with this probability.
    pub(super) plans: [P; 2],
    pub(super) share: f64,
}

/// The cheapest choice by lot between two plans with which the share `most_late` is late. `plan` makes the best plan for a
/// price of each late message, and `outlay` is the cost of a plan. `None` if too many are late at any price.
pub(super) fn hull<P>(
    most_late: f64,
    prices: &Prices,
    plan: impl Fn(f64) -> P,
    outlay: impl Fn(&P) -> PlanCost,
) -> Option<Hull<P>> {
    let mut careless = plan(0.0);
    let mut careful = plan(1e9 * prices.packet);
    if outlay(&careful).late > most_late {
        return None;
    }
    // Finds the edge of the convex hull at this share: while a plan between both costs less than the line through them,
    // it replaces one of them.
    while outlay(&careless).late > most_late {
        let [one, other] = [outlay(&careless), outlay(&careful)];
        let slope = (other.cost - one.cost) / (one.late - other.late);
        let between = plan(slope);
        let line = |outlay: PlanCost| outlay.cost + slope * outlay.late;
        if line(outlay(&between)) > line(one) - 1e-9 * prices.packet {
            let share = (one.late - most_late) / (one.late - other.late);
            let cost = one.cost + share * (other.cost - one.cost);
            let outlay = PlanCost { cost, late: most_late };
            return Some(Hull { outlay, plans: [careless, careful], share });
        }
        if outlay(&between).late > most_late {
            careless = between;
        } else {
            careful = between;
        }
    }
    let outlay = outlay(&careless);
    Some(Hull { outlay, plans: [careless, careful], share: 0.0 })
}

/// A time at which the sender decides.
#[derive(Clone, Debug)]
struct Instant {
    /// A later message is sent.
    has_message: bool,
    /// The instant a round trip earlier, if there is one.
    answers: Option<usize>,
}

/// The sums of multiples of T and RTT until the deadline less D.
fn instants(messages: &Messages, within: Duration) -> Option<Vec<Instant>> {
    let horizon = within.checked_sub(messages.delay)?;
    let rtt = 2 * messages.delay;
    let mut times = Vec::new();
    for rounds in (0..).map(|n| n * rtt).take_while(|&time| time <= horizon) {
        let Some(interval) = messages.interval else {
            times.push(rounds);
            continue;
        };
        let later = (0..).map(|n| rounds + n * interval).take_while(|&time| time <= horizon);
        times.extend(later.take(MAX_INSTANTS + 1));
        if times.len() > MAX_INSTANTS * 4 {
            return None;
        }
    }
    times.sort_unstable();
    times.dedup();
    if times.len() > MAX_INSTANTS {
        return None;
    }
    let is_message = |at: Duration| {
        let interval = messages.interval.map_or(0, |interval| interval.as_nanos());
        !at.is_zero() && at.as_nanos().checked_rem(interval) == Some(0)
    };
    let place = |at: Option<Duration>| at.and_then(|at| times.binary_search(&at).ok());
    let instant = |&at: &Duration| Instant {
        has_message: is_message(at),
        answers: place(at.checked_sub(rtt)),
    };
    Some(times.iter().map(instant).collect())
}

/// The sender's knowledge of a message that is not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    /// The next instant of a decision.
    next: usize,
    /// Copies whose SACKs were due and did not arrive.
    silent: u32,
    /// [`BITS`] for each instant: copies sent then that wait for their SACK.
    waiting: u128,
}

impl State {
    fn waiting_since(self, instant: usize) -> u128 {
        self.waiting >> (BITS * instant) & 15
    }

    fn all_waiting(self) -> u32 {
        (0..MAX_INSTANTS).map(|instant| (self.waiting_since(instant) & COPIES) as u32).sum()
    }
}

/// A decision at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Decision {
    packets: u32,
    is_bundled: bool,
}

/// The best decision in every state that is reached, for a price of each late message.
#[derive(Clone, Debug)]
struct Plan<'a> {
    messages: &'a Messages,
    prices: &'a Prices,
    instants: Vec<Instant>,
    price_of_late: f64,
    best: HashMap<State, (Decision, PlanCost)>,
    outlay: PlanCost,
}

/// The cost of an acknowledged message from then on.
pub(super) const DONE: PlanCost = PlanCost { cost: 0.0, late: 0.0 };

impl PlanCost {
    pub(super) fn plus(self, probability: f64, other: Self) -> Self {
        let cost = self.cost + probability * other.cost;
        Self { cost, late: self.late + probability * other.late }
    }
}

impl<'a> Plan<'a> {
    fn new(
        messages: &'a Messages,
        prices: &'a Prices,
        instants: Vec<Instant>,
        price_of_late: f64,
    ) -> Self {
        let best = HashMap::new();
        let mut plan = Self { messages, prices, instants, price_of_late, best, outlay: DONE };
        plan.outlay = plan.decide(State { next: 0, silent: 0, waiting: 0 });
        plan
    }

    /// The probability that a copy without a SACK is lost: q.
    fn lost_if_silent(&self) -> f64 {
        let Messages { loss, sack_loss, .. } = *self.messages;
        if loss == 0.0 { 0.0 } else { loss / (loss + (1.0 - loss) * sack_loss) }
    }

    /// The probability that a packet is acknowledged: g.
    fn answered(&self) -> f64 {
        (1.0 - self.messages.loss) * (1.0 - self.messages.sack_loss)
    }

    fn value(&self, outlay: PlanCost) -> f64 {
        outlay.cost + self.price_of_late * outlay.late
    }

    /// The decisions that are possible; the first packet of the message counts as one.
    fn decisions(&self, state: State) -> Vec<Decision> {
        let instant = &self.instants[state.next];
        let unresolved = state.silent + state.all_waiting();
        let room = MAX_UNRESOLVED.saturating_sub(unresolved);
        let packets = match (state.next, instant.answers) {
            (0, _) => 1..=room,
            (_, Some(_)) => 0..=room,
            (_, None) => 0..=0,
        };
        let may_bundle = instant.has_message && room > 0;
        let may_not = !may_bundle || self.prices.bundled > 0.0;
        let bundled = [(false, may_not), (true, may_bundle)];
        let bundled = bundled.into_iter().filter(|&(_, may)| may).map(|(is_bundled, _)| is_bundled);
        bundled
            .flat_map(|is_bundled| {
                let packets =
                    packets.clone().take_while(move |n| n + u32::from(is_bundled) <= room);
                packets.map(move |packets| Decision { packets, is_bundled })
            })
            .collect()
    }

    /// The cost from this state on, with the best decisions.
    fn decide(&mut self, state: State) -> PlanCost {
        if state.next == self.instants.len() {
            let late = self.lost_if_silent().powi(state.silent as i32)
                * self.messages.loss.powi(state.all_waiting() as i32);
            let afterwards = self.prices.packet / (1.0 - self.messages.loss);
            return PlanCost { cost: late * afterwards, late };
        }
        if let Some(&(_, known)) = self.best.get(&state) {
            return known;
        }
        let mut best: Option<(Decision, PlanCost)> = None;
        for decision in self.decisions(state) {
            let paid = decision.packets - u32::from(state.next == 0);
            let cost = f64::from(paid) * self.prices.packet
                + f64::from(u32::from(decision.is_bundled)) * self.prices.bundled;
            let then = self.wait(after(state, decision));
            let outlay = PlanCost { cost: cost + then.cost, ..then };
            if best.is_none_or(|(_, known)| self.value(outlay) < self.value(known)) {
                best = Some((decision, outlay));
            }
        }
        let (decision, outlay) = best.expect("nothing can be sent in every state");
        self.best.insert(state, (decision, outlay));
        outlay
    }

    /// The expected cost after a decision, over all cases of SACKs that arrive or do not.
    fn wait(&mut self, state: State) -> PlanCost {
        let Some(since) = self.instants.get(state.next).and_then(|instant| instant.answers) else {
            return self.decide(state);
        };
        let was_sent = state.waiting_since(since);
        let copies = (was_sent & COPIES) as u32;
        let silence = (1.0 - self.answered()).powi(copies as i32);
        let waiting = state.waiting & !(15 << (BITS * since));
        let silent = if self.lost_if_silent() < 1.0 { state.silent + copies } else { 0 };
        let unheard = State { silent, waiting, ..state };
        let is_of_other = self.instants[since].has_message && was_sent & BUNDLED == 0;
        if !is_of_other || silent == 0 {
            return DONE.plus(silence, self.decide(unheard));
        }
        let heard = self.answered();
        let not_arrived = self.lost_if_silent().powi(silent as i32);
        let known_lost = State { silent: 0, ..unheard };
        let then = DONE.plus(1.0 - heard, self.decide(unheard));
        DONE.plus(silence, then.plus(heard * not_arrived, self.decide(known_lost)))
    }
}

fn after(state: State, decision: Decision) -> State {
    let copies = u128::from(decision.packets + u32::from(decision.is_bundled));
    let bits = copies | if decision.is_bundled { BUNDLED } else { 0 };
    let waiting = state.waiting | bits << (BITS * state.next);
    State { next: state.next + 1, waiting, ..state }
}

#[cfg(test)]
mod tests {
    use rexmit_core::{Rng, Seed};

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn messages(interval_ms: Option<u64>, loss: f64, sack_loss: f64) -> Messages {
        Messages { interval: interval_ms.map(MS), delay: MS(50), loss, sack_loss }
    }

    fn cost(messages: &Messages, within_ms: u64, probability: f64) -> f64 {
        let deadline = Deadline { within: MS(within_ms), probability };
        least_cost(messages, &deadline, &Prices::PACKETS).expect("it can be met").cost
    }

    /// One round: n copies at once, or n + 1, so that the mean of pⁿ is what may be late.
    #[test]
    fn without_time_for_an_ack_copies_are_sent_at_once() {
        for sack_loss in [0.0, 0.05] {
            let alone = messages(None, 0.05, sack_loss);
            for within in [50, 60, 149] {
                let share = (0.05 - 0.01) / (0.05 - 0.0025);
                let afterwards = 0.01 / 0.95;
                let found = cost(&alone, within, 0.99);
                assert!((found - share - afterwards).abs() < 1e-9, "{found}");
            }
        }
        assert_eq!(
            least_cost(
                &messages(None, 0.05, 0.0),
                &Deadline { within: MS(49), probability: 0.5 },
                &Prices::PACKETS
            ),
            None
        );
    }

    /// Two rounds: the result is that of `least_packets`, without its packets after the deadline.
    #[test]
    fn with_time_for_one_ack_it_is_the_least_number_of_packets() {
        for (p, a, late) in [(0.05_f64, 0.05_f64, 1e-3), (0.05, 0.0, 1e-3), (0.02, 0.1, 1e-4)] {
            let u = 1.0 - (1.0 - p) * (1.0 - a);
            let two = (p * p - late) / (p * p - p * p * p);
            let expected = u * (1.0 + two) + late / (1.0 - p);
            let found = cost(&messages(None, p, a), 160, 1.0 - late);
            assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
        }
    }

    #[test]
    fn a_bundled_copy_costs_bytes_but_no_packet() {
        let every_16 = messages(Some(16), 0.05, 0.05);
        // Copies after 16, 32 and 48 ms: p⁴ is below what may be late.
        let late = 0.05_f64.powi(4);
        assert!(cost(&every_16, 110, 0.9999) <= late / 0.95 + 1e-9);
        assert!(cost(&every_16, 60, 0.99) > 0.8, "no other message is sent in time");
        let deadline = Deadline { within: MS(110), probability: 0.99 };
        let bytes = Prices::bytes(116, 40);
        let least = least_cost(&every_16, &deadline, &bytes).expect("it can be met");
        // One copy for most messages, as without the bundling, at less than the price of a packet.
        let share = (0.05 - 0.01) / (0.05 - 0.0025);
        let expected = share * 116.0 + 0.01 / 0.95 * 156.0;
        assert!((least.cost - expected).abs() < 1e-6, "{least:?} and {expected}");
    }

    #[test]
    fn more_time_and_fewer_losses_cost_less() {
        for interval in [None, Some(16), Some(50), Some(250)] {
            for probability in [0.99, 0.999, 0.9999] {
                let mut before = f64::INFINITY;
                for within in [60, 110, 160, 210, 260] {
                    let found = cost(&messages(interval, 0.05, 0.05), within, probability);
                    assert!(found <= before + 1e-9, "{interval:?} {within} {probability}");
                    assert!(
                        cost(&messages(interval, 0.05, 0.0), within, probability) <= found + 1e-9
                    );
                    assert!(
                        cost(&messages(interval, 0.01, 0.01), within, probability) <= found + 1e-9
                    );
                    before = found;
                }
            }
        }
    }

    /// A sender that follows a plan, and a network that loses packets, independent of the model's formulas.
    fn simulate(plan: &Plan<'_>, rng: &mut Rng) -> (f64, bool) {
        let Messages { loss, sack_loss, .. } = *plan.messages;
        let mut state = State { next: 0, silent: 0, waiting: 0 };
        // For each instant: packets sent then as (has a copy, was received, its SACK was received).
        let mut sent: Vec<Vec<(bool, bool, bool)>> = Vec::new();
        let mut cost = 0.0;
        while state.next < plan.instants.len() {
            if let Some(since) = plan.instants[state.next].answers {
                let arrived_until = |until: usize| {
                    sent[..=until].iter().flatten().any(|&(is_copy, arrived, _)| is_copy && arrived)
                };
                if sent[since].iter().any(|&(_, _, is_answered)| is_answered) {
                    // Any SACK reports everything that has arrived.
                    if arrived_until(since) {
                        return (cost, false);
                    }
                    state.silent = 0;
                } else if plan.lost_if_silent() < 1.0 {
                    state.silent += (state.waiting_since(since) & COPIES) as u32;
                }
                state.waiting &= !(15 << (BITS * since));
            }
            let (decision, _) = plan.best[&state];
            cost += f64::from(decision.packets) * plan.prices.packet;
            cost += f64::from(u32::from(decision.is_bundled)) * plan.prices.bundled;
            let mut packet = |is_copy: bool| {
                let arrived = !rng.chance(loss);
                (is_copy, arrived, arrived && !rng.chance(sack_loss))
            };
            let mut packets: Vec<_> = (0..decision.packets).map(|_| packet(true)).collect();
            if plan.instants[state.next].has_message {
                packets.push(packet(decision.is_bundled));
            }
            sent.push(packets);
            state = after(state, decision);
        }
        let arrived = sent.iter().flatten().any(|&(is_copy, arrived, _)| is_copy && arrived);
        // Late, it is sent until it arrives.
        let mut is_there = arrived;
        while !is_there {
            cost += plan.prices.packet;
            is_there = !rng.chance(loss);
        }
        (cost, !arrived)
    }

    #[test]
    fn chance_gives_the_same() {
        const MESSAGES: u32 = 200_000;
        let bytes = Prices::bytes(116, 40);
        for (interval, losses, within, probability, prices) in [
            (None, [0.05, 0.05], 160, 0.999, Prices::PACKETS),
            (Some(250), [0.1, 0.1], 260, 0.999, Prices::PACKETS),
            (Some(50), [0.1, 0.2], 210, 0.999, bytes),
            (Some(16), [0.1, 0.1], 160, 0.99, bytes),
            (Some(40), [0.2, 0.1], 200, 0.99, Prices { packet: 1.0, bundled: 0.3 }),
            (Some(50), [0.05, 0.0], 110, 0.999, bytes),
        ] {
            let messages = messages(interval, losses[0], losses[1]);
            let deadline = Deadline { within: MS(within), probability };
            let least = least(&messages, &deadline, &prices).expect("it can be met");
            let mut rng = Seed::from_u64(within).rng();
            let (mut sum, mut squares, mut late) = (0.0, 0.0, 0_u32);
            for _ in 0..MESSAGES {
                let plan = &least.plans[usize::from(rng.chance(least.share))];
                let (cost, is_late) = simulate(plan, &mut rng);
                let cost = cost - prices.packet;
                (sum, squares) = (sum + cost, squares + cost * cost);
                late += u32::from(is_late);
            }
            let count = f64::from(MESSAGES);
            let mean = sum / count;
            let deviation = ((squares / count - mean * mean) / count).sqrt();
            let PlanCost { cost, late: expected } = least.outlay;
            assert!((mean - cost).abs() < 5.0 * deviation, "{interval:?}: {mean} and {cost}");
            let away = f64::from(late) - expected * count;
            assert!(away.abs() < 5.0 * (expected * count).sqrt(), "{interval:?}: {late} late");
        }
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let none = |messages: &Messages, within_ms, probability| {
            let deadline = Deadline { within: MS(within_ms), probability };
            least_cost(messages, &deadline, &Prices::PACKETS).is_none()
        };
        assert!(none(&messages(Some(1), 0.05, 0.05), 260, 0.9), "260 instants");
        assert!(none(&messages(None, 0.9, 0.0), 60, 0.99), "0.9⁶");
        assert!(!none(&messages(None, 0.0, 0.0), 60, 1.0));
    }
}
