//! The requests of `rexmit run` to an engine.

use std::io::{self, IoSlice};

use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, recv, sendmsg, socket_with, sockopt,
};
use rustix::process::geteuid;

use crate::protocol::bytes_at;
use crate::protocol::name::{EngineNumber, of_engine};
use crate::protocol::request::{ANSWER_BYTES, Call, Key, Request};

/// A process that is registered with an engine.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The new key of the process.
    pub key: Key,
    /// Whether the engine was started with the same transports.
    pub has_these_transports: bool,
}

/// Registers this process: the engine runs until it has ended, also as another program. `transports`: the text of
/// [`Transports`](crate::transports::Transports), to be compared with the engine's.
///
/// # Errors
/// [`io::ErrorKind::ConnectionRefused`] if there is no engine of this number, [`io::ErrorKind::PermissionDenied`] if a
/// process of another user has its name, other errors if it has no descriptor left.
pub fn register(engine: EngineNumber, transports: &str) -> io::Result<Registration> {
    let flags = SocketFlags::CLOEXEC;
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&connection, &SocketAddrUnix::new_abstract_name(&of_engine(engine))?)?;
    // Anybody may take an abstract name, and would get all that the program sends.
    let user = sockopt::socket_peercred(&connection)?.uid;
    if !user.is_root() && user != geteuid() {
        let message = format!("user {} has the name of the engine", user.as_raw());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let request = Request { call: Call::Register, socket: 0, first: 1, second: 0 }.to_bytes(0);
    let mut ancillary = SendAncillaryBuffer::default();
    let parts = [IoSlice::new(&request), IoSlice::new(transports.as_bytes())];
    sendmsg(&connection, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
    let mut answer = [0; ANSWER_BYTES + size_of::<Key>() + 1];
    let (length, _) = recv(&connection, &mut answer[..], RecvFlags::empty())?;
    if length < ANSWER_BYTES {
        // It was about to end.
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    match i32::from_ne_bytes(bytes_at(&answer, 0)) {
        0 => Ok(Registration {
            key: Key::from_ne_bytes(bytes_at(&answer, ANSWER_BYTES)),
            has_these_transports: answer[ANSWER_BYTES + size_of::<Key>()] == 0,
        }),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
