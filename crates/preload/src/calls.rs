//! Calls that the engine answers.

use libc::{SOL_SOCKET, c_int, iovec};
use rexmit_sockets::protocol::frame::{HEADER_BYTES, Header, Kind};
use rexmit_sockets::protocol::marks::Marks;
use rexmit_sockets::protocol::name::SocketName;
use rexmit_sockets::protocol::request::{Call, MAX_BODY_BYTES, Request, State};
use rexmit_sockets::protocol::{IPPROTO_SCTP, Style, address};

use crate::engine::Wait;
use crate::raw::{self, Address};
use crate::{Errno, Outcome, descriptor, engine, receive};

/// Options of Linux's `linux/sctp.h` that have their own calls.
mod option {
    pub(super) const EVENTS: i32 = 11;
    pub(super) const BINDX_ADD: i32 = 100;
    pub(super) const BINDX_REMOVE: i32 = 101;
    pub(super) const PEEL_OFF: i32 = 102;
    pub(super) const CONNECTX_OLD: i32 = 107;
    pub(super) const PEER_ADDRS: i32 = 108;
    pub(super) const LOCAL_ADDRS: i32 = 109;
    pub(super) const CONNECTX: i32 = 110;
    pub(super) const CONNECTX3: i32 = 111;
    pub(super) const PEEL_OFF_FLAGS: i32 = 122;
}

/// The most bytes of an option's value that the engine reads.
const MAX_OPTION_BYTES: usize = 1024;
/// Bytes before the addresses of a `sctp_getaddrs`.
const ADDRESSES_AT: usize = 8;
/// Bytes of a filler.
const FILLER_BYTES: usize = 32 * 1024;
/// The most fillers of a pair: its send buffer has at most 4 MiB on most systems.
const MAX_FILLERS: usize = 1024;

const fn request(call: Call, name: SocketName, first: i32, second: i32) -> Request {
    Request { call, socket: name.socket, first, second }
}

const NOTHING: iovec = raw::part_at(Address(0), 0);

/// Sends a request without a value.
fn ask(name: SocketName, request: &Request, body: iovec) -> Outcome<()> {
    engine::ask(name.engine, request, body, NOTHING, Wait::UntilAnswered).map(drop)
}

/// The body of a request that is an address of the program.
fn body_of(at: Address, length: usize) -> Outcome<iovec> {
    if length > MAX_BODY_BYTES {
        return Err(Errno(libc::EINVAL));
    }
    Ok(raw::part_at(at, length))
}

/// `socket`; `None` if it is not for SCTP.
pub(crate) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> Option<Outcome<c_int>> {
    /// The bits of `type` that are not flags.
    const TYPES: c_int = 0xF;
    let flags = kind & !TYPES;
    let kind = kind & TYPES;
    let is_ip = domain == libc::AF_INET || domain == libc::AF_INET6;
    let is_tcp = kind == libc::SOCK_STREAM && [0, libc::IPPROTO_TCP].contains(&protocol);
    let is_sctp = is_sctp(kind, protocol);
    // No other protocol has sequenced packets; libc would answer as a kernel without SCTP does.
    let is_unknown = kind == libc::SOCK_SEQPACKET && !is_sctp && (1..256).contains(&protocol);
    let is_ours = is_ip && (is_sctp || is_unknown || is_tcp && engine::takes_tcp());
    let engine = engine::of_process().filter(|_| is_ours)?;
    if flags & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) != 0 {
        return Some(Err(Errno(libc::EINVAL)));
    } else if is_unknown {
        return Some(Err(Errno(libc::EPROTONOSUPPORT)));
    }
    let made = engine::socket(engine, domain, kind);
    Some(made.inspect(|fd| raw::set_flags(*fd, flags)))
}

/// Whether this is a socket of SCTP. A raw socket (`SOCK_RAW`) with SCTP's number is one of IP.
fn is_sctp(kind: c_int, protocol: c_int) -> bool {
    match kind {
        libc::SOCK_STREAM => protocol == IPPROTO_SCTP,
        // Nothing but SCTP has sequenced packets over IP.
        libc::SOCK_SEQPACKET => [0, IPPROTO_SCTP].contains(&protocol),
        _ => false,
    }
}

