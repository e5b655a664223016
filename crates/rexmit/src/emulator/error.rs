//! Why an emulator did not start.

use std::io;

use rexmit_netsim::path::ConfigError;
use thiserror::Error;

use crate::error::BindError;

/// Why the emulator did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The address to listen on cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The configuration of a path is invalid.
    #[error("the {direction} path: {source}")]
    Path {
        /// `forward` or `backward`.
        direction: &'static str,
        /// The mistake.
        source: ConfigError,
    },
    /// Another error of the operating system.
    #[error("the emulator could not be set up: {0}")]
    Io(#[from] io::Error),
}
