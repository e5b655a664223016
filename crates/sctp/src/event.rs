//! Events of an endpoint for its application (RFC 9260 §11.2).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use rexmit_recovery::PathState;

use crate::{MessageId, OutboundMessage};

/// An event of an association. An async driver, such as the crate `rexmit`, handles
/// [`Connected`](Self::Connected), [`Readable`](Self::Readable) and [`Writable`](Self::Writable) itself: its
/// applications do not see them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The association is established (COMMUNICATION UP).
    Connected {
        /// Whether the peer initiated the association.
        incoming: bool,
        /// The peer's address and encapsulation port.
        peer: SocketAddr,
        /// The number of outgoing streams; they are numbered from 0.
        outbound_streams: u16,
        /// The number of incoming streams.
        inbound_streams: u16,
    },
    /// [`Endpoint::receive`](crate::Endpoint::receive) has a message (DATA ARRIVE). Reported once until all
    /// messages were received.
    Readable,
    /// The send buffer has room again after [`SendError::BufferFull`](crate::SendError::BufferFull).
    Writable,
    /// The last chunk of the message was sent for the first time. Only if `report_sent`.
    MessageSent(MessageId),
    /// Every chunk of the message is acknowledged. Only if `report_acknowledged`.
    MessageAcknowledged(MessageId),
    /// The message failed: it will not be delivered, or it is unknown whether it was (SEND FAILURE).
    MessageFailed {
        /// The message.
        id: MessageId,
        /// Why the message failed.
        reason: FailReason,
        /// Whether a part of it was sent.
        was_begun: bool,
        /// The message as given to [`Endpoint::send`](crate::Endpoint::send).
        message: OutboundMessage,
    },
    /// Messages sent from now on do not meet their deadline with the requested probability: the deadline is shorter
    /// than the path's delay, or would need more copies than the budget has. They are sent with the best probability
    /// possible. Reported again only after the deadline could be met for a while.
    Infeasible {
        /// How many of a million messages can arrive in time at the present loss rate.
        achievable_ppm: u32,
    },
    /// The peer has begun to shut down: it accepts no more messages. Those sent before are still delivered.
    PeerShutdown,
    /// The peer has restarted: unacknowledged messages have failed, and streams begin again at 0 (RESTART).
    PeerRestarted,
    /// Outgoing streams were reset on our request (empty: all), or the peer refused.
    StreamsReset {
        /// The streams.
        streams: Vec<u16>,
        /// Whether the peer performed it.
        performed: bool,
    },
    /// A message of the peer was dropped, although it was acknowledged: it is larger than
    /// [`max_message_bytes`](crate::AssociationConfig::max_message_bytes), or it filled the receive buffer
    /// together with other incomplete messages.
    MessageDropped {
        /// The incoming stream.
        stream: u16,
        /// The payload protocol identifier.
        ppid: u32,
        /// Whether the message was sent outside the order of its stream.
        unordered: bool,
    },
    /// The peer has reset its outgoing streams, our incoming ones (empty: all).
    PeerResetStreams(Vec<u16>),
    /// The state of a path has changed (NETWORK STATUS CHANGE).
    PathStatus {
        /// The number of the path, its index in
        /// [`AssociationStatistics::paths`](crate::AssociationStatistics::paths).
        path: u8,
        /// The peer's address.
        address: SocketAddr,
        /// The new state.
        state: PathState,
    },
    /// New data is sent over another path from now on, because the primary path was changed, has failed, or
    /// works again.
    DataPathChanged {
        /// The number of the path.
        path: u8,
        /// The peer's address.
        address: SocketAddr,
    },
    /// The peer has added an address (RFC 5061). Data is sent there once it has answered a HEARTBEAT.
    PeerAddressAdded {
        /// The number of its path.
        path: u8,
        /// The address.
        address: SocketAddr,
    },
    /// The peer has deleted an address (RFC 5061): its paths are removed, and their numbers may be used
    /// again.
    PeerAddressDeleted {
        /// The number of the first of the removed paths.
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
    /// Events were dropped because the application did not read them. Reported by a driver that stores a
    /// limited number of events, never by an endpoint.
    EventsDropped(DroppedEvents),
    /// The association has ended; this is its last event. Messages that had arrived can still be received.
    /// The id becomes invalid when the last one is received or, if there is none, with the next call of
    /// `poll_event`.
    Closed(CloseReason),
}

/// The number of events that a driver dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedEvents {
    /// Events dropped, including those of failed messages.
    pub events: u64,
    /// Dropped reports of failed messages.
    pub messages_failed: u64,
    /// The payload bytes of these messages.
    pub failed_bytes: u64,
}

/// A change of our addresses that the peer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressChange {
    /// The address was added. Unspecified: the address that the packet came from.
    Added(IpAddr),
    /// The address was deleted. Unspecified: all but the address that the packet came from.
    Deleted(IpAddr),
    /// The peer is asked to send to this address.
    Preferred(IpAddr),
}

/// Why a message failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailReason {
    /// The lifetime of the message was over.
    Expired,
    /// The message reached its limit of retransmissions.
    RetransmissionLimit,
    /// The peer allows fewer streams than were requested.
    NoSuchStream,
    /// The association ended, or the peer restarted, before the message was acknowledged.
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
    /// Gracefully: the peer has received everything, and so have we. A receiver drops messages that are larger than it takes
    /// ([`Event::MessageDropped`] there).
    Shutdown,
    /// Aborted by us: by the application, or because the peer violated the protocol.
    Aborted {
        /// The reason given by the application, or the violation by the peer.
        reason: Bytes,
    },
    /// Aborted by the peer.
    AbortedByPeer {
        /// The first cause code in the ABORT (RFC 9260 §3.3.10); 0 if it had none.
        cause: u16,
        /// The text in the cause (RFC 9260 §3.3.10.12, §3.3.10.13).
        reason: Bytes,
    },
    /// The peer did not answer (COMMUNICATION LOST). Also reported when everything was delivered and
    /// acknowledged but the last packet of the shutdown never arrived (RFC 9260 §9.2).
    Unreachable,
    /// The handshake timed out: the peer never answered.
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
            Self::AbortedByPeer { cause: 0, reason } if reason.is_empty() => f.write_str(
                "the peer aborted the association and gave no cause: it accepts none on this port, or was restarted",
            ),
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
