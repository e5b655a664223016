//! The paths of an association: the state of each, and the path of data and retransmissions
//! (RFC 9260 §6.4, §8.2; RFC 7829). With one path there is nothing to choose.

use crate::{CongestionWindow, PathCounters, RecoveryConfig, RtoConfig, RtoTimer, RttEstimator};
use rexmit_congestion::{QueueSigns, T3};
use rexmit_core::Instant;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::time::Duration;

pub(crate) use destination::{Candidate, TIMEOUT_MEMORY, choose};
pub(crate) use diversity::{Diversity, MAX_MEASURED, Pair, UNKNOWN};

mod destination;
mod diversity;

#[cfg(test)]
mod tests;

/// Paths of one association at most; sets of paths are kept as bits.
const MAX_PATHS: usize = 64;

/// The paths of an association, numbered from 0, those that were removed included.
#[derive(Debug)]
pub struct Paths {
    list: Vec<Path>,
    /// The path that data take while it works.
    primary: u8,
    /// The path that new data take.
    data_path: u8,
    /// The path that retransmissions take now, if it is chosen when they are sent.
    pub(crate) chosen: Option<u8>,
}

impl Index<u8> for Paths {
    type Output = Path;

    #[inline]
    fn index(&self, path: u8) -> &Path {
        &self.list[usize::from(path)]
    }
}

impl IndexMut<u8> for Paths {
    #[inline]
    fn index_mut(&mut self, path: u8) -> &mut Path {
        &mut self.list[usize::from(path)]
    }
}

impl Paths {
    pub(crate) fn new(first: Path) -> Self {
        Self { list: vec![first], primary: 0, data_path: 0, chosen: None }
    }

    /// Adds a path and returns its number.
    ///
    /// # Panics
    /// With more than 64 paths; the protocol limits them far below.
    pub(crate) fn add(&mut self, path: Path) -> u8 {
        assert!(self.list.len() < MAX_PATHS, "the protocol limits the paths");
        self.list.push(path);
        self.list.iter_mut().for_each(|path| _ = path.multipath.get_or_insert_default());
        self.count() - 1
    }

    /// How many there are, those that were removed included.
    #[must_use]
    #[inline]
    pub fn count(&self) -> u8 {
        self.list.len() as u8
    }

