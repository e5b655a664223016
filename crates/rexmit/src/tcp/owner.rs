//! The owner of a stack, shared by its handles: dropping the last one releases the stack.

use std::net::IpAddr;
use std::sync::Arc;

use super::state::{Shared, StackState};

/// Shared by the handles and listeners of a stack; dropped with the last of them.
pub(super) struct Owner {
    pub(super) shared: Arc<Shared>,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) mtu: u16,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.with_on_drop(StackState::release_stack);
    }
}
