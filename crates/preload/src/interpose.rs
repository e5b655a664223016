//! The functions that programs call instead of libc's.
//!
//! Each checks whether the descriptor is one of ours, and calls libc's function if not. Pointers are converted to
//! [`Address`]es at once.
//!
//! They may unwind: a thread that is cancelled while it waits is unwound by libc (`pthread_cancel`), which Rust must
//! not catch.
#![expect(unreachable_pub, reason = "the symbols are for the dynamic linker")]

use libc::{
    c_int, c_uint, c_void, iovec, mmsghdr, msghdr, off_t, off64_t, sockaddr, socklen_t, timespec,
};

use rexmit_sockets::protocol::name::SocketName;

use crate::raw::{self, Address, libc_next};
use crate::{Errno, Outcome, calls, descriptor, engine, receive, send};

/// The return value of a libc function: the value, or -1 with `errno`.
fn returned<T: TryInto<isize>>(act: impl FnOnce() -> Outcome<T>) -> isize {
    let before = raw::errno();
    match act() {
        Ok(value) => {
            raw::set_errno(before);
            value.try_into().unwrap_or(isize::MAX)
        }
        Err(Errno(number)) => {
            raw::set_errno(number);
            -1
        }
    }
}

fn status(act: impl FnOnce() -> Outcome<()>) -> c_int {
    returned(|| act().map(|()| 0_i32)) as c_int
}

/// Runs when the library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = {
    extern "C" fn at_start() {
        // SAFETY: the function stores numbers and makes system calls.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        register();
    }
    unsafe extern "C" fn in_child() {
        descriptor::forget_threads();
        register();
    }
    fn register() {
        let before = raw::errno();
        engine::register();
        raw::set_errno(before);
    }
    at_start
};

/// Defines a function of libc, given the code to run if the descriptor, its first parameter, is one of ours.
macro_rules! interpose {
    ($(fn $name:ident($fd:ident: c_int $(, $parameter:ident: $kind:ty)*) -> $result:ty => |$socket:ident| $act:expr;)*) => {$(
        /// libc's, for SCTP sockets, too.
        ///
        /// # Safety
        /// The return value of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($fd: c_int $(, $parameter: $kind)*) -> $result {
            match raw::socket_name($fd) {
                // SAFETY: as the caller promises.
                None => unsafe { libc_next::$name($fd $(, $parameter)*) },
                Some($socket) => $act,
            }
        }
    )*};
}

fn part(buffer: impl Into<Address>, count: usize) -> iovec {
    raw::movable(buffer.into(), count)
}

/// A buffer of `read` or `write`, which check all of it.
fn whole(buffer: impl Into<Address>, count: usize) -> Outcome<iovec> {
    let at = buffer.into();
    raw::check_memory(at, count)?;
    Ok(raw::movable(at, count))
}

const NOWHERE: (Address, Address) = (Address(0), Address(0));

/// libc's, for SCTP sockets, too.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    match calls::socket(domain, kind, protocol) {
        Some(made) => returned(|| made.map(|fd| fd as isize)) as c_int,
        // SAFETY: it takes numbers alone.
        None => unsafe { libc_next::socket(domain, kind, protocol) },
    }
}

/// libc's, which fails for SCTP as in Linux.
///
/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    both: *mut c_int,
) -> c_int {
    match calls::check_pair(domain, kind, protocol) {
        Err(error) if !both.is_null() => status(|| Err(error)),
        // SAFETY: as the caller promises.
        _ => unsafe { libc_next::socketpair(domain, kind, protocol, both) },
    }
}

