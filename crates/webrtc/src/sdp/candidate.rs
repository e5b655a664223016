//! Candidates (RFC 8839 §5.1): addresses at which a peer may be reached.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The type of a candidate (RFC 8445 §5.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CandidateKind {
    /// An address of the host itself.
    Host,
    /// The address of the host as a STUN server sees it.
    ServerReflexive,
    /// The address of the host as its peer sees it.
    PeerReflexive,
    /// An address of a TURN server.
    Relayed,
}

impl CandidateKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::ServerReflexive => "srflx",
            Self::PeerReflexive => "prflx",
            Self::Relayed => "relay",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [Self::Host, Self::ServerReflexive, Self::PeerReflexive, Self::Relayed];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

/// A UDP address at which a peer may be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Candidate {
    /// The foundation, equal for candidates of one type, base and server (RFC 8445 §5.1.1.3).
    pub foundation: String,
    /// The priority; higher ones are tried first (RFC 8445 §5.1.2).
    pub priority: u32,
    /// The address.
    pub address: SocketAddr,
    /// The type.
    pub kind: CandidateKind,
}

/// Whether it is a character of foundations, user name fragments and passwords (RFC 8839 §5.1: ice-char).
pub(super) const fn is_ice_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

impl Candidate {
    /// A host candidate of ours; `index` is its number among our candidates.
    pub(crate) fn host(index: usize, address: SocketAddr) -> Self {
        Self::own(CandidateKind::Host, index, address)
    }

    /// A candidate of ours; `index` is its number among them.
    pub(crate) fn own(kind: CandidateKind, index: usize, address: SocketAddr) -> Self {
        // RFC 8445 §5.1.2.2; component 1.
        let type_preference: u32 = match kind {
            CandidateKind::Host => 126,
            CandidateKind::PeerReflexive => 110,
            CandidateKind::ServerReflexive => 100,
            CandidateKind::Relayed => 0,
        };
        let local_preference = 65_535 - index.min(65_535) as u32;
        Self {
            foundation: (index + 1).to_string(),
            priority: type_preference << 24 | local_preference << 8 | 255,
            address,
            kind,
        }
    }

    /// Reads the value of a `candidate` attribute, without the attribute's name. `Some(None)` for one that cannot be
    /// used here: not over UDP, of another component than the first, or with a name instead of an address.
    pub(super) fn parse(value: &str) -> Option<Option<Self>> {
        let mut words = value.split(' ');
        let mut next = || words.next().filter(|word| !word.is_empty());
        let foundation = next()?;
        let component: u16 = next()?.parse().ok()?;
        let transport = next()?;
        let priority = next()?.parse().ok()?;
        let (address, port): (&str, u16) = (next()?, next()?.parse().ok()?);
        let kind = next().filter(|&word| word == "typ").and_then(|_| next())?;
        let is_foundation =
            (1..=32).contains(&foundation.len()) && foundation.bytes().all(is_ice_char);
        // What follows are pairs of a name and a value.
        let is_whole =
            words.clone().all(|word| !word.is_empty()) && words.count().is_multiple_of(2);
        let is_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_');
        if !is_foundation || !is_whole {
            return None;
        }
        let Ok(ip) = address.parse::<IpAddr>() else {
            return address.bytes().all(is_name).then_some(None);
        };
        let Some(kind) = CandidateKind::parse(kind) else { return Some(None) };
        let is_usable = component == 1 && transport.eq_ignore_ascii_case("udp") && port != 0;
        let address = SocketAddr::new(ip, port);
        let foundation = foundation.to_owned();
        Some(is_usable.then_some(Self { foundation, priority, address, kind }))
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { foundation, priority, address, kind } = self;
        let (ip, port, kind) = (address.ip(), address.port(), kind.name());
        write!(f, "candidate:{foundation} 1 udp {priority} {ip} {port} typ {kind}")?;
        match (self.kind, ip) {
            (CandidateKind::Host, _) => Ok(()),
            // RFC 8839 §5.1: required, and hidden.
            (_, IpAddr::V4(_)) => write!(f, " raddr 0.0.0.0 rport 9"),
            (_, IpAddr::V6(_)) => write!(f, " raddr :: rport 9"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> Option<Option<Candidate>> {
        Candidate::parse(value)
    }

    #[test]
    fn candidates_of_browsers_are_read() {
        let value = "842163049 1 udp 1677729535 198.51.100.7 46154 typ srflx raddr 0.0.0.0 rport 0 \
                     generation 0 network-cost 999";
        let expected = Candidate {
            foundation: "842163049".to_owned(),
            priority: 1_677_729_535,
            address: "198.51.100.7:46154".parse().unwrap(),
            kind: CandidateKind::ServerReflexive,
        };
        assert_eq!(parsed(value), Some(Some(expected.clone())));
        let shown = expected.to_string();
        assert_eq!(parsed(shown.strip_prefix("candidate:").unwrap()), Some(Some(expected)));
        let v6 = parsed("0 1 UDP 2122252543 2001:db8::7 9 typ host").unwrap().unwrap();
        assert_eq!(v6.address, "[2001:db8::7]:9".parse().unwrap());
    }

    #[test]
    fn unusable_candidates_are_skipped() {
        for value in [
            "1 1 udp 1 8d2c2f4f-5b0a-4c1c-bb2b-0d5b8a7f1e55.local 46154 typ host",
            "1 2 udp 1 192.0.2.1 9 typ host",
            "1 1 tcp 1 192.0.2.1 9 typ host tcptype active",
            "1 1 udp 1 192.0.2.1 0 typ host",
            "1 1 udp 1 192.0.2.1 9 typ other",
        ] {
            assert_eq!(parsed(value), Some(None), "{value}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let whole = "1 1 udp 1 192.0.2.1 9 typ host";
        for words in 0..8 {
            let short: Vec<&str> = whole.split(' ').take(words).collect();
            assert_eq!(parsed(&short.join(" ")), None, "{words}");
        }
        for value in [
            "1  udp 1 192.0.2.1 9 typ host",
            "- 1 udp 1 192.0.2.1 9 typ host",
            "1 x udp 1 192.0.2.1 9 typ host",
            "1 1 udp 4294967296 192.0.2.1 9 typ host",
            "1 1 udp 1 192.0.2.1 65536 typ host",
            "1 1 udp 1 192.0.2.1/24 9 typ host",
            "1 1 udp 1 192.0.2.1 9 kind host",
            "1 1 udp 1 192.0.2.1 9 typ host generation",
            "1 1 udp 1 192.0.2.1 9 typ host  x",
            "123456789012345678901234567890123 1 udp 1 192.0.2.1 9 typ host",
        ] {
            assert_eq!(parsed(value), None, "{value}");
        }
    }

    #[test]
    fn earlier_candidates_of_ours_have_the_higher_priority() {
        let address = "192.0.2.1:9".parse().unwrap();
        let [first, second] = [0, 1].map(|index| Candidate::host(index, address));
        assert_eq!(first.priority, 2_130_706_431);
        assert!(first.priority > second.priority && first.foundation != second.foundation);
    }
}
