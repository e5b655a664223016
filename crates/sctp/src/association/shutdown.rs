//! The graceful end of an association (RFC 9260 §9.2).

use super::{AbortCause, Association, Context, Farewell, State, Timer};
use crate::event::{CloseReason, Event};

impl Association {
    /// The application asks for the end: what was accepted is still delivered.
    pub(crate) fn shutdown(&mut self, cx: &mut Context<'_>) {
        match self.state {
            State::Established => {
                self.set_state(cx, State::ShutdownPending);
                self.out.begin_opportunity();
                self.advance_shutdown(cx);
            }
            // Nothing was agreed upon yet, so there is nobody to say goodbye to.
            State::CookieWait(_) | State::CookieEchoed(..) => {
                self.abort_by_user(cx, b"shut down before it was established");
            }
            _ => {}
        }
    }

    /// Everything outstanding may have been acknowledged now.
    pub(super) fn advance_shutdown(&mut self, cx: &mut Context<'_>) {
        if !self.out.is_empty() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.set_state(cx, State::ShutdownSent);
                self.owed.shutdown = true;
                // SHUTDOWN acknowledges what a delayed SACK would.
                self.timers.stop(Timer::Sack);
                self.stop_heartbeats();
                let guard = cx.now + self.config.shutdown_guard();
                self.timers.arm(Timer::T5ShutdownGuard, guard);
            }
            State::ShutdownReceived => self.enter_shutdown_ack_sent(cx),
            _ => {}
        }
    }

    fn enter_shutdown_ack_sent(&mut self, cx: &mut Context<'_>) {
        self.set_state(cx, State::ShutdownAckSent);
        self.owed.shutdown = false;
        self.owed.shutdown_ack = true;
        self.owed.sack = false;
        self.timers.stop(Timer::Sack);
        self.stop_heartbeats();
    }

    /// SHUTDOWN or SHUTDOWN ACK has just left.
    pub(super) fn on_shutdown_sent(&mut self, cx: &Context<'_>) {
        let rto = self.out.recovery.timer(self.control_path).rto();
        self.timers.arm(Timer::T2Shutdown, cx.now + rto);
    }

    /// T2-shutdown expired: say it again.
    pub(super) fn on_t2_shutdown(&mut self, cx: &mut Context<'_>) {
        let path = self.control_path;
        self.count_path_error(cx, path);
        if self.count_error(cx) {
            return;
        }
        self.out.recovery.back_off(path);
        self.control_path = self.out.recovery.alternate_to(path);
        match self.state {
            State::ShutdownSent => self.owed.shutdown = true,
            State::ShutdownAckSent => self.owed.shutdown_ack = true,
            _ => {}
        }
    }

    /// The whole shutdown takes too long.
    pub(super) fn on_t5_shutdown_guard(&mut self, cx: &mut Context<'_>) {
        self.abort(cx, AbortCause::Violation("the shutdown took longer than its guard allows"));
    }

    /// SHUTDOWN.
    pub(super) fn on_shutdown(&mut self, cx: &mut Context<'_>, cumulative_tsn_ack: u32) {
        match self.state {
            State::Established | State::ShutdownPending | State::ShutdownReceived => {
                let is_news = !matches!(self.state, State::ShutdownReceived);
                self.on_shutdown_ack_point(cx, cumulative_tsn_ack);
                if self.state.is_closed() {
                    return;
                }
                if is_news {
                    self.set_state(cx, State::ShutdownReceived);
                    cx.event(Event::PeerShutdown);
                }
            }
            // Both ends have sent SHUTDOWN.
            State::ShutdownSent => self.enter_shutdown_ack_sent(cx),
            State::ShutdownAckSent => self.owed.shutdown_ack = true,
            State::CookieWait(_) | State::CookieEchoed(..) | State::Closed(_) => {}
        }
    }

    /// A packet of the peer in SHUTDOWN-SENT gives it time for the rest of its data.
    pub(super) fn hear_of_peer_while_shutdown_sent(&mut self, cx: &Context<'_>) {
        if matches!(self.state, State::ShutdownSent) && !self.owed.shutdown {
            self.error_count = 0;
            self.on_shutdown_sent(cx);
        }
    }

    /// SHUTDOWN ACK. While setting up it belongs to an association before this one, and the
    /// endpoint answers it (RFC 9260 §8.5.1 E).
    pub(super) fn on_shutdown_ack(&mut self, cx: &mut Context<'_>) {
        if matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            self.close(cx, Some(Farewell::ShutdownComplete), CloseReason::Shutdown);
        }
    }

    /// SHUTDOWN COMPLETE.
    pub(super) fn on_shutdown_complete(&mut self, cx: &mut Context<'_>) {
        if matches!(self.state, State::ShutdownAckSent) {
            self.close(cx, None, CloseReason::Shutdown);
        }
    }
}
