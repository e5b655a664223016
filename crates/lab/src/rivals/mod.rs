//! Other transport implementations, in the same simulated network as rexmit's.
//!
//! | rival | crate | messages | profiles |
//! |---|---|---|---|
//! | `dcsctp` | dcsctp 0.1.16, the SCTP of WebRTC's data channels | ordered, unordered | `default`, `tuned`, `interleaved` |
//! | `sctp-proto` | sctp-proto 0.10.8, the SCTP of str0m and webrtc-rs | ordered, unordered | `default` |
//! | `kcp` | kcp 0.6.0 | ordered | `turbo`, `tuned` |
//! | `quinn` | quinn-proto 0.11.19, QUIC | ordered: one stream; unordered: a stream each | `default`, `tuned`, `bbr` |
//!
//! "Tuned" means the lowest latency that public options allow without spurious retransmissions on a
//! path with a round-trip time of 100 ms:
//!
//! | rival | profile | options, at both ends |
//! |---|---|---|
//! | `dcsctp` | `tuned` | `rto_min` 120 ms, which also bounds the back-off (`max_timer_backoff_duration`), without limits for retransmissions; `delayed_ack_max_timeout` and `min_rtt_variance` 10 ms |
//! | | `interleaved` | I-DATA (`enable_message_interleaving`), which browsers leave off |
//! | `kcp` | `turbo` | `nodelay(1, 10, 2, 1)`, the fast mode of its users, and a window of 128 |
//! | | `tuned` | the same with `nodelay(1, 10, 1, 1)`, and flushed whenever a segment is due, not every 10 ms; a lower minimum of its RTO changes nothing here |
//! | `quinn` | `tuned` | `ack_frequency_config`: every packet acknowledged at once, at the latest after 1 ms, by which its probe timeout is earlier; `time_threshold` 1 |
//! | | `bbr` | its BBR (`BbrConfig`) instead of CUBIC |
//!
//! QUIC may have 4096 concurrent streams, so that few packets are sent only to raise the stream
//! limit, and windows of 4 MiB per stream and 16 MiB per connection, so that they do not limit a transfer.
//!
//! For messages during a transfer ([`RivalWithTransfer`]) each uses the priorities that its interface offers:
//!
//! | rival | the transfer |
//! |---|---|
//! | `dcsctp` | messages of 16 KiB on another stream, that of the messages with priority 1024 to 256; 256 KiB of it wait to be sent |
//! | `kcp` | messages of a segment behind the others in the one queue there is, of which it fills a window at most |
//! | `quinn` | another stream, with a lower priority (`set_priority`); path MTU discovery up to 1500 bytes, as with `bulk` and `mixed` |
//! | `sctp-proto` | none: its streams have no priorities |
//!
//! They are unmodified; an adapter for each provides virtual time. KCP is flushed after every
//! message sent and packet received, which would otherwise wait for its update interval. QUIC runs
//! without TLS: its keys do not change the data, but its tags are as long as those of AES-GCM.
//!
//! Runs are reproducible, with one exception: sctp-proto gets its tags and its initial TSN from the
//! operating system's random source, and starts its first timeout by the machine's clock, which
//! shifts the retransmission of a lost INIT by microseconds. Message times count from the
//! connection's establishment, so they do not change.
//!
//! The crates are included only with the feature `rivals`, which is off in releases. Without it,
//! scenarios that use them are still parsed, and running one returns an error with build
//! instructions.

#[cfg(not(feature = "rivals"))]
mod absent;
mod beside;
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
pub use beside::RivalWithTransfer;
#[cfg(feature = "rivals")]
pub use endpoint::RivalEndpoint;

/// Whether this program includes the other implementations.
pub const ARE_BUILT: bool = cfg!(feature = "rivals");

/// Build instructions, for error messages.
pub const HOW_TO_BUILD: &str = "this program was built without the rivals: `cargo build --release -p rexmit-cli \
    --features rivals` (Python: `--config-settings build-args=\"--features rivals\"` of pip)";

/// Settings of dcsctp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DcSctpProfile {
    /// `default`.
    Default,
    /// `tuned`.
    Tuned,
    /// `interleaved`.
    Interleaved,
}

/// Settings of quinn-proto.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum QuinnProfile {
    /// `default`.
    Default,
    /// `tuned`.
    Tuned,
    /// `bbr`.
    Bbr,
}

/// Another implementation and its settings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rival {
    /// dcsctp.
    DcSctp(DcSctpProfile),
    /// sctp-proto.
    SctpProto,
    /// KCP.
    Kcp {
        /// Whether it has the profile `tuned` instead of `turbo`.
        is_tuned: bool,
    },
    /// quinn-proto.
    Quinn(QuinnProfile),
}

impl Rival {
    /// The profiles of this implementation, with the default first.
    #[must_use]
    pub const fn profiles(self) -> &'static [&'static str] {
        match self {
            Self::DcSctp(_) => &["default", "tuned", "interleaved"],
            Self::SctpProto => &["default"],
            Self::Kcp { .. } => &["turbo", "tuned"],
            Self::Quinn(_) => &["default", "tuned", "bbr"],
        }
    }

    /// The same implementation with the profile `name`, if there is one.
    #[must_use]
    pub fn with_profile(self, name: &str) -> Option<Self> {
        Some(match (self, name) {
            (Self::DcSctp(_), "default") => Self::DcSctp(DcSctpProfile::Default),
            (Self::DcSctp(_), "tuned") => Self::DcSctp(DcSctpProfile::Tuned),
            (Self::DcSctp(_), "interleaved") => Self::DcSctp(DcSctpProfile::Interleaved),
            (Self::SctpProto, "default") => self,
            (Self::Kcp { .. }, "turbo") => Self::Kcp { is_tuned: false },
            (Self::Kcp { .. }, "tuned") => Self::Kcp { is_tuned: true },
            (Self::Quinn(_), "default") => Self::Quinn(QuinnProfile::Default),
            (Self::Quinn(_), "tuned") => Self::Quinn(QuinnProfile::Tuned),
            (Self::Quinn(_), "bbr") => Self::Quinn(QuinnProfile::Bbr),
            _ => return None,
        })
    }

    /// Whether it can carry a transfer and give messages priority over it.
    #[must_use]
    pub const fn has_transfer(self) -> bool {
        !matches!(self, Self::SctpProto)
    }

    /// Whether it can deliver messages unordered.
    #[must_use]
    pub const fn has_unordered(self) -> bool {
        !matches!(self, Self::Kcp { .. })
    }

    /// Whether it runs over UDP; otherwise it is SCTP over IP.
    #[must_use]
    pub const fn is_over_udp(self) -> bool {
        matches!(self, Self::Kcp { .. } | Self::Quinn(_))
    }
}

/// The role of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Opens the connection.
    Connects,
    /// Accepts the connection.
    Accepts,
}
