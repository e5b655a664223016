//! The candidates: profiles, and the other implementations that this program includes.

use rexmit_lab::rivals::ARE_BUILT;

/// The profile that others are compared with.
pub const STANDARD: &str = "rfc9260";

/// One entry of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The name of the entry in tables.
    pub label: &'static str,
    transport: &'static str,
    profile: &'static str,
    delivers: Delivery,
}

/// How messages can be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Delivery {
    Either,
    /// The candidate delivers messages in order only, so that it fits only ordered traffic.
    Ordered,
}

const fn of(
    label: &'static str,
    transport: &'static str,
    profile: &'static str,
    delivers: Delivery,
) -> Candidate {
    Candidate { label, transport, profile, delivers }
}

const fn sctp(profile: &'static str) -> Candidate {
    of(profile, "sctp", profile, Delivery::Either)
}

const fn tcp(profile: &'static str) -> Candidate {
    of(profile, "tcp", profile, Delivery::Ordered)
}

/// Profiles for messages, without those that imitate old implementations and those for bulk transfers alone. Over a single path
/// `interactive-multipath` is `interactive`.
const PROFILES: [Candidate; 15] = [
    sctp(STANDARD),
    sctp("linux"),
    sctp("rack"),
    sctp("f-rto"),
    sctp("rr"),
    sctp("thin"),
    sctp("thin-rr"),
    sctp("thin-bundling"),
    sctp("interactive"),
    sctp("interactive-bundling"),
    sctp("interactive-redundant"),
    sctp("mixed"),
    tcp("tcp-cubic"),
    tcp("tcp-interactive"),
    tcp("tcp-interactive-redundant"),
];

const RIVALS: [Candidate; 7] = [
    of("dcsctp", "dcsctp", "default", Delivery::Either),
    of("dcsctp tuned", "dcsctp", "tuned", Delivery::Either),
    of("sctp-proto", "sctp-proto", "default", Delivery::Either),
    of("quinn", "quinn", "default", Delivery::Either),
    of("quinn tuned", "quinn", "tuned", Delivery::Either),
    of("kcp turbo", "kcp", "turbo", Delivery::Ordered),
    of("kcp tuned", "kcp", "tuned", Delivery::Ordered),
];

/// The candidates that fit ordered or unordered traffic, the standard first, including the rivals that this program
/// has.
pub fn candidates(is_ordered: bool) -> impl Iterator<Item = &'static Candidate> {
    let rivals = RIVALS.iter().filter(|_| ARE_BUILT);
    let fits = move |it: &&Candidate| is_ordered || it.delivers == Delivery::Either;
    PROFILES.iter().chain(rivals).filter(fits)
}

/// A profile that imitates an old implementation, as a reference.
const REFERENCE: Candidate = sctp("lksctp");

/// All candidates that this program has, and the reference of the papers, `lksctp`.
pub fn every_candidate() -> impl Iterator<Item = &'static Candidate> {
    let (standard, others) = PROFILES.split_at(1);
    let rivals = RIVALS.iter().filter(|_| ARE_BUILT);
    standard.iter().chain(std::iter::once(&REFERENCE)).chain(others).chain(rivals)
}

/// Whether a label is that of another implementation.
pub(super) fn is_rival(label: &str) -> bool {
    RIVALS.iter().any(|rival| rival.label == label)
}

impl Candidate {
    /// Whether the candidate delivers messages in order only.
    #[must_use]
    pub fn is_ordered_only(&self) -> bool {
        self.delivers == Delivery::Ordered
    }

    /// Whether the candidate is another implementation.
    #[must_use]
    pub fn is_rival(&self) -> bool {
        is_rival(self.label)
    }

    /// The point of a study's axis.
    pub(crate) fn point(&self) -> String {
        let Self { label, transport, profile, .. } = self;
        // TCP has no encapsulation; others run over UDP, so that their costs are comparable.
        let encapsulation = if *transport == "tcp" { "" } else { ", encapsulation = \"udp\"" };
        format!(
            "\n[[axis.point]]\nlabel = \"{label}\"\n\
             set.thin.flow = {{ transport = \"{transport}\", profile = \"{profile}\"{encapsulation} }}\n"
        )
    }
}
