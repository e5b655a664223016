//! Abstract names of UNIX sockets: of an engine, and of a program's end of a socket pair.

use super::Style;

const ENGINE: &[u8] = b"rexmit-run";
const SOCKET: &[u8] = b"rexmit-sctp-socket";

/// The number of an engine: the user's number and the UDP port, or random bits.
pub type EngineNumber = u64;

/// Bytes of an engine's name.
pub const ENGINE_NAME_BYTES: usize = ENGINE.len() + 8;

/// The name at which an engine listens for requests, without the leading zero byte.
#[must_use]
pub fn of_engine(engine: EngineNumber) -> [u8; ENGINE_NAME_BYTES] {
    let mut bytes = [0; ENGINE_NAME_BYTES];
    let (prefix, number) = bytes.split_at_mut(ENGINE.len());
    prefix.copy_from_slice(ENGINE);
    number.copy_from_slice(&engine.to_ne_bytes());
    bytes
}

/// The socket behind a program's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketName {
    /// The engine of the socket.
    pub engine: EngineNumber,
    /// The socket's number in the engine. It is random, so that no number is used twice.
    pub socket: u64,
    /// The style of the socket: one-to-one or one-to-many.
    pub style: Style,
    /// Whether it is of the family `AF_INET6`.
    pub is_ipv6: bool,
}

/// Bytes of a socket's name.
pub const SOCKET_NAME_BYTES: usize = SOCKET.len() + 18;

impl SocketName {
    /// The name of a program's end of a socket pair, without the leading zero byte.
    #[must_use]
    pub fn to_bytes(self) -> [u8; SOCKET_NAME_BYTES] {
        let mut bytes = [0; SOCKET_NAME_BYTES];
        let (prefix, rest) = bytes.split_at_mut(SOCKET.len());
        prefix.copy_from_slice(SOCKET);
        rest[..8].copy_from_slice(&self.engine.to_ne_bytes());
        rest[8..16].copy_from_slice(&self.socket.to_ne_bytes());
        rest[16] = self.style as u8;
        rest[17] = u8::from(self.is_ipv6);
        bytes
    }

    /// The socket of this name, if it is one.
    #[must_use]
    pub fn parse(name: &[u8]) -> Option<Self> {
        let rest: &[u8; 18] = name.strip_prefix(SOCKET)?.try_into().ok()?;
        Some(Self {
            engine: u64::from_ne_bytes(super::bytes_at(rest, 0)),
            socket: u64::from_ne_bytes(super::bytes_at(rest, 8)),
            style: match rest[16] {
                0 => Style::OneToOne,
                1 => Style::OneToMany,
                _ => Style::PeeledOff,
            },
            is_ipv6: rest[17] != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_was_written() {
        let name =
            SocketName { engine: 7, socket: u64::MAX - 1, style: Style::OneToMany, is_ipv6: true };
        for style in [Style::OneToOne, Style::OneToMany, Style::PeeledOff] {
            let name = SocketName { style, ..name };
            assert_eq!(SocketName::parse(&name.to_bytes()), Some(name));
        }
        assert_eq!(SocketName::parse(&of_engine(7)), None);
        assert_eq!(SocketName::parse(&name.to_bytes()[1..]), None);
    }
}
