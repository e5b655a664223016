//! Several paths at once: what an acknowledgement says of each (Iyengar, Amer and Stewart 2006).

use rexmit_core::trace::{SendCause, Tracer};

use super::ack::Progress;
use super::path::Path;
use super::{LossRecovery, Unit, UnitState};
use crate::congestion::{RateShare, rate};
use crate::loss::rack::Rack;
use crate::{Coupling, PathState};

impl<P> LossRecovery<P> {
    /// Whether new units leave over several paths at once.
    #[must_use]
    pub fn uses_all_paths(&self) -> bool {
        self.paths.len() > 1 && self.config.cmt.all_paths
    }

    /// Whether a packet with new units may leave over `path` now: what is to be sent again comes
    /// first (RFC 9260 §6.1 C), of those on the same path if they are used at once.
    #[must_use]
    pub fn takes_new(&self, path: u8) -> bool {
        if !self.may_send_new(path) {
            false
        } else if self.paths.len() == 1 {
            !self.must_resend_first()
        } else if self.config.cmt.all_paths {
            let is_active = self.path(path).reach.state() == PathState::Active;
            (path == self.data_path || is_active) && !self.is_held_back(path)
        } else {
            path == self.data_path && !self.must_resend_first()
        }
    }

    /// Whether `path` may take so many new user bytes where the peer's window, as it told last, is
    /// `a_rwnd`: no more than a path's part of that is under way over it. A path on which nothing is may
    /// always take something.
    #[must_use]
    pub fn has_share(&self, path: u8, user_bytes: u64, a_rwnd: u64) -> bool {
        if !self.uses_all_paths() || !self.config.cmt.split_buffer {
            return true;
        }
        let own = self.path(path).concurrent.as_ref().map_or(0, |known| known.user_bytes);
        let is_active = |path: &&Path| path.reach.state() == PathState::Active;
        let parts = self.paths.iter().filter(is_active).count().max(1) as u64;
        own == 0 || own + user_bytes <= a_rwnd / parts
    }

    /// Whether new user bytes over `path` could keep faster paths waiting, where the peer's buffer holds
    /// `buffer` bytes: what those send while these are under way has to find room beside them, as it cannot
    /// be delivered before. Over a path on which nothing is something may always leave.
    #[must_use]
    pub fn may_block(&self, path: u8, user_bytes: u64, buffer: u64) -> bool {
        if !self.uses_all_paths() || !self.config.cmt.avoid_blocking {
            return false;
        }
        let own = self.path(path).concurrent.as_ref().map_or(0, |known| known.user_bytes);
        let round_trip = |path: &Path| path.timer.rtt().srtt().unwrap_or_default().as_nanos();
        let slow = round_trip(self.path(path));
        let is_faster = |other: &&Path| {
            let is_measured = round_trip(other) > 0;
            other.reach.state() == PathState::Active && is_measured && round_trip(other) < slow
        };
        let meanwhile = |other: &Path| u128::from(other.window.cwnd()) * slow / round_trip(other);
        let meanwhile: u128 = self.paths.iter().filter(is_faster).map(meanwhile).sum();
        let under_way = u128::from(own + user_bytes);
        own > 0 && meanwhile > 0 && under_way + meanwhile > u128::from(buffer)
    }

    /// Tells the window of every path its part of the rate of all that are in use, as they are now.
    pub(super) fn couple_windows(&mut self) {
        if self.config.cmt.coupling == Coupling::None || !self.uses_all_paths() {
            return;
        }
        let rate_of = |path: &Path| {
            let srtt = path.timer.rtt().srtt()?;
            let is_active = path.reach.state() == PathState::Active;
            is_active.then(|| rate(path.window.cwnd(), srtt))
        };
        let total = self.paths.iter().filter_map(rate_of).sum();
        for path in &mut self.paths {
            let share = rate_of(path).map(|rate| RateShare::of(rate, total));
            path.window.set_share(share);
        }
    }

    /// Whether missing reports are counted by path.
    pub(super) fn splits_fast_retransmit(&self) -> bool {
        self.paths.len() > 1 && self.config.cmt.split_fast_retransmit
    }

