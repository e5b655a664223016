//! Events of clients, for a log.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::statistics::TransferredBytes;

/// An observer of events. It is called in the proxy's task and must not block.
pub type Observer = Arc<dyn Fn(&ProxyEvent<'_>) + Send + Sync>;

/// An event of a client. Its `Display` text is a line for a log.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyEvent<'a> {
    /// The client is connected to the service.
    Connected {
        /// The client's address.
        client: SocketAddr,
    },
    /// The connection of the client has ended.
    Ended {
        /// The client's address.
        client: SocketAddr,
        /// The time from acceptance to the end.
        lasted: Duration,
        /// The bytes exchanged with the client.
        sent: TransferredBytes,
        /// Segments retransmitted to the client.
        retransmissions: u64,
        /// How.
        reason: EndReason,
    },
    /// The client was reset at once. At most a few of these are reported per second.
    Refused {
        /// The client's address.
        client: SocketAddr,
        /// Why.
        refusal: Refusal<'a>,
        /// The number of refusals that were not reported since the last report.
        suppressed: u64,
    },
    /// Connections cannot be accepted any more.
    NotAccepting(&'a io::Error),
}

/// How the connection of a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// Both sides have closed it.
    Finished,
    /// The client reset it.
    ResetByClient,
    /// The service reset it.
    ResetByService,
    /// The client did not respond any more.
    ClientSilent,
    /// Neither side sent anything for [`idle_timeout`](super::ProxyConfig::idle_timeout).
    Idle,
    /// The proxy stopped.
    Stopped,
}

/// Why a client was reset at once.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal<'a> {
    /// There are already [`max_connections`](super::ProxyConfig::max_connections) clients.
    Limit,
    /// The service could not be reached.
    Upstream(&'a io::Error),
}

impl fmt::Display for ProxyEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connected { client } => write!(f, "{client}: connected"),
            Self::Ended { client, lasted, sent, retransmissions, reason } => write!(
                f,
                "{client}: {reason} after {:.1} s, {} bytes to the service, {} to the client, \
                 {retransmissions} segments sent again",
                lasted.as_secs_f64(),
                sent.to_service,
                sent.to_client,
            ),
            Self::Refused { client, refusal, suppressed } => {
                write!(f, "{client}: refused, as {refusal}")?;
                if *suppressed > 0 { write!(f, " ({suppressed} more before)") } else { Ok(()) }
            }
            Self::NotAccepting(error) => write!(f, "no more clients are accepted: {error}"),
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finished => "finished",
            Self::ResetByClient => "reset by the client",
            Self::ResetByService => "reset by the service",
            Self::ClientSilent => "given up, as the client no longer answers,",
            Self::Idle => "reset, as neither side said anything,",
            Self::Stopped => "reset, as the proxy stops,",
        })
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit => f.write_str("there are as many clients as may be"),
            Self::Upstream(error) => write!(f, "the service cannot be reached: {error}"),
        }
    }
}
