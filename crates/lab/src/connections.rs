//! Concurrent connections on real sockets: the plan of a run, and its measurements, without any
//! I/O.
//!
//! The laboratory opens no sockets. [`scenario`](crate::scenario) passes this plan to a driver that
//! does, a [`Sockets`], and evaluates its measurements.

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
use crate::scenario::{RunOutcome, Scenario};

/// Largest number of messages of one connection, limited by the message number's size; no run has
/// more.
pub const MAX_MESSAGES: usize = 1 << 20;

/// The plan of the run.
#[derive(Debug)]
pub struct Connections {
    /// The configurations of both ends of each connection.
    pub ends: Ends,
    /// The messages of each connection.
    pub flows: Vec<Planned>,
    /// The link, from the senders to the receivers.
    pub forward: PathConfig,
    /// The link from the receivers to the senders.
    pub backward: PathConfig,
    /// The seed of the link.
    pub seed: Seed,
    /// Time limit of the run.
    pub setup_timeout: Duration,
}

/// The planned messages of one connection.
#[derive(Clone, Debug)]
pub struct Planned {
    /// When the connection is opened, relative to the begin of the run.
    pub begin: Duration,
    /// The messages; their times count from the connection's establishment.
    pub messages: Vec<Message>,
}

/// The configurations of both ends.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one per run")]
pub enum Ends {
    /// Both ends use SCTP.
    Sctp {
        /// The sender, which initiates the association.
        sender: AssociationConfig,
        /// The receiver.
        receiver: AssociationConfig,
        /// Whether messages are delivered unordered.
        unordered: bool,
    },
    /// Both ends use TCP.
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
    /// The records of all messages of all connections.
    pub records: Vec<MessageRecord>,
    /// The counters of the senders, one entry per connection.
    pub recovery: Vec<RecoveryStatistics>,
    /// How late the applications passed their messages to the transport.
    pub sending: LatencyDistribution,
    /// The statistics of the link: forward and backward.
    pub link: [LinkStats; 2],
    /// How late packets were sent over the link; `None` if there were no packets.
    pub lateness: Option<Lateness>,
    /// Bytes of the IP header in each packet on the link.
    pub ip_bytes: u64,
}

/// How late packets were sent over a link, as its emulator measured it.
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

/// Why there are no measurements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocketsError {
    /// The system does not grant the required permissions; with an explanation.
    NotPermitted(String),
    /// The run failed; with an explanation.
    Failed(String),
    /// There is no kernel for runs with its clock; with an explanation.
    NoKernel(&'static str),
}

/// A driver that runs connections on real sockets.
pub trait Sockets {
    /// Runs `connections`; `trace` makes sinks for the senders' endpoints, in their order.
    ///
    /// # Errors
    /// If a permission is missing, or the run fails.
    fn run(
        &self,
        connections: &Connections,
        trace: &mut (dyn FnMut() -> Box<dyn TraceSink> + Send),
    ) -> Result<Measured, SocketsError>;

    /// Boots a kernel and runs `scenario` in it, by [`execute_in`](crate::scenario::execute_in).
    ///
    /// # Errors
    /// If there is no such kernel, or the run fails.
    fn run_in_kernel(&self, scenario: &Scenario, seed: u64) -> Result<RunOutcome, SocketsError>;
}
