//! Comparisons in real time: a server sends the messages of a captured trace to its clients over
//! real sockets and the link emulator, once per recovery profile, concurrently.
//!
//! Each profile has a *lane* of its own: a server, a client per flow, and an emulator between them.
//! All emulators draw from the same seed, so that the n-th packet of a direction is lost in every
//! lane or in none. All lanes run at the same time on the calling runtime.
//!
//! # Measurements
//!
//! - Messages go from the server to the clients, so the server's profile is the one compared.
//! - Over TCP, rexmit sends and the kernel receives, in namespaces, with Nagle's algorithm off in
//!   every lane, as in games; the lengths in the trace give the message boundaries. The points
//!   below that name SCTP do not apply to TCP.
//! - A message of the trace is a message of SCTP, of the same length. The payload protocol
//!   identifier carries its number, so that even messages of one byte can be identified; the
//!   content is generated and checked. Each must be delivered exactly once, and in order unless
//!   [`Replay::unordered`]: anything else ends the run with [`RealtimeError::Broken`].
//! - Latency counts from the message's time in the trace to the time at which the client's `recv`
//!   returns it, on one clock ([`rexmit::clock`]).
//! - Wire bytes are those of the packets that enter the emulator in both directions from the first
//!   message on: SCTP packets with their UDP and IPv4 headers, acknowledgements and lost packets
//!   included.

mod connections;
mod error;
mod flow;
mod lane;
mod records;
mod replay;
mod tasks;
mod tcp;
mod transport;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rexmit::emulator::EmulatorStatistics;
use rexmit::{AssociationConfig, clock};
use rexmit_lab::load::Load;
use rexmit_lab::measure::{Comparison, LatencyDistribution};
use tokio::task::JoinSet;

pub use connections::RealSockets;
pub use error::RealtimeError;
use lane::Lane;
pub use replay::Replay;
use replay::{LaneOutcome, Span};
use tasks::in_order;
pub use transport::{COMPARED, COMPARED_REORDERED, Transport};

/// Time between the set-up of the last lane and the first message.
const HEAD_START: Duration = Duration::from_millis(50);

/// Time limit after the last planned message for data still outstanding: more than three
/// consecutive timeouts with exponential backoff.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// All associations are established.
    Started {
        /// Messages in each lane.
        messages: usize,
    },
    /// A message was delivered.
    Delivered {
        /// The index of the message's profile.
        lane: usize,
        /// The largest latency so far.
        worst: Duration,
    },
}

/// A lane of either protocol.
enum AnyLane {
    Sctp(Lane),
    Tcp(tcp::Lane),
}

impl AnyLane {
    async fn set_up(name: String, replay: &Replay) -> Result<Self, RealtimeError> {
        match replay.transport {
            Transport::Sctp => {
                let mut config = AssociationConfig::profile(&name).ok_or_else(|| {
                    let transport = Transport::Sctp;
                    RealtimeError::UnknownProfile { name: name.clone(), transport }
                })?;
                let thin = &mut config.recovery.thin;
                thin.deadline = replay.deadline.filter(|_| thin.probe_timer.is_some());
                Lane::set_up(name, config, replay).await.map(Self::Sctp)
            }
            Transport::Tcp => tcp::Lane::set_up(name, replay).await.map(Self::Tcp),
        }
    }

    async fn run(
        self,
        span: Span,
        on_delivery: flow::OnDelivery,
    ) -> Result<LaneOutcome, RealtimeError> {
        match self {
            Self::Sctp(lane) => lane.run(span, on_delivery).await,
            Self::Tcp(lane) => lane.run(span, on_delivery).await,
        }
    }
}

/// A callback for progress, called on the runtime's threads.
pub type Watch = Arc<dyn Fn(Progress) + Send + Sync>;

/// The outcome of a replay.
#[derive(Clone, Debug)]
pub struct ReplayOutcome {
    /// The figures, one run per profile, in the order of the profiles.
    pub comparison: Comparison,
    /// The statistics of each lane's emulator, handshakes included.
    pub emulators: Vec<EmulatorStatistics>,
    /// How late the messages were passed to the transport, over all lanes: the part of the latency
    /// that a busy machine adds before anything is sent.
    pub sending: LatencyDistribution,
}

