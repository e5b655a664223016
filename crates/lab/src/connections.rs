//! Connections side by side on real sockets, in plain terms: the plan of a run, and its measurements.
//!
//! The laboratory opens no sockets. [`scenario`](crate::scenario) says in these terms what it wants of
//! a driver that has them, a [`Sockets`], and reads the measurements.

use std::time::Duration;

use rexmit_core::trace::TraceSink;
use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::LinkStats;
use rexmit_netsim::path::PathConfig;
use rexmit_netsim::traffic::trace::Message;
use rexmit_sctp::AssociationConfig;
use rexmit_sctp::recovery::RecoveryStatistics;
use rexmit_tcp::ConnectionConfig;

use crate::measure::{LatencyDistribution, MessageRecord};

/// Messages that one connection can tell apart: the most that a run has.
pub const MAX_MESSAGES: usize = 1 << 20;

/// The plan of the run.
#[derive(Debug)]
pub struct Connections {
    /// How both ends of each are configured.
    pub ends: Ends,
    /// What each of them sends.
    pub flows: Vec<Planned>,
    /// The link, from the senders to the receivers.
    pub forward: PathConfig,
    /// And back.
    pub backward: PathConfig,
    /// The seed of the link.
    pub seed: Seed,
    /// Time limit of the run, from its beginning.
    pub patience: Duration,
}

/// What one connection sends.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When it begins, after the run does.
    pub begin: Duration,
    /// Its messages; their times count from when it stands.
    pub messages: Vec<Message>,
}

/// The configurations of both ends.
#[derive(Clone, Debug)]
pub enum Ends {
    /// Of SCTP.
    Sctp {
        /// The sender, which initiates the association.
        sender: AssociationConfig,
        /// The receiver.
        receiver: AssociationConfig,
        /// Whether messages need not wait for earlier ones.
        unordered: bool,
    },
    /// Of TCP.
    Tcp {
        /// The sender, which connects.
        sender: ConnectionConfig,
        /// The receiver.
        receiver: ConnectionConfig,
    },
}

/// The measurements.
#[derive(Debug, Default)]
pub struct Measured {
    /// When the run began.
    pub origin: Instant,
    /// Of every message of every connection.
    pub records: Vec<MessageRecord>,
    /// The counters of the senders, one entry per connection.
    pub recovery: Vec<RecoveryStatistics>,
    /// How late the applications gave their messages to the transport.
    pub sending: LatencyDistribution,
    /// The statistics of the link: forward and backward.
    pub link: [LinkStats; 2],
    /// By how much packets left the link too late; `None` if there were none.
    pub lateness: Option<Lateness>,
    /// Bytes of each packet on the link that are of IP.
    pub ip_bytes: u64,
}

/// By how much packets left a link later than they should have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lateness {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
    /// The maximum.
    pub max: Duration,
}

/// Why there is nothing measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocketsError {
    /// The machine does not grant what real sockets need: why, in words.
    NotPermitted(String),
    /// It failed: why, in words.
    Failed(String),
}

/// A driver with real sockets that runs connections.
pub trait Sockets {
    /// Runs `connections`; `trace` makes sinks for the senders' endpoints, in their order.
    ///
    /// # Errors
    /// If the machine does not grant what is needed, or something fails.
    fn run(
        &self,
        connections: &Connections,
        trace: &mut (dyn FnMut() -> Box<dyn TraceSink> + Send),
    ) -> Result<Measured, SocketsError>;
}
