//! Connections side by side, alike and each for itself: every one sends its own messages at their
//! times, in one direction, through one emulated link that all of them share.
//!
//! Ours is at both ends. SCTP travels in UDP between sockets on the loopback, TCP as IP packets
//! through TUN devices and two kernels that route. A connection begins at its time, and the times of
//! its messages count from when it stands. One that breaks, or never comes about, leaves its
//! messages undelivered: that is a result. A message that arrives twice, changed, or before its turn
//! is none: it ends the run.

mod arrivals;
mod sctp;
mod sender;
mod tcp;

pub(crate) use sctp::MAX_MESSAGES;

use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use rexmit::emulator::{EmulatorStatistics, Priority};
use rexmit::tcp::ConnectionConfig;
use rexmit::{AssociationConfig, clock};
use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Seed};
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::recovery::RecoveryStatistics;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::{RealtimeError, in_order};
use crate::measure::{LatencyDistribution, MessageRecord};
use arrivals::Arrivals;
use sender::Sender;

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Connections {
    /// How both ends of each are configured.
    pub(crate) ends: Ends,
    /// What each of them sends.
    pub(crate) flows: Vec<Planned>,
    /// The link, from the senders to the receivers.
    pub(crate) forward: PathConfig,
    /// And back.
    pub(crate) backward: PathConfig,
    /// The seed of the link.
    pub(crate) seed: Seed,
    /// How long after the beginning nobody waits any more.
    pub(crate) patience: Duration,
}

/// What one connection sends.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// When it begins, after the run does.
    pub(crate) begin: Duration,
    /// Its messages; their times count from when it stands.
    pub(crate) messages: Vec<Message>,
}

/// The configurations of both ends.
#[derive(Clone, Debug)]
pub(crate) enum Ends {
    /// Of SCTP.
    Sctp {
        /// Who sends, and begins the association.
        sender: AssociationConfig,
        /// Who receives.
        receiver: AssociationConfig,
        /// Whether messages need not wait for earlier ones.
        unordered: bool,
    },
    /// Of TCP.
    Tcp {
        /// Who sends, and connects.
        sender: ConnectionConfig,
        /// Who receives.
        receiver: ConnectionConfig,
    },
}

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// When the run began.
    pub(crate) origin: Instant,
    /// Of every message of every connection.
    pub(crate) records: Vec<MessageRecord>,
    /// What the senders counted, a connection each.
    pub(crate) recovery: Vec<RecoveryStatistics>,
    /// How late the applications gave their messages to the transport.
    pub(crate) sending: LatencyDistribution,
    /// What the link did.
    pub(crate) emulator: EmulatorStatistics,
    /// Bytes of each packet on the link that are of IP.
    pub(crate) ip_bytes: u64,
}

impl Connections {
    /// Runs them, in a thread of its own; `trace` makes sinks for the senders' endpoints.
    pub(crate) fn run(
        &self,
        trace: impl FnMut() -> Box<dyn TraceSink> + Send,
    ) -> Result<Measured, RealtimeError> {
        let run = || {
            Priority::raise();
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(self.measure(trace))
        };
        // The better priority ends with the thread.
        thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    async fn measure(
        &self,
        trace: impl FnMut() -> Box<dyn TraceSink>,
    ) -> Result<Measured, RealtimeError> {
        match &self.ends {
            Ends::Sctp { sender, receiver, unordered } => {
                let link = sctp::Link::new(self, sender, receiver.clone())?;
                sctp::run(self, link, *unordered, trace).await
            }
            Ends::Tcp { sender, receiver } => {
                let place = tcp::Place::new(self, sender.clone(), receiver.clone())?;
                tcp::run(self, place, trace).await
            }
        }
    }

    fn arrivals(&self, unordered: bool) -> Arrivals {
        Arrivals::new(self.flows.iter().map(|flow| &flow.messages[..]), unordered)
    }

    /// When each connection begins, and when nobody waits any more.
    fn times(&self) -> (Instant, Instant) {
        let origin = clock::now();
        (origin, origin + self.patience)
    }
}

/// From the arrival of the last message to the last look at the senders. A run in virtual time goes
/// on for up to a second then.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What is left of connections that have ended.
struct Ended<S> {
    senders: Vec<sender::Finished<S>>,
}

impl<S: Sender> Ended<S> {
    async fn wait(
        flows: JoinSet<Result<(usize, sender::Finished<S>), RealtimeError>>,
    ) -> Result<Self, RealtimeError> {
        let senders = in_order(flows).await?;
        // The last acknowledgements are under way: what they tell belongs to the run.
        clock::sleep_until(clock::now() + LAST_WORDS).await;
        Ok(Self { senders })
    }

    /// Adds up, once the link has stopped.
    fn measured(
        self,
        origin: Instant,
        arrivals: &Arrivals,
        emulator: EmulatorStatistics,
    ) -> Result<Measured, RealtimeError> {
        let mut measured = Measured { origin, emulator, ..Measured::default() };
        // One that never stood would have had its messages from the beginning.
        let start = |sender: &sender::Finished<S>| sender.stands_since.unwrap_or(origin);
        let starts: Vec<_> = self.senders.iter().map(start).collect();
        for sender in &self.senders {
            measured.sending.merge(&sender.lateness);
            measured.recovery.extend(sender.sender.as_ref().map(S::recovery));
        }
        measured.records = arrivals.records(&starts).map_err(|what| RealtimeError::Broken {
            profile: "a run of connections side by side".into(),
            what,
        })?;
        Ok(measured)
    }
}
