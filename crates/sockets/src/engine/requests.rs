//! The connections on which calls come, and the programs that use the engine.

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

use super::{Engine, FIRST_REQUEST_TOKEN, Outcome};
use crate::protocol::name::{self, EngineNumber};
use crate::protocol::request::{ANSWER_BYTES, MAX_BODY_BYTES, REQUEST_BYTES, Request};

/// Requests that wait for their answers at the same time, and programs; more wait in the kernel's queue.
const MAX_REQUESTS: usize = 4096;
/// Requests that wait to be accepted.
const BACKLOG: i32 = 1024;

#[derive(Debug)]
enum Connection {
    /// Its request is to be read, or its answer to be sent.
    Request(OwnedFd),
    /// Readable once the program has ended.
    Program(OwnedFd),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Requests {
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    last_token: u64,
    programs: usize,
}

impl Requests {
    pub(super) fn listen(number: EngineNumber) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(&name::of_engine(number))?)?;
        listen(&listener, BACKLOG)?;
        let last_token = FIRST_REQUEST_TOKEN;
        Ok(Self { listener, connections: BTreeMap::new(), last_token, programs: 0 })
    }

    pub(super) const fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    pub(super) const fn has_programs(&self) -> bool {
        self.programs != 0
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
    /// Takes new connections of this user, or of root.
    pub(super) fn accept_requests(&mut self) {
        while self.requests.connections.len() < MAX_REQUESTS {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let Ok(connection) = accept_with(&self.requests.listener, flags) else { return };
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
                // Those in the kernel's queue.
                self.accept_requests();
            }
        }
    }

    /// Stays until the process has ended.
    pub(super) fn register(&mut self, process: i32) -> Outcome {
        let failed = super::Failure(libc::ESRCH);
        let process = Pid::from_raw(process).ok_or(failed)?;
        let program = pidfd_open(process, PidfdFlags::empty())?;
        let token = self.requests.insert(Connection::Program(program));
        if let Some(Connection::Program(program)) = self.requests.connections.get(&token) {
            epoll::add(&self.epoll, program, EventData::new_u64(token), EventFlags::IN)?;
        }
        self.requests.programs += 1;
        Ok(Vec::new())
    }
}
