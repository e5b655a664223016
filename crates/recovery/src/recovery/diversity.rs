//! Several paths that are compared by measurements: probes of idle ones, and reviews of the path of new data.

use std::array;

use rexmit_core::Instant;

use super::LossRecovery;
use crate::paths::{MAX_MEASURED, UNKNOWN};

impl<P> LossRecovery<P> {
    /// Whether a probe of `path`, which carries no new data, is worth a packet now: the path of new data is chosen by
    /// measurements of all, the stream is thin, and too little is known of this path. If so, the probe is counted as sent.
    pub fn take_idle_probe(&mut self, path: u8) -> bool {
        let Self { state, probe, .. } = self;
        if !state.config.sctp.lowest_tail || !state.is_thin(0) {
            return false;
        }
        let is_cold = probe.round_trip(state, path, 0).is_none_or(|rtt| rtt.is_cold);
        state.paths.diversity_mut().is_some_and(|diversity| diversity.take_probe(path, is_cold))
    }
}

/// Reviews which path new data takes, if that is due.
pub(super) fn review_paths<P>(recovery: &mut LossRecovery<P>, now: Instant) {
    let LossRecovery { state, probe, .. } = &mut *recovery;
    let Some(diversity) = state.paths.diversity() else { return };
    if !state.config.sctp.lowest_tail || !diversity.is_review_due(now) {
        return;
    }
    let is_suspect = diversity.is_suspect(diversity.preferred());
    let latency = |path: u8| {
        let is_usable = path < state.paths.count() && state.paths.is_active(path);
        let measured = is_usable.then(|| probe.round_trip(state, path, 0))?;
        // A path without measurements is better than one that fails.
        let known = measured.filter(|rtt| is_suspect || !rtt.is_cold);
        known.or(is_suspect.then_some(UNKNOWN))
    };
    let latencies: [_; MAX_MEASURED] = array::from_fn(|path| latency(path as u8));
    let diversity = state.paths.diversity_mut();
    if diversity.is_some_and(|diversity| diversity.review(now, &latencies)) {
        let moves = recovery.state.choose_paths();
        recovery.on_moves(moves);
    }
}
