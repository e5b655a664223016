//! The golden set: hashes of the packets and counters of endpoints, for every profile, over paths of every kind.
//!
//! Refactoring changes no hash. A change of behaviour renews the hashes in a separate commit that states the reason
//! (`make golden-renew`). `tests/golden/` has one file per profile, with a line per run: the kind of path, the seed,
//! the packets sent, a hash of every packet's bytes, time and route, and a hash of the final statistics. Random plans
//! of [`crate::Plan`] are in it, too, because they combine mechanisms that no profile combines.

mod file;
mod link;
mod numbers;
mod recorded;
mod sctp;
mod tcp;

use std::fmt;

use rexmit_sctp::recovery::{PROFILES, TCP_PROFILES};

pub use file::{FileError, read, write};
pub use recorded::Digest;

use crate::Plan;

/// Runs of each kind of path in the file of a profile.
const SEEDS_PER_KIND: u64 = 40;
/// Runs of each kind of random plan.
const RANDOM_SEEDS: u64 = 240;

/// The properties of a path, or changes during the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A constant delay.
    Lossless,
    /// Uniform loss of 1 to 30 %.
    Lossy,
    /// Loss in bursts.
    Bursty,
    /// Some packets are overtaken.
    Reordering,
    /// A random delay.
    Jittery,
    /// A rate and a short queue, filled by bulk data.
    Bottleneck,
    /// Two paths, each of which may fail (SCTP).
    TwoPaths,
    /// One endpoint loses its state and restarts.
    Restart,
    /// A random plan.
    Random,
    /// A random plan over two paths.
    RandomTwoPaths,
}

impl Kind {
    /// The kinds of paths that SCTP profiles are run over.
    pub const SCTP: [Self; 8] = [
        Self::Lossless,
        Self::Lossy,
        Self::Bursty,
        Self::Reordering,
        Self::Jittery,
        Self::Bottleneck,
        Self::TwoPaths,
        Self::Restart,
    ];
    /// The kinds of paths that TCP profiles are run over: TCP has one path.
    pub const TCP: [Self; 7] = [
        Self::Lossless,
        Self::Lossy,
        Self::Bursty,
        Self::Reordering,
        Self::Jittery,
        Self::Bottleneck,
        Self::Restart,
    ];
    const RANDOM: [Self; 2] = [Self::Random, Self::RandomTwoPaths];

    /// The name of the kind in a file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lossless => "lossless",
            Self::Lossy => "lossy",
            Self::Bursty => "bursty",
            Self::Reordering => "reordering",
            Self::Jittery => "jittery",
            Self::Bottleneck => "bottleneck",
            Self::TwoPaths => "two-paths",
            Self::Restart => "restart",
            Self::Random => "random",
            Self::RandomTwoPaths => "random-two-paths",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::SCTP.into_iter().chain(Self::RANDOM).find(|kind| kind.name() == name)
    }
}

/// The kind of run: a profile, or random plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A profile of SCTP.
    Sctp(&'static str),
    /// A profile of TCP.
    Tcp(&'static str),
    /// Random plans of SCTP endpoints.
    Random,
}

impl Subject {
    /// Every subject: a file each.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let sctp = PROFILES.iter().map(|(name, _)| Self::Sctp(name));
        let tcp = TCP_PROFILES.iter().map(|(name, _)| Self::Tcp(name));
        sctp.chain(tcp).chain([Self::Random]).collect()
    }

    /// The name of its file, without the extension.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sctp(name) | Self::Tcp(name) => name,
            Self::Random => "random-plans",
        }
    }

    /// The runs of its file, in order.
    #[must_use]
    pub fn cases(self) -> Vec<Case> {
        let (kinds, seeds) = match self {
            Self::Sctp(_) => (&Kind::SCTP[..], SEEDS_PER_KIND),
            Self::Tcp(_) => (&Kind::TCP[..], SEEDS_PER_KIND),
            Self::Random => (&Kind::RANDOM[..], RANDOM_SEEDS),
        };
        let of_kind = |&kind| (0..seeds).map(move |seed| Case { kind, seed });
        kinds.iter().flat_map(of_kind).collect()
    }

    /// Executes one of its runs.
    ///
    /// # Panics
    /// If the case is not one of [`cases`](Self::cases).
    #[must_use]
    pub fn run(self, case: Case) -> Fingerprint {
        match (self, case.kind) {
            (Self::Sctp(profile), _) => sctp::run(profile, case),
            (Self::Tcp(profile), _) => tcp::run(profile, case),
            (Self::Random, Kind::Random) => random(&Plan::draw(case.seed)),
            (Self::Random, Kind::RandomTwoPaths) => random(&Plan::draw_two_homes(case.seed)),
            (Self::Random, _) => panic!("no random plan: {case}"),
        }
    }
}

/// One run of a subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// The properties of the path.
    pub kind: Kind,
    /// The seed of everything that is random.
    pub seed: u64,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.seed)
    }
}

/// The record of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint {
    /// Packets sent by both endpoints.
    pub packets: u64,
    /// Every packet's bytes, time and route.
    pub bytes: u64,
    /// The final statistics of both endpoints.
    pub statistics: u64,
}

fn random(plan: &Plan) -> Fingerprint {
    let outcome = crate::run(plan, false, false);
    let mut statistics = Digest::default();
    for (host, of_one) in &outcome.statistics {
        statistics.add(&[*host as u64]);
        statistics.add(&numbers::of_association(of_one));
    }
    let [a, b] = outcome.sent;
    Fingerprint {
        packets: a.packets() + b.packets(),
        bytes: Digest::of(&[a.value(), b.value()]).value(),
        statistics: statistics.value(),
    }
}
