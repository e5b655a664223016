//! The checksum against the definition in RFC 1071, and against another implementation.

use etherparse::TcpHeader;

use super::*;
use crate::wire::{Sum, pseudo_header};

/// Adds word by word in network order, with each carry at once (RFC 1071 §1).
fn slow(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
    let sum = bytes.chunks(2).map(word).fold(0u16, |sum, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    });
    !sum
}

#[test]
fn agrees_with_the_definition_at_every_length() {
    let mut rng = rng(1);
    let mut bytes = vec![0; 1600];
    rng.fill(&mut bytes);
    for len in 0..bytes.len() {
        assert_eq!(Sum::default().with(&bytes[..len]).finish(), slow(&bytes[..len]), "{len}");
    }
}

#[test]
fn carries_of_the_largest_words_are_added() {
    for len in [1, 2, 3, 4, 31, 32, 33, 65_535] {
        let bytes = vec![0xFF; len];
        assert_eq!(Sum::default().with(&bytes).finish(), slow(&bytes), "{len}");
    }
}

#[test]
fn may_be_added_in_parts_of_even_lengths() {
    let mut rng = rng(2);
    let mut bytes = vec![0; 200];
    rng.fill(&mut bytes);
    for first in (0..=200).step_by(2) {
        let (head, tail) = bytes.split_at(first);
        assert_eq!(Sum::default().with(head).with(tail).finish(), slow(&bytes));
    }
}

#[test]
fn agrees_with_etherparse_over_both_families() {
    let mut rng = rng(3);
    for _ in 0..500 {
        let header = random_header(&mut rng);
        let payload = random_bytes(&mut rng, 100);
        for addresses in [V4, V6] {
            let bytes = written(&header, addresses, &payload);
            let (theirs, _) = TcpHeader::from_slice(&bytes).expect("a header");
            let checksum = match addresses {
                (IpAddr::V4(from), IpAddr::V4(to)) => {
                    theirs.calc_checksum_ipv4_raw(from.octets(), to.octets(), &payload)
                }
                (IpAddr::V6(from), IpAddr::V6(to)) => {
                    theirs.calc_checksum_ipv6_raw(from.octets(), to.octets(), &payload)
                }
                _ => unreachable!("of one family"),
            };
            assert_eq!(checksum.ok(), Some(theirs.checksum));
            assert_eq!(
                (theirs.source_port, theirs.sequence_number),
                (header.source_port, header.sequence)
            );
        }
    }
}

#[test]
fn covers_the_addresses_and_the_length() {
    let base = pseudo_header(V4.0, V4.1, 20).finish();
    assert_ne!(pseudo_header(V4.0, V4.0, 20).finish(), base);
    assert_ne!(pseudo_header(V4.0, V4.1, 21).finish(), base);
    // TCP's own number: RFC 9293 §3.1.
    let bytes = [192, 0, 2, 1, 192, 0, 2, 2, 0, 6, 0, 20];
    assert_eq!(base, slow(&bytes));
}
