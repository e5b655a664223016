//! Tracks the ACKs of the receiver, to classify spurious retransmissions by the information that
//! the sender could have had.
//!
//! An *answer* to a unit is any packet with an acknowledgement that the receiver sends after the
//! unit arrived. Its content is not evaluated: a packet whose acknowledgement has no room for the
//! unit, or cannot express it without SACK, is an answer, too.

use std::collections::VecDeque;

use rexmit_netsim::network::PacketId;
use smallvec::SmallVec;

use super::statistics::SpuriousClasses;

/// The answers in flight, and the spurious retransmissions whose classification depends on them.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The answers in flight, in the order of sending.
    under_way: VecDeque<Answer>,
    /// Number of answers sent, which is the number of the next one.
    sent: u64,
    /// Units that arrived after the last answer was sent.
    arrived_since: SmallVec<[u64; 2]>,
    /// The number of the latest answer that arrived.
    last_arrived: Option<u64>,
    waiting: Vec<Waiting>,
    settled: SpuriousClasses,
}

#[derive(Debug)]
struct Answer {
    number: u64,
    id: PacketId,
    /// Number of copies of this packet in flight.
    instances: u32,
    has_arrived: bool,
    /// The units to which it is the first answer.
    units: SmallVec<[u64; 2]>,
}

/// The state of the first answer to a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum FirstAnswer {
    /// No answer was sent yet.
    #[default]
    None,
    /// In flight; its number.
    UnderWay(u64),
    /// Lost; its number.
    Lost(u64),
    Arrived,
}

/// Whether an answer arrived, and the units to which it was the first one.
pub(super) struct Told {
    pub(super) units: SmallVec<[u64; 2]>,
    pub(super) first: FirstAnswer,
}

/// A spurious retransmission whose classification depends on answers that were in flight when it
/// was sent.
#[derive(Debug)]
struct Waiting {
    /// The number of the first answer.
    first: u64,
    /// The number of the first answer sent after the retransmission.
    end: u64,
    /// Number of answers in this range that are in flight.
    under_way: usize,
    is_first_lost: bool,
    /// Whether a later answer has arrived.
    has_later: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    Premature,
    Crossed,
    Unacknowledged,
}

impl Answers {
    /// Records that a unit arrives for the first time.
    pub(super) fn on_unit_arrived(&mut self, unit: u64) {
        self.arrived_since.push(unit);
    }

    /// Records that the receiver sends an answer.
    pub(super) fn on_sent(&mut self, id: PacketId) -> Told {
        let (number, units) = (self.sent, std::mem::take(&mut self.arrived_since));
        self.sent += 1;
        let told = Told { units: units.clone(), first: FirstAnswer::UnderWay(number) };
        let answer = Answer { number, id, instances: 1, has_arrived: false, units };
        self.under_way.push_back(answer);
        told
    }

    /// Records that the network duplicates an answer.
    pub(super) fn on_duplicated(&mut self, id: PacketId) {
        if let Some(place) = self.place(id) {
            self.under_way[place].instances += 1;
        }
    }

    /// Records that a packet arrives at the sender or is dropped. Returns the outcome if the packet
    /// was an answer.
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

