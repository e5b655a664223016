//! Retransmission events: when one begins, what is known of it, and what follows when it proves
//! spurious. See [`crate::spurious`] for the rules.

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{Detector, SendCause, TraceEvent, Tracer};

use super::ack::Progress;
use super::{LossRecovery, UnitState};
use crate::PacketNumber;
use crate::spurious::DISTRUST_UNITS;
use crate::spurious::eifel::Echo;
use crate::spurious::events::{Before, EventId, Events};

/// What the detectors keep of the association as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Doubts {
    /// Events that begin before this unit is sent are not proven by duplicate reports.
    distrust_through: u64,
    /// The receiver has reported a duplicate before.
    has_seen_duplicates: bool,
    beside: Beside,
    /// New data could leave, as the protocol told F-RTO.
    pub(super) has_new: bool,
}

/// What the acknowledgement that is handed over next tells beside what it acknowledges.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    /// When the segment left whose timestamp it echoes, and the tick of that clock.
    echo: Option<(Instant, Duration)>,
    has_duplicate: bool,
}

impl<P> LossRecovery<P> {
    /// The receiver reports `unit` as a duplicate.
    ///
    /// What an acknowledgement reports is told before it is handed to [`on_ack`](Self::on_ack): that
    /// a unit arrived twice shows that the loss of its packet was none which a copy repaired.
    pub fn on_duplicate_report(&mut self, now: Instant, unit: u64, tracer: &mut Tracer<'_>) {
        if unit >= self.next_unit() {
            return;
        }
        self.copies.on_reported(unit);
        if let Some(doubts) = &mut self.doubts {
            doubts.beside.has_duplicate = true;
        }
        let told = self.log.as_mut().and_then(|log| log.on_duplicate_report(unit));
        let Some(told) = told else {
            if self.log.as_ref().is_none_or(|log| log.remembers(unit)) {
                self.on_unexplained_duplicate();
            }
            return;
        };
        if told.cause == SendCause::Redundant {
            return;
        }
        self.statistics.spurious.count(told.cause);
        if told.cause == SendCause::Overdue {
            self.note_needless(now, unit);
        }
        self.sample_first_copy(now, unit, tracer);
        tracer.emit(|| TraceEvent::PacketSpurious { packet: told.packet.0 });
        let Some(EventId { path, number }) = told.event else { return };
        // The recovery timer was too early, and RACK had no part in that.
        if told.cause != SendCause::Overdue {
            self.widen_rack_window(path);
        }
        let needed = if told.needed > 0 { told.needed } else { self.needed_so_far(unit) };
        let is_latest =
            self.path_mut(path).events().is_some_and(|events| events.on_reported(number));
        if is_latest {
            self.learn_from_report(path, told.cause, needed);
        }
        self.judge_by_duplicates(now, path, tracer);
        self.tell_threshold(path, tracer);
    }

    /// A unit that left again is acknowledged: at once, if no later one is with it. The time of one
    /// that is may be longer, for its own acknowledgement may have been lost.
    pub(super) fn note_first_copy(&mut self, now: Instant, progress: &Progress) {
        if let (true, Some(log), Some(unit)) =
            (progress.outcome.has_acked_resent, &mut self.log, progress.highest_newly_acked)
        {
            log.first_copies.on_acked(now, unit);
        }
    }

    /// Both copies of `unit` have arrived: its first acknowledgement was no ambiguous one.
    fn sample_first_copy(&mut self, now: Instant, unit: u64, tracer: &mut Tracer<'_>) {
        let known = self.log.as_mut().and_then(|log| log.first_copies.on_duplicate_report(unit));
        if let Some((path, rtt)) = known {
            self.take_round_trip(now, path, rtt, tracer);
        }
    }

    /// The receiver reports something as a duplicate that never left again: the network makes
    /// copies, and duplicate reports are not believed for a while (RFC 3708 §3 A.4).
    pub fn on_unexplained_duplicate(&mut self) {
        let distrust_through = self.next_unit() + DISTRUST_UNITS;
        self.statistics.spurious_events.unexplained_duplicates += 1;
        if let Some(doubts) = &mut self.doubts {
            doubts.beside.has_duplicate = true;
            doubts.distrust_through = distrust_through;
        }
        self.paths.iter_mut().for_each(super::Path::doubt);
    }

