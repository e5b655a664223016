//! Requests to the engine.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, iovec};
use rexmit_sockets::protocol::name::{EngineNumber, SocketName, of_engine};
use rexmit_sockets::protocol::request::{ANSWER_BYTES, Call, Key, Request};
use rexmit_sockets::protocol::{
    ENGINE_VARIABLE, KEY_VARIABLE, PEER_PORT_VARIABLE, PROFILE_VARIABLE, TCP_VARIABLE,
};

use crate::raw;
use crate::{Errno, Outcome};

/// An answer: the length of its value, and the descriptor that came with it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) length: usize,
    pub(crate) descriptor: Option<c_int>,
}

/// A connection, which is closed when this is dropped.
struct Connection(c_int);

impl Drop for Connection {
    fn drop(&mut self) {
        raw::close(self.0);
    }
}

/// The time limit of a call. With a limit, a signal ends the call, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    UntilAnswered,
    /// The send timeout of this socket.
    AsSend(c_int),
    /// Negative: no limit.
    Seconds(c_int),
}

/// Sends a request and receives its answer, whose value goes to `value`.
pub(crate) fn ask(
    engine: EngineNumber,
    request: &Request,
    body: iovec,
    value: iovec,
    wait: Wait,
) -> Outcome<Answer> {
    // Without its engine a socket is as one without a network.
    let connection = Connection(raw::connect_to(&of_engine(engine)).map_err(without_engine)?);
    match wait {
        Wait::AsSend(like) => raw::copy_send_timeout(like, connection.0),
        Wait::Seconds(seconds) if seconds > 0 => raw::set_receive_timeout(connection.0, seconds),
        Wait::UntilAnswered | Wait::Seconds(_) => {}
    }
    let header = request.to_bytes(key());
    let parts = [raw::own_part(&header), body];
    raw::send_parts(connection.0, &parts, libc::MSG_NOSIGNAL).map_err(without_engine)?;
    let mut header = [0; ANSWER_BYTES];
    let (length, descriptor) = loop {
        let parts = [raw::own_part_mut(&mut header), value];
        match raw::receive_parts(connection.0, &parts, libc::MSG_CMSG_CLOEXEC) {
            Err(Errno(libc::EINTR)) if wait == Wait::UntilAnswered => {}
            Err(error) => {
                raw::end(connection.0);
                let is_late = error == Errno(libc::EAGAIN);
                return Err(if is_late { Errno(libc::EINPROGRESS) } else { without_engine(error) });
            }
            Ok(received) => break received,
        }
    };
    if length < ANSWER_BYTES {
        return Err(Errno(libc::ENETDOWN));
    }
    let error = i32::from_ne_bytes(header[..4].try_into().unwrap_or_default());
    if error != 0 {
        return Err(Errno(error));
    }
    Ok(Answer { length: length - ANSWER_BYTES, descriptor })
}

/// The error of a call whose connection to the engine has failed, because the engine has ended.
fn without_engine(error: Errno) -> Errno {
    match error {
        Errno(libc::ECONNREFUSED | libc::ECONNRESET | libc::EPIPE) => Errno(libc::ENETDOWN),
        other => other,
    }
}

/// The end of a socket's data is that of its association: `ENETDOWN` if its engine has ended, by a crash. The program
/// would otherwise take what has arrived for everything that the peer has sent.
pub(crate) fn check_alive(fd: c_int, name: SocketName) -> Outcome<()> {
    match raw::connect_to(&of_engine(name.engine)).map(Connection) {
        // Another engine may have the name by now. One that is ending may still have its name, but it does not answer.
        Ok(connection) if raw::have_same_peer(fd, connection.0) => {
            let request = Request { call: Call::State, socket: name.socket, first: 0, second: 0 };
            let mut state = [0; 4];
            let value = raw::own_part_mut(&mut state);
            match ask(name.engine, &request, raw::own_part(&[]), value, Wait::UntilAnswered) {
                Err(error) if error == Errno(libc::ENETDOWN) => Err(error),
                _ => Ok(()),
            }
        }
        Ok(_) | Err(Errno(libc::ECONNREFUSED)) => Err(Errno(libc::ENETDOWN)),
        // Unknown: this process has no descriptor left, for example.
        Err(_) => Ok(()),
    }
}

/// The engine of this process, from its environment.
pub(crate) fn of_process() -> Option<EngineNumber> {
    // 0 is no engine: its number has a user and a port, or random bits.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    number(ENGINE_VARIABLE, &NUMBER)
}

/// The program's key, which the engine wants from a process of another user; 0 if it is not known.
fn key() -> Key {
    static KEY: AtomicU64 = AtomicU64::new(0);
    number(KEY_VARIABLE, &KEY).unwrap_or(0)
}

/// A number of the environment other than 0, as it was when it was first read: a program may clear the environment.
fn number(variable: &CStr, cache: &AtomicU64) -> Option<u64> {
    let known = cache.load(Ordering::Relaxed);
    if known != 0 {
        return Some(known);
    }
    let mut digits = [0; 16];
    let length = raw::variable(variable, &mut digits)?;
    let digits = std::str::from_utf8(&digits[..length]).ok()?;
    let number = u64::from_str_radix(digits, 16).ok().filter(|number| *number != 0)?;
    cache.store(number, Ordering::Relaxed);
    Some(number)
}

/// Has the engine run until this process ends: the one that was registered before may be its parent, which ends when
/// its child has become a daemon. It does not wait for the answer.
pub(crate) fn register() {
    let Some(engine) = of_process() else { return };
    let Ok(connection) = raw::connect_to(&of_engine(engine)).map(Connection) else { return };
    let request = Request { call: Call::Register, socket: 0, first: 0, second: 0 };
    let header = request.to_bytes(key());
    let _ = raw::send_parts(connection.0, &[raw::own_part(&header)], libc::MSG_NOSIGNAL);
}

/// Whether TCP sockets of this process are replaced by SCTP (`rexmit run --tcp-as-sctp`).
pub(crate) fn takes_tcp() -> bool {
    raw::variable(TCP_VARIABLE, &mut [0; 8]).is_some()
}

/// A new socket of the engine of this process.
pub(crate) fn socket(engine: EngineNumber, domain: c_int, kind: c_int) -> Outcome<c_int> {
    let mut text = [0; 8];
    let length = raw::variable(PEER_PORT_VARIABLE, &mut text).unwrap_or(0);
    let port = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.parse().ok());
    let mut body = [0; 66];
    body[..2].copy_from_slice(&port.unwrap_or(9899_u16).to_ne_bytes());
    let mut profile = [0; 64];
    let length = raw::variable(PROFILE_VARIABLE, &mut profile).unwrap_or(0);
    body[2..2 + length].copy_from_slice(&profile[..length]);
    let request = Request { call: Call::Socket, socket: 0, first: domain, second: kind };
    let body = raw::own_part(&body[..2 + length]);
    let answer = ask(engine, &request, body, raw::own_part(&[]), Wait::UntilAnswered)?;
    answer.descriptor.map(raw::lowest).ok_or(Errno(libc::EMFILE))
}
