//! Calls that concern the order of streams (RFC 8260 §3).

use rexmit_core::Instant;

use super::{AssociationId, Endpoint};
use crate::Scheduling;
use crate::error::PriorityError;

impl Endpoint {
    /// Sets the priority of an outgoing stream; initially [`DEFAULT_PRIORITY`](crate::DEFAULT_PRIORITY). With
    /// [`Scheduling::Priority`] the stream with the higher value is sent first; with
    /// [`Scheduling::WeightedFairQueueing`] it is the weight; other schedulers ignore it. It applies to
    /// chunks sent from now on, and survives a restart of the peer.
    ///
    /// # Errors
    /// See [`PriorityError`].
    pub fn set_priority(
        &mut self,
        now: Instant,
        id: AssociationId,
        stream: u16,
        priority: u16,
    ) -> Result<(), PriorityError> {
        let index = self.table.index_of(id.0).ok_or(PriorityError::UnknownAssociation)?;
        self.call(now, index, |association, _| {
            association.outbound().set_priority(stream, priority)
        })
        .unwrap_or(Err(PriorityError::UnknownAssociation))
    }

    /// Changes the stream scheduler of the association. A message that has begun without interleaving is
    /// finished first.
    ///
    /// # Errors
    /// [`PriorityError::UnknownAssociation`].
    pub fn set_scheduling(
        &mut self,
        now: Instant,
        id: AssociationId,
        scheduling: Scheduling,
    ) -> Result<(), PriorityError> {
        let index = self.table.index_of(id.0).ok_or(PriorityError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.outbound().set_scheduling(scheduling))
            .ok_or(PriorityError::UnknownAssociation)
    }
}
