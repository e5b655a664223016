//! Fast retransmit and fast recovery for a peer without SACK (RFC 5681 §3.2, RFC 6582), and limited
//! transmit (RFC 3042).

use rexmit_core::trace::{SendCause, Tracer};

use super::ack::Progress;
use super::{LossRecovery, UnitState};
use crate::spurious::f_rto::FRto;

/// One path: TCP.
const PATH: u8 = 0;
/// One stream, too.
const GROUP: u8 = 0;

impl<P> LossRecovery<P> {
    /// A duplicate acknowledgement (RFC 5681 §2) of a peer that does not report what it holds above
    /// the cumulative point. Over path 0. The third begins a recovery, unless the units of the last
    /// one, or of a timeout, are not all acknowledged yet.
    pub fn on_duplicate_ack(&mut self, tracer: &mut Tracer<'_>) {
        if self.is_empty() {
            return;
        }
        let flight = self.ledger.flight(PATH).bytes;
        let count = self.duplicates.on_duplicate(self.window(PATH).packet(), flight);
        let covers_more = self.recover.is_none_or(|recover| self.cumulative() > recover);
        let threshold = u32::from(self.loss_threshold(GROUP));
        self.path_mut(PATH).set_f_rto(FRto::Off); // RFC 5682 §2.1 steps 2 a and 3 a.
        // A stream that thins after its first duplicate has one more to begin with.
        let is_threshold = count == threshold || (threshold == 1 && count > 1);
        if is_threshold && covers_more && !self.is_in_fast_recovery() {
            self.duplicates.on_recovery();
            self.mark_lost_if_in_flight(self.first, tracer);
            self.ledger.forget_ended();
            self.reduce_window(PATH, tracer);
            self.begin_recovery();
            self.settle_resending();
        }
    }

    /// The cumulative point moved, though the peer does not report what it holds above: the end of
    /// a recovery that duplicates began, or the next hole in it (RFC 6582 §3.2 step 3).
    pub(super) fn take_advance(&mut self, progress: &mut Progress, tracer: &mut Tracer<'_>) {
        if !progress.outcome.has_advanced {
            return;
        }
        self.beyond_window = 0;
        if !self.duplicates.is_recovering() {
            self.duplicates.clear();
        } else if self.is_in_fast_recovery() {
            let acked = self.path(PATH).ack.cumulative_bytes;
            let is_first = self.duplicates.on_partial(acked, self.window(PATH).packet());
            progress.may_restart_timer = is_first;
            progress.outcome.newly_lost += self.mark_lost_if_in_flight(self.first, tracer);
            self.path_mut(PATH).may_resend_now = true;
        } else {
            self.duplicates.clear();
            let flight = self.ledger.flight(PATH).bytes;
            self.path_mut(PATH).window.on_recovery_left(flight);
            self.trace_window(PATH, tracer);
        }
    }

    /// Returns how many units that are: one or none.
    fn mark_lost_if_in_flight(&mut self, unit: u64, tracer: &mut Tracer<'_>) -> u64 {
        let is_in_flight = self.unit(unit).is_some_and(|u| u.state == UnitState::InFlight);
        if is_in_flight {
            self.mark_lost(unit, SendCause::FastRetransmit, tracer);
        }
        u64::from(is_in_flight)
    }

    /// What may leave beyond the window of `path` because of the first duplicates.
    pub(super) fn limited_transmit(&self, path: u8) -> u64 {
        let is_allowed = self.config.limited_transmit && !self.has_lost();
        if is_allowed { self.duplicates.limited_transmit(self.window(path).packet()) } else { 0 }
    }

    /// A new unit of `bytes` leaves over `path`. What leaves beyond the window, because of what
    /// acknowledgements told of later units, is left out when the window is reduced
    /// (RFC 5681 §3.2 step 2).
    pub(super) fn count_outstanding(&mut self, path: u8, bytes: u32) {
        let bytes = u64::from(bytes);
        let has_told = !self.duplicates.is_empty() || !self.acknowledged.is_empty();
        if has_told && !self.is_in_fast_recovery() {
            let window = self.window(path);
            if self.outstanding_bytes + window.packet() > window.cwnd() {
                self.beyond_window += bytes;
            }
        }
        self.outstanding_bytes += bytes;
    }
}
