//! What an acknowledgement does, one named step after the other.

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, TraceEvent, Tracer};

use super::path::PathAck;
use super::{LossRecovery, Unit, UnitState};
use crate::Acked;
use crate::ledger::Fate;

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Older than what is known: nothing was done.
    pub is_stale: bool,
    /// The cumulative point advanced.
    pub has_advanced: bool,
    /// Units acknowledged for the first time.
    pub newly_acked: u64,
    /// Paths over which one of them was last sent, as a bit set by index (paths above 63 share
    /// the last bit).
    pub paths: u64,
    /// Units judged lost.
    pub newly_lost: u64,
}

/// Why an acknowledgement is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckError {
    /// It acknowledges a unit that was never sent.
    NeverSent,
}

/// What the steps hand on to each other.
struct Progress {
    cumulative: u64,
    was_in_fast_recovery: bool,
    highest_before: u64,
    highest_newly_acked: Option<u64>,
    highest_in_blocks: u64,
    /// Units that the receiver has dropped after it acknowledged them.
    reneged: Vec<u64>,
    outcome: AckOutcome,
}

impl<P> LossRecovery<P> {
    /// Every unit up to `cumulative` and those in `blocks` (inclusive ranges, ascending) are
    /// acknowledged. `on_delivered` gets each unit that the cumulative point passes, in order.
    ///
    /// # Errors
    /// [`AckError::NeverSent`] if `cumulative` is beyond the last unit sent; nothing was done.
    pub fn on_ack(
        &mut self,
        now: Instant,
        (cumulative, blocks): (u64, impl Iterator<Item = (u64, u64)> + Clone),
        tracer: &mut Tracer<'_>,
        on_delivered: impl FnMut(Unit<P>),
    ) -> Result<AckOutcome, AckError> {
        if cumulative >= self.next_unit() {
            return Err(AckError::NeverSent);
        }
        if cumulative < self.cumulative() {
            return Ok(AckOutcome { is_stale: true, ..AckOutcome::default() });
        }
        let mut progress = self.begin_ack(cumulative);
        self.take_cumulative(&mut progress, tracer, on_delivered);
        self.take_blocks(&mut progress, blocks.clone(), tracer);
        self.check_reneging(&mut progress, blocks);
        self.sample_round_trips(now, tracer);
        self.grow_windows(&progress, tracer);
        self.leave_fast_recovery(&progress);
        self.watch_overtaken(&progress);
        self.detect_losses(&mut progress, tracer);
        self.watch_reneged(&progress);
        self.update_timers(now);
        self.settle_resending();
        self.ledger.forget_ended();
        Ok(progress.outcome)
    }

    fn begin_ack(&mut self, cumulative: u64) -> Progress {
        for (path, index) in self.paths.iter_mut().zip(0..) {
            path.ack =
                PathAck { flight_before: self.ledger.flight(index).bytes, ..PathAck::default() };
        }
        Progress {
            cumulative,
            was_in_fast_recovery: self.is_in_fast_recovery(),
            highest_before: self.acknowledged.max().unwrap_or(self.cumulative()),
            highest_newly_acked: None,
            highest_in_blocks: cumulative,
            reneged: Vec::new(),
            outcome: AckOutcome::default(),
        }
    }

    fn take_cumulative(
        &mut self,
        progress: &mut Progress,
        tracer: &mut Tracer<'_>,
        mut on_delivered: impl FnMut(Unit<P>),
    ) {
        progress.outcome.has_advanced = progress.cumulative >= self.first;
        while self.first <= progress.cumulative {
            self.take_unit(self.first, progress, tracer);
            let Some(unit) = self.units.pop_front() else { break };
            self.first += 1;
            on_delivered(unit);
        }
        self.acknowledged.remove_below(self.first);
        self.missing.forget_through(progress.cumulative);
    }

