//! The reordering tolerated on each path before data is declared lost, and how it is estimated (RR-SCTP §4.3).

use crate::paths::PerPath;
use crate::spurious::Episode;
use crate::state::State;
use crate::{ReorderingState, SendCause};
use rexmit_core::Instant;

/// The adaptive threshold of missing reports of each path.
#[derive(Debug)]
pub(crate) struct Tolerance {
    /// The threshold without evidence of reordering.
    standard: u8,
    /// The initial `pef`, in percent.
    percentile: u8,
    /// The estimate of each path, created when reordering is first seen.
    paths: PerPath<Evidence>,
}

impl Tolerance {
    pub(super) fn new(standard: u8, percentile: u8) -> Self {
        Self { standard, percentile, paths: PerPath::default() }
    }

    pub(super) fn renew_path(&mut self, path: u8) {
        self.paths.remove(path);
    }

    /// The evidence of reordering on `path`; `None` if there is none.
    pub(super) fn on(&self, path: u8) -> Option<&Evidence> {
        self.paths.get(path)
    }

    /// The evidence of reordering on `path`, to add to it.
    pub(super) fn on_mut(&mut self, path: u8) -> &mut Evidence {
        let (standard, percentile) = (self.standard, self.percentile);
        self.paths.get_or_insert_with(path, || Evidence::new(standard, percentile))
    }

    /// Called when a unit of `path` is declared lost. Without evidence of reordering there is nothing to weigh it against.
    pub(super) fn on_lost(&mut self, path: u8) {
        self.paths.get_mut(path).into_iter().for_each(|evidence| evidence.on_lost(1));
    }

    /// Called when the original of a unit that was retransmitted because of `cause` in the latest episode had
    /// arrived; a threshold of `needed` would have waited for it, unless that is zero.
    pub(crate) fn on_report(&mut self, path: u8, cause: SendCause, needed: u16) {
        let evidence = self.on_mut(path);
        if cause == SendCause::FastRetransmit {
            evidence.on_not_lost();
        }
        if needed > 0 {
            evidence.on_late(needed);
        }
    }

    /// Called when a unit of `path` was declared lost, and its original arrived before it was retransmitted.
    pub(crate) fn on_not_lost(&mut self, path: u8) {
        self.paths.get_mut(path).into_iter().for_each(Evidence::on_not_lost);
    }

    /// Called when a fast retransmit proved spurious. Its cost is the shortfall of the window, for the round
    /// trips that detection took and one more to recover.
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
        let since = now - episode.retransmitted_at.unwrap_or(now);
        let round_trips = if srtt > 0.0 { (since.as_secs_f64() / srtt).max(1.0) } else { 1.0 };
        let cost = short * (round_trips + 1.0);
        self.on_mut(path).on_spurious_retransmit(cost);
    }

    /// Called when T3-rtx of `path` expires, perhaps because a high threshold delayed the detection.
    /// `needed`: the threshold that would have waited for the earliest unit so far.
    pub(super) fn on_timeout<P>(&mut self, path: u8, needed: u16, state: &State<P>) {
        let standard = u16::from(self.standard);
        let Some(evidence) = self.paths.get(path) else { return };
        let is_higher = evidence.threshold > standard;
        let earliest = state.outstanding.unit(state.outstanding.on(path).earliest);
        let is_first = earliest.is_some_and(|unit| {
            unit.is_in_flight() && unit.is_first_transmission() && unit.path == path
        });
        if !is_higher || !is_first || needed <= standard {
            return;
        }
        let p = &state.paths[path];
        let window = p.window.cwnd() as f64 / p.window.packet().max(1) as f64;
        let srtt = p.timer.rtt().srtt().unwrap_or(p.timer.rto()).as_secs_f64();
        let idle = if srtt > 0.0 { p.timer.rto().as_secs_f64() / srtt } else { 1.0 };
        self.on_mut(path).on_avoidable_timeout(window, idle);
    }

    /// Called when `units` units were delivered, over any path: evidence loses weight with the units delivered.
    pub(crate) fn on_delivered(&mut self, units: u64) {
        self.paths.iter_mut().for_each(|evidence| evidence.on_delivered(units));
    }

    /// Halves the weight of the estimate, because the packets of `path` may take another route.
    pub(crate) fn age(&mut self, path: u8) {
        self.paths.get_mut(path).into_iter().for_each(Evidence::age);
    }

    /// The threshold of `path` and its percentile, if the threshold has changed since the last call.
    #[inline]
    pub(crate) fn take_change(&mut self, path: u8) -> Option<(u16, f64)> {
        let evidence = self.paths.get_mut(path)?;
        let missing_reports = evidence.take_change()?;
        Some((missing_reports, evidence.percentile()))
    }
}

