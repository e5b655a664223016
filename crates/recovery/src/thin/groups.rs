//! Groups of units: group 0 is the whole association except for the streams that the application singled
//! out, which have groups of their own. Each is thin or not by its own packets in flight.

use std::ops::Deref;
use std::sync::Arc;

use crate::{RecoveryConfig, ThinConfig, ThinInputs, ThinTest, Thinness};

/// Groups of one association at most.
pub const MAX_GROUPS: usize = 32;

/// There are [`MAX_GROUPS`] groups, and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit;

#[derive(Clone, Debug)]
struct Group {
    thin: Mechanisms,
    /// Whether it was thin when it was looked at last.
    was_thin: Option<bool>,
}

#[derive(Clone, Debug)]
enum Mechanisms {
    /// Those of the configuration, which many associations share.
    Configured(Arc<RecoveryConfig>),
    /// Its own.
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
    fn own(thin: ThinConfig) -> Self {
        Self { thin: Mechanisms::Own(Box::new(thin)), was_thin: None }
    }
}

/// All groups of an association; group 0 takes no allocation.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    base: Group,
    others: Vec<Group>,
    /// `pttfr`: missing reports that make a loss.
    pttfr: u8,
    /// Some group has a mechanism.
    has_mechanisms: bool,
    /// The groups that have a probe timer, one bit each.
    probed: u32,
    /// Some group backs off by queueing delay.
    yields: bool,
    /// No group with more packets in flight is thin: spares bulk the exact test.
    most_when_thin: u32,
}

impl Groups {
    pub(crate) fn new(config: &Arc<RecoveryConfig>) -> Self {
        let base = Group { thin: Mechanisms::Configured(Arc::clone(config)), was_thin: None };
        let mut groups = Self {
            base,
            others: Vec::new(),
            pttfr: config.missing_reports,
            has_mechanisms: false,
            probed: 0,
            yields: false,
            most_when_thin: 0,
        };
        groups.refresh((0, 0));
        groups
    }

    /// A new group with these mechanisms; `packets`: sent, and of these declared lost.
    pub(crate) fn add(&mut self, thin: ThinConfig, packets: (u64, u64)) -> Result<u8, GroupLimit> {
        let group = self.count();
        if usize::from(group) >= MAX_GROUPS {
            return Err(GroupLimit);
        }
        self.others.push(Group::own(thin));
        self.refresh(packets);
        Ok(group)
    }

    /// `group` has these mechanisms from now on.
    pub(crate) fn set(&mut self, group: u8, thin: ThinConfig, packets: (u64, u64)) {
        *self.group_mut(group) = Group::own(thin);
        self.refresh(packets);
    }

    /// The mechanisms have changed, or the loss rate has risen.
    pub(crate) fn refresh(&mut self, packets: (u64, u64)) {
        let all = std::iter::once(&self.base).chain(&self.others);
        self.has_mechanisms = all.clone().any(|group| group.thin.is_any());
        let probed = all.clone().zip(0..).filter(|(group, _)| group.thin.probe_timer.is_some());
        self.probed = probed.fold(0, |groups, (_, index)| groups | 1 << index);
        self.yields = all.clone().any(|group| group.thin.queue_delay_limit.is_some());
        let most_stated = all.map(|group| match group.thin.test {
            ThinTest::Packets(most) => most.into(),
            ThinTest::PacketsInFlight | ThinTest::Linux => 0,
        });
        let most = ThinTest::most_when_thin(self.pttfr, packets);
        self.most_when_thin = most_stated.max().unwrap_or(0).max(most);
    }

    /// The mechanisms of `group`.
    #[inline]
    pub(crate) fn config(&self, group: u8) -> &ThinConfig {
        match usize::from(group).checked_sub(1) {
            None => &self.base.thin,
            Some(index) => &self.others[index].thin,
        }
    }

