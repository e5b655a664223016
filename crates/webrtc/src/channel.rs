//! A data channel (RFC 8831 §6.4): its properties and state.

use rexmit_core::config;
use rexmit_sctp::recovery::Deadline;
use rexmit_sctp::{DEFAULT_PRIORITY, Reliability};

use crate::dcep::Open;

/// The id of a channel of a connection. It is never used again for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub(crate) u64);

config! {
    /// The properties of a channel, as `RTCDataChannelInit` in JavaScript.
    ///
    /// ```
    /// use rexmit_sctp::Reliability;
    /// use rexmit_webrtc::ChannelConfig;
    ///
    /// let snapshots = ChannelConfig::new("snapshots")
    ///     .ordered(false)
    ///     .reliability(Reliability::MaxRetransmissions(0));
    /// ```
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct ChannelConfig {
        /// The name of the channel; several may have the same.
        pub label: String,
        /// The name of the application's protocol in the channel. Default empty.
        pub protocol: String,
        /// Whether messages are delivered in the order in which they were sent. Default true.
        pub ordered: bool,
        /// How long delivery of a message is attempted: `maxRetransmits`, `maxPacketLifeTime`. Default
        /// without limit.
        pub reliability: Reliability,
        /// When a message that this side sends should arrive, and with which probability: copies of it are sent if that
        /// requires them, and a late message is still delivered. The peer does not learn it. Default that of the
        /// association, [`ThinConfig::deadline`](rexmit_sctp::recovery::ThinConfig::deadline), if any.
        pub deadline: Option<Deadline>,
        /// The priority (RFC 8831 §6.4): 128 is below normal, 256 normal, 512 high, 1024 extra high. While several
        /// channels have data, each sends bytes in proportion to its priority. The peer learns it of the side that opens the
        /// channel, and does the same. 0, which some peers send because they have none, counts as 256. Default 256.
        pub priority: u16,
        /// The stream number of a channel that both sides open without DCEP (`negotiated` and `id` in
        /// JavaScript): the same on both sides, and below the number of streams. Default `None`.
        pub negotiated: Option<u16>,
    }
}

impl ChannelConfig {
    /// An ordered, fully reliable channel.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            protocol: String::new(),
            ordered: true,
            reliability: Reliability::Full,
            deadline: None,
            priority: DEFAULT_PRIORITY,
            negotiated: None,
        }
    }

    pub(crate) fn to_open(&self) -> Open {
        Open {
            is_ordered: self.ordered,
            reliability: self.reliability,
            priority: self.priority,
            label: self.label.clone(),
            protocol: self.protocol.clone(),
        }
    }
}

impl From<Open> for ChannelConfig {
    fn from(open: Open) -> Self {
        Self {
            label: open.label,
            protocol: open.protocol,
            ordered: open.is_ordered,
            reliability: open.reliability,
            deadline: None,
            // Firefox sends 0, which is no priority.
            priority: if open.priority == 0 { DEFAULT_PRIORITY } else { open.priority },
            negotiated: None,
        }
    }
}

/// The progress of the reset of our stream, which closes our direction (RFC 8831 §6.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reset {
    /// The channel is not being closed.
    No,
    /// The reset is requested once everything was sent.
    Wanted,
    /// The stream reset was requested.
    UnderWay,
    Done,
}

/// One channel.
#[derive(Debug)]
pub(crate) struct Channel {
    pub(crate) id: ChannelId,
    pub(crate) config: ChannelConfig,
    /// Whether the channel was reported as open, because the peer knows it.
    pub(crate) is_open: bool,
    pub(crate) is_incoming: bool,
    /// Messages that were accepted and not sent, OPEN and ACK included.
    pub(crate) unsent: usize,
    /// Bytes of the messages that were accepted and not sent.
    pub(crate) buffered: usize,
    pub(crate) low_threshold: usize,
    pub(crate) outgoing: Reset,
    /// Whether the peer has reset its stream.
    pub(crate) is_incoming_reset: bool,
}

impl Channel {
    pub(crate) const fn new(id: ChannelId, config: ChannelConfig, is_incoming: bool) -> Self {
        Self {
            id,
            config,
            is_open: false,
            is_incoming,
            unsent: 0,
            buffered: 0,
            low_threshold: 0,
            outgoing: Reset::No,
            is_incoming_reset: false,
        }
    }

    /// Whether the application may use it.
    pub(crate) fn is_usable(&self) -> bool {
        self.outgoing == Reset::No
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.outgoing == Reset::Done && self.is_incoming_reset
    }

    /// Whether messages may be delivered out of order: not before the peer knows the channel (RFC 8832 §6).
    pub(crate) const fn may_be_unordered(&self) -> bool {
        !self.config.ordered && self.is_open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_without_a_priority_has_the_default_one() {
        for (announced, priority) in [(0, DEFAULT_PRIORITY), (1, 1), (512, 512)] {
            let open = Open { priority: announced, ..ChannelConfig::new("label").to_open() };
            assert_eq!(ChannelConfig::from(open).priority, priority);
        }
    }
}
