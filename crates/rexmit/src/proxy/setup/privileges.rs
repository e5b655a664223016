//! The privileges that a process started by root keeps while the proxy serves clients.

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};

use super::error::SetupError;

/// Drops every capability of this thread, and of threads and programs that it starts later; if `has_setup`, except
/// `CAP_NET_ADMIN`, which its removal requires. Call it before other threads are started.
///
/// # Errors
/// If the kernel refuses.
pub fn keep_needed_capabilities(has_setup: bool) -> Result<(), SetupError> {
    let failed = |source: rustix::io::Errno| SetupError::Io {
        doing: "capabilities cannot be dropped",
        source: source.into(),
    };
    let held = capabilities(None).map_err(failed)?;
    let needed = if has_setup { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
    let kept = held.permitted & needed;
    if held.permitted.contains(CapabilitySet::SETPCAP) {
        // A program of root gets what is in the bounding set.
        for capability in (CapabilitySet::all() - needed).iter() {
            // The set does not contain capabilities that this kernel does not know.
            let _ = remove_capability_from_bounding_set(capability);
        }
    }
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(failed)
}