/// The most missing reports that the oldest unit can get: the number of packets sent after it; `u16::MAX` without any.
fn most_reports<P>(state: &State<P>) -> u16 {
    let outstanding = &state.outstanding;
    let oldest = outstanding.unit(outstanding.cumulative() + 1);
    let next = outstanding.packets().next_number().0;
    let newer = oldest.map_or(0, |unit| next.saturating_sub(unit.last().packet.0 + 1));
    if newer == 0 { u16::MAX } else { u16::try_from(newer).unwrap_or(u16::MAX) }
}

/// Whether no further report can come: no packet is in flight that was sent after the newest that has arrived.
pub(super) fn is_last_report<P>(state: &State<P>) -> bool {
    let outstanding = &state.outstanding;
    let newest = outstanding.acknowledged().max().and_then(|unit| outstanding.unit(unit));
    newest.is_none_or(|unit| {
        let packets = outstanding.packets();
        !state.paths.numbers().any(|path| packets.has_in_flight_after(path, unit.last().packet))
    })
}

/// The increase of `pef` for one spurious fast retransmit, in thousandths: 1 %, as in RR-TCP.
const STEP: u32 = 10;
/// Units delivered after which evidence counts half.
pub(crate) const AGE: u64 = 4096;
/// The initial weight of one observation; each ageing halves it.
const WEIGHT: u32 = 16;
/// Values below this have a bucket each.
const LINEAR: u16 = 32;
/// Values above this are counted as this.
const MAX: u16 = 4095;
const BUCKETS: usize = 144;

/// The reordering extents of a path's packets.
#[derive(Clone, Debug)]
struct Histogram([u32; BUCKETS]);

fn bucket_of(value: u16) -> usize {
    let value = value.min(MAX);
    if value < LINEAR {
        return value.into();
    }
    let octave = value.ilog2() - 5;
    let sixteenth = (value >> (octave + 1)) & 15;
    usize::from(LINEAR) + 16 * octave as usize + usize::from(sixteenth)
}

fn largest_in(bucket: usize) -> u16 {
    let Some(above) = bucket.checked_sub(LINEAR.into()) else { return bucket as u16 };
    let (octave, sixteenth) = (above / 16, above % 16);
    (((16 + sixteenth + 1) << (octave + 1)) - 1) as u16
}

impl Histogram {
    fn above(&self, value: u16) -> u64 {
        let from = bucket_of(value) + 1;
        self.0[from.min(BUCKETS)..].iter().map(|&count| u64::from(count)).sum()
    }

    /// The least value, at least `floor`, that at most `most` of the observations exceed.
    fn quantile(&self, floor: u16, most: u64) -> u16 {
        let (mut above, mut value) = (0, floor);
        for bucket in (bucket_of(floor) + 1..BUCKETS).rev() {
            above += u64::from(self.0[bucket]);
            if above > most {
                value = largest_in(bucket);
                break;
            }
        }
        value
    }
}

/// A loss threshold that follows the reordering of the path (RR-SCTP §4.3; RR-TCP: Zhang, Karp, Floyd, Peterson, ICNP 2003).
///
/// A unit that arrives after `crf` reports of it missing *needed* a threshold of `crf + 1`, the threshold being the
/// number of reports after which a unit is declared lost. The threshold is the percentile `pef` of a histogram of the
/// needed values that exceed the standard threshold. A retransmitted unit is entered only when a duplicate report
/// proves that its original arrived, and only if it was sent in the latest episode (the sender checks both).
///
/// `pef` rises by [`STEP`] when a fast retransmit proves spurious. It falls when a timeout occurs that the
/// standard threshold would have avoided, by as many steps as the timeout costs more than a spurious fast
/// retransmit. The cost of either is the number of packets that were not sent because of it.
///
/// The threshold is never below the standard one. If it exceeded the number of packets sent after a missing one, only a timeout
/// would detect the loss; so when no packet is in flight whose ACK could report the unit again, the standard threshold applies.
/// RR-SCTP bounds the threshold by the flight size minus one instead; this rule also works if ACKs are lost.
///
/// # Together with thin streams
/// With M4, the first report declares a unit of a thin stream lost, because loss is more probable than reordering. On a path
/// that reorders, a thin stream waits for more reports: the histogram then includes all values above one, and losses, as gaps
/// that waiting would not have closed. The thin threshold is the least value that at most `1 - pef` of all these gaps exceeded
/// by reordering. It is one without evidence or if losses prevail, and at most the standard threshold.
///
/// # Memory and age
/// The histogram has a fixed size: values up to 31 each by itself, then 16 per octave, so that a value is known to within 1/16,
/// and everything beyond 4095 as that. Every [`AGE`] units delivered halve the estimate, so that a path that no longer reorders
/// is trusted again; so does a spurious timeout when the first round trip after it is measured: the packets may have taken to
/// another path (RFC 4015 §3.6). Another address is another path, of which nothing is known.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    histogram: Histogram,
    /// Losses, with the same weight as the observations of the histogram.
    losses: u64,
    /// `pef`, in thousandths.
    percentile: u32,
    delivered: u64,
    /// The cost of the last spurious fast retransmit, in packets.
    cost_of_retransmit: Option<f64>,
    standard: u8,
    threshold: u16,
    thin_threshold: u16,
    /// The threshold that [`take_change`](Self::take_change) last returned.
    reported: u16,
}

