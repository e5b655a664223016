//! The Data Channel Establishment Protocol (RFC 8832): DATA_CHANNEL_OPEN and DATA_CHANNEL_ACK.

use std::time::Duration;

use rexmit_sctp::Reliability;

/// Message types (RFC 8832 §8.2.1).
const DATA_CHANNEL_ACK: u8 = 0x02;
const DATA_CHANNEL_OPEN: u8 = 0x03;
/// Bytes of an OPEN before its label (RFC 8832 §5.1).
const OPEN_HEADER_BYTES: usize = 12;
/// Channel types (RFC 8832 §8.2.2); this bit makes a type unordered.
const RELIABLE: u8 = 0x00;
const PARTIAL_RELIABLE_REXMIT: u8 = 0x01;
const PARTIAL_RELIABLE_TIMED: u8 = 0x02;
const UNORDERED: u8 = 0x80;

/// A message of the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    Open(Open),
    Ack,
}

/// The properties of the channel to be opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Open {
    pub(crate) is_ordered: bool,
    pub(crate) reliability: Reliability,
    pub(crate) priority: u16,
    pub(crate) label: String,
    pub(crate) protocol: String,
}

/// Why a message cannot be used; its channel is then closed (RFC 8832 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum DcepError {
    #[error("the message is empty")]
    Empty,
    #[error("the message type {0} is unknown")]
    MessageType(u8),
    #[error("the message is truncated")]
    Truncated,
    #[error("there are bytes after the message")]
    TrailingBytes,
    #[error("the channel type {0:#04x} is unknown")]
    ChannelType(u8),
    #[error("the label or the protocol is not UTF-8")]
    NotText,
    #[error("label and protocol are longer than {limit} bytes")]
    TooLong { limit: usize },
}

impl Message {
    /// Reads a message whose label and protocol have at most `limit` bytes together.
    pub(crate) fn parse(bytes: &[u8], limit: usize) -> Result<Self, DcepError> {
        match *bytes {
            [] => Err(DcepError::Empty),
            [DATA_CHANNEL_ACK] => Ok(Self::Ack),
            [DATA_CHANNEL_ACK, ..] => Err(DcepError::TrailingBytes),
            [DATA_CHANNEL_OPEN, ..] => Open::parse(bytes, limit).map(Self::Open),
            [kind, ..] => Err(DcepError::MessageType(kind)),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Ack => vec![DATA_CHANNEL_ACK],
            Self::Open(open) => open.to_bytes(),
        }
    }
}

impl Open {
    fn parse(bytes: &[u8], limit: usize) -> Result<Self, DcepError> {
        let (header, text) =
            bytes.split_first_chunk::<OPEN_HEADER_BYTES>().ok_or(DcepError::Truncated)?;
        let &[_, channel_type, p0, p1, r0, r1, r2, r3, l0, l1, q0, q1] = header;
        let parameter = u32::from_be_bytes([r0, r1, r2, r3]);
        let reliability = match channel_type & !UNORDERED {
            RELIABLE => Reliability::Full,
            PARTIAL_RELIABLE_REXMIT => {
                Reliability::MaxRetransmissions(u16::try_from(parameter).unwrap_or(u16::MAX))
            }
            PARTIAL_RELIABLE_TIMED => {
                Reliability::Timed(Duration::from_millis(u64::from(parameter)))
            }
            _ => return Err(DcepError::ChannelType(channel_type)),
        };
        let label_len = usize::from(u16::from_be_bytes([l0, l1]));
        let protocol_len = usize::from(u16::from_be_bytes([q0, q1]));
        if text.len() < label_len + protocol_len {
            return Err(DcepError::Truncated);
        } else if text.len() > label_len + protocol_len {
            return Err(DcepError::TrailingBytes);
        } else if text.len() > limit {
            return Err(DcepError::TooLong { limit });
        }
        let (label, protocol) = text.split_at(label_len);
        let read = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| DcepError::NotText);
        Ok(Self {
            is_ordered: channel_type & UNORDERED == 0,
            reliability,
            priority: u16::from_be_bytes([p0, p1]),
            label: read(label)?,
            protocol: read(protocol)?,
        })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let (kind, parameter) = match self.reliability {
            Reliability::MaxRetransmissions(most) => (PARTIAL_RELIABLE_REXMIT, u32::from(most)),
            Reliability::Timed(lifetime) => {
                let millis = u32::try_from(lifetime.as_millis()).unwrap_or(u32::MAX);
                (PARTIAL_RELIABLE_TIMED, millis)
            }
            _ => (RELIABLE, 0),
        };
        let kind = if self.is_ordered { kind } else { kind | UNORDERED };
        let len = |text: &str| (text.len() as u16).to_be_bytes();
        [
            &[DATA_CHANNEL_OPEN, kind][..],
            &self.priority.to_be_bytes(),
            &parameter.to_be_bytes(),
            &len(&self.label),
            &len(&self.protocol),
            self.label.as_bytes(),
            self.protocol.as_bytes(),
        ]
        .concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 16;

