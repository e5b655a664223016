//! Why an emulator did not start.

use std::io;
use std::time::Duration;

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
    /// [`LinkConfig::batch`](super::LinkConfig::batch) is longer than [`LinkConfig::MAX_BATCH`](super::LinkConfig::MAX_BATCH).
    #[error("a batch of {0:?} is too long: at most {max:?}", max = super::LinkConfig::MAX_BATCH)]
    BatchTooLong(Duration),
    /// With [`keep_destination`](super::EmulatorConfig::keep_destination), packets would come back to the emulator.
    #[error(
        "packets that keep their destination need a port of the server other than {0}, on which the emulator listens"
    )]
    SamePort(u16),
    /// With [`keep_destination`](super::EmulatorConfig::keep_destination), the addresses of clients are of another family than
    /// the server's.
    #[error(
        "packets that keep their destination need addresses of one family: both IPv4 or both IPv6"
    )]
    OtherFamily,
    /// Another error of the operating system.
    #[error("the emulator could not be set up: {0}")]
    Io(#[from] io::Error),
}
