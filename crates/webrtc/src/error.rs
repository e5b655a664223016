//! Errors of descriptions, channels and connections, with texts that say which side failed, and why.

use std::time::Duration;

use rexmit_dtls::HandshakeError;
use thiserror::Error;

use crate::SdpError;

/// Why an offer or an answer was refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OfferError {
    /// The description cannot be parsed.
    #[error(transparent)]
    Sdp(#[from] SdpError),
    /// The DTLS role in `a=setup` is not allowed: an answer must be `active` or `passive`.
    #[error("`a=setup` is `{0}`, which is not allowed in the {1} of a connection")]
    Setup(&'static str, &'static str),
    /// Both sides are ICE-lite agents, so neither sends checks.
    #[error("both sides are ICE-lite agents, so neither can connect")]
    BothLite,
    /// The agent does not wait for an answer.
    #[error("no offer is waiting for an answer")]
    NotWaiting,
    /// The connection has not begun, or has ended.
    #[error("there is no connection: it has not begun, or it has ended")]
    NoConnection,
    /// A later description is of another connection.
    #[error("fingerprints, DTLS role or SCTP port are not those of the connection: make a new one")]
    OtherConnection,
    /// A limit of the server was reached.
    #[error("the limit of {limit} {what} is reached: try again later")]
    Busy {
        /// The limited resource.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Why a channel could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// There are already [`max_channels`](crate::AgentConfig::max_channels) channels.
    #[error("the limit of {limit} channels is reached")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The label and protocol are too long.
    #[error("label and protocol are longer than {limit} bytes")]
    LabelTooLong {
        /// The limit.
        limit: usize,
    },
    /// The stream of a negotiated channel is in use.
    #[error("there is a channel with the number {0}")]
    InUse(u16),
}

/// Why a message was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The channel does not exist (any more).
    #[error("there is no such channel (any more)")]
    NoSuchChannel,
    /// The channel, or the connection, is not established yet.
    #[error("the connection is not established yet")]
    NotConnected,
    /// The message is larger than one of the sides allows.
    #[error("the message is larger than {limit} bytes, the limit of this side or the peer")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Why a message was not accepted by a call that does not wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send buffer has no room now: wait for [`Event::Writable`](crate::Event::Writable) of an
    /// [`Agent`](crate::Agent), or use the `send` of a [`Connection`](crate::Connection), which waits.
    #[error("the send buffer is full")]
    Full,
    /// The message cannot be sent.
    #[error(transparent)]
    Refused(#[from] SendError),
}

/// The stage at which setting up a connection timed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// ICE: no pair of addresses has worked.
    Ice,
    /// The DTLS handshake.
    Dtls,
    /// The SCTP association.
    Sctp,
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side closed it.
    #[error("the connection was closed here")]
    Local,
    /// The peer closed it.
    #[error("the peer closed the connection")]
    Peer,
    /// Setting up the connection took longer than [`setup_timeout`](crate::AgentConfig::setup_timeout).
    #[error("the connection was not set up within {:.1} s: {}", .1.as_secs_f64(), stage_text(.0))]
    SetupTimedOut(Stage, Duration),
    /// The peer's consent has expired: nothing was received for
    /// [`consent_timeout`](crate::AgentConfig::consent_timeout).
    #[error("no consent of the peer was received for {:.1} s: the peer or the network has failed", .0.as_secs_f64())]
    ConsentExpired(Duration),
    /// The DTLS handshake failed, or the peer's certificate is not the one in its description.
    #[error("DTLS: {0}")]
    Dtls(HandshakeError),
    /// The SCTP association ended.
    #[error("SCTP: {0}")]
    Association(rexmit_sctp::CloseReason),
}

const fn stage_text(stage: &Stage) -> &'static str {
    match stage {
        Stage::Ice => {
            "no check of the peer's arrived, or none was answered: are the addresses of offer and \
             answer reachable over UDP?"
        }
        Stage::Dtls => "the DTLS handshake was not completed",
        Stage::Sctp => "the SCTP association was not established",
    }
}
