//! Messages as the application gives and gets them.

use std::time::Duration;

use bytes::Bytes;
use rexmit_core::config;
use rexmit_recovery::Deadline;

/// Names a message accepted from the application, in the events that tell what became of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId(pub u64);

/// The limit of attempts to deliver a message (RFC 3758, RFC 7496).
///
/// A message that is given up after its transmission began is skipped at the peer by a
/// FORWARD-TSN, which needs a peer that supports partial reliability.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Reliability {
    /// Until it is delivered or the association ends.
    #[default]
    Full,
    /// Until this much time has passed since it was accepted (RFC 3758 §4.1).
    Timed(Duration),
    /// Until one of its chunks would have to be retransmitted more often than this
    /// (RFC 7496 §3.1); 0 sends every chunk once. A redundant copy of the profile is no
    /// retransmission; a chunk that may not be retransmitted any more has none.
    MaxRetransmissions(u16),
}

config! {
    /// A message to send.
    ///
    /// ```
    /// use rexmit_sctp::{OutboundMessage, Reliability};
    /// let position = OutboundMessage::new(3, "x=1 y=2")
    ///     .unordered(true)
    ///     .reliability(Reliability::MaxRetransmissions(1));
    /// assert_eq!(position.stream, 3);
    /// ```
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct OutboundMessage {
        /// The outgoing stream.
        pub stream: u16,
        /// Payload protocol identifier, carried to the peer's application as it is; 0 says nothing
        /// (RFC 9260 §3.3.1).
        pub ppid: u32,
        /// Whether the peer may deliver it as soon as it is complete, out of the order of its stream
        /// (RFC 9260 §6.6).
        pub unordered: bool,
        /// Whether the peer is asked to acknowledge its last chunk without delay (I bit, RFC 7053).
        pub immediate: bool,
        /// When to give up.
        pub reliability: Reliability,
        /// When the peer should have it, and with which probability; `None` for the deadline of its stream or
        /// association, [`ThinConfig::deadline`](crate::recovery::ThinConfig::deadline), if that has one. It takes copies
        /// of data, which only profiles with mechanisms for thin streams send, and does not give the message up.
        pub deadline: Option<Deadline>,
        /// The content, at least one byte: a DATA chunk cannot be empty (RFC 9260 §3.3.1).
        pub payload: Bytes,
    }
}

impl OutboundMessage {
    /// An ordered, fully reliable message without a payload protocol identifier.
    #[must_use]
    pub fn new(stream: u16, payload: impl Into<Bytes>) -> Self {
        Self {
            stream,
            ppid: 0,
            unordered: false,
            immediate: false,
            reliability: Reliability::Full,
            deadline: None,
            payload: payload.into(),
        }
    }
}

/// A complete message from the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct InboundMessage {
    /// The incoming stream.
    pub stream: u16,
    /// Payload protocol identifier as the peer's application gave it; 0 says nothing.
    pub ppid: u32,
    /// Whether it was sent outside the order of its stream.
    pub unordered: bool,
    /// The content. It may share its memory with messages received near it: keep a copy rather
    /// than this handle when a small message is kept for long.
    pub payload: Bytes,
}
