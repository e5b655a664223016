//! What others would use instead, in the very same simulated network.
//!
//! | rival | crate | messages | profiles |
//! |---|---|---|---|
//! | `dcsctp` | dcsctp 0.1.16, the SCTP of WebRTC's data channels | ordered, unordered | `default`, `tuned` |
//! | `sctp-proto` | sctp-proto 0.10.8, the SCTP of str0m and webrtc-rs | ordered, unordered | `default` |
//! | `kcp` | kcp 0.6.0 | ordered | `turbo`, `tuned` |
//! | `quinn` | quinn-proto 0.11.19, QUIC | ordered: one stream; unordered: a stream each | `default`, `tuned` |
//!
//! "Tuned" means the lowest latency that public options allow without retransmitting data that is not
//! lost on a path of 100 ms there and back:
//!
//! | rival | profile | options, at both ends |
//! |---|---|---|
//! | `dcsctp` | `tuned` | `rto_min` 120 ms, which also bounds the back-off (`max_timer_backoff_duration`), without limits for retransmissions; `delayed_ack_max_timeout` and `min_rtt_variance` 10 ms |
//! | `kcp` | `turbo` | `nodelay(1, 10, 2, 1)`, the fast mode of its users, and a window of 128 |
//! | | `tuned` | the same with `nodelay(1, 10, 1, 1)`, and flushed whenever a segment is due, not every 10 ms; a lower minimum of its RTO changes nothing here |
//! | `quinn` | `tuned` | `ack_frequency_config`: every packet acknowledged at once, at the latest after 1 ms, by which its probe timeout is earlier; `time_threshold` 1 |
//!
//! QUIC may have 4096 streams at once, so that hardly a packet leaves only to allow more.
//!
//! They are unmodified and each stands behind an adapter that feeds it virtual time. KCP is flushed
//! after everything that is sent or arrives, which its own interval would otherwise delay. QUIC is
//! without TLS: keys that change nothing, but tags as long as those of AES-GCM.
//!
//! Runs repeat exactly, with one exception: sctp-proto draws its tags and its first TSN from the
//! operating system, and begins its first timeout by the clock of the machine, which moves the
//! repetition of a lost INIT by microseconds. Messages wait for the connection, and so their times
//! do not change.
//!
//! The crates are only there with the feature `rivals`, which the product is built without. Without
//! it the words of scenarios are understood all the same, and a run with them says what to build.

#[cfg(not(feature = "rivals"))]
mod absent;
#[cfg(feature = "rivals")]
mod dcsctp;
#[cfg(feature = "rivals")]
mod endpoint;
#[cfg(feature = "rivals")]
mod kcp;
#[cfg(feature = "rivals")]
mod quinn;
#[cfg(feature = "rivals")]
mod sctp_proto;
#[cfg(feature = "rivals")]
mod stack;

#[cfg(not(feature = "rivals"))]
pub use absent::RivalEndpoint;
#[cfg(feature = "rivals")]
pub use endpoint::RivalEndpoint;

/// Whether this program has them.
pub const ARE_BUILT: bool = cfg!(feature = "rivals");

/// What to do where they are not.
pub const HOW_TO_BUILD: &str = "this program was built without the rivals: `cargo build --release -p rexmit-cli --features rivals`";

/// A rival and its settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rival {
    /// dcsctp.
    DcSctp {
        /// Whether it has the profile `tuned` instead of `default`.
        is_tuned: bool,
    },
    /// sctp-proto.
    SctpProto,
    /// KCP.
    Kcp {
        /// Whether it has the profile `tuned` instead of `turbo`.
        is_tuned: bool,
    },
    /// quinn-proto.
    Quinn {
        /// Whether it has the profile `tuned` instead of `default`.
        is_tuned: bool,
    },
}

impl Rival {
    /// The profiles that there are, that by default first.
    #[must_use]
    pub const fn profiles(self) -> &'static [&'static str] {
        match self {
            Self::DcSctp { .. } | Self::Quinn { .. } => &["default", "tuned"],
            Self::SctpProto => &["default"],
            Self::Kcp { .. } => &["turbo", "tuned"],
        }
    }

    /// The same with another profile, if there is one of that name.
    #[must_use]
    pub fn with_profile(self, name: &str) -> Option<Self> {
        let is_tuned = self.profiles().iter().position(|known| *known == name)? > 0;
        Some(match self {
            Self::DcSctp { .. } => Self::DcSctp { is_tuned },
            Self::SctpProto => self,
            Self::Kcp { .. } => Self::Kcp { is_tuned },
            Self::Quinn { .. } => Self::Quinn { is_tuned },
        })
    }

    /// Whether it can deliver messages that do not wait for earlier ones.
    #[must_use]
    pub const fn has_unordered(self) -> bool {
        !matches!(self, Self::Kcp { .. })
    }

    /// Whether its packets are those of UDP; else they are those of SCTP over IP.
    #[must_use]
    pub const fn is_over_udp(self) -> bool {
        matches!(self, Self::Kcp { .. } | Self::Quinn { .. })
    }
}

/// Which of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It makes the connection.
    Connects,
    /// It waits for one.
    Accepts,
}
