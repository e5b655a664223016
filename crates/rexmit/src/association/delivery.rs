//! Order and lifetime of a message.

use std::time::Duration;

use bytes::Bytes;
use rexmit_sctp::recovery::Deadline;
use rexmit_sctp::{OutboundMessage, Reliability};

/// How a message is delivered: in order or not, and until when. The default is in the order of its stream, and
/// until the association ends.
///
/// ```
/// use rexmit::Delivery;
/// use std::time::Duration;
///
/// // A player's position: a later one replaces it.
/// let position = Delivery::unordered().lifetime(Duration::from_millis(100));
/// assert!(!position.ordered);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Delivery {
    /// Whether the peer delivers the message after those sent before it on its stream, or as soon as it is
    /// complete (RFC 9260 §6.6). Default true.
    pub ordered: bool,
    /// How long delivery of the message is attempted. Default [`Reliability::Full`]: until the association
    /// ends.
    pub reliability: Reliability,
    /// When the message should arrive, and with which probability. Default: that of its stream or association, if any.
    pub deadline: Option<Deadline>,
    /// Payload protocol identifier, which the peer's application receives with the message (RFC 9260 §3.3.1).
    /// Default 0: not specified.
    pub ppid: u32,
    /// Whether the peer is asked to acknowledge without delay (I bit, RFC 7053). Default false.
    pub immediate: bool,
}

impl Default for Delivery {
    fn default() -> Self {
        Self::ordered()
    }
}

impl Delivery {
    /// Ordered delivery: after the messages sent before it on its stream.
    #[must_use]
    pub const fn ordered() -> Self {
        Self {
            ordered: true,
            reliability: Reliability::Full,
            deadline: None,
            ppid: 0,
            immediate: false,
        }
    }

    /// Unordered delivery: as soon as the message is complete at the peer.
    #[must_use]
    pub const fn unordered() -> Self {
        Self { ordered: false, ..Self::ordered() }
    }

    /// Abandons the message once `lifetime` has passed since it was accepted (RFC 3758 §4.1), which
    /// [`Event::MessageFailed`](crate::Event::MessageFailed) reports. Replaces
    /// [`max_retransmissions`](Self::max_retransmissions).
    #[must_use]
    pub const fn lifetime(self, lifetime: Duration) -> Self {
        Self { reliability: Reliability::Timed(lifetime), ..self }
    }

    /// Sets a deadline: the message should arrive `within` this time with this `probability`. If that requires copies
    /// of it, they are sent, within the budget of the profile (`thin.copy_budget`, which has no limit in
    /// `interactive`). A late message is still delivered, unless it has a [`lifetime`](Self::lifetime), too.
    /// [`Event::Infeasible`](crate::Event::Infeasible) reports that deadlines cannot be met with this probability.
    ///
    /// ```
    /// use rexmit::Delivery;
    /// use std::time::Duration;
    ///
    /// let input = Delivery::unordered().within(Duration::from_millis(100), 0.999);
    /// assert_eq!(input.deadline.map(|deadline| deadline.probability()), Some(0.999));
    /// ```
    #[must_use]
    pub fn within(self, within: Duration, probability: f64) -> Self {
        Self { deadline: Some(Deadline::new(within, probability)), ..self }
    }

    /// Abandons the message when one of its chunks would have to be retransmitted more than `most` times (RFC
    /// 7496 §3.1); 0 sends every chunk once. Replaces [`lifetime`](Self::lifetime).
    #[must_use]
    pub const fn max_retransmissions(self, most: u16) -> Self {
        Self { reliability: Reliability::MaxRetransmissions(most), ..self }
    }

    /// Sets [`ppid`](Self#structfield.ppid).
    #[must_use]
    pub const fn ppid(self, ppid: u32) -> Self {
        Self { ppid, ..self }
    }

    /// Sets [`immediate`](Self#structfield.immediate).
    #[must_use]
    pub const fn immediate(self, immediate: bool) -> Self {
        Self { immediate, ..self }
    }

    /// A message for `stream` with this delivery.
    pub(super) fn message(self, stream: u16, payload: impl Into<Bytes>) -> OutboundMessage {
        OutboundMessage::new(stream, payload)
            .unordered(!self.ordered)
            .reliability(self.reliability)
            .deadline(self.deadline)
            .ppid(self.ppid)
            .immediate(self.immediate)
    }
}