    /// Whether there is only one.
    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.list.len() == 1
    }

    /// The numbers of the paths.
    #[inline]
    pub(crate) fn numbers(&self) -> std::ops::Range<u8> {
        0..self.count()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Path> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Path> {
        self.list.iter_mut()
    }

    /// The path that the application has chosen for data.
    #[must_use]
    pub const fn primary(&self) -> u8 {
        self.primary
    }

    /// The path that new data take now: the primary one or, while that has failed, another.
    #[must_use]
    #[inline]
    pub const fn data_path(&self) -> u8 {
        self.data_path
    }

    /// Makes `path` the primary path: new data is sent over it while it works.
    pub(crate) fn set_primary(&mut self, path: u8) {
        self.primary = path;
        self.diversity_mut().into_iter().for_each(|diversity| diversity.prefer(path));
    }

    /// Chooses the path of new data again, after a path has changed its state.
    pub(crate) fn choose_data_path(&mut self) {
        let preferred = self.diversity().map_or(self.primary, Diversity::preferred);
        self.data_path = destination::data_path(self.reaches(), preferred, self.data_path);
    }

    /// Begins to compare the paths.
    pub(crate) fn compare(&mut self) {
        let primary = self.primary;
        let multipath = self.list[0].multipath.get_or_insert_default();
        multipath.diversity.get_or_insert_with(|| Box::new(Diversity::new(primary)));
    }

    /// The measurements by which paths are chosen, if any is.
    #[inline]
    pub(crate) fn diversity(&self) -> Option<&Diversity> {
        self.list[0].multipath.as_ref()?.diversity.as_deref()
    }

    /// The measurements by which paths are chosen, to be changed.
    #[inline]
    pub(crate) fn diversity_mut(&mut self) -> Option<&mut Diversity> {
        self.list[0].multipath.as_mut()?.diversity.as_deref_mut()
    }

    /// The pair of paths that the fate of a new packet over `path` counts for, if it follows a loss within two round trips:
    /// about then a retransmission is sent.
    #[inline]
    pub(crate) fn on_new(&mut self, now: Instant, path: u8) -> Option<Pair> {
        self.diversity()?;
        let srtt = self[path].timer.rtt().srtt().unwrap_or_default();
        self.diversity_mut()?.on_new(now, path, 2 * srtt)
    }

    /// The path that loses the least of the data that was just lost over `path`.
    pub(crate) fn least_correlated(&self, path: u8) -> u8 {
        let active = self.numbers().filter(|&path| self.is_active(path));
        let chosen = self.diversity().and_then(|diversity| diversity.away_from(path, active));
        let chosen = chosen.filter(|&chosen| self.is_active(chosen));
        chosen.unwrap_or_else(|| self.alternate_to(path))
    }

    /// The path over which to retransmit data that was not acknowledged over `path` (RFC 9260 §6.4.1).
    #[must_use]
    pub fn alternate_to(&self, path: u8) -> u8 {
        if self.is_one() {
            return path;
        }
        destination::alternate_to(path, self.reaches(), self.primary)
    }

    fn reaches(&self) -> impl ExactSizeIterator<Item = Reach> + '_ {
        self.list.iter().map(|path| path.reach)
    }

    /// Whether `path` is active.
    #[inline]
    pub(crate) fn is_active(&self, path: u8) -> bool {
        self[path].reach.state() == PathState::Active
    }

    /// Sets the share of every window in the rate of all paths in use (coupled congestion control).
    pub(crate) fn couple_windows(&mut self) {
        let rate_of = |path: &Path| {
            let srtt = path.timer.rtt().srtt()?;
            let is_active = path.reach.state() == PathState::Active;
            is_active.then(|| path.window.rate(srtt))
        };
        let total: f64 = self.list.iter().filter_map(rate_of).sum();
        for path in &mut self.list {
            let share = rate_of(path).map(|rate| rate / total);
            path.window.set_share(share);
        }
    }

    /// Bytes that paths with a shorter round trip than `path` send in a round trip of `path`.
    pub(crate) fn bytes_of_faster(&self, path: u8) -> u128 {
        let round_trip = |path: &Path| path.timer.rtt().srtt().unwrap_or_default().as_nanos();
        let slow = round_trip(&self[path]);
        let is_faster = |other: &&Path| {
            let is_measured = round_trip(other) > 0;
            other.reach.state() == PathState::Active && is_measured && round_trip(other) < slow
        };
        let meanwhile = |other: &Path| u128::from(other.window.cwnd()) * slow / round_trip(other);
        self.list.iter().filter(is_faster).map(meanwhile).sum()
    }
}

/// Expiries of T3-rtx that are remembered, at most.
const MAX_TIMEOUTS: usize = 64;

/// A path from this host to an address of the peer.
#[derive(Debug)]
pub struct Path {
    pub(crate) timer: RtoTimer,
    pub(crate) window: CongestionWindow,
    pub(crate) t3: T3,
    pub(crate) reach: Reach,
    pub(crate) counters: PathCounters,
    pub(crate) gate: Gate,
    /// Packets sent before give no RTT sample.
    samples_from: Instant,
    /// Marks of units up to this one are answered by a reduction of the window.
    pub(crate) marks_answered: u64,
    /// The measurements of the queue on this path, created once a thin stream that backs off by queueing
    /// delay was sent over it.
    pub(crate) queue: Option<Box<QueueSigns>>,
    /// State needed only with several paths.
    pub(crate) multipath: Option<Box<MultipathState>>,
}

