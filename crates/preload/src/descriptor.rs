//! Caches of the state of sockets in this process. Other processes that share a socket work without them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use libc::c_int;
use rexmit_sockets::protocol::address;
use rexmit_sockets::protocol::name::SocketName;
use rexmit_sockets::protocol::request::{Call, Request, State};

use crate::engine::Wait;
use crate::{Errno, Outcome, engine, raw};

/// The entries of a cache: several times the sockets of an engine, because two that share an entry displace each other,
/// and each call then asks the engine. The kernel gives memory to those that are used only.
const ENTRIES: usize = 65_536;
/// The entries of [`RECEIVING`]; several sockets may share one.
const TURNS: usize = 1024;

/// Numbers of sockets that were connected when the engine was last asked. A one-to-one socket that was connected once
/// never becomes unconnected, so that an entry stays valid.
static CONNECTED: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
/// Sockets and their associations when the engine was last asked.
static ASSOCIATIONS: [AtomicU64; ENTRIES] = [const { AtomicU64::new(0) }; ENTRIES];
/// The threads that receive on sockets.
static RECEIVING: [AtomicI32; TURNS] = [const { AtomicI32::new(0) }; TURNS];

const fn entry(socket: u64) -> usize {
    (socket % ENTRIES as u64) as usize
}

/// The state of the socket, which determines the permitted calls.
pub(crate) fn state(name: SocketName) -> Outcome<State> {
    if CONNECTED[entry(name.socket)].load(Ordering::Relaxed) == name.socket {
        return Ok(State::Connected);
    }
    let request = Request { call: Call::State, socket: name.socket, first: 0, second: 0 };
    let mut value = [0; 4];
    let to = raw::own_part_mut(&mut value);
    engine::ask(name.engine, &request, raw::own_part(&[]), to, Wait::UntilAnswered)?;
    let state = State::of(u32::from_ne_bytes(value)).unwrap_or(State::Idle);
    if state == State::Connected && name.style.is_one_to_one() {
        CONNECTED[entry(name.socket)].store(name.socket, Ordering::Relaxed);
    }
    Ok(state)
}

/// Whether a message may arrive for a one-to-many socket: it listens, or has an association.
pub(crate) fn may_receive(name: SocketName) -> Outcome<bool> {
    let entry = &CONNECTED[entry(name.socket)];
    if entry.load(Ordering::Relaxed) == name.socket {
        return Ok(true);
    }
    let may_receive = state(name)? != State::Idle;
    if may_receive {
        entry.store(name.socket, Ordering::Relaxed);
    }
    Ok(may_receive)
}

/// Whether a one-to-many socket has this association, or had it recently.
pub(crate) fn has_association(name: SocketName, association: u32) -> Outcome<()> {
    // The numbers of sockets are random, so that sums hardly collide.
    let both = name.socket.wrapping_add(u64::from(association) << 32 | u64::from(association));
    let entry = &ASSOCIATIONS[entry(both)];
    if entry.load(Ordering::Relaxed) == both {
        return Ok(());
    }
    let first = association as i32;
    let request = Request { call: Call::Association, socket: name.socket, first, second: 0 };
    engine::ask(
        name.engine,
        &request,
        raw::own_part(&[]),
        raw::own_part(&[]),
        Wait::UntilAnswered,
    )?;
    entry.store(both, Ordering::Relaxed);
    Ok(())
}

/// Whether the socket has an association with the peer at this address, or had it recently.
pub(crate) fn has_peer(name: SocketName, peer: SocketAddr) -> Outcome<bool> {
    let mut hasher = DefaultHasher::new();
    (name.socket, peer).hash(&mut hasher);
    let both = hasher.finish();
    let entry = &ASSOCIATIONS[entry(both)];
    if entry.load(Ordering::Relaxed) == both {
        return Ok(true);
    }
    let request = Request { call: Call::Association, socket: name.socket, first: 0, second: 0 };
    // A `sockaddr_in6`, mapped if it is of IPv4, needs no heap memory: signal handlers may send.
    let mut bytes = [0; address::IPV6_BYTES];
    address::copy_as_ipv6(peer, &mut bytes);
    let (body, value) = (raw::own_part(&bytes), raw::own_part(&[]));
    match engine::ask(name.engine, &request, body, value, Wait::UntilAnswered) {
        Ok(_) => entry.store(both, Ordering::Relaxed),
        Err(Errno(libc::EPIPE)) => return Ok(false),
        Err(error) => return Err(error),
    }
    Ok(true)
}

/// The largest message that the socket sends in one packet.
pub(crate) fn fragment_bytes(name: SocketName) -> Outcome<usize> {
    let request = Request { call: Call::Fragment, socket: name.socket, first: 0, second: 0 };
    let mut value = [0; 4];
    let to = raw::own_part_mut(&mut value);
    engine::ask(name.engine, &request, raw::own_part(&[]), to, Wait::UntilAnswered)?;
    Ok(u32::from_ne_bytes(value) as usize)
}

/// Runs `act`, which does not wait, while no other thread or process receives on the socket, because reading a message
/// takes two system calls.
pub(crate) fn receiving<T>(fd: c_int, name: SocketName, act: impl FnOnce() -> T) -> T {
    let owner = &RECEIVING[entry(name.socket) % TURNS];
    let thread = raw::thread();
    // A signal handler may receive in the middle of a call of the same thread.
    if owner.load(Ordering::Relaxed) == thread {
        return act();
    }
    while owner.compare_exchange_weak(0, thread, Ordering::Acquire, Ordering::Relaxed).is_err() {
        raw::give_way();
    }
    let _turn = Turn { fd, owner };
    raw::lock(fd);
    act()
}

/// The turn of a thread to receive; it also ends if the thread is cancelled.
struct Turn {
    fd: c_int,
    owner: &'static AtomicI32,
}

impl Drop for Turn {
    fn drop(&mut self) {
        raw::unlock(self.fd);
        self.owner.store(0, Ordering::Release);
    }
}

/// Called in the child of a fork, where only the calling thread exists: no other thread is receiving.
pub(crate) fn forget_threads() {
    for owner in &RECEIVING {
        owner.store(0, Ordering::Relaxed);
    }
}

/// Whether a call on this descriptor may block.
pub(crate) fn may_wait(fd: c_int, flags: c_int) -> bool {
    flags & libc::MSG_DONTWAIT == 0 && !raw::is_non_blocking(fd)
}
