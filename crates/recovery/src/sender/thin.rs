//! Which streams are thin: every unit belongs to a group, and each group is judged by its own
//! packets in flight.
//!
//! Group 0 is the whole association but for the streams that the application singled out.

use std::ops::Deref;
use std::sync::Arc;

use rexmit_core::trace::{TraceEvent, Tracer};

use super::LossRecovery;
use crate::{RecoveryConfig, ThinConfig, ThinInputs, ThinTest, Thinness};

/// Groups of one association at most.
pub const MAX_GROUPS: usize = 32;

/// Why there is no further group: there are [`MAX_GROUPS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit;

/// What is kept for a group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) thin: Mechanisms,
    /// As it was told last.
    was_thin: Option<bool>,
}

/// What is done about loss in a group.
#[derive(Clone, Debug)]
pub(super) enum Mechanisms {
    /// What the configuration says, which many associations share.
    Configured(Arc<RecoveryConfig>),
    /// Something else.
    Own(Box<ThinConfig>),
}

impl Deref for Mechanisms {
    type Target = ThinConfig;

    fn deref(&self) -> &ThinConfig {
        match self {
            Self::Configured(config) => &config.thin,
            Self::Own(thin) => thin,
        }
    }
}

impl Group {
    fn of_its_own(thin: ThinConfig) -> Self {
        Self { thin: Mechanisms::Own(Box::new(thin)), was_thin: None }
    }
}

/// All groups; group 0 without an allocation.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    base: Group,
    others: Vec<Group>,
    /// Some group has a mechanism.
    is_any_on: bool,
    /// The groups that have a recovery timer, a bit each.
    timed: u32,
    /// Some group yields to queues.
    yields: bool,
    /// No group with more packets in flight is thin: spares bulk the exact test.
    most_when_thin: u32,
}

impl Groups {
    pub(super) fn new(config: Arc<RecoveryConfig>) -> Self {
        let pttfr = config.missing_reports;
        let base = Group { thin: Mechanisms::Configured(config), was_thin: None };
        let mut groups = Self {
            base,
            others: Vec::new(),
            is_any_on: false,
            timed: 0,
            yields: false,
            most_when_thin: 0,
        };
        groups.renew(pttfr, (0, 0));
        groups
    }

    /// The mechanisms have changed, or the loss rate has risen.
    fn renew(&mut self, pttfr: u8, packets: (u64, u64)) {
        let all = std::iter::once(&self.base).chain(&self.others);
        self.is_any_on = all.clone().any(|group| group.thin.is_any());
        let timed = all.clone().zip(0..).filter(|(group, _)| group.thin.recovery_timer.is_on);
        self.timed = timed.fold(0, |groups, (_, index)| groups | 1 << index);
        self.yields = all.clone().any(|group| !group.thin.yield_to_queue.is_zero());
        let most_stated = all.map(|group| match group.thin.test {
            ThinTest::Packets(most) => most.into(),
            ThinTest::PacketsInFlight | ThinTest::Linux => 0,
        });
        let most = ThinTest::most_when_thin(pttfr, packets);
        self.most_when_thin = most_stated.max().unwrap_or(0).max(most);
    }

    /// The groups that have a recovery timer, a bit each.
    #[inline]
    pub(super) const fn timed(&self) -> u32 {
        self.timed
    }

    /// Some group yields to queues.
    #[inline]
    pub(super) const fn yields(&self) -> bool {
        self.yields
    }

    /// Some group has a mechanism.
    #[inline]
    pub(super) const fn is_any_on(&self) -> bool {
        self.is_any_on
    }

    /// Whether any group has copies in packets of their own.
    pub(super) fn has_copies(&self) -> bool {
        let has_copies = |group: &Group| group.thin.spaced_copies.is_any();
        self.is_any_on && (has_copies(&self.base) || self.others.iter().any(has_copies))
    }

    /// Whether there is only one.
    pub(super) const fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    #[inline]
    pub(super) fn of(&self, group: u8) -> &Group {
        match usize::from(group).checked_sub(1) {
            None => &self.base,
            Some(index) => &self.others[index],
        }
    }

    fn of_mut(&mut self, group: u8) -> &mut Group {
        match usize::from(group).checked_sub(1) {
            None => &mut self.base,
            Some(index) => &mut self.others[index],
        }
    }

    fn len(&self) -> u8 {
        self.others.len() as u8 + 1
    }
}

impl<P> LossRecovery<P> {
    /// A new group of units, with mechanisms of its own; new units are put into it by
    /// [`set_group`](Self::set_group).
    ///
    /// # Errors
    /// With [`MAX_GROUPS`] groups.
    pub fn add_group(&mut self, thin: ThinConfig) -> Result<u8, GroupLimit> {
        let group = self.groups.len();
        if usize::from(group) >= MAX_GROUPS {
            return Err(GroupLimit);
        }
        self.groups.others.push(Group::of_its_own(thin));
        self.on_mechanisms_changed();
        Ok(group)
    }