/// Allowance of a path beyond or short of its window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gate {
    /// Whether one packet of retransmissions may be sent beyond the window (RFC 9260 §6.3.3 E3, §7.2.4 rule
    /// 3), while there is anything to retransmit.
    may_retransmit_now: bool,
    /// Whether only one packet may be in flight until something is acknowledged (RFC 9260 §7.2.1).
    pub(crate) is_single_packet: bool,
    /// Data packets that may still be sent at this opportunity (Max.Burst).
    pub(crate) burst_left: u32,
}

impl Gate {
    /// Whether a packet of retransmissions may be sent beyond the window.
    #[inline]
    pub(crate) const fn may_retransmit_now(&self) -> bool {
        self.may_retransmit_now
    }

    /// Something was declared lost: one packet of it may be sent at once.
    pub(crate) const fn open_for_retransmission(&mut self) {
        self.may_retransmit_now = true;
    }

    /// The packet was sent, or nothing was left to send.
    pub(crate) const fn close(&mut self) {
        self.may_retransmit_now = false;
    }

    /// Closes, unless the path still has something to retransmit.
    pub(crate) const fn close_unless(&mut self, has_lost: bool) {
        self.may_retransmit_now &= has_lost;
    }

    /// Closes, because the units that it was open for take another path; returns whether it was open.
    pub(crate) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.may_retransmit_now, false)
    }
}

/// State of a path needed only with several paths.
#[derive(Debug, Default)]
pub(crate) struct MultipathState {
    /// CUC: the earliest outstanding unit that was sent once, over this path; as of the last acknowledgement.
    pub(crate) earliest_first_sent: u64,
    /// The latest expiries of T3-rtx, if the destination of retransmissions depends on them.
    timeouts: VecDeque<Instant>,
    /// Of the first path: the measurements by which paths are compared, here so that a single path needs no room for it.
    diversity: Option<Box<Diversity>>,
}

/// The time after `now`: a packet sent at `now` is before.
fn after(now: Instant) -> Instant {
    now + Duration::from_nanos(1)
}

impl Path {
    pub(crate) fn new(config: &RecoveryConfig, packet: u32, reach: Reach) -> Self {
        let mut path = Self {
            timer: RtoTimer::new(&config.rto),
            window: CongestionWindow::new(config.window(), packet),
            t3: T3::default(),
            reach,
            counters: PathCounters::default(),
            gate: Gate::default(),
            samples_from: Instant::ZERO,
            marks_answered: 0,
            queue: None,
            multipath: None,
        };
        path.renew_burst(config);
        path
    }

    /// The timeout, with the round-trip time behind it.
    #[must_use]
    pub const fn timer(&self) -> &RtoTimer {
        &self.timer
    }

    /// The congestion window.
    #[must_use]
    pub const fn window(&self) -> &CongestionWindow {
        &self.window
    }

