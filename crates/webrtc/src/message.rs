//! Messages of channels, and how SCTP carries them (RFC 8831 §6.6, §8).

use bytes::Bytes;

/// Payload protocol identifiers (RFC 8831 §8).
pub(crate) const PPID_DCEP: u32 = 50;
const PPID_TEXT: u32 = 51;
const PPID_BINARY: u32 = 53;
const PPID_TEXT_EMPTY: u32 = 56;
const PPID_BINARY_EMPTY: u32 = 57;

/// A message of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Text in UTF-8, a string in JavaScript. Received text is not checked to be UTF-8: see
    /// [`as_text`](Self::as_text).
    Text(Bytes),
    /// Bytes, an `ArrayBuffer` or a `Blob` in JavaScript.
    Binary(Bytes),
}

impl Message {
    /// A text message.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into().into_bytes().into())
    }

    /// A binary message.
    #[must_use]
    pub fn binary(bytes: impl Into<Bytes>) -> Self {
        Self::Binary(bytes.into())
    }

    /// The bytes of the message.
    #[must_use]
    pub const fn payload(&self) -> &Bytes {
        match self {
            Self::Text(payload) | Self::Binary(payload) => payload,
        }
    }

    /// The text; `None` if the message is binary or not UTF-8.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(payload) => str::from_utf8(payload).ok(),
            Self::Binary(_) => None,
        }
    }

    /// The payload protocol identifier and the content of its SCTP message. SCTP has no empty messages: one
    /// byte represents an empty one (RFC 8831 §6.6).
    pub(crate) fn to_sctp(&self) -> (u32, Bytes) {
        let (full, empty) = match self {
            Self::Text(_) => (PPID_TEXT, PPID_TEXT_EMPTY),
            Self::Binary(_) => (PPID_BINARY, PPID_BINARY_EMPTY),
        };
        if self.payload().is_empty() {
            (empty, Bytes::from_static(&[0]))
        } else {
            (full, self.payload().clone())
        }
    }

    /// Reads an SCTP message; `None` if it is not of a channel's content.
    pub(crate) fn from_sctp(ppid: u32, payload: Bytes) -> Option<Self> {
        match ppid {
            PPID_TEXT => Some(Self::Text(payload)),
            PPID_BINARY => Some(Self::Binary(payload)),
            PPID_TEXT_EMPTY => Some(Self::Text(Bytes::new())),
            PPID_BINARY_EMPTY => Some(Self::Binary(Bytes::new())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_identifiers() {
        let cases = [
            (Message::text("a"), 51, &b"a"[..]),
            (Message::text(""), 56, &[0]),
            (Message::binary(&b"a"[..]), 53, b"a"),
            (Message::binary(&b""[..]), 57, &[0]),
        ];
        for (message, ppid, payload) in cases {
            assert_eq!(message.to_sctp(), (ppid, Bytes::copy_from_slice(payload)));
            let again = Message::from_sctp(ppid, Bytes::copy_from_slice(payload));
            assert_eq!(again, Some(message));
        }
        // Deprecated ones (52, 54), DCEP and others.
        for ppid in [0, 50, 52, 54, 55, 58] {
            assert_eq!(Message::from_sctp(ppid, Bytes::new()), None);
        }
    }

    #[test]
    fn only_utf8_is_text() {
        assert_eq!(Message::text("é").as_text(), Some("é"));
        assert_eq!(Message::Text(Bytes::from_static(b"\xff")).as_text(), None);
        assert_eq!(Message::binary(&b"a"[..]).as_text(), None);
    }
}
