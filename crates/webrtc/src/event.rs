//! Events of a connection for its application.

use crate::channel::{ChannelConfig, ChannelId};
use crate::{CloseReason, Message};

/// An event of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The connection is established: messages can be sent.
    Connected,
    /// An ICE restart has found a pair of addresses, which data uses from now on.
    IceRestarted,
    /// A channel is open: the peer has opened it, or has acknowledged ours.
    ChannelOpened {
        /// The channel.
        channel: ChannelId,
        /// The properties of the channel.
        config: ChannelConfig,
        /// Whether the peer has opened it.
        is_incoming: bool,
    },
    /// A message of the peer.
    Message {
        /// The channel.
        channel: ChannelId,
        /// The message.
        message: Message,
    },
    /// The buffered amount of a channel has fallen to its threshold.
    BufferedAmountLow(ChannelId),
    /// The send buffer has room again after [`TrySendError::Full`](crate::TrySendError::Full).
    Writable,
    /// Messages sent from now on do not meet their [deadline](ChannelConfig::deadline) with the requested probability:
    /// it is shorter than the path's delay, or would need more copies than the budget has.
    Infeasible {
        /// How many of a million messages can arrive in time at the present loss rate.
        achievable_ppm: u32,
    },
    /// A channel was closed, by either side; its id is invalid.
    ChannelClosed(ChannelId),
    /// The connection has ended; this is its last event.
    Closed(CloseReason),
}
