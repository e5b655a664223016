//! Retransmissions that were not needed.
//!
//! A receiver that reports a unit as a duplicate has received two copies, so the judgement that
//! made the sender repeat it was wrong. The log remembers which packets were judged lost; a
//! duplicate report for a unit clears the oldest such judgement about it. Copies that were sent on
//! purpose are remembered, too: a report that one of them explains is no sign of anything.

use std::collections::BTreeMap;

use rexmit_core::trace::SendCause;

use crate::PacketNumber;

/// How many judgements are remembered.
pub const LOG_CAPACITY: usize = 256;

/// The judgements that led to retransmissions, by unit.
#[derive(Clone, Debug, Default)]
pub struct RetransmissionLog {
    judged: BTreeMap<(u64, PacketNumber), SendCause>,
}

impl RetransmissionLog {
    /// `unit`, last sent in `packet`, was judged lost because of `cause` and left again.
    /// Beyond [`LOG_CAPACITY`] the judgement about the lowest unit is dropped.
    pub fn on_retransmitted(&mut self, unit: u64, packet: PacketNumber, cause: SendCause) {
        if self.judged.len() == LOG_CAPACITY {
            self.judged.pop_first();
        }
        self.judged.insert((unit, packet), cause);
    }

    /// `packet` carries a copy of `unit` beside new data.
    pub fn on_copied(&mut self, unit: u64, packet: PacketNumber) {
        self.on_retransmitted(unit, packet, SendCause::Redundant);
    }

    /// The receiver reports `unit` as a duplicate: the packet wrongly judged lost and why it was,
    /// if this is known, and no copy sent on purpose explains the report.
    pub fn on_duplicate_report(&mut self, unit: u64) -> Option<(PacketNumber, SendCause)> {
        let of_unit = (unit, PacketNumber(0))..=(unit, PacketNumber(u64::MAX));
        let is_copy = |(_, cause): &(_, &SendCause)| **cause == SendCause::Redundant;
        let mut known = self.judged.range(of_unit);
        let first = known.clone().find(is_copy).or_else(|| known.next());
        let (key, cause) = first.map(|(&key, &cause)| (key, cause))?;
        self.judged.remove(&key);
        (cause != SendCause::Redundant).then_some((key.1, cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_report_clears_the_oldest_judgement_once() {
        let mut log = RetransmissionLog::default();
        log.on_retransmitted(5, PacketNumber(1), SendCause::FastRetransmit);
        log.on_retransmitted(5, PacketNumber(9), SendCause::Timeout);
        log.on_retransmitted(6, PacketNumber(2), SendCause::Timeout);
        let report = |log: &mut RetransmissionLog| log.on_duplicate_report(5);
        assert_eq!(report(&mut log), Some((PacketNumber(1), SendCause::FastRetransmit)));
        assert_eq!(report(&mut log), Some((PacketNumber(9), SendCause::Timeout)));
        assert_eq!(report(&mut log), None);
    }

    #[test]
    fn copies_sent_on_purpose_explain_as_many_reports() {
        let mut log = RetransmissionLog::default();
        log.on_copied(5, PacketNumber(2));
        log.on_copied(5, PacketNumber(3));
        log.on_retransmitted(5, PacketNumber(1), SendCause::Timeout);
        let reports = [(); 4].map(|()| log.on_duplicate_report(5));
        assert_eq!(reports, [None, None, Some((PacketNumber(1), SendCause::Timeout)), None]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = RetransmissionLog::default();
        for unit in 0..10_000 {
            log.on_retransmitted(unit, PacketNumber(unit), SendCause::Timeout);
        }
        assert_eq!(log.judged.len(), LOG_CAPACITY);
        assert!(log.on_duplicate_report(9_999).is_some());
    }
}
