//! A socket of a program, and an association of a socket.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use rexmit_core::Instant;
use rexmit_sctp::{AssociationId, CloseReason};
use rustix::io::Errno;

use super::pair::{End, Pair};
use super::settings::Settings;
use crate::protocol::Style;
use crate::protocol::frame::{Header, Kind};
use crate::protocol::name::SocketName;
use crate::protocol::request::State;

/// The most notifications and errors that wait for room in a pair; later ones are dropped, as the kernel drops
/// notifications when the receive buffer is full.
pub(super) const MAX_NOTIFICATIONS: usize = 256;

/// The port and addresses of a bound socket.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) port: u16,
    /// None: all addresses.
    pub(super) addresses: Vec<IpAddr>,
}

impl Bound {
    /// Whether one of these is an address to which the socket is bound.
    pub(super) fn is_to_any_of(&self, others: &[SocketAddr]) -> bool {
        let is_bound = |other: &SocketAddr| self.addresses.contains(&other.ip());
        self.addresses.is_empty() || others.iter().any(is_bound)
    }
}

/// A message to be delivered to the program.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) header: Header,
    pub(super) payload: Bytes,
    pub(super) descriptor: Option<OwnedFd>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) name: SocketName,
    pub(super) pair: Pair,
    pub(super) settings: Settings,
    pub(super) bound: Option<Bound>,
    pub(super) state: State,
    pub(super) listening: Listening,
    pub(super) associations: BTreeSet<u32>,
    /// The associations by the peer's address, with its SCTP port.
    pub(super) peers: BTreeMap<SocketAddr, u32>,
    /// The association of [`State::Connecting`] and [`State::Connected`]; it may have ended.
    pub(super) association: Option<u32>,
    /// The local and the peer's address of the association of a one-to-one socket.
    pub(super) names: Option<(SocketAddr, SocketAddr)>,
    /// Requests that wait until an association is set up.
    pub(super) connecting: Vec<(u32, u64)>,
    /// `SO_ERROR`.
    pub(super) error: i32,
    pub(super) flow: Flow,
    /// Associations with something to receive.
    pub(super) readable: VecDeque<u32>,
}

/// Sockets that wait to be accepted.
#[derive(Debug, Default)]
pub(super) struct Listening {
    /// The most sockets that wait to be accepted.
    pub(super) backlog: usize,
    /// Numbers of the sockets that wait.
    pub(super) unaccepted: BTreeSet<u64>,
    /// The listener, until this socket is accepted.
    pub(super) accepted_from: Option<u64>,
}

/// The messages that wait at either end of the pair.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// A message of the program for which SCTP has no room yet.
    pub(super) held: Option<(Header, Bytes)>,
    inbox: VecDeque<Outgoing>,
    /// Whether the pair has no room for messages to the program.
    pub(super) is_full: bool,
    /// The program sends no more.
    pub(super) has_ended: bool,
    /// Whether the pair may contain data, and not only notifications.
    pub(super) may_have_unread_data: bool,
    /// The direction that ends for the program after all messages are written to its socket pair.
    pub(super) ends_when_flushed: Option<End>,
    /// The direction that has ended for the program.
    pub(super) ended: Option<End>,
    /// Whether both directions are shut down, although the program has not closed its end.
    pub(super) is_shut: bool,
    /// The events that epoll watches for: readable, writable, and those that the pair does not have yet alone.
    pub(super) watched: (bool, bool, bool),
}

impl Socket {
    pub(super) fn new(name: SocketName, pair: Pair, settings: Settings) -> Self {
        Self {
            name,
            pair,
            settings,
            bound: None,
            state: State::Idle,
            listening: Listening::default(),
            associations: BTreeSet::new(),
            peers: BTreeMap::new(),
            association: None,
            names: None,
            connecting: Vec::new(),
            error: 0,
            flow: Flow::default(),
            readable: VecDeque::new(),
        }
    }

    pub(super) fn is_one_to_one(&self) -> bool {
        self.name.style.is_one_to_one()
    }

    /// Whether `close` waits for the end of the association (`SO_LINGER`).
    pub(super) fn lingers(&self) -> bool {
        self.settings.lingers && self.name.style == Style::OneToOne
    }

    /// Whether no more associations may wait to be accepted: as in Linux, this is one more than the backlog.
    pub(super) fn is_backlog_full(&self) -> bool {
        self.listening.unaccepted.len() > self.listening.backlog
    }

