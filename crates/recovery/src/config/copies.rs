//! The settings of redundant copies.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};
use std::time::Duration;

use rexmit_core::config;
use rexmit_deadline::Budget;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

config! {
    const
    /// Which units in flight a packet with new data bundles, as copies.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct BundlingConfig {
        /// The units of up to this many packets in flight before it (default 1).
        pub packets: NonZeroU8,
        /// The most bytes of units in a packet that bundles copies, new units included; `None`, the default, is
        /// the room of the packet.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub bytes: Option<NonZeroU32>,
    }
}

impl BundlingConfig {
    /// The units of the packet before (RDB).
    pub const ONE: Self = Self { packets: NonZeroU8::MIN, bytes: None };

    /// All units in flight that fit, of at most 255 packets.
    pub const ALL: Self = Self { packets: NonZeroU8::MAX, bytes: None };
}

impl Default for BundlingConfig {
    fn default() -> Self {
        Self::ONE
    }
}

config! {
    const
    /// The copies that follow a retransmission.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct RetransmissionCopies {
        /// The number of copies (default 1).
        pub copies: NonZeroU8,
        /// The time between a retransmission and its copy, and between two copies, so that a full queue does not
        /// drop them together (default 1 ms).
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::duration"))]
        pub interval: Duration,
    }
}

impl RetransmissionCopies {
    /// One copy, after a millisecond.
    pub const ONE: Self = Self { copies: NonZeroU8::MIN, interval: Duration::from_millis(1) };
}

impl Default for RetransmissionCopies {
    fn default() -> Self {
        Self::ONE
    }
}

config! {
    const
    /// The delayed copies of a thin stream. Off by default.
    ///
    /// A copy is not sent if the unit was acknowledged meanwhile, if the window has no room, or if the budget
    /// (smaller when the path has a queue) is spent.
    ///
    /// Copies do not count against a limit of retransmissions (RFC 7496 §3.1), and data that may not be
    /// retransmitted is not copied.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct DelayedCopyConfig {
        /// Copies after each retransmission, except those of T3-rtx; `None` is off. With one copy, the loss of a
        /// retransmission costs another round trip only if the copy is lost, too. Bundled copies that were sent since
        /// the original count as delayed copies: when the probe timer expires, only those still missing are sent.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::table_or_off"))]
        pub of_retransmissions: Option<RetransmissionCopies>,
        /// A unit is copied once if no new unit follows within this time, so that the last message of a burst does not wait for
        /// the probe timer; `None` is off. On a stream whose messages are farther apart, every message is sent twice.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::optional_duration"))]
        pub of_last_after: Option<Duration>,
    }
}

impl DelayedCopyConfig {
    /// No copies.
    pub const OFF: Self = Self { of_retransmissions: None, of_last_after: None };

    /// Whether any delayed copies are sent.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.of_retransmissions.is_some() || self.of_last_after.is_some()
    }
}

config! {
    const
    /// The budget for the redundant copies of a stream, measured over the last some hundred packets. What was
    /// spent is counted for the association as a whole, also where streams have budgets of their own.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(Serialize, Deserialize), serde(default, deny_unknown_fields))]
    pub struct CopyBudget {
        /// Packets that carry nothing but copies, in percent of those with new data; `None` is no limit.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub packets_percent: Option<NonZeroU16>,
        /// Bytes of units copied, in percent of those of new units; `None` is no limit. The last sixteenth is for
        /// data that was not acknowledged within a round trip.
        #[cfg_attr(feature = "serde", serde(with = "rexmit_core::words::or_off"))]
        pub bytes_percent: Option<NonZeroU16>,
    }
}

impl CopyBudget {
    /// No limit.
    pub const UNLIMITED: Self = Self { packets_percent: None, bytes_percent: None };

    /// The budget as shares instead of percent.
    pub(crate) fn shares(self) -> Budget {
        let share = |percent: Option<NonZeroU16>| {
            percent.map_or(f64::INFINITY, |percent| f64::from(percent.get()) / 100.0)
        };
        Budget { packets: share(self.packets_percent), bytes: share(self.bytes_percent) }
    }

    /// A budget of `packets` and `bytes` in percent; `None` is no limit.
    #[must_use]
    pub const fn percent(packets: Option<NonZeroU16>, bytes: Option<NonZeroU16>) -> Self {
        Self { packets_percent: packets, bytes_percent: bytes }
    }
}
