//! Events of associations for the crate `tracing`, with the target `rexmit`. Requires the feature `tracing`.
//!
//! | level | events |
//! |---|---|
//! | warn | an association was not accepted, because too many waited |
//! | info | an encrypted connection is established, has failed or has ended; an association is established, or has ended; a path, or the path of data, has changed |
//! | debug | a retransmission event began, was spurious, was undone; a timeout |

#[cfg(feature = "tracing")]
mod with_tracing {
    use std::net::SocketAddr;

    use rexmit_core::Instant;
    use rexmit_core::trace::{TraceEvent, TraceSink};
    #[cfg(feature = "dtls")]
    use rexmit_dtls::{Fingerprint, HandshakeError};
    use rexmit_sctp::{CloseReason, Event};
    use tracing::{Level, debug, enabled, info, warn};

    pub(crate) fn established(association: u32, peer: SocketAddr, incoming: bool) {
        info!(target: "rexmit", association, %peer, incoming, "established");
    }

    #[cfg(feature = "dtls")]
    pub(crate) fn secured(peer: SocketAddr, outcome: &Result<Fingerprint, HandshakeError>) {
        match outcome {
            Ok(fingerprint) => info!(target: "rexmit", %peer, %fingerprint, "secured"),
            Err(reason) => info!(target: "rexmit", %peer, %reason, "not secured"),
        }
    }

    pub(crate) fn not_accepted(association: u32, peer: SocketAddr) {
        warn!(target: "rexmit", association, %peer, "not accepted: too many wait");
    }

    pub(crate) fn ended(association: u32, reason: &CloseReason) {
        info!(target: "rexmit", association, %reason, "ended");
    }

    pub(crate) fn happened(association: u32, event: &Event) {
        match event {
            Event::PathStatus { path, address, state } => {
                info!(target: "rexmit", association, path, %address, ?state, "path");
            }
            Event::DataPathChanged { path, address } => {
                info!(target: "rexmit", association, path, %address, "data path");
            }
            Event::AddressChanged { change, refused } => {
                info!(target: "rexmit", association, ?change, ?refused, "own address");
            }
            _ => {}
        }
    }

    /// The sink of an endpoint: `next`, and the events of level debug if a subscriber of `tracing` has enabled them.
    pub(crate) fn sink(next: Option<Box<dyn TraceSink>>) -> Option<Box<dyn TraceSink>> {
        if enabled!(target: "rexmit", Level::DEBUG) { Some(Box::new(Recovery(next))) } else { next }
    }

    /// Logs the events of loss recovery, and passes every event to the application's sink.
    struct Recovery(Option<Box<dyn TraceSink>>);

    impl TraceSink for Recovery {
        fn record(&mut self, now: Instant, association: u32, event: &TraceEvent) {
            match event {
                TraceEvent::RetransmissionEvent { path, kind } => {
                    let kind = kind.name();
                    debug!(target: "rexmit", association, path, kind, "retransmission event");
                }
                TraceEvent::EventSpurious { path, kind, by } => {
                    let kind = kind.name();
                    debug!(target: "rexmit", association, path, kind, ?by, "spurious");
                }
                TraceEvent::Undone { path, cwnd, ssthresh } => {
                    debug!(target: "rexmit", association, path, cwnd, ssthresh, "undone");
                }
                TraceEvent::RetransmissionTimeout { path, rto } => {
                    debug!(target: "rexmit", association, path, ?rto, "retransmission timeout");
                }
                _ => {}
            }
            if let Some(next) = &mut self.0 {
                next.record(now, association, event);
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod without_tracing {
    use std::net::SocketAddr;

    use rexmit_core::trace::TraceSink;
    #[cfg(feature = "dtls")]
    use rexmit_dtls::{Fingerprint, HandshakeError};
    use rexmit_sctp::{CloseReason, Event};

    pub(crate) const fn established(_: u32, _: SocketAddr, _: bool) {}
    #[cfg(feature = "dtls")]
    pub(crate) const fn secured(_: SocketAddr, _: &Result<Fingerprint, HandshakeError>) {}
    pub(crate) const fn not_accepted(_: u32, _: SocketAddr) {}
    pub(crate) const fn ended(_: u32, _: &CloseReason) {}
    pub(crate) const fn happened(_: u32, _: &Event) {}
    pub(crate) const fn sink(next: Option<Box<dyn TraceSink>>) -> Option<Box<dyn TraceSink>> {
        next
    }
}

#[cfg(feature = "tracing")]
pub(crate) use with_tracing::*;
#[cfg(not(feature = "tracing"))]
pub(crate) use without_tracing::*;