    /// Records the retransmission of a unit that has already arrived.
    pub(super) fn on_repetition(&mut self, first: FirstAnswer) {
        let (number, is_first_lost) = match first {
            FirstAnswer::None | FirstAnswer::Arrived => {
                return self.settled.count(Reason::Premature);
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

    /// The statistics so far, as if no packet in flight were lost.
    pub(super) fn statistics(&self) -> SpuriousClasses {
        let mut statistics = self.settled;
        for waiting in &self.waiting {
            let is_crossed = waiting.is_first_lost;
            *if is_crossed { &mut statistics.crossed } else { &mut statistics.premature } += 1;
        }
        statistics
    }

    /// The number of answers in flight and of unclassified retransmissions.
    pub(super) fn kept(&self) -> usize {
        self.under_way.len() + self.waiting.len()
    }

    fn place(&self, id: PacketId) -> Option<usize> {
        let place = self.under_way.partition_point(|answer| answer.id < id);
        self.under_way.get(place).filter(|answer| answer.id == id).map(|_| place)
    }

    /// Records whether answer `number` arrived.
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
            true if has_arrived => return Some(Reason::Premature),
            true => self.is_first_lost = true,
            false => self.has_later |= has_arrived,
        }
        self.reason()
    }

    const fn reason(&self) -> Option<Reason> {
        match self {
            Self { is_first_lost: false, .. } => None,
            Self { has_later: true, .. } => Some(Reason::Crossed),
            Self { under_way: 0, .. } => Some(Reason::Unacknowledged),
            _ => None,
        }
    }
}

impl SpuriousClasses {
    const fn count(&mut self, reason: Reason) {
        *match reason {
            Reason::Premature => &mut self.premature,
            Reason::Crossed => &mut self.crossed,
            Reason::Unacknowledged => &mut self.unacknowledged,
        } += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn classes(premature: u64, crossed: u64, unacknowledged: u64) -> SpuriousClasses {
        SpuriousClasses { premature, crossed, unacknowledged }
    }

    /// A unit arrives, and `before` answers are sent, some of which end as given (`+` arrived, `-` lost). The unit is
    /// retransmitted, one more answer is sent, and the other answers end. Returns the statistics after the
    /// retransmission, and at the end.
    fn course(
        before: u64,
        ends: &[(u64, char)],
        ends_after: &[(u64, char)],
    ) -> [SpuriousClasses; 2] {
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
    fn a_retransmission_before_the_first_ack_is_premature() {
        let premature = [classes(1, 0, 0); 2];
        assert_eq!(course(0, &[], &[]), premature);
        assert_eq!(course(1, &[], &[(0, '+')]), premature);
        assert_eq!(course(1, &[(0, '+')], &[]), premature);
        // The next is lost, before or after.
        assert_eq!(course(2, &[(1, '-')], &[(0, '+')]), premature);
        assert_eq!(course(2, &[], &[(1, '-'), (0, '+')]), premature);
        assert_eq!(course(2, &[], &[(1, '+'), (0, '+')]), premature);
    }

    #[test]
    fn a_later_ack_may_cross_the_retransmission() {
        let crossed = classes(0, 1, 0);
        assert_eq!(course(2, &[(0, '-')], &[(1, '+')]), [crossed; 2]);
        assert_eq!(course(3, &[(0, '-')], &[(1, '-'), (2, '+')]), [crossed; 2]);
        assert_eq!(course(2, &[(0, '-'), (1, '+')], &[]), [crossed; 2]);
        // The packet in flight is lost on a later link.
        assert_eq!(course(2, &[], &[(0, '-'), (1, '+')]), [classes(1, 0, 0), crossed]);
        assert_eq!(course(2, &[(1, '+')], &[(0, '-')]), [classes(1, 0, 0), crossed]);
    }

    #[test]
    fn without_an_ack_the_sender_cannot_distinguish_losses() {
        let unacknowledged = classes(0, 0, 1);
        assert_eq!(course(1, &[(0, '-')], &[(1, '+')]), [unacknowledged; 2]);
        assert_eq!(course(2, &[(0, '-'), (1, '-')], &[(2, '+')]), [unacknowledged; 2]);
        let later = [classes(0, 1, 0), unacknowledged];
        assert_eq!(course(2, &[(0, '-')], &[(2, '+'), (1, '-')]), later);
        assert_eq!(course(1, &[], &[(1, '+'), (0, '-')]), [classes(1, 0, 0), unacknowledged]);
    }

    #[test]
    fn one_of_two_copies_of_an_ack_may_be_lost() {
        for ends in [[false, true], [true, false]] {
            let mut answers = Answers::default();
            answers.on_unit_arrived(7);
            let told = answers.on_sent(PacketId(0));
            answers.on_duplicated(PacketId(0));
            answers.on_repetition(told.first);
            let told = ends.map(|has_arrived| answers.on_ended(PacketId(0), has_arrived));
            let [told] = told.into_iter().flatten().collect::<Vec<_>>().try_into().ok().unwrap();
            assert_eq!((told.first, &told.units[..]), (FirstAnswer::Arrived, &[7][..]));
            assert_eq!((answers.statistics(), answers.kept()), (classes(1, 0, 0), 0));
        }
    }
}
