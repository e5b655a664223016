//! Options of a socket that the library needs to know without asking the engine.
//!
//! Every process that has the descriptor must see them, so they are kept with the program's end of the pair, as its
//! `SO_RCVLOWAT`: the kernel does not use that number for a UNIX socket of sequenced packets.

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whether received messages have `SCTP_SNDRCV` (the event `sctp_data_io_event`, RFC 6458 §5.3.2).
    pub has_sndrcv: bool,
    /// Whether received messages have `SCTP_RCVINFO` (the option `SCTP_RECVRCVINFO`, RFC 6458 §8.1.29).
    pub has_rcvinfo: bool,
    /// Whether received messages have `SCTP_NXTINFO` (the option `SCTP_RECVNXTINFO`, RFC 6458 §8.1.30).
    pub has_nxtinfo: bool,
    /// Whether messages that need several packets are refused (`SCTP_DISABLE_FRAGMENTS`, RFC 6458 §8.1.11).
    pub is_unfragmented: bool,
    /// Whether IPv4 is refused (`IPV6_V6ONLY`).
    pub is_ipv6_only: bool,
    /// Whether the association had ended before the socket was accepted. Set by the library.
    pub was_over: bool,
}

impl Marks {
    /// The number that the kernel keeps: at least 1, which is its default.
    #[must_use]
    pub fn to_number(self) -> u32 {
        let all = [
            self.has_sndrcv,
            self.has_rcvinfo,
            self.has_nxtinfo,
            self.is_unfragmented,
            self.is_ipv6_only,
            self.was_over,
        ];
        1 + all.iter().rev().fold(0, |sum, mark| sum << 1 | u32::from(*mark))
    }

    /// The marks of that number.
    #[must_use]
    pub const fn of_number(number: u32) -> Self {
        let bits = number.saturating_sub(1);
        Self {
            has_sndrcv: bits & 1 != 0,
            has_rcvinfo: bits & 2 != 0,
            has_nxtinfo: bits & 4 != 0,
            is_unfragmented: bits & 8 != 0,
            is_ipv6_only: bits & 16 != 0,
            was_over: bits & 32 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_as_they_were_written() {
        assert_eq!(Marks::default().to_number(), 1);
        for number in 1..=64 {
            assert_eq!(Marks::of_number(number).to_number(), number);
        }
    }
}
