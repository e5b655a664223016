//! Probing a silent peer (RFC 9293 §3.8.4), and how long it has been silent.

use std::time::Duration;

use rexmit_core::Instant;

use super::{Connection, Context, State, Timer};
use crate::event::CloseReason;

/// After this time without a segment memory that is not in use goes back.
pub(super) const QUIET: Duration = Duration::from_secs(5);

/// What was heard of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silence {
    pub(super) heard_at: Instant,
    /// When a segment out of the window without data is answered again.
    pub(super) answers_from: Instant,
    /// Probes without an answer.
    probes: u32,
}

impl Silence {
    pub(super) const fn new(now: Instant) -> Self {
        Self { heard_at: now, answers_from: Instant::ZERO, probes: 0 }
    }
}

impl Connection {
    pub(super) const fn hear_peer(&mut self, now: Instant) {
        self.silence.heard_at = now;
        self.silence.probes = 0;
    }

    pub(super) fn start_keep_alive(&mut self, now: Instant) {
        if let Some(keep_alive) = self.config.keep_alive {
            self.timers.arm(Timer::KeepAlive, now + keep_alive.idle);
        }
    }

    /// The timer is not moved by every segment: it looks, when it expires, how long the silence
    /// has lasted. While something is outstanding its own timer watches the peer.
    pub(super) fn on_keep_alive(&mut self, cx: &mut Context<'_>) {
        let Some(keep_alive) = self.config.keep_alive else { return };
        let quiet_at = self.silence.heard_at + keep_alive.idle;
        if !self.out.is_empty() {
            self.timers.arm(Timer::KeepAlive, cx.now + keep_alive.idle);
        } else if self.silence.probes == 0 && quiet_at > cx.now {
            self.timers.arm(Timer::KeepAlive, quiet_at);
        } else if self.silence.probes >= keep_alive.probes {
            self.end(cx, Some(CloseReason::TimedOut), None);
        } else {
            self.silence.probes += 1;
            self.traffic.keep_alives_sent += 1;
            self.owed.keep_alive = true;
            self.timers.arm(Timer::KeepAlive, cx.now + keep_alive.interval);
        }
    }

    /// Memory is to go back once nothing happens for a while.
    pub(super) fn watch_quiet(&mut self, now: Instant) {
        if self.state != State::Closed && !self.timers.is_armed(Timer::Release) {
            self.timers.arm(Timer::Release, now + QUIET);
        }
    }

    /// Nothing has happened for a while.
    pub(super) fn on_release(&mut self, cx: &Context<'_>) {
        let quiet_at = self.silence.heard_at + QUIET;
        if cx.now < quiet_at {
            self.timers.arm(Timer::Release, quiet_at);
        } else {
            self.out.release_memory();
            self.inbound.buffer.release_memory();
        }
    }
}
