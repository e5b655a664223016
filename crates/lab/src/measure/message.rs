//! The record of one message.

use std::time::Duration;

use rexmit_core::Instant;
use serde::{Deserialize, Serialize};

/// The record of one message. Its profile is that of its [`Run`](super::Run).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The association's number in the sender's trace.
    pub connection: u32,
    /// The stream of the message.
    pub stream: u16,
    /// The message's number in the association, counted by the sender.
    pub sequence: u64,
    /// Payload, in bytes.
    pub payload_bytes: u32,
    /// When the application intended to send it.
    pub intended: Instant,
    /// When it was delivered to the receiving application, on the same clock; `None` if it was not.
    pub delivered: Option<Instant>,
    /// Number of transmissions, including the first; `None` if unknown.
    pub transmissions: Option<u32>,
}

impl MessageRecord {
    /// The latency: from the intended sending to the delivery.
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        self.delivered.map(|delivered| delivered - self.intended)
    }
}
