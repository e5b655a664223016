//! The name of a host in calls.

/// A host of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HostId(pub(crate) usize);
