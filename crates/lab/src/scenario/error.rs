//! Why a run came to no result.

use thiserror::Error;

use super::problem::Problem;

/// Why a run came to no result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ExecuteError {
    /// It cannot be run.
    #[error(transparent)]
    Scenario(#[from] Problem),
    /// The machine does not grant what real sockets need.
    #[error("real sockets are not to be had for this run: {0}")]
    NotPermitted(String),
    /// This program was built without what it needs.
    #[error("{0}")]
    NotBuilt(&'static str),
    /// It failed while it ran.
    #[error("the run failed: {0}")]
    Failed(String),
}

impl ExecuteError {
    /// Whether nothing is wrong with the run, and only this machine does not grant what it needs, or
    /// this program does not have it.
    #[must_use]
    pub const fn is_not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted(_) | Self::NotBuilt(_))
    }
}
