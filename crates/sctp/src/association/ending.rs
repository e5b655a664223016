//! How an association ends at once, and what the peer reports: ABORT (RFC 9260 §9.1), ERROR.

use super::state::{AbortCause, Farewell, State};
use super::transmit::Owed;
use super::{Association, Context};
use crate::event::{CloseReason, Event, FailReason};
use crate::wire::{Cause, Causes};

impl Association {
    /// Ends the association by an ABORT.
    pub(super) fn abort(&mut self, cx: &mut Context<'_>, cause: AbortCause) {
        let reason = CloseReason::Aborted { reason: cause.words() };
        // Without the peer's tag there is nobody to tell (RFC 9260 §8.5.1 B).
        let farewell = (self.peer_tag != 0).then_some(Farewell::Abort { t_bit: false, cause });
        self.close(cx, farewell, reason);
    }

    /// The application aborts.
    pub(crate) fn abort_by_user(&mut self, cx: &mut Context<'_>, reason: &[u8]) {
        if !self.state.is_closed() {
            self.abort(cx, AbortCause::User(bytes::Bytes::copy_from_slice(reason)));
        }
    }

    /// Ends the association: what was not acknowledged has failed.
    pub(super) fn close(
        &mut self,
        cx: &mut Context<'_>,
        farewell: Option<Farewell>,
        reason: CloseReason,
    ) {
        self.note_round_trip(cx);
        self.set_state(cx, State::Closed(farewell));
        self.timers.stop_all();
        self.owed = Owed::default();
        self.fail_everything(cx, FailReason::AssociationEnded);
        cx.event(Event::Closed(reason));
    }

    /// ABORT (RFC 9260 §9.1); the endpoint has checked its tag.
    pub(super) fn on_abort(&mut self, cx: &mut Context<'_>, causes: Causes<'_>) {
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

    /// ERROR (RFC 9260 §3.3.10).
    pub(super) fn on_error(&mut self, cx: &mut Context<'_>, causes: Causes<'_>) {
        for cause in causes.flatten() {
            match cause {
                Cause::StaleCookie { .. } => self.on_stale_cookie(cx),
                Cause::UnrecognizedChunkType(chunk) if self.asconf.is_some() => {
                    self.on_unrecognized_chunk(cx, chunk);
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
}
