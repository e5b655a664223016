//! Duplicate ACKs of a peer without SACK: the recovery that the third begins (RFC 5681 §3.2, RFC 6582).

use rexmit_core::trace::SendCause;

use super::LossRecovery;
use super::ack::{Acknowledging, ONLY_PATH};
use crate::outstanding::Unit;

/// The group of duplicate ACKs: TCP has one stream.
const ONLY_GROUP: u8 = 0;

impl<P> Acknowledging<'_, '_, '_, P> {
    /// Called when the cumulative point has moved in a recovery that duplicate ACKs began: ends it, or handles a
    /// partial ACK (RFC 6582 §3.2 step 3).
    pub(super) fn advance_in_duplicates(&mut self) {
        let LossRecovery { state, loss, .. } = &mut *self.recovery;
        if state.fast_recovery.is_on() {
            let acked = self.paths[usize::from(ONLY_PATH)].cumulative_bytes;
            let packet = state.paths[ONLY_PATH].window.packet();
            self.may_restart_t3 = loss.duplicates.on_partial(acked, packet);
            self.outcome.newly_lost += self.lose_first();
            self.recovery.state.paths[ONLY_PATH].gate.open_for_retransmission();
        } else {
            loss.duplicates.clear();
            let flight = state.outstanding.flight(ONLY_PATH).bytes;
            state.paths[ONLY_PATH].window.on_recovery_left(flight);
            state.trace_window(ONLY_PATH, self.tracer);
        }
    }

    /// Returns how many units are lost: one or none.
    fn lose_first(&mut self) -> u64 {
        let first = self.recovery.state.outstanding.cumulative() + 1;
        let is_in_flight =
            self.recovery.state.outstanding.unit(first).is_some_and(Unit::is_in_flight);
        if is_in_flight {
            self.recovery.declare_lost(first, SendCause::FastRetransmit, self.tracer);
        }
        u64::from(is_in_flight)
    }

    /// A duplicate acknowledgement. The third begins a recovery, unless the units of the last one, or of a
    /// timeout, are not all acknowledged yet (RFC 5681 §3.2, RFC 6582).
    pub(super) fn count_duplicate(&mut self) {
        let LossRecovery { state, loss, spurious, .. } = &mut *self.recovery;
        if state.outstanding.is_empty() {
            return;
        }
        let flight = state.outstanding.flight(ONLY_PATH).bytes;
        let packet = state.paths[ONLY_PATH].window.packet();
        let count = loss.duplicates.on_duplicate(packet, flight);
        let recover = state.fast_recovery.recover();
        let covers_more = recover.is_none_or(|recover| state.outstanding.cumulative() > recover);
        let threshold = u32::from(state.loss_threshold(ONLY_GROUP));
        // RFC 5682 §2.1 steps 2 a and 3 a.
        spurious.iter_mut().for_each(|it| it.end_f_rto(ONLY_PATH));
        // A stream that becomes thin after its first duplicate has one more to begin with.
        let is_threshold = count == threshold || (threshold == 1 && count > 1);
        if is_threshold && covers_more && !state.fast_recovery.is_on() {
            loss.duplicates.on_recovery();
            self.lose_first();
            self.recovery.state.outstanding.forget_ended();
            self.recovery.reduce_window(ONLY_PATH, self.tracer);
            self.recovery.state.begin_recovery();
            self.recovery.state.settle_gates();
        }
    }
}
