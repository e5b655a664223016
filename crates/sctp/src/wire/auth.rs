//! AUTH (RFC 4895 §4.1).

use super::cursor::Cursor;
use super::frame::kind;
use super::sink::Sink;

/// Bytes of AUTH before its MAC.
pub const AUTH_HEADER_LEN: usize = 8;

/// The AUTH chunk: a MAC over itself, with zeros in place of the MAC, and all chunks that follow it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Auth<'a> {
    /// Shared Key Identifier.
    pub key_id: u16,
    /// HMAC Identifier: 1 for SHA-1, 3 for SHA-256.
    pub hmac_id: u16,
    /// The HMAC; its length is determined by the length of the chunk.
    pub mac: &'a [u8],
}

impl<'a> Auth<'a> {
    pub(super) fn decode(value: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(value);
        Some(Self { key_id: cursor.u16()?, hmac_id: cursor.u16()?, mac: cursor.0 })
    }

    pub(super) fn encode(&self, sink: &mut Sink<'_>) {
        sink.chunk(kind::AUTH, 0, |sink| {
            sink.put_u16(self.key_id);
            sink.put_u16(self.hmac_id);
            sink.put(self.mac);
        });
    }
}

/// Whether a peer can be asked to authenticate chunks of this type (RFC 4895 §3.2).
#[must_use]
pub const fn may_be_authenticated(chunk: u8) -> bool {
    !matches!(chunk, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE | kind::AUTH)
}
