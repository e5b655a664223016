//! Events of a connection for its application.

use crate::channel::{ChannelConfig, ChannelId};
use crate::{CloseReason, Message};

/// What happened to a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Established: messages of channels can be sent.
    Connected,
    /// A channel is open: the peer has opened it, or has acknowledged ours.
    ChannelOpened {
        /// The channel.
        channel: ChannelId,
        /// What it is like.
        config: ChannelConfig,
        /// Whether the peer has opened it.
        is_incoming: bool,
    },
    /// A message of the peer's.
    Message {
        /// The channel.
        channel: ChannelId,
        /// The message.
        message: Message,
    },
    /// The bytes that a channel has accepted and not sent have fallen to its threshold.
    BufferedAmountLow(ChannelId),
    /// There is room again after [`SendError::BufferFull`](crate::SendError::BufferFull).
    Writable,
    /// A channel is closed, by either side; its id is invalid.
    ChannelClosed(ChannelId),
    /// The last event: the connection has ended.
    Closed(CloseReason),
}
