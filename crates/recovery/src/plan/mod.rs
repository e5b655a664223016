//! The planner: how often a unit with a deadline is sent, and when, so that it arrives in time with the probability that the
//! application asks for, at the least cost.
//!
//! Of the share p of packets that are lost, n transmissions leave pⁿ: a unit that may be late with probability ε needs n
//! of them, the least with pⁿ ≤ ε, or one fewer by lot, so that the mean is ε. The cheapest are taken:
//!
//! 1. Retransmissions by the probe timer, while the deadline leaves a round trip for them: they are sent only if no ACK has
//!    come. Copies that are still missing are sent together with the last one.
//! 2. Copies bundled with later messages that are sent in time: they cost bytes, but no packets.
//! 3. Copies in packets of their own, spread over the time that the deadline leaves, so that a burst of losses does not
//!    take all; those that are not sent yet are spared when the ACK comes.
//!
//! `lab::bound::least_cost` has what is possible. The planner owns the units that have deadlines, the share of losses, and the time
//! between messages; it answers with numbers and times. Copies are those of `redundancy`, within the budget
//! (`thin.copy_budget`), and only while the stream is thin, no queue shows, and the window has room. Nothing is abandoned here.

mod config;
mod losses;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;

pub use config::Deadline;
use losses::Losses;

/// Transmissions of a unit in time at most.
const MOST_TRANSMISSIONS: u8 = 8;
/// The time between messages is the longest of the last so many.
const INTERVALS: usize = 8;
/// A deadline is reported as infeasible if at best so many times as many messages are late as may be.
const TOLERANCE: f64 = 1.25;

/// When a unit must arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When the peer must have it.
    pub at: Instant,
    /// The deadline as requested.
    pub deadline: Deadline,
}

/// The round trip of a path, as the probe timer knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RoundTrip {
    /// The mean.
    pub(crate) mean: Duration,
    /// After how long without an ACK a packet is retransmitted; longer than any deadline if it is not.
    pub(crate) timeout: Duration,
}

impl RoundTrip {
    /// The most time that a packet takes: half of the mean round trip, and what the timeout adds for jitter.
    fn one_way(self) -> Duration {
        self.mean / 2 + self.timeout.saturating_sub(self.mean).min(self.mean / 2)
    }
}

/// The budget of redundant copies, as shares of new data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Budget {
    pub(crate) packets: f64,
    pub(crate) bytes: f64,
}

/// Copies of a unit that are sent in packets of their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Copies {
    pub(crate) count: u8,
    /// The time before each of them.
    pub(crate) spacing: Duration,
}

/// A unit with a deadline.
#[derive(Clone, Copy, Debug)]
struct Planned {
    unit: u64,
    due: Due,
    /// The transmissions that it is to have in time, and those that it had.
    needed: u8,
    made: u8,
    /// It was retransmitted because no ACK came.
    is_retransmitted: bool,
    /// Copies are bundled with later messages.
    is_bundled: bool,
}

/// The planner of an association, which takes no memory until a unit has a deadline.
#[derive(Debug, Default)]
pub(crate) struct Planner(Option<Box<Plans>>);

/// The plans of an association.
#[derive(Debug, Default)]
struct Plans {
    /// Ascending; those that are acknowledged in order are dropped.
    units: VecDeque<Planned>,
    losses: Losses,
    /// When the last unit with a deadline was sent, and the times between the last of them.
    last_sent_at: Option<Instant>,
    intervals: VecDeque<Duration>,
    /// The remainder of the lot that decides between n and n - 1 transmissions.
    carry: f64,
    /// The last deadline could not be met.
    is_infeasible: bool,
    /// Not reported yet: the probability that can be had instead.
    achievable: Option<f64>,
}

/// Events, and the decisions that follow.
impl Planner {
    /// Whether some unit has a deadline.
    pub(crate) fn is_any(&self) -> bool {
        self.0.as_ref().is_some_and(|plans| !plans.units.is_empty())
    }

    /// A packet with new data is sent.
    pub(crate) fn on_first_sent(&mut self) {
        self.0.iter_mut().for_each(|plans| plans.losses.on_sent());
    }

    /// `unit` is declared lost; `is_first_transmission`: it was sent once.
    pub(crate) fn on_lost(&mut self, unit: u64, is_first_transmission: bool) {
        self.0.iter_mut().for_each(|plans| plans.on_lost(unit, is_first_transmission));
    }

    /// A copy of a packet with new data arrived instead of it.
    pub(crate) fn on_repaired(&mut self) {
        self.0.iter_mut().for_each(|plans| plans.losses.on_lost());
    }

    /// A packet that was declared lost had arrived.
    pub(crate) fn on_spurious(&mut self) {
        self.0.iter_mut().for_each(|plans| plans.losses.on_not_lost());
    }