impl Evidence {
    /// The state before any evidence: the threshold is `standard`, and the percentile of the histogram begins
    /// at `percentile` per cent.
    pub(crate) fn new(standard: u8, percentile: u8) -> Self {
        Self {
            histogram: Histogram([0; BUCKETS]),
            losses: 0,
            percentile: u32::from(percentile) * 10,
            delivered: 0,
            cost_of_retransmit: None,
            standard,
            threshold: standard.into(),
            thin_threshold: 1,
            reported: standard.into(),
        }
    }

    /// The number of missing reports, or of units acknowledged above, after which a unit is lost. `is_first`: one is enough
    /// without evidence (M4). `is_last`: no further report can come.
    pub(super) fn threshold(&self, is_first: bool, is_last: bool) -> u16 {
        match (is_first, is_last) {
            (true, _) => self.thin_threshold,
            (false, false) => self.threshold,
            (false, true) => self.standard.into(),
        }
    }

    pub(super) fn reordering<P>(&self, state: &State<P>) -> ReorderingState {
        ReorderingState {
            missing_reports: self.threshold.min(most_reports(state)).max(self.standard.into()),
            percentile: self.percentile(),
            extent: self.extent(),
        }
    }

    pub(crate) fn take_change(&mut self) -> Option<u16> {
        let was = std::mem::replace(&mut self.reported, self.threshold);
        (was != self.threshold).then_some(self.threshold)
    }

    pub(crate) fn percentile(&self) -> f64 {
        f64::from(self.percentile) / 1000.0
    }

    /// The largest threshold that any unit needed lately; zero if none was late.
    pub(crate) fn extent(&self) -> u16 {
        let highest = self.histogram.0.iter().rposition(|&count| count > 0);
        highest.map_or(0, largest_in)
    }

    pub(crate) fn on_late(&mut self, needed: u16) {
        let count = &mut self.histogram.0[bucket_of(needed)];
        *count = count.saturating_add(WEIGHT);
        self.update();
    }

    /// Called when missing reports declared `units` units lost.
    pub(crate) fn on_lost(&mut self, units: u64) {
        self.losses += u64::from(WEIGHT) * units;
        self.update();
    }

    pub(crate) fn on_not_lost(&mut self) {
        self.losses = self.losses.saturating_sub(WEIGHT.into());
    }

    /// Called when a fast retransmit proved spurious that kept `cost` packets from being sent.
    pub(crate) fn on_spurious_retransmit(&mut self, cost: f64) {
        let known = self.cost_of_retransmit.unwrap_or(cost);
        self.cost_of_retransmit = Some((7.0 * known + cost) / 8.0);
        self.percentile = (self.percentile + STEP).min(1000);
        self.update();
    }

    /// Called when the timer expired over a unit that the standard threshold would have declared lost before, with a
    /// window of `window` packets, and after `idle` round trips without sending.
    pub(crate) fn on_avoidable_timeout(&mut self, window: f64, idle: f64) {
        // In slow start less is sent up to half of the window, and in linear growth from there (RR-SCTP §4.2).
        let half = (window / 2.0).max(1.0);
        let (mut slow_start, mut reached) = (0.0, 1.0);
        while reached < half {
            slow_start += window - reached;
            reached *= 2.0;
        }
        let not_sent = window * idle + slow_start + half * half / 2.0;
        // Without a measurement: half of a window for two round trips.
        let of_retransmit = self.cost_of_retransmit.unwrap_or(window).max(1.0);
        let fall = (f64::from(STEP) * (not_sent / of_retransmit)).min(f64::from(self.percentile));
        self.percentile -= fall as u32;
        self.update();
    }

