//! Errors of a comparison in real time. Each message says what to do.

use std::io;
use std::time::Duration;

use rexmit::emulator::EmulatorError;
use rexmit::tcp::{ListenError, OpenError};
use rexmit::tun::TunError;
use rexmit::{BindError, ConnectError, SendError};
use rexmit_sctp::CloseReason;
use thiserror::Error;

use super::transport::Transport;

/// Why a comparison could not be made.
#[derive(Debug, Error)]
pub enum RealtimeError {
    /// There is no profile of that name.
    #[error("there is no recovery profile `{name}`: there are {}", transport.names())]
    UnknownProfile {
        /// The name.
        name: String,
        /// The protocol to which the profile should belong.
        transport: Transport,
    },
    /// Unordered delivery was requested over TCP.
    #[error("TCP delivers in order: choose SCTP for unordered messages")]
    Unordered,
    /// The virtual network for TCP cannot be created.
    #[error(transparent)]
    Network(#[from] TunError),
    /// The TCP stack cannot be opened.
    #[error(transparent)]
    Stack(#[from] OpenError),
    /// The TCP stack cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// A TCP connection was not established, or ended early.
    #[error(
        "{profile}: a connection was lost ({source}), so there is nothing to compare: choose less loss"
    )]
    ConnectionLost {
        /// The profile.
        profile: String,
        /// The reason.
        source: io::Error,
    },
    /// The emulator cannot be started.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// An endpoint's address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// An association cannot be established.
    #[error("{profile}: {source}")]
    Connect {
        /// The profile.
        profile: String,
        /// The reason.
        source: ConnectError,
    },
    /// No association was established within the time limit.
    #[error(
        "{profile}: no association was established within {} s: the link loses too much, choose less \
         loss",
        setup_timeout.as_secs()
    )]
    SetUpTooLong {
        /// The profile.
        profile: String,
        /// The time limit.
        setup_timeout: Duration,
    },
    /// The transport refused a message.
    #[error("{profile}: message {message} was refused: {source}")]
    Send {
        /// The profile.
        profile: String,
        /// The message's number.
        message: u32,
        /// The reason.
        source: SendError,
    },
    /// An association ended early.
    #[error(
        "{profile}: an association ended early ({reason:?}), so there is nothing to compare: choose \
         less loss"
    )]
    EndedEarly {
        /// The profile.
        profile: String,
        /// The reason.
        reason: CloseReason,
    },
    /// A message was delivered twice, damaged or out of order.
    #[error("{profile}: {what}; this is a bug in rexmit, please report it with the seed")]
    Broken {
        /// The profile.
        profile: String,
        /// The failed check.
        what: String,
    },
    /// A system call failed unexpectedly.
    #[error("a system call failed: {0}")]
    Io(#[from] io::Error),
}
