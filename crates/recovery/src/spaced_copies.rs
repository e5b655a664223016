//! Copies that leave on purpose in packets of their own, some time after what they repeat.

use std::time::Duration;

use rexmit_core::words;
use serde::{Deserialize, Serialize};

/// What a thin stream sends once more though nothing says that it was lost. The default is nothing.
///
/// A copy does not leave if what it repeats is acknowledged by then, if the window has no room, or if
/// the budget is spent, which is less beside a queue.
///
/// Where retransmissions are limited (RFC 7496 §3.1) copies are not counted, and what may not be sent
/// again has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpacedCopies {
    /// Copies that follow each unit sent again, unless T3-rtx did it. One makes a second loss cost a
    /// round trip only if a third follows, for as many packets more as there are losses. Copies beside new
    /// data that left since the original did count: when its answer is overdue, only what they lack of
    /// the retransmission and its copies leaves.
    pub of_retransmissions: u8,
    /// The time between a retransmission and its copy, and between two copies: what is lost at once,
    /// by a full queue, is not lost together.
    #[serde(with = "words::duration")]
    pub interval: Duration,
    /// A unit that no new one follows for so long has one copy: the last of a series need not wait for
    /// the timer. On a stream whose messages are farther apart, every message is sent twice.
    #[serde(with = "words::optional_duration")]
    pub of_last_after: Option<Duration>,
}

impl SpacedCopies {
    /// No copies.
    pub const OFF: Self =
        Self { of_retransmissions: 0, interval: Duration::from_millis(1), of_last_after: None };

    /// Whether there are any.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.of_retransmissions > 0 || self.of_last_after.is_some()
    }
}

impl Default for SpacedCopies {
    fn default() -> Self {
        Self::OFF
    }
}
