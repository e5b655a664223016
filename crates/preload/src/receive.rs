//! Calls that receive, and `accept`.
//!
//! A message is read with `MSG_PEEK`, directly into the memory of the program, and removed from the pair once it was
//! read to its end. `SO_PEEK_OFF` of the pair is the number of its bytes that were read before; the kernel keeps it for
//! all processes that share the socket.

use std::net::SocketAddr;

use libc::{c_int, iovec};
use rexmit_sockets::protocol::Style;
use rexmit_sockets::protocol::address;
use rexmit_sockets::protocol::frame::{HEADER_BYTES, Header, Kind};
use rexmit_sockets::protocol::marks::Marks;
use rexmit_sockets::protocol::name::SocketName;
use rexmit_sockets::protocol::request::State;

use crate::ancillary::Control;
use crate::raw::{self, Address};
use crate::{Errno, Outcome, calls, descriptor, engine};

/// `MSG_NOTIFICATION` (RFC 6458 §4.1.8, Linux's number).
const MSG_NOTIFICATION: c_int = 0x8000;

/// A message, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// `None` at the end of the association.
    header: Option<Header>,
    pub(crate) length: usize,
    is_end: bool,
}

impl Received {
    const END: Self = Self { header: None, length: 0, is_end: false };

    fn flags(&self) -> c_int {
        let is_notification = self.header.is_some_and(|header| header.kind == Kind::Notification);
        let end = if self.is_end { libc::MSG_EOR } else { 0 };
        end | if is_notification { MSG_NOTIFICATION } else { 0 }
    }
}

/// Receives into the program's memory.
pub(crate) fn message(
    fd: c_int,
    name: SocketName,
    parts: &[iovec],
    flags: c_int,
) -> Outcome<Received> {
    let mut received = next_message(fd, name, parts, flags);
    if received == Err(Errno(libc::ECONNRESET)) && engine::check_alive(fd, name).is_err() {
        // The pair's error, of messages that the engine has not read. What had arrived is still there.
        received = next_message(fd, name, parts, flags);
    }
    if let Ok(Received { header: None, .. }) = received {
        engine::check_alive(fd, name)?;
    }
    received
}

fn next_message(fd: c_int, name: SocketName, parts: &[iovec], flags: c_int) -> Outcome<Received> {
    let mut is_unconnected = false;
    if name.style.is_one_to_one() {
        match descriptor::state(name) {
            Ok(State::Listening) => return Err(Errno(libc::ENOTCONN)),
            Ok(State::Idle) => is_unconnected = true,
            // What had arrived before the engine ended is still there.
            Ok(_) | Err(Errno(libc::ENETDOWN)) => {}
            Err(error) => return Err(error),
        }
    }
    let mut held = None;
    let mut fd = fd;
    loop {
        let attempt = || descriptor::receiving(fd, name, || attempt(fd, parts, flags));
        match attempt() {
            // Another call may have taken it.
            Err(Problem::OfSocket(error)) => match take_error(name) {
                Ok(()) => {}
                Err(Errno(libc::ENETDOWN)) => return Err(error),
                other => other?,
            },
            Err(Problem::Other(Errno(libc::EAGAIN))) if is_unconnected => {
                take_error(name)?;
                let may_wait = descriptor::may_wait(fd, flags);
                return Err(Errno(if may_wait { libc::ENOTCONN } else { libc::EAGAIN }));
            }
            Err(Problem::Other(Errno(libc::EAGAIN))) if descriptor::may_wait(fd, flags) => {
                let is_over = match name.style {
                    Style::OneToMany => !descriptor::may_receive(name)?,
                    _ => raw::is_over(fd),
                };
                if is_over && !has_waiting(fd, name)? {
                    return Err(Errno(libc::ENOTCONN));
                } else if is_over {
                    // What came last has come since.
                    continue;
                }
                if held.is_none() {
                    held = raw::Held::of(fd);
                    fd = held.as_ref().map_or(fd, raw::Held::fd);
                }
                raw::wait_readable(fd)?;
            }
            Err(Problem::Other(error)) => return Err(error),
            Ok(received) => return Ok(received),
        }
    }
}

/// Why no message was received.
enum Problem {
    /// The error of an ended association, which is also in `SO_ERROR` until a call has taken it.
    OfSocket(Errno),
    Other(Errno),
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Self {
        Self::Other(error)
    }
}

const PEEK: c_int = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;

/// Fails with `SO_ERROR`, if there is an error, and takes it.
pub(crate) fn take_error(name: SocketName) -> Outcome<()> {
    match calls::error(name)? {
        0 => Ok(()),
        error => Err(Errno(error)),
    }
}

