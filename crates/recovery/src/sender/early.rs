//! The timers of Early Fast Retransmit: one per packet that left for the first time, of which only
//! the earliest has to be armed.

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, Tracer};

use super::{LossRecovery, UnitState};
use crate::PacketNumber;
use crate::loss::early::patience;

impl<P> LossRecovery<P> {
    /// Sees to the timers of Early Fast Retransmit, of RACK, or of thin streams, that are due; without
    /// [`early_retransmit`](crate::RecoveryConfig::early_retransmit),
    /// [`Reordering::Rack`](crate::Reordering::Rack), a [`RecoveryTimer`](crate::RecoveryTimer) and
    /// [`SpacedCopies`](crate::SpacedCopies) there are none.
    pub fn on_early_timers(&mut self, now: Instant, tracer: &mut Tracer<'_>) {
        for path in 0..self.paths.len() as u8 {
            if self.path(path).watch.as_ref().is_some_and(|watch| watch.deadline <= now) {
                self.on_watch_timer(now, path, tracer);
            }
            if self.path(path).early > now {
                continue;
            }
            if self.config.early_retransmit {
                self.retransmit_early(now, path, tracer);
            } else {
                self.on_rack_timer(now, tracer);
            }
        }
    }

    /// Everything that could have been acknowledged by now is lost; no slow start.
    fn retransmit_early(&mut self, now: Instant, path: u8, tracer: &mut Tracer<'_>) {
        let Some(patience) = patience(self.path(path).timer.rtt()) else { return };
        let is_late = |(_, sent_at): &(PacketNumber, Instant)| *sent_at + patience <= now;
        let late: Vec<_> = self.first_sent_in_flight(path).take_while(is_late).collect();
        for &(number, _) in &late {
            self.lose_early(number, tracer);
        }
        self.ledger.forget_ended();
        if !late.is_empty() {
            let p = self.path_mut(path);
            p.window.on_early_retransmit();
            p.may_resend_now = true;
            self.settle_resending();
            self.trace_window(path, tracer);
        }
        self.arm_early(path);
        self.watch_thinness(tracer);
    }

    fn lose_early(&mut self, number: PacketNumber, tracer: &mut Tracer<'_>) {
        let Some(packet) = self.ledger.packet(number) else { return };
        for unit in packet.lowest..=packet.highest {
            let is_in_it = |u: &super::Unit<P>| {
                u.packet == number && u.transmissions == 1 && u.state == UnitState::InFlight
            };
            if self.unit(unit).is_some_and(is_in_it) {
                self.mark_lost(unit, SendCause::Early, tracer);
            }
        }
    }

    /// The packets in flight that left for the first time, oldest first, and when they left.
    fn first_sent_in_flight(&self, path: u8) -> impl Iterator<Item = (PacketNumber, Instant)> {
        self.ledger
            .in_flight(path)
            .filter(|(_, packet)| packet.cause == SendCause::New)
            .map(|(number, packet)| (number, packet.sent_at))
    }

    /// While cwnd exceeds what is in flight, the timer of the oldest packet runs.
    #[inline]
    pub(super) fn arm_early(&mut self, path: u8) {
        if self.config.early_retransmit {
            self.renew_early(path);
        }
    }

    fn renew_early(&mut self, path: u8) {
        let p = self.path(path);
        let has_room = p.window.cwnd() > self.ledger.flight(path).bytes;
        let patience = patience(p.timer.rtt()).filter(|_| has_room);
        let oldest = self.first_sent_in_flight(path).next();
        let deadline = patience.zip(oldest).map(|(wait, (_, sent_at))| sent_at + wait);
        self.path_mut(path).early = deadline.unwrap_or(Instant::FAR_FUTURE);
    }

    #[inline]
    pub(super) fn arm_all_early(&mut self) {
        if self.config.early_retransmit {
            (0..self.paths.len() as u8).for_each(|path| self.arm_early(path));
        }
    }
}
