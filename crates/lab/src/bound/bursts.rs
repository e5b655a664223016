//! The least cost of meeting a deadline with a probability where losses come in bursts.
//!
//! The model: a packet sent at time t is lost if the forward path is in its bad state then. The state is a Markov chain in
//! continuous time (Gilbert): bad for a share π of the time, with a mean stay of B. No SACK is lost, and the sender learns the
//! path's state of every instant one RTT later, with or without a packet sent then. Any real sender knows less, so that none has a
//! lower cost.
//!
//! The sender may send a copy at the multiples of a [part](PARTS) of the RTT, at the last instant that is in time, and with each later message, in
//! a packet of its own or bundled. Several copies at once are useless, as the same burst loses them. What matters for
//! the next decision: the copies of the last RTT, whose fate is unknown, and the state an RTT ago. [`least_cost_in_bursts`] finds the best
//! decision in each of these states, backwards from the deadline (dynamic programming).
//!
//! After the deadline the sender pays one packet for a message that is late.

use std::collections::HashMap;
use std::time::Duration;

use super::LossModel;
use super::deadline::{DONE, Deadline, Hull, Messages, PlanCost, Prices, hull};

/// Copies may be sent at the multiples of this part of the RTT.
const PARTS: u32 = 8;
/// The same if there are more than four messages in an RTT.
const PARTS_BETWEEN_MANY: u32 = 2;
/// The most copies whose fate is unknown.
const MAX_UNKNOWN: u32 = 5;
/// The most instants at which a copy may be sent; a state has a bit for each.
const MAX_INSTANTS: usize = 64;

/// The least cost, beyond that of the first packet of each message, of any sender in this model that meets `deadline`. The share of
/// `messages` lost is π, `mean_bad` is B; no SACK is lost.
///
/// `None` if no sender can meet the deadline, if five copies in a round trip do not suffice, or if there are more than
/// 64 instants at which a copy may be sent.
///
/// ```
/// use std::time::Duration;
/// use rexmit_lab::bound::{Deadline, Messages, Prices, least_cost_in_bursts};
/// let ms = Duration::from_millis;
/// let alone = Messages { interval: None, delay: ms(50), loss: 0.05, sack_loss: 0.0 };
/// let deadline = Deadline { within: ms(160), probability: 0.99 };
/// let least = least_cost_in_bursts(&alone, ms(30), &deadline, &Prices::PACKETS).unwrap();
/// // A retransmission when a loss is known; the deadline leaves time for one after a burst.
/// assert!((0.05..0.07).contains(&least.cost));
/// // Bursts that last until the deadline lose all copies.
/// let soon = Deadline { within: ms(60), probability: 0.99 };
/// assert_eq!(least_cost_in_bursts(&alone, ms(30), &soon, &Prices::PACKETS), None);
/// ```
#[must_use]
pub fn least_cost_in_bursts(
    messages: &Messages,
    mean_bad: Duration,
    deadline: &Deadline,
    prices: &Prices,
) -> Option<PlanCost> {
    let are_many = messages.interval.is_some_and(|interval| 4 * interval < 2 * messages.delay);
    let parts = if are_many { PARTS_BETWEEN_MANY } else { PARTS };
    Some(least(messages, mean_bad, deadline, prices, parts)?.outlay)
}

fn least<'a>(
    messages: &Messages,
    mean_bad: Duration,
    deadline: &Deadline,
    prices: &'a Prices,
    parts: u32,
) -> Option<Hull<Plan<'a>>> {
    let path = Path::new(messages, mean_bad, deadline.within, parts)?;
    let plan = |price_of_late| Plan::new(path.clone(), prices, price_of_late);
    hull(1.0 - deadline.probability, prices, plan, |plan| plan.outlay)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    /// The sender may send a copy at this instant.
    Decide(usize),
    /// The sender learns the state of the path at this instant.
    Learn(usize),
}

/// The instants at which copies may be sent, and what happens until the fate of all of them is known.
#[derive(Clone, Debug)]
struct Path {
    losses: LossModel,
    instants: Vec<Duration>,
    /// At which of them a later message is sent.
    has_message: Vec<bool>,
    events: Vec<Event>,
}

