//! The Internet checksum (RFC 1071) with the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).

use std::net::IpAddr;

/// TCP's IP protocol number.
const TCP: u8 = 6;

/// A one's complement sum under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds `bytes`; an odd number of them is filled up with a zero, so only the last part may
    /// have one.
    #[must_use]
    pub fn add(self, bytes: &[u8]) -> Self {
        // Sixteen-bit words may be added in any width and byte order as long as carries come back
        // in (RFC 1071 §2); 32-bit words in a 64-bit sum need that only at the end.
        let mut sum = self.0;
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            let word = <[u8; 4]>::try_from(word).expect("a chunk of four");
            sum += u64::from(u32::from_ne_bytes(word));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            sum += u64::from(u32::from_ne_bytes(last));
        }
        Self(fold32(sum))
    }

    /// The checksum field that makes the whole sum up to all ones. It is zero over bytes that
    /// contain a right checksum.
    #[must_use]
    pub fn finish(self) -> u16 {
        let sum = fold32(self.0);
        let sum = (sum & 0xFFFF) + (sum >> 16);
        let sum = (sum & 0xFFFF) + (sum >> 16);
        u16::from_be(!(sum as u16))
    }
}

const fn fold32(sum: u64) -> u64 {
    let sum = (sum & 0xFFFF_FFFF) + (sum >> 32);
    (sum & 0xFFFF_FFFF) + (sum >> 32)
}

/// The sum over the pseudo-header of a segment of `len` bytes. Addresses of different families
/// make the sum of no packet.
#[must_use]
pub fn pseudo_header(source: IpAddr, destination: IpAddr, len: usize) -> Sum {
    let address = |sum: Sum, address: IpAddr| match address {
        IpAddr::V4(v4) => sum.add(&v4.octets()),
        IpAddr::V6(v6) => sum.add(&v6.octets()),
    };
    let sum = address(address(Sum::default(), source), destination);
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    sum.add(&len.to_be_bytes()).add(&[0, 0, 0, TCP])
}
