//! The context of a connection, and its parts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::trace::{TraceEvent, TraceSink, Tracer};
use rexmit_core::{Instant, Rng};
use rexmit_recovery::{RecoveryConfig, Unanswered};

use super::challenge::ChallengeLimit;
use crate::config::ConnectionConfig;
use crate::endpoint::ConnectionId;
use crate::event::Event;
use crate::statistics::EndpointStatistics;

/// The state that all connections of an endpoint share.
pub(crate) struct Surroundings {
    pub(crate) rng: Rng,
    /// The configuration of the most recent connection, and its recovery part, for the next one to share.
    pub(crate) recovery: Option<(Arc<ConnectionConfig>, Arc<RecoveryConfig>)>,
    /// Whether ACKs are late on one connection only (a loss), or on most (a busy host, or a link that all share).
    pub(crate) unanswered: Unanswered,
    /// RFC 5961 §7.
    pub(crate) challenges: ChallengeLimit,
    pub(crate) events: VecDeque<(ConnectionId, Event)>,
    pub(crate) sink: Option<Box<dyn TraceSink>>,
    /// Counters shared by all connections.
    pub(crate) statistics: EndpointStatistics,
}

/// The context of a connection during a call.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) id: ConnectionId,
    pub(crate) around: &'a mut Surroundings,
}

impl Surroundings {
    /// The recovery configuration of `config`, shared with the previous connection if its configuration
    /// was the same value.
    pub(crate) fn recovery_of(&mut self, config: &Arc<ConnectionConfig>) -> Arc<RecoveryConfig> {
        match &self.recovery {
            Some((shared, recovery)) if Arc::ptr_eq(shared, config) => Arc::clone(recovery),
            _ => {
                let recovery = Arc::new(config.recovery.clone());
                self.recovery = Some((Arc::clone(config), Arc::clone(&recovery)));
                recovery
            }
        }
    }
}

impl Context<'_> {
    pub(crate) fn emit(&mut self, event: Event) {
        self.around.events.push_back((self.id, event));
    }

    pub(crate) fn trace_dropped(&mut self, reason: &'static str) {
        self.tracer().emit(|| TraceEvent::Dropped { reason });
    }

    pub(crate) fn tracer(&mut self) -> Tracer<'_> {
        let sink = self.around.sink.as_deref_mut().map(|sink| sink as &mut dyn TraceSink);
        Tracer::new(self.now, self.id.index(), sink)
    }
}

/// The identity of a connection on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Our initial sequence number (ISS).
    pub(crate) iss: u32,
    /// The offset added to the clock for TSval (RFC 7323 §5.4).
    pub(crate) timestamp_offset: u32,
}

/// The options negotiated by the two SYNs, and the peer's MSS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Negotiated {
    /// The peer's initial sequence number (IRS).
    pub(crate) irs: u32,
    /// The MSS option of the peer, or its default of 536 (IPv4) or 1220 (IPv6).
    pub(crate) peer_mss: u16,
    /// Snd.Wind.Shift and Rcv.Wind.Shift, if both sides offered scaling.
    pub(crate) window_scale: Option<(u8, u8)>,
    /// Whether both sides permitted SACK.
    pub(crate) sack: bool,
    /// TS.Recent, if both sides sent timestamps.
    pub(crate) timestamps: Option<u32>,
}
