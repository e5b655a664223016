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

    /// The association that it is a stream of.
    #[must_use]
    pub const fn association(&self) -> &Association {
        &self.association
    }

    /// Singles the stream out: while it is thin, whatever the other streams send, this is done about
    /// its losses. `None` lets it count as the association again; see [`Association::set_thin`].
    ///
    /// # Errors
    /// When the association is gone, there is no such stream, too many were singled out, or the
    /// values make no sense.
    pub fn set_thin(&self, thin: Option<ThinConfig>) -> Result<(), ThinError> {
        self.association.set_stream_thin(self.number, thin)
    }

    /// Sets the priority of what the stream sends from now on: the higher goes first with
    /// [`Scheduling::Priority`](crate::Scheduling::Priority), and it is the weight with
    /// [`Scheduling::WeightedFairQueueing`](crate::Scheduling::WeightedFairQueueing). A stream begins with
    /// [`DEFAULT_PRIORITY`](crate::DEFAULT_PRIORITY).
    ///
    /// # Errors
    /// When the association is gone, or there is no such stream.
    pub fn set_priority(&self, priority: u16) -> Result<(), PriorityError> {
        self.association.set_stream_priority(self.number, priority)
    }

    /// A message of this stream, to be changed and sent with [`Association::send`].
    #[must_use]
    pub fn message(&self, payload: impl Into<Bytes>) -> OutboundMessage {
        OutboundMessage::new(self.number, payload)
    }

    /// Sends a message after those before it, reliably.
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send(&self, payload: impl Into<Bytes>) -> Result<MessageId, SendError> {
        self.association.send(self.message(payload)).await
    }

    /// Sends a message whose [`Delivery`] says whether it is ordered, and when it is given up.
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
