//! The counters of an endpoint, and the limit of associations that wait to be accepted.

use std::ops::AddAssign;

use rexmit_sctp as sctp;
#[cfg(feature = "serde")]
use serde::Serialize;

/// The most associations of an endpoint that wait to be accepted, on all its shards together. Further ones are aborted, and counted in
/// [`EndpointStatistics::not_accepted`].
pub const ACCEPT_BACKLOG: usize = 1024;

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct EndpointStatistics {
    /// Packets that the system accepted for sending.
    pub packets_sent: u64,
    /// Packets that the system refused to send; the protocol treats them as lost.
    pub packets_unsent: u64,
    /// Packets that arrived.
    pub packets_received: u64,
    /// Packets that one of several [shards](crate::EndpointConfig::shards) received for another, to which it handed them over.
    pub packets_redirected: u64,
    /// Packets that one of several shards received for another and dropped, because too many waited for that one. They do not
    /// count as redirected.
    pub packets_dropped: u64,
    /// Errors of system calls that receive.
    pub receive_failures: u64,
    /// Associations aborted because [`ACCEPT_BACKLOG`] others were waiting, or by
    /// [`stop_accepting`](crate::Endpoint::stop_accepting).
    pub not_accepted: u64,
    /// The counters of the protocol.
    pub protocol: sctp::EndpointStatistics,
    /// The counters of encryption; `None` without it.
    #[cfg(feature = "dtls")]
    pub encryption: Option<rexmit_dtls::Statistics>,
}

impl AddAssign for EndpointStatistics {
    fn add_assign(&mut self, other: Self) {
        let Self {
            packets_sent,
            packets_unsent,
            packets_received,
            packets_redirected,
            packets_dropped,
            receive_failures,
            not_accepted,
            protocol,
            #[cfg(feature = "dtls")]
            encryption,
        } = other;
        self.packets_sent += packets_sent;
        self.packets_unsent += packets_unsent;
        self.packets_received += packets_received;
        self.packets_redirected += packets_redirected;
        self.packets_dropped += packets_dropped;
        self.receive_failures += receive_failures;
        self.not_accepted += not_accepted;
        self.protocol += protocol;
        #[cfg(feature = "dtls")]
        if let Some(encryption) = encryption {
            *self.encryption.get_or_insert_default() += encryption;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_added() {
        let one = EndpointStatistics {
            packets_sent: 1,
            packets_unsent: 2,
            packets_received: 3,
            packets_redirected: 4,
            packets_dropped: 5,
            receive_failures: 6,
            not_accepted: 7,
            ..EndpointStatistics::default()
        };
        let mut sum = one;
        sum += one;
        let twice = EndpointStatistics {
            packets_sent: 2,
            packets_unsent: 4,
            packets_received: 6,
            packets_redirected: 8,
            packets_dropped: 10,
            receive_failures: 12,
            not_accepted: 14,
            ..EndpointStatistics::default()
        };
        assert_eq!(sum, twice);
    }
}
