//! The detection of spurious retransmissions, and what is undone then (Barletta, Righetti, Veiga: RR-SCTP, §4).
//!
//! A *recovery episode* is an expiry of T3-rtx, or a fast retransmit with everything that follows until fast
//! recovery ends. An episode in which nothing was lost, caused by reordering or a sudden change of the round
//! trip time, is *spurious*. The sender detects such episodes, for each path separately, and restores the
//! window ([`SpuriousDetection::undo`]), and `loss` adapts the reordering tolerated.
//!
//! # Detection by duplicate reports
//! [`Outstanding`](crate::Outstanding) remembers repeated transmissions, each with the episode that it belongs to. A duplicate
//! report is attributed to one of them: to a redundant copy first, then to an older episode, last to the latest. When all
//! transmissions of the latest episode are reported and nothing waits to be retransmitted, every original had arrived, and the
//! episode was spurious. When a new episode begins, earlier transmissions of units below the cumulative point are removed from
//! the older episodes: such units are not retransmitted in the new one. (They stay in the count of spurious retransmissions, up
//! to [`LOG_CAPACITY`](crate::LOG_CAPACITY).)
//!
//! If an episode begins while the one before is undecided, and none of its transmissions was forgotten, both
//! are remembered: if every transmission of both is reported, the window before the first is restored (a
//! delay that lasted several timeouts); if only those of the latest are, the window before the latest.
//!
//! ## Redundant copies
//! Data that is retransmitted although it was not declared lost (bundled and delayed copies, a probe of a closed
//! window) is remembered without an episode: its report decides no episode and proves no duplication.
//!
//! ## A network that duplicates
//! A report that cannot be attributed means that the network duplicates packets (RFC 3708 §3 A.4), and then a
//! report of a retransmitted unit need not mean that its original had arrived. RFC 3708 then ignores
//! duplicate reports for good. Here, undecided episodes, and all that begin within the next
//! [`DISTRUST_UNITS`] units, are never proven by duplicate reports. If one packet in that many is duplicated,
//! or more, distrust never ends; if fewer are, the probability that a retransmission is among them is below that.
//!
//! ## Several paths
//! An episode belongs to the path that its units were sent over, even if they are retransmitted over another: reports of those
//! retransmissions decide the first path's episode. F-RTO examines a timeout only if the same path carries the retransmissions.
//!
//! # The other detectors
//! [`Eifel`](episodes::Eifel) compares the timestamp that an acknowledgement echoes with that of the first retransmission (RFC
//! 3522); [`FRto`] checks which data is acknowledged after a timeout (RFC 5682). Both may decide before all units were
//! retransmitted; the remaining ones then return to flight. An episode is decided once, by the first detector.

use crate::Echo;
use crate::outstanding::EpisodeId;
use crate::state::State;
use crate::{LossDetection, RecoveryConfig, RtoConfig, RttEstimator};
pub(crate) use episodes::Episode;
use episodes::{Before, EifelAck, Episodes, FRto};
use rexmit_core::Instant;
use rexmit_core::trace::{Detector, SendCause};
use std::time::Duration;

mod episodes;

#[cfg(test)]
mod tests;

/// Episodes that begin within this many units after a duplicate report that cannot be attributed are not
/// proven by duplicate reports.
pub(crate) const DISTRUST_UNITS: u64 = 1000;

/// The state of the detectors.
#[derive(Debug, Default)]
pub(crate) struct SpuriousDetection {
    /// Episodes that begin before this unit is sent are not proven by duplicate reports.
    distrust_through: u64,
    /// Whether the receiver has reported a duplicate before.
    has_seen_duplicates: bool,
    /// Whether a duplicate was reported since the last ACK was processed.
    has_duplicate: bool,
    paths: Vec<PathEpisodes>,
}

#[derive(Debug, Default)]
struct PathEpisodes {
    episodes: Episodes,
    f_rto: FRto,
    /// The last spurious timeout, until a round trip is measured after it.
    after_spurious: Option<AfterSpurious>,
    /// Whether the ACK being processed covers a unit that was declared lost and had been sent once.
    has_acked_original: bool,
}

