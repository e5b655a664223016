//! Measuring the round trip by HEARTBEAT when ACKs cannot (Petlund 2009 §8), also on paths without new data.

use std::time::Duration;

use rexmit_core::Instant;

/// HEARTBEATs for RTT samples, in addition to the periodic ones of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampling {
    is_due: bool,
    /// The nonce of the last such HEARTBEAT, until it is answered.
    awaited: Option<u64>,
    last_sent: Option<Instant>,
}

impl Sampling {
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    pub(super) const fn ask(&mut self) {
        self.is_due = true;
    }

    /// Whether the last such HEARTBEAT was sent less than `interval` ago.
    pub(super) fn is_too_soon(&self, now: Instant, interval: Duration) -> bool {
        self.last_sent.is_some_and(|last| now - last < interval)
    }

    pub(super) const fn on_sent(&mut self, nonce: u64, now: Instant) {
        *self = Self { is_due: false, awaited: Some(nonce), last_sent: Some(now) };
    }

    /// Whether the last one was not answered; it does not count any more.
    pub(super) fn take_unanswered(&mut self) -> bool {
        self.awaited.take().is_some()
    }

    /// Whether `nonce` is that of the last such HEARTBEAT.
    pub(super) fn on_answered(&mut self, nonce: u64) -> bool {
        self.awaited.take_if(|awaited| *awaited == nonce).is_some()
    }
}
