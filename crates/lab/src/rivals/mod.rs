//! What others would use instead, in the very same simulated network.
//!
//! | rival | crate | messages | profiles |
//! |---|---|---|---|
//! | `dcsctp` | dcsctp 0.1.16, the SCTP of WebRTC's data channels | ordered, unordered | `default`; `tuned`: the lowest RTO.min that is safe here, 120 ms, delayed SACK 10 ms |
//! | `sctp-proto` | sctp-proto 0.10.8, the SCTP of str0m and webrtc-rs | ordered, unordered | `default` |
//! | `kcp` | kcp 0.6.0 | ordered | `turbo`: `nodelay(1, 10, 2, 1)` and a window of 128 |
//! | `quinn` | quinn-proto 0.11.19, QUIC | ordered: one stream; unordered: a stream each | `default` |
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
        /// RTO.min 120 ms instead of 400 and a delayed SACK of 10 ms instead of 200.
        is_tuned: bool,
    },
    /// sctp-proto.
    SctpProto,
    /// KCP.
    Kcp,
    /// quinn-proto.
    Quinn,
}

impl Rival {
    /// The profiles that there are, that by default first.
    #[must_use]
    pub const fn profiles(self) -> &'static [&'static str] {
        match self {
            Self::DcSctp { .. } => &["default", "tuned"],
            Self::SctpProto | Self::Quinn => &["default"],
            Self::Kcp => &["turbo"],
        }
    }

    /// The same with another profile, if there is one of that name.
    #[must_use]
    pub fn with_profile(self, name: &str) -> Option<Self> {
        let is_other = self.profiles().iter().position(|known| *known == name)? > 0;
        Some(match self {
            Self::DcSctp { .. } => Self::DcSctp { is_tuned: is_other },
            Self::SctpProto | Self::Kcp | Self::Quinn => self,
        })
    }

    /// Whether it can deliver messages that do not wait for earlier ones.
    #[must_use]
    pub const fn has_unordered(self) -> bool {
        !matches!(self, Self::Kcp)
    }

    /// Whether its packets are those of UDP; else they are those of SCTP over IP.
    #[must_use]
    pub const fn is_over_udp(self) -> bool {
        matches!(self, Self::Kcp | Self::Quinn)
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