    /// SFR: a unit is missing if a later one that was sent over its path is acknowledged.
    pub(super) fn count_missing_by_path(
        &mut self,
        progress: &mut Progress,
        tracer: &mut Tracer<'_>,
    ) {
        for path in &mut self.paths {
            let Some(known) = &mut path.concurrent else { continue };
            known.highest_acked = known.highest_acked.max(known.highest_newly_acked);
        }
        let bound = progress.highest_newly_acked.unwrap_or(0);
        let early = self.first_indication_groups();
        let answered = self.reports_by_dac(progress);
        let last = self.paths_without_report();
        let lost = self.take_reports_by(bound, |sender, number| {
            let unit = sender.unit(number)?;
            let path = unit.path;
            let known = sender.path(path).concurrent.as_ref()?;
            let is_passed = known.highest_newly_acked > Some(number);
            let is_early = early & (1 << unit.group) != 0;
            let is_before = progress.lowest_newly_acked.is_some_and(|lowest| number < lowest);
            let is_last = last & (1 << path) != 0;
            let count = if is_before { answered } else { 1 };
            is_passed.then(|| (count, sender.threshold_of(path, is_early, is_last)))
        });
        progress.outcome.newly_lost = lost.len() as u64;
        for unit in lost {
            let Some(path) = self.unit(unit).map(|u| u.path) else { continue };
            self.mark_lost(unit, SendCause::FastRetransmit, tracer);
            self.learn_losses(path, 1);
            if self.path(path).recovery_exit().is_none() {
                self.begin_path_recovery(path, tracer);
            }
        }
    }

    /// Something on `path` was lost, and its window is reduced until what is outstanding on it now is
    /// acknowledged.
    pub(super) fn begin_path_recovery(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        self.statistics.fast_recoveries += 1;
        let highest = self.next_unit() - 1;
        self.path_mut(path).set_recovery_exit(Some(highest));
        self.reduce_window(path, tracer);
    }

    /// Whether `path` is in a fast recovery: the association's, or one of its own.
    pub(super) fn is_recovering(&self, path: u8) -> bool {
        self.is_in_fast_recovery() || self.path(path).recovery_exit().is_some()
    }

    /// DAC: how often what is missing is reported that left before all that is newly acknowledged.
    fn reports_by_dac(&self, progress: &Progress) -> u16 {
        let is_of_one_path = progress.outcome.paths.is_power_of_two();
        let has_dac = self.config.cmt.delayed_ack && is_of_one_path;
        if has_dac { self.packets_answered.max(1).into() } else { 1 }
    }

    /// The acknowledgement that is handed to [`on_ack`](Self::on_ack) next answers so many packets;
    /// 0 if nobody told.
    pub const fn set_packets_answered(&mut self, packets: u8) {
        self.packets_answered = packets;
    }

    /// A path leaves its fast recovery when what was outstanding on it at the entry is acknowledged.
    pub(super) fn leave_path_recoveries(&mut self) {
        for path in &mut self.paths {
            let is_over = |exit: &u64| path.outstanding == 0 || path.earliest > *exit;
            if path.recovery_exit().as_ref().is_some_and(is_over) {
                path.set_recovery_exit(None);
                path.rack_mut().into_iter().for_each(Rack::on_recovery_left);
            }
        }
    }

    /// CUC: finds the earliest unit of each path that left once and is outstanding. Each unit is
    /// passed over once per path.
    pub(super) fn find_pseudo_cumulative(&mut self) {
        if !self.uses_all_paths() || !self.config.cmt.cwnd_update {
            return;
        }
        for path in 0..self.paths.len() as u8 {
            let is_it = |u: &Unit<P>| {
                let is_outstanding = matches!(u.state, UnitState::InFlight | UnitState::Lost(_));
                u.sent_over == path && u.transmissions == 1 && is_outstanding
            };
            let Some(known) = &self.path(path).concurrent else { continue };
            let from = known.earliest_first_sent.max(self.first);
            let mut units = from..self.next_unit();
            let found = units.find(|&unit| self.unit(unit).is_some_and(is_it));
            let found = found.unwrap_or(self.next_unit());
            if let Some(known) = &mut self.path_mut(path).concurrent {
                known.earliest_first_sent = found;
            }
        }
    }

    /// Whether what was acknowledged on `path` lets its window grow.
    pub(super) fn may_grow(&self, path: u8, progress: &Progress) -> bool {
        if !self.uses_all_paths() {
            true
        } else if self.config.cmt.cwnd_update {
            self.path(path).ack.has_pseudo_advanced
        } else {
            progress.outcome.has_advanced
        }
    }
}
