//! Why a run has no result.

use thiserror::Error;

use super::problem::Problem;

/// Why a run has no result.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ExecuteError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] Problem),
    /// The system does not grant the permissions that real sockets need.
    #[error("real sockets cannot be used for this run: {0}")]
    NotPermitted(String),
    /// This program was built without a required feature.
    #[error("{0}")]
    NotBuilt(&'static str),
    /// The run failed.
    #[error("the run failed: {0}")]
    Failed(String),
}

impl ExecuteError {
    /// Whether the run itself is valid, and only a permission of this machine or a feature of this
    /// build is missing.
    #[must_use]
    pub const fn is_not_permitted(&self) -> bool {
        matches!(self, Self::NotPermitted(_) | Self::NotBuilt(_))
    }
}