interpose! {
    fn bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int => |name| {
        status(|| calls::bind(name, address.into(), length as usize))
    };
    fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int => |name| {
        status(|| calls::connect(fd, name, address.into(), length as usize))
    };
    fn listen(fd: c_int, backlog: c_int) -> c_int => |name| {
        status(|| calls::listen(fd, name, backlog))
    };
    fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int => |name| {
        returned(|| receive::accept(fd, name, (address.into(), length.into()), 0).map(|fd| fd as isize)) as c_int
    };
    fn accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int => |name| {
        returned(|| receive::accept(fd, name, (address.into(), length.into()), flags).map(|fd| fd as isize)) as c_int
    };
    fn getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int => |name| {
        status(|| calls::name(name, false, (address.into(), length.into())))
    };
    fn getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int => |name| {
        status(|| calls::name(name, true, (address.into(), length.into())))
    };
    fn setsockopt(fd: c_int, level: c_int, option: c_int, value: *const c_void, length: socklen_t) -> c_int => |name| {
        match calls::set_option(fd, name, (level, option), (value.into(), length as usize)) {
            Some(outcome) => status(|| outcome),
            // SAFETY: as the caller promises.
            None => unsafe { libc_next::setsockopt(fd, level, option, value, length) },
        }
    };
    fn getsockopt(fd: c_int, level: c_int, option: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int => |name| {
        match calls::option(fd, name, (level, option), (value.into(), length.into())) {
            Some(outcome) => status(|| outcome),
            // SAFETY: as the caller promises.
            None => unsafe { libc_next::getsockopt(fd, level, option, value, length) },
        }
    };
    fn close(fd: c_int) -> c_int => |name| {
        status(|| calls::close(fd, name))
    };
    fn shutdown(fd: c_int, how: c_int) -> c_int => |name| {
        match calls::check_connected(name, how) {
            Err(error) => status(|| Err(error)),
            Ok(false) => 0,
            // SAFETY: it takes numbers alone.
            Ok(true) => unsafe { libc_next::shutdown(fd, how) },
        }
    };
    fn read(fd: c_int, buffer: *mut c_void, count: usize) -> isize => |name| {
        returned(|| receive::from(fd, name, whole(buffer, count)?, 0, NOWHERE))
    };
    fn __read_chk(fd: c_int, buffer: *mut c_void, count: usize, room: usize) -> isize => |name| {
        returned(|| receive::from(fd, name, part(buffer, count.min(room)), 0, NOWHERE))
    };
    fn readv(fd: c_int, parts: *const iovec, count: c_int) -> isize => |name| {
        returned(|| read_parts(fd, name, parts, count))
    };
    fn recv(fd: c_int, buffer: *mut c_void, count: usize, flags: c_int) -> isize => |name| {
        returned(|| receive::from(fd, name, part(buffer, count), flags, NOWHERE))
    };
    fn __recv_chk(fd: c_int, buffer: *mut c_void, count: usize, room: usize, flags: c_int) -> isize => |name| {
        returned(|| receive::from(fd, name, part(buffer, count.min(room)), flags, NOWHERE))
    };
    fn recvfrom(fd: c_int, buffer: *mut c_void, count: usize, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> isize => |name| {
        returned(|| receive::from(fd, name, part(buffer, count), flags, (address.into(), length.into())))
    };
    fn __recvfrom_chk(fd: c_int, buffer: *mut c_void, count: usize, room: usize, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> isize => |name| {
        returned(|| receive::from(fd, name, part(buffer, count.min(room)), flags, (address.into(), length.into())))
    };
    fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> isize => |name| {
        returned(|| receive::msghdr(fd, name, message.into(), flags))
    };
    fn recvmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int, _timeout: *mut timespec) -> c_int => |name| {
        returned(|| several(messages.into(), count, |at, is_first| {
            // Only the first is waited for, so that the timeout is of no use.
            let flags = if is_first { flags } else { flags | libc::MSG_DONTWAIT };
            receive::msghdr(fd, name, at, flags)
        })) as c_int
    };
    fn write(fd: c_int, buffer: *const c_void, count: usize) -> isize => |name| {
        returned(|| send::to(fd, name, whole(buffer, count)?, 0, (Address(0), 0)))
    };
    fn writev(fd: c_int, parts: *const iovec, count: c_int) -> isize => |name| {
        returned(|| write_parts(fd, name, parts, count))
    };
    fn send(fd: c_int, buffer: *const c_void, count: usize, flags: c_int) -> isize => |name| {
        returned(|| send::to(fd, name, part(buffer, count), flags, (Address(0), 0)))
    };
    fn sendto(fd: c_int, buffer: *const c_void, count: usize, flags: c_int, address: *const sockaddr, length: socklen_t) -> isize => |name| {
        returned(|| send::to(fd, name, part(buffer, count), flags, (address.into(), length as usize)))
    };
    fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> isize => |name| {
        returned(|| send::msghdr(fd, name, message.into(), flags))
    };
    fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: u32, flags: c_int) -> c_int => |name| {
        returned(|| several(messages.into(), count, |at, _| send::msghdr(fd, name, at, flags))) as c_int
    };
    fn preadv2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> isize => |name| {
        returned(|| at_no_offset(offset, flags).and_then(|()| read_parts(fd, name, parts, count)))
    };
    fn preadv64v2(fd: c_int, parts: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> isize => |name| {
        returned(|| at_no_offset(offset, flags).and_then(|()| read_parts(fd, name, parts, count)))
    };
    fn pwritev2(fd: c_int, parts: *const iovec, count: c_int, offset: off_t, flags: c_int) -> isize => |name| {
        returned(|| at_no_offset(offset, flags).and_then(|()| write_parts(fd, name, parts, count)))
    };
    fn pwritev64v2(fd: c_int, parts: *const iovec, count: c_int, offset: off64_t, flags: c_int) -> isize => |name| {
        returned(|| at_no_offset(offset, flags).and_then(|()| write_parts(fd, name, parts, count)))
    };
}

/// Defines a function of libc that moves data between two descriptors, which fails if one of them is ours: what it
/// moves would be the frames of the pair. Programs then read and write.
macro_rules! interpose_moves {
    ($(fn $name:ident($($parameter:ident: $kind:ty),*) between $one:ident, $other:ident;)*) => {$(
        /// libc's, which fails with `EINVAL` for SCTP sockets.
        ///
        /// # Safety
        /// As libc's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($parameter: $kind),*) -> isize {
            if raw::socket_name($one).is_some() || raw::socket_name($other).is_some() {
                return returned(|| Err::<usize, _>(Errno(libc::EINVAL)));
            }
            // SAFETY: as the caller promises.
            unsafe { libc_next::$name($($parameter),*) }
        }
    )*};
}

interpose_moves! {
    fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: usize) between to, from;
    fn sendfile64(to: c_int, from: c_int, offset: *mut off64_t, count: usize) between to, from;
    fn splice(from: c_int, from_offset: *mut off64_t, to: c_int, to_offset: *mut off64_t, count: usize, flags: c_uint) between from, to;
}

