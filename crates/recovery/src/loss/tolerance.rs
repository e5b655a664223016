//! The reordering tolerated on each path before data is declared lost (RR-SCTP §4.3), and what the sender
//! learns of it.

use rexmit_core::Instant;

use super::evidence::{Evidence, TimeoutCost};
use crate::paths::PerPath;
use crate::spurious::Episode;
use crate::state::State;
use crate::{ReorderingState, SendCause};

/// The threshold of missing reports of each path.
#[derive(Debug)]
pub(crate) struct Tolerance {
    /// The threshold without evidence of reordering.
    standard: u8,
    /// The initial `pef`, in percent; `None`: the threshold is fixed.
    percentile: Option<u8>,
    /// The estimate of reordering, once there was any.
    paths: PerPath<Evidence>,
}

impl Tolerance {
    pub(super) fn new(standard: u8, percentile: Option<u8>) -> Self {
        Self { standard, percentile, paths: PerPath::default() }
    }

    /// Nothing is known of `path`.
    pub(super) fn renew_path(&mut self, path: u8) {
        self.paths.remove(path);
    }

    /// Whether the threshold follows what the path shows.
    #[inline]
    pub(super) const fn is_adaptive(&self) -> bool {
        self.percentile.is_some()
    }

    pub(super) fn has_evidence(&self, path: u8) -> bool {
        self.paths.get(path).is_some()
    }

    /// Reports, or acknowledged units above, that make a unit of `path` lost. With `is_first` one does, as
    /// long as nothing is known to the contrary; with `is_last` no further report is to be expected.
    pub(super) fn threshold(&self, path: u8, is_first: bool, is_last: bool) -> u16 {
        match self.paths.get(path) {
            None if is_first => 1,
            Some(evidence) if is_first => evidence.thin_threshold(),
            Some(evidence) if !is_last => evidence.threshold(),
            _ => u16::from(self.standard),
        }
    }

    /// The reordering tolerated on `path` now.
    pub(crate) fn reordering<P>(&self, path: u8, state: &State<P>) -> ReorderingState {
        let standard = u16::from(self.standard);
        match self.paths.get(path) {
            None => ReorderingState { missing_reports: standard, ..ReorderingState::default() },
            Some(evidence) => ReorderingState {
                missing_reports: evidence.threshold().min(most_reports(state)).max(standard),
                percentile: evidence.percentile(),
                extent: evidence.extent(),
            },
        }
    }

    fn learn(&mut self, path: u8, lesson: impl FnOnce(&mut Evidence)) {
        let (standard, Some(percentile)) = (self.standard, self.percentile) else { return };
        lesson(self.paths.get_or_insert_with(path, || Evidence::new(standard, percentile)));
    }

    /// A unit of `path` arrived that a threshold of `needed` would have waited for.
    pub(super) fn on_late(&mut self, path: u8, needed: u16) {
        self.learn(path, |evidence| evidence.on_late(needed));
    }

    /// A unit of `path` is declared lost. Without evidence of reordering there is nothing to weigh it against.
    pub(super) fn on_lost(&mut self, path: u8) {
        self.paths.get_mut(path).into_iter().for_each(|evidence| evidence.on_lost(1));
    }

    /// The original of a unit that was retransmitted because of `cause` in the latest episode had arrived; a
    /// threshold of `needed` would have waited for it, unless that is zero.
    pub(crate) fn on_report(&mut self, path: u8, cause: SendCause, needed: u16) {
        self.learn(path, |evidence| {
            if cause == SendCause::FastRetransmit {
                evidence.on_not_lost();
            }
            if needed > 0 {
                evidence.on_late(needed);
            }
        });
    }

    /// A unit of `path` was declared lost, and its original arrived before it was retransmitted.
    pub(crate) fn on_not_lost(&mut self, path: u8) {
        self.paths.get_mut(path).into_iter().for_each(Evidence::on_not_lost);
    }

