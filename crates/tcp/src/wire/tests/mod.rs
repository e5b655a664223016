//! The wire format against captured segments, an independent implementation and itself.

mod captured;
mod checksum;
mod damage;
mod options;
mod round_trips;

use std::net::IpAddr;

use rexmit_core::{Rng, Seed};

use super::{Flags, Header, Options, SackBlocks, Segment, Timestamps};

const V4: (IpAddr, IpAddr) = (IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), LOCAL_V4);
const LOCAL_V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
const V6: (IpAddr, IpAddr) = (
    IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0xFFFF, 0, 0, 0xFFFF, 0, 2)),
);

fn rng(seed: u64) -> Rng {
    Seed::from_u64(seed).rng()
}

/// A header with random values everywhere, whose options fit.
fn random_header(rng: &mut Rng) -> Header {
    let mut sack = SackBlocks::default();
    let is_stamped = rng.chance(0.5);
    for _ in 0..rng.below(if is_stamped { 4 } else { 5 }) {
        sack.push(rng.u32(), rng.u32());
    }
    let is_syn = sack.is_empty() && rng.chance(0.5);
    Header {
        source_port: rng.u32() as u16,
        destination_port: rng.u32() as u16,
        sequence: rng.u32(),
        acknowledgment: rng.u32(),
        flags: Flags(rng.u32() as u8),
        window: rng.u32() as u16,
        urgent_pointer: rng.u32() as u16,
        options: Options {
            mss: is_syn.then(|| rng.u32() as u16),
            window_scale: (is_syn && rng.chance(0.5)).then(|| rng.u32() as u8),
            sack_permitted: is_syn && rng.chance(0.5),
            timestamps: is_stamped.then(|| Timestamps { value: rng.u32(), echo_reply: rng.u32() }),
            sack,
        },
    }
}

fn random_bytes(rng: &mut Rng, most: u64) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(most + 1) as usize];
    rng.fill(&mut bytes);
    bytes
}

fn written(header: &Header, addresses: (IpAddr, IpAddr), payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header.write(addresses, (payload, &[]), &mut out);
    out
}

/// Writes a right checksum into `bytes`.
fn seal((source, destination): (IpAddr, IpAddr), bytes: &mut [u8]) {
    bytes[16..18].fill(0);
    let checksum = super::pseudo_header(source, destination, bytes.len()).with(bytes).finish();
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
}

fn parsed(addresses: (IpAddr, IpAddr), bytes: &[u8]) -> Segment<'_> {
    Segment::parse(addresses.0, addresses.1, bytes).expect("a segment")
}
