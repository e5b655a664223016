//! The end of an association, by abort (RFC 9260 §9.1) or shutdown (§9.2), and errors that the peer reports.

use super::replies::Replies;
use super::shutdown::Shutdown;
use super::state::{AbortCause, Farewell, State};
use super::{Association, Context};
use crate::event::{CloseReason, Event};
use crate::wire::{Cause, Causes, Packet, kind};
use rexmit_recovery::T3Event;

impl Association {
    /// Ends the association by an ABORT.
    pub(super) fn abort(&mut self, cx: &mut Context<'_>, cause: AbortCause) {
        let reason = CloseReason::Aborted { reason: cause.words() };
        // Without the peer's tag no ABORT can be sent (RFC 9260 §8.5.1 B).
        let farewell = (self.peer.tag() != 0).then_some(Farewell::Abort { t_bit: false, cause });
        self.close(cx, farewell, reason);
    }

    /// The application aborts.
    pub(crate) fn abort_by_user(&mut self, cx: &mut Context<'_>, reason: &[u8]) {
        if !self.state.is_closed() {
            self.abort(cx, AbortCause::User(bytes::Bytes::copy_from_slice(reason)));
        }
    }

    /// Ends the association; unacknowledged messages fail.
    pub(super) fn close(
        &mut self,
        cx: &mut Context<'_>,
        farewell: Option<Farewell>,
        reason: CloseReason,
    ) {
        cx.note_round_trip(&self.config, self.primary_route(), &self.out.recovery);
        self.set_state(cx, State::Closed(farewell.map(Box::new)));
        self.paths.stop_watching();
        self.replies = Replies::default();
        self.out.end(cx);
        self.inbound.end();
        cx.event(Event::Closed(reason));
    }

    /// A timeout on `path`: increments the error counters of the path and of the association, unless this host was too late
    /// to know. Returns whether the association was closed because its limit is exceeded.
    pub(super) fn on_unanswered(&mut self, cx: &mut Context<'_>, path: u8) -> bool {
        if !self.paths.errors.includes(cx, self.out.recovery.paths()[path].timer().rto()) {
            return false;
        }
        self.paths.count_path_error(cx, &mut self.out.recovery, path);
        let max = self.config.failure.association_max_retrans;
        let is_unreachable = self.paths.errors.add(max);
        if is_unreachable {
            self.end_unreachable(cx);
        }
        is_unreachable
    }

    /// Closes the association because the peer is unreachable (RFC 9260 §8.1).
    pub(super) fn end_unreachable(&mut self, cx: &mut Context<'_>) {
        // In SHUTDOWN-ACK-SENT, too, where only the farewell is missing (RFC 9260 §9.2).
        self.close(cx, None, CloseReason::Unreachable);
    }

    /// ABORT (RFC 9260 §9.1); the endpoint has checked its tag. If the ABORT reflects our tag
    /// (T bit), the peer has no such association (§8.4). In SHUTDOWN-ACK-SENT this means that SHUTDOWN COMPLETE was lost or
    /// overtaken: everything was delivered.
    pub(super) fn on_abort(
        &mut self,
        cx: &mut Context<'_>,
        is_reflected: bool,
        causes: Causes<'_>,
    ) {
        if is_reflected && self.state.is_shutdown_ack_sent() {
            return self.close(cx, None, CloseReason::Shutdown);
        }
        let first = causes.flatten().next();
        let (cause, words): (u16, &[u8]) = match &first {
            None => (0, &[]),
            Some(Cause::UserInitiatedAbort(words)) => (12, words),
            Some(Cause::ProtocolViolation(words)) => (13, words),
            Some(other) => (other.code(), &[]),
        };
        let reason = bytes::Bytes::copy_from_slice(words);
        self.close(cx, None, CloseReason::AbortedByPeer { cause, reason });
    }

    /// Processes an ERROR (RFC 9260 §3.3.10).
    pub(super) fn on_error(&mut self, cx: &mut Context<'_>, causes: Causes<'_>) {
        for cause in causes.flatten() {
            match cause {
                Cause::StaleCookie { .. } => self.on_stale_cookie(cx),
                Cause::UnrecognizedChunkType(chunk) if self.asconf.is_some() => {
                    if let Some((changes, mut addressing)) = self.changes() {
                        changes.on_unrecognized_chunk(cx, &mut addressing, chunk);
                    }
                    cx.event(Event::PeerError(cause.code()));
                }
                other if !self.state.is_setting_up() => cx.event(Event::PeerError(other.code())),
                _ => {}
            }
            if self.state.is_closed() {
                return;
            }
        }
    }

