//! One outgoing stream of an association.

use bytes::Bytes;
use rexmit_sctp::recovery::ThinConfig;
use rexmit_sctp::{MessageId, OutboundMessage, PriorityError, ThinError};

use super::{Association, Delivery};
use crate::{SendError, TrySendError};

/// An outgoing stream: a sequence of messages whose order the peer keeps, independent of the
/// losses of other streams (RFC 9260 §6.5).
///
/// Cloning makes another handle of the same association.
#[derive(Clone, Debug)]
pub struct Stream {
    association: Association,
    number: u16,
}

impl Stream {
    pub(super) fn new(association: Association, number: u16) -> Self {
        Self { association, number }
    }

    /// The stream's number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// The association of the stream.
    #[must_use]
    pub const fn association(&self) -> &Association {
        &self.association
    }

    /// Singles out the stream: whether it is thin depends on its own packets in flight only, and `thin` are
    /// its mechanisms. With `None` it counts as part of the association again; see [`Association::set_thin`].
    ///
    /// # Errors
    /// If the association has ended, there is no such stream, too many were singled out, or a value is out of
    /// its range.
    pub fn set_thin(&self, thin: Option<ThinConfig>) -> Result<(), ThinError> {
        self.association.set_stream_thin(self.number, thin)
    }

    /// Sets the priority of the data that the stream sends from now on, initially
    /// [`DEFAULT_PRIORITY`](crate::DEFAULT_PRIORITY). With
    /// [`Scheduling::Priority`](crate::Scheduling::Priority) the stream with the higher value is sent first;
    /// with [`Scheduling::WeightedFairQueueing`](crate::Scheduling::WeightedFairQueueing) it is the weight.
    /// Other schedulers ignore it.
    ///
    /// # Errors
    /// If the association has ended, or there is no such stream.
    pub fn set_priority(&self, priority: u16) -> Result<(), PriorityError> {
        self.association.set_stream_priority(self.number, priority)
    }

    /// An ordered, reliable message for this stream, to be modified and sent with [`Association::send`].
    #[must_use]
    pub fn message(&self, payload: impl Into<Bytes>) -> OutboundMessage {
        OutboundMessage::new(self.number, payload)
    }

    /// Sends a message, ordered and reliably.
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send(&self, payload: impl Into<Bytes>) -> Result<MessageId, SendError> {
        self.association.send(self.message(payload)).await
    }

    /// Sends a message with the order and lifetime that `delivery` describes.
    ///
    /// ```
    /// # async fn example(association: rexmit::Association) -> Result<(), rexmit::SendError> {
    /// use rexmit::Delivery;
    /// use std::time::Duration;
    ///
    /// let delivery = Delivery::unordered().lifetime(Duration::from_millis(100));
    /// association.stream(1).send_with("x=1 y=2", delivery).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send_with(
        &self,
        payload: impl Into<Bytes>,
        delivery: Delivery,
    ) -> Result<MessageId, SendError> {
        self.association.send(delivery.message(self.number, payload)).await
    }

    /// Sends a message without waiting.
    ///
    /// # Errors
    /// As [`Association::try_send`].
    pub fn try_send(&self, payload: impl Into<Bytes>) -> Result<MessageId, TrySendError> {
        self.association.try_send(self.message(payload))
    }

    /// As [`send_with`](Self::send_with), without waiting.
    ///
    /// # Errors
    /// As [`Association::try_send`].
    pub fn try_send_with(
        &self,
        payload: impl Into<Bytes>,
        delivery: Delivery,
    ) -> Result<MessageId, TrySendError> {
        self.association.try_send(delivery.message(self.number, payload))
    }
}
