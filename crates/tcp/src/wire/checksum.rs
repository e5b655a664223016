//! The Internet checksum (RFC 1071) with the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1).

use std::net::IpAddr;

/// TCP's IP protocol number.
const TCP: u8 = 6;
/// Sums that are made side by side.
const LANES: usize = 8;

/// A one's complement sum under way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds `bytes`; an odd number of them is filled up with a zero, so only the last part may
    /// have one.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        // Sixteen-bit words may be added in any width and byte order as long as carries come back
        // in (RFC 1071 §2); 32-bit words in a 64-bit sum need that only at the end. Eight sums that
        // do not wait for each other are what the compiler makes the fastest code of.
        let mut lanes = [0; LANES];
        let mut blocks = bytes.chunks_exact(LANES * 4);
        for block in &mut blocks {
            for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
                *lane += word_of(word);
            }
        }
        let mut sum = self.0 + lanes.iter().sum::<u64>();
        let mut words = blocks.remainder().chunks_exact(4);
        for word in &mut words {
            sum += word_of(word);
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut last = [0; 4];
            last[..rest.len()].copy_from_slice(rest);
            sum += word_of(&last);
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

fn word_of(four: &[u8]) -> u64 {
    u32::from_ne_bytes(four.try_into().expect("a chunk of four")).into()
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
        IpAddr::V4(v4) => sum.with(&v4.octets()),
        IpAddr::V6(v6) => sum.with(&v6.octets()),
    };
    let sum = address(address(Sum::default(), source), destination);
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    sum.with(&len.to_be_bytes()).with(&[0, 0, 0, TCP])
}