    /// What is done about loss in `group` while it is thin, from now on.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn set_thin(&mut self, group: u8, thin: ThinConfig) {
        *self.groups.of_mut(group) = Group::of_its_own(thin);
        self.on_mechanisms_changed();
        self.renew_thin_deadlines();
        (0..self.paths.len() as u8).for_each(|path| self.renew_overdue(path));
    }

    fn on_mechanisms_changed(&mut self) {
        let packets = (self.statistics.packets, self.statistics.packets_lost);
        self.groups.renew(self.config.missing_reports, packets);
        if self.groups.timed() != 0 {
            self.paths.iter_mut().for_each(|path| _ = path.watch.get_or_insert_default());
        }
    }

    /// What is done about loss in `group` while it is thin.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn thin_config(&self, group: u8) -> &ThinConfig {
        &self.groups.of(group).thin
    }

    /// Whether `group` is thin now.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    #[inline]
    pub fn is_thin(&self, group: u8) -> bool {
        self.ledger.packets_of(group) <= self.groups.most_when_thin && self.passes_test(group)
    }

    fn passes_test(&self, group: u8) -> bool {
        self.groups.of(group).thin.test.is_thin(&self.thin_inputs(group))
    }

    /// The same, with the figures that decide it.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    pub fn thinness(&self, group: u8) -> Thinness {
        self.groups.of(group).thin.test.explain(&self.thin_inputs(group))
    }

    /// Whether the peer is to be asked to acknowledge units of `group` at once.
    ///
    /// # Panics
    /// If there is no such group.
    #[must_use]
    #[inline]
    pub fn wants_immediate_ack(&self, group: u8) -> bool {
        self.groups.of(group).thin.sack_immediately && self.is_thin(group)
    }

    /// Whether the round-trip time is to be measured by other means where an acknowledgement is
    /// ambiguous. The recovery timer learns from those that are not, and needs more only before the
    /// first, or when nothing but a sample ends the backoff of T3-rtx.
    #[must_use]
    pub fn wants_other_samples(&self) -> bool {
        let timer = &self.path(self.data_path).timer;
        let is_short_of = timer.rtt().srtt().is_none() || timer.backoffs() > 0;
        let wants = |group| {
            let thin = &self.groups.of(group).thin;
            let is_short_of = is_short_of || !thin.recovery_timer.is_on;
            thin.heartbeat_samples && is_short_of && self.is_thin(group)
        };
        self.groups.is_any_on && (0..self.groups.len()).any(wants)
    }

    fn thin_inputs(&self, group: u8) -> ThinInputs {
        ThinInputs {
            in_flight: self.ledger.packets_of(group),
            packets: (self.statistics.packets, self.statistics.packets_lost),
            pttfr: self.config.missing_reports,
            is_initial_slow_start: self.window(0).ssthresh() == u64::from(u32::MAX),
        }
    }

    /// The group of the earliest unit outstanding on `path`, whose rules are the timer's.
    pub(super) fn group_of_earliest(&self, path: u8) -> u8 {
        if self.groups.others.is_empty() {
            return 0;
        }
        self.unit(self.path(path).earliest).map_or(0, |unit| unit.group)
    }

    /// Reports, or acknowledged units above, that make a unit of `group` lost.
    pub(super) fn loss_threshold(&self, group: u8) -> u8 {
        let is_first = self.groups.of(group).thin.first_indication && self.is_thin(group);
        if is_first { 1 } else { self.config.missing_reports }
    }

    /// The groups in which the first missing report makes a loss now, a bit each.
    pub(super) fn first_indication_groups(&self) -> u32 {
        if !self.groups.is_any_on {
            return 0;
        }
        let acts = |&group: &u8| self.groups.of(group).thin.first_indication && self.is_thin(group);
        (0..self.groups.len()).filter(acts).fold(0, |groups, group| groups | 1 << group)
    }

    /// Whether `unit` is of one of `groups`.
    pub(super) fn is_of(&self, unit: u64, groups: u32) -> bool {
        groups != 0 && self.unit(unit).is_some_and(|unit| groups & (1 << unit.group) != 0)
    }

    /// One more packet was judged lost; `is_first`: with something that left once.
    pub(super) fn count_lost_packet(&mut self, is_first: bool) {
        self.statistics.packets_lost += 1;
        if is_first {
            self.latest_losses.on_lost();
        }
        let packets = (self.statistics.packets, self.statistics.packets_lost);
        self.groups.renew(self.config.missing_reports, packets);
    }

    /// Tells of the groups that became thin or thick.
    #[inline]
    pub(super) fn watch_thinness(&mut self, tracer: &mut Tracer<'_>) {
        let Groups { base, is_any_on, .. } = &self.groups;
        if *is_any_on && !(base.was_thin == Some(false) && self.is_surely_thick()) {
            self.tell_thinness(tracer);
        }
    }

    /// Far from thin, with one group: what bulk is asked with every packet.
    #[inline]
    pub(super) fn is_surely_thick(&self) -> bool {
        self.groups.others.is_empty() && self.ledger.packets_of(0) > self.groups.most_when_thin
    }

    fn tell_thinness(&mut self, tracer: &mut Tracer<'_>) {
        for group in 0..self.groups.len() {
            let is_thin = self.is_thin(group);
            let known = self.groups.of(group);
            if known.was_thin == Some(is_thin) || !known.thin.is_any() {
                continue;
            }
            self.statistics.thin_changes += u64::from(known.was_thin.is_some());
            self.groups.of_mut(group).was_thin = Some(is_thin);
            tracer.emit(|| {
                let Thinness { is_thin, in_flight, loss_rate, bound } = self.thinness(group);
                TraceEvent::Thin { group, is_thin, in_flight, loss_rate, bound }
            });
        }
    }
}