    /// The acknowledgement that is handed over next echoes the timestamp of what left at `sent_at`,
    /// by a clock with this `tick`: for the Eifel detection (RFC 3522), and for the recovery timer.
    pub fn on_echo(&mut self, sent_at: Instant, tick: Duration) {
        for watch in self.paths.iter_mut().filter_map(|path| path.watch.as_mut()) {
            watch.heard.echo = Some((sent_at, tick));
        }
        if let Some(doubts) = &mut self.doubts {
            doubts.beside.echo = Some((sent_at, tick));
        }
    }

    /// Whether a retransmission event is open that a timestamp could decide, or the recovery timer
    /// learns.
    #[must_use]
    pub fn asks_for_echo(&self) -> bool {
        let is_open = |path: &super::Path| path.open_event().is_some();
        self.groups.timed() != 0 || self.config.spurious.eifel && self.paths.iter().any(is_open)
    }

    /// The window of `path` is about to be reduced because of `kind`, with something judged lost.
    pub(super) fn begin_event(&mut self, path: u8, kind: SendCause) {
        let Some(doubts) = &self.doubts else { return };
        let is_provable =
            self.config.spurious.duplicates && self.next_unit() > doubts.distrust_through;
        let cumulative = self.cumulative();
        self.log.iter_mut().for_each(|log| log.forget_events(path, cumulative));
        let p = self.path_mut(path);
        let before = Before { window: p.window.clone(), rtt: p.timer.rtt().estimate() };
        if let Some(events) = p.events() {
            events.begin(kind, before, is_provable);
        }
    }

    /// `unit`, last sent in `packet` over `path`, leaves again, over whichever path.
    pub(super) fn log_resent(
        &mut self,
        now: Instant,
        (unit, packet): (u64, PacketNumber),
        path: u8,
        cause: SendCause,
    ) {
        let is_judged =
            matches!(cause, SendCause::Timeout | SendCause::FastRetransmit | SendCause::Overdue);
        let events = self.path_mut(path).events().filter(|_| is_judged);
        let number = events.and_then(|events| events.on_resent(now));
        let event = number.map(|number| EventId { path, number });
        let log = self.log.get_or_insert_default();
        log.first_copies.on_repeated(now, unit);
        let dropped = log.on_retransmitted((unit, packet), cause, event);
        self.on_copy_forgotten(dropped);
    }

    /// The log had no room for a copy that left in `event`.
    pub(super) fn on_copy_forgotten(&mut self, event: Option<EventId>) {
        let Some(EventId { path, number }) = event else { return };
        if let Some(events) = self.path_mut(path).events() {
            events.doubt_through(number);
        }
    }

    /// A unit that left over `path` is acknowledged that was judged lost and waited to be sent again. If it had
    /// left once, its original has arrived; else nobody knows which copy has.
    pub(super) fn on_waiting_acked(&mut self, path: u8, is_original: bool) {
        let Some(scrutiny) = &mut self.path_mut(path).scrutiny else { return };
        scrutiny.has_acked_original |= is_original;
        if !is_original {
            scrutiny.events.doubt();
        } else if let Some(evidence) = &mut scrutiny.evidence {
            evidence.on_not_lost();
        }
    }

    /// Judges the events that are open by what an acknowledgement brought.
    pub(super) fn judge_events(
        &mut self,
        now: Instant,
        progress: &Progress,
        tracer: &mut Tracer<'_>,
    ) {
        let Some(doubts) = &mut self.doubts else { return };
        let beside = std::mem::take(&mut doubts.beside);
        for path in 0..self.paths.len() as u8 {
            self.advance_f_rto(now, path, progress, tracer);
            self.judge_by_timestamp(now, path, (progress, beside), tracer);
            self.judge_by_duplicates(now, path, tracer);
        }
        if let Some(doubts) = &mut self.doubts {
            doubts.has_seen_duplicates |= beside.has_duplicate;
        }
    }

    /// Every copy of the latest event is reported, and nothing that it judged waits to be sent again.
    fn judge_by_duplicates(&mut self, now: Instant, path: u8, tracer: &mut Tracer<'_>) {
        let p = self.path(path);
        let is_reported = p.scrutiny.as_ref().is_some_and(|scrutiny| scrutiny.events.is_reported());
        if is_reported && !p.is_awaiting() {
            self.on_spurious(now, path, Detector::Duplicates, tracer);
        }
    }