    /// Whether the path works.
    #[must_use]
    pub const fn reach(&self) -> Reach {
        self.reach
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> PathCounters {
        self.counters
    }

    /// Resets the measurements of the path, whose packets take another route from now on. Data that waits for it stays.
    pub(crate) fn renew(&mut self, now: Instant, config: &RecoveryConfig, packet: u32) {
        self.timer = RtoTimer::new(&config.rto);
        self.window = CongestionWindow::new(config.window(), packet);
        self.queue = None;
        self.gate.is_single_packet = false;
        // Earlier data took another way and makes no sample.
        self.samples_from = after(now);
        self.t3.forget_expiries();
        self.renew_burst(config);
    }

    pub(crate) fn renew_burst(&mut self, config: &RecoveryConfig) {
        self.gate.burst_left = config.max_burst.map_or(u32::MAX, |packets| packets.get().into());
    }

    /// Whether data sent at `sent_at` may give an RTT sample: one per round trip (RFC 9260 §6.3.1 C4), and
    /// only if nothing was retransmitted since (C5).
    pub(crate) fn may_sample(&self, sent_at: Instant) -> bool {
        sent_at >= self.samples_from
    }

    /// Called when a round trip was measured. `estimate` includes this sample; it is used if the sample
    /// starts the estimate anew.
    pub(crate) fn on_sample(
        &mut self,
        now: Instant,
        rtt: Duration,
        estimate: Option<RttEstimator>,
        config: &RtoConfig,
    ) {
        match estimate {
            Some(estimate) => self.timer.restart(estimate, config),
            None => self.timer.on_sample(rtt, config),
        }
        self.samples_from = self.samples_from.max(now);
    }

    /// Called when a packet with something retransmitted is sent.
    pub(crate) fn on_retransmission(&mut self, now: Instant) {
        self.samples_from = after(now);
    }

    /// Forgets what several paths need of this one, whose number is used again.
    pub(crate) fn renew_multipath(&mut self) {
        let diversity = self.multipath.take().and_then(|multipath| multipath.diversity);
        self.multipath = Some(Box::new(MultipathState { diversity, ..Default::default() }));
    }

    /// Remembers that T3-rtx expired `at`, if the destination of retransmissions depends on that.
    pub(crate) fn remember_timeout(&mut self, at: Instant) {
        let Some(multipath) = &mut self.multipath else { return };
        if multipath.timeouts.len() == MAX_TIMEOUTS {
            multipath.timeouts.pop_front();
        }
        multipath.timeouts.push_back(at);
    }

    /// The remembered expiries of T3-rtx, latest first.
    pub(crate) fn timeouts(&self) -> impl Iterator<Item = Instant> + Clone + '_ {
        self.multipath.iter().flat_map(|multipath| multipath.timeouts.iter().rev().copied())
    }
}

/// The state of a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PathState {
    /// The peer has not confirmed this address yet: no data is sent to it (RFC 9260 §5.4).
    Unconfirmed,
    /// The path works.
    Active,
    /// The path may have failed: it gets no data while another path is active (RFC 7829 §3.1).
    PotentiallyFailed,
    /// The path does not work (RFC 9260 §8.2).
    Inactive,
    /// The path was removed, because one of its addresses was deleted (RFC 5061). Its number may be used again.
    Removed,
}

/// The number of consecutive errors that make a path fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FailureLimits {
    /// PotentiallyFailed.Max.Retrans (RFC 7829 §3.2); `None` disables the state.
    pub(crate) potentially_failed: Option<u32>,
    /// Path.Max.Retrans (RFC 9260 §8.2).
    pub(crate) inactive: u32,
}

impl FailureLimits {
    /// The largest error count. Errors are counted beyond the limit, so that among inactive paths the one
    /// that worked last is known (RFC 7829 §4.1 rule 3).
    const fn most(self) -> u32 {
        self.inactive.saturating_add(1).saturating_mul(10)
    }
}

/// Whether a path works, as far as is known (RFC 9260 §5.4, §8.2; RFC 7829 §3.2), and the errors behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    is_confirmed: bool,
    failure: Failure,
    errors: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    None,
    Potential,
    Certain,
    Removed,
}

impl Reach {
    /// A path of which nothing is known.
    pub const UNCONFIRMED: Self = Self { is_confirmed: false, failure: Failure::None, errors: 0 };
    /// A path that works.
    pub const ACTIVE: Self = Self { is_confirmed: true, ..Self::UNCONFIRMED };

    /// A path that was removed.
    pub(crate) const REMOVED: Self = Self { failure: Failure::Removed, ..Self::UNCONFIRMED };

    /// The state of the path.
    #[must_use]
    pub const fn state(self) -> PathState {
        match (self.is_confirmed, self.failure) {
            (_, Failure::Removed) => PathState::Removed,
            (false, _) => PathState::Unconfirmed,
            (true, Failure::None) => PathState::Active,
            (true, Failure::Potential) => PathState::PotentiallyFailed,
            (true, Failure::Certain) => PathState::Inactive,
        }
    }