impl Path {
    /// `None` if the deadline is shorter than the delay, or if there are too many instants.
    fn new(messages: &Messages, mean_bad: Duration, within: Duration, parts: u32) -> Option<Self> {
        let horizon = within.checked_sub(messages.delay)?;
        let rtt = 2 * messages.delay;
        let multiples = |of: Duration| {
            let all = (0..=MAX_INSTANTS as u32).map(move |n| n * of);
            all.take_while(move |&time| time <= horizon)
        };
        let later = messages.interval.filter(|interval| !interval.is_zero());
        let sent: Vec<_> = later.into_iter().flat_map(multiples).skip(1).collect();
        let mut instants: Vec<_> = multiples(rtt / parts).chain(sent.iter().copied()).collect();
        instants.push(horizon);
        instants.sort_unstable();
        instants.dedup();
        if instants.len() > MAX_INSTANTS {
            return None;
        }
        let has_message = instants.iter().map(|at| sent.contains(at)).collect();
        let learnt = instants.iter().enumerate().map(|(n, &at)| (at + rtt, Event::Learn(n)));
        let decided = instants.iter().enumerate().map(|(n, &at)| (at, Event::Decide(n)));
        // The sort is stable: a decision follows the knowledge of the same instant.
        let mut events: Vec<_> = learnt.chain(decided).collect();
        events.sort_by_key(|&(at, _)| at);
        let events = events.into_iter().map(|(_, event)| event).collect();
        let losses = LossModel::Bursts { share: messages.loss, mean_bad };
        Some(Self { losses, instants, has_message, events })
    }

    /// The probability that the path is bad at an instant, given the state at the instant before.
    fn is_bad(&self, instant: usize, before: Option<bool>) -> f64 {
        let share = self.losses.share();
        let (Some(was_bad), Some(last)) = (before, instant.checked_sub(1)) else { return share };
        let again = self.losses.again(self.instants[instant] - self.instants[last]);
        // In balance as many turn bad as turn good.
        if was_bad { again } else { share * (1.0 - again) / (1.0 - share) }
    }
}

/// The sender's knowledge of a message that is not known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct State {
    /// The next event.
    next: usize,
    /// A bit for each instant at which a copy was sent whose fate is unknown.
    unknown: u64,
    /// Whether the path was bad at the last instant that is known.
    was_bad: Option<bool>,
}

const BEGIN: State = State { next: 0, unknown: 0, was_bad: None };

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Decision {
    Nothing,
    Packet,
    Bundled,
}

/// The best decision in every state that is reached, for a price of each late message.
#[derive(Clone, Debug)]
struct Plan<'a> {
    path: Path,
    prices: &'a Prices,
    price_of_late: f64,
    best: HashMap<State, (Decision, PlanCost)>,
    /// The cost from states in which the sender learns the state of the path.
    learning: HashMap<State, PlanCost>,
    outlay: PlanCost,
}

impl<'a> Plan<'a> {
    fn new(path: Path, prices: &'a Prices, price_of_late: f64) -> Self {
        let (best, learning) = (HashMap::new(), HashMap::new());
        let mut plan = Self { path, prices, price_of_late, best, learning, outlay: DONE };
        plan.outlay = plan.cost(BEGIN);
        plan
    }

    fn price(&self, instant: usize, decision: Decision) -> f64 {
        match decision {
            // The message itself is paid.
            _ if instant == 0 => 0.0,
            Decision::Nothing => 0.0,
            Decision::Packet => self.prices.packet,
            Decision::Bundled => self.prices.bundled,
        }
    }