/// The part of an acknowledgement that the detectors use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledged {
    /// The cumulative point, if it moved.
    pub(crate) advanced_to: Option<u64>,
    pub(crate) highest_newly_acked: Option<u64>,
    /// Whether new data could be sent.
    pub(crate) has_new: bool,
    /// The timestamp that the ACK echoes.
    pub(crate) echo: Option<Echo>,
}

impl SpuriousDetection {
    /// `None` if no episodes have to be recorded: neither for a detector, nor for an adaptive reordering threshold, which
    /// learns from spurious retransmissions.
    pub(crate) fn new(config: &RecoveryConfig) -> Option<Box<Self>> {
        let learns = matches!(config.loss_detection, LossDetection::Rack)
            || config.loss_detection.percentile().is_some();
        let is_any = config.spurious.is_any() || config.tcp.eifel.is_some() || learns;
        is_any.then(Box::default)
    }

    pub(crate) fn add_path(&mut self) {
        self.paths.push(PathEpisodes::default());
    }

    /// Forgets the undecided episodes of `path`, whose packets take another route from now on.
    pub(crate) fn renew_path(&mut self, path: u8) {
        self.cancel(path);
        let path = self.on_mut(path);
        *path = PathEpisodes { episodes: std::mem::take(&mut path.episodes), ..Default::default() };
    }

    /// Forgets all undecided episodes, when nothing is outstanding any more.
    pub(crate) fn clear(&mut self) {
        self.paths.iter_mut().for_each(|path| path.episodes.clear());
    }

    fn on(&self, path: u8) -> &PathEpisodes {
        &self.paths[usize::from(path)]
    }

    fn on_mut(&mut self, path: u8) -> &mut PathEpisodes {
        &mut self.paths[usize::from(path)]
    }
}

impl SpuriousDetection {
    /// Begins an episode of `path`, before its window is reduced because of `kind`.
    pub(crate) fn begin<P>(&mut self, path: u8, kind: SendCause, state: &mut State<P>) {
        let next = state.outstanding.next_unit();
        let is_provable =
            state.config.spurious.duplicates.is_some() && next > self.distrust_through;
        state.outstanding.history().forget_episodes(path);
        let p = &state.paths[path];
        let before = Before { window: p.window.clone(), rtt: *p.timer.rtt() };
        self.on_mut(path).episodes.begin(kind, before, is_provable);
    }

    /// Cancels the episode that has begun on `path`, because it retransmits nothing.
    pub(crate) fn cancel(&mut self, path: u8) {
        self.on_mut(path).episodes.clear();
    }

    /// Called when a unit last sent over `path` is retransmitted because of `cause`. Returns its episode.
    pub(crate) fn on_retransmitted(
        &mut self,
        now: Instant,
        path: u8,
        cause: SendCause,
    ) -> Option<EpisodeId> {
        let is_lost =
            matches!(cause, SendCause::Timeout | SendCause::FastRetransmit | SendCause::Probe);
        let number = is_lost.then(|| self.on_mut(path).episodes.on_retransmitted(now)).flatten();
        number.map(|number| EpisodeId { path, number })
    }

    pub(crate) fn on_forgotten(&mut self, episode: Option<EpisodeId>) {
        let Some(EpisodeId { path, number }) = episode else { return };
        self.on_mut(path).episodes.mark_unprovable_through(number);
    }

    /// Called when a transmission of `episode` is reported as a duplicate. Returns whether that is the latest of its path.
    pub(crate) fn on_reported(&mut self, episode: EpisodeId) -> bool {
        self.on_mut(episode.path).episodes.on_reported(episode.number)
    }

    /// Makes the undecided episodes of `path` unprovable by duplicate reports, because a unit was certainly
    /// lost or its fate cannot be determined.
    pub(crate) fn mark_unprovable(&mut self, path: u8) {
        self.on_mut(path).episodes.mark_unprovable();
    }

    pub(crate) const fn on_duplicate(&mut self) {
        self.has_duplicate = true;
    }

    /// Called when the receiver reports something as a duplicate that was never retransmitted, with units up to `next`
    /// sent: the network makes copies, and duplicate reports are not believed for a while (RFC 3708 §3 A.4).
    pub(crate) fn on_unexplained_duplicate(&mut self, next: u64) {
        self.has_duplicate = true;
        self.distrust_through = next + DISTRUST_UNITS;
        self.paths.iter_mut().for_each(|path| path.episodes.mark_unprovable());
    }

