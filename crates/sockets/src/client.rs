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

/// Registers this process: the engine runs until it has ended, also as another program. Returns a new key.
///
/// # Errors
/// [`io::ErrorKind::ConnectionRefused`] if there is no engine of this number, [`io::ErrorKind::PermissionDenied`] if a
/// process of another user has its name, other errors if it has no descriptor left.
pub fn register(engine: EngineNumber) -> io::Result<Key> {
    let flags = SocketFlags::CLOEXEC;
    let connection = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&connection, &SocketAddrUnix::new_abstract_name(&of_engine(engine))?)?;
    // Anybody may take an abstract name, and would get all that the program sends.
    let user = sockopt::socket_peercred(&connection)?.uid;
    if !user.is_root() && user != geteuid() {
        let message = format!("user {} has the name of the engine", user.as_raw());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let request = Request { call: Call::Register, socket: 0, first: 0, second: 0 }.to_bytes(0);
    let mut ancillary = SendAncillaryBuffer::default();
    sendmsg(&connection, &[IoSlice::new(&request)], &mut ancillary, SendFlags::NOSIGNAL)?;
    let mut answer = [0; ANSWER_BYTES + size_of::<Key>()];
    let (length, _) = recv(&connection, &mut answer[..], RecvFlags::empty())?;
    if length < ANSWER_BYTES {
        // It was about to end.
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    match i32::from_ne_bytes(bytes_at(&answer, 0)) {
        0 => Ok(Key::from_ne_bytes(bytes_at(&answer, ANSWER_BYTES))),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