    fn decisions(&self, instant: usize, unknown: u64) -> &'static [Decision] {
        let is_full = unknown.count_ones() >= MAX_UNKNOWN;
        match (instant, self.path.has_message[instant]) {
            (0, _) => &[Decision::Packet],
            _ if is_full => &[Decision::Nothing],
            (_, false) => &[Decision::Nothing, Decision::Packet],
            // With the price of a packet it would only cost more.
            (_, true) => &[Decision::Nothing, Decision::Bundled],
        }
    }

    /// The cost from this state on, with the best decisions.
    fn cost(&mut self, state: State) -> PlanCost {
        let then = State { next: state.next + 1, ..state };
        match self.path.events.get(state.next) {
            None => PlanCost { cost: self.prices.packet, late: 1.0 },
            Some(&Event::Decide(instant)) => self.decide(state, then, instant),
            Some(&Event::Learn(instant)) => self.learn(state, then, instant),
        }
    }

    fn learn(&mut self, state: State, then: State, instant: usize) -> PlanCost {
        if let Some(&known) = self.learning.get(&state) {
            return known;
        }
        let bad = self.path.is_bad(instant, state.was_bad);
        let (rest, bit) = (state.unknown & !(1 << instant), 1 << instant);
        let was_sent = state.unknown & bit != 0;
        let mut sum = DONE;
        if bad > 0.0 {
            let then = State { unknown: rest, was_bad: Some(true), ..then };
            sum = sum.plus(bad, self.cost(then));
        }
        // Otherwise the copy sent then has arrived.
        if !was_sent && bad < 1.0 {
            let then = State { unknown: rest, was_bad: Some(false), ..then };
            sum = sum.plus(1.0 - bad, self.cost(then));
        }
        self.learning.insert(state, sum);
        sum
    }

    fn decide(&mut self, state: State, then: State, instant: usize) -> PlanCost {
        if let Some(&(_, known)) = self.best.get(&state) {
            return known;
        }
        let mut best: Option<(Decision, PlanCost, f64)> = None;
        for &decision in self.decisions(instant, state.unknown) {
            let sent = u64::from(decision != Decision::Nothing) << instant;
            let then = self.cost(State { unknown: state.unknown | sent, ..then });
            let outlay = PlanCost { cost: then.cost + self.price(instant, decision), ..then };
            let value = outlay.cost + self.price_of_late * outlay.late;
            if best.is_none_or(|(_, _, least)| value < least) {
                best = Some((decision, outlay, value));
            }
        }
        let (decision, outlay, _) = best.expect("there is a decision in every state");
        self.best.insert(state, (decision, outlay));
        outlay
    }
}

#[cfg(test)]
mod tests {
    use rexmit_core::{Rng, Seed};

    use super::super::deadline::least_cost;
    use super::super::least_late;
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn messages(interval_ms: Option<u64>, loss: f64) -> Messages {
        Messages { interval: interval_ms.map(MS), delay: MS(50), loss, sack_loss: 0.0 }
    }

    fn within(ms: u64, probability: f64) -> Deadline {
        Deadline { within: MS(ms), probability }
    }

    /// With a message every millisecond and a deadline of 70 ms there are 24 instants before anything is learnt.
    #[test]
    fn many_messages_within_a_deadline_take_no_time() {
        let mut messages = messages(Some(1), 0.05);
        messages.delay = MS(50);
        let cost = least_cost_in_bursts(&messages, MS(100), &within(70, 0.9), &Prices::PACKETS);
        assert!(cost.is_some_and(|cost| cost.late <= 0.1 + 1e-9), "{cost:?}");
    }

    /// Bursts that are shorter than the time between two copies are independent losses.
    #[test]
    fn short_bursts_are_independent_losses() {
        let bytes = Prices::bytes(116, 40);
        for (interval, loss, ms, probability, prices) in [
            (None, 0.05, 110, 0.99, Prices::PACKETS),
            (None, 0.05, 160, 0.999, Prices::PACKETS),
            (None, 0.1, 260, 0.9999, bytes),
            (Some(40), 0.1, 110, 0.999, bytes),
            (Some(50), 0.05, 160, 0.999, bytes),
        ] {
            let (messages, deadline) = (messages(interval, loss), within(ms, probability));
            let expected = least_cost(&messages, &deadline, &prices).expect("it can be met");
            let short = Duration::from_micros(1);
            let found = least_cost_in_bursts(&messages, short, &deadline, &prices);
            let found = found.expect("it can be met");
            // One packet after the deadline, where independent losses cost 1 / (1 - p) of them.
            let afterwards = found.late * prices.packet * loss / (1.0 - loss);
            let away = (found.cost + afterwards - expected.cost).abs();
            assert!(away < 0.01 * expected.cost, "{interval:?} {ms}: {found:?}, {expected:?}");
        }
    }

    #[test]
    fn what_no_sender_can_meet_is_none_and_the_rest_has_a_cost() {
        for mean_bad in [MS(10), MS(30)] {
            for ms in [60, 110, 160, 210, 260] {
                for probability in [0.9, 0.99, 0.999] {
                    let (messages, deadline) = (messages(None, 0.05), within(ms, probability));
                    let losses = LossModel::Bursts { share: 0.05, mean_bad };
                    let least_late = least_late(losses, MS(50), MS(ms));
                    let prices = Prices::PACKETS;
                    let cost = least_cost_in_bursts(&messages, mean_bad, &deadline, &prices);
                    let may_be_late = 1.0 - probability;
                    if least_late > may_be_late {
                        assert_eq!(cost, None, "{mean_bad:?} {ms} {probability}");
                    }
                    // Copies continuously are more than five in a round trip.
                    if least_late < may_be_late / 4.0 {
                        assert!(cost.is_some(), "{mean_bad:?} {ms} {probability}");
                    }
                }
            }
        }
    }

