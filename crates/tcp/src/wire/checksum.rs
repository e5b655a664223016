//! The Internet checksum (RFC 1071) with the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).

use std::net::{IpAddr, Ipv6Addr};

/// TCP's IP protocol number.
const TCP: u8 = 6;

/// A one's complement sum that is being computed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds `bytes`. An odd number is padded with a zero, so that only the last part may have an odd length.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        // Sixteen-bit words may be added in any width and byte order as long as carries come back
        // in (RFC 1071 §2); 32-bit words in a 64-bit sum need that only at the end. They are added
        // in pairs: the sum of the pairs, carries out of it ignored, less that of the upper halves
        // in their place is the sum of the lower halves. The compiler makes faster code of this
        // plain loop than of sums side by side.
        let (pairs, rest) = bytes.as_chunks();
        let (mut sum, mut upper) = (0_u64, 0);
        for &pair in pairs {
            let pair = u64::from_ne_bytes(pair);
            sum = sum.wrapping_add(pair);
            upper += pair >> 32;
        }
        let lower = sum.wrapping_sub(upper << 32);
        Self(fold32(self.0 + lower + upper + sum_of_rest(rest)))
    }

    /// Adds a word of 32 bits.
    const fn with_word(self, word: u32) -> Self {
        Self(self.0 + word.to_be() as u64)
    }

    fn with_address(self, address: &IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => self.with_word(v4.to_bits()),
            IpAddr::V6(v6) => self.with_v6(v6),
        }
    }

    /// Adds an IPv6 address. A separate function: otherwise the compiler would read the four bytes of an IPv4 address
    /// as a part of sixteen, which stalls the processor (failed store forwarding).
    #[inline(never)]
    fn with_v6(self, address: &Ipv6Addr) -> Self {
        self.with(&address.octets())
    }

    /// Adds the length of a segment, as in the pseudo-header.
    pub(super) fn with_len(self, len: usize) -> Self {
        self.with_word(u32::try_from(len).unwrap_or(u32::MAX))
    }

    /// The checksum: the complement of the sum. It is zero over bytes that contain a correct checksum.
    #[must_use]
    pub fn finish(self) -> u16 {
        let sum = fold32(self.0);
        let sum = (sum & 0xFFFF) + (sum >> 16);
        let sum = (sum & 0xFFFF) + (sum >> 16);
        u16::from_be(!(sum as u16))
    }
}

/// The sum of less than a pair.
fn sum_of_rest(bytes: &[u8]) -> u64 {
    if bytes.is_empty() {
        return 0;
    }
    let mut last = [0; 8];
    last[..bytes.len()].copy_from_slice(bytes);
    let pair = u64::from_ne_bytes(last);
    (pair & 0xFFFF_FFFF) + (pair >> 32)
}

const fn fold32(sum: u64) -> u64 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    (sum & 0xFFFF_FFFF) + (sum >> 32)
}

/// The sum over the pseudo-header of a segment of `len` bytes. Both addresses must be of one family;
/// otherwise the result matches no packet.
#[must_use]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, len: usize) -> Sum {
    between(&source, &destination).with_len(len)
}

/// The common part of the pseudo-headers of all segments between two addresses, in either
/// direction.
pub(crate) fn between(one: &IpAddr, other: &IpAddr) -> Sum {
    Sum::default().with_word(TCP.into()).with_address(one).with_address(other)
}
