//! The ends of both streams: the effect of the peer's FIN, and of the ACK of ours, on the state (RFC 9293
//! §3.6, §3.10.7.4, fifth and eighth check).

use super::inbound::PeerFin;
use super::{Arrival, Connection, Context, Next, State, Timer};
use crate::event::CloseReason;
use crate::wire::Flags;

impl Connection {
    /// The eighth check. A FIN beyond a gap waits for the gap to close.
    pub(super) fn on_fin(&mut self, cx: &mut Context<'_>, arrival: &Arrival<'_>) {
        if !self.state.may_receive_data() {
            return;
        }
        if arrival.has(Flags::FIN) && self.inbound.fin == PeerFin::Open {
            let fin = arrival.seq + arrival.payload.len() as u64;
            let is_plausible = self.inbound.buffer.next() <= fin && fin <= self.inbound.edge();
            if is_plausible {
                self.inbound.fin = PeerFin::Ahead(fin);
                self.owed.ack = true;
            }
        }
        // A FIN that came with a SYN waits, too, until the connection is established.
        if self.inbound.fin == PeerFin::Ahead(self.inbound.buffer.next())
            && self.state.is_synchronized()
        {
            self.inbound.fin = PeerFin::Taken;
            self.owed.ack = true;
            match self.state.after_peer_fin() {
                State::TimeWait => self.enter_time_wait(cx),
                state => self.set_state(cx, state),
            }
        }
    }

    /// Called after an acknowledgement: changes the state if it acknowledged our FIN.
    pub(super) fn on_fin_acknowledged(&mut self, cx: &mut Context<'_>) -> Next {
        if !self.out.is_fin_acknowledged() {
            return Next::Continue;
        }
        match self.state {
            State::FinWait1 => {
                self.set_state(cx, State::FinWait2);
                self.limit_fin_wait(cx.now);
                Next::Continue
            }
            State::Closing => {
                self.enter_time_wait(cx);
                Next::Stop
            }
            State::LastAck => {
                self.end(cx, Some(CloseReason::Finished), None);
                Next::Stop
            }
            _ => Next::Continue,
        }
    }

    fn enter_time_wait(&mut self, cx: &mut Context<'_>) {
        self.set_state(cx, State::TimeWait);
        self.timers.stop_all();
        self.restart_time_wait(cx.now);
        self.inbound.emit_readable(cx, self.state, self.application.is_gone);
        self.application.tell_end(cx, CloseReason::Finished);
    }

    pub(super) fn restart_time_wait(&mut self, now: rexmit_core::Instant) {
        self.timers.arm(Timer::TimeWait, now + self.config.msl * 2);
    }

    /// Limits FIN-WAIT-2, once the application has closed the connection, to the configured time.
    pub(super) fn limit_fin_wait(&mut self, now: rexmit_core::Instant) {
        if self.application.is_gone
            && self.state == State::FinWait2
            && let Some(timeout) = self.config.fin_wait_timeout
        {
            self.timers.arm(Timer::FinWait, now + timeout);
        }
    }
}
