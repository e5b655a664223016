//! Loss by time. See [`crate::loss::rack`].

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};

use super::{LossRecovery, UnitState};
use crate::PacketNumber;
use crate::loss::rack::Arrived;

impl<P> LossRecovery<P> {
    /// Judges what left long enough before something that has arrived (RFC 8985 §6.2 step 5).
    /// Returns how many units are lost.
    pub(super) fn judge_by_time(&mut self, now: Instant, tracer: &mut Tracer<'_>) -> u64 {
        let (mut newly_lost, mut has_begun) = (0, false);
        for path in 0..self.paths.len() as u8 {
            let (due, deadline) = self.overdue(now, path);
            let lost = due.into_iter().map(|packet| self.lose_packet(packet, tracer)).sum::<u64>();
            self.path_mut(path).early = deadline;
            newly_lost += lost;
            if lost == 0 {
                continue;
            }
            if self.is_recovering(path) {
                self.resend_now(path);
            } else if self.splits_fast_retransmit() {
                self.begin_path_recovery(path, tracer);
            } else {
                self.reduce_window(path, tracer);
                has_begun = true;
            }
        }
        if has_begun {
            self.begin_recovery();
        }
        newly_lost
    }

    /// The packets of `path` that are lost by now, and when to look again.
    fn overdue(&self, now: Instant, path: u8) -> (Vec<PacketNumber>, Instant) {
        let p = self.path(path);
        let is_enough =
            self.is_recovering(path) || self.has_acknowledged(path, self.config.missing_reports);
        let srtt = p.timer.rtt().srtt().unwrap_or_default();
        let limit = p.rack().and_then(|rack| rack.limit(srtt, is_enough));
        let Some((newest, age)) = limit else { return (Vec::new(), Instant::FAR_FUTURE) };
        let mut due = Vec::new(); // Allocates only when something is lost.
        let older = self.ledger.in_flight(path).take_while(|(number, _)| *number < newest);
        for (number, packet) in older {
            if self.is_timed_with(path, packet.groups()) {
                continue; // The recovery timer sees to it.
            }
            if packet.sent_at + age > now {
                return (due, packet.sent_at + age);
            }
            due.push(number);
        }
        (due, Instant::FAR_FUTURE)
    }

    /// Whether so many units that left over `path` are acknowledged above the cumulative point.
    fn has_acknowledged(&self, path: u8, units: u8) -> bool {
        let units = u64::from(units);
        if self.paths.len() > 1 {
            let is_of_path =
                |&unit: &u64| self.unit(unit).is_some_and(|unit| unit.sent_over == path);
            let highest_first = self.acknowledged.iter().rev().flat_map(Iterator::rev);
            let of_path = highest_first.filter(is_of_path);
            return of_path.take(units as usize).count() as u64 == units;
        }
        let mut seen = 0;
        self.acknowledged.iter().rev().any(|range| {
            seen += range.end() - range.start() + 1;
            seen >= units
        })
    }

    /// Everything in flight in packet `number` is lost; returns how many units.
    fn lose_packet(&mut self, number: PacketNumber, tracer: &mut Tracer<'_>) -> u64 {
        let Some(packet) = self.ledger.packet(number) else { return 0 };
        let mut lost = 0;
        for unit in packet.lowest..=packet.highest {
            let is_in_it =
                |u: &super::Unit<P>| u.packet == number && u.state == UnitState::InFlight;
            if self.unit(unit).is_some_and(is_in_it) {
                self.mark_lost(unit, SendCause::FastRetransmit, tracer);
                lost += 1;
            }
        }
        lost
    }

    /// The timer by which what is missing is judged without a further acknowledgement.
    pub(super) fn on_rack_timer(&mut self, now: Instant, tracer: &mut Tracer<'_>) {
        self.judge_by_time(now, tracer);
        self.settle_resending();
        self.ledger.forget_ended();
        self.watch_thinness(tracer);
    }

    /// A unit of `path` is acknowledged for the first time; `is_late`: units above were before.
    pub(super) fn tell_rack(&mut self, now: Instant, path: u8, arrived: Arrived, is_late: bool) {
        let is_only = self.paths.len() == 1;
        let Some(rack) = self.path_mut(path).rack_mut() else { return };
        // Over another path what left later may well arrive first.
        let is_late = is_late && (is_only || rack.has_newer(arrived.packet));
        rack.on_arrived(now, arrived);
        if is_late && !arrived.is_ambiguous {
            rack.on_reordering();
        }
    }

    /// A copy that left in an event of `path` is reported as a duplicate.
    pub(super) fn widen_rack_window(&mut self, path: u8) {
        let (cumulative, highest) = (self.cumulative(), self.next_unit() - 1);
        if let Some(rack) = self.path_mut(path).rack_mut() {
            rack.on_duplicate(cumulative, highest);
        }
    }
}