    /// A spurious fast retransmit has cost, for as many round trips as it took to detect it and one more to
    /// return, what the window is short of.
    pub(crate) fn on_spurious<P>(
        &mut self,
        now: Instant,
        path: u8,
        episode: &Episode,
        state: &State<P>,
    ) {
        if episode.kind != SendCause::FastRetransmit {
            return;
        }
        let p = &state.paths[path];
        let packet = p.window.packet().max(1) as f64;
        let short = episode.before.window.cwnd().saturating_sub(p.window.cwnd()) as f64 / packet;
        let srtt = p.timer.rtt().srtt().unwrap_or_default().as_secs_f64();
        let since = now - episode.resent_at.unwrap_or(now);
        let round_trips = if srtt > 0.0 { (since.as_secs_f64() / srtt).max(1.0) } else { 1.0 };
        let cost = short * (round_trips + 1.0);
        self.learn(path, |evidence| evidence.on_spurious_retransmit(cost));
    }

    /// T3-rtx of `path` expired; a threshold that waits for reordering may be to blame. `needed`: the threshold
    /// that would have waited for the earliest unit so far.
    pub(super) fn on_timeout<P>(&mut self, path: u8, needed: u16, state: &State<P>) {
        let standard = u16::from(self.standard);
        let Some(evidence) = self.paths.get(path) else { return };
        let is_higher = evidence.threshold() > standard;
        let earliest = state.outstanding.unit(state.outstanding.on(path).earliest());
        let is_first = earliest.is_some_and(|unit| {
            unit.is_in_flight() && unit.is_first_transmission() && unit.path() == path
        });
        if !is_higher || !is_first || needed <= standard {
            return;
        }
        let p = &state.paths[path];
        let window = p.window.cwnd() as f64 / p.window.packet().max(1) as f64;
        let srtt = p.timer.rtt().srtt().unwrap_or(p.timer.rto()).as_secs_f64();
        let idle = if srtt > 0.0 { p.timer.rto().as_secs_f64() / srtt } else { 1.0 };
        let cost = TimeoutCost { window, idle };
        self.learn(path, |evidence| evidence.on_avoidable_timeout(cost));
    }

    /// So many units were delivered, over whichever paths: evidence grows older.
    pub(crate) fn on_delivered(&mut self, units: u64) {
        self.paths.iter_mut().for_each(|evidence| evidence.on_delivered(units));
    }

    /// The packets of `path` may take another way: the estimate of reordering counts less.
    pub(crate) fn age(&mut self, path: u8) {
        self.paths.get_mut(path).into_iter().for_each(Evidence::age);
    }

    /// The threshold of `path` and its percentile, if the threshold is another than the last time.
    #[inline]
    pub(crate) fn take_change(&mut self, path: u8) -> Option<(u16, f64)> {
        let evidence = self.paths.get_mut(path)?;
        let missing_reports = evidence.take_change()?;
        Some((missing_reports, evidence.percentile()))
    }
}

/// Reports that the oldest unit can get at most: the packets that were sent after it.
fn most_reports<P>(state: &State<P>) -> u16 {
    let outstanding = &state.outstanding;
    let oldest = outstanding.unit(outstanding.cumulative() + 1);
    let next = outstanding.packets().next_number().0;
    let newer = oldest.map_or(0, |unit| next.saturating_sub(unit.last().packet.0 + 1));
    if newer == 0 { u16::MAX } else { u16::try_from(newer).unwrap_or(u16::MAX) }
}

/// Whether no packet is left whose acknowledgement could report what is missing once more: none is in flight
/// that was sent after the newest that has arrived.
pub(super) fn is_last_report<P>(state: &State<P>) -> bool {
    let outstanding = &state.outstanding;
    let newest = outstanding.acknowledged().max().and_then(|unit| outstanding.unit(unit));
    newest.is_none_or(|unit| {
        let packets = outstanding.packets();
        !state.paths.numbers().any(|path| packets.has_in_flight_after(path, unit.last().packet))
    })
}
