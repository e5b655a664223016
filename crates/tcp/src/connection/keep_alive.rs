//! Keep-alive: the actions while the peer is silent (RFC 9293 §3.8.4).

use super::silence::Found;
use super::{Connection, Context, Timer};
use crate::event::CloseReason;

impl Connection {
    pub(super) fn on_keep_alive(&mut self, cx: &mut Context<'_>) {
        let Some(keep_alive) = &self.config.keep_alive else { return };
        match self.silence.look(cx.now, keep_alive, !self.out.is_empty()) {
            Found::Nothing(until) => self.timers.arm(Timer::KeepAlive, until),
            Found::Silence(until) => {
                self.traffic.keep_alives_sent += 1;
                self.owed.keep_alive = true;
                self.timers.arm(Timer::KeepAlive, until);
            }
            Found::Nobody => self.end(cx, Some(CloseReason::TimedOut), None),
        }
    }

    /// Called when the connection was inactive for a while: releases unused memory.
    pub(super) fn on_release(&mut self, cx: &Context<'_>) {
        let quiet_at = self.silence.quiet_at();
        if cx.now < quiet_at {
            self.timers.arm(Timer::Release, quiet_at);
        } else {
            self.out.release_memory();
            self.inbound.buffer.release_memory();
        }
    }
}