/// Whether there is a message, or the end of data.
fn has_waiting(fd: c_int, name: SocketName) -> Outcome<bool> {
    descriptor::receiving(fd, name, || {
        let read_before = raw::peek_offset(fd)?;
        let looked = raw::receive_parts(fd, &[], PEEK);
        raw::set_peek_offset(fd, read_before)?;
        match looked {
            Ok((_, accepted)) => {
                accepted.into_iter().for_each(raw::close); // A copy.
                Ok(true)
            }
            Err(Errno(libc::EAGAIN)) => Ok(false),
            Err(error) => Err(error),
        }
    })
}

/// Reads the first message with `MSG_PEEK`; `EAGAIN` without a message.
fn attempt(fd: c_int, parts: &[iovec], flags: c_int) -> Result<Received, Problem> {
    let mut bytes = [0; HEADER_BYTES];
    let read_before = raw::peek_offset(fd)?;
    let mut all = [raw::own_part_mut(&mut bytes), raw::part_at(Address(0), 0)];
    let (total, skipped) = if read_before >= HEADER_BYTES {
        // The rest of a message, whose header is read again.
        raw::set_peek_offset(fd, 0)?;
        let total = raw::receive_parts(fd, &all[..1], PEEK)?.0;
        raw::set_peek_offset(fd, read_before)?;
        raw::receive_parts(fd, parts, PEEK)?;
        (total, read_before)
    } else {
        // Also after a call that could not write to the program's memory.
        if read_before != 0 {
            raw::set_peek_offset(fd, 0)?;
        }
        let looked = match parts {
            [part] => {
                all[1] = *part;
                raw::receive_parts(fd, &all, PEEK)
            }
            parts if parts.len() < raw::MAX_PARTS => {
                let all: Vec<iovec> = all[..1].iter().chain(parts).copied().collect();
                raw::receive_parts(fd, &all, PEEK)
            }
            // With the header there would be one part too many. Reading it has moved the offset behind it.
            parts => {
                let looked = raw::receive_parts(fd, &all[..1], PEEK);
                looked.and_then(|looked| raw::receive_parts(fd, parts, PEEK).map(|_| looked))
            }
        };
        (looked?.0, HEADER_BYTES)
    };
    if total == 0 {
        return Ok(Received::END);
    }
    let header = Header::parse(&bytes).ok_or(Errno(libc::EIO))?;
    match header.kind {
        Kind::Error => raw::consume(fd),
        Kind::SocketError => {
            raw::consume(fd);
            return Err(Problem::OfSocket(Errno(header.error)));
        }
        // A call that does not wait fails as without a message.
        Kind::LastError if !descriptor::may_wait(fd, flags) => {
            raw::consume(fd);
            return Err(Problem::Other(Errno(libc::EAGAIN)));
        }
        // It stays, and is read from its beginning again.
        Kind::LastError => raw::set_peek_offset(fd, 0)?,
        _ => {
            let is_peek = flags & libc::MSG_PEEK != 0;
            return Ok(taken(fd, header, (total, skipped), parts, is_peek)?);
        }
    }
    Err(Problem::Other(Errno(header.error)))
}

/// The message that was read with `MSG_PEEK`; it is removed from the pair if it was read to its end.
fn taken(
    fd: c_int,
    header: Header,
    (total, skipped): (usize, usize),
    parts: &[iovec],
    is_peek: bool,
) -> Outcome<Received> {
    let room: usize = parts.iter().fold(0, |sum, part| sum.saturating_add(part.iov_len));
    let rest = total.saturating_sub(skipped);
    let length = rest.min(room);
    let is_whole = length == rest;
    if is_peek {
        raw::set_peek_offset(fd, if skipped == HEADER_BYTES { 0 } else { skipped })?;
    } else if is_whole {
        raw::consume(fd);
    }
    Ok(Received { header: Some(header), length, is_end: header.is_end && is_whole })
}

/// Writes an address to memory of the program, and its length.
pub(crate) fn write_address(
    shown: Option<SocketAddr>,
    (to, length_at): (Address, Address),
) -> Outcome<()> {
    if to.is_null() { Ok(()) } else { write_name(shown, (to, length_at)) }
}

/// Writes an address that a call must return, and its length.
pub(crate) fn write_name(
    shown: Option<SocketAddr>,
    (to, length_at): (Address, Address),
) -> Outcome<()> {
    let mut room = [0; 4];
    raw::copy_in(length_at, &mut room)?;
    let room = i32::from_ne_bytes(room);
    let room = usize::try_from(room).map_err(|_| Errno(libc::EINVAL))?;
    let mut bytes = Vec::with_capacity(address::IPV6_BYTES);
    if let Some(shown) = shown {
        address::write(shown, &mut bytes);
    }
    raw::copy_out(&bytes[..room.min(bytes.len())], to)?;
    raw::copy_out(&(bytes.len() as u32).to_ne_bytes(), length_at)
}

