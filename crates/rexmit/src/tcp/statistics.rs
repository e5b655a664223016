//! The counters of a stack.

use rexmit_tcp::EndpointStatistics;
#[cfg(feature = "serde")]
use serde::Serialize;

use crate::tun::ip::IpStatistics;

/// Counters of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct StackStatistics {
    /// Packets that the device accepted for sending.
    pub packets_sent: u64,
    /// Packets that the device refused, because it was full or for another reason; the protocol treats them
    /// as lost.
    pub packets_unsent: u64,
    /// Errors of the device when receiving.
    pub receive_failures: u64,
    /// Connections aborted because too many others were waiting to be accepted.
    pub not_accepted: u64,
    /// Counts of packets that arrived, and of the reasons why some were dropped.
    pub ip: IpStatistics,
    /// The counters of the protocol.
    pub protocol: EndpointStatistics,
}
