//! Messages, as the application sends and receives them.

use std::time::Duration;

use bytes::Bytes;
use rexmit_core::config;
use rexmit_recovery::Deadline;

/// The id of a message that was accepted from the application, used in the events that report its fate.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageId(pub u64);

/// How long delivery of a message is attempted (RFC 3758, RFC 7496). Default [`Full`](Self::Full).
///
/// A message that is abandoned after its transmission began is skipped by a FORWARD-TSN, which requires a
/// peer with partial reliability.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub enum Reliability {
    /// Until it is delivered or the association ends.
    #[default]
    Full,
    /// Until this much time has passed since it was accepted (RFC 3758 §4.1).
    Timed(Duration),
    /// Until one of its chunks would have to be retransmitted more often than this (RFC 7496 §3.1); with 0
    /// every chunk is sent once. Redundant copies are not counted, and are not sent of a chunk that may not
    /// be retransmitted any more.
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
        /// Payload protocol identifier, passed to the peer's application; 0 is unspecified (RFC 9260 §3.3.1).
        /// Default 0.
        pub ppid: u32,
        /// Whether the peer may deliver it as soon as it is complete, out of the order of its stream (RFC 9260
        /// §6.6). Default false.
        pub unordered: bool,
        /// Whether the peer is asked to acknowledge the last chunk without delay (I bit, RFC 7053). Default false.
        pub immediate: bool,
        /// How long delivery is attempted. Default [`Reliability::Full`].
        pub reliability: Reliability,
        /// When the message should arrive, and with which probability; `None` for the deadline of its stream or
        /// association, [`ThinConfig::deadline`](crate::recovery::ThinConfig::deadline), if any. Deadlines are met by
        /// redundant copies, which only profiles with mechanisms for thin streams send. A message that misses its
        /// deadline is still delivered.
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
    /// Payload protocol identifier given by the peer's application; 0 is unspecified.
    pub ppid: u32,
    /// Whether the message was sent unordered.
    pub unordered: bool,
    /// The content. It may share memory with messages received close to it: to keep a small message for long,
    /// copy it.
    pub payload: Bytes,
}
