//! Retransmission of SHUTDOWN and SHUTDOWN ACK: T2-shutdown and T5-shutdown-guard (RFC 9260 §9.2).

use std::time::Duration;

use rexmit_core::Instant;

use super::timers::Deadline;

/// State of SHUTDOWN (in SHUTDOWN-SENT) or SHUTDOWN ACK (in SHUTDOWN-ACK-SENT) until its reply arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shutdown {
    is_owed: bool,
    t2: Deadline,
    t5: Deadline,
}

impl Shutdown {
    /// The state in which SHUTDOWN is pending, with T5-shutdown-guard armed.
    pub(super) fn begin(now: Instant, guard: Duration) -> Self {
        Self { is_owed: true, t2: Deadline::OFF, t5: Deadline::at(now + guard) }
    }

    /// The state in which SHUTDOWN ACK is pending and we have not sent SHUTDOWN.
    pub(super) const fn answering() -> Self {
        Self { is_owed: true, t2: Deadline::OFF, t5: Deadline::OFF }
    }

    /// The state in which SHUTDOWN ACK is pending after our own SHUTDOWN; T2 and T5 keep running.
    pub(super) const fn crossing(self) -> Self {
        Self { is_owed: true, ..self }
    }

    pub(super) const fn is_owed(&self) -> bool {
        self.is_owed
    }

    pub(super) const fn t2(&self) -> Deadline {
        self.t2
    }

    pub(super) const fn t5(&self) -> Deadline {
        self.t5
    }

    /// Schedules a (re)transmission of the chunk.
    pub(super) const fn owe(&mut self) {
        self.is_owed = true;
    }

    /// Called when the chunk was sent.
    pub(super) fn on_sent(&mut self, now: Instant, rto: Duration) {
        self.is_owed = false;
        self.t2 = Deadline::at(now + rto);
    }

    /// Restarts T2-shutdown, because the peer may have data left to send.
    pub(super) fn restart_t2(&mut self, now: Instant, rto: Duration) {
        self.t2 = Deadline::at(now + rto);
    }

    /// Called when T2-shutdown expired.
    pub(super) const fn on_t2(&mut self) {
        self.t2 = Deadline::OFF;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_covers_the_answer_to_a_crossing_shutdown() {
        let (now, rto) = (Instant::from_millis(5), Duration::from_millis(10));
        let mut shutdown = Shutdown::begin(now, Duration::from_millis(100));
        assert!(shutdown.is_owed());
        shutdown.on_sent(now, rto);
        assert_eq!(shutdown.t2(), Deadline::at(Instant::from_millis(15)));
        shutdown.restart_t2(Instant::from_millis(9), rto);
        let crossing = shutdown.crossing();
        assert!(crossing.is_owed());
        assert_eq!(crossing.t2(), Deadline::at(Instant::from_millis(19)));
        assert_eq!(crossing.t5(), Deadline::at(Instant::from_millis(105)));
        assert_eq!(Shutdown::answering().t5(), Deadline::OFF);
    }
}
