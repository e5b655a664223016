//! Reliable transport.

pub mod association;
pub mod clock;
pub mod emulator;
pub mod endpoint;
mod error;
pub mod event;
mod socket;

pub use association::{Association, Stream};
pub use endpoint::{ENCAPSULATION_PORT, Endpoint, EndpointStatistics};
pub use error::{BindError, ConnectError};
pub use event::Event;
pub use rexmit_sctp::recovery::{PROFILES, RecoveryConfig};
pub use rexmit_sctp::{
    AssociationConfig, AssociationStatistics, CloseReason, ConfigError, EndpointConfig, FailReason,
    InboundMessage, MessageId, OutboundMessage, Reliability, ResetError, SendError,
};
