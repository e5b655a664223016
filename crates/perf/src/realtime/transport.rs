//! Which protocol carries the messages.

use rexmit::tcp::TCP_PROFILES;
use rexmit_sctp::recovery::PROFILES;

use rexmit_lab::link::Link;

/// The profiles that are compared by default: the standard, what Linux does, and what is
/// done for thin streams, by the papers and by us.
pub const COMPARED: &[&str] =
    &["rfc9260", "lksctp", "thin", "thin-bundling", "interactive", "interactive-redundant"];

/// The same over TCP.
const COMPARED_TCP: &[&str] = &[
    "tcp-newreno",
    "tcp-sack",
    "tcp-thin",
    "tcp-thin-rdb",
    "tcp-interactive",
    "tcp-interactive-redundant",
];

/// The same over a link that reorders: with and without what is done for thin streams, and with and
/// without what is done about reordering.
pub const COMPARED_REORDERED: &[&str] = &["rfc9260", "thin", "rr", "thin-rr"];

/// The protocol of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// SCTP over UDP, ours at both ends.
    #[default]
    Sctp,
    /// TCP: ours sends, the kernel's receives. Needs TUN devices and namespaces.
    Tcp,
}

impl Transport {
    /// Its profiles, with a line on each.
    #[must_use]
    pub const fn profiles(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Sctp => PROFILES,
            Self::Tcp => TCP_PROFILES,
        }
    }

    /// The profiles that are compared by default: the standard, what Linux does or the
    /// RFCs of today say, and what is done for thin streams; over a `link` that reorders, the standard
    /// and that for thin streams, and what is done about reordering.
    #[must_use]
    pub fn compared(self, link: &Link) -> &'static [&'static str] {
        match (self, link.reorder > 0.0) {
            (Self::Sctp, false) => COMPARED,
            (Self::Sctp, true) => COMPARED_REORDERED,
            (Self::Tcp, false) => COMPARED_TCP,
            (Self::Tcp, true) => &["tcp-newreno", "tcp-sack", "tcp-thin", "tcp-rr"],
        }
    }

    /// The profile called `name`, in a sentence; empty for an unknown name.
    pub(super) fn about(self, name: &str) -> String {
        let found = self.profiles().iter().find(|(known, _)| *known == name);
        found.map_or("", |(_, about)| about).to_owned()
    }

    /// All names, for people.
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
