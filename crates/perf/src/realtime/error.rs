//! Why a comparison in real time was not made, in words that say what to do.

use std::io;
use std::time::Duration;

use rexmit::emulator::EmulatorError;
use rexmit::tcp::{ListenError, OpenError};
use rexmit::tun::TunError;
use rexmit::{BindError, ConnectError, SendError};
use rexmit_sctp::CloseReason;
use thiserror::Error;

use super::transport::Transport;

/// Why there is no comparison.
#[derive(Debug, Error)]
pub enum RealtimeError {
    /// No profile of that name.
    #[error("there is no recovery profile `{name}`: there are {}", transport.names())]
    UnknownProfile {
        /// The name.
        name: String,
        /// Whose profile it should be.
        transport: Transport,
    },
    /// Over TCP messages arrive in order.
    #[error("TCP delivers in order: choose SCTP for unordered messages")]
    Unordered,
    /// No network for TCP.
    #[error(transparent)]
    Network(#[from] TunError),
    /// No TCP on it.
    #[error(transparent)]
    Stack(#[from] OpenError),
    /// It is not possible to listen on it.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A TCP connection did not come about, or ended before its time.
    #[error(
        "{profile}: a connection was lost ({source}), so there is nothing to compare: choose less loss"
    )]
    ConnectionLost {
        /// The profile.
        profile: String,
        /// How it ended.
        source: io::Error,
    },
    /// The emulator did not start.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// No address for an endpoint.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// No association.
    #[error("{profile}: {source}")]
    Connect {
        /// The profile.
        profile: String,
        /// Why not.
        source: ConnectError,
    },
    /// The set-up took too long.
    #[error(
        "{profile}: no association came about within {} s: the link loses too much, choose less \
         loss",
        patience.as_secs()
    )]
    SetUpTooLong {
        /// The profile.
        profile: String,
        /// How long it was tried.
        patience: Duration,
    },
    /// A message was not taken.
    #[error("{profile}: message {message} was refused: {source}")]
    Send {
        /// The profile.
        profile: String,
        /// The message's number.
        message: u32,
        /// Why.
        source: SendError,
    },
    /// An association ended before its time.
    #[error(
        "{profile}: an association ended early ({reason:?}), so there is nothing to compare: choose \
         less loss"
    )]
    EndedEarly {
        /// The profile.
        profile: String,
        /// How it ended.
        reason: CloseReason,
    },
    /// The transport broke a promise.
    #[error("{profile}: {what}; this is a bug in rexmit, please report it with the seed")]
    Broken {
        /// The profile.
        profile: String,
        /// What happened.
        what: String,
    },
    /// The system refused something that it normally grants.
    #[error("the system refused: {0}")]
    Io(#[from] io::Error),
}
