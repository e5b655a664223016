//! Requests to the engine.

use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, iovec};
use rexmit_sockets::protocol::name::{EngineNumber, of_engine};
use rexmit_sockets::protocol::request::{ANSWER_BYTES, Call, Request};
use rexmit_sockets::protocol::{
    ENGINE_VARIABLE, PEER_PORT_VARIABLE, PROFILE_VARIABLE, TCP_VARIABLE,
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

/// Sends a request and receives its answer, whose value goes to `value`. The send timeout of `like` ends the call, and
/// a signal does if `is_interruptible`.
pub(crate) fn ask(
    engine: EngineNumber,
    request: &Request,
    body: iovec,
    value: iovec,
    like: Option<c_int>,
) -> Outcome<Answer> {
    // Without its engine a socket is as one without a network.
    let connection = raw::connect_to(&of_engine(engine)).map_err(|error| match error {
        Errno(libc::ECONNREFUSED) => Errno(libc::ENETDOWN),
        other => other,
    })?;
    let connection = Connection(connection);
    if let Some(like) = like {
        raw::copy_send_timeout(like, connection.0);
    }
    let header = request.to_bytes();
    let parts = [raw::own_part(&header), body];
    raw::send_parts(connection.0, &parts, libc::MSG_NOSIGNAL)?;
    let mut header = [0; ANSWER_BYTES];
    let (length, descriptor) = loop {
        let parts = [raw::own_part_mut(&mut header), value];
        match raw::receive_parts(connection.0, &parts, libc::MSG_CMSG_CLOEXEC) {
            Err(Errno(libc::EINTR)) if like.is_none() => {}
            Err(Errno(libc::EAGAIN)) => return Err(Errno(libc::EINPROGRESS)),
            other => break other?,
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

/// The engine of this process, from its environment.
pub(crate) fn of_process() -> Option<EngineNumber> {
    // 0 is no engine: its number has a user and a port, or random bits.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let known = NUMBER.load(Ordering::Relaxed);
    if known != 0 {
        return Some(known);
    }
    let mut digits = [0; 16];
    let length = raw::variable(ENGINE_VARIABLE, &mut digits)?;
    let digits = std::str::from_utf8(&digits[..length]).ok()?;
    let number = u64::from_str_radix(digits, 16).ok().filter(|number| *number != 0)?;
    NUMBER.store(number, Ordering::Relaxed);
    Some(number)
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
    let answer = ask(engine, &request, body, raw::own_part(&[]), None)?;
    answer.descriptor.map(raw::lowest).ok_or(Errno(libc::EMFILE))
}
