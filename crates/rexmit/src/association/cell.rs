//! The state of an association that its tasks wait on.

use rexmit_sctp::AssociationId;
use tokio::sync::Notify;

/// The notifications of one association, shared by its handles and its endpoint.
///
/// A task registers first, then looks at the state, then waits, so that it misses no change in between.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) id: AssociationId,
    pub(crate) readable: Notify,
    pub(crate) writable: Notify,
    pub(crate) event: Notify,
    pub(crate) changed: Notify,
}

impl Cell {
    pub(crate) fn new(id: AssociationId) -> Self {
        Self {
            id,
            readable: Notify::new(),
            writable: Notify::new(),
            event: Notify::new(),
            changed: Notify::new(),
        }
    }

    pub(crate) fn notify_everybody(&self) {
        for waiting in [&self.readable, &self.writable, &self.event, &self.changed] {
            waiting.notify_waiters();
        }
    }
}
