//! The protocol between the preloaded library and the engine. Everything is native-endian: both run on one machine.
//!
//! [`frame`]: the header of a message in a socket pair. [`request`]: calls that a socket pair cannot carry.
//! [`name`]: the abstract names by which descriptors and engines are recognised. [`marks`]: options that the library
//! itself acts upon. [`address`]: `sockaddr`s.

pub mod address;
pub mod frame;
pub mod marks;
pub mod name;
pub mod request;

use std::ffi::CStr;

/// `IPPROTO_SCTP`, also the level of its socket options.
pub const IPPROTO_SCTP: i32 = 132;

/// The environment variable with the engine's number, in hexadecimal digits.
pub const ENGINE_VARIABLE: &CStr = c"REXMIT_RUN_ENGINE";
/// The environment variable with the program's [`Key`](request::Key), in hexadecimal digits.
pub const KEY_VARIABLE: &CStr = c"REXMIT_RUN_KEY";
/// The environment variable with the recovery profile of the program's sockets.
pub const PROFILE_VARIABLE: &CStr = c"REXMIT_RUN_PROFILE";
/// The environment variable with the UDP port of the program's peers.
pub const PEER_PORT_VARIABLE: &CStr = c"REXMIT_RUN_PEER_UDP_PORT";
/// The environment variable that is set if the program's TCP sockets are replaced by SCTP.
pub const TCP_VARIABLE: &CStr = c"REXMIT_RUN_TCP_AS_SCTP";

/// The styles of sockets (RFC 6458 §3, §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `SOCK_STREAM`: one association, or a listener.
    OneToOne,
    /// `SOCK_SEQPACKET`: any number of associations.
    OneToMany,
    /// One association of a one-to-many socket (RFC 6458 §9.2): one-to-one, but its type remains `SOCK_SEQPACKET`, and
    /// a message may end the association.
    PeeledOff,
}

impl Style {
    /// Whether sockets of this style have one association at most.
    #[must_use]
    pub const fn is_one_to_one(self) -> bool {
        matches!(self, Self::OneToOne | Self::PeeledOff)
    }
}

/// The `N` bytes at `at`; zeros beyond the end.
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let part = bytes.get(at..at + N).and_then(|part| part.try_into().ok());
    part.unwrap_or([0; N])
}
