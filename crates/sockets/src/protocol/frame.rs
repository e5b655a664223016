//! The header of a message in a socket pair.

use std::net::SocketAddr;

use super::{address, bytes_at};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 64;
/// The largest payload of a message between engine and program; a larger message is split, as in a partial delivery
/// (RFC 6458 §8.1.21).
pub const MAX_PART_BYTES: usize = 128 * 1024;

/// The kind of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A message, or a part of one, of or for a peer.
    #[default]
    Data,
    /// A notification (RFC 6458 §6).
    Notification,
    /// The next call that receives fails with [`Header::error`].
    Error,
    /// An accepted socket; its descriptor comes with it.
    Accepted,
    /// Fills the send buffer, so that the socket is unwritable while a connection is set up; otherwise ignored.
    Filler,
    /// All calls that would wait to receive fail with [`Header::error`] from now on.
    LastError,
    /// The next call that receives fails with `SO_ERROR`, unless another call has taken that.
    SocketError,
}

/// The header: `sctp_sndrcvinfo` (RFC 6458 §5.3.2), and further fields for both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The kind of the message.
    pub kind: Kind,
    /// Whether this part ends the message.
    pub is_end: bool,
    /// Whether the program specified how to send; otherwise `SCTP_DEFAULT_SEND_PARAM` applies.
    pub has_info: bool,
    /// `sinfo_stream`.
    pub stream: u16,
    /// `sinfo_flags`.
    pub flags: u16,
    /// `sinfo_ppid`, in the byte order of the program.
    pub ppid: u32,
    /// `sinfo_context`.
    pub context: u32,
    /// `sinfo_timetolive`, or the value of the policy (RFC 7496).
    pub time_to_live: u32,
    /// `sinfo_assoc_id`.
    pub association: u32,
    /// The peer's address, or the destination.
    pub address: Option<SocketAddr>,
    /// An `errno`.
    pub error: i32,
}

impl Header {
    /// An error for the next call that receives.
    #[must_use]
    pub fn of_error(error: i32) -> Self {
        Self { kind: Kind::Error, is_end: true, error, ..Self::default() }
    }

    /// The header as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = self.kind as u8;
        bytes[1] = u8::from(self.is_end);
        bytes[6] = u8::from(self.has_info);
        bytes[2..4].copy_from_slice(&self.stream.to_ne_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.ppid.to_ne_bytes());
        bytes[12..16].copy_from_slice(&self.context.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.time_to_live.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.association.to_ne_bytes());
        bytes[24..28].copy_from_slice(&self.error.to_ne_bytes());
        if let Some(address) = self.address {
            bytes[32..60].copy_from_slice(&address_bytes(address));
        }
        bytes
    }

    /// Parses the header at the start of `bytes`.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let kind = match bytes[0] {
            0 => Kind::Data,
            1 => Kind::Notification,
            2 => Kind::Error,
            3 => Kind::Accepted,
            4 => Kind::Filler,
            5 => Kind::LastError,
            6 => Kind::SocketError,
            _ => return None,
        };
        Some(Self {
            kind,
            is_end: bytes[1] != 0,
            has_info: bytes[6] != 0,
            stream: u16::from_ne_bytes(bytes_at(bytes, 2)),
            flags: u16::from_ne_bytes(bytes_at(bytes, 4)),
            ppid: u32::from_ne_bytes(bytes_at(bytes, 8)),
            context: u32::from_ne_bytes(bytes_at(bytes, 12)),
            time_to_live: u32::from_ne_bytes(bytes_at(bytes, 16)),
            association: u32::from_ne_bytes(bytes_at(bytes, 20)),
            error: i32::from_ne_bytes(bytes_at(bytes, 24)),
            address: address::parse(&bytes[32..60]).map(|(address, _)| address),
        })
    }
}

/// A `sockaddr_in6`, or a `sockaddr_in` followed by zeros. It needs no heap memory, because signal handlers may send.
fn address_bytes(address: SocketAddr) -> [u8; address::IPV6_BYTES] {
    let mut bytes = [0; address::IPV6_BYTES];
    bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => {
            bytes[..2].copy_from_slice(&address::AF_INET.to_ne_bytes());
            bytes[4..8].copy_from_slice(&address.ip().octets());
        }
        SocketAddr::V6(address) => {
            bytes[..2].copy_from_slice(&address::AF_INET6.to_ne_bytes());
            bytes[8..24].copy_from_slice(&address.ip().octets());
            bytes[24..].copy_from_slice(&address.scope_id().to_ne_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for text in ["192.0.2.1:5000", "[2001:db8::1]:9"] {
            let header = Header {
                kind: Kind::Notification,
                is_end: true,
                has_info: true,
                stream: 1,
                flags: 2,
                ppid: 3,
                context: 4,
                time_to_live: 5,
                association: 6,
                address: text.parse().ok(),
                error: -7,
            };
            assert_eq!(Header::parse(&header.to_bytes()), Some(header));
        }
        let header = Header::default();
        assert_eq!(Header::parse(&header.to_bytes()), Some(header));
        assert_eq!(Header::parse(&header.to_bytes()[1..]), None);
        assert_eq!(Header::parse(&[9; HEADER_BYTES]), None);
    }
}
