//! Socket options: the table of `docs/preload.md`. Other options fail with `ENOPROTOOPT`, as in a kernel that
//! does not know it. [`set`] has those that are set, [`read`] those that are read.

mod read;
mod set;

use libc::EINVAL;

use super::Failure;
use crate::protocol::bytes_at;

/// The options that are served, by the numbers of Linux's `linux/sctp.h`.
pub(super) mod name {
    pub(in super::super) const RTO_INFO: i32 = 0;
    pub(in super::super) const ASSOC_INFO: i32 = 1;
    pub(in super::super) const INIT_MSG: i32 = 2;
    pub(in super::super) const NO_DELAY: i32 = 3;
    pub(in super::super) const AUTO_CLOSE: i32 = 4;
    pub(in super::super) const PRIMARY_ADDR: i32 = 6;
    pub(in super::super) const ADAPTATION_LAYER: i32 = 7;
    pub(in super::super) const DISABLE_FRAGMENTS: i32 = 8;
    pub(in super::super) const PEER_ADDR_PARAMS: i32 = 9;
    pub(in super::super) const DEFAULT_SEND_PARAM: i32 = 10;
    pub(in super::super) const EVENTS: i32 = 11;
    pub(in super::super) const MAPPED_V4: i32 = 12;
    pub(in super::super) const MAX_SEG: i32 = 13;
    pub(in super::super) const STATUS: i32 = 14;
    pub(in super::super) const PEER_ADDR_INFO: i32 = 15;
    pub(in super::super) const DELAYED_SACK: i32 = 16;
    pub(in super::super) const CONTEXT: i32 = 17;
    pub(in super::super) const FRAGMENT_INTERLEAVE: i32 = 18;
    pub(in super::super) const PARTIAL_DELIVERY_POINT: i32 = 19;
    pub(in super::super) const MAX_BURST: i32 = 20;
    pub(in super::super) const ASSOC_NUMBER: i32 = 28;
    pub(in super::super) const ASSOC_IDS: i32 = 29;
    pub(in super::super) const AUTO_ASCONF: i32 = 30;
    pub(in super::super) const RECV_RCVINFO: i32 = 32;
    pub(in super::super) const RECV_NXTINFO: i32 = 33;
    pub(in super::super) const DEFAULT_SNDINFO: i32 = 34;
    pub(in super::super) const REUSE_PORT: i32 = 36;
    pub(in super::super) const PEER_ADDRS: i32 = 108;
    pub(in super::super) const LOCAL_ADDRS: i32 = 109;
    pub(in super::super) const EVENT: i32 = 127;
    pub(in super::super) const REMOTE_UDP_PORT: i32 = 132;
}

/// Options that are kept and read back: what they ask for is so anyway, or needs nothing.
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

/// `sctp_assoc_value`, or the `int` that it was before.
fn assoc_value(value: &[u8]) -> Result<u32, Failure> {
    if value.len() >= 8 { Ok(u32_at(value, 4)) } else { int(value) }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}