    /// A copy of `unit` is sent.
    pub(crate) fn on_copied(&mut self, unit: u64) {
        if let Some(planned) = self.0.as_mut().and_then(|plans| plans.planned_mut(unit)) {
            planned.made = planned.made.saturating_add(1);
        }
    }

    /// Everything up to `cumulative` is acknowledged.
    pub(crate) fn on_cumulative(&mut self, cumulative: u64) {
        let Some(plans) = &mut self.0 else { return };
        while plans.units.front().is_some_and(|first| first.unit <= cumulative) {
            plans.units.pop_front();
        }
    }

    /// Nothing is outstanding any more.
    pub(crate) fn clear(&mut self) {
        self.0.iter_mut().for_each(|plans| plans.units.clear());
    }

    /// The probability with which the latest deadline can be met, if it cannot be as asked for and the one before could:
    /// once.
    pub(crate) fn take_infeasible(&mut self) -> Option<f64> {
        self.0.as_mut()?.achievable.take()
    }

    /// `unit`, the newest, is sent for the first time. Returns the copies that follow it in packets of their own.
    pub(crate) fn on_new(
        &mut self,
        now: Instant,
        unit: u64,
        due: Due,
        rtt: Option<RoundTrip>,
        budget: Budget,
    ) -> Copies {
        self.0.get_or_insert_default().on_new(now, unit, due, rtt, budget)
    }

    /// `unit` is retransmitted because no ACK came. Returns the copies that follow; `None` if it has no deadline.
    pub(crate) fn on_retransmitted(
        &mut self,
        now: Instant,
        unit: u64,
        rtt: Option<RoundTrip>,
    ) -> Option<Copies> {
        self.0.as_mut()?.on_retransmitted(now, unit, rtt)
    }

    /// Whether copies are to be bundled with a new message.
    pub(crate) fn is_bundling(&self) -> bool {
        let is_missing = |planned: &Planned| planned.is_bundled && planned.made < planned.needed;
        self.0.as_ref().is_some_and(|plans| plans.units.iter().any(is_missing))
    }

    /// Whether a copy of `unit` is to be bundled with a message that is sent now.
    pub(crate) fn wants_bundled(&self, now: Instant, unit: u64, rtt: Option<RoundTrip>) -> bool {
        let planned = self.0.as_ref().and_then(|plans| plans.planned(unit));
        planned.is_some_and(|planned| {
            let is_missing = planned.is_bundled && planned.made < planned.needed;
            is_missing && slack(now, planned.due, rtt).is_some()
        })
    }
}

/// Plans.
impl Plans {
    fn planned(&self, unit: u64) -> Option<&Planned> {
        let place = self.units.binary_search_by_key(&unit, |planned| planned.unit).ok()?;
        self.units.get(place)
    }

    fn planned_mut(&mut self, unit: u64) -> Option<&mut Planned> {
        let place = self.units.binary_search_by_key(&unit, |planned| planned.unit).ok()?;
        self.units.get_mut(place)
    }

    fn on_lost(&mut self, unit: u64, is_first_transmission: bool) {
        let is_first = self.planned(unit).is_some_and(|planned| !planned.is_retransmitted);
        if is_first || is_first_transmission {
            self.losses.on_lost();
        }
    }

    fn on_new(
        &mut self,
        now: Instant,
        unit: u64,
        due: Due,
        rtt: Option<RoundTrip>,
        budget: Budget,
    ) -> Copies {
        self.note_interval(now);
        let slack = slack(now, due, rtt);
        let rounds = slack.zip(rtt).map_or(0, |(slack, rtt)| rounds_in(slack, rtt));
        let bundles = slack.map_or(0, |slack| self.bundles_in(slack));
        let (p, late) = (self.losses.share(), due.deadline.late());
        let wanted = Wanted::of(p, late);
        let needed = self.draw(&wanted);
        let chances = Chances { p, rounds, bundles, is_late: slack.is_none() };
        if rtt.is_some() {
            self.judge(chances.least_late(&wanted, budget), late);
        }
        let is_bundled = rounds == 0 && bundles > 0;
        self.units.push_back(Planned {
            unit,
            due,
            needed,
            made: 1,
            is_retransmitted: false,
            is_bundled,
        });
        let missing = needed.saturating_sub(1).saturating_sub(bundles);
        Copies::over(slack, if rounds == 0 { missing } else { 0 })
    }

    fn on_retransmitted(
        &mut self,
        now: Instant,
        unit: u64,
        rtt: Option<RoundTrip>,
    ) -> Option<Copies> {
        let planned = self.planned_mut(unit)?;
        planned.made = planned.made.saturating_add(1);
        planned.is_retransmitted = true;
        let slack = slack(now, planned.due, rtt);
        let has_round = slack.zip(rtt).is_some_and(|(slack, rtt)| rounds_in(slack, rtt) > 0);
        let missing = planned.needed.saturating_sub(planned.made);
        Some(Copies::over(slack, if has_round { 0 } else { missing }))
    }