    fn group_mut(&mut self, group: u8) -> &mut Group {
        match usize::from(group).checked_sub(1) {
            None => &mut self.base,
            Some(index) => &mut self.others[index],
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u8 {
        self.others.len() as u8 + 1
    }

    /// Whether there is only one.
    #[inline]
    pub(crate) const fn is_one(&self) -> bool {
        self.others.is_empty()
    }

    /// The groups that have a probe timer, one bit each.
    #[inline]
    pub(crate) const fn probed(&self) -> u32 {
        self.probed
    }

    /// Whether some group backs off by queueing delay.
    #[inline]
    pub(crate) const fn yields(&self) -> bool {
        self.yields
    }

    /// Whether some group has a mechanism.
    #[inline]
    pub(crate) const fn has_mechanisms(&self) -> bool {
        self.has_mechanisms
    }

    /// Whether some group has delayed copies.
    pub(crate) fn has_delayed_copies(&self) -> bool {
        let has_copies = |group: u8| self.config(group).delayed_copies.is_any();
        self.has_mechanisms && (0..self.count()).any(has_copies)
    }

    /// Whether a group with so many packets in flight is not thin for certain.
    #[inline]
    pub(crate) const fn is_surely_thick(&self, in_flight: u32) -> bool {
        in_flight > self.most_when_thin
    }

    /// Whether `group` is thin.
    #[inline]
    pub(crate) fn is_thin(&self, group: u8, inputs: &ThinInputs) -> bool {
        !self.is_surely_thick(inputs.in_flight) && self.config(group).test.is_thin(inputs)
    }

    /// The same, with the figures that decide it.
    pub(crate) fn explain(&self, group: u8, inputs: &ThinInputs) -> Thinness {
        self.config(group).test.explain(inputs)
    }

    /// Whether nothing depends on whether a group is thin; `in_flight` are the packets of group 0.
    #[inline]
    pub(crate) fn is_known_thick(&self, in_flight: u32) -> bool {
        !self.has_mechanisms || (self.base.was_thin == Some(false) && self.is_one_thick(in_flight))
    }

    /// Whether there is one group, and it is not thin for certain.
    #[inline]
    pub(crate) const fn is_one_thick(&self, in_flight: u32) -> bool {
        self.is_one() && self.is_surely_thick(in_flight)
    }

    /// `group` is thin or not. Returns whether that is another than before, and whether it was known before,
    /// for a group with mechanisms.
    pub(crate) fn note(&mut self, group: u8, is_thin: bool) -> Option<bool> {
        let known = self.group_mut(group);
        if known.was_thin == Some(is_thin) || !known.thin.is_any() {
            return None;
        }
        Some(known.was_thin.replace(is_thin).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProbeConfig;

    const TIMED: ThinConfig =
        ThinConfig { probe_timer: Some(ProbeConfig::DEFAULT), ..ThinConfig::OFF };

    fn groups(thin: ThinConfig) -> Groups {
        Groups::new(&Arc::new(RecoveryConfig { thin, ..RecoveryConfig::rfc9260() }))
    }

    fn inputs(in_flight: u32) -> ThinInputs {
        ThinInputs { in_flight, packets: (0, 0), pttfr: 3, is_initial_slow_start: false }
    }

    #[test]
    fn groups_have_mechanisms_of_their_own() {
        let mut groups = groups(ThinConfig::OFF);
        assert!(groups.is_one() && !groups.has_mechanisms() && groups.probed() == 0);
        let group = groups.add(TIMED, (0, 0)).expect("there is room");
        assert_eq!((group, groups.count(), groups.is_one()), (1, 2, false));
        assert_eq!(
            (groups.has_mechanisms(), groups.probed(), groups.yields()),
            (true, 0b10, false)
        );
        assert!(groups.config(1).probe_timer.is_some() && groups.config(0).probe_timer.is_none());
        let yielding =
            ThinConfig { queue_delay_limit: Some(std::time::Duration::from_millis(9)), ..TIMED };
        groups.set(0, yielding, (0, 0));
        assert_eq!(
            (groups.probed(), groups.yields(), groups.has_delayed_copies()),
            (0b11, true, false)
        );
        groups.set(0, ThinConfig::OFF, (0, 0));
        groups.set(1, ThinConfig::OFF, (0, 0));
        assert_eq!((groups.has_mechanisms(), groups.probed(), groups.yields()), (false, 0, false));
    }

    #[test]
    fn there_is_an_end_of_groups() {
        let mut groups = groups(ThinConfig::OFF);
        for group in 1..MAX_GROUPS {
            assert_eq!(groups.add(TIMED, (0, 0)).map(usize::from), Ok(group));
        }
        assert_eq!(groups.add(TIMED, (0, 0)), Err(GroupLimit));
        assert_eq!(groups.probed(), u32::MAX - 1);
    }

    /// The short way of bulk never says other than the test itself.
    #[test]
    fn what_is_surely_thick_is_not_thin() {
        for test in [ThinTest::PacketsInFlight, ThinTest::Linux, ThinTest::Packets(9)] {
            for packets in [(0, 0), (100, 50), (10, 10)] {
                let mut groups = groups(ThinConfig { test, ..TIMED });
                groups.refresh(packets);
                for in_flight in 0..40 {
                    let inputs = ThinInputs { packets, ..inputs(in_flight) };
                    let is_thin = groups.explain(0, &inputs).is_thin;
                    assert_eq!(groups.is_thin(0, &inputs), is_thin, "{test:?} {packets:?}");
                    assert!(!(is_thin && groups.is_one_thick(in_flight)), "{test:?} {packets:?}");
                }
            }
        }
    }

    #[test]
    fn a_change_is_noted_once_and_the_first_look_is_none() {
        let mut groups = groups(TIMED);
        assert!(!groups.is_known_thick(100), "it was not looked at");
        let noted = [true, true, false, false, true].map(|is_thin| groups.note(0, is_thin));
        assert_eq!(noted, [Some(false), None, Some(true), None, Some(true)]);
        groups.note(0, false);
        assert!(groups.is_known_thick(100) && !groups.is_known_thick(3));
        groups.set(0, ThinConfig::OFF, (0, 0));
        assert_eq!((groups.note(0, true), groups.is_known_thick(0)), (None, true), "no mechanism");
    }
}
