//! The protocol that carries the messages.

use rexmit::tcp::TCP_PROFILES;
use rexmit_sctp::recovery::PROFILES;

use rexmit_lab::link::Link;

/// The SCTP profiles compared by default: RFC 9260, Linux (lksctp), the mechanisms for thin streams
/// of the papers, and those of rexmit.
pub const COMPARED: &[&str] =
    &["rfc9260", "lksctp", "thin", "thin-bundling", "interactive", "interactive-redundant"];

/// The TCP profiles compared by default.
const COMPARED_TCP: &[&str] = &[
    "tcp-newreno",
    "tcp-sack",
    "tcp-thin",
    "tcp-thin-rdb",
    "tcp-interactive",
    "tcp-interactive-redundant",
];

/// The SCTP profiles compared by default on a link that reorders: with and without the mechanisms
/// for thin streams, and with and without tolerance to reordering.
pub const COMPARED_REORDERED: &[&str] = &["rfc9260", "thin", "rr", "thin-rr"];

/// The protocol of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// SCTP over UDP, with rexmit at both ends.
    #[default]
    Sctp,
    /// TCP: rexmit sends, the kernel receives. Needs TUN devices and namespaces.
    Tcp,
}

impl Transport {
    /// The profiles of this protocol, each with a one-line description.
    #[must_use]
    pub const fn profiles(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Sctp => PROFILES,
            Self::Tcp => TCP_PROFILES,
        }
    }

    /// The profiles compared by default. On a `link` without reordering: the standard, the
    /// behaviour of Linux or of current RFCs, and the profiles for thin streams. On one with
    /// reordering: the standard, the thin-stream profile, and those with tolerance to reordering.
    #[must_use]
    pub fn compared(self, link: &Link) -> &'static [&'static str] {
        match (self, link.reorder > 0.0) {
            (Self::Sctp, false) => COMPARED,
            (Self::Sctp, true) => COMPARED_REORDERED,
            (Self::Tcp, false) => COMPARED_TCP,
            (Self::Tcp, true) => &["tcp-newreno", "tcp-sack", "tcp-thin", "tcp-rr"],
        }
    }

    /// The description of the profile called `name`; empty for an unknown name.
    pub(super) fn about(self, name: &str) -> String {
        let found = self.profiles().iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, about)| about).to_owned()
    }

    /// All names, as a list for messages.
    pub(super) fn names(self) -> String {
        self.profiles().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    pub(super) const fn peers(self) -> &'static str {
        match self {
            Self::Sctp => "associations",
            Self::Tcp => "connections",
        }
    }

    pub(super) const fn headers(self) -> &'static str {
        match self {
            Self::Sctp => "both directions, with UDP and IPv4 headers",
            Self::Tcp => "both directions, with IPv4 headers",
        }
    }
}