/// `socketpair`, of which SCTP has none: fails if it is for SCTP.
pub(crate) fn check_pair(domain: c_int, kind: c_int, protocol: c_int) -> Outcome<()> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    let is_ip = domain == libc::AF_INET || domain == libc::AF_INET6;
    if is_ip && is_sctp(kind & !flags, protocol) && engine::of_process().is_some() {
        return Err(Errno(libc::EOPNOTSUPP));
    }
    Ok(())
}

/// `bind`.
pub(crate) fn bind(name: SocketName, at: Address, length: usize) -> Outcome<()> {
    /// Bytes of the `sockaddr_in6` of RFC 2133, which has no scope.
    const SHORT_IPV6_BYTES: usize = 24;
    raw::check_address_length(length)?;
    let least = if name.is_ipv6 { SHORT_IPV6_BYTES } else { address::IPV4_BYTES };
    let bytes = address_bytes(at, length).map_err(|error| match error {
        // AF_UNSPEC.
        (_, 0) if length < least || !name.is_ipv6 => Errno(libc::EINVAL),
        (error, _) => error,
    })?;
    ask(name, &request(Call::Bind, name, 0, 0), body_of(at, length.min(bytes))?)
}

/// The length of the address at `at`; bytes after it are ignored. An error comes with the address family, or another number
/// if it could not be read.
fn address_bytes(at: Address, length: usize) -> Result<usize, (Errno, u16)> {
    const UNREADABLE: u16 = u16::MAX;
    let mut family = [0; 2];
    if length < family.len() {
        return Err((Errno(libc::EINVAL), UNREADABLE));
    }
    raw::copy_in(at, &mut family).map_err(|error| (error, UNREADABLE))?;
    match u16::from_ne_bytes(family) {
        address::AF_INET => Ok(address::IPV4_BYTES),
        address::AF_INET6 => Ok(address::IPV6_BYTES),
        family => Err((Errno(libc::EAFNOSUPPORT), family)),
    }
}

/// `listen`.
pub(crate) fn listen(fd: c_int, name: SocketName, backlog: c_int) -> Outcome<()> {
    // SCTP does not listen with 0 (RFC 6458 §3.1.3); TCP does.
    let backlog = if backlog == 0 && engine::takes_tcp() { 1 } else { backlog };
    ask(name, &request(Call::Listen, name, backlog, 0), NOTHING)?;
    if backlog != 0 && name.style == Style::OneToOne {
        // Nothing can be sent on it.
        fill(fd);
    }
    Ok(())
}

/// `connect`.
pub(crate) fn connect(fd: c_int, name: SocketName, at: Address, length: usize) -> Outcome<()> {
    raw::check_address_length(length)?;
    let bytes = address_bytes(at, length).map_err(|error| match error {
        // SCTP has no way to undo `connect` but its end.
        (Errno(libc::EAFNOSUPPORT), 0) => Errno(libc::EOPNOTSUPP),
        (Errno(libc::EAFNOSUPPORT), _) => Errno(libc::EINVAL),
        (error, _) => error,
    })?;
    if length < bytes {
        return Err(Errno(libc::EINVAL));
    }
    connect_over(fd, name, raw::part_at(at, bytes)).map(drop)
}

/// Connects to these addresses; returns the number of the association.
fn connect_over(fd: c_int, name: SocketName, body: iovec) -> Outcome<u32> {
    let is_non_blocking = raw::is_non_blocking(fd);
    let request = request(Call::Connect, name, i32::from(is_non_blocking), 0);
    let mut number = [0; 4];
    let value = raw::own_part_mut(&mut number);
    engine::ask(name.engine, &request, body, value, Wait::AsSend(fd))?;
    if is_non_blocking {
        if name.style.is_one_to_one() {
            fill(fd);
        }
        return Err(Errno(libc::EINPROGRESS));
    }
    Ok(u32::from_ne_bytes(number))
}

