//! The record of one message.

use std::time::Duration;

use rexmit_core::Instant;
use serde::{Deserialize, Serialize};

/// What became of one message. The profile it ran under is that of its [`Run`](super::Run).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageRecord {
    /// The association, by the number under which the sender's trace knows it.
    pub connection: u32,
    /// The stream in it.
    pub stream: u16,
    /// The message's number in the association, as the sender counts its messages.
    pub sequence: u64,
    /// Payload, in bytes.
    pub payload_bytes: u32,
    /// When the application meant to send it.
    pub intended: Instant,
    /// When the receiving application had it, on the same clock; `None` if it never did.
    pub delivered: Option<Instant>,
    /// How often it was sent, the first time included; `None` if the run does not know.
    pub transmissions: Option<u32>,
}

impl MessageRecord {
    /// The latency: from the intended sending to the delivery.
    #[must_use]
    pub fn latency(&self) -> Option<Duration> {
        self.delivered.map(|delivered| delivered - self.intended)
    }
}
