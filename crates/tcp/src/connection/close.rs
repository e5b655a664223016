//! Closing by the application (RFC 9293 §3.10.4, §3.10.5, §3.6.1), and the end.

use rexmit_core::Instant;

use super::outbound::Fin;
use super::owed::{Owed, Reset};
use super::{Connection, Context, State, Timer};
use crate::event::CloseReason;

/// The state of a connection that TIME-WAIT needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeWaitSeed {
    /// SND.NXT.
    pub(crate) snd_nxt: u32,
    /// RCV.NXT.
    pub(crate) rcv_nxt: u32,
    /// The value of the window field.
    pub(crate) window: u16,
    /// TS.Recent, if timestamps were negotiated.
    pub(crate) ts_recent: Option<u32>,
    /// The end of TIME-WAIT.
    pub(crate) until: Instant,
}

impl Connection {
    /// Ends our direction (half-close): a FIN follows the accepted data. Before the connection is established, the data
    /// and the FIN wait.
    pub(crate) fn finish(&mut self, cx: &mut Context<'_>) {
        if self.out.is_finishing() || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        self.out.fin = Fin::Queued;
        self.out.recovery.begin_opportunity();
        let state = self.state.after_our_fin();
        if state != self.state {
            self.set_state(cx, state);
        }
        self.watch_window(cx);
    }

    /// Closes the connection for the application. Unread and later data is lost, which a RST reports to the
    /// peer.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>) {
        let is_unread = self.inbound.buffer.readable() > 0;
        self.application.is_gone = true;
        let is_untried = self.state == State::SynSent && self.out.buffer.len() == 0;
        if is_untried || (is_unread && !matches!(self.state, State::Closed | State::TimeWait)) {
            return self.abort(cx);
        }
        self.inbound.buffer.discard();
        self.finish(cx);
        self.limit_fin_wait(cx.now);
    }

    /// Ends the connection with a RST.
    pub(crate) fn abort(&mut self, cx: &mut Context<'_>) {
        self.application.is_gone = true;
        let reset = match self.state {
            // The application need not be informed, or knows already (RFC 9293 §3.10.5).
            State::SynSent | State::Closed | State::TimeWait => None,
            _ => Some(Reset::Now),
        };
        let reason = (self.state != State::Closed).then_some(CloseReason::Aborted);
        self.inbound.buffer.discard();
        self.end(cx, reason, reset);
    }

    /// Enters CLOSED. Data received in order can still be read; data beyond a gap, and unacknowledged data,
    /// is lost. Without a reason the application gets no event.
    pub(super) fn end(
        &mut self,
        cx: &mut Context<'_>,
        reason: Option<CloseReason>,
        reset: Option<Reset>,
    ) {
        if self.state != State::Closed {
            self.set_state(cx, State::Closed);
        }
        self.timers.stop_all();
        self.owed = Owed { reset: reset.or(self.owed.reset), ..Owed::default() };
        self.out.clear();
        self.inbound.buffer.discard_held();
        if let Some(reason) = reason {
            self.application.tell_end(cx, reason);
        }
    }

    /// The state for TIME-WAIT, once the connection has reached it and everything is read and acknowledged;
    /// `None` before.
    pub(crate) fn time_wait(&self) -> Option<TimeWaitSeed> {
        if self.state != State::TimeWait
            || self.inbound.has_unread(self.application.is_gone)
            || self.owed.is_any()
        {
            return None;
        }
        let rcv_nxt = self.inbound.rcv_nxt();
        let mut window = self.inbound.window;
        Some(TimeWaitSeed {
            snd_nxt: self.out.snd_nxt as u32,
            rcv_nxt: rcv_nxt as u32,
            window: window.offer(self.inbound.room(self.out.segment_bytes)),
            ts_recent: self.timestamps.as_ref().map(super::TimestampState::recent),
            until: self.timers.deadline(Timer::TimeWait)?,
        })
    }
}
