//! Calls that send.

use libc::{c_int, iovec};
use rexmit_sockets::protocol::Style;
use rexmit_sockets::protocol::address;
use rexmit_sockets::protocol::frame::{HEADER_BYTES, Header};
use rexmit_sockets::protocol::name::SocketName;
use rexmit_sockets::protocol::request::State;

use crate::raw::{self, Address};
use crate::{Errno, Outcome, ancillary, descriptor, engine, receive};

/// The largest message: the default of `SO_SNDBUF` in Linux, which also limits messages of its SCTP.
const MAX_MESSAGE_BYTES: usize = 212_992;
/// Messages up to this size always fit one packet, whatever options were set.
const SMALLEST_FRAGMENT: usize = 256;
/// The most bytes of ancillary data (Linux's `net.core.optmem_max`).
const MAX_CONTROL_BYTES: usize = 20_480;
/// Ancillary data up to this size needs no heap memory, because signal handlers may send.
const USUAL_CONTROL_BYTES: usize = 1024;
/// The flags in `sinfo_flags` that end an association; they are sent with a message without payload.
const ENDING: u16 = 0x200 | 4;

/// Sends one message. Where that fails with `EPIPE`, it raises SIGPIPE unless `flags` forbids it.
pub(crate) fn message(
    fd: c_int,
    name: SocketName,
    header: &Header,
    parts: &[iovec],
    flags: c_int,
) -> Outcome<usize> {
    let is_silent = flags & libc::MSG_NOSIGNAL != 0;
    let sent = message_without_signal(fd, name, header, parts, flags | libc::MSG_NOSIGNAL);
    // ECONNRESET is the pair's error, of messages that the engine has not read when it ended.
    if let Err(Errno(libc::EPIPE | libc::ECONNRESET)) = sent {
        engine::check_alive(fd, name)?;
        if name.style.is_one_to_one() {
            receive::take_error(name)?;
        }
    }
    if sent == Err(Errno(libc::EPIPE)) && !is_silent {
        raw::raise_pipe();
    }
    sent
}