/// Makes a socket unwritable until the engine reads the fillers: when the connection is established or has failed, or when the
/// socket does not listen any more.
fn fill(fd: c_int) {
    let header = Header { kind: Kind::Filler, ..Header::default() }.to_bytes();
    let payload = [0; FILLER_BYTES - HEADER_BYTES];
    let parts = [raw::own_part(&header), raw::own_part(&payload)];
    for _ in 0..MAX_FILLERS {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        if !raw::is_writable(fd) || raw::send_parts(fd, &parts, flags).is_err() {
            return;
        }
    }
}

/// `getsockname`, and `getpeername` with `is_peer`.
pub(crate) fn name(name: SocketName, is_peer: bool, to: (Address, Address)) -> Outcome<()> {
    let mut bytes = [0; address::IPV6_BYTES];
    let value = raw::own_part_mut(&mut bytes);
    let request = request(Call::Name, name, i32::from(is_peer), 0);
    let answer = engine::ask(name.engine, &request, NOTHING, value, Wait::UntilAnswered)?;
    let shown = address::parse(&bytes[..answer.length.min(bytes.len())]);
    receive::write_name(shown.map(|(shown, _)| shown), to)
}

/// `setsockopt`; `None` if libc handles it.
pub(crate) fn set_option(
    fd: c_int,
    name: SocketName,
    (level, option): (c_int, c_int),
    (at, length): (Address, usize),
) -> Option<Outcome<()>> {
    match level {
        SOL_SOCKET => {
            if option == raw::SO_PEEK_OFF {
                // The library's own, too; no option of SCTP's sockets.
                return Some(Err(Errno(libc::EOPNOTSUPP)));
            }
            if [libc::SO_REUSEPORT, libc::SO_RCVLOWAT].contains(&option) {
                // The latter of the pair is the library's own (`Marks`).
                let body = raw::part_at(at, length.min(MAX_OPTION_BYTES));
                return Some(ask(name, &request(Call::SetOption, name, level, option), body));
            }
            if [libc::SO_LINGER, libc::SO_RCVBUF, libc::SO_SNDBUF].contains(&option) {
                let body = raw::part_at(at, length.min(MAX_OPTION_BYTES));
                let _ = ask(name, &request(Call::SetOption, name, level, option), body);
            }
            return None;
        }
        libc::IPPROTO_IPV6 if !name.is_ipv6 => return Some(Err(Errno(libc::ENOPROTOOPT))),
        libc::IPPROTO_IPV6 if option == libc::IPV6_V6ONLY => {
            return Some(set_in_engine(fd, name, (level, option), (at, length)));
        }
        // How packets are marked is the engine's.
        libc::IPPROTO_IP | libc::IPPROTO_IPV6 => return Some(Ok(())),
        // Of a program that means TCP: there is nothing like it, and no delay to switch off.
        libc::IPPROTO_TCP if engine::takes_tcp() => return Some(Ok(())),
        IPPROTO_SCTP => {}
        _ => return Some(Err(Errno(libc::ENOPROTOOPT))),
    }
    if c_int::try_from(length).is_err() {
        return Some(Err(Errno(libc::EINVAL)));
    }
    let set = |call, first, second| {
        let body = body_of(at, length)?;
        ask(name, &request(call, name, first, second), body)
    };
    Some(match option {
        option::BINDX_ADD => set(Call::Bind, 1, 0),
        option::BINDX_REMOVE => set(Call::Bind, 2, 0),
        option::CONNECTX | option::CONNECTX_OLD => {
            body_of(at, length).and_then(|body| connect_over(fd, name, body)).map(drop)
        }
        _ => set_in_engine(fd, name, (level, option), (at, length)),
    })
}

/// Sets an option, and records the ones that the library itself needs.
fn set_in_engine(
    fd: c_int,
    name: SocketName,
    (level, option): (c_int, c_int),
    (at, length): (Address, usize),
) -> Outcome<()> {
    let request = request(Call::SetOption, name, level, option);
    let mut number = [0; 4];
    let value = raw::own_part_mut(&mut number);
    // Linux, too, reads no more than the longest value.
    let body = raw::part_at(at, length.min(MAX_BODY_BYTES));
    let answer = engine::ask(name.engine, &request, body, value, Wait::UntilAnswered)?;
    if answer.length == number.len() {
        raw::set_marks(fd, Marks::of_number(u32::from_ne_bytes(number)))?;
    }
    Ok(())
}

