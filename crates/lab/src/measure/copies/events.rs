//! Retransmission events: the data that the sender declared lost at one time, whether it was lost,
//! and whether the sender detected that it was not.

use std::collections::VecDeque;

use rexmit_core::trace::SendCause;

use super::statistics::{EventStatistics, KindStatistics};

/// The events of a sender in their order, beginning with the oldest one whose outcome is not final.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    first: u64,
    kept: VecDeque<Event>,
    /// For each path, the number of the latest event, if further copies can belong to it.
    latest: Vec<Option<u64>>,
    settled: EventStatistics,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    kind: SendCause,
    /// Whether further copies can belong to it, and it can still be detected as spurious.
    is_open: bool,
    /// Number of copies not yet known to be necessary or spurious.
    unjudged: u32,
    /// Whether a copy was necessary.
    has_lost: bool,
    /// Whether the sender has detected it as spurious.
    is_told: bool,
}

impl Events {
    /// Records that an event of `path` begins.
    pub(super) fn begin(&mut self, path: u8, kind: SendCause) {
        self.close(path);
        let path = usize::from(path);
        self.latest.resize(self.latest.len().max(path + 1), None);
        self.latest[path] = Some(self.first + self.kept.len() as u64);
        self.kept.push_back(Event {
            kind,
            is_open: true,
            unjudged: 0,
            has_lost: false,
            is_told: false,
        });
        self.forget_settled();
    }

    /// Records that the sender detects the latest event of `path` as spurious.
    pub(super) fn on_told(&mut self, path: u8) {
        if let Some(event) = self.latest(path).and_then(|number| self.event(number)) {
            event.is_told = true;
        }
        self.close(path);
    }

    /// Records that data sent over `path` is retransmitted because of `cause`; returns the number
    /// of the event.
    pub(super) fn on_copy(&mut self, path: u8, cause: SendCause) -> Option<u64> {
        let number = self.latest(path)?;
        let event = self.event(number).filter(|event| event.kind == cause)?;
        event.unjudged += 1;
        Some(number)
    }

    /// Records whether a copy of event `number` was necessary.
    pub(super) fn on_judged(&mut self, number: u64, was_needed: bool) {
        if let Some(event) = self.event(number) {
            event.unjudged -= 1;
            event.has_lost |= was_needed;
        }
    }

    /// The statistics of all events; open events count with their present state.
    pub(super) fn statistics(&self) -> EventStatistics {
        let mut statistics = self.settled;
        self.kept.iter().for_each(|event| event.count(&mut statistics));
        statistics
    }

    /// Removes the first events whose outcome is final.
    pub(super) fn forget_settled(&mut self) {
        while let Some(event) = self.kept.front().filter(|event| event.is_settled()) {
            event.count(&mut self.settled);
            self.kept.pop_front();
            self.first += 1;
        }
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    fn latest(&self, path: u8) -> Option<u64> {
        self.latest.get(usize::from(path)).copied().flatten()
    }

    fn close(&mut self, path: u8) {
        if let Some(latest) = self.latest.get_mut(usize::from(path)).and_then(Option::take)
            && let Some(event) = self.event(latest)
        {
            event.is_open = false;
        }
    }

    fn event(&mut self, number: u64) -> Option<&mut Event> {
        self.kept.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

impl Event {
    const fn is_settled(&self) -> bool {
        !self.is_open && self.unjudged == 0
    }

    fn count(&self, statistics: &mut EventStatistics) {
        let KindStatistics { events, spurious, detected, mistaken } = match self.kind {
            SendCause::Timeout => &mut statistics.timeouts,
            _ => &mut statistics.fast_retransmits,
        };
        *events += 1;
        *spurious += u64::from(!self.has_lost);
        *detected += u64::from(!self.has_lost && self.is_told);
        *mistaken += u64::from(self.has_lost && self.is_told);
    }
}
