//! What can go wrong, in words that say by whom and why.

use std::time::Duration;

use rexmit_dtls::HandshakeError;
use thiserror::Error;

use crate::SdpError;

/// Why an offer or an answer is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OfferError {
    /// It cannot be read.
    #[error(transparent)]
    Sdp(#[from] SdpError),
    /// An offer must leave the choice to the answer, or an answer has not made it.
    #[error("`a=setup` is `{0}`, which the {1} of a connection must not say")]
    Setup(&'static str, &'static str),
    /// Both sides only answer checks.
    #[error("both sides are ICE-lite agents, of which neither connects")]
    BothLite,
    /// The peer has an answer already, or is not waiting for one.
    #[error("there is no offer that waits for an answer")]
    NotWaiting,
    /// A limit of the host.
    #[error("the limit of {limit} {what} is reached: try again later")]
    Busy {
        /// Of what there are too many.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Why a channel is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The connection has ended.
    #[error("the connection has ended")]
    Closed,
    /// There are [`max_channels`](crate::AgentConfig::max_channels).
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

/// Why a message is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SendError {
    /// Not any more.
    #[error("there is no such channel (any more)")]
    NoSuchChannel,
    /// Not yet.
    #[error("the connection is not established yet")]
    NotConnected,
    /// There is no room: wait for [`Event::Writable`](crate::Event::Writable).
    #[error("the send buffer is full")]
    BufferFull,
    /// Larger than what either side permits.
    #[error("the message is larger than {limit} bytes, the limit of this side or the peer")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// How far a connection was when its time was over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// No pair of addresses works.
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
    /// It was not set up in time.
    #[error("the connection was not set up within {:.1} s: {}", .1.as_secs_f64(), stage_text(.0))]
    SetupTimedOut(Stage, Duration),
    /// The peer has not been heard from.
    #[error("the peer has not consented to be sent to for {:.1} s: it is gone, or the network is", .0.as_secs_f64())]
    ConsentExpired(Duration),
    /// The DTLS handshake failed, or the peer is not who it should be.
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