    /// Whether a fast retransmit of some path is undecided.
    pub(crate) fn has_open_fast_retransmit(&self) -> bool {
        let mut latest = self.paths.iter().filter_map(|path| path.episodes.latest.as_ref());
        latest.any(|episode| episode.kind == SendCause::FastRetransmit)
    }

    pub(crate) fn settle(&mut self, path: u8) -> Option<Box<Episode>> {
        self.on_mut(path).episodes.settle()
    }
}

/// Acknowledgements.
impl SpuriousDetection {
    /// Called when a unit last sent over `path` is acknowledged that was declared lost and waited to be retransmitted.
    /// If it had been sent once, its original has arrived; otherwise the transmission that arrived is unknown.
    pub(crate) fn on_lost_acked(&mut self, path: u8, is_original: bool) {
        let path = self.on_mut(path);
        path.has_acked_original |= is_original;
        if !is_original {
            path.episodes.mark_unprovable();
        }
    }

    /// The detector to which an acknowledgement shows that the latest episode of `path` was spurious, if any.
    pub(crate) fn detect<P>(
        &mut self,
        path: u8,
        ack: &Acknowledged,
        state: &State<P>,
    ) -> Option<Detector> {
        let highest_sent = state.outstanding.next_unit() - 1;
        let of_path = self.on_mut(path);
        if of_path.f_rto.on_ack(ack, of_path.has_acked_original, highest_sent) {
            Some(Detector::FRto)
        } else if self.detect_by_timestamp(path, ack, state) {
            Some(Detector::Timestamps)
        } else {
            self.detect_by_duplicates(path, state).then_some(Detector::Duplicates)
        }
    }

    /// Whether the timestamp that an acknowledgement echoes shows that the latest episode of `path` was
    /// spurious (Eifel). A timeout may have declared much lost that is under way; a fast retransmit is decided
    /// only if nothing but the first hole was declared lost.
    fn detect_by_timestamp<P>(&mut self, path: u8, ack: &Acknowledged, state: &State<P>) -> bool {
        let Some(echo) = ack.echo.filter(|_| ack.advanced_to.is_some()) else { return false };
        let ack = EifelAck {
            echo,
            has_duplicate: self.has_duplicate,
            peer_reports_duplicates: self.has_seen_duplicates,
            is_last: state.outstanding.is_empty(),
        };
        let latest = self.on_mut(path).episodes.latest.as_mut();
        let Some(episode) = latest.filter(|_| state.config.tcp.eifel.is_some()) else {
            return false;
        };
        let is_alone = episode.copies == 1 && !state.outstanding.on(path).is_awaiting();
        let is_spurious = episode.eifel.on_ack(episode.retransmitted_at, ack);
        is_spurious && (episode.kind == SendCause::Timeout || is_alone)
    }

    /// Whether every transmission of the latest episode of `path` is reported, and nothing that it declared lost
    /// waits to be retransmitted.
    pub(crate) fn detect_by_duplicates<P>(&self, path: u8, state: &State<P>) -> bool {
        self.on(path).episodes.is_reported() && !state.outstanding.on(path).is_awaiting()
    }

    pub(crate) fn end_ack(&mut self) {
        self.has_seen_duplicates |= std::mem::take(&mut self.has_duplicate);
        self.paths.iter_mut().for_each(|path| path.has_acked_original = false);
    }
}

/// F-RTO.
impl SpuriousDetection {
    /// Begins F-RTO after T3-rtx of `path` expired; `is_repeated` if it expired over the same unit before. A timeout is not
    /// examined during a recovery, nor before the units of the last one are acknowledged, unless it is a repeated one (RFC 5682
    /// §3.1 step 1); nor if another path carries the retransmissions, whose ACKs may overtake those of the originals.
    pub(crate) fn begin_f_rto<P>(&mut self, path: u8, is_repeated: bool, state: &State<P>) {
        if state.config.spurious.f_rto.is_none() || state.chooses_late() {
            return;
        }
        let recover = state.fast_recovery.recover();
        let is_open = recover.is_some_and(|recover| state.outstanding.cumulative() < recover)
            || state.fast_recovery.is_on_path_alone(path);
        let path = self.on_mut(path);
        let may_begin = !is_open || (is_repeated && path.f_rto == FRto::Repeating);
        path.f_rto = if may_begin { FRto::Repeating } else { FRto::Off };
    }