    fn take_blocks(
        &mut self,
        progress: &mut Progress,
        blocks: impl Iterator<Item = (u64, u64)>,
        tracer: &mut Tracer<'_>,
    ) {
        let end_of_sent = self.next_unit();
        let mut acknowledged = std::mem::take(&mut self.acknowledged);
        for (start, end) in blocks {
            // A block at or below the cumulative point, or of units never sent, says nothing.
            if start <= progress.cumulative || end < start || end >= end_of_sent {
                continue;
            }
            progress.highest_in_blocks = progress.highest_in_blocks.max(end);
            acknowledged.insert_range(start, end, |from, to| {
                for unit in from..=to {
                    self.take_unit(unit, progress, tracer);
                }
            });
        }
        self.acknowledged = acknowledged;
    }

    /// `unit` is acknowledged; counts it if that is new.
    fn take_unit(&mut self, unit: u64, progress: &mut Progress, tracer: &mut Tracer<'_>) {
        let Some(u) = self.unit_mut(unit) else { return };
        let (state, path, bytes) = (u.state, u.path, u.bytes);
        // What was given up has left the books before, and stays given up.
        if matches!(state, UnitState::Acknowledged | UnitState::Abandoned) {
            return;
        }
        let (packet, is_first_copy) = (u.packet, u.transmissions == 1);
        u.state = UnitState::Acknowledged;
        match state {
            UnitState::InFlight => {
                if let Some(ended) = self.leave_flight(unit, Fate::Acknowledged) {
                    tracer.emit(|| TraceEvent::PacketAcked { packet: ended.0 });
                }
            }
            UnitState::Lost(_) => {
                self.lost.remove(&unit);
            }
            UnitState::Abandoned | UnitState::Acknowledged => {}
        }
        self.missing.forget(unit);
        progress.highest_newly_acked = progress.highest_newly_acked.max(Some(unit));
        progress.outcome.newly_acked += 1;
        progress.outcome.paths |= 1 << path.min(63);
        let sent_at = self.ledger.packet(packet).map(|packet| packet.sent_at);
        let p = self.path_mut(path);
        p.outstanding -= 1;
        p.ack.bytes += u64::from(bytes);
        p.ack.has_acked_earliest |= p.earliest == unit;
        if is_first_copy {
            p.ack.sample_sent_at = p.ack.sample_sent_at.max(sent_at);
        }
    }

    /// A unit that was acknowledged above the cumulative point must pass with it; if it is left in
    /// front unacknowledged, the receiver reneged (RFC 9260 §6.2.1 D iii, R4), and what it no
    /// longer reports is in flight again. A SACK overtaken by a newer one
    /// cannot be mistaken for this.
    fn check_reneging(
        &mut self,
        progress: &mut Progress,
        blocks: impl Iterator<Item = (u64, u64)> + Clone,
    ) {
        let in_front = self.units.front().map(|unit| unit.state);
        if in_front != Some(UnitState::Acknowledged) {
            return;
        }
        let mut still = rexmit_core::RangeSet::new();
        let end_of_sent = self.next_unit();
        for (start, end) in blocks.filter(|&(s, e)| s > progress.cumulative && e < end_of_sent) {
            still.insert_range(start, end, |_, _| ());
        }
        let reneged: Vec<u64> =
            self.acknowledged.iter().flatten().filter(|&unit| !still.contains(unit)).collect();
        self.acknowledged = still;
        for &unit in &reneged {
            let Some(u) = self.unit_mut(unit) else { continue };
            // What was given up after it was acknowledged stays given up.
            if u.state != UnitState::Acknowledged {
                continue;
            }
            u.state = UnitState::InFlight;
            let (path, bytes, user_bytes) = (u.path, u.bytes, u.user_bytes);
            self.ledger.on_unit_returned(path, bytes);
            self.user_bytes_in_flight += u64::from(user_bytes);
            let p = self.path_mut(path);
            p.earliest = if p.outstanding == 0 { unit } else { p.earliest.min(unit) };
            p.outstanding += 1;
        }
        progress.reneged = reneged;
    }

    /// What was reneged has one missing report, whatever else this acknowledgement says.
    fn watch_reneged(&mut self, progress: &Progress) {
        for &unit in &progress.reneged {
            if self.unit(unit).is_some_and(Unit::may_be_fast_retransmitted) {
                self.missing.watch(unit, 1);
            }
        }
    }

