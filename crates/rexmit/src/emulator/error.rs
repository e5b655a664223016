//! Why an emulator did not start.

use std::io;

use rexmit_netsim::path::ConfigError;
use thiserror::Error;

use crate::error::BindError;

/// Why the emulator did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulatorError {
    /// The address to listen on cannot be had.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// A path that cannot be.
    #[error("the {direction} path: {source}")]
    Path {
        /// `forward` or `backward`.
        direction: &'static str,
        /// The mistake.
        source: ConfigError,
    },
    /// The system refused something that it normally grants.
    #[error("the emulator could not be set up: {0}")]
    Io(#[from] io::Error),
}
