//! The connections over which calls arrive, and the programs that use the engine.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rexmit_core::Instant;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, listen, recv, sendmsg, socket_with,
};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

use super::lingers::Lingers;
use super::{Engine, FIRST_REQUEST_TOKEN, Outcome, REQUESTS_TOKEN};
use crate::protocol::name::{self, EngineNumber};
use crate::protocol::request::{ANSWER_BYTES, Key, MAX_BODY_BYTES, REQUEST_BYTES, Request};

/// The most requests that wait for their answers at the same time; further ones wait in the kernel's queue.
pub(super) const MAX_REQUESTS: usize = 4096;
/// The most processes that are watched; the engine does not wait for the end of further ones.
pub(super) const MAX_PROGRAMS: usize = 1024;
/// The most connections of other users whose request has not arrived. Beyond, the oldest one of the user with the most of
/// them is closed: one user cannot keep out another.
const MAX_STRANGERS: usize = 64;
/// The time after which a connection without a request may be closed to make room for another one.
const SILENT_TIME: Duration = Duration::from_secs(5);
/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// The most connections accepted in one round.
const ACCEPTED_PER_ROUND: usize = 64;

#[derive(Debug)]
enum Connection {
    /// A connection whose request was not read yet, or whose answer was not sent yet.
    Request(OwnedFd),
    /// The descriptor of a process, which is readable once that has ended.
    Program(#[expect(dead_code, reason = "epoll watches it while it is held")] OwnedFd, Key),
}

/// Connections whose request has not arrived; the oldest has the smallest number.
#[derive(Debug, Default)]
struct Silent {
    /// Connections of the engine's user and of root, with the time at which they were accepted.
    own: BTreeMap<u64, Instant>,
    /// Connections of other users, with the user.
    strangers: BTreeMap<u64, libc::uid_t>,
}

impl Silent {
    /// The oldest connection of the user with the most of them.
    fn most_numerous(&self) -> Option<u64> {
        let mut of_users = BTreeMap::<_, Vec<u64>>::new();
        for (token, user) in &self.strangers {
            of_users.entry(user).or_default().push(*token);
        }
        let most = of_users.into_values().max_by_key(Vec::len)?;
        most.first().copied()
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Requests {
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    last_token: u64,
    programs: usize,
    silent: Silent,
    lingers: Lingers,
    /// The keys of the processes that are watched, and how many have each.
    keys: BTreeMap<Key, usize>,
    /// [`MAX_REQUESTS`].
    most: usize,
    /// [`MAX_PROGRAMS`].
    most_programs: usize,
    /// Whether there is no room for another connection, or no descriptor: the listener is not watched meanwhile.
    is_paused: bool,
}

impl Requests {
    pub(super) fn listen(number: EngineNumber) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(&name::of_engine(number))?)?;
        listen(&listener, BACKLOG)?;
        let last_token = FIRST_REQUEST_TOKEN;
        Ok(Self {
            listener,
            connections: BTreeMap::new(),
            last_token,
            programs: 0,
            silent: Silent::default(),
            lingers: Lingers::default(),
            keys: BTreeMap::new(),
            most: MAX_REQUESTS,
            most_programs: MAX_PROGRAMS,
            is_paused: false,
        })
    }

    pub(super) const fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    pub(super) const fn has_programs(&self) -> bool {
        self.programs != 0
    }

    pub(super) const fn is_paused(&self) -> bool {
        self.is_paused
    }

    fn has_room(&self) -> bool {
        self.connections.len() - self.programs < self.most
    }

    /// The connection to be closed for another one: the oldest, if it has been silent for [`SILENT_TIME`].
    fn dispensable(&self, now: Instant) -> Option<u64> {
        let (token, since) = self.silent.own.first_key_value()?;
        (now - *since >= SILENT_TIME).then_some(*token)
    }

    fn close(&mut self, token: u64) {
        self.connections.remove(&token);
        self.silent.own.remove(&token);
        self.silent.strangers.remove(&token);
        self.lingers.forget(token);
    }