    #[test]
    fn more_time_and_shorter_bursts_cost_less() {
        for interval in [None, Some(50)] {
            let mut before = f64::INFINITY;
            for ms in [160, 210, 260] {
                let (messages, deadline) = (messages(interval, 0.05), within(ms, 0.995));
                let cost = |mean_bad| {
                    let prices = Prices::bytes(116, 40);
                    let least = least_cost_in_bursts(&messages, mean_bad, &deadline, &prices);
                    least.expect("it can be met").cost
                };
                let (short, long) = (cost(MS(10)), cost(MS(30)));
                // The instants of a shorter deadline are not all among those of a longer one.
                let is_less = short <= 1.01 * long && long <= 1.01 * before;
                assert!(is_less, "{interval:?} {ms}: {short} {long} {before}");
                before = long;
            }
        }
    }

    /// The instants are close enough: half the time between them changes little.
    #[test]
    fn instants_half_as_far_apart_hardly_cost_less() {
        let (messages, deadline) = (messages(None, 0.05), within(130, 0.995));
        let cost = |parts| {
            let least = least(&messages, MS(30), &deadline, &Prices::PACKETS, parts);
            1.0 + least.expect("it can be met").outlay.cost
        };
        let (coarse, fine) = (cost(PARTS), cost(2 * PARTS));
        assert!(fine <= coarse + 1e-9 && coarse < 1.01 * fine, "{coarse}, {fine}");
    }

    /// A path that stays in each state for a random time, and a sender that follows a plan.
    fn simulate(plan: &Plan<'_>, share: f64, mean_bad: Duration, rng: &mut Rng) -> (f64, bool) {
        let mut is_bad = rng.chance(share);
        let mut stay = |is_bad: bool| {
            let mean = if is_bad { mean_bad } else { mean_bad.mul_f64((1.0 - share) / share) };
            mean.mul_f64(-(1.0 - rng.unit()).ln())
        };
        let mut ends = stay(is_bad);
        let mut states = Vec::new();
        for &at in &plan.path.instants {
            while ends <= at {
                is_bad = !is_bad;
                ends += stay(is_bad);
            }
            states.push(is_bad);
        }
        let (mut state, mut cost) = (BEGIN, 0.0);
        while let Some(&event) = plan.path.events.get(state.next) {
            match event {
                Event::Decide(instant) => {
                    let (decision, _) = plan.best[&state];
                    cost += plan.price(instant, decision);
                    state.unknown |= u64::from(decision != Decision::Nothing) << instant;
                }
                Event::Learn(instant) => {
                    if state.unknown >> instant & 1 == 1 && !states[instant] {
                        return (cost, false);
                    }
                    state.unknown &= !(1 << instant);
                    state.was_bad = Some(states[instant]);
                }
            }
            state.next += 1;
        }
        (cost + plan.prices.packet, true)
    }

    #[test]
    fn chance_gives_the_same() {
        const MESSAGES: u32 = 100_000;
        let bytes = Prices::bytes(116, 40);
        for (interval, share, mean_bad, ms, probability, prices) in [
            (None, 0.05, 30, 160, 0.99, Prices::PACKETS),
            (Some(50), 0.1, 20, 160, 0.99, bytes),
            (Some(40), 0.1, 30, 210, 0.99, bytes),
            (None, 0.2, 10, 110, 0.98, Prices::PACKETS),
        ] {
            let (messages, deadline) = (messages(interval, share), within(ms, probability));
            let mean_bad = MS(mean_bad);
            let least = least(&messages, mean_bad, &deadline, &prices, PARTS);
            let least = least.expect("it can be met");
            let mut rng = Seed::from_u64(ms).rng();
            let (mut sum, mut squares, mut late) = (0.0, 0.0, 0_u32);
            for _ in 0..MESSAGES {
                let plan = &least.plans[usize::from(rng.chance(least.share))];
                let (cost, is_late) = simulate(plan, share, mean_bad, &mut rng);
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
}
