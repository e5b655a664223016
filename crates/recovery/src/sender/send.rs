//! What may leave, and what has left.

use std::ops::RangeInclusive;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun, TraceEvent, Tracer};

use super::{LossRecovery, Unit, UnitState};
use crate::ledger::Fate;
use crate::{PacketNumber, TimerRestart};

/// Units looked at to find one of the same thin stream, at most: bulk may stand between.
const MAX_LOOK_AHEAD: usize = 64;

/// The packet being built.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpenPacket {
    pub(super) path: u8,
    /// The group of new units.
    group: u8,
    pub(super) units: u16,
    /// Repeats the earliest outstanding unit of its path, so that T3-rtx restarts.
    repeats_earliest: bool,
    repeats: bool,
    /// The new units, which are the last of all, and their bytes.
    new: u16,
    new_bytes: u32,
    /// Something in it is neither new nor a copy on purpose.
    is_needed: bool,
    /// The recovery timer is why something is in it.
    is_overdue: bool,
}

impl<P> LossRecovery<P> {
    /// Something happened (a packet arrived, a timer expired, the application called): a new
    /// opportunity to send, with a new allowance of Max.Burst packets.
    pub fn begin_opportunity(&mut self) {
        for path in &mut self.paths {
            path.renew_burst(&self.config);
        }
    }

    /// Whether a packet with new units may leave over `path` (RFC 9260 §6.1 B, D; RFC 3042 §2).
    #[must_use]
    pub fn may_send_new(&self, path: u8) -> bool {
        let p = self.path(path);
        p.burst_left > 0
            && !p.may_resend_now
            && !p.f_rto().is_waiting()
            && self.has_room(path, self.limited_transmit(path))
    }

    /// The next unit to be sent again over `path`, if one may leave now (RFC 9260 §6.1 C, §7.2.4).
    #[must_use]
    #[inline]
    pub fn next_to_resend(&self, path: u8) -> Option<u64> {
        let p = self.path(path);
        if self.chooses_late() {
            return self.next_to_resend_over_chosen(path);
        }
        let unit = *p.lost.first()?;
        let may_leave = p.may_resend_now || (p.burst_left > 0 && self.has_room(path, 0));
        (may_leave && !self.holds_back(path)).then_some(unit)
    }

    /// The next unit waiting to be sent again over the path of the packet that is being built, to
    /// fill it.
    #[must_use]
    pub fn next_lost_after(&self, unit: u64) -> Option<u64> {
        if self.chooses_late() {
            return self.next_lost_anywhere(unit + 1);
        }
        let path = self.open.map_or(0, |open| open.path);
        self.path(path).lost.range(unit + 1..).next().copied()
    }

    /// The next unit after `unit` that is outstanding though not judged lost, if the profile takes
    /// such units along in a retransmission; or of the same thin stream over the same path, if it
    /// copies what is in flight.
    #[must_use]
    pub fn next_to_bundle(&self, unit: u64) -> Option<u64> {
        let takes_any = self.config.bundle_outstanding;
        let &Unit { group, path, .. } = self.unit(unit)?;
        if !takes_any && !self.may_bundle(group) {
            return None;
        }
        let may_go_along = |u: &Unit<P>| {
            let is_alike = u.group == group && u.path == path && !u.is_probe;
            u.state == UnitState::InFlight && (takes_any || is_alike)
        };
        let skipped = usize::try_from((unit + 1).checked_sub(self.first)?).ok()?;
        let most = if takes_any { usize::MAX } else { MAX_LOOK_AHEAD };
        let mut following = self.units.iter().enumerate().skip(skipped).take(most);
        let (index, _) = following.find(|(_, u)| may_go_along(u))?;
        Some(self.first + index as u64)
    }