/// `getsockopt`; `None` if libc handles it.
pub(crate) fn option(
    fd: c_int,
    name: SocketName,
    (level, option): (c_int, c_int),
    to: (Address, Address),
) -> Option<Outcome<()>> {
    let number = |number: c_int| Some(write_value(&number.to_ne_bytes(), true, to));
    match (level, option) {
        (SOL_SOCKET, libc::SO_PROTOCOL) => return number(IPPROTO_SCTP),
        (SOL_SOCKET, libc::SO_DOMAIN) => {
            return number(if name.is_ipv6 { libc::AF_INET6 } else { libc::AF_INET });
        }
        (SOL_SOCKET, libc::SO_TYPE) => {
            let is_one_to_one = name.style == Style::OneToOne;
            return number(if is_one_to_one { libc::SOCK_STREAM } else { libc::SOCK_SEQPACKET });
        }
        (SOL_SOCKET, raw::SO_PEEK_OFF) => return Some(Err(Errno(libc::EOPNOTSUPP))),
        (SOL_SOCKET, libc::SO_PEERCRED) => {
            // Those of no process, in place of those of the engine.
            let nobody = [[0; 4], [0xFF; 4], [0xFF; 4]];
            return Some(write_value(nobody.as_flattened(), true, to));
        }
        (
            SOL_SOCKET,
            libc::SO_ERROR | libc::SO_ACCEPTCONN | libc::SO_REUSEPORT | libc::SO_RCVLOWAT,
        ) => {}
        (SOL_SOCKET, _) => return None,
        (libc::IPPROTO_IPV6, _) if !name.is_ipv6 => return Some(Err(Errno(libc::EOPNOTSUPP))),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {}
        (libc::IPPROTO_IP | libc::IPPROTO_IPV6, _) => return number(0),
        (libc::IPPROTO_TCP, _) if engine::takes_tcp() => return number(0),
        (IPPROTO_SCTP, option::PEEL_OFF | option::PEEL_OFF_FLAGS) => {
            return Some(peel_off(fd, name, option == option::PEEL_OFF_FLAGS, to));
        }
        (IPPROTO_SCTP, option::CONNECTX3) => return Some(connectx(fd, name, to.0)),
        (IPPROTO_SCTP, _) => {}
        _ => return Some(Err(Errno(libc::EOPNOTSUPP))),
    }
    Some(read_option(name, (level, option), to))
}

/// Reads `SO_ERROR`, and so takes it.
pub(crate) fn error(name: SocketName) -> Outcome<c_int> {
    let mut value = [0; 4];
    let request = request(Call::Option, name, SOL_SOCKET, libc::SO_ERROR);
    let part = raw::own_part_mut(&mut value);
    engine::ask(name.engine, &request, NOTHING, part, Wait::UntilAnswered)?;
    Ok(c_int::from_ne_bytes(value))
}

fn room_of(length_at: Address) -> Outcome<usize> {
    let mut room = [0; 4];
    raw::copy_in(length_at, &mut room)?;
    usize::try_from(i32::from_ne_bytes(room)).map_err(|_| Errno(libc::EINVAL))
}

fn read_option(
    name: SocketName,
    (level, option): (i32, i32),
    to: (Address, Address),
) -> Outcome<()> {
    let room = room_of(to.1)?.min(MAX_OPTION_BYTES);
    let mut before = [0; MAX_OPTION_BYTES];
    let is_readable = raw::copy_in(to.0, &mut before[..room]);
    let mut value = [0; MAX_BODY_BYTES];
    let request = request(Call::Option, name, level, option);
    let part = raw::own_part_mut(&mut value);
    let answer = engine::ask(
        name.engine,
        &request,
        raw::own_part(&before[..room]),
        part,
        Wait::UntilAnswered,
    );
    let answer = match answer {
        Err(error) if error != Errno(libc::ENOPROTOOPT) => is_readable.and(Err(error))?,
        other => other?,
    };
    let value = &value[..answer.length.min(MAX_BODY_BYTES)];
    let is_list = [option::PEER_ADDRS, option::LOCAL_ADDRS].contains(&option);
    if is_list && room_of(to.1)? < value.len() {
        return Err(Errno(libc::ENOMEM));
    }
    write_value(value, level != IPPROTO_SCTP || option == option::EVENTS, to)?;
    if option == option::LOCAL_ADDRS && level == IPPROTO_SCTP {
        // The length is that of the addresses, of this option alone.
        let length = value.len().saturating_sub(ADDRESSES_AT) as u32;
        raw::copy_out(&length.to_ne_bytes(), to.1)?;
    }
    Ok(())
}