impl ReplayOutcome {
    /// The 99th percentile of the emulators' lateness, of the worst lane.
    #[must_use]
    pub fn timing_error(&self) -> Duration {
        self.emulators.iter().map(|emulator| emulator.lateness.p99).max().unwrap_or_default()
    }
}

impl Replay {
    /// Sets up the lanes, replays the messages in real time and measures.
    ///
    /// # Errors
    /// If a profile or link is invalid, a socket cannot be opened, an association cannot be
    /// established or ends early, or a message is delivered twice, damaged or out of order.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver and timer enabled.
    pub async fn run(&self, watch: Watch) -> Result<ReplayOutcome, RealtimeError> {
        let lanes = self.set_up().await?;
        watch(Progress::Started { messages: self.load.messages() });
        let start = clock::now() + HEAD_START;
        let mut running = JoinSet::new();
        for (index, lane) in lanes.into_iter().enumerate() {
            let watch = Arc::clone(&watch);
            let on_delivery = Arc::new(worst_so_far(move |worst| {
                watch(Progress::Delivered { lane: index, worst });
            }));
            let deadline = start + self.load.duration + DRAIN_TIMEOUT;
            running
                .spawn(async move { Ok((index, lane.run((start, deadline), on_delivery).await?)) });
        }
        Ok(self.outcome(&in_order(running).await?))
    }

    /// A lane for each profile, with its associations established.
    async fn set_up(&self) -> Result<Vec<AnyLane>, RealtimeError> {
        if self.unordered && self.transport == Transport::Tcp {
            return Err(RealtimeError::Unordered);
        }
        let mut lanes = JoinSet::new();
        for (index, name) in self.profiles.iter().enumerate() {
            let (name, replay) = (name.clone(), self.clone());
            lanes.spawn(async move { Ok((index, AnyLane::set_up(name, &replay).await?)) });
        }
        in_order(lanes).await
    }

    fn outcome(&self, lanes: &[LaneOutcome]) -> ReplayOutcome {
        let mut sending = LatencyDistribution::new();
        lanes.iter().for_each(|lane| sending.merge(&lane.sending));
        let emulators = lanes.iter().map(|lane| lane.emulator).collect();
        let mut outcome = ReplayOutcome { comparison: self.describe(), emulators, sending };
        let p99 = |duration: Duration| format!("{:.2} ms at p99", duration.as_secs_f64() * 1e3);
        let link = p99(outcome.timing_error());
        let application = p99(outcome.sending.quantile(0.99));
        let comparison = outcome.comparison.with("link lateness", link);
        let comparison = comparison.with("sender lateness", application);
        outcome.comparison =
            lanes.iter().fold(comparison, |comparison, lane| comparison.with_run(&lane.run));
        outcome
    }

    /// The comparison without its runs.
    fn describe(&self) -> Comparison {
        let Load { name, flows, duration } = &self.load;
        let title = format!("{name}, from a server to its clients over {}", self.link);
        let comparison = Comparison::new(title, self.seed)
            .with("traffic", format!("trace {name}, server to client"))
            .with(self.transport.peers(), flows.len().to_string())
            .with("duration", format!("{:.0} s", duration.as_secs_f64()))
            .with("delivery", if self.unordered { "unordered" } else { "ordered" });
        self.link
            .parameters()
            .into_iter()
            .fold(comparison, |comparison, (name, value)| comparison.with(name, value))
            .with("on the wire", self.transport.headers())
    }
}

/// Wraps `watch` so that it receives the largest latency so far.
fn worst_so_far(watch: impl Fn(Duration) + Send + Sync) -> impl Fn(Duration) + Send + Sync {
    let worst = AtomicU64::new(0);
    move |latency| {
        let latency = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let before = worst.fetch_max(latency, Ordering::Relaxed);
        watch(Duration::from_nanos(before.max(latency)));
    }
}
