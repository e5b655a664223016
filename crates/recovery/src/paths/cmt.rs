//! Concurrent multipath transfer: new data over all paths at once (Iyengar, Amer and Stewart 2006).

use rexmit_core::config;
use serde::{Deserialize, Serialize};

use crate::Coupling;

config! {
    const
    /// The mechanisms for using all paths at once. Off by default.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CmtConfig {
        /// New data leave over every active path, as the window of each allows.
        pub all_paths: bool,
        /// SFR, split fast retransmit: a unit is reported missing only by the acknowledgement of a later
        /// one that was sent over the same path, and each path has a fast recovery of its own.
        pub split_fast_retransmit: bool,
        /// CUC, cwnd update: the window of a path grows when the earliest unit outstanding on it is
        /// acknowledged, those retransmitted and the others looked at apart (CUCv2). Otherwise it grows only
        /// when the cumulative point of the association advances (RFC 4960 §7.2.1).
        pub cwnd_update: bool,
        /// DAC, delayed acknowledgements: as a receiver, a gap does not hurry an acknowledgement, and it
        /// says how many packets it answers; as a sender, so many reports count, if all that is newly
        /// acknowledged was sent over one path and after what is missing.
        pub delayed_ack: bool,
        /// Receive buffer splitting: what is under way over a path is no more than its part of the peer's
        /// window, so that a slow path with a long queue does not take it all (Dreibholz, Becke, Rathgeb
        /// and Tüxen 2010). What has arrived and waits for others is of no path.
        pub split_buffer: bool,
        /// Blocking estimation: nothing new leaves over a slower path that would keep faster ones waiting for
        /// the peer's window, since what they send in the meantime cannot be delivered before it (BLEST:
        /// Ferlin, Alay, Mehani and Boreli 2016).
        pub avoid_blocking: bool,
        /// The coupling of the windows of the paths. Takes [`all_paths`](Self::all_paths)
        /// and the windows of RFC 9260.
        pub coupling: Coupling,
    }
}

impl CmtConfig {
    /// All paths at once, with the three algorithms that this needs.
    pub const ON: Self = Self {
        all_paths: true,
        split_fast_retransmit: true,
        cwnd_update: true,
        delayed_ack: true,
        split_buffer: false,
        avoid_blocking: false,
        coupling: Coupling::None,
    };
}
