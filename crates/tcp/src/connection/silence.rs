//! The silence of the peer: keep-alive probes (RFC 9293 §3.8.4), and the release of unused memory.

use std::time::Duration;

use rexmit_core::Instant;

use crate::config::KeepAlive;

/// The time without a segment after which unused memory is released.
const QUIET: Duration = Duration::from_secs(5);
/// A segment out of the window without data or FIN is answered at most this often: two ends that
/// disagree would otherwise acknowledge each other for ever, and a SYN costs nothing.
const MIN_BETWEEN_ANSWERS: Duration = Duration::from_millis(100);

/// A packet of the peer arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    heard_at: Instant,
    /// The time from which a segment without data outside the window is answered again.
    answers_from: Instant,
    /// Probes without an answer.
    probes: u32,
}

/// The expiry of the probe timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// The silence is not long enough; check again at this time.
    Nothing(Instant),
    /// A probe is sent; check again at this time.
    Silence(Instant),
    /// The peer has not answered any keep-alive probe.
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

    /// When nothing has happened for a while.
    pub(super) fn quiet_at(&self) -> Instant {
        self.heard_at + QUIET
    }

    /// Whether a segment out of the window without data is answered now; counts it.
    pub(super) fn may_answer(&mut self, now: Instant) -> bool {
        let may = now >= self.answers_from;
        if may {
            self.answers_from = now + MIN_BETWEEN_ANSWERS;
        }
        may
    }

    /// The timer of the probes has expired. It is not moved by every segment: it looks then how long the
    /// silence has lasted. While something is outstanding its own timer watches the peer.
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
