//! The test of whether a stream is thin, that is, whether it has too few packets in flight for a loss to be
//! detected in time (Petlund 2009 §5.1), and the groups of streams with their mechanisms.

#[cfg(test)]
mod tests;

use crate::{RecoveryConfig, RecoveryStatistics, ThinConfig, ThinTest};
#[cfg(feature = "serde")]
use serde::Serialize;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThinInputs {
    /// Packets in flight: neither acknowledged nor declared lost.
    pub(crate) in_flight: u32,
    /// Packets sent so far.
    pub(crate) sent: u64,
    /// Packets declared lost; `lost / sent` is `lossrate`.
    pub(crate) lost: u64,
    /// Packets that trigger a fast retransmit: `pttfr`.
    pub(crate) pttfr: u8,
    /// Whether no window was ever reduced.
    pub(crate) is_initial_slow_start: bool,
}

/// The result of the thin test, with its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Thinness {
    /// Whether the stream is thin.
    pub is_thin: bool,
    /// Packets in flight.
    pub in_flight: u32,
    /// The fraction of packets declared lost.
    pub loss_rate: f64,
    /// The most packets in flight with which the stream counts as thin; infinite if every packet was lost.
    pub bound: f64,
}

impl ThinTest {
    /// Whether a stream is thin. Exact, without rounding.
    pub(crate) fn is_thin(self, inputs: &ThinInputs) -> bool {
        match self {
            Self::PacketsInFlight => {
                let (sent, lost) = (inputs.sent, inputs.lost);
                // The bound without loss is the least; most of the time nothing else is needed.
                let least = u32::from(inputs.pttfr) + 1;
                if inputs.in_flight <= least || lost == 0 {
                    return inputs.in_flight <= least;
                }
                let arrived = u128::from(sent.max(1) - lost.min(sent));
                let bound = (u128::from(inputs.pttfr) + 1) * u128::from(sent.max(1));
                u128::from(inputs.in_flight) * arrived <= bound
            }
            Self::Linux => inputs.in_flight < 4 && !inputs.is_initial_slow_start,
            Self::Packets(most) => inputs.in_flight <= u32::from(most),
        }
    }

    /// An upper bound of the packets in flight of a thin stream, for [`ThinTest::PacketsInFlight`] and [`ThinTest::Linux`]. It
    /// holds until another packet is declared lost, because packets sent meanwhile only lower the loss rate.
    pub(crate) fn most_when_thin(pttfr: u8, sent: u64, lost: u64) -> u32 {
        const LINUX: u64 = 3;
        let bound = (u64::from(pttfr) + 1).saturating_mul(sent.max(1));
        let most = match sent.max(1) - lost.min(sent) {
            0 => u64::MAX,
            arrived => bound / arrived,
        };
        u32::try_from(most.max(LINUX)).unwrap_or(u32::MAX)
    }

    /// The result of the test with its figures.
    pub(crate) fn explain(self, inputs: &ThinInputs) -> Thinness {
        let loss_rate =
            if inputs.sent == 0 { 0.0 } else { inputs.lost as f64 / inputs.sent as f64 };
        let bound = match self {
            Self::PacketsInFlight => (f64::from(inputs.pttfr) + 1.0) / (1.0 - loss_rate),
            Self::Linux if inputs.is_initial_slow_start => 0.0,
            Self::Linux => 3.0,
            Self::Packets(most) => most.into(),
        };
        Thinness { is_thin: self.is_thin(inputs), in_flight: inputs.in_flight, loss_rate, bound }
    }
}

/// The most groups of an association, group 0 included.
pub const MAX_GROUPS: usize = 32;

/// The association has [`MAX_GROUPS`] groups already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimit;

#[derive(Clone, Debug, Default)]
struct Group {
    /// The mechanisms of the group alone; `None` if it has those of the configuration.
    own: Option<Box<ThinConfig>>,
    /// Whether the group was thin when it was tested last.
    was_thin: Option<bool>,
}

/// Groups of units: group 0 is the whole association except for the streams that the application singled
/// out, which have groups of their own. Each is thin or not by its own packets in flight. What depends on
/// that is not run at all where the fields below say that nothing does.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    config: Arc<RecoveryConfig>,
    list: SmallVec<[Group; 1]>,
    /// Whether any group has a mechanism.
    pub(crate) has_mechanisms: bool,
    /// Whether the thin test is made: for a mechanism, or for what a thin stream changes beside those.
    pub(crate) is_tested: bool,
    /// The groups that have a probe timer, one bit each.
    pub(crate) probed: u32,
    /// Whether any group backs off by queueing delay.
    pub(crate) yields: bool,
    /// No group with more packets in flight than this is thin, which saves bulk transfers the exact test.
    most_when_thin: u32,
}