    /// Whether messages of the program may be read now.
    pub(super) fn may_read(&self) -> bool {
        // While connecting or listening, fillers stay, so that the program's end is not writable.
        let has_fillers = matches!(self.state, State::Connecting | State::Listening);
        let is_waiting = self.is_one_to_one() && has_fillers;
        self.flow.held.is_none() && !self.flow.has_ended && !is_waiting
    }

    /// Adds an association with this peer.
    pub(super) fn own(&mut self, association: u32, peer: SocketAddr) {
        self.associations.insert(association);
        self.peers.insert(peer, association);
    }

    /// Removes an association.
    pub(super) fn disown(&mut self, association: u32, peer: SocketAddr) {
        self.associations.remove(&association);
        // The peer may have another one by now.
        if self.peers.get(&peer) == Some(&association) {
            self.peers.remove(&peer);
        }
    }

    /// Queues a message for the program.
    pub(super) fn deliver(&mut self, header: Header, payload: Bytes, fd: Option<OwnedFd>) {
        self.flow.inbox.push_back(Outgoing { header, payload, descriptor: fd });
    }

    /// As [`deliver`](Self::deliver), for a notification of the association with `peer`; dropped if too many wait.
    pub(super) fn notify(&mut self, association: u32, peer: SocketAddr, notification: Vec<u8>) {
        if self.flow.inbox.len() < MAX_NOTIFICATIONS {
            let header = Header {
                kind: Kind::Notification,
                is_end: true,
                association,
                address: Some(peer),
                ..Header::default()
            };
            self.deliver(header, notification.into(), None);
        }
    }

    /// Makes the next call that receives fail. Dropped if too many wait, because a program that never receives could
    /// cause any number.
    pub(super) fn fail(&mut self, error: i32) {
        if self.flow.inbox.len() < MAX_NOTIFICATIONS {
            self.deliver(Header::of_error(error), Bytes::new(), None);
        }
    }

    /// Moves messages into the pair while it has room. Returns whether all were moved.
    pub(super) fn flush(&mut self) -> bool {
        while let Some(first) = self.flow.inbox.front() {
            let is_data = first.header.kind == Kind::Data;
            if is_data || self.pair.is_read() {
                self.flow.may_have_unread_data = is_data;
            }
            match self.pair.send(&first.header, &first.payload, first.descriptor.as_ref()) {
                Err(Errno::AGAIN) => {
                    self.flow.is_full = true;
                    return false;
                }
                // The program has closed its end, which is noticed there; or descriptors are exhausted.
                Ok(()) | Err(_) => drop(self.flow.inbox.pop_front()),
            }
        }
        self.flow.is_full = false;
        if let Some(end) = self.flow.ends_when_flushed.take() {
            self.pair.end(end);
            self.flow.ended = Some(end);
        }
        true
    }

    /// Ends the association for the program, once it has all messages. Only the first end counts.
    pub(super) fn end(&mut self, end: End) {
        if self.flow.ended.is_none() && self.flow.ends_when_flushed.is_none() {
            self.flow.ends_when_flushed = Some(end);
        }
        self.flush();
    }

    /// Whether the program reads, or will read, the end of the peer's data.
    pub(super) fn has_end_of_data(&self) -> bool {
        self.flow.ended.or(self.flow.ends_when_flushed) == Some(End::Data)
    }

    /// Messages that wait for room in the pair.
    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> usize {
        self.flow.inbox.len()
    }

    /// Whether messages of a peer found no room in the pair.
    pub(super) fn has_waiting_data(&self) -> bool {
        self.flow.inbox.iter().any(|waiting| waiting.header.kind == Kind::Data)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Association {
    pub(super) port: u16,
    pub(super) id: AssociationId,
    /// `None` once the program has closed it.
    pub(super) socket: Option<u64>,
    pub(super) remote_port: u16,
    /// The peer's address, with its SCTP port.
    pub(super) peer: SocketAddr,
    /// Outgoing and incoming streams, once the association is established.
    pub(super) streams: Option<(u16, u16)>,
    /// The peer sends no more.
    pub(super) peer_has_ended: bool,
    /// Whether the program has requested the end. Before the association is established, this is delayed until then.
    pub(super) is_closing: bool,
    /// Whether the program has sent a message.
    pub(super) has_sent: bool,
    /// The time without data after which the association ends (`SCTP_AUTOCLOSE`).
    pub(super) autoclose: Option<Duration>,
    /// When data was last sent or received.
    pub(super) last_used: Instant,
    pub(super) closed: Option<CloseReason>,
    /// Notifications of messages that failed because it has ended, which follow that of the end as in Linux.
    pub(super) failed: Vec<Vec<u8>>,
}