    fn sample_round_trips(&mut self, now: Instant, tracer: &mut Tracer<'_>) {
        for path in 0..self.paths.len() as u8 {
            let p = self.path(path);
            if let Some(sent_at) = p.ack.sample_sent_at.filter(|&at| p.may_sample(at)) {
                self.on_rtt_sample(now, path, now - sent_at, tracer);
            }
        }
    }

    fn grow_windows(&mut self, progress: &Progress, tracer: &mut Tracer<'_>) {
        for path in 0..self.paths.len() as u8 {
            let flight_after = self.ledger.flight(path).bytes;
            let p = self.path_mut(path);
            if p.ack.bytes == 0 {
                continue;
            }
            p.is_after_timeout = false;
            let before = p.window.cwnd();
            p.window.on_acked(Acked {
                bytes: p.ack.bytes,
                flight_before: p.ack.flight_before,
                flight_after,
                in_fast_recovery: progress.was_in_fast_recovery,
            });
            if p.window.cwnd() != before {
                self.trace_window(path, tracer);
            }
        }
    }

    fn leave_fast_recovery(&mut self, progress: &Progress) {
        if self.fast_recovery_exit.is_some_and(|exit| progress.cumulative >= exit) {
            self.fast_recovery_exit = None;
        }
    }

    /// Units in flight below the newly highest acknowledged one are overtaken from now on.
    fn watch_overtaken(&mut self, progress: &Progress) {
        let known = progress.highest_before.max(progress.cumulative);
        let acknowledged = std::mem::take(&mut self.acknowledged);
        let mut ranges = acknowledged.iter().rev().peekable();
        while let Some(range) = ranges.next().filter(|range| *range.end() > known) {
            let below = ranges.peek().map_or(progress.cumulative, |range| *range.end());
            for unit in below.max(known) + 1..*range.start() {
                if self.unit(unit).is_some_and(Unit::may_be_fast_retransmitted) {
                    self.missing.watch(unit, 0);
                }
            }
        }
        drop(ranges);
        self.acknowledged = acknowledged;
    }

    /// Missing reports by HTNA, and what the threshold makes of them (RFC 9260 §7.2.4).
    fn detect_losses(&mut self, progress: &mut Progress, tracer: &mut Tracer<'_>) {
        let htna = progress.highest_newly_acked.unwrap_or(0);
        let is_recovering = self.is_in_fast_recovery();
        let bound = if is_recovering && progress.outcome.has_advanced {
            htna.max(progress.highest_in_blocks)
        } else {
            htna
        };
        let mut lost = Vec::new(); // Allocates only when something is lost.
        self.missing.on_report(bound, self.config.missing_reports, |unit| lost.push(unit));
        progress.outcome.newly_lost = lost.len() as u64;
        let mut reduced = 0u64;
        for unit in lost {
            let Some(path) = self.unit(unit).map(|u| u.path) else { continue };
            self.mark_lost(unit, SendCause::FastRetransmit, tracer);
            if !is_recovering && reduced & (1 << path.min(63)) == 0 {
                reduced |= 1 << path.min(63);
                self.reduce_window(path, tracer);
            }
        }
        if reduced != 0 {
            self.statistics.fast_recoveries += 1;
            self.fast_recovery_exit = Some(self.next_unit() - 1);
        }
    }

    fn reduce_window(&mut self, path: u8, tracer: &mut Tracer<'_>) {
        let p = self.path_mut(path);
        p.window.on_fast_retransmit();
        p.may_resend_now = true;
        self.trace_window(path, tracer);
    }

    /// T3-rtx stops when nothing is outstanding (R2) and restarts when the earliest outstanding
    /// unit was acknowledged (R3).
    fn update_timers(&mut self, now: Instant) {
        for index in 0..self.paths.len() {
            let path = &self.paths[index];
            if path.outstanding == 0 {
                self.paths[index].t3 = None;
                self.paths[index].may_resend_now = false;
            } else if path.ack.has_acked_earliest {
                self.advance_earliest(index as u8);
                let path = &mut self.paths[index];
                path.t3 = Some(now + path.timer.rto());
            } else if path.t3.is_none() {
                self.paths[index].t3 = Some(now + path.timer.rto());
            }
        }
    }
}