    /// Whether the peer has proved to be there, whatever happened since.
    pub(crate) const fn is_confirmed(self) -> bool {
        self.is_confirmed
    }

    /// Timeouts and unanswered probes in a row.
    #[must_use]
    pub const fn errors(self) -> u32 {
        self.errors
    }

    /// Whether there were too many errors, confirmed or not.
    #[must_use]
    pub const fn has_failed(self) -> bool {
        matches!(self.failure, Failure::Certain)
    }

    /// Called when data or a HEARTBEAT sent over this path was not acknowledged in time.
    pub(crate) fn on_error(&mut self, limits: FailureLimits) {
        if self.failure == Failure::Removed {
            return;
        }
        self.errors = (self.errors + 1).min(limits.most());
        if self.errors > limits.inactive {
            self.failure = Failure::Certain;
        } else if self.failure == Failure::None
            && limits.potentially_failed.is_some_and(|limit| self.errors > limit)
        {
            self.failure = Failure::Potential;
        }
    }

    /// Called when something sent over this path was acknowledged; `is_certain` if it was sent over no other
    /// path (RFC 7829 §3.2 rules 9 and 10).
    pub(crate) fn on_answer(&mut self, is_certain: bool) {
        let is_revived = is_certain && self.failure != Failure::Removed;
        if is_revived || self.failure == Failure::None {
            *self = Self { is_confirmed: self.is_confirmed, ..Self::UNCONFIRMED };
        }
    }

    /// Called when a probe that carried a random nonce was answered, which proves that the peer is reachable
    /// here (RFC 9260 §5.4).
    pub(crate) fn on_probe_answered(&mut self) {
        if self.failure != Failure::Removed {
            *self = Self::ACTIVE;
        }
    }

    #[cfg(test)]
    pub(crate) fn of(state: PathState, errors: u32) -> Self {
        let failure = match state {
            PathState::Unconfirmed | PathState::Active => Failure::None,
            PathState::PotentiallyFailed => Failure::Potential,
            PathState::Inactive => Failure::Certain,
            PathState::Removed => Failure::Removed,
        };
        Self { is_confirmed: state != PathState::Unconfirmed, failure, errors }
    }
}

/// A value that few paths need: at most one `T` per path, created at its first use. 16 bytes while no path has one.
#[derive(Debug)]
pub(crate) struct PerPath<T>(Box<[Option<Box<T>>]>);

impl<T> Default for PerPath<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T> PerPath<T> {
    /// The value of `path`; `None` if it was never created.
    #[inline]
    pub(crate) fn get(&self, path: u8) -> Option<&T> {
        self.0.get(usize::from(path))?.as_deref()
    }

    /// The value of `path`, to change.
    #[inline]
    pub(crate) fn get_mut(&mut self, path: u8) -> Option<&mut T> {
        self.0.get_mut(usize::from(path))?.as_deref_mut()
    }

    /// The value of `path`, created by `new` at its first use.
    pub(crate) fn get_or_insert_with(&mut self, path: u8, new: impl FnOnce() -> T) -> &mut T {
        let index = usize::from(path);
        if index >= self.0.len() {
            let mut paths = std::mem::take(&mut self.0).into_vec();
            paths.resize_with(index + 1, || None);
            self.0 = paths.into_boxed_slice();
        }
        self.0[index].get_or_insert_with(|| Box::new(new()))
    }

    /// Drops the value of `path`.
    pub(crate) fn remove(&mut self, path: u8) {
        self.0.get_mut(usize::from(path)).into_iter().for_each(|of_path| *of_path = None);
    }

    /// The values of all paths that have one.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(Option::as_deref)
    }

    /// The values of all paths that have one, to change.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().filter_map(Option::as_deref_mut)
    }
}
