//! The copies of one data unit, and which of them were spurious.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::SendCause;
use smallvec::SmallVec;

use super::answers::FirstAnswer;

/// A copy that was sent: the first transmission, a retransmission, or a redundant copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UnitCopy {
    /// The sender's number of its packet.
    pub(super) packet: u64,
    /// Number of retransmissions of the unit up to and including this copy.
    pub(super) retransmission: u32,
    pub(super) cause: SendCause,
    /// The number of the retransmission event to which it belongs.
    pub(super) event: Option<u64>,
    /// Whether the unit had already arrived.
    pub(super) had_arrived: bool,
    pub(super) fate: Fate,
}

/// The outcome of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    UnderWay,
    Arrived,
    Lost,
}

/// A data unit with an open outcome.
///
/// A copy is spurious if one that was sent before it arrives, even if later. So copies are
/// classified in the order of sending: a copy is necessary if all earlier ones were lost, and
/// spurious after the first one that arrives.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    /// Time of the first transmission; `None` if it was abandoned before.
    first_sent: Option<Instant>,
    has_arrived: bool,
    pub(super) first_answer: FirstAnswer,
    retransmissions: u32,
    /// The path of the last transmission, without redundant copies.
    path: u8,
    /// Unclassified copies in the order of sending.
    unjudged: SmallVec<[UnitCopy; 2]>,
    /// Whether a classified copy has arrived, so that all later ones are spurious.
    is_repeated_in_vain: bool,
}

impl Unit {
    /// The path of the last transmission.
    pub(super) const fn path(&self) -> u8 {
        self.path
    }

    /// Records that a copy is sent over `path`, in `event`. Returns the copy.
    pub(super) fn on_written(
        &mut self,
        now: Instant,
        (packet, path): (u64, u8),
        cause: SendCause,
        event: Option<u64>,
    ) -> UnitCopy {
        self.first_sent.get_or_insert(now);
        let is_retransmission = !matches!(cause, SendCause::New | SendCause::Redundant);
        self.retransmissions += u32::from(is_retransmission);
        let retransmission = self.retransmissions;
        if cause != SendCause::Redundant {
            self.path = path;
        }
        let (had_arrived, fate) = (self.has_arrived, Fate::UnderWay);
        let copy = UnitCopy { packet, retransmission, cause, event, had_arrived, fate };
        self.unjudged.push(copy);
        copy
    }

    /// Records the outcome of a packet with the unit. If it delivered the unit, returns the copy
    /// and the time since the first transmission.
    pub(super) fn on_ended(
        &mut self,
        packet: u64,
        arrived: Option<Instant>,
    ) -> Option<(UnitCopy, Duration)> {
        let copy = self.unjudged.iter_mut().find(|copy| copy.packet == packet)?;
        let Some(now) = arrived else {
            copy.fate = Fate::Lost;
            return None;
        };
        copy.fate = Fate::Arrived;
        let is_first = !std::mem::replace(&mut self.has_arrived, true);
        let latency = now - self.first_sent?;
        is_first.then_some((*copy, latency))
    }

    /// Classifies copies as far as possible; calls `on_judged` with each copy, and whether it was
    /// spurious.
    pub(super) fn judge(&mut self, mut on_judged: impl FnMut(&UnitCopy, bool)) {
        let mut judged = 0;
        for copy in &self.unjudged {
            match copy.fate {
                _ if self.is_repeated_in_vain => on_judged(copy, true),
                Fate::UnderWay => break,
                Fate::Arrived => {
                    self.is_repeated_in_vain = true;
                    on_judged(copy, false);
                }
                Fate::Lost => on_judged(copy, false),
            }
            judged += 1;
        }
        self.unjudged.drain(..judged);
    }

    /// Classifies the remaining copies, as if nothing in flight were lost.
    pub(super) fn judge_rest(&self, mut on_judged: impl FnMut(&UnitCopy, bool)) {
        let is_lost = |copy: &&UnitCopy| copy.fate == Fate::Lost;
        let needed = self.unjudged.iter().take_while(is_lost).count() + 1;
        self.unjudged.iter().enumerate().for_each(|(n, copy)| on_judged(copy, n >= needed));
    }

    pub(super) fn is_judged(&self) -> bool {
        self.unjudged.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies are sent in the order of packets from 0, and their packets end as given: `+` arrived, `-` lost.
    /// Returns the copy that delivered the unit, those found spurious, and those that would be at the end.
    fn course(causes: &[SendCause], ends: &[(u64, char)]) -> (Option<u64>, Vec<u64>, Vec<u64>) {
        let mut unit = Unit::default();
        for (packet, &cause) in (0..).zip(causes) {
            unit.on_written(Instant::from_millis(packet), (packet, 0), cause, None);
        }
        let (mut brought, mut spurious) = (None, Vec::new());
        for &(packet, end) in ends {
            let arrived = (end == '+').then(|| Instant::from_millis(100));
            if let Some((copy, latency)) = unit.on_ended(packet, arrived) {
                assert_eq!(latency, Duration::from_millis(100));
                assert_eq!(brought.replace(copy.packet), None, "a unit arrives once");
            }
            unit.judge(|copy, is_spurious| spurious.extend(is_spurious.then_some(copy.packet)));
        }
        let mut at_the_end = Vec::new();
        unit.judge_rest(|copy, is_spurious| {
            at_the_end.extend(is_spurious.then_some(copy.packet));
        });
        (brought, spurious, at_the_end)
    }

    #[test]
    fn a_copy_is_spurious_if_an_earlier_one_arrives_whenever_that_is() {
        use SendCause::{New, Timeout};
        let two = [New, Timeout];
        assert_eq!(course(&two, &[(0, '-'), (1, '+')]), (Some(1), vec![], vec![]));
        assert_eq!(course(&two, &[(0, '+'), (1, '+')]), (Some(0), vec![1], vec![]));
        // The later copy arrived first, but is spurious nevertheless.
        assert_eq!(course(&two, &[(1, '+')]), (Some(1), vec![], vec![1]));
        assert_eq!(course(&two, &[(1, '+'), (0, '+')]), (Some(1), vec![1], vec![]));
        // Lost itself, and needed or not.
        assert_eq!(course(&two, &[(1, '-'), (0, '+')]), (Some(0), vec![1], vec![]));
        assert_eq!(course(&two, &[(1, '-'), (0, '-')]), (None, vec![], vec![]));
        let three = [New, Timeout, Timeout];
        assert_eq!(course(&three, &[(0, '-')]), (None, vec![], vec![2]));
        assert_eq!(course(&three, &[(1, '+'), (0, '-')]), (Some(1), vec![2], vec![]));
        assert_eq!(course(&three, &[(1, '+'), (0, '+')]), (Some(1), vec![1, 2], vec![]));
    }

    #[test]
    fn redundant_copies_are_no_retransmissions() {
        use SendCause::{Bundled, New, Redundant, Timeout};
        let mut unit = Unit::default();
        let causes = [New, Redundant, Timeout, Redundant, Bundled];
        let numbers =
            causes.map(|cause| unit.on_written(Instant::ZERO, (0, 0), cause, None).retransmission);
        assert_eq!(numbers, [0, 0, 1, 1, 2]);
    }
}