    /// Adds a connection of this user or root (`None`), or of another user.
    fn admit(
        &mut self,
        now: Instant,
        epoll: &OwnedFd,
        connection: OwnedFd,
        stranger: Option<libc::uid_t>,
    ) {
        let watched = EventData::new_u64(self.last_token + 1);
        if epoll::add(epoll, &connection, watched, EventFlags::IN).is_err() {
            return;
        }
        let token = self.insert(Connection::Request(connection));
        let Some(user) = stranger else {
            self.silent.own.insert(token, now);
            return;
        };
        self.silent.strangers.insert(token, user);
        if self.silent.strangers.len() > MAX_STRANGERS
            && let Some(token) = self.silent.most_numerous()
        {
            self.close(token);
        }
    }

    fn insert(&mut self, connection: Connection) -> u64 {
        self.last_token += 1;
        self.connections.insert(self.last_token, connection);
        self.last_token
    }

    /// Answers a request, with a descriptor, and closes its connection.
    pub(super) fn answer(&mut self, token: u64, outcome: &Outcome, descriptor: Option<&OwnedFd>) {
        let Some(Connection::Request(connection)) = self.connections.remove(&token) else { return };
        let error = outcome.as_ref().map_or_else(|failure| failure.0, |_| 0);
        let mut header = [0; ANSWER_BYTES];
        header[..4].copy_from_slice(&error.to_ne_bytes());
        let value = outcome.as_deref().unwrap_or_default();
        let parts = [IoSlice::new(&header), IoSlice::new(value)];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(AsFd::as_fd);
        if let Some(descriptor) = &descriptors {
            ancillary.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(descriptor)));
        }
        // A program that has gone needs no answer.
        let _ = sendmsg(&connection, &parts, &mut ancillary, SendFlags::NOSIGNAL);
    }
}

impl Engine {
    /// Accepts new connections.
    pub(super) fn accept_requests(&mut self) {
        for _ in 0..ACCEPTED_PER_ROUND {
            let dispensable = self.requests.dispensable(self.now);
            if !self.requests.has_room() && dispensable.is_none() {
                return self.pause_requests(true);
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let connection = match accept_with(&self.requests.listener, flags) {
                Ok(connection) => connection,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR | Errno::CONNABORTED) => continue,
                // There is no descriptor left, until a socket is closed.
                Err(_) => return self.pause_requests(true),
            };
            if let Some(token) = dispensable.filter(|_| !self.requests.has_room()) {
                self.requests.close(token);
            }
            let user = peer(&connection).map_or(libc::uid_t::MAX, |peer| peer.uid);
            let stranger = Some(user).filter(|&user| user != 0 && user != geteuid().as_raw());
            self.requests.admit(self.now, &self.epoll, connection, stranger);
        }
        self.pause_requests(false);
    }

    /// Stops or resumes watching the listener. Watched, one that cannot accept the connections in the kernel's queue
    /// would be ready all the time.
    fn pause_requests(&mut self, is_paused: bool) {
        if self.requests.is_paused != is_paused {
            let flags = if is_paused { EventFlags::empty() } else { EventFlags::IN };
            let data = EventData::new_u64(REQUESTS_TOKEN);
            let _ = epoll::modify(&self.epoll, &self.requests.listener, data, flags);
            self.requests.is_paused = is_paused;
        }
    }

    pub(super) fn on_request_ready(&mut self, token: u64) {
        let mut buffer = [0; REQUEST_BYTES + MAX_BODY_BYTES];
        match self.requests.connections.get(&token) {
            None => {}
            Some(&Connection::Program(_, key)) => self.requests.forget(token, key),
            Some(Connection::Request(connection)) => {
                let length = match recv(connection, &mut buffer[..], RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN | Errno::INTR) => return,
                    Ok((length, _)) => length,
                    Err(_) => 0,
                };
                let is_stranger = self.requests.silent.strangers.remove(&token).is_some();
                self.requests.silent.own.remove(&token);
                match Request::parse(&buffer[..length]) {
                    Some((request, key, body)) if !is_stranger || permits(self, &request, key) => {
                        self.call(token, &request, key, body);
                    }
                    // Also a program that waits no longer for its answer.
                    _ => self.requests.close(token),
                }
            }
        }
    }
}

