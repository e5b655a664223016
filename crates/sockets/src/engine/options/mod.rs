//! Socket options: the table of `docs/preload.md`. Other options fail with `ENOPROTOOPT`, as in a kernel that does not
//! know them. [`set`] has those that are set, [`read`] those that are read, [`refused`] those of extensions that are off.

mod read;
mod refused;
mod set;
mod statistics;
mod streams;

use libc::EINVAL;

use super::socket::Socket;
use super::{Failure, option_names as name};
use crate::protocol::bytes_at;

/// The offset of the association's number in the value of an option; `None` for options without it.
const fn association_at(option: i32, length: usize) -> Option<usize> {
    match option {
        name::RTO_INFO
        | name::ASSOC_INFO
        | name::PRIMARY_ADDR
        | name::PEER_ADDR_PARAMS
        | name::STATUS
        | name::PEER_ADDR_INFO
        | name::DELAYED_SACK
        | name::AUTH_ACTIVE_KEY
        | name::PEER_AUTH_CHUNKS
        | name::LOCAL_AUTH_CHUNKS
        | name::AUTH_DEACTIVATE_KEY
        | name::EVENT
        | name::RECONFIG_SUPPORTED
        | name::ENABLE_RESET
        | name::RESET_STREAMS
        | name::RESET_ASSOC
        | name::ADD_STREAMS
        | name::INTERLEAVING
        | name::REMOTE_UDP_PORT => Some(0),
        name::MAX_SEG | name::CONTEXT | name::MAX_BURST if length >= 8 => Some(0),
        name::DEFAULT_SEND_PARAM => Some(28),
        name::DEFAULT_SNDINFO => Some(12),
        _ => None,
    }
}

/// The number in the value of an option that does not name an association of this socket, and so must be that of all future
/// ones or, for some options that are set, of all. One-to-one sockets do not look at it.
fn other_number(socket: &Socket, option: i32, value: &[u8]) -> Option<u32> {
    let at = association_at(option, value.len()).filter(|_| !socket.is_one_to_one())?;
    let number = value.get(at..at + 4)?;
    Some(u32_at(number, 0)).filter(|number| !socket.associations.contains(number))
}

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
