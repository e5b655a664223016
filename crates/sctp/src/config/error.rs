//! Why a configuration is invalid, and the limits of its values.

use std::time::Duration;

use rexmit_recovery::InvalidRecovery;

/// The least value of `max_packet_bytes`: every IPv4 host accepts datagrams of 576 bytes, of which IP and UDP
/// headers use some.
pub const MIN_PACKET_BYTES: usize = 512;
/// The largest value of `max_packet_bytes`: an IPv4 datagram with a UDP header, less a margin.
pub const MAX_PACKET_BYTES: usize = 65_000;
/// The least value of `receive_buffer_bytes`. RFC 9260 §3.3.2 requires a first window of at least 1500 bytes.
pub const MIN_RECEIVE_BUFFER_BYTES: usize = 4096;
/// The longest SACK delay (RFC 9260 §6.2).
pub const MAX_SACK_DELAY: Duration = Duration::from_millis(500);
/// The most addresses of either side of an association; those of a peer beyond it are ignored.
pub const MAX_ADDRESSES: usize = 8;
/// The most addresses of a host from which those are chosen of which a peer is told; see
/// [`SourceAddresses::Routed`](crate::SourceAddresses::Routed).
pub const MAX_HOST_ADDRESSES: usize = 64;

/// The most [`shards`](crate::EndpointConfig::shards) of an endpoint: verification tags keep 26 random bits.
pub const MAX_SHARDS: usize = 64;

/// The most types of chunks that a peer can be asked to authenticate.
pub const MAX_AUTHENTICATED_CHUNKS: usize = 32;

/// Why a configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Port 0 cannot be used (RFC 9260 §3.1).
    #[error("the SCTP port is 0; choose one from 1 to 65535")]
    PortZero,
    /// A value is out of its range.
    #[error("{name} is {value}; it must be from {min} to {max}")]
    OutOfBounds {
        /// The field.
        name: &'static str,
        /// The value given.
        value: usize,
        /// The least it may be.
        min: usize,
        /// The most it may be.
        max: usize,
    },
    /// A chunk of this type cannot be authenticated (RFC 4895 §3.2).
    #[error("chunks of type {0} cannot be authenticated")]
    AuthenticatedChunk(u8),
    /// Primary.Switchover.Max.Retrans is below the number of errors after which data is sent over another path.
    #[error(
        "primary_switchover_max_retrans is below the number of errors after which data is sent over another path"
    )]
    Switchover,
    /// SACK.Delay must not be above 500 ms (RFC 9260 §6.2).
    #[error("the SACK delay is above 500 ms, which RFC 9260 §6.2 forbids")]
    SackDelay,
    /// The recovery configuration is invalid.
    #[error("recovery: {0}")]
    Recovery(#[from] InvalidRecovery),
}

pub(crate) fn bound(
    name: &'static str,
    value: usize,
    min: usize,
    max: usize,
) -> Result<(), ConfigError> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(ConfigError::OutOfBounds { name, value, min, max })
    }
}
