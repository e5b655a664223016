//! The end of a stack's handles.

use std::net::IpAddr;
use std::sync::Arc;

use super::state::{Shared, StackState};

/// What handles of the stack and listeners share; its end is the last one's.
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
