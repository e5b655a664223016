//! The acknowledgements of the receiver, and what a sender of a spurious retransmission could have known.
//!
//! An *answer* to a unit is any packet with an acknowledgement that the receiver sends after the unit
//! arrived. Its words are not looked into: an acknowledgement that has no room for a unit, or without
//! SACK no words for it, is an answer all the same.

use std::collections::VecDeque;

use rexmit_netsim::network::PacketId;
use smallvec::SmallVec;

use super::statistics::NeedlessStatistics;

/// The answers that are under way, and the repetitions of which it depends on them what they are.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// In the order in which they left.
    under_way: VecDeque<Answer>,
    /// How many were sent: the number of the next.
    sent: u64,
    /// Units that arrived after the last one that was sent.
    arrived_since: SmallVec<[u64; 2]>,
    /// The number of the latest of those that have arrived.
    last_arrived: Option<u64>,
    waiting: Vec<Waiting>,
    settled: NeedlessStatistics,
}

#[derive(Debug)]
struct Answer {
    number: u64,
    id: PacketId,
    /// How many of it are under way.
    instances: u32,
    has_arrived: bool,
    /// Those that it is the first answer to.
    units: SmallVec<[u64; 2]>,
}

/// The fate of the first ACK of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum FirstAnswer {
    /// It has not left.
    #[default]
    None,
    /// It has this number.
    UnderWay(u64),
    /// It had this number.
    Lost(u64),
    Arrived,
}

/// The fate of an ACK of these units.
pub(super) struct Told {
    pub(super) units: SmallVec<[u64; 2]>,
    pub(super) first: FirstAnswer,
}

/// A repetition that was sent while answers were under way that decide what it is.
#[derive(Debug)]
struct Waiting {
    /// The number of the first answer.
    first: u64,
    /// That of the first that was sent after the repetition.
    end: u64,
    /// Those of them that are under way.
    under_way: usize,
    is_first_lost: bool,
    /// A later one has arrived.
    has_later: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    Impatient,
    Crossed,
    Unanswered,
}

impl Answers {
    /// A unit arrives for the first time.
    pub(super) fn on_unit_arrived(&mut self, unit: u64) {
        self.arrived_since.push(unit);
    }

    /// The receiver sends an answer.
    pub(super) fn on_sent(&mut self, id: PacketId) -> Told {
        let (number, units) = (self.sent, std::mem::take(&mut self.arrived_since));
        self.sent += 1;
        let told = Told { units: units.clone(), first: FirstAnswer::UnderWay(number) };
        let answer = Answer { number, id, instances: 1, has_arrived: false, units };
        self.under_way.push_back(answer);
        told
    }

    /// There is one more of an answer.
    pub(super) fn on_doubled(&mut self, id: PacketId) {
        if let Some(place) = self.place(id) {
            self.under_way[place].instances += 1;
        }
    }

    /// A packet reaches its end, at the sender or before; returns the information, if it was an
    /// answer.
    pub(super) fn on_ended(&mut self, id: PacketId, has_arrived: bool) -> Option<Told> {
        let place = self.place(id)?;
        let answer = &mut self.under_way[place];
        let was_known = answer.has_arrived;
        answer.has_arrived |= has_arrived;
        answer.instances -= 1;
        let is_told = !was_known && (has_arrived || answer.instances == 0);
        let told = is_told.then(|| (answer.number, std::mem::take(&mut answer.units)));
        if answer.instances == 0 {
            self.under_way.remove(place);
        }
        let (number, units) = told?;
        if has_arrived {
            self.last_arrived = self.last_arrived.max(Some(number));
        }
        self.settle(number, has_arrived);
        let first = if has_arrived { FirstAnswer::Arrived } else { FirstAnswer::Lost(number) };
        Some(Told { units, first })
    }

    /// A unit is retransmitted that has arrived.
    pub(super) fn on_repetition(&mut self, first: FirstAnswer) {
        let (number, is_first_lost) = match first {
            FirstAnswer::None | FirstAnswer::Arrived => {
                return self.settled.count(Reason::Impatient);
            }
            FirstAnswer::UnderWay(number) => (number, false),
            FirstAnswer::Lost(number) => (number, true),
        };
        let has_later = self.last_arrived > Some(number);
        let is_open = |answer: &&Answer| answer.number >= number && !answer.has_arrived;
        let under_way = self.under_way.iter().filter(is_open).count();
        let end = self.sent;
        let waiting = Waiting { first: number, end, under_way, is_first_lost, has_later };
        match waiting.reason() {
            Some(reason) => self.settled.count(reason),
            None => self.waiting.push(waiting),
        }
    }

    /// Present knowledge, and knowledge if no packet under way were lost.
    pub(super) fn statistics(&self) -> NeedlessStatistics {
        let mut statistics = self.settled;
        for waiting in &self.waiting {
            let is_crossed = waiting.is_first_lost;
            *if is_crossed { &mut statistics.crossed } else { &mut statistics.impatient } += 1;
        }
        statistics
    }

    /// Answers under way, and repetitions that wait for them.
    pub(super) fn kept(&self) -> usize {
        self.under_way.len() + self.waiting.len()
    }

    fn place(&self, id: PacketId) -> Option<usize> {
        let place = self.under_way.partition_point(|answer| answer.id < id);
        self.under_way.get(place).filter(|answer| answer.id == id).map(|_| place)
    }

