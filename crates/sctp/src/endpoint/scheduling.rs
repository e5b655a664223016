//! The calls of an application that says which of its streams goes first (RFC 8260 §3).

use rexmit_core::Instant;

use super::{AssociationId, Endpoint};
use crate::Scheduling;
use crate::error::PriorityError;

impl Endpoint {
    /// Sets the priority of an outgoing stream, [`DEFAULT_PRIORITY`](crate::DEFAULT_PRIORITY) at first: the
    /// higher goes first with [`Scheduling::Priority`], and it is the weight with
    /// [`Scheduling::WeightedFairQueueing`]. Other schedulers do not look at it. It holds for chunks sent
    /// from now on, and a restart of the peer does not change it.
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
        let index = self.index_of(id).ok_or(PriorityError::UnknownAssociation)?;
        self.call(now, index, |association, _| {
            association.outbound().set_priority(stream, priority)
        })
        .unwrap_or(Err(PriorityError::UnknownAssociation))
    }

    /// Schedules the streams of the association by another rule from now on. A message that has begun
    /// without interleaving is finished first.
    ///
    /// # Errors
    /// [`PriorityError::UnknownAssociation`].
    pub fn set_scheduling(
        &mut self,
        now: Instant,
        id: AssociationId,
        scheduling: Scheduling,
    ) -> Result<(), PriorityError> {
        let index = self.index_of(id).ok_or(PriorityError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.outbound().set_scheduling(scheduling))
            .ok_or(PriorityError::UnknownAssociation)
    }
}