    pub(crate) fn on_delivered(&mut self, units: u64) {
        self.delivered += units;
        if self.delivered < AGE {
            return;
        }
        while self.delivered >= AGE {
            self.delivered -= AGE;
            self.age();
        }
    }

    pub(crate) fn age(&mut self) {
        self.histogram.0.iter_mut().for_each(|count| *count /= 2);
        self.losses /= 2;
        self.update();
    }

    fn update(&mut self) {
        let spared = |of: u64| of * u64::from(1000 - self.percentile) / 1000;
        let standard = u16::from(self.standard);
        let most = spared(self.histogram.above(standard));
        self.threshold = self.histogram.quantile(standard, most);
        let most = spared(self.histogram.above(1) + self.losses);
        self.thin_threshold = self.histogram.quantile(1, most).min(standard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(needed: &[u16]) -> Evidence {
        let mut evidence = Evidence::new(3, 90);
        needed.iter().for_each(|&needed| evidence.on_late(needed));
        evidence
    }

    #[test]
    fn buckets_cover_every_value_to_within_a_sixteenth() {
        let mut last = 0;
        for value in 0..=MAX {
            let bucket = bucket_of(value);
            let largest = largest_in(bucket);
            assert!(bucket == last || bucket == last + 1);
            assert!(largest >= value && largest - value <= value / 16, "{value}: {largest}");
            last = bucket;
        }
        assert_eq!((last, bucket_of(u16::MAX)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn without_evidence_the_standard_threshold_applies() {
        assert_eq!((with(&[]).threshold, with(&[]).thin_threshold), (3, 1));
        assert_eq!(with(&[2, 3, 2]).threshold, 3);
        assert_eq!(with(&[5]).threshold, 5);
    }

    /// Nine of ten at 90 %.
    #[test]
    fn the_threshold_is_the_percentile_of_what_was_needed() {
        let mut needed: Vec<u16> = (4..=12).collect();
        needed.push(30);
        assert_eq!(with(&needed).threshold, 12);
        needed.extend([30; 2]);
        assert_eq!(with(&needed).threshold, 30);
    }

    #[test]
    fn a_spurious_retransmit_raises_and_an_avoidable_timeout_lowers_by_the_ratio_of_costs() {
        let mut evidence = with(&[]);
        evidence.on_spurious_retransmit(20.0);
        assert_eq!(evidence.percentile(), 0.91);
        // 20 · 2 + (19 + 18 + 16 + 12) + 10 · 10 / 2 = 155 packets: 7.75 times as many.
        evidence.on_avoidable_timeout(20.0, 2.0);
        assert_eq!(evidence.percentile(), 0.833);
        (0..100).for_each(|_| evidence.on_spurious_retransmit(20.0));
        assert_eq!(evidence.percentile(), 1.0);
        (0..100).for_each(|_| {
            evidence.on_avoidable_timeout(1e9, 60.0);
        });
        assert_eq!(evidence.percentile(), 0.0);
    }

    #[test]
    fn with_a_percentile_of_zero_the_standard_threshold_is_back() {
        let mut evidence = with(&[10, 20, 30]);
        evidence.on_avoidable_timeout(1e6, 60.0);
        assert_eq!((evidence.threshold, evidence.thin_threshold), (3, 1));
    }

    #[test]
    fn evidence_ages_away() {
        let mut evidence = with(&[9]);
        evidence.on_delivered(4 * AGE);
        assert_eq!((evidence.threshold, evidence.extent()), (9, 9));
        evidence.on_delivered(AGE - 1);
        assert_eq!(evidence.threshold, 9);
        evidence.on_delivered(1);
        assert_eq!((evidence.threshold, evidence.extent()), (3, 0));
    }

    /// Evidence for a threshold of two or more, against losses.
    #[test]
    fn a_thin_stream_waits_for_what_is_often_needed() {
        let mut evidence = with(&[2; 10]);
        assert_eq!((evidence.thin_threshold, evidence.threshold), (2, 3));
        evidence.on_late(9);
        assert_eq!(evidence.thin_threshold, 2, "one of eleven");
        (0..3).for_each(|_| evidence.on_late(9));
        assert_eq!(evidence.thin_threshold, 3, "the standard at most");
        // 14 late ones are less than a tenth of the gaps.
        evidence.on_lost(127);
        assert_eq!(evidence.thin_threshold, 1);
        (0..127).for_each(|_| evidence.on_not_lost());
        evidence.on_late(2);
        assert_eq!(evidence.thin_threshold, 3);
    }
}
