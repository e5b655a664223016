//! Calls of libc and the kernel, behind safe functions.
//!
//! Memory of the program is identified by [`Address`]; only the kernel accesses it, and returns `EFAULT` for an invalid
//! one. The addresses of libc's own functions are looked up in the libraries after this one ([`next`]).

mod waiting;

use std::ffi::CStr;
use std::mem::{size_of, zeroed};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, c_void, iovec, msghdr, sockaddr, socklen_t};
use rexmit_sockets::protocol::marks::Marks;
use rexmit_sockets::protocol::name::SocketName;

use crate::{Errno, Outcome};

/// `SO_PEEK_OFF`, which the crate `libc` lacks for some targets.
pub(crate) const SO_PEEK_OFF: c_int = 42;
/// The largest `sockaddr_un`.
const NAME_BYTES: usize = 110;
/// The most parts of a message (Linux's `UIO_MAXIOV`).
pub(crate) const MAX_PARTS: usize = 1024;
/// The most bytes that a call moves (Linux's `MAX_RW_COUNT`).
const MAX_MOVED: usize = 0x7FFF_F000;
/// No program has memory beyond this address: of the systems for which Linux has 64-bit addresses, none gives it.
const MEMORY_END: u64 = 1 << 56;

/// Memory of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) usize);

impl Address {
    pub(crate) const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The memory `bytes` further.
    pub(crate) const fn add(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl<T> From<*const T> for Address {
    fn from(pointer: *const T) -> Self {
        Self(pointer as usize)
    }
}

impl<T> From<*mut T> for Address {
    fn from(pointer: *mut T) -> Self {
        Self(pointer as usize)
    }
}

pub(crate) fn errno() -> i32 {
    // SAFETY: libc has one for every thread.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(number: i32) {
    // SAFETY: libc has one for every thread.
    unsafe { *libc::__errno_location() = number };
}

fn check(result: isize) -> Outcome<usize> {
    usize::try_from(result).map_err(|_| Errno(errno()))
}

/// The function of this name in libc, or in the library preloaded next; `None` if it does not exist.
pub(crate) fn next(cache: &AtomicPtr<c_void>, name: &CStr) -> Option<*mut c_void> {
    let mut found = cache.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the name ends with a zero byte.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        cache.store(found, Ordering::Relaxed);
    }
    (!found.is_null()).then_some(found)
}

/// Declares functions with libc's signatures that call the next function of that name.
macro_rules! next_functions {
    ($($name:ident($($parameter:ident: $kind:ty),*) -> $result:ty;)*) => {$(
        /// libc's.
        ///
        /// # Safety
        /// The return value of libc.
        pub(crate) unsafe fn $name($($parameter: $kind),*) -> $result {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let name = const {
                match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!("an identifier has no zero byte"),
                }
            };
            match next(&FOUND, name) {
                Some(found) => {
                    // SAFETY: libc's function of this name has this signature.
                    let function = unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($kind),*) -> $result>(found)
                    };
                    // SAFETY: as the caller promises.
                    unsafe { function($($parameter),*) }
                }
                None => {
                    set_errno(libc::ENOSYS);
                    -1
                }
            }
        }
    )*};
}

/// libc's functions. A program may be cancelled in them, and libraries preloaded after this one see the calls.
pub(crate) mod libc_next {
    use super::*;