fn message_without_signal(
    fd: c_int,
    name: SocketName,
    header: &Header,
    parts: &[iovec],
    flags: c_int,
) -> Outcome<usize> {
    let is_one_to_one = name.style.is_one_to_one();
    let state = if is_one_to_one { Some(descriptor::state(name)?) } else { None };
    if state == Some(State::Listening) {
        return Err(Errno(libc::EPIPE));
    }
    let length: usize = parts.iter().fold(0, |sum, part| sum.saturating_add(part.iov_len));
    if length > MAX_MESSAGE_BYTES {
        return Err(Errno(libc::EMSGSIZE));
    }
    let is_ending = header.flags & ENDING != 0;
    if length == 0 && !is_ending || length != 0 && header.flags & 0x200 != 0 {
        return Err(Errno(libc::EINVAL));
    }
    if is_ending && name.style == Style::OneToOne {
        return Err(Errno(libc::EINVAL));
    }
    if length > SMALLEST_FRAGMENT && raw::marks(fd)?.is_unfragmented {
        let most = descriptor::fragment_bytes(name)?;
        if length > most {
            return Err(Errno(libc::EMSGSIZE));
        }
    }
    if is_one_to_one {
        // Linux ignores the address on a socket that was peeled off.
        let address = header.address.filter(|_| name.style == Style::OneToOne);
        let is_unconnected = state == Some(State::Idle) && header.address.is_none();
        let is_over = raw::is_over(fd);
        if is_over && address.is_some() && !raw::marks(fd)?.was_over {
            // It is no peer's address any more.
            return Err(Errno(libc::EADDRNOTAVAIL));
        } else if is_over || is_unconnected {
            return Err(Errno(libc::EPIPE));
        }
        if let Some(address) = address.filter(|_| state == Some(State::Connected))
            && !descriptor::has_peer(name, address)?
        {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
    } else if is_ending && let Some(address) = header.address {
        // A message that ends an association begins none.
        let has_number = descriptor::has_association(name, header.association).is_ok();
        if !has_number && !descriptor::has_peer(name, address)? {
            return Err(Errno(libc::EINVAL));
        }
    } else if header.address.is_none() {
        descriptor::has_association(name, header.association)?;
    }
    let header = header.to_bytes();
    let flags = flags & (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL);
    let header = raw::own_part(&header);
    let sent = match parts {
        [part] => raw::send_parts(fd, &[header, *part], flags),
        parts if parts.len() < raw::MAX_PARTS => {
            let all: Vec<iovec> = std::iter::once(header).chain(parts.iter().copied()).collect();
            raw::send_parts(fd, &all, flags)
        }
        // With the header there would be one part too many.
        parts => {
            let mut whole = vec![0; length];
            let mut rest = whole.as_mut_slice();
            for part in parts {
                let (to, after) = rest.split_at_mut(part.iov_len);
                raw::copy_in(Address::from(part.iov_base), to)?;
                rest = after;
            }
            raw::send_parts(fd, &[header, raw::own_part(&whole)], flags)
        }
    };
    Ok(sent?.saturating_sub(HEADER_BYTES))
}

/// `sendto`, `send` and `write`: `to` may be NULL.
pub(crate) fn to(
    fd: c_int,
    name: SocketName,
    part: iovec,
    flags: c_int,
    (to, length): (Address, usize),
) -> Outcome<usize> {
    let mut header = Header { is_end: true, ..Header::default() };
    if !to.is_null() {
        raw::check_address_length(length)?;
        header.address = Some(read_address(fd, name, (to, length))?);
    }
    message(fd, name, &header, &[part], flags)
}

/// `writev`.
pub(crate) fn parts(fd: c_int, name: SocketName, parts: &[iovec]) -> Outcome<usize> {
    message(fd, name, &Header { is_end: true, ..Header::default() }, parts, 0)
}

/// `sendmsg`.
pub(crate) fn msghdr(fd: c_int, name: SocketName, at: Address, flags: c_int) -> Outcome<usize> {
    let message = raw::read_header(at)?;
    let parts = raw::read_parts(Address::from(message.msg_iov), message.msg_iovlen as usize)?;
    let mut header = Header { is_end: true, ..Header::default() };
    let (to, length) = (Address::from(message.msg_name), message.msg_namelen as usize);
    if !to.is_null() && length != 0 {
        // Other calls refuse a longer one.
        let length = i32::try_from(length).map_or(length, |_| length.min(address::STORAGE_BYTES));
        header.address = Some(read_address(fd, name, (to, length))?);
    }
    let length = message.msg_controllen as usize;
    let (mut usual, mut larger) = ([0; USUAL_CONTROL_BYTES], Vec::new());
    if length > MAX_CONTROL_BYTES {
        return Err(Errno(libc::ENOBUFS));
    }
    let control = if length <= USUAL_CONTROL_BYTES {
        &mut usual[..length]
    } else {
        larger.resize(length, 0);
        &mut larger[..]
    };
    raw::copy_in(Address::from(message.msg_control), control)?;
    ancillary::read(control, &mut header)?;
    self::message(fd, name, &header, &parts, flags)
}

/// Reads a destination, whose version of IP the socket must use.
fn read_address(
    fd: c_int,
    name: SocketName,
    (at, length): (Address, usize),
) -> Outcome<std::net::SocketAddr> {
    let mut bytes = [0; address::STORAGE_BYTES];
    let bytes = bytes.get_mut(..length).ok_or(Errno(libc::EINVAL))?;
    raw::copy_in(at, bytes)?;
    let (known, _) = address::parse(bytes).ok_or(Errno(libc::EINVAL))?;
    let is_ipv4 = known.ip().to_canonical().is_ipv4();
    let is_usable = match name.is_ipv6 {
        true => !is_ipv4 || !raw::marks(fd)?.is_ipv6_only,
        false => known.is_ipv4(),
    };
    if is_usable { Ok(known) } else { Err(Errno(libc::EINVAL)) }
}
