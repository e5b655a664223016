//! Events of an endpoint for its application (RFC 9260 §11.2).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use rexmit_recovery::PathState;

use crate::{MessageId, OutboundMessage};

/// What happened to an association. An async driver, such as the crate `rexmit`, acts upon
/// [`Connected`](Self::Connected), [`Readable`](Self::Readable) and [`Writable`](Self::Writable) itself, and its
/// applications never see them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Established (COMMUNICATION UP).
    Connected {
        /// Whether the peer asked for it.
        incoming: bool,
        /// Where the peer is.
        peer: SocketAddr,
        /// Outgoing streams: 0 to one less than this.
        outbound_streams: u16,
        /// Incoming streams.
        inbound_streams: u16,
    },
    /// [`Endpoint::receive`](crate::Endpoint::receive) has something again (DATA ARRIVE). Told
    /// once until everything was received.
    Readable,
    /// There is room again after [`SendError::BufferFull`](crate::SendError::BufferFull).
    Writable,
    /// The last chunk of the message was sent for the first time. Only if `report_sent`.
    MessageSent(MessageId),
    /// Every chunk of the message is acknowledged. Only if `report_acknowledged`.
    MessageAcknowledged(MessageId),
    /// The message will not be delivered, or it is not known whether it was (SEND FAILURE).
    MessageFailed {
        /// Which.
        id: MessageId,
        /// Why.
        reason: FailReason,
        /// Whether a part of it was sent.
        was_begun: bool,
        /// As the application gave it.
        message: OutboundMessage,
    },
    /// Messages sent from now on do not meet their deadline with the probability that was asked for: it is shorter than the
    /// path, or needs more copies than the budget has. They are sent as well as it can be. Reported again after it could
    /// be met for a while.
    Infeasible {
        /// Of a million messages, how many can be in time, as losses are now.
        achievable_ppm: u32,
    },
    /// The peer takes no more messages; those on the way are still delivered.
    PeerShutdown,
    /// The peer has started anew: what was unacknowledged has failed, streams begin again at 0
    /// (RESTART).
    PeerRestarted,
    /// Outgoing streams were reset on our request (empty: all), or the peer refused.
    StreamsReset {
        /// The streams.
        streams: Vec<u16>,
        /// Whether the peer performed it.
        performed: bool,
    },
    /// A message of the peer is not delivered, though the peer takes it for delivered: it is larger than
    /// [`max_message_bytes`](crate::AssociationConfig::max_message_bytes), or it filled the receive buffer
    /// together with other incomplete messages.
    MessageDropped {
        /// Its stream.
        stream: u16,
        /// Its payload protocol identifier.
        ppid: u32,
        /// Whether it was sent outside the order of its stream.
        unordered: bool,
    },
    /// The peer has reset its outgoing streams, our incoming ones (empty: all).
    PeerResetStreams(Vec<u16>),
    /// A path was found to work, or not to work any more (NETWORK STATUS CHANGE).
    PathStatus {
        /// Its number: its place in
        /// [`AssociationStatistics::paths`](crate::AssociationStatistics::paths).
        path: u8,
        /// The peer's address.
        address: SocketAddr,
        /// Its state from now on.
        state: PathState,
    },
    /// New data take another path from now on: the primary one was changed, or failed, or works
    /// again.
    DataPathChanged {
        /// Its number.
        path: u8,
        /// The peer's address.
        address: SocketAddr,
    },
    /// The peer has another address (RFC 5061), over which nothing leaves until it has answered there.
    PeerAddressAdded {
        /// The number of its path.
        path: u8,
        /// The address.
        address: SocketAddr,
    },
    /// The peer has an address no more (RFC 5061): its paths are gone, and their numbers free.
    PeerAddressDeleted {
        /// The number of the first of them.
        path: u8,
        /// The address.
        address: SocketAddr,
    },
    /// The peer has answered a change of our addresses (RFC 5061).
    AddressChanged {
        /// The change.
        change: AddressChange,
        /// The cause for which it was refused, if it was: a code of RFC 5061 §4.3 or RFC 9260 §3.3.10.
        refused: Option<u16>,
    },
    /// The peer reported an error (COMMUNICATION ERROR): its cause code of RFC 9260 §3.3.10.
    PeerError(u16),
    /// Numbers of unread events: reported by a driver that keeps a limited number of them for
    /// the application, never by an endpoint.
    Missed(Missed),
    /// The last event. Messages that had arrived can still be received; after the last one, or
    /// with the next call of `poll_event` without one, the id is invalid.
    Closed(CloseReason),
}

/// Events that found no room where a driver keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missed {
    /// Events, failed messages included.
    pub events: u64,
    /// Messages that failed.
    pub messages_failed: u64,
    /// Their payload bytes.
    pub failed_bytes: u64,
}

/// A change of our addresses, as the peer is asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressChange {
    /// We have this address, too; unspecified: the one that the packet came from.
    Added(IpAddr),
    /// We have it no more; unspecified: all but the one that the packet came from.
    Deleted(IpAddr),
    /// The peer is to send there.
    Preferred(IpAddr),
}

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailReason {
    /// Its lifetime was over.
    Expired,
    /// It reached its limit of retransmissions.
    RetransmissionLimit,
    /// The peer takes fewer streams than were asked for.
    NoSuchStream,
    /// The association ended, or the peer restarted, before it was acknowledged.
    AssociationEnded,
}

impl fmt::Display for FailReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its lifetime was over",
            Self::RetransmissionLimit => "it reached its limit of retransmissions",
            Self::NoSuchStream => "the peer takes fewer streams",
            Self::AssociationEnded => "the association ended before it was acknowledged",
        })
    }
}

/// Why an association ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Gracefully, with everything delivered.
    Shutdown,
    /// By our own abort, or because of what the peer did wrong.
    Aborted {
        /// The reason given by the application, or the violation by the peer.
        reason: Bytes,
    },
    /// By an ABORT of the peer.
    AbortedByPeer {
        /// The first cause code in it (RFC 9260 §3.3.10); 0 if it had none.
        cause: u16,
        /// The peer's words (RFC 9260 §3.3.10.12, §3.3.10.13).
        reason: Bytes,
    },
    /// The peer did not answer (COMMUNICATION LOST). Also reported when everything was delivered and
    /// acknowledged but the last packet of the shutdown never arrived (RFC 9260 §9.2).
    Unreachable,
    /// It could not be set up: the peer never answered.
    ConnectTimedOut,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("the association has ended"),
            Self::Aborted { reason } => {
                // Our own words, unlike those of a peer.
                match std::str::from_utf8(reason) {
                    Ok(text) if !text.contains(char::is_control) => {
                        write!(f, "the association was aborted: {text}")
                    }
                    _ => write!(f, "the association was aborted: {}", reason.escape_ascii()),
                }
            }
            Self::AbortedByPeer { cause, reason } if reason.is_empty() => {
                write!(f, "the peer aborted the association (cause {cause})")
            }
            Self::AbortedByPeer { reason, .. } => {
                write!(f, "the peer aborted the association: {}", reason.escape_ascii())
            }
            Self::Unreachable => f.write_str(
                "the peer does not answer any more: check that it is running and the network",
            ),
            Self::ConnectTimedOut => f.write_str("the peer did not answer"),
        }
    }
}
