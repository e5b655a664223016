//! The silence of the peer: keep-alive probes (RFC 9293 §3.8.4), and the release of unused memory.

use std::time::Duration;

use rexmit_core::Instant;

use crate::config::KeepAlive;

/// The time without a segment after which unused memory is released.
const QUIET: Duration = Duration::from_secs(5);
/// The minimum time between answers to segments out of the window without data or FIN. Without it, two ends that
/// disagree about sequence numbers would acknowledge each other forever, and an attacker could cause an answer with
/// each SYN.
const MIN_BETWEEN_ANSWERS: Duration = Duration::from_millis(100);

/// The time since the last segment of the peer, and the answers and probes that depend on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    heard_at: Instant,
    /// The time from which a segment without data outside the window is answered again.
    answers_from: Instant,
    /// Probes without an answer.
    probes: u32,
}

/// What to do when the keep-alive timer expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// Nothing: the silence is not long enough; check again at this time.
    Nothing(Instant),
    /// Send a probe; check again at this time.
    Silence(Instant),
    /// Abort the connection: the peer has not answered any keep-alive probe.
    Nobody,
}

impl Silence {
    pub(super) const fn new(now: Instant) -> Self {
        Self { heard_at: now, answers_from: Instant::ZERO, probes: 0 }
    }

    /// Called when a segment of the peer has arrived.
    pub(super) const fn on_heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.probes = 0;
    }

    /// The time at which unused memory is released, if no segment arrives before.
    pub(super) fn quiet_at(&self) -> Instant {
        self.heard_at + QUIET
    }

    /// Whether a segment without data outside the window is answered by an ACK: not if the last such ACK was sent shortly
    /// before.
    pub(super) fn grant_answer(&mut self, now: Instant) -> bool {
        let may = now >= self.answers_from;
        if may {
            self.answers_from = now + MIN_BETWEEN_ANSWERS;
        }
        may
    }

    /// Called when the keep-alive timer has expired. Received segments do not rearm that timer; the length of the
    /// silence is computed here. While data is outstanding, no probe is sent: the retransmission timer detects an
    /// unreachable peer.
    pub(super) fn look(&mut self, now: Instant, config: &KeepAlive, is_outstanding: bool) -> Found {
        let due = self.heard_at + config.idle;
        if is_outstanding {
            Found::Nothing(now + config.idle)
        } else if self.probes == 0 && due > now {
            Found::Nothing(due)
        } else if self.probes >= config.probes {
            Found::Nobody
        } else {
            self.probes += 1;
            Found::Silence(now + config.interval)
        }
    }
}
