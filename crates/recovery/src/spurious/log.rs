//! What was sent more than once, and why: what a duplicate report is compared with.
//!
//! A receiver that reports a unit as a duplicate has received two copies, so the judgement that
//! made the sender repeat it was wrong. The log remembers which packets were judged lost; a
//! duplicate report for a unit clears the oldest such judgement about it. Copies that were sent
//! though nothing was judged lost are remembered, too, and cleared first: a report that one of them
//! explains is no sign of a wrong judgement.

use std::collections::BTreeMap;

use rexmit_core::trace::SendCause;

use super::events::EventId;
use super::karn::FirstCopies;
use crate::PacketNumber;

/// How many copies are remembered.
pub const LOG_CAPACITY: usize = 1024;

/// What left again, by unit and by the packet that was judged lost.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetransmissionLog {
    copies: BTreeMap<(u64, PacketNumber), Copy>,
    /// Of units up to this one something may have been dropped.
    dropped_through: u64,
    /// Round trips of what was judged lost once.
    pub(crate) first_copies: FirstCopies,
}

#[derive(Clone, Copy, Debug)]
struct Copy {
    cause: SendCause,
    /// The event that it left in, unless that is forgotten.
    event: Option<EventId>,
    /// Missing reports of the unit, and one, when it was acknowledged; zero before.
    needed: u16,
}

/// What explains a duplicate report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Explained {
    /// The packet that was judged lost, or, of a copy sent on purpose, its own.
    pub(crate) packet: PacketNumber,
    pub(crate) cause: SendCause,
    pub(crate) event: Option<EventId>,
    pub(crate) needed: u16,
}

/// Whether a copy left though nobody had judged its unit lost.
const fn is_on_purpose(cause: SendCause) -> bool {
    matches!(cause, SendCause::Redundant | SendCause::Bundled | SendCause::WindowProbe)
}

impl RetransmissionLog {
    /// `unit`, last sent in `packet`, left again because of `cause`, in `event`. Beyond
    /// [`LOG_CAPACITY`] the copy of the lowest unit is dropped; returns the event of that.
    pub(crate) fn on_retransmitted(
        &mut self,
        (unit, packet): (u64, PacketNumber),
        cause: SendCause,
        event: Option<EventId>,
    ) -> Option<EventId> {
        let mut dropped = None;
        if self.copies.len() == LOG_CAPACITY
            && let Some(((unit, _), copy)) = self.copies.pop_first()
        {
            self.dropped_through = self.dropped_through.max(unit);
            dropped = copy.event;
        }
        self.copies.insert((unit, packet), Copy { cause, event, needed: 0 });
        dropped
    }

    /// `packet` carries a copy of `unit` beside new data. As
    /// [`on_retransmitted`](Self::on_retransmitted).
    pub(crate) fn on_copied(&mut self, unit: u64, packet: PacketNumber) -> Option<EventId> {
        self.on_retransmitted((unit, packet), SendCause::Redundant, None)
    }

    /// `unit` was acknowledged, and a loss threshold of `needed` would have waited for it.
    pub(crate) fn on_late(&mut self, unit: u64, needed: u16) {
        if let Some((_, copy)) = self.copies.range_mut(of_unit(unit)).next_back() {
            copy.needed = needed;
        }
    }

    /// The receiver reports `unit` as a duplicate. `None` if nothing in the log explains it.
    pub(crate) fn on_duplicate_report(&mut self, unit: u64) -> Option<Explained> {
        let mut known = self.copies.range(of_unit(unit));
        let first = known.clone().find(|(_, copy)| is_on_purpose(copy.cause));
        let (&key, &Copy { cause, event, needed }) = first.or_else(|| known.next())?;
        self.copies.remove(&key);
        Some(Explained { packet: key.1, cause, event, needed })
    }

    /// Whether a copy of `unit` would still be in the log.
    pub(crate) const fn remembers(&self, unit: u64) -> bool {
        unit > self.dropped_through
    }

    /// A new event of `path` begins: copies of older ones up to `cumulative` no longer belong to
    /// any.
    pub(crate) fn forget_events(&mut self, path: u8, cumulative: u64) {
        let passed = self.copies.range_mut(..=(cumulative, PacketNumber(u64::MAX)));
        for (_, copy) in passed {
            copy.event = copy.event.filter(|event| event.path != path);
        }
    }

    /// Drops everything about units up to `unit`, and all memory.
    pub(crate) fn release_memory(&mut self, unit: u64) {
        *self = Self { dropped_through: unit, ..Self::default() };
    }
}

const fn of_unit(unit: u64) -> std::ops::RangeInclusive<(u64, PacketNumber)> {
    (unit, PacketNumber(0))..=(unit, PacketNumber(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u32) -> Option<EventId> {
        Some(EventId { path: 0, number })
    }

    fn report(log: &mut RetransmissionLog, unit: u64) -> Option<(u64, SendCause)> {
        log.on_duplicate_report(unit).map(|told| (told.packet.0, told.cause))
    }

    #[test]
    fn each_report_clears_the_oldest_judgement_once() {
        let mut log = RetransmissionLog::default();
        log.on_retransmitted((5, PacketNumber(1)), SendCause::FastRetransmit, event(1));
        log.on_retransmitted((5, PacketNumber(9)), SendCause::Timeout, event(2));
        log.on_retransmitted((6, PacketNumber(2)), SendCause::Timeout, event(2));
        assert_eq!(report(&mut log, 5), Some((1, SendCause::FastRetransmit)));
        assert_eq!(report(&mut log, 5), Some((9, SendCause::Timeout)));
        assert_eq!(report(&mut log, 5), None);
    }

    #[test]
    fn copies_sent_on_purpose_explain_as_many_reports() {
        let mut log = RetransmissionLog::default();
        log.on_retransmitted((5, PacketNumber(1)), SendCause::Timeout, event(1));
        log.on_copied(5, PacketNumber(2));
        log.on_retransmitted((5, PacketNumber(3)), SendCause::Bundled, None);
        let causes = [(); 4].map(|()| report(&mut log, 5).map(|(_, cause)| cause));
        let want = [SendCause::Redundant, SendCause::Bundled, SendCause::Timeout].map(Some);
        assert_eq!(causes, [want[0], want[1], want[2], None]);
    }

    #[test]
    fn a_new_event_takes_what_is_passed_from_older_ones_of_its_path() {
        let mut log = RetransmissionLog::default();
        let of_other = Some(EventId { path: 1, number: 9 });
        for (unit, event) in [(5, event(1)), (6, of_other), (7, event(2)), (8, event(2))] {
            log.on_retransmitted((unit, PacketNumber(unit)), SendCause::Timeout, event);
        }
        log.forget_events(0, 7);
        let events = [5, 6, 7, 8].map(|unit| log.on_duplicate_report(unit).expect("known").event);
        assert_eq!(events, [None, of_other, None, event(2)], "all still count as needless");
    }

    #[test]
    fn memory_is_bounded_and_what_is_dropped_is_known_to_be() {
        let mut log = RetransmissionLog::default();
        let last = 10 * LOG_CAPACITY as u64;
        for unit in 1..=last {
            log.on_retransmitted((unit, PacketNumber(unit)), SendCause::Timeout, None);
        }
        assert_eq!(log.copies.len(), LOG_CAPACITY);
        let oldest = last - LOG_CAPACITY as u64;
        assert!(!log.remembers(oldest) && log.remembers(oldest + 1));
        assert!(log.on_duplicate_report(last).is_some());
    }
}