    /// Whether anything waits to be sent again, over any path.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.paths.iter().any(|path| !path.lost.is_empty())
    }

    /// Whether anything waits to be sent again over `path`.
    #[must_use]
    pub fn has_lost_for(&self, path: u8) -> bool {
        !self.path(path).lost.is_empty()
    }

    /// Whether the window of `path` has room for a packet, if `beyond` bytes do not count.
    pub(super) fn has_room(&self, path: u8, beyond: u64) -> bool {
        let (p, flight) = (self.path(path), self.ledger.flight(path));
        let is_blocked = p.is_after_timeout && flight.packets > 0;
        let departed = self.duplicates.departed() + beyond;
        !is_blocked && p.window.has_room(flight.bytes.saturating_sub(departed))
    }

    /// A packet over `path` is about to be built.
    pub fn begin_packet(&mut self, path: u8) {
        self.open = Some(OpenPacket { path, ..OpenPacket::default() });
    }

    /// New units that go into the packet being built are of `group` from here on (0 before); see
    /// [`add_group`](Self::add_group).
    pub fn set_group(&mut self, group: u8) {
        if let Some(open) = &mut self.open {
            open.group = group;
        }
    }

    /// Puts a new unit of `bytes` (header and padding included), of which `user_bytes` count
    /// against the peer's receive window, into the packet being built. Returns its number.
    pub fn send_new(&mut self, now: Instant, bytes: u32, user_bytes: u32, payload: P) -> u64 {
        let unit = self.next_unit();
        let (path, group) = self.open.map_or((0, 0), |open| (open.path, open.group));
        let packet = self.put(now, SendCause::New, (unit, bytes), group);
        self.count_outstanding(path, bytes);
        if let Some(open) = &mut self.open {
            open.new += 1;
            open.new_bytes += bytes;
        }
        self.units.push_back(Unit {
            payload,
            bytes,
            user_bytes,
            path,
            sent_over: path,
            is_on_several: false,
            group,
            packet,
            cause: SendCause::New,
            transmissions: 1,
            on_purpose: 0,
            fast_retransmitted: false,
            is_copied: false,
            is_probe: false,
            state: UnitState::InFlight,
        });
        self.user_bytes_in_flight += u64::from(user_bytes);
        self.statistics.new_units += 1;
        let p = self.path_mut(path);
        if p.outstanding == 0 {
            p.earliest = unit;
            p.watch.iter_mut().for_each(|watch| watch.begin(now));
        }
        p.outstanding += 1;
        p.enter_share(user_bytes);
        unit
    }

    /// Spends a number on a unit that never leaves: it is given up from the start.
    pub fn skip_new(&mut self, payload: P) -> u64 {
        let unit = self.next_unit();
        self.units.push_back(Unit {
            payload,
            bytes: 0,
            user_bytes: 0,
            path: 0,
            sent_over: 0,
            is_on_several: false,
            group: 0,
            packet: self.ledger.next_number(),
            cause: SendCause::New,
            transmissions: 0,
            on_purpose: 0,
            fast_retransmitted: false,
            is_copied: false,
            is_probe: false,
            state: UnitState::Abandoned,
        });
        unit
    }

    /// Puts `unit` once more into the packet being built, and returns what the protocol keeps with
    /// it; `None` if it is not outstanding.
    pub fn resend(&mut self, now: Instant, unit: u64) -> Option<&P> {
        let cause = match self.unit(unit)?.state {
            UnitState::Lost(cause) => cause,
            _ => SendCause::Bundled,
        };
        if self.is_in_fast_recovery() && cause == SendCause::FastRetransmit {
            self.scoreboard.on_resent(unit);
        }
        let standing = self.copies.since(unit).map_or(0, |(copies, _)| copies);
        self.resend_as(now, unit, cause)?;
        if self.groups.has_copies() {
            self.plan_copies(now, unit, cause, standing);
        }
        if self.is_on_purpose(cause) {
            self.spending.on_copied(self.unit(unit)?.bytes);
        }
        self.unit(unit).map(|unit| &unit.payload)
    }

    /// Whether what leaves again because of `cause` is a copy that redundancy adds.
    fn is_on_purpose(&self, cause: SendCause) -> bool {
        match cause {
            SendCause::Redundant => true,
            SendCause::Bundled => !self.config.bundle_outstanding,
            _ => false,
        }
    }

    pub(super) fn resend_as(&mut self, now: Instant, unit: u64, cause: SendCause) -> Option<&P> {
        let &Unit { bytes, user_bytes, path: old_path, sent_over, .. } = self.unit(unit)?;
        let &Unit { group, packet: old_packet, state, .. } = self.unit(unit)?;
        match state {
            UnitState::Lost(_) => self.leave_lost(unit),
            UnitState::InFlight => {
                self.leave_flight(unit, Fate::Superseded);
                if self.is_adaptive() {
                    self.missing.judge(unit);
                } else {
                    self.missing.forget(unit);
                }
            }
            UnitState::Acknowledged | UnitState::Abandoned => return None,
        }
        self.copies.restart(unit);
        self.log_resent(now, (unit, old_packet), sent_over, cause);
        self.statistics.retransmitted.count(cause);
        let packet = self.put(now, cause, (unit, bytes), group);
        self.user_bytes_in_flight += u64::from(user_bytes);
        let path = self.open.map_or(old_path, |open| open.path);
        self.repeat(unit, (old_path, sent_over), path);
        if let Some(open) = &mut self.open {
            open.is_needed |= cause != SendCause::Redundant;
            open.is_overdue |= cause == SendCause::Overdue;
        }
        self.path_mut(sent_over).leave_share(user_bytes);
        self.path_mut(path).enter_share(user_bytes);
        let is_overtaken =
            self.counts_reports() && self.acknowledged.max().is_some_and(|max| unit < max);
        let is_on_purpose = self.is_on_purpose(cause);
        let u = self.unit_mut(unit)?;
        u.packet = packet;
        u.cause = cause;
        u.is_on_several |= u.sent_over != path;
        u.sent_over = path;
        u.state = UnitState::InFlight;
        u.transmissions = u.transmissions.saturating_add(1);
        u.on_purpose = u.on_purpose.saturating_add(u16::from(is_on_purpose));
        // The recovery timer sees to its copies as well.
        u.fast_retransmitted |= matches!(cause, SendCause::FastRetransmit | SendCause::Overdue);
        if is_overtaken && !u.fast_retransmitted {
            self.missing.watch(unit, 0);
        }
        self.unit(unit).map(|u| &u.payload)
    }

    /// `unit`, which belonged to the path `from` and left over `sent_over`, leaves again over `to`.
    fn repeat(&mut self, unit: u64, (from, sent_over): (u8, u8), to: u8) {
        if from != to {
            self.move_to_path(unit, from, to);
        }
        let is_earliest = self.path(to).earliest == unit && sent_over == to;
        if let Some(open) = &mut self.open {
            open.repeats = true;
            open.repeats_earliest |= is_earliest;
        }
    }

    /// Writes a unit into the ledger, opening its packet with the first.
    fn put(
        &mut self,
        now: Instant,
        cause: SendCause,
        (unit, bytes): (u64, u32),
        group: u8,
    ) -> PacketNumber {
        let Some(open) = &mut self.open else {
            unreachable!("begin_packet comes before the first unit of a packet")
        };
        open.units += 1;
        if open.units == 1 {
            let path = open.path;
            let flight = self.ledger.flight(path).bytes;
            self.ledger.on_sent(now, path, cause, (unit, bytes, group));
            let p = self.path_mut(path);
            p.window.on_send(now, p.timer.rto(), flight);
        } else {
            self.ledger.on_bundled(unit, bytes, group);
        }
        PacketNumber(self.ledger.next_number().0 - 1)
    }

    /// The packet being built leaves. Starts T3-rtx if it does not run, and restarts it if the
    /// packet repeats the earliest outstanding unit (RFC 9260 §6.1, R1), unless the profile says
    /// otherwise ([`TimerRestart`]). Returns whether it
    /// carries any unit.
    pub fn end_packet(&mut self, now: Instant, tracer: &mut Tracer<'_>) -> bool {
        let Some(open) = self.open.take().filter(|open| open.units > 0) else {
            self.copies.drop_open();
            return false;
        };
        self.statistics.packets += 1;
        if open.new > 0 {
            self.latest_losses.on_sent();
        }
        self.statistics.retransmission_packets += u64::from(open.repeats);
        let p = self.path_mut(open.path);
        if let Some(known) = &mut p.concurrent {
            known.counters.packets += 1;
            known.counters.retransmissions += u64::from(open.repeats);
        }
        p.burst_left = p.burst_left.saturating_sub(1);
        if open.repeats {
            p.may_resend_now = false;
            p.last_retransmission = Some(now);
            self.on_chosen_used();
        } else if let Some(scrutiny) = &mut p.scrutiny {
            scrutiny.f_rto.on_sent_new();
        }
        let may_restart = open.is_overdue || self.config.timer_restart == TimerRestart::OnResend;
        let is_restarted = open.repeats_earliest && may_restart;
        if self.path(open.path).t3.is_none() || is_restarted {
            self.arm_t3(now, open.path);
        }
        tracer.emit(|| {
            let number = PacketNumber(self.ledger.next_number().0 - 1);
            let packet = self.ledger.packet(number).expect("it was entered just now");
            TraceEvent::PacketSent {
                packet: number.0,
                path: open.path,
                units: packet.units,
                bytes: packet.bytes,
                runs: self.runs_in(number, packet.lowest..=packet.highest),
            }
        });
        self.count_copies(now, open.path, tracer);
        self.count_first_sent(now, &open);
        self.arm_early(open.path);
        self.renew_overdue(open.path);
        self.watch_thinness(tracer);
        true
    }

    /// The packet that was built is watched, and what is new in it allows for copies.
    fn count_first_sent(&mut self, now: Instant, open: &OpenPacket) {
        if !self.groups.is_any_on() {
            return;
        }
        if open.new > 0 {
            let share = self.share_of_copies(open.path, open.group);
            self.spending.on_first_sent(open.new_bytes, share);
            let next = self.next_unit();
            self.plan_last(now, open.path, next - u64::from(open.new)..next);
        } else if !open.is_needed {
            self.spending.on_packet_of_copies();
        }
        let number = PacketNumber(self.ledger.next_number().0 - 1);
        self.watch_packet(now, open.path, number);
    }

    /// The units of a packet that has just been built, as runs of consecutive numbers and one cause.
    fn runs_in(&self, packet: PacketNumber, range: RangeInclusive<u64>) -> Vec<SentRun> {
        let mut runs: Vec<SentRun> = Vec::new();
        for number in range {
            let unit = self.unit(number).filter(|unit| unit.packet == packet);
            let Some(cause) = unit.map(|unit| unit.cause) else { continue };
            match runs.last_mut() {
                Some(run) if run.highest + 1 == number && run.cause == cause => {
                    run.highest = number;
                }
                _ => runs.push(SentRun { lowest: number, highest: number, cause }),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc;

    use rexmit_core::trace::TraceSink;

    use super::*;
    use crate::TimeoutKind;

    struct Runs(mpsc::Sender<Vec<SentRun>>);

    impl TraceSink for Runs {
        fn record(&mut self, _: Instant, _: u32, event: &TraceEvent) {
            if let TraceEvent::PacketSent { runs, .. } = event {
                self.0.send(runs.clone()).unwrap();
            }
        }
    }

    #[test]
    fn the_trace_tells_exactly_which_units_a_packet_carries_and_why() {
        use SendCause::{Bundled, New, Timeout};
        let (runs, traced) = mpsc::channel();
        let mut sink = Runs(runs);
        let now = Instant::ZERO;
        let mut sender = LossRecovery::new(Arc::default(), 10, 1000);
        let mut tracer = Tracer::new(now, 0, Some(&mut sink));
        sender.begin_opportunity();
        for units in [1, 1, 2] {
            sender.begin_packet(0);
            for _ in 0..units {
                sender.send_new(now, 100, 100, ());
            }
            assert!(sender.end_packet(now, &mut tracer));
        }
        // 11 arrived; the rest is repeated in one packet, 13 once more in the next with a new one.
        sender.on_ack(now, (9, [(11, 11)].into_iter()), &mut tracer, drop).unwrap();
        sender.on_timeout(0, TimeoutKind::Loss, &mut tracer);
        sender.begin_packet(0);
        for unit in [10, 12, 13] {
            sender.resend(now, unit).unwrap();
        }
        assert!(sender.end_packet(now, &mut tracer));
        sender.begin_packet(0);
        sender.resend(now, 13).unwrap();
        sender.send_new(now, 100, 100, ());
        assert!(sender.end_packet(now, &mut tracer));
        let traced: Vec<Vec<_>> = traced
            .try_iter()
            .map(|runs| runs.iter().map(|run| (run.lowest, run.highest, run.cause)).collect())
            .collect();
        let expected = [
            vec![(10, 10, New)],
            vec![(11, 11, New)],
            vec![(12, 13, New)],
            vec![(10, 10, Timeout), (12, 13, Timeout)],
            vec![(13, 13, Bundled), (14, 14, New)],
        ];
        assert_eq!(traced, expected);
    }
}
