//! Requests to the engine: one per connection to its abstract name, a message each way.
//!
//! A request is a header and the program's data (addresses, the value of an option); the answer is an `errno` or 0,
//! followed by a value. It may have a descriptor.

use super::bytes_at;

/// Bytes of a request's header.
pub const REQUEST_BYTES: usize = 32;
/// The largest body of a request and of an answer: the largest value of an option that is read.
pub const MAX_BODY_BYTES: usize = 8192;
/// Bytes before the value of an answer.
pub const ANSWER_BYTES: usize = 8;

/// A call. The numbers in [`Request::first`] and [`Request::second`] are named in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Registers the calling process as a user of the engine, which runs until all of its users have ended. The value of
    /// the answer is the [`Key`] of the request, or a new one if the request had 0 (1: and a byte, 1 if the body, the text
    /// of [`Transports`](crate::transports::Transports), differs from the engine's).
    Register,
    /// A new socket (`domain`, `type`); the body is the UDP port of peers and the name of the profile.
    Socket,
    /// Bind to the addresses in the body (1: as `sctp_bindx` adds them, 2: as it removes them).
    Bind,
    /// Listen (backlog).
    Listen,
    /// Connect to the addresses in the body (1: answer at once).
    Connect,
    /// Set an option (level, name). The value of the answer is the socket's [`Marks`](super::marks::Marks).
    SetOption,
    /// Read an option (level, name); the body is the content of the program's buffer.
    Option,
    /// The local address, or the peer's (1).
    Name,
    /// Whether the socket listens or is connected: a [`State`] as 4 bytes.
    State,
    /// Create a socket for one association (its number).
    PeelOff,
    /// Check that the socket has an association: with this number, or with the peer at the address in the body; fails if not.
    Association,
    /// The largest payload that is sent in one packet, as 4 bytes.
    Fragment,
    /// A descriptor of the socket was closed: wait until its association has ended, if it was the last.
    Linger,
}

const CALLS: [Call; 13] = [
    Call::Register,
    Call::Socket,
    Call::Bind,
    Call::Listen,
    Call::Connect,
    Call::SetOption,
    Call::Option,
    Call::Name,
    Call::State,
    Call::PeelOff,
    Call::Association,
    Call::Fragment,
    Call::Linger,
];

/// A random number for the processes of one `rexmit run`, by which they have access to their sockets as another user,
/// too.
pub type Key = u64;

/// The header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The call.
    pub call: Call,
    /// The number of the socket; 0 for calls without one.
    pub socket: u64,
    /// See [`Call`].
    pub first: i32,
    /// See [`Call`].
    pub second: i32,
}

impl Request {
    /// The header as bytes, with the key of the program or 0.
    #[must_use]
    pub fn to_bytes(&self, key: Key) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[0] = self.call as u8;
        bytes[8..16].copy_from_slice(&self.socket.to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.first.to_ne_bytes());
        bytes[20..24].copy_from_slice(&self.second.to_ne_bytes());
        bytes[24..32].copy_from_slice(&key.to_ne_bytes());
        bytes
    }

    /// Parses the header at the start of `bytes`, with its key, and the body.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, Key, &[u8])> {
        let (header, body) = bytes.split_at_checked(REQUEST_BYTES)?;
        let request = Self {
            call: *CALLS.get(usize::from(header[0]))?,
            socket: u64::from_ne_bytes(bytes_at(header, 8)),
            first: i32::from_ne_bytes(bytes_at(header, 16)),
            second: i32::from_ne_bytes(bytes_at(header, 20)),
        };
        Some((request, Key::from_ne_bytes(bytes_at(header, 24)), body))
    }
}

/// The state of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Neither listening nor connected.
    Idle,
    /// Listening.
    Listening,
    /// A connection is being set up.
    Connecting,
    /// The socket has an association or, if it is a one-to-one socket, had one.
    Connected,
}

impl State {
    /// The state of this number.
    #[must_use]
    pub const fn of(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Idle),
            1 => Some(Self::Listening),
            2 => Some(Self::Connecting),
            3 => Some(Self::Connected),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for call in CALLS {
            let request = Request { call, socket: 1 << 60, first: -1, second: 2 };
            let bytes = [&request.to_bytes(7)[..], b"body"].concat();
            assert_eq!(Request::parse(&bytes), Some((request, 7, &b"body"[..])));
        }
        assert_eq!(Request::parse(&[13; REQUEST_BYTES]), None);
        assert_eq!(Request::parse(&[0; REQUEST_BYTES - 1]), None);
    }
}
