//! What an endpoint lends to the association it calls.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use rexmit_core::trace::{TraceSink, Tracer};
use rexmit_core::{Instant, Rng};
use rexmit_recovery::RecoveryConfig;

use crate::config::AssociationConfig;
use crate::endpoint::{AssociationId, RoundTrips};
use crate::event::Event;
use crate::statistics::EndpointStatistics;
use crate::streams::PayloadArena;

/// What all associations of an endpoint share.
pub(crate) struct Surroundings {
    /// The endpoint's addresses that a peer is told.
    pub(crate) addresses: Vec<IpAddr>,
    /// The configuration of associations, with what loss recovery reads of it.
    pub(crate) association: (Arc<AssociationConfig>, Arc<RecoveryConfig>),
    pub(crate) round_trips: RoundTrips,
    pub(crate) rng: Rng,
    pub(crate) arena: PayloadArena,
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
    /// What loss recovery reads of `config`: one for all associations that share it.
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

impl Context<'_> {
    pub(crate) fn event(&mut self, event: Event) {
        self.around.events.push_back((self.id, event));
    }

    pub(crate) fn tracer(&mut self) -> Tracer<'_> {
        self.around.tracer(self.now, self.id)
    }
}