    /// A timeout may have judged much lost that is still on its way; a fast retransmit is told only
    /// if nothing but the first hole was judged.
    fn judge_by_timestamp(
        &mut self,
        now: Instant,
        path: u8,
        (progress, beside): (&Progress, Beside),
        tracer: &mut Tracer<'_>,
    ) {
        let Some((sent_at, tick)) = beside.echo.filter(|_| progress.outcome.has_advanced) else {
            return;
        };
        let echo = Echo {
            sent_at,
            tick,
            has_duplicate: beside.has_duplicate,
            peer_reports_duplicates: self.doubts.as_ref().is_some_and(|d| d.has_seen_duplicates),
            is_last: self.is_empty(),
        };
        let is_eifel_on = self.config.spurious.eifel;
        let has_more = self.path(path).is_awaiting();
        let event = self.path_mut(path).events().and_then(Events::latest_mut);
        let Some(event) = event else { return };
        let is_alone = event.copies == 1 && !has_more;
        let is_told = is_eifel_on && event.eifel.on_ack(event.resent_at, echo);
        if is_told && (event.kind == SendCause::Timeout || is_alone) {
            self.on_spurious(now, path, Detector::Timestamps, tracer);
        }
    }

    /// The latest event of `path` was spurious.
    pub(super) fn on_spurious(
        &mut self,
        now: Instant,
        path: u8,
        by: Detector,
        tracer: &mut Tracer<'_>,
    ) {
        let event = self.path_mut(path).events().and_then(Events::settle);
        let Some(event) = event else { return };
        let kind = event.kind;
        self.statistics.spurious_events.count(kind, by);
        tracer.emit(|| TraceEvent::EventSpurious { path, kind, by });
        if by != Detector::Duplicates {
            self.resume(path);
        }
        self.leave_needless_recovery(path, kind);
        self.learn_from_spurious(now, path, &event, tracer);
        if self.config.undo {
            self.undo(path, &event, by, tracer);
        }
    }

    /// What left over `path` and waits to be sent again left before the event that judged it: it is
    /// still on its way (RFC 4015 §3.1 step 8, RFC 5682 §4).
    fn resume(&mut self, path: u8) {
        let awaits = |&unit: &u64| self.unit(unit).is_some_and(|u| u.sent_over == path);
        let lost = self.paths.iter().flat_map(|p| p.lost.iter().copied());
        let awaiting: Vec<u64> = lost.filter(awaits).collect();
        for unit in awaiting {
            self.leave_lost(unit);
            self.take_back(unit);
            let is_overtaken = self.acknowledged.max().is_some_and(|max| unit < max);
            let Some(u) = self.unit_mut(unit) else { continue };
            u.state = UnitState::InFlight;
            let (bytes, user_bytes, may_count) = (u.bytes, u.user_bytes, !u.fast_retransmitted);
            self.ledger.on_unit_returned(path, bytes);
            self.user_bytes_in_flight += u64::from(user_bytes);
            self.scoreboard.on_reneged(unit);
            if is_overtaken && may_count && self.counts_reports() {
                self.missing.watch(unit, 0);
            }
        }
        self.path_mut(path).is_after_timeout = false;
        self.settle_resending();
    }

    /// What waited for another path than it left over is outstanding where it left again.
    fn take_back(&mut self, unit: u64) {
        let Some(u) = self.unit(unit) else { return };
        let (from, to) = (u.path, u.sent_over);
        if from != to {
            self.move_to_path(unit, from, to);
        }
    }

    /// With nothing lost there is nothing to recover from, and what is missing from here on is
    /// another loss.
    fn leave_needless_recovery(&mut self, path: u8, kind: SendCause) {
        if !self.path(path).is_awaiting() {
            self.path_mut(path).set_recovery_exit(None);
        }
        let is_fast = |path: &super::Path| {
            path.open_event().is_some_and(|event| event.kind == SendCause::FastRetransmit)
        };
        let is_other_open = self.paths.iter().any(is_fast);
        let is_recovering = self.is_in_fast_recovery() || self.duplicates.is_recovering();
        if kind == SendCause::Timeout && !is_recovering {
            self.recover = None;
        } else if !is_other_open && !self.has_lost() && !self.duplicates.is_recovering() {
            self.fast_recovery_exit = None;
            self.recover = None;
        }
    }
}
