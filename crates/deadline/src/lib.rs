//! The planner: how often a unit with a deadline is sent, and when, so that it arrives in time with the probability that the
//! application asks for, at the least cost.
//!
//! Of the share p of packets that are lost, n transmissions leave pⁿ: a unit that may be late with probability ε needs n
//! of them, the least with pⁿ ≤ ε, or one fewer by lot, so that the mean is ε. If losses come in bursts, a transmission soon after a lost
//! one is lost more often (`losses`): n are needed that are as far apart as the deadline allows. The cheapest are taken:
//!
//! 1. Retransmissions by the probe timer, while the deadline leaves a round trip for them: they are sent only if no ACK has
//!    come. Copies that are still missing are sent together with the last one. If the deadline leaves time for it, a retransmission
//!    waits for the ACK of the next message, which shows whether only an ACK was lost.
//! 2. Copies bundled with later messages that are sent in time: they cost bytes, but no packets.
//! 3. Copies in packets of their own, spread over the time that the deadline leaves. Each is sent when it is due if no copy was bundled
//!    instead, and with it all others that are due soon: a burst of messages has one packet of copies.
//!
//! Of an ordered stream, a late message makes those late that wait for it: ε is divided by how many are in flight.
//!
//! If a unit takes another path when it is sent again (`OtherPath`), that path's delay counts, and of those lost first, the share
//! that it loses, too, as measured: in a burst of losses on the first path, a copy over the other one arrives.
//!
//! # The fate of the first transmission
//! The share of losses is that of first transmissions. If no ACK came before a second transmission could be acknowledged, the first one
//! or its ACK is lost. An ACK that comes when that of the second is due distinguishes them: it reports a duplicate, or not. If
//! that is missing, too, the first transmission counts as lost with the share that was lost of those where it was not. (A count of units
//! acknowledged without a duplicate report would be too high, because these reports are lost, too.)
//!
//! `lab::bound::least_cost` has what is possible. The planner owns the units that have deadlines, the share of losses, and the time
//! between messages; it answers with numbers and times. Copies are those of `redundancy`, within the budget
//! (`thin.copy_budget`), and only while the stream is thin, no queue shows, and the window has room. Nothing is abandoned here.

mod config;
mod infeasible;
mod losses;
mod pauses;
mod schedule;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use rexmit_core::Instant;

pub use config::Deadline;
use infeasible::Infeasible;
use losses::Losses;
use pauses::Pauses;
use schedule::{Schedule, TimeLeft, Wanted};

/// The number of intervals of which the longest is taken as the time between messages.
const INTERVALS: usize = 8;
/// Plans aim at this part of the units that may be late: the share of losses is an estimate.
const AIM: f64 = 0.8;
/// The weight of a new unit in the mean number of units in flight.
const BESIDE_WEIGHT: f64 = 1.0 / 64.0;
/// Units whose first transmission or its ACK was lost, at most, of which the latest show which it was.
const SILENT: f64 = 256.0;

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
pub struct RoundTrip {
    /// There are few samples.
    pub is_cold: bool,
    /// No ACK comes sooner.
    pub least: Duration,
    /// The mean.
    pub mean: Duration,
    /// After how long without an ACK a packet is retransmitted; longer than any deadline if it is not.
    pub timeout: Duration,
}

impl RoundTrip {
    /// The most time that a packet takes: half of the mean round trip, and what the timeout adds for jitter.
    fn one_way(self) -> Duration {
        self.mean / 2 + self.timeout.saturating_sub(self.mean).min(self.mean / 2)
    }
}

/// The path that units take when they are sent again, if it is not that of the packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OtherPath {
    /// The round trip of that path.
    pub rtt: RoundTrip,
    /// The share that it loses of those packets whose data was just lost over the first path.
    pub loss_after_loss: f64,
}

/// The path of a packet, and the one that its units take when they are sent again.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ways {
    /// The round trip of the path of the packet.
    pub rtt: RoundTrip,
    /// The other path; `None` if they stay on the same.
    pub other: Option<OtherPath>,
}

impl From<RoundTrip> for Ways {
    fn from(rtt: RoundTrip) -> Self {
        Self { rtt, other: None }
    }
}

/// The budget of copies, as shares of new data; infinite is no limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// Packets that carry only copies, per packet with new data.
    pub packets: f64,
    /// Bytes of copies, per byte of new data.
    pub bytes: f64,
}

/// Copies of a unit that are sent in packets of their own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Copies {
    /// How many.
    pub count: u8,
    /// The time before each copy.
    pub spacing: Duration,
    /// How much earlier each may be sent, in a packet with other copies.
    pub early: Duration,
    /// Whether the copies take the other path, if there is one.
    pub is_elsewhere: bool,
}