    next_functions! {
        socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
        socketpair(domain: c_int, kind: c_int, protocol: c_int, both: *mut c_int) -> c_int;
        bind(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
        connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int;
        listen(fd: c_int, backlog: c_int) -> c_int;
        accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
        accept4(fd: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int;
        getsockname(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
        getpeername(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int;
        getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut socklen_t) -> c_int;
        setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, length: socklen_t) -> c_int;
        shutdown(fd: c_int, how: c_int) -> c_int;
        read(fd: c_int, buffer: *mut c_void, count: usize) -> isize;
        readv(fd: c_int, parts: *const iovec, count: c_int) -> isize;
        recv(fd: c_int, buffer: *mut c_void, count: usize, flags: c_int) -> isize;
        recvfrom(fd: c_int, buffer: *mut c_void, count: usize, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> isize;
        recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> isize;
        recvmmsg(fd: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int, timeout: *mut libc::timespec) -> c_int;
        close(fd: c_int) -> c_int;
        write(fd: c_int, buffer: *const c_void, count: usize) -> isize;
        writev(fd: c_int, parts: *const iovec, count: c_int) -> isize;
        send(fd: c_int, buffer: *const c_void, count: usize, flags: c_int) -> isize;
        sendto(fd: c_int, buffer: *const c_void, count: usize, flags: c_int, address: *const sockaddr, length: socklen_t) -> isize;
        sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> isize;
        sendmmsg(fd: c_int, messages: *mut libc::mmsghdr, count: u32, flags: c_int) -> c_int;
        sendfile(to: c_int, from: c_int, offset: *mut libc::off_t, count: usize) -> isize;
        sendfile64(to: c_int, from: c_int, offset: *mut libc::off64_t, count: usize) -> isize;
        splice(from: c_int, from_offset: *mut libc::off64_t, to: c_int, to_offset: *mut libc::off64_t, count: usize, flags: libc::c_uint) -> isize;
        preadv2(fd: c_int, parts: *const iovec, count: c_int, offset: libc::off_t, flags: c_int) -> isize;
        preadv64v2(fd: c_int, parts: *const iovec, count: c_int, offset: libc::off64_t, flags: c_int) -> isize;
        pwritev2(fd: c_int, parts: *const iovec, count: c_int, offset: libc::off_t, flags: c_int) -> isize;
        pwritev64v2(fd: c_int, parts: *const iovec, count: c_int, offset: libc::off64_t, flags: c_int) -> isize;
        __read_chk(fd: c_int, buffer: *mut c_void, count: usize, room: usize) -> isize;
        __recv_chk(fd: c_int, buffer: *mut c_void, count: usize, room: usize, flags: c_int) -> isize;
        __recvfrom_chk(fd: c_int, buffer: *mut c_void, count: usize, room: usize, flags: c_int, address: *mut sockaddr, length: *mut socklen_t) -> isize;
    }
}

fn part_of(bytes: &[u8]) -> iovec {
    iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}

/// Copies memory of the program.
pub(crate) fn copy_in(from: Address, to: &mut [u8]) -> Outcome<()> {
    if to.is_empty() {
        return Ok(());
    }
    let (local, remote) = (part_of(to), part_at(from, to.len()));
    // SAFETY: the kernel writes to `to` alone, and checks the memory it reads.
    let copied = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    complete(copied, to.len())
}

/// Copies to memory of the program.
pub(crate) fn copy_out(from: &[u8], to: Address) -> Outcome<()> {
    if from.is_empty() {
        return Ok(());
    }
    let (local, remote) = (part_of(from), part_at(to, from.len()));
    // SAFETY: the program has given this memory to be written, and the kernel checks it.
    let copied = unsafe {
        libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    complete(copied, from.len())
}

fn complete(copied: isize, wanted: usize) -> Outcome<()> {
    match check(copied) {
        Ok(copied) if copied == wanted => Ok(()),
        Ok(_) | Err(_) => Err(Errno(libc::EFAULT)),
    }
}

/// Memory of the program as a part of a message: only the kernel dereferences it.
pub(crate) const fn part_at(at: Address, length: usize) -> iovec {
    iovec { iov_base: at.0 as *mut c_void, iov_len: length }
}

/// A structure of the program.
pub(crate) fn read_header(from: Address) -> Outcome<msghdr> {
    let mut bytes = [0; size_of::<msghdr>()];
    copy_in(from, &mut bytes)?;
    // SAFETY: it consists of numbers and pointers, which may have any value as long as they are not followed.
    Ok(unsafe { std::mem::transmute::<[u8; size_of::<msghdr>()], msghdr>(bytes) })
}

/// Reads the parts of a message, as the program passed them.
pub(crate) fn read_parts(from: Address, count: usize) -> Outcome<Vec<iovec>> {
    if count > MAX_PARTS {
        return Err(Errno(libc::EMSGSIZE));
    }
    let mut bytes = vec![0; count * size_of::<iovec>()];
    copy_in(from, &mut bytes)?;
    let number = |part: &[u8]| usize::from_ne_bytes(part.try_into().unwrap_or_default());
    let entries = bytes.chunks_exact(size_of::<iovec>()).map(|entry| {
        let (base, length) = entry.split_at(size_of::<usize>());
        (Address(number(base)), number(length))
    });
    // As Linux: all are checked, and what is too much for a call is cut off.
    let mut room = MAX_MOVED;
    let mut parts = Vec::with_capacity(count);
    for (base, length) in entries {
        if isize::try_from(length).is_err() {
            return Err(Errno(libc::EINVAL));
        }
        check_memory(base, length)?;
        let length = length.min(room);
        room -= length;
        parts.push(part_at(base, length));
    }
    Ok(parts)
}

/// Fails if no program can have so much memory there; the kernel checks the rest.
pub(crate) fn check_memory(at: Address, length: usize) -> Outcome<()> {
    let end = (at.0 as u64).checked_add(length as u64);
    if end.is_none_or(|end| end > MEMORY_END) { Err(Errno(libc::EFAULT)) } else { Ok(()) }
}

/// The part of a buffer that one call can move.
pub(crate) fn movable(at: Address, length: usize) -> iovec {
    part_at(at, length.min(MAX_MOVED))
}

/// Checks the length of an address that a program passes.
pub(crate) fn check_address_length(length: usize) -> Outcome<()> {
    if length > size_of::<libc::sockaddr_storage>() { Err(Errno(libc::EINVAL)) } else { Ok(()) }
}

fn message(parts: &[iovec], control: &mut [u8]) -> msghdr {
    // SAFETY: a message without anything is one.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut();
    message.msg_iovlen = parts.len() as _;
    if !control.is_empty() {
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len() as _;
    }
    message
}

/// A part of a message in our own memory.
pub(crate) fn own_part(bytes: &[u8]) -> iovec {
    part_of(bytes)
}

/// A part of a message to be received, in our own memory.
pub(crate) fn own_part_mut(bytes: &mut [u8]) -> iovec {
    iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
}

/// Sends a message of these parts, which are our own or the program's.
pub(crate) fn send_parts(fd: c_int, parts: &[iovec], flags: c_int) -> Outcome<usize> {
    waiting::send(fd, &message(parts, &mut []), flags)
}

/// Receives into these parts, which are our own or the program's, and the descriptor that comes with the message.
pub(crate) fn receive_parts(
    fd: c_int,
    parts: &[iovec],
    flags: c_int,
) -> Outcome<(usize, Option<c_int>)> {
    let mut control = [0_u64; 64];
    // SAFETY: the same memory as bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(control.as_mut_ptr().cast::<u8>(), 512) };
    let mut message = message(parts, bytes);
    // SAFETY: the parts are our own memory, which lives, or the program's, which the kernel checks.
    let received = check(unsafe { libc_next::recvmsg(fd, &raw mut message, flags) })?;
    // SAFETY: the kernel has written whole control messages, if any.
    let descriptor = unsafe {
        let is_descriptor = |header: *const libc::cmsghdr| {
            (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS
        };
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        // Before it come times and credentials, if the program has asked for them (SO_TIMESTAMP, SO_PASSCRED).
        while !header.is_null() && !is_descriptor(header) {
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        (!header.is_null()).then(|| libc::CMSG_DATA(header).cast::<c_int>().read_unaligned())
    };
    Ok((received, descriptor))
}

/// A descriptor of a socket for the duration of a call. While it waits, another thread of the program may close its own, whose
/// number may become that of another socket; a call of the kernel stays with the socket.
pub(crate) struct Held(c_int);

impl Held {
    /// `None` if the program has no descriptor left.
    pub(crate) fn of(fd: c_int) -> Option<Self> {
        // Not a low number, which the program may expect for its next descriptor.
        const LEAST: c_int = 256;
        let before = errno();
        // SAFETY: it duplicates a descriptor.
        let held = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, LEAST) };
        set_errno(before);
        (held >= 0).then_some(Self(held))
    }

    pub(crate) fn fd(&self) -> c_int {
        self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// Waits until a message can be received, as a blocking `recv` does: signals and `SO_RCVTIMEO` end the wait.
pub(crate) fn wait_readable(fd: c_int) -> Outcome<()> {
    // SAFETY: nothing is written.
    let waited = unsafe { libc_next::recv(fd, std::ptr::null_mut(), 0, libc::MSG_PEEK) };
    check(waited).map(drop)
}

/// Drops the first waiting message.
pub(crate) fn consume(fd: c_int) {
    // SAFETY: nothing is written.
    unsafe { libc_next::recv(fd, std::ptr::null_mut(), 0, libc::MSG_DONTWAIT) };
}

/// Locks the socket against other processes that have a descriptor of it, and waits for one that has locked it.
pub(crate) fn lock(fd: c_int) {
    // Interrupted by a signal; or by EDEADLK, because to the kernel all threads of a process are one owner of locks.
    while let Err(Errno(libc::EINTR | libc::EDEADLK)) = set_lock(fd, libc::F_WRLCK) {
        give_way();
    }
}

/// Undoes [`lock`].
pub(crate) fn unlock(fd: c_int) {
    let _ = set_lock(fd, libc::F_UNLCK);
}

fn set_lock(fd: c_int, kind: c_int) -> Outcome<()> {
    // SAFETY: a lock is numbers alone, and zeros mean all bytes of the file.
    let mut lock: libc::flock = unsafe { zeroed() };
    lock.l_type = kind as _;
    // Not by libc's function, in which the thread could be cancelled.
    // SAFETY: the lock lives.
    let set = unsafe { libc::syscall(libc::SYS_fcntl, fd, libc::F_SETLKW, &raw const lock) };
    check(set as isize).map(drop)
}

/// The number of bytes of the first message that were read.
pub(crate) fn peek_offset(fd: c_int) -> Outcome<usize> {
    match usize::try_from(int_option(fd, libc::SOL_SOCKET, SO_PEEK_OFF)?) {
        Ok(offset) => Ok(offset),
        // Nothing was read yet: the kernel does not count.
        Err(_) => set_peek_offset(fd, 0).map(|()| 0),
    }
}

pub(crate) fn set_peek_offset(fd: c_int, offset: usize) -> Outcome<()> {
    set_int_option(fd, SO_PEEK_OFF, offset as c_int)
}

fn set_int_option(fd: c_int, name: c_int, value: c_int) -> Outcome<()> {
    let length = size_of::<c_int>() as socklen_t;
    let at = (&raw const value).cast();
    // SAFETY: the value lives and has this length.
    check(unsafe { libc_next::setsockopt(fd, libc::SOL_SOCKET, name, at, length) } as isize)
        .map(drop)
}

/// The marks of the socket.
pub(crate) fn marks(fd: c_int) -> Outcome<Marks> {
    let number = int_option(fd, libc::SOL_SOCKET, libc::SO_RCVLOWAT)?;
    Ok(Marks::of_number(u32::try_from(number).unwrap_or(0)))
}

pub(crate) fn set_marks(fd: c_int, marks: Marks) -> Outcome<()> {
    set_int_option(fd, libc::SO_RCVLOWAT, marks.to_number() as c_int)
}

fn int_option(fd: c_int, level: c_int, name: c_int) -> Outcome<c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as socklen_t;
    let at = (&raw mut value).cast();
    // SAFETY: both live, and the value has this length.
    check(unsafe { libc_next::getsockopt(fd, level, name, at, &raw mut length) } as isize)?;
    Ok(value)
}

/// Copies the send timeout of `from` to `to`, as its receive timeout.
pub(crate) fn copy_send_timeout(from: c_int, to: c_int) {
    copy_option(from, to, (libc::SO_SNDTIMEO, libc::SO_RCVTIMEO));
}

/// The send timeout, in nanoseconds; `None` if there is none.
fn send_timeout(fd: c_int) -> Option<i64> {
    // SAFETY: zero is a time.
    let mut value: libc::timeval = unsafe { zeroed() };
    let mut length = size_of::<libc::timeval>() as socklen_t;
    let (level, name, at) = (libc::SOL_SOCKET, libc::SO_SNDTIMEO, (&raw mut value).cast());
    // SAFETY: both live, and the value has this length.
    unsafe { libc_next::getsockopt(fd, level, name, at, &raw mut length) };
    let nanoseconds =
        value.tv_sec.saturating_mul(1_000_000_000).saturating_add(value.tv_usec * 1000);
    (nanoseconds != 0).then_some(nanoseconds)
}

/// Gives a new socket what the kernel lets it inherit, and what the pair itself keeps.
pub(crate) fn inherit_options(from: c_int, to: c_int) {
    for name in [libc::SO_LINGER, libc::SO_RCVTIMEO, libc::SO_SNDTIMEO, libc::SO_REUSEADDR] {
        copy_option(from, to, (name, name));
    }
}

/// Copies the value of the first option of `from` to the second one of `to`.
fn copy_option(from: c_int, to: c_int, (read, set): (c_int, c_int)) {
    let mut value = [0_u8; size_of::<libc::timeval>()];
    let mut length = value.len() as socklen_t;
    let at = value.as_mut_ptr();
    // SAFETY: both live, and the value has this length.
    unsafe {
        if libc_next::getsockopt(from, libc::SOL_SOCKET, read, at.cast(), &raw mut length) == 0 {
            libc_next::setsockopt(to, libc::SOL_SOCKET, set, at.cast_const().cast(), length);
        }
    }
}

/// Limits the time for which a call waits to receive.
pub(crate) fn set_receive_timeout(fd: c_int, seconds: c_int) {
    let time = libc::timeval { tv_sec: seconds.into(), tv_usec: 0 };
    let length = size_of::<libc::timeval>() as socklen_t;
    let (level, name, at) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const time).cast());
    // SAFETY: the value lives and has this length.
    unsafe { libc_next::setsockopt(fd, level, name, at, length) };
}

/// Ends both directions of a connection of our own, also for descriptors of it that a child has got.
pub(crate) fn end(fd: c_int) {
    // SAFETY: it takes numbers alone.
    unsafe { libc_next::shutdown(fd, libc::SHUT_RDWR) };
}

/// The name of the socket, if it is one of ours.
pub(crate) fn socket_name(fd: c_int) -> Option<SocketName> {
    let mut name = [0_u8; NAME_BYTES];
    let mut length = name.len() as socklen_t;
    let before = errno();
    // SAFETY: both live, and the name has this length.
    let result = unsafe { libc_next::getsockname(fd, name.as_mut_ptr().cast(), &raw mut length) };
    set_errno(before);
    let name = name.get(..length as usize).filter(|_| result == 0)?;
    let is_unix = name.get(..2)? == (libc::AF_UNIX as u16).to_ne_bytes();
    SocketName::parse(name.get(3..).filter(|_| is_unix && name[2] == 0)?)
}

/// A connection to the abstract name.
pub(crate) fn connect_to(name: &[u8]) -> Outcome<c_int> {
    let mut address = [0_u8; NAME_BYTES];
    address[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
    let length = 3 + name.len();
    address.get_mut(3..length).ok_or(Errno(libc::EINVAL))?.copy_from_slice(name);
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: it takes numbers alone.
    let fd = unsafe { libc_next::socket(libc::AF_UNIX, kind, 0) };
    check(fd as isize)?;
    // SAFETY: the address lives and has this length.
    let result = unsafe { libc_next::connect(fd, address.as_ptr().cast(), length as socklen_t) };
    let is_there = check(result as isize).and_then(|_| check_user(fd));
    if let Err(error) = is_there {
        close(fd);
        return Err(error);
    }
    Ok(fd)
}

/// Checks that the other end belongs to this user or to root: any process may bind an abstract name, and would get all
/// data that the program sends. Otherwise the connection is refused.
fn check_user(fd: c_int) -> Outcome<()> {
    let user = peer(fd)?.uid;
    // SAFETY: it takes nothing.
    let own = unsafe { libc::geteuid() };
    if user == 0 || user == own { Ok(()) } else { Err(Errno(libc::ECONNREFUSED)) }
}

/// The process and user that made the other end of a UNIX socket: of a pair, both ends; of a connection, its listener.
fn peer(fd: c_int) -> Outcome<libc::ucred> {
    let mut peer = libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: 0 };
    let mut length = size_of::<libc::ucred>() as socklen_t;
    let at = (&raw mut peer).cast();
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: both live, and the value has this length.
    let result = unsafe { libc_next::getsockopt(fd, level, name, at, &raw mut length) };
    check(result as isize)?;
    Ok(peer)
}

/// Whether both UNIX sockets have their other end from the same process.
pub(crate) fn have_same_peer(fd: c_int, other: c_int) -> bool {
    peer(fd).is_ok_and(|made| peer(other).is_ok_and(|peer| made.pid == peer.pid))
}

/// Closes a descriptor of our own.
pub(crate) fn close(fd: c_int) {
    let before = errno();
    // SAFETY: it is ours; the program does not know its number.
    unsafe { libc_next::close(fd) };
    set_errno(before);
}

/// Closes a descriptor of the program.
pub(crate) fn close_of_program(fd: c_int) -> Outcome<()> {
    // SAFETY: the program gives it away.
    check(unsafe { libc_next::close(fd) } as isize).map(drop)
}

/// The seconds for which `close` waits (`SO_LINGER`): 0 if it does not, negative for no limit.
pub(crate) fn linger_seconds(fd: c_int) -> c_int {
    let mut value = libc::linger { l_onoff: 0, l_linger: 0 };
    let mut length = size_of::<libc::linger>() as socklen_t;
    let at = (&raw mut value).cast();
    // SAFETY: both live, and the value has this length.
    let result = unsafe {
        libc_next::getsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, at, &raw mut length)
    };
    if result == 0 && value.l_onoff != 0 { value.l_linger } else { 0 }
}

/// Moves the descriptor to the lowest free number, as calls that create descriptors must (some programs rely on it).
pub(crate) fn lowest(fd: c_int) -> c_int {
    // SAFETY: it takes numbers alone.
    let lowest = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if lowest == -1 {
        return fd;
    }
    close(fd);
    lowest
}

pub(crate) fn is_non_blocking(fd: c_int) -> bool {
    // SAFETY: it takes numbers alone.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags != -1 && flags & libc::O_NONBLOCK != 0
}

/// Sets `O_NONBLOCK` and `FD_CLOEXEC`, as the bits of `flags` say.
pub(crate) fn set_flags(fd: c_int, flags: c_int) {
    // SAFETY: they take numbers alone.
    unsafe {
        if flags & libc::SOCK_NONBLOCK != 0 {
            let before = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, before | libc::O_NONBLOCK);
        }
        if flags & libc::SOCK_CLOEXEC == 0 {
            libc::fcntl(fd, libc::F_SETFD, 0);
        }
    }
}

/// Whether the association of a one-to-one socket has ended, so that nothing can be sent: the engine has then named its end
/// of the pair.
pub(crate) fn is_over(fd: c_int) -> bool {
    let mut name = [0_u8; NAME_BYTES];
    let mut length = name.len() as socklen_t;
    let before = errno();
    // SAFETY: both live, and the name has this length.
    let result = unsafe { libc_next::getpeername(fd, name.as_mut_ptr().cast(), &raw mut length) };
    set_errno(before);
    result == 0 && length as usize > size_of::<libc::sa_family_t>()
}

/// Whether a message can be sent without waiting.
pub(crate) fn is_writable(fd: c_int) -> bool {
    let mut waiting = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry, which lives.
    unsafe { libc::poll(&raw mut waiting, 1, 0) == 1 }
}

/// Raises SIGPIPE in this thread, as a send on a closed connection does.
pub(crate) fn raise_pipe() {
    // SAFETY: it takes a number alone.
    unsafe { libc::raise(libc::SIGPIPE) };
}

pub(crate) fn thread() -> i32 {
    // SAFETY: it takes nothing.
    unsafe { libc::gettid() }
}

pub(crate) fn give_way() {
    // SAFETY: it takes nothing.
    unsafe { libc::sched_yield() };
}

/// A variable of the environment, if it has at most `N` bytes.
pub(crate) fn variable<const N: usize>(name: &CStr, to: &mut [u8; N]) -> Option<usize> {
    // SAFETY: the name ends with a zero byte, and so does the value.
    let value = unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() {
            return None;
        }
        CStr::from_ptr(value).to_bytes()
    };
    to.get_mut(..value.len())?.copy_from_slice(value);
    Some(value.len())
}

/// Writes a structure back.
pub(crate) fn write_header(header: &msghdr, to: Address) -> Outcome<()> {
    // SAFETY: it lives, has this size, and was read as bytes, padding included.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(header).cast::<u8>(), size_of::<msghdr>())
    };
    copy_out(bytes, to)
}
