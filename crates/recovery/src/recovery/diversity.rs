//! Several paths that are compared by what is measured on them: probes of idle ones, and reviews of the path of new data.

use std::array;

use rexmit_core::Instant;

use super::LossRecovery;
use crate::paths::{MAX_MEASURED, PathLatency};
use crate::state::State;

impl<P> LossRecovery<P> {
    /// Whether paths without new data are to be probed while new data is sent: the path of new data is chosen by what is
    /// measured on all, and the stream is thin.
    #[must_use]
    pub fn probes_idle_paths(&self) -> bool {
        let State { paths, config, .. } = &self.state;
        !paths.is_one() && config.sctp.lowest_tail && self.state.is_thin(0)
    }

    /// Whether a probe of `path`, which is idle, is worth a packet now; if so, it is counted as sent.
    pub fn take_idle_probe(&mut self, path: u8) -> bool {
        let Self { state, probe, .. } = self;
        let is_cold = probe.round_trip(state, path, 0).is_none_or(|rtt| rtt.is_cold);
        state.paths.diversity_mut().is_some_and(|diversity| diversity.take_probe(path, is_cold))
    }

    /// Called when a probe of an idle path was answered, or will not be.
    pub fn on_idle_probe(&mut self, now: Instant, path: u8, is_answered: bool) {
        let Some(diversity) = self.state.paths.diversity_mut() else { return };
        match is_answered {
            true => diversity.on_arrived(path, None),
            false => diversity.on_lost(path, None, None),
        }
        self.review_paths(now);
    }

    /// Reviews which path new data takes, if that is due.
    pub(super) fn review_paths(&mut self, now: Instant) {
        let Self { state, probe, .. } = &mut *self;
        let Some(diversity) = state.paths.diversity() else { return };
        if !state.config.sctp.lowest_tail || !diversity.is_review_due(now) {
            return;
        }
        let is_suspect = diversity.is_suspect(diversity.preferred());
        let latency = |path: u8| {
            let is_usable = path < state.paths.count() && state.paths.is_active(path);
            let measured = is_usable.then(|| probe.round_trip(state, path, 0))?;
            // What is not measured is better than what fails.
            let known = measured.filter(|rtt| is_suspect || !rtt.is_cold);
            let known = known.map(|rtt| PathLatency { mean: rtt.mean, timeout: rtt.timeout });
            known.or(is_suspect.then_some(PathLatency::UNKNOWN))
        };
        let latencies: [_; MAX_MEASURED] = array::from_fn(|path| latency(path as u8));
        let diversity = state.paths.diversity_mut();
        if diversity.is_some_and(|diversity| diversity.review(now, &latencies)) {
            let moves = self.state.choose_paths();
            self.on_moves(moves);
        }
    }
}