/// A new unit with a deadline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NewPlanned {
    /// The number of the unit, the highest so far.
    pub unit: u64,
    /// When the unit must arrive.
    pub due: Due,
    /// Later data waits for it at the receiver.
    pub is_ordered: bool,
}

/// A unit with a deadline.
#[derive(Clone, Copy, Debug)]
struct Planned {
    unit: u64,
    due: Due,
    is_ordered: bool,
    /// The transmissions that it is to have in time, and those that it had.
    needed: u8,
    made: u8,
    /// The first transmission, the second, and the last one.
    sent_at: Instant,
    again_at: Option<Instant>,
    last_at: Instant,
    /// After how long the first transmission has no ACK any more, if the second one takes another path.
    first_timeout: Option<Duration>,
    /// The least time between two copies, bundled or not; `None` if the unit has no copies before a
    /// retransmission.
    copies_apart: Option<Duration>,
    outcome: Outcome,
}

/// The known fate of a unit's first transmission.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Outcome {
    /// The unit is not acknowledged.
    Awaited,
    /// The unit is acknowledged, and this is the probability that its first transmission was lost.
    Known(f64),
    /// The second transmission followed too soon to tell.
    Unknown,
}

impl Planned {
    /// Copies that are still to be sent, unless it is acknowledged before.
    const fn missing(&self) -> u8 {
        self.needed.saturating_sub(self.made)
    }

    fn on_repeated(&mut self, now: Instant) {
        self.made = self.made.saturating_add(1);
        self.again_at.get_or_insert(now);
        self.last_at = now;
    }
}

/// The planner of an association, which takes no memory until a unit has a deadline.
#[derive(Debug, Default)]
pub struct Planner(Option<Box<Plans>>);

#[derive(Debug, Default)]
struct Plans {
    /// Ascending; those that are acknowledged in order are dropped.
    units: VecDeque<Planned>,
    losses: Losses,
    /// First transmissions without an ACK of which it is known, of the latest ones, and those of them that were lost.
    silent: f64,
    silent_lost: f64,
    /// When the last unit with a deadline was sent, and the times between the last of them.
    last_sent_at: Option<Instant>,
    intervals: VecDeque<Duration>,
    /// The mean number of units in flight when one is sent.
    beside: f64,
    /// The remainder of the lot that decides between n and n - 1 transmissions.
    carry: f64,
    infeasible: Infeasible,
    pauses: Pauses,
}