/// `recvfrom`, `recv` and `read`: `from` may be NULL.
pub(crate) fn from(
    fd: c_int,
    name: SocketName,
    part: iovec,
    flags: c_int,
    from: (Address, Address),
) -> Outcome<usize> {
    let received = message(fd, name, &[part], flags)?;
    let peer = received.header.and_then(|header| header.address);
    write_address(peer.map(|peer| address::in_family(peer, name.is_ipv6)), from)?;
    Ok(received.length)
}

/// `recvmsg`.
pub(crate) fn msghdr(fd: c_int, name: SocketName, at: Address, flags: c_int) -> Outcome<usize> {
    let mut message = raw::read_header(at)?;
    let parts = raw::read_parts(Address::from(message.msg_iov), message.msg_iovlen as usize)?;
    let received = self::message(fd, name, &parts, flags)?;
    message.msg_flags = received.flags();
    let peer = received.header.and_then(|header| header.address);
    if message.msg_name.is_null() {
        message.msg_namelen = 0;
    } else {
        let mut bytes = Vec::with_capacity(address::IPV6_BYTES);
        if let Some(peer) = peer {
            address::write(address::in_family(peer, name.is_ipv6), &mut bytes);
        }
        let room = bytes.len().min(message.msg_namelen as usize);
        raw::copy_out(&bytes[..room], Address::from(message.msg_name))?;
        message.msg_namelen = bytes.len() as _;
    }
    let is_data = |header: &Header| header.kind == Kind::Data;
    let marks = match received.header.filter(is_data) {
        Some(_) => raw::marks(fd)?,
        None => Marks::default(),
    };
    let is_null = message.msg_control.is_null();
    let mut control = Control::new(if is_null { 0 } else { message.msg_controllen as usize });
    if let Some(header) = received.header {
        if marks.has_nxtinfo
            && let Some((next, length)) = next(fd, name)
        {
            control.add_nxtinfo(&next, length);
        }
        if marks.has_rcvinfo {
            control.add_rcvinfo(&header);
        }
        if marks.has_sndrcv {
            control.add_sndrcv(&header);
        }
    }
    message.msg_controllen = control.bytes().len() as _;
    if control.is_cut() {
        message.msg_flags |= libc::MSG_CTRUNC;
    }
    raw::copy_out(control.bytes(), Address::from(message.msg_control))?;
    raw::write_header(&message, at)?;
    Ok(received.length)
}

/// The header of the next message, and the length of its payload, if it is data.
fn next(fd: c_int, name: SocketName) -> Option<(Header, usize)> {
    const PEEK: c_int = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    descriptor::receiving(fd, name, || {
        // With the rest of this message in the pair, there is no next one to be seen.
        let read_before = raw::peek_offset(fd).ok().filter(|offset| *offset == 0)?;
        let mut bytes = [0; HEADER_BYTES];
        let looked = raw::receive_parts(fd, &[raw::own_part_mut(&mut bytes)], PEEK);
        raw::set_peek_offset(fd, read_before).ok()?;
        let header = Header::parse(&bytes).filter(|header| header.kind == Kind::Data)?;
        Some((header, looked.ok()?.0.saturating_sub(HEADER_BYTES)))
    })
}

/// `accept4`.
pub(crate) fn accept(
    fd: c_int,
    name: SocketName,
    from: (Address, Address),
    flags: c_int,
) -> Outcome<c_int> {
    if flags & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) != 0 {
        return Err(Errno(libc::EINVAL));
    }
    if name.style != Style::OneToOne {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    if descriptor::state(name)? != State::Listening {
        return Err(Errno(libc::EINVAL));
    }
    loop {
        let mut bytes = [0; HEADER_BYTES];
        let part = raw::own_part_mut(&mut bytes);
        let (length, descriptor) = raw::receive_parts(fd, &[part], libc::MSG_CMSG_CLOEXEC)?;
        if length == 0 {
            engine::check_alive(fd, name)?;
            return Err(Errno(libc::EINVAL));
        }
        let Some(header) = Header::parse(&bytes) else { return Err(Errno(libc::EIO)) };
        match (header.kind, descriptor) {
            (Kind::Accepted, Some(accepted)) => {
                if let Some(name) = raw::socket_name(accepted) {
                    // The engine counts those that wait to be accepted.
                    let _ = descriptor::state(name);
                }
                if raw::is_over(accepted) {
                    let marks = Marks { was_over: true, ..raw::marks(accepted)? };
                    raw::set_marks(accepted, marks)?;
                }
                raw::inherit_options(fd, accepted);
                raw::set_flags(accepted, flags);
                let peer = header.address.map(|peer| address::in_family(peer, name.is_ipv6));
                if let Err(error) = write_address(peer, from) {
                    raw::close(accepted);
                    return Err(error);
                }
                return Ok(accepted);
            }
            (Kind::Accepted, None) => return Err(Errno(libc::EMFILE)),
            (Kind::Error | Kind::SocketError | Kind::LastError, _) => {
                return Err(Errno(header.error));
            }
            _ => {}
        }
    }
}