/// Whether another user may make this request: with the key of a program, and of the socket that it is about.
fn permits(engine: &Engine, request: &Request, key: Key) -> bool {
    let is_own = |socket: &super::Socket| socket.settings.key == key;
    engine.requests.keys.contains_key(&key)
        && engine.sockets.get(&request.socket).is_none_or(is_own)
}

/// The value of an option of a connection: `T` is a type of numbers alone.
fn option<T: Copy>(connection: &OwnedFd, name: libc::c_int, mut value: T) -> io::Result<T> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let (fd, at) = (connection.as_raw_fd(), (&raw mut value).cast());
    // SAFETY: the value lives and has this length.
    let result = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, name, at, &raw mut length) };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// The process and the user that have connected; the process is 0 if it is outside of the engine's namespace of them.
fn peer(connection: &OwnedFd) -> io::Result<libc::ucred> {
    option(connection, libc::SO_PEERCRED, libc::ucred { pid: 0, uid: libc::uid_t::MAX, gid: 0 })
}

/// A descriptor of the process that has connected, which is readable once it has ended.
fn process_of(connection: &OwnedFd) -> io::Result<OwnedFd> {
    /// Of Linux 6.5.
    const SO_PEERPIDFD: libc::c_int = 77;
    if let Ok(fd) = option(connection, SO_PEERPIDFD, -1) {
        // SAFETY: the kernel has made it for this call.
        return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    let process = Pid::from_raw(peer(connection)?.pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

impl Requests {
    /// Enters a closed socket whose association goes on, and which lingers.
    pub(super) fn begin_linger(&mut self, socket: u64, association: u32) {
        self.lingers.begin(socket, association);
    }

    /// Answers the request of a program that has closed a descriptor of this socket: when its association has ended, or
    /// at once if the program has other descriptors of it.
    pub(super) fn linger(&mut self, socket: u64, token: u64) {
        if let Some(token) = self.lingers.wait(socket, token) {
            self.answer(token, &Ok(Vec::new()), None);
        }
    }

    /// Called when an association has ended.
    pub(super) fn end_linger(&mut self, association: u32) {
        if let Some(token) = self.lingers.end(association) {
            self.answer(token, &Ok(Vec::new()), None);
        }
    }

    /// Registers the process that has sent this request: the engine runs until that has ended.
    pub(super) fn register(&mut self, epoll: &OwnedFd, token: u64, key: Key) -> Outcome {
        let failed = super::Failure(libc::ESRCH);
        let Some(Connection::Request(connection)) = self.connections.get(&token) else {
            return Err(failed);
        };
        // 0 is what a program sends that knows no key.
        let key = if key == 0 { getrandom::u64().map_err(|_| failed)?.max(1) } else { key };
        if self.programs < self.most_programs {
            let program = process_of(connection).map_err(|_| failed)?;
            let watched = EventData::new_u64(self.last_token + 1);
            epoll::add(epoll, &program, watched, EventFlags::IN)?;
            self.insert(Connection::Program(program, key));
            self.programs += 1;
            *self.keys.entry(key).or_default() += 1;
        }
        Ok(key.to_ne_bytes().to_vec())
    }

    /// Forgets a process that has ended.
    fn forget(&mut self, token: u64, key: Key) {
        self.connections.remove(&token);
        self.programs -= 1;
        if let Some(count) = self.keys.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.keys.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::connect;

    use super::*;
    use crate::engine::pair;
    use crate::engine::settings;
    use crate::engine::socket::MAX_NOTIFICATIONS;
    use crate::protocol::Style;
    use crate::protocol::frame::Header;
    use crate::protocol::request::Call;
    use crate::transports::Transports;

    fn engine() -> Engine {
        let number = getrandom::u64().expect("random bits");
        Engine::new(number, 0, Transports::default()).expect("an engine")
    }

    fn connected(engine: &Engine) -> OwnedFd {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket");
        let name = SocketAddrUnix::new_abstract_name(&name::of_engine(engine.number));
        connect(&socket, &name.expect("a name")).expect("it listens");
        socket
    }

    /// Whether the engine would wait, if it had nothing else to do.
    fn is_at_rest(engine: &Engine) -> bool {
        let mut events = Vec::with_capacity(8);
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let buffer = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&engine.epoll, buffer, Some(&now)).expect("it can be waited for") == 0
    }

    #[test]
    fn connections_are_taken_by_rounds() {
        let mut engine = engine();
        let all: Vec<_> = (0..ACCEPTED_PER_ROUND + 10).map(|_| connected(&engine)).collect();
        engine.accept_requests();
        assert_eq!(engine.requests.connections.len(), ACCEPTED_PER_ROUND);
        assert!(!is_at_rest(&engine), "the others are still to be taken");
        engine.accept_requests();
        assert_eq!(engine.requests.connections.len(), all.len());
        assert!(is_at_rest(&engine));
    }

    #[test]
    fn an_engine_without_room_for_requests_does_not_spin() {
        let mut engine = engine();
        engine.requests.most = 2;
        let mut all: Vec<_> = (0..3).map(|_| connected(&engine)).collect();
        engine.accept_requests();
        assert!(engine.requests.is_paused() && is_at_rest(&engine));
        drop(all.swap_remove(0));
        let closed = *engine.requests.connections.keys().next().expect("two were taken");
        engine.on_request_ready(closed);
        engine.accept_requests();
        assert_eq!(engine.requests.connections.len(), 2);
        engine.accept_requests();
        drop(all);
        for token in engine.requests.connections.keys().copied().collect::<Vec<_>>() {
            engine.on_request_ready(token);
        }
        engine.accept_requests();
        assert!(!engine.requests.is_paused());
        let _late = connected(&engine);
        assert!(!is_at_rest(&engine), "the listener is watched again");
    }

    /// One end of a pair, whose other end is a connection of another user.
    fn stranger(engine: &mut Engine, user: libc::uid_t) -> OwnedFd {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let pair = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None);
        let (ours, theirs) = pair.expect("a pair");
        let now = engine.now;
        engine.requests.admit(now, &engine.epoll, ours, Some(user));
        theirs
    }

    #[test]
    fn other_users_hold_a_bounded_number_of_connections() {
        let mut engine = engine();
        let _own = connected(&engine);
        engine.accept_requests();
        let before = stranger(&mut engine, 1000);
        let all: Vec<_> = (0..MAX_STRANGERS + 10).map(|_| stranger(&mut engine, 1001)).collect();
        assert_eq!(engine.requests.connections.len(), MAX_STRANGERS + 1);
        assert_eq!(engine.requests.silent.own.len(), 1, "only those of other users are closed");
        let is_closed = |connection: &OwnedFd| {
            let received = recv(connection, &mut [0; 8][..], RecvFlags::DONTWAIT);
            assert!(matches!(received, Ok((0, _)) | Err(Errno::AGAIN)), "{received:?}");
            received.is_ok()
        };
        assert!(!is_closed(&before), "the connection of a user with few");
        assert_eq!(all.iter().map(is_closed).filter(|&is| is).count(), 11);
        assert!(is_closed(&all[10]) && !is_closed(&all[11]), "the oldest are closed");
    }

    /// Registers this process; returns the key.
    fn register(engine: &mut Engine) -> Key {
        let connection = connected(engine);
        engine.accept_requests();
        let token = engine.requests.last_token;
        let outcome = engine.requests.register(&engine.epoll, token, 0).expect("it is registered");
        engine.requests.close(token);
        drop(connection);
        Key::from_ne_bytes(outcome.try_into().expect("a key"))
    }

    #[test]
    fn another_user_needs_the_key() {
        let mut engine = engine();
        let [key, other] = [register(&mut engine), register(&mut engine)];
        assert!(key != other && key != 0);
        for (key, is_answered) in [(0, false), (key ^ other, false), (key, true)] {
            let theirs = stranger(&mut engine, 1000);
            let request = Request {
                call: Call::Socket,
                socket: 0,
                first: libc::AF_INET,
                second: libc::SOCK_STREAM,
            };
            let bytes = request.to_bytes(key);
            let mut ancillary = SendAncillaryBuffer::default();
            sendmsg(&theirs, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
                .expect("sent");
            engine.on_request_ready(engine.requests.last_token);
            let answer =
                recv(&theirs, &mut [0; 8][..], RecvFlags::DONTWAIT).map(|(length, _)| length);
            assert_eq!(answer, Ok(if is_answered { ANSWER_BYTES } else { 0 }), "{key}");
            assert_eq!(engine.sockets.len(), usize::from(is_answered));
        }
        assert!(engine.requests.silent.strangers.is_empty());
        // The socket of one program is not that of another.
        let socket = *engine.sockets.keys().next().expect("it was made");
        let request = Request { call: Call::Option, socket, first: 0, second: 0 };
        assert!(permits(&engine, &request, key) && !permits(&engine, &request, other));
        // A key is good for as long as a process has it.
        let token = engine.requests.connections.iter().find_map(|(token, connection)| {
            matches!(connection, Connection::Program(_, of) if *of == key).then_some(*token)
        });
        engine.on_request_ready(token.expect("it is watched"));
        assert!(!permits(&engine, &request, key) && engine.requests.programs == 1);
    }

    #[test]
    fn a_connection_without_a_request_makes_room_after_its_time() {
        let mut engine = engine();
        engine.requests.most = 2;
        let _all: Vec<_> = (0..3).map(|_| connected(&engine)).collect();
        engine.accept_requests();
        assert!(engine.requests.is_paused());
        let oldest = *engine.requests.connections.keys().next().expect("two were taken");
        engine.now += SILENT_TIME;
        engine.accept_requests();
        assert!(!engine.requests.connections.contains_key(&oldest));
        assert_eq!((engine.requests.connections.len(), engine.requests.silent.own.len()), (2, 2));
    }

    #[test]
    fn a_process_is_watched_until_it_ends_and_their_number_is_bounded() {
        let mut engine = engine();
        register(&mut engine);
        assert_eq!(engine.requests.programs, 1);
        engine.requests.most_programs = 1;
        register(&mut engine);
        assert_eq!(engine.requests.programs, 1);
    }

    fn socket(engine: &mut Engine, style: Style) -> (u64, OwnedFd) {
        let profile = rexmit_sctp::AssociationConfig::default();
        let settings = settings::Settings::new(settings::Versions::V4, profile, 9899, 0);
        engine.new_socket(style, false, settings).expect("a socket")
    }

    #[test]
    fn a_socket_that_is_shut_down_in_both_directions_stays_until_it_is_closed() {
        let mut engine = engine();
        let (number, theirs) = socket(&mut engine, Style::OneToOne);
        let copy = theirs.try_clone().expect("a descriptor");
        rustix::net::shutdown(&theirs, rustix::net::Shutdown::Both).expect("it is a socket");
        drop(copy);
        assert!(!is_at_rest(&engine));
        engine.on_socket_ready(number, EventFlags::HUP);
        assert!(engine.sockets.contains_key(&number), "the program has it");
        // It is reported once more, because the way of watching has changed.
        assert!(!is_at_rest(&engine));
        engine.on_socket_ready(number, EventFlags::HUP);
        assert!(is_at_rest(&engine), "the engine would spin");
        drop(theirs);
        assert!(!is_at_rest(&engine));
        engine.on_socket_ready(number, EventFlags::HUP);
        assert!(engine.sockets.is_empty());
    }

    /// A program sends without an association and never receives, while the engine reads its messages.
    #[test]
    fn errors_that_are_not_read_are_bounded() {
        let mut engine = engine();
        let (number, theirs) = socket(&mut engine, Style::OneToMany);
        let nobodys = Header { association: 77, has_info: true, is_end: true, ..Header::default() };
        let bytes = [&nobodys.to_bytes()[..], b"x"].concat();
        for _ in 0..20 * pair::PAIR_BYTES / 1024 {
            let mut ancillary = SendAncillaryBuffer::default();
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            if sendmsg(&theirs, &[IoSlice::new(&bytes)], &mut ancillary, flags).is_err() {
                break;
            }
            engine.take_messages(number, false);
        }
        let waiting = engine.sockets[&number].waiting_count();
        assert!((1..=MAX_NOTIFICATIONS).contains(&waiting), "{waiting}");
    }
}