    /// Whether answer `number` arrives is known.
    fn settle(&mut self, number: u64, has_arrived: bool) {
        let Self { waiting, settled, .. } = self;
        waiting.retain_mut(|waiting| match waiting.on_ended(number, has_arrived) {
            Some(reason) => {
                settled.count(reason);
                false
            }
            None => true,
        });
    }
}

impl Waiting {
    fn on_ended(&mut self, number: u64, has_arrived: bool) -> Option<Reason> {
        if !(self.first..self.end).contains(&number) {
            return None;
        }
        self.under_way -= 1;
        match number == self.first {
            true if has_arrived => return Some(Reason::Impatient),
            true => self.is_first_lost = true,
            false => self.has_later |= has_arrived,
        }
        self.reason()
    }

    const fn reason(&self) -> Option<Reason> {
        match self {
            Self { is_first_lost: false, .. } => None,
            Self { has_later: true, .. } => Some(Reason::Crossed),
            Self { under_way: 0, .. } => Some(Reason::Unanswered),
            _ => None,
        }
    }
}

impl NeedlessStatistics {
    const fn count(&mut self, reason: Reason) {
        *match reason {
            Reason::Impatient => &mut self.impatient,
            Reason::Crossed => &mut self.crossed,
            Reason::Unanswered => &mut self.unanswered,
        } += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn needless(impatient: u64, crossed: u64, unanswered: u64) -> NeedlessStatistics {
        NeedlessStatistics { impatient, crossed, unanswered }
    }

    /// A unit arrives and `before` answers leave, of which some end as told (`+` arrived, `-` lost);
    /// it is retransmitted, one more answer leaves, and others end. What is said when it was sent, and at
    /// the end.
    fn course(
        before: u64,
        ends: &[(u64, char)],
        ends_after: &[(u64, char)],
    ) -> [NeedlessStatistics; 2] {
        let (mut answers, mut first) = (Answers::default(), FirstAnswer::None);
        let end = |answers: &mut Answers, first: &mut FirstAnswer, &(id, how): &(u64, char)| {
            let told = answers.on_ended(PacketId(id), how == '+').expect("it is an answer");
            if !told.units.is_empty() {
                *first = told.first;
            }
        };
        answers.on_unit_arrived(7);
        for id in 0..before {
            let told = answers.on_sent(PacketId(id));
            assert_eq!(told.units.len(), usize::from(id == 0));
            first = if id == 0 { told.first } else { first };
        }
        ends.iter().for_each(|one| end(&mut answers, &mut first, one));
        answers.on_repetition(first);
        let at_once = answers.statistics();
        answers.on_sent(PacketId(before));
        ends_after.iter().for_each(|one| end(&mut answers, &mut first, one));
        assert!(answers.waiting.is_empty(), "it is decided");
        [at_once, answers.statistics()]
    }

    #[test]
    fn who_does_not_wait_for_the_first_answer_is_impatient() {
        let impatient = [needless(1, 0, 0); 2];
        assert_eq!(course(0, &[], &[]), impatient);
        assert_eq!(course(1, &[], &[(0, '+')]), impatient);
        assert_eq!(course(1, &[(0, '+')], &[]), impatient);
        // The next is lost, before or after.
        assert_eq!(course(2, &[(1, '-')], &[(0, '+')]), impatient);
        assert_eq!(course(2, &[], &[(1, '-'), (0, '+')]), impatient);
        assert_eq!(course(2, &[], &[(1, '+'), (0, '+')]), impatient);
    }

    #[test]
    fn a_later_answer_may_cross_the_repetition() {
        let crossed = needless(0, 1, 0);
        assert_eq!(course(2, &[(0, '-')], &[(1, '+')]), [crossed; 2]);
        assert_eq!(course(3, &[(0, '-')], &[(1, '-'), (2, '+')]), [crossed; 2]);
        assert_eq!(course(2, &[(0, '-'), (1, '+')], &[]), [crossed; 2]);
        // The packet under way is lost on a later link.
        assert_eq!(course(2, &[], &[(0, '-'), (1, '+')]), [needless(1, 0, 0), crossed]);
        assert_eq!(course(2, &[(1, '+')], &[(0, '-')]), [needless(1, 0, 0), crossed]);
    }

    #[test]
    fn without_an_answer_nobody_can_know() {
        let unanswered = needless(0, 0, 1);
        assert_eq!(course(1, &[(0, '-')], &[(1, '+')]), [unanswered; 2]);
        assert_eq!(course(2, &[(0, '-'), (1, '-')], &[(2, '+')]), [unanswered; 2]);
        let later = [needless(0, 1, 0), unanswered];
        assert_eq!(course(2, &[(0, '-')], &[(2, '+'), (1, '-')]), later);
        assert_eq!(course(1, &[], &[(1, '+'), (0, '-')]), [needless(1, 0, 0), unanswered]);
    }

    #[test]
    fn of_a_doubled_answer_one_may_be_lost() {
        for ends in [[false, true], [true, false]] {
            let mut answers = Answers::default();
            answers.on_unit_arrived(7);
            let told = answers.on_sent(PacketId(0));
            answers.on_doubled(PacketId(0));
            answers.on_repetition(told.first);
            let told = ends.map(|has_arrived| answers.on_ended(PacketId(0), has_arrived));
            let [told] = told.into_iter().flatten().collect::<Vec<_>>().try_into().ok().unwrap();
            assert_eq!((told.first, &told.units[..]), (FirstAnswer::Arrived, &[7][..]));
            assert_eq!((answers.statistics(), answers.kept()), (needless(1, 0, 0), 0));
        }
    }
}