    /// Derived from the figure in RFC 8832 §5.1: unordered, at most 258 retransmissions, priority 512, label "ab",
    /// protocol "xyz".
    const BYTES: [u8; 17] = [3, 0x81, 2, 0, 0, 0, 1, 2, 0, 2, 0, 3, b'a', b'b', b'x', b'y', b'z'];

    fn open() -> Open {
        Open {
            is_ordered: false,
            reliability: Reliability::MaxRetransmissions(258),
            priority: 512,
            label: "ab".to_owned(),
            protocol: "xyz".to_owned(),
        }
    }

    fn changed(at: usize, value: u8) -> Result<Message, DcepError> {
        let mut bytes = BYTES;
        bytes[at] = value;
        Message::parse(&bytes, LIMIT)
    }

    fn changed_open(at: usize, value: u8) -> Open {
        match changed(at, value) {
            Ok(Message::Open(open)) => open,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_open_has_the_layout_of_the_rfc() {
        assert_eq!(Message::parse(&BYTES, LIMIT), Ok(Message::Open(open())));
        assert_eq!(Message::Open(open()).to_bytes(), BYTES);
        assert_eq!(Message::parse(&[2], LIMIT), Ok(Message::Ack));
        assert_eq!(Message::Ack.to_bytes(), [2]);
    }

    #[test]
    fn each_field_is_where_it_belongs() {
        assert_eq!(changed(0, 1), Err(DcepError::MessageType(1)));
        assert_eq!(changed_open(2, 1), Open { priority: 256, ..open() });
        assert_eq!(changed_open(3, 1), Open { priority: 513, ..open() });
        let retransmissions =
            |most| Open { reliability: Reliability::MaxRetransmissions(most), ..open() };
        assert_eq!(changed_open(7, 5), retransmissions(261));
        // More than the SCTP of anybody counts.
        assert_eq!(changed_open(4, 1), retransmissions(u16::MAX));
        assert_eq!(changed_open(12, b'c'), Open { label: "cb".to_owned(), ..open() });
        assert_eq!(changed_open(16, b'!'), Open { protocol: "xy!".to_owned(), ..open() });
    }

    #[test]
    fn each_channel_type_is_known_and_no_other() {
        let millis = Duration::from_millis(258);
        let cases = [
            (0x00, true, Reliability::Full),
            (0x80, false, Reliability::Full),
            (0x01, true, Reliability::MaxRetransmissions(258)),
            (0x81, false, Reliability::MaxRetransmissions(258)),
            (0x02, true, Reliability::Timed(millis)),
            (0x82, false, Reliability::Timed(millis)),
        ];
        for (kind, is_ordered, reliability) in cases {
            let expected = Open { is_ordered, reliability, ..open() };
            assert_eq!(changed_open(1, kind), expected);
            let again = Message::parse(&Message::Open(expected.clone()).to_bytes(), LIMIT);
            assert_eq!(again, Ok(Message::Open(expected)));
        }
        for kind in (0..=255).filter(|kind| kind & 0x7f > 2) {
            assert_eq!(changed(1, kind), Err(DcepError::ChannelType(kind)));
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        assert_eq!(Message::parse(&[], LIMIT), Err(DcepError::Empty));
        assert_eq!(Message::parse(&[2, 0], LIMIT), Err(DcepError::TrailingBytes));
        for len in 1..BYTES.len() {
            assert_eq!(Message::parse(&BYTES[..len], LIMIT), Err(DcepError::Truncated), "{len}");
        }
        // Lengths of label and protocol.
        for at in [8, 9, 10, 11] {
            assert_eq!(changed(at, 200), Err(DcepError::Truncated), "{at}");
        }
        assert_eq!(changed(9, 1), Err(DcepError::TrailingBytes));
        assert_eq!(changed(12, 0xff), Err(DcepError::NotText));
        assert_eq!(changed(14, 0xff), Err(DcepError::NotText));
        assert_eq!(Message::parse(&BYTES, 4), Err(DcepError::TooLong { limit: 4 }));
        assert!(Message::parse(&BYTES, 5).is_ok());
    }
}
