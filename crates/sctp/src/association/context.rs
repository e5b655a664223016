//! State of the endpoint that an association uses during a call.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::trace::{TraceEvent, TraceSink, Tracer};
use rexmit_core::{Instant, Rng, Route};
use rexmit_recovery::{LossRecovery, RecoveryConfig, Unanswered};

use super::addresses::is_in_scope;
use super::round_trips::RoundTrips;
use crate::config::{AssociationConfig, SourceAddresses};
use crate::event::Event;
use crate::id::AssociationId;
use crate::statistics::EndpointStatistics;
use crate::streams::Fragment;

/// The loss recovery of an association.
pub(crate) type Recovery = LossRecovery<Fragment>;

/// The state that all associations of an endpoint share.
pub(crate) struct Surroundings {
    /// The endpoint's addresses that are sent to peers.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) source_addresses: SourceAddresses,
    /// The configuration of associations, and its recovery part, shared by all of them.
    pub(crate) association: (Arc<AssociationConfig>, Arc<RecoveryConfig>),
    pub(crate) round_trips: RoundTrips,
    /// Whether ACKs are late on one association only (a loss), or on most (a busy host, or a link that all share).
    pub(crate) unanswered: Unanswered,
    /// The time so far in which timers were due and this host did not call the endpoint.
    pub(crate) starved: Duration,
    pub(crate) rng: Rng,
    pub(crate) events: VecDeque<(AssociationId, Event)>,
    pub(crate) statistics: EndpointStatistics,
    pub(crate) sink: Option<Box<dyn TraceSink>>,
}

/// One call into the association `id`, at `now`.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) id: AssociationId,
    pub(crate) around: &'a mut Surroundings,
}

impl Surroundings {
    /// Keeps those of the addresses that a peer lists that become paths, given the route of its packet: neither ours (two
    /// hosts may have the same address in networks of their own, which leads to none of them), nor of a version of IP that
    /// this endpoint does not use.
    pub(crate) fn retain_usable(&self, listed: &mut Vec<IpAddr>, route: Route) {
        let Route { local, remote } = route;
        let peer = remote.ip();
        let is_own_host = peer.is_loopback() || self.addresses.contains(&peer);
        let is_used = |own: &IpAddr| match self.source_addresses {
            SourceAddresses::Routed => true,
            SourceAddresses::Paired => is_in_scope(*own, peer),
        };
        let mut used: Vec<_> = self.addresses.iter().copied().filter(is_used).collect();
        // Without addresses of its own, the driver chooses.
        let is_any = self.addresses.is_empty() && self.source_addresses == SourceAddresses::Paired;
        used.push(local.ip());
        listed.retain(|address| {
            let has_version = used.iter().any(|own| own.is_ipv4() == address.is_ipv4());
            (is_any || has_version) && (is_own_host || !self.addresses.contains(address))
        });
    }

    /// The recovery configuration of `config`, shared by all associations that have this configuration.
    pub(crate) fn recovery_of(&self, config: &Arc<AssociationConfig>) -> Arc<RecoveryConfig> {
        match &self.association {
            (shared, recovery) if Arc::ptr_eq(shared, config) => Arc::clone(recovery),
            _ => Arc::new(config.recovery.clone()),
        }
    }

    pub(crate) fn tracer(&mut self, now: Instant, id: AssociationId) -> Tracer<'_> {
        let sink = self.sink.as_mut().map(|sink| &mut **sink as &mut dyn TraceSink);
        Tracer::new(now, id.index(), sink)
    }
}

impl<'a> Context<'a> {
    pub(crate) const fn new(now: Instant, id: AssociationId, around: &'a mut Surroundings) -> Self {
        Self { now, id, around }
    }
}

impl Context<'_> {
    /// The RTT for the setup timers: configured, or remembered from an earlier association with `peer`.
    /// `None` if the setup uses RTO.Initial.
    pub(crate) fn known_round_trip(
        &self,
        config: &AssociationConfig,
        peer: IpAddr,
    ) -> Option<Duration> {
        let remembered = || self.around.round_trips.of(peer);
        let known = || if config.recovery.sctp.setup_by_rtt { remembered() } else { None };
        config.handshake.initial_rtt.or_else(known)
    }

    /// Stores the round-trip time of the peer, whose primary path is `route`.
    pub(crate) fn note_round_trip(
        &mut self,
        config: &AssociationConfig,
        route: Route,
        recovery: &Recovery,
    ) {
        let paths = recovery.paths();
        let srtt = paths[paths.primary()].timer().rtt().srtt();
        if let Some(srtt) = srtt.filter(|_| config.recovery.sctp.setup_by_rtt) {
            self.around.round_trips.note(route.remote.ip(), srtt);
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.around.events.push_back((self.id, event));
    }

    pub(crate) fn trace_dropped(&mut self, reason: &'static str) {
        self.tracer().emit(|| TraceEvent::Dropped { reason });
    }

    pub(crate) fn tracer(&mut self) -> Tracer<'_> {
        self.around.tracer(self.now, self.id)
    }
}