/// Writes the value of an option: completely, unless it `may_be_cut`.
fn write_value(value: &[u8], may_be_cut: bool, (to, length_at): (Address, Address)) -> Outcome<()> {
    let room = room_of(length_at)?;
    if room < value.len() && !may_be_cut {
        return Err(Errno(libc::EINVAL));
    }
    let written = &value[..value.len().min(room)];
    raw::copy_out(written, to)?;
    raw::copy_out(&(written.len() as u32).to_ne_bytes(), length_at)
}

/// `sctp_peeloff`: a `sctp_peeloff_arg_t` with the association, and room for a descriptor.
fn peel_off(fd: c_int, name: SocketName, has_flags: bool, to: (Address, Address)) -> Outcome<()> {
    let mut bytes = [0; 12];
    let length = if has_flags { 12 } else { 8 };
    if room_of(to.1)? < length {
        return Err(Errno(libc::EINVAL));
    }
    raw::copy_in(to.0, &mut bytes[..length])?;
    let number = i32::from_ne_bytes(bytes[..4].try_into().unwrap_or_default());
    let flags = c_int::from_ne_bytes(bytes[8..].try_into().unwrap_or_default());
    let request = request(Call::PeelOff, name, number, 0);
    let answer = engine::ask(name.engine, &request, NOTHING, NOTHING, Wait::UntilAnswered)?;
    let made = answer.descriptor.map(raw::lowest).ok_or(Errno(libc::EMFILE))?;
    raw::inherit_options(fd, made);
    raw::set_flags(made, flags);
    raw::copy_out(&made.to_ne_bytes(), to.0.add(4)).inspect_err(|_| raw::close(made))
}

/// `sctp_connectx`: `at` points to a `struct sctp_getaddrs_old`, which has the length of the addresses and a pointer to
/// them.
fn connectx(fd: c_int, name: SocketName, at: Address) -> Outcome<()> {
    let mut bytes = [0; 16];
    raw::copy_in(at, &mut bytes)?;
    let length = i32::from_ne_bytes(bytes[4..8].try_into().unwrap_or_default());
    let length = usize::try_from(length).map_err(|_| Errno(libc::EINVAL))?;
    let addresses = Address(usize::from_ne_bytes(bytes[8..].try_into().unwrap_or_default()));
    let number = connect_over(fd, name, body_of(addresses, length)?)?;
    raw::copy_out(&number.to_ne_bytes(), at)
}

/// `close`, which waits for the end of the association if `SO_LINGER` has a time.
pub(crate) fn close(fd: c_int, name: SocketName) -> Outcome<()> {
    let seconds = raw::linger_seconds(fd);
    raw::close_of_program(fd)?;
    if seconds != 0 && name.style == Style::OneToOne {
        let request = request(Call::Linger, name, 0, 0);
        // The socket is closed, whatever becomes of the wait.
        let _ = engine::ask(name.engine, &request, NOTHING, NOTHING, Wait::Seconds(seconds));
    }
    Ok(())
}

/// Checks that the socket may be shut down in these directions; returns whether there is anything to be done. The shutdown
/// itself is done by the kernel on the pair, so that the engine sees it after the data sent before.
pub(crate) fn check_connected(name: SocketName, how: c_int) -> Outcome<bool> {
    if !(libc::SHUT_RD..=libc::SHUT_RDWR).contains(&how) {
        return Err(Errno(libc::EINVAL));
    }
    match descriptor::state(name)? {
        State::Connected | State::Connecting if name.style.is_one_to_one() => Ok(true),
        // A listener sends nothing, but it must not stop receiving.
        State::Listening if how == libc::SHUT_WR => Ok(false),
        State::Listening => Err(Errno(libc::EOPNOTSUPP)),
        _ => Err(Errno(libc::ENOTCONN)),
    }
}
