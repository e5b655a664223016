//! The connections over which calls arrive, and the programs that use the engine.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept_with, bind, listen, recv, sendmsg, socket_with, sockopt,
};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};

use super::{Engine, FIRST_REQUEST_TOKEN, Outcome, REQUESTS_TOKEN};
use crate::protocol::name::{self, EngineNumber};
use crate::protocol::request::{ANSWER_BYTES, MAX_BODY_BYTES, REQUEST_BYTES, Request};

/// The most requests that wait for their answers at the same time, and the most programs; further ones wait in the
/// kernel's queue.
const MAX_REQUESTS: usize = 4096;
/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// The most connections accepted in one round: those of other users are refused, which costs time, too.
const ACCEPTED_PER_ROUND: usize = 64;

#[derive(Debug)]
enum Connection {
    /// A connection whose request was not read yet, or whose answer was not sent yet.
    Request(OwnedFd),
    /// The descriptor of a process, which is readable once that has ended.
    Program(#[expect(dead_code, reason = "epoll watches it while it is held")] OwnedFd),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Requests {
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    last_token: u64,
    programs: usize,
    /// [`MAX_REQUESTS`].
    most: usize,
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
            most: MAX_REQUESTS,
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
    /// Accepts new connections of this user, or of root.
    pub(super) fn accept_requests(&mut self) {
        for _ in 0..ACCEPTED_PER_ROUND {
            if self.requests.connections.len() >= self.requests.most {
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
            let user = sockopt::socket_peercred(&connection).map(|credentials| credentials.uid);
            if !user.is_ok_and(|user| user.is_root() || user == geteuid()) {
                continue;
            }
            let token = self.requests.insert(Connection::Request(connection));
            if let Some(Connection::Request(connection)) = self.requests.connections.get(&token) {
                let data = EventData::new_u64(token);
                let _ = epoll::add(&self.epoll, connection, data, EventFlags::IN);
            }
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
            Some(Connection::Program(_)) => {
                self.requests.connections.remove(&token);
                self.requests.programs -= 1;
            }
            Some(Connection::Request(connection)) => {
                let length = match recv(connection, &mut buffer[..], RecvFlags::DONTWAIT) {
                    Err(Errno::AGAIN | Errno::INTR) => return,
                    Ok((length, _)) => length,
                    Err(_) => 0,
                };
                match Request::parse(&buffer[..length]) {
                    Some((request, body)) => self.call(token, &request, body),
                    // Also a program that waits no longer for its answer.
                    None => drop(self.requests.connections.remove(&token)),
                }
            }
        }
    }
}

impl Requests {
    /// Registers a process: the engine runs until that has ended.
    pub(super) fn register(&mut self, epoll: &OwnedFd, process: i32) -> Outcome {
        let failed = super::Failure(libc::ESRCH);
        let process = Pid::from_raw(process).ok_or(failed)?;
        let program = pidfd_open(process, PidfdFlags::empty())?;
        let token = EventData::new_u64(self.last_token + 1);
        epoll::add(epoll, &program, token, EventFlags::IN)?;
        self.insert(Connection::Program(program));
        self.programs += 1;
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::connect;

    use super::*;
    use crate::engine::pair;
    use crate::engine::socket::MAX_NOTIFICATIONS;
    use crate::protocol::Style;
    use crate::protocol::frame::Header;
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

    /// A program sends without an association and never receives, while the engine reads its messages.
    #[test]
    fn errors_that_are_not_read_are_bounded() {
        let mut engine = engine();
        let profile = rexmit_sctp::AssociationConfig::default();
        let settings = crate::engine::settings::Settings::new(profile, 9899);
        let made = engine.new_socket(Style::OneToMany, false, settings);
        let (number, theirs) = made.expect("a socket");
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
