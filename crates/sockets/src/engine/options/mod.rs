//! Socket options: the table of `docs/preload.md`. Other options fail with `ENOPROTOOPT`, as in a kernel that does not
//! know them. [`set`] has those that are set, [`read`] those that are read, [`refused`] those of extensions that are off.

mod read;
mod refused;
mod set;
mod statistics;
mod streams;

use libc::EINVAL;

use super::{Failure, option_names as name};
use crate::protocol::bytes_at;

/// Options that are only stored and read back: the requested behaviour is always active, or needs no action.
const KEPT: &[(i32, u32)] = &[
    (name::NO_DELAY, 0),
    (name::AUTO_CLOSE, 0),
    (name::ADAPTATION_LAYER, 0),
    (name::DISABLE_FRAGMENTS, 0),
    (name::MAPPED_V4, 1),
    (name::FRAGMENT_INTERLEAVE, 0),
    (name::PARTIAL_DELIVERY_POINT, 0),
    (name::AUTO_ASCONF, 0),
    (name::RECV_RCVINFO, 0),
    (name::RECV_NXTINFO, 0),
    (name::REUSE_PORT, 0),
];

/// `sctp_udpencaps`: an association, an address with the alignment of a pointer, and a port.
const UDP_ENCAPS_BYTES: usize = 144;
const UDP_PORT_AT: usize = 136;

fn int(value: &[u8]) -> Result<u32, Failure> {
    if value.len() < 4 {
        return Err(Failure(EINVAL));
    }
    Ok(u32::from_ne_bytes(bytes_at(value, 0)))
}

/// A value that is at least as long as its structure.
fn sized(value: &[u8], length: usize) -> Result<&[u8], Failure> {
    value.get(..length).ok_or(Failure(EINVAL))
}

fn u32_at(value: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes_at(value, at))
}

fn u16_at(value: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes_at(value, at))
}

/// Reads an `sctp_assoc_value`, or the `int` that the option took before.
fn assoc_value(value: &[u8]) -> Result<u32, Failure> {
    if value.len() >= 8 { Ok(u32_at(value, 4)) } else { int(value) }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}
