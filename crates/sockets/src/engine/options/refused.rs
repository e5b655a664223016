//! Options of extensions that are off: what a Linux kernel answers to them with its default settings, which switch off
//! authentication (RFC 4895), address changes (RFC 5061) and interleaving (RFC 8260).

use libc::{EACCES, EINVAL, EOPNOTSUPP, EPERM};

use super::super::Failure;
use super::super::option_names as name;

/// Fails if setting this option, to a value of so many bytes, is refused.
pub(super) fn check_set(option: i32, length: usize) -> Result<(), Failure> {
    let unless_short = |error| if length < 8 { EINVAL } else { error };
    Err(Failure(match option {
        name::SET_PEER_PRIMARY => EPERM,
        name::AUTH_CHUNK | name::HMAC_IDENT => EACCES,
        name::AUTH_KEY
        | name::AUTH_ACTIVE_KEY
        | name::AUTH_DELETE_KEY
        | name::AUTH_DEACTIVATE_KEY => unless_short(EACCES),
        name::INTERLEAVING => unless_short(EPERM),
        _ => return Ok(()),
    }))
}

/// Fails if reading this option into a buffer of so many bytes is refused. `has_association`: whether it names one.
pub(super) fn check_read(option: i32, length: usize, has_association: bool) -> Result<(), Failure> {
    Err(Failure(match option {
        name::AUTH_CHUNK | name::AUTH_KEY | name::AUTH_DELETE_KEY | name::AUTH_DEACTIVATE_KEY => {
            EOPNOTSUPP
        }
        name::PEER_AUTH_CHUNKS if !has_association => EINVAL,
        name::AUTH_ACTIVE_KEY | name::PEER_AUTH_CHUNKS | name::LOCAL_AUTH_CHUNKS if length < 8 => {
            EINVAL
        }
        name::HMAC_IDENT
        | name::AUTH_ACTIVE_KEY
        | name::PEER_AUTH_CHUNKS
        | name::LOCAL_AUTH_CHUNKS => EACCES,
        _ => return Ok(()),
    }))
}