    fn note_interval(&mut self, now: Instant) {
        if let Some(last) = self.last_sent_at.replace(now) {
            if self.intervals.len() == INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(now - last);
        }
    }

    /// Later messages that are expected to be sent within `slack`.
    fn bundles_in(&self, slack: Duration) -> u8 {
        let longest = self.intervals.iter().max().filter(|_| self.intervals.len() == INTERVALS);
        longest.map_or(0, |&longest| times(slack, longest))
    }

    /// The transmissions of the next unit: one more or less by lot, so that their mean is what is wanted.
    fn draw(&mut self, wanted: &Wanted) -> u8 {
        self.carry += wanted.share_of_one_more;
        let has_one_more = self.carry >= 1.0;
        self.carry -= f64::from(u8::from(has_one_more));
        wanted.transmissions + u8::from(has_one_more)
    }

    /// A deadline can be missed with the probability `least` at best, and may with `late`.
    fn judge(&mut self, least: f64, late: f64) {
        let was_infeasible = self.is_infeasible;
        self.is_infeasible = least > if was_infeasible { late } else { TOLERANCE * late };
        if self.is_infeasible && !was_infeasible {
            self.achievable = Some(1.0 - least);
        }
    }
}

/// The transmissions that leave what may be late.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Wanted {
    transmissions: u8,
    /// Of the units, the share that has one more.
    share_of_one_more: f64,
}

impl Wanted {
    /// If `p` is lost, and `late` may be late.
    fn of(p: f64, late: f64) -> Self {
        let (mut transmissions, mut left) = (1, p);
        while left * p > late && transmissions < MOST_TRANSMISSIONS - 1 {
            (transmissions, left) = (transmissions + 1, left * p);
        }
        let more = (left - late) / (left - left * p);
        let share_of_one_more = if left > late { more.min(1.0) } else { 0.0 };
        Self { transmissions, share_of_one_more }
    }

    fn mean(self) -> f64 {
        f64::from(self.transmissions) + self.share_of_one_more
    }
}

/// The chances of a unit.
struct Chances {
    p: f64,
    rounds: u8,
    bundles: u8,
    /// It would be late if it were sent now and not lost.
    is_late: bool,
}

impl Chances {
    /// The probability of being late that is wanted, or the least that the budget allows.
    fn least_late(&self, wanted: &Wanted, budget: Budget) -> f64 {
        if self.is_late {
            return 1.0;
        }
        let Budget { packets, bytes } = budget;
        // Retransmissions are no copies, and copies beside them are needed for as many units as are lost.
        let (sure, weight) = if self.rounds > 0 {
            (1.0 + f64::from(self.rounds), self.p.max(f64::MIN_POSITIVE))
        } else {
            (1.0, 1.0)
        };
        let bundled = if self.rounds > 0 { 0.0 } else { f64::from(self.bundles) };
        let missing = (wanted.mean() - sure).max(0.0);
        let alone = (missing - bundled).max(0.0).min(packets / weight);
        let copies = (missing.min(bundled) + alone).min(bytes / weight);
        if copies >= missing - 1e-9 {
            return mixed(self.p, wanted);
        }
        self.p.powf(sure + copies)
    }
}

/// The probability of loss that remains after the planned transmissions.
fn mixed(p: f64, wanted: &Wanted) -> f64 {
    let left = p.powi(wanted.transmissions.into());
    left * (1.0 - wanted.share_of_one_more * (1.0 - p))
}

impl Copies {
    /// So many copies, spread over most of `slack`, as timers are late; none without one.
    fn over(slack: Option<Duration>, count: u8) -> Self {
        let Some(slack) = slack.filter(|_| count > 0) else { return Self::default() };
        Self { count, spacing: slack * 15 / 16 / u32::from(count) }
    }
}

/// The time until a packet must be sent to be in time; `None` if it is over, or the round trip is not known: while all
/// units have copies, nothing measures it.
fn slack(now: Instant, due: Due, rtt: Option<RoundTrip>) -> Option<Duration> {
    let latest = now + rtt?.one_way();
    (latest <= due.at).then(|| due.at - latest)
}

/// Retransmissions by the probe timer within `slack`.
fn rounds_in(slack: Duration, rtt: RoundTrip) -> u8 {
    times(slack, rtt.timeout)
}

fn times(slack: Duration, each: Duration) -> u8 {
    let times = slack.as_nanos().checked_div(each.as_nanos()).unwrap_or(u128::MAX);
    u8::try_from(times).unwrap_or(u8::MAX)
}
