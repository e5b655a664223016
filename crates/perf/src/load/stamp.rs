//! The header of a message of the thin load.

use rexmit_core::Instant;

/// Bytes of a stamp, and so of the smallest message.
pub const STAMP_BYTES: usize = 24;

/// Distinguishes messages of the load from others that arrive at the port.
const MAGIC: [u8; 4] = *b"rxm1";

/// The stamp: connection, sequence number and due time of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The connection's number, from 0.
    pub connection: u32,
    /// The message's sequence number in its connection, from 0.
    pub sequence: u64,
    /// When the message was due: `CLOCK_MONOTONIC` of the sender.
    pub sent: Instant,
}

impl Stamp {
    /// A message of `size` bytes, at least [`STAMP_BYTES`], that begins with the stamp.
    ///
    /// ```
    /// use rexmit_perf::load::stamp::Stamp;
    /// let stamp = Stamp { connection: 3, sequence: 7, sent: rexmit::clock::now() };
    /// let message = stamp.message(100);
    /// assert_eq!(message.len(), 100);
    /// assert_eq!(Stamp::read(&message), Some(stamp));
    /// ```
    #[must_use]
    pub fn message(&self, size: usize) -> Vec<u8> {
        let mut message = Vec::with_capacity(size.max(STAMP_BYTES));
        message.extend_from_slice(&MAGIC);
        message.extend_from_slice(&self.connection.to_be_bytes());
        message.extend_from_slice(&self.sequence.to_be_bytes());
        message.extend_from_slice(&self.sent.as_nanos().to_be_bytes());
        message.resize(size.max(STAMP_BYTES), 0);
        message
    }

    /// The stamp of a message; `None` if it has none.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<Self> {
        let rest = message.strip_prefix(&MAGIC)?;
        let (connection, rest) = rest.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let (sent, _) = rest.split_first_chunk()?;
        Some(Self {
            connection: u32::from_be_bytes(*connection),
            sequence: u64::from_be_bytes(*sequence),
            sent: Instant::from_nanos(u64::from_be_bytes(*sent)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_else_has_no_stamp() {
        let stamp = Stamp { connection: u32::MAX, sequence: 1 << 40, sent: Instant::FAR_FUTURE };
        let message = stamp.message(0);
        assert_eq!(message.len(), STAMP_BYTES);
        assert_eq!(Stamp::read(&message), Some(stamp));
        for end in 0..STAMP_BYTES {
            assert_eq!(Stamp::read(&message[..end]), None, "{end}");
        }
        assert_eq!(Stamp::read(&[0; 100]), None);
    }
}