    /// Called when the application shuts down the association: accepted messages are still delivered.
    pub(crate) fn shutdown(&mut self, cx: &mut Context<'_>) {
        match self.state {
            State::Established => {
                self.set_state(cx, State::ShutdownPending);
                self.out.begin_opportunity();
                self.advance_shutdown(cx);
            }
            // Nothing was negotiated yet, so there is no peer to shut down with.
            State::CookieWait(_) | State::CookieEchoed(..) => {
                self.abort_by_user(cx, b"shut down before it was established");
            }
            _ => {}
        }
    }

    /// Continues the shutdown, if everything outstanding is acknowledged by now.
    pub(super) fn advance_shutdown(&mut self, cx: &mut Context<'_>) {
        if !self.out.is_empty() {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                let shutdown = Shutdown::begin(cx.now, self.config.guard_of_shutdown());
                self.set_state(cx, State::ShutdownSent(shutdown));
                // SHUTDOWN acknowledges what a delayed SACK would.
                self.inbound.stop_delaying();
                self.paths.stop_watching();
            }
            State::ShutdownReceived => self.enter_shutdown_ack_sent(cx, Shutdown::answering()),
            _ => {}
        }
    }

    fn enter_shutdown_ack_sent(&mut self, cx: &mut Context<'_>, shutdown: Shutdown) {
        self.set_state(cx, State::ShutdownAckSent(shutdown));
        self.inbound.stop_acknowledging();
        self.paths.stop_watching();
    }

    /// Called when T2-shutdown expired: retransmits SHUTDOWN or SHUTDOWN ACK, over another path if there is
    /// one.
    pub(super) fn on_t2_shutdown(&mut self, cx: &mut Context<'_>) {
        let Some(shutdown) = self.state.shutdown_mut() else { return };
        shutdown.on_t2();
        let path = self.paths.control();
        if self.on_unanswered(cx, path) {
            return;
        }
        self.out.recovery.on_t3_event(cx.now, path, T3Event::Unanswered);
        self.paths.set_control(self.out.recovery.paths().alternate_to(path));
        self.repeat_shutdown();
    }

    /// Schedules a retransmission of SHUTDOWN or SHUTDOWN ACK.
    pub(crate) fn repeat_shutdown(&mut self) {
        if let Some(shutdown) = self.state.shutdown_mut() {
            shutdown.owe();
        }
    }

    /// Processes a SHUTDOWN (RFC 9260 §9.2).
    pub(super) fn on_shutdown(&mut self, cx: &mut Context<'_>, cumulative_tsn_ack: u32) {
        match self.state {
            State::Established | State::ShutdownPending | State::ShutdownReceived => {
                let is_news = !matches!(self.state, State::ShutdownReceived);
                if let Some(acknowledged) = self.out.on_shutdown(cx, cumulative_tsn_ack) {
                    self.on_acknowledged(cx, acknowledged, false);
                }
                if self.state.is_closed() {
                    return;
                }
                if is_news {
                    self.set_state(cx, State::ShutdownReceived);
                    cx.event(Event::PeerShutdown);
                }
            }
            // Both ends have sent SHUTDOWN.
            State::ShutdownSent(shutdown) => {
                self.enter_shutdown_ack_sent(cx, shutdown.crossing());
            }
            State::ShutdownAckSent(_) => self.repeat_shutdown(),
            State::CookieWait(_) | State::CookieEchoed(..) | State::Closed(_) => {}
        }
    }

    /// Called for a packet of the peer in SHUTDOWN-SENT: clears the error count and restarts T2-shutdown, which
    /// gives the peer time for the rest of its data (RFC 9260 §9.2).
    ///
    /// A packet with HEARTBEATs alone does not restart T2: a peer that SHUTDOWN did not reach sends them forever, and
    /// where the RTO is longer than their interval, SHUTDOWN would not be retransmitted.
    pub(super) fn on_packet_while_shutdown_sent(&mut self, cx: &Context<'_>, packet: &Packet<'_>) {
        let rto = self.out.recovery.paths()[self.paths.control()].timer().rto();
        let State::ShutdownSent(shutdown) = &mut self.state else { return };
        if shutdown.is_owed() {
            return;
        }
        self.paths.errors.reset();
        let is_heartbeat = |kind| matches!(kind, kind::HEARTBEAT | kind::HEARTBEAT_ACK);
        if !packet.chunks().flatten().all(|chunk| is_heartbeat(chunk.kind)) {
            shutdown.restart_t2(cx.now, rto);
        }
    }
}
