//! The wire identity of an association: addresses, ports and verification tags.

use super::auth::RANDOM_LEN;
use crate::wire::Header;

/// The wire identity of an association.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) local_tag: u32,
    pub(crate) local_initial_tsn: u32,
    /// Random numbers that represent the two tags in a cookie (RFC 9260 §5.2.2).
    pub(crate) tie_tags: (u32, u32),
    /// The RANDOM parameter of our INIT or INIT ACK (RFC 4895 §3.1).
    pub(crate) random: [u8; RANDOM_LEN],
}

impl Identity {
    /// The header of a packet under the tag `verification_tag`.
    pub(crate) const fn header(&self, verification_tag: u32) -> Header {
        Header {
            source_port: self.local_port,
            destination_port: self.remote_port,
            verification_tag,
        }
    }
}

/// The first unwrapped TSN of an association whose initial TSN is `tsn`.
pub(crate) const fn unwrapped_initial_tsn(tsn: u32) -> u64 {
    (1 << 32) + tsn as u64
}
