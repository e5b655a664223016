//! What an endpoint lends to the association it calls.

use std::collections::VecDeque;

use rexmit_core::trace::{TraceSink, Tracer};
use rexmit_core::{Instant, Rng};

use crate::endpoint::AssociationId;
use crate::event::Event;
use crate::streams::PayloadArena;

/// The surroundings of one call into an association.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    pub(crate) id: AssociationId,
    /// The endpoint's addresses that a peer is told.
    pub(crate) addresses: &'a [std::net::IpAddr],
    pub(crate) rng: &'a mut Rng,
    pub(crate) arena: &'a mut PayloadArena,
    pub(crate) events: &'a mut VecDeque<(AssociationId, Event)>,
    pub(crate) sink: Option<&'a mut (dyn TraceSink + 'static)>,
}

impl Context<'_> {
    pub(crate) fn event(&mut self, event: Event) {
        self.events.push_back((self.id, event));
    }

    pub(crate) fn tracer(&mut self) -> Tracer<'_> {
        let sink = self.sink.as_mut().map(|sink| &mut **sink as &mut dyn TraceSink);
        Tracer::new(self.now, self.id.index(), sink)
    }
}