impl Groups {
    pub(crate) fn new(config: &Arc<RecoveryConfig>) -> Self {
        let mut groups = Self {
            config: Arc::clone(config),
            list: smallvec![Group::default()],
            has_mechanisms: false,
            is_tested: false,
            probed: 0,
            yields: false,
            most_when_thin: 0,
        };
        groups.refresh(&RecoveryStatistics::default());
        groups
    }

    /// Adds a group with the mechanisms `thin`, and returns its number.
    pub(crate) fn add(
        &mut self,
        thin: ThinConfig,
        statistics: &RecoveryStatistics,
    ) -> Result<u8, GroupLimit> {
        let group = self.count();
        if usize::from(group) >= MAX_GROUPS {
            return Err(GroupLimit);
        }
        self.list.push(Group { own: Some(Box::new(thin)), was_thin: None });
        self.refresh(statistics);
        Ok(group)
    }

    pub(crate) fn set(&mut self, group: u8, thin: ThinConfig, statistics: &RecoveryStatistics) {
        self.list[usize::from(group)] = Group { own: Some(Box::new(thin)), was_thin: None };
        self.refresh(statistics);
    }

    /// Recomputes what is derived from the mechanisms and the loss rate, after either has changed.
    pub(crate) fn refresh(&mut self, statistics: &RecoveryStatistics) {
        let all = || (0..self.count()).map(|group| self.config(group));
        let has_mechanisms = all().any(ThinConfig::is_any);
        let is_asked_by_path = self.config.sctp.lowest_tail || all().any(|it| it.sctp.by_stream);
        let probed = (0..).zip(all()).filter(|(_, thin)| thin.probe_timer.is_some());
        let probed = probed.fold(0, |groups, (group, _)| groups | 1 << group);
        let yields = all().any(|thin| thin.queue_delay_limit.is_some());
        let stated = |thin: &ThinConfig| match thin.test {
            _ if thin.tcp.small_segments => u32::MAX,
            ThinTest::Packets(most) => most.into(),
            ThinTest::PacketsInFlight | ThinTest::Linux => 0,
        };
        let pttfr = self.config.missing_reports;
        let most = ThinTest::most_when_thin(pttfr, statistics.packets, statistics.packets_lost);
        let most = all().map(stated).fold(most, u32::max);
        (self.has_mechanisms, self.probed, self.yields) = (has_mechanisms, probed, yields);
        self.is_tested = has_mechanisms || is_asked_by_path;
        // Losses are not followed then.
        self.most_when_thin = if self.is_tested { most } else { u32::MAX };
    }

    #[inline]
    pub(crate) fn config(&self, group: u8) -> &ThinConfig {
        self.list[usize::from(group)].own.as_deref().unwrap_or(&self.config.thin)
    }

    pub(crate) fn count(&self) -> u8 {
        self.list.len() as u8
    }

    #[inline]
    pub(crate) fn is_one(&self) -> bool {
        self.list.len() == 1
    }

    pub(crate) fn has_delayed_copies(&self) -> bool {
        let has_copies = |group: u8| self.config(group).delayed_copies.is_any();
        self.has_mechanisms && (0..self.count()).any(has_copies)
    }

    /// Whether no group with `in_flight` packets in flight can be thin.
    #[inline]
    pub(crate) const fn is_surely_thick(&self, in_flight: u32) -> bool {
        in_flight > self.most_when_thin
    }

    /// Whether there is one group, and it is thick as it was before, with `in_flight` packets in flight.
    #[inline]
    pub(crate) fn is_known_thick(&self, in_flight: u32) -> bool {
        let was_thin = self.list[0].was_thin;
        was_thin == Some(false) && self.is_one() && self.is_surely_thick(in_flight)
    }

    /// Records whether `group` is thin. Returns, for a group with mechanisms whose state has changed, whether
    /// the state was known before; `None` otherwise.
    pub(crate) fn note(&mut self, group: u8, is_thin: bool) -> Option<bool> {
        let has_mechanism = self.config(group).is_any();
        let was_thin = &mut self.list[usize::from(group)].was_thin;
        if !has_mechanism || *was_thin == Some(is_thin) {
            return None;
        }
        Some(was_thin.replace(is_thin).is_some())
    }
}