/// Events, and the decisions that follow.
impl Planner {
    /// Whether a unit that is not acknowledged in order has a deadline.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.0.as_ref().is_some_and(|plans| !plans.units.is_empty())
    }

    /// A copy of `unit` is sent.
    pub fn on_copied(&mut self, now: Instant, unit: u64) {
        if let Some(planned) = self.0.as_mut().and_then(|plans| plans.planned_mut(unit)) {
            planned.on_repeated(now);
        }
    }

    /// `unit` is acknowledged for the first time; `is_reported`: a duplicate of it, too; `rtt` is that of its last path. Returns when it was
    /// sent if it was sent again, and the ACK came before that could be answered.
    pub fn on_acked(
        &mut self,
        now: Instant,
        unit: u64,
        is_reported: bool,
        rtt: Option<RoundTrip>,
    ) -> Option<Instant> {
        let plans = self.0.as_mut()?;
        let of_silent = plans.lost_if_silent();
        let &Planned { sent_at, again_at, first_timeout, .. } = plans.planned(unit)?;
        let is_of_first = |rtt: RoundTrip, again: Instant| now - again < rtt.least;
        let is_in_time = |rtt: RoundTrip, again: Instant| now - again <= rtt.timeout;
        let outcome = match (again_at, rtt) {
            (None, _) => Outcome::Known(0.0),
            (Some(again), Some(rtt))
                if again - sent_at + rtt.least < first_timeout.unwrap_or(rtt.timeout) =>
            {
                Outcome::Unknown
            }
            (Some(again), Some(rtt)) if is_of_first(rtt, again) => Outcome::Known(0.0),
            (Some(again), Some(rtt)) if is_in_time(rtt, again) => {
                let is_lost = f64::from(u8::from(!is_reported));
                plans.note_silent(is_lost);
                Outcome::Known(is_lost)
            }
            // A duplicate may be one of two copies.
            (Some(_), _) => Outcome::Known(of_silent),
        };
        if let Some(planned) = plans.planned_mut(unit) {
            planned.outcome = outcome;
            let due_at = planned.due.at;
            if let Some(RoundTrip { least, .. }) = rtt {
                plans.pauses.on_arrived(now, now > due_at + least / 2, plans.losses.share());
            }
        }
        again_at.zip(rtt).and_then(|(again, rtt)| is_of_first(rtt, again).then_some(sent_at))
    }

    /// Everything up to `cumulative` is acknowledged.
    pub fn on_cumulative(&mut self, cumulative: u64) {
        let Some(plans) = &mut self.0 else { return };
        while plans.units.front().is_some_and(|first| first.unit <= cumulative)
            && let Some(first) = plans.units.pop_front()
        {
            match first.outcome {
                // It was abandoned, and may have been lost.
                Outcome::Awaited => plans.losses.on_fate(first.sent_at, plans.lost_if_silent()),
                Outcome::Known(fate) => plans.losses.on_fate(first.sent_at, fate),
                Outcome::Unknown => {}
            }
        }
    }

    /// Forgets all units, and keeps what was learned.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(|plans| plans.units.clear());
    }

    /// The probability with which the latest deadline can be met, if it cannot be as asked for and the one before could:
    /// once.
    pub fn take_infeasible(&mut self) -> Option<f64> {
        self.0.as_mut()?.infeasible.take()
    }

    /// `new`, the newest unit, is sent for the first time. Returns the copies that follow it in packets of their own, if none are
    /// bundled with later units.
    pub fn on_new(
        &mut self,
        now: Instant,
        new: NewPlanned,
        ways: Option<Ways>,
        budget: Budget,
    ) -> Copies {
        let plans = self.0.get_or_insert_default();
        let NewPlanned { unit, due, is_ordered } = new;
        plans.note_interval(now);
        let late = due.deadline.late();
        let late_of_stream = if is_ordered { late / (1.0 + plans.beside) } else { late };
        let (losses, are_bursty) = (plans.losses, plans.losses.are_bursty());
        let left = TimeLeft::of(now, due, ways);
        let is_elsewhere = left.is_some_and(|left| left.other_loss.is_some());
        let schedule = left.map(|left| Schedule { left, losses: &losses });
        let wanted = schedule.map_or(Wanted::ONE, |schedule| schedule.wanted(AIM * late_of_stream));
        let needed = plans.draw(&wanted);
        // Retransmissions are no copies. Of a new path's share of losses little is known, and more copies may fill the path.
        let most_copies = if plans.pauses.is_on(now) {
            0
        } else if plans.losses.is_assumed() {
            1
        } else {
            u8::MAX
        };
        let rounds = left.map_or(0, |left| left.rounds);
        let needed = needed.min(most_copies.saturating_add(rounds).saturating_add(1));
        // Bundled copies stay on the path of the first transmission, perhaps in the same burst of losses.
        let is_bundled = !(is_elsewhere && are_bursty);
        if ways.is_some_and(|ways| !ways.rtt.is_cold) {
            let slack = slack(now, due, ways.map(|ways| ways.rtt)).filter(|_| is_bundled);
            let bundles = slack.map_or(0, |slack| plans.bundles_in(slack));
            let least = schedule
                .map_or(1.0, |schedule| schedule.least_late(&wanted, f64::from(bundles), budget));
            plans.infeasible.judge(now, due.deadline, least * late / late_of_stream);
        }
        let of_copies = left.filter(|left| left.rounds == 0);
        let copies =
            of_copies.map_or(Copies::default(), |left| left.copies(needed - 1, are_bursty));
        let apart = if are_bursty { copies.spacing } else { Duration::ZERO };
        plans.units.push_back(Planned {
            unit,
            due,
            is_ordered,
            needed,
            made: 1,
            sent_at: now,
            again_at: None,
            last_at: now,
            first_timeout: ways.and_then(|ways| ways.other.map(|_| ways.rtt.timeout)),
            copies_apart: (of_copies.is_some() && is_bundled).then_some(apart),
            outcome: Outcome::Awaited,
        });
        copies
    }

    /// `unit` is retransmitted because no ACK came. Returns the copies that follow; `None` if it has no deadline.
    pub fn on_retransmitted(
        &mut self,
        now: Instant,
        unit: u64,
        ways: Option<Ways>,
    ) -> Option<Copies> {
        let plans = self.0.as_mut()?;
        let are_bursty = plans.losses.are_bursty();
        let planned = plans.planned_mut(unit)?;
        planned.on_repeated(now);
        let left = TimeLeft::of(now, planned.due, ways).filter(|left| left.rounds == 0);
        Some(left.map_or(Copies::default(), |left| left.copies(planned.missing(), are_bursty)))
    }

    /// Until when the retransmission of `unit`, whose ACK is late, waits for the ACK of a later one; `None` if it does not:
    /// that of an unordered unit, if as many rounds fit into the time after that as before.
    pub fn waits_until(&self, now: Instant, unit: u64, ways: Option<Ways>) -> Option<Instant> {
        let (plans, Ways { rtt, other }) = (self.0.as_ref()?, ways?);
        let planned = plans.planned(unit).filter(|planned| !planned.is_ordered)?;
        let again = other.map_or(rtt, |other| other.rtt);
        let slack = slack(now, planned.due, Some(again))?;
        let spare = slack - again.timeout * times(slack, again.timeout).into();
        let place = plans.units.partition_point(|other| other.unit <= unit);
        let mut later = plans.units.iter().skip(place);
        let next = match later.find(|other| other.sent_at > planned.last_at) {
            Some(acked) if acked.outcome != Outcome::Awaited => return None,
            Some(other) => other.sent_at,
            None => plans.last_sent_at? + plans.longest_interval()?,
        };
        let until = next + rtt.timeout;
        (until > now && until <= now + spare).then_some(until)
    }

    /// Whether a unit has copies missing that may be bundled.
    #[must_use]
    pub fn is_bundling(&self) -> bool {
        let is_missing =
            |planned: &Planned| planned.copies_apart.is_some() && planned.missing() > 0;
        self.0.as_ref().is_some_and(|plans| plans.units.iter().any(is_missing))
    }

    /// Whether a copy of `unit` is to be bundled with a message that is sent now.
    pub fn wants_bundled(&self, now: Instant, unit: u64, rtt: Option<RoundTrip>) -> bool {
        let planned = self.0.as_ref().and_then(|plans| plans.planned(unit));
        planned.is_some_and(|planned| {
            let apart = planned.copies_apart.filter(|_| planned.missing() > 0);
            apart.is_some_and(|apart| now - planned.last_at >= apart)
                && slack(now, planned.due, rtt).is_some()
        })
    }

    /// The copies of `unit` that are still to be sent; `None` if it has no deadline.
    pub fn missing(&self, unit: u64) -> Option<u8> {
        Some(self.0.as_ref()?.planned(unit)?.missing())
    }
}