/// Checks the offset and the flags of `preadv2` and `pwritev2`, as Linux does for sockets.
fn at_no_offset(offset: i64, flags: c_int) -> Outcome<()> {
    const IGNORED: c_int = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND;
    match offset {
        -1 if flags & !IGNORED == 0 => Ok(()),
        -1 => Err(Errno(libc::EOPNOTSUPP)),
        _ => Err(Errno(libc::ESPIPE)),
    }
}

fn read_parts(fd: c_int, name: SocketName, at: *const iovec, count: c_int) -> Outcome<usize> {
    let parts = vector(at, count)?;
    receive::message(fd, name, &parts, 0).map(|received| received.length)
}

fn write_parts(fd: c_int, name: SocketName, at: *const iovec, count: c_int) -> Outcome<usize> {
    send::parts(fd, name, &vector(at, count)?)
}

/// The parts of `readv` and `writev`.
fn vector(at: *const iovec, count: c_int) -> Outcome<Vec<iovec>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= raw::MAX_PARTS);
    raw::read_parts(at.into(), count.ok_or(Errno(libc::EINVAL))?)
}

/// `recvmmsg` and `sendmmsg`: calls `act` for each message until one fails, and returns the number of successes.
fn several(
    messages: Address,
    count: u32,
    mut act: impl FnMut(Address, bool) -> Outcome<usize>,
) -> Outcome<usize> {
    let mut done = 0;
    while done < count as usize {
        let at = messages.add(done * size_of::<mmsghdr>());
        match act(at, done == 0) {
            Ok(length) => {
                raw::copy_out(&(length as u32).to_ne_bytes(), at.add(size_of::<msghdr>()))?;
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
        done += 1;
    }
    Ok(done)
}