    pub(crate) fn end_f_rto(&mut self, path: u8) {
        self.on_mut(path).f_rto = FRto::Off;
    }

    pub(crate) fn on_sent_new(&mut self, path: u8) {
        self.on_mut(path).f_rto.on_sent_new();
    }

    /// Whether F-RTO has sent the new data that it may on `path`.
    pub(crate) fn holds_new(&self, path: u8) -> bool {
        self.on(path).f_rto.is_waiting()
    }

    /// Whether F-RTO sends new data over `path` before anything is retransmitted.
    pub(crate) fn prefers_new(&self, path: u8) -> bool {
        self.on(path).f_rto.prefers_new()
    }

    /// Whether F-RTO sends new data over some path before anything is retransmitted.
    pub(crate) fn prefers_new_somewhere(&self) -> bool {
        self.paths.iter().any(|path| path.f_rto.prefers_new())
    }

    /// Whether F-RTO holds back units declared lost on `path`: all but the first packet, until it has decided.
    pub(crate) fn holds_lost(&self, path: u8, may_retransmit_now: bool) -> bool {
        match self.on(path).f_rto {
            FRto::Off => false,
            FRto::Repeating => !may_retransmit_now,
            FRto::Probing { .. } => true,
        }
    }
}

/// Undo.
impl SpuriousDetection {
    /// Undoes the spurious `episode` of `path`, which `by` detected: the window is restored by slow start, never in a burst
    /// (RR-SCTP §4.2). If `by` decided before all units were retransmitted, the window first covers data in flight, plus at
    /// most an initial window of the `acked` bytes (RFC 4015 §3.1 step 9). Returns whether that changed anything.
    pub(crate) fn undo<P>(
        &mut self,
        path: u8,
        episode: &Episode,
        by: Detector,
        acked: u64,
        state: &mut State<P>,
    ) -> bool {
        let before = &episode.before;
        if episode.kind == SendCause::Timeout {
            let since = episode.retransmitted_at.unwrap_or(Instant::ZERO);
            self.on_mut(path).after_spurious = Some(AfterSpurious { since, rtt: before.rtt });
        }
        let flight = state.outstanding.flight(path).bytes;
        let (window, known) = (&mut state.paths[path].window, before.window.cwnd());
        let has_fallen = window.cwnd() < known;
        if has_fallen {
            let is_early = by != Detector::Duplicates;
            let least = if is_early { flight + acked.min(window.initial()) } else { 0 };
            window.undo(&before.window, least.min(known));
        }
        has_fallen
    }

    /// The last spurious timeout of `path`, if the packet sent at `sent_at` makes the first sample after it.
    pub(crate) fn take_spurious_before(
        &mut self,
        path: u8,
        sent_at: Instant,
    ) -> Option<AfterSpurious> {
        self.on_mut(path).after_spurious.take_if(|after| sent_at >= after.since)
    }
}

/// The RTO after a spurious timeout: the first sample restarts the RTT estimate, but the RTO does not fall
/// below that before the timeout (RFC 4015 §3.1 step 11).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AfterSpurious {
    /// When the first spurious retransmission was sent.
    pub(crate) since: Instant,
    /// The estimate before the timeout.
    rtt: RttEstimator,
}

impl AfterSpurious {
    /// The estimate that begins with `sample`.
    pub(crate) fn estimate_from(&self, sample: Duration, config: &RtoConfig) -> RttEstimator {
        let (srtt, rttvar) = match self.rtt {
            RttEstimator::Unmeasured => Default::default(),
            RttEstimator::Measured { srtt, rttvar, .. } => (srtt, rttvar),
        };
        let srtt = (srtt + 2 * config.granularity).max(sample);
        RttEstimator::Measured { srtt, rttvar: rttvar.max(sample / 2), latest: sample }
    }
}