impl Plans {
    fn planned(&self, unit: u64) -> Option<&Planned> {
        let place = self.units.binary_search_by_key(&unit, |planned| planned.unit).ok()?;
        self.units.get(place)
    }

    fn planned_mut(&mut self, unit: u64) -> Option<&mut Planned> {
        let place = self.units.binary_search_by_key(&unit, |planned| planned.unit).ok()?;
        self.units.get_mut(place)
    }

    /// Whether a unit was lost that had no ACK of its own.
    fn note_silent(&mut self, is_lost: f64) {
        self.silent += 1.0;
        self.silent_lost += is_lost;
        if self.silent > SILENT {
            (self.silent, self.silent_lost) = (self.silent / 2.0, self.silent_lost / 2.0);
        }
    }

    /// The probability that a unit without an ACK was lost: a half as long as nothing is known.
    fn lost_if_silent(&self) -> f64 {
        (self.silent_lost + 1.0) / (self.silent + 2.0)
    }

    fn note_interval(&mut self, now: Instant) {
        self.beside += (self.units.len() as f64 - self.beside) * BESIDE_WEIGHT;
        if let Some(last) = self.last_sent_at.replace(now) {
            if self.intervals.len() == INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(now - last);
        }
    }

    fn longest_interval(&self) -> Option<Duration> {
        self.intervals.iter().max().copied().filter(|_| self.intervals.len() == INTERVALS)
    }

    /// Later messages that are expected to be sent within `slack`.
    fn bundles_in(&self, slack: Duration) -> u8 {
        self.longest_interval().map_or(0, |longest| times(slack, longest))
    }

    /// The transmissions of the next unit: one more or less by lot, so that their mean is what is wanted.
    fn draw(&mut self, wanted: &Wanted) -> u8 {
        self.carry += wanted.share_of_one_more;
        let has_one_more = self.carry >= 1.0;
        self.carry -= f64::from(u8::from(has_one_more));
        wanted.transmissions + u8::from(has_one_more)
    }
}

/// The time until a packet must be sent to be in time: none if jitter may make it late, but a packet with the mean delay is in
/// time; `None` if that is late, too, or the round trip is not known.
fn slack(now: Instant, due: Due, rtt: Option<RoundTrip>) -> Option<Duration> {
    let rtt = rtt?;
    (now + rtt.mean / 2 <= due.at).then(|| due.at - (now + rtt.one_way()))
}

fn times(slack: Duration, each: Duration) -> u8 {
    let times = slack.as_nanos().checked_div(each.as_nanos()).unwrap_or(u128::MAX);
    u8::try_from(times).unwrap_or(u8::MAX)
}
