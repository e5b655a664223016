//! Messages between the programs' pairs and SCTP.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use libc::{EINVAL, EMSGSIZE, ENOTCONN};
use rexmit_sctp::{OutboundMessage, Reliability, SendError};
use rustix::event::epoll::{self, EventData, EventFlags};

use super::calls::transport_to;
use super::notifications::{self, Change, Type};
use super::pair::{End, Received};
use super::socket::{Association, Socket};
use super::{Engine, Failure};
use crate::protocol::frame::{Header, Kind, MAX_PART_BYTES};
use crate::protocol::request::State;

/// The most messages of a program read in one round.
const TAKEN_PER_ROUND: usize = 64;

/// `sinfo_flags` (RFC 6458 §5.3.2, RFC 7496 §4).
mod flag {
    pub(super) const UNORDERED: u16 = 1;
    pub(super) const ABORT: u16 = 4;
    pub(super) const SACK_IMMEDIATELY: u16 = 8;
    pub(super) const POLICY: u16 = 0x30;
    pub(super) const LIFETIME: u16 = 0x10;
    pub(super) const RETRANSMISSIONS: u16 = 0x20;
    pub(super) const SEND_ALL: u16 = 0x40;
    pub(super) const EOF: u16 = 0x200;
}

impl Engine {
    /// Watches the pair for the events that can be handled now.
    pub(super) fn watch(&mut self, number: u64) {
        let Some(this) = self.sockets.get_mut(&number) else { return };
        let wanted = (this.may_read(), this.flow.is_full, this.flow.is_shut);
        if this.flow.watched != wanted {
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::IN, wanted.0);
            flags.set(EventFlags::OUT, wanted.1);
            // The next event is then that the program has closed its end.
            flags.set(EventFlags::ET, wanted.2);
            // The registration ends with the descriptor.
            let _ = epoll::modify(&self.epoll, &this.pair, EventData::new_u64(number), flags);
            this.flow.watched = wanted;
        }
    }

    pub(super) fn on_socket_ready(&mut self, number: u64, flags: EventFlags) {
        let Some(this) = self.sockets.get_mut(&number) else { return };
        // Both directions are shut down, mostly because every descriptor of the program is closed.
        let is_closed = flags.contains(EventFlags::ERR)
            || flags.contains(EventFlags::HUP) && this.pair.is_closed();
        this.flow.is_shut = flags.contains(EventFlags::HUP) && !is_closed;
        if is_closed && this.flow.held.is_some() {
            // Sent messages are still to be delivered; HUP does not go away meanwhile.
            if let Some(association) = this.association.filter(|_| this.lingers()) {
                self.requests.begin_linger(number, association);
            }
            let _ = epoll::delete(&self.epoll, &this.pair);
            this.flow.watched = (false, false, false);
            return;
        }
        if flags.contains(EventFlags::OUT) && !is_closed {
            self.receive_messages(number);
        }
        self.take_messages(number, is_closed);
        self.watch(number);
    }

    /// Reads the program's messages. `is_closed`: whether it has closed the socket.
    pub(super) fn take_messages(&mut self, number: u64, is_closed: bool) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut taken = 0;
        while taken < TAKEN_PER_ROUND || is_closed {
            taken += 1;
            let Some(this) = self.sockets.get_mut(&number) else { break };
            if !this.may_read() && !is_closed {
                break;
            }
            match this.pair.receive(&mut buffer) {
                Received::Nothing => break,
                Received::Reset if this.flow.may_have_unread_data => {
                    self.close(number, true);
                    break;
                }
                // Only notifications were unread.
                Received::Reset => {}
                Received::End => {
                    this.flow.has_ended = true;
                    if is_closed {
                        self.close(number, false);
                    } else if this.is_one_to_one()
                        && let Some(association) = this.association
                    {
                        self.shut_down(association);
                    }
                    break;
                }
                Received::Message(header, payload) if header.kind == Kind::Data => {
                    let payload = Bytes::copy_from_slice(payload);
                    self.send_message(number, header, payload);
                    let is_held =
                        self.sockets.get(&number).is_some_and(|this| this.flow.held.is_some());
                    if is_held {
                        if is_closed {
                            self.on_socket_ready(number, EventFlags::HUP);
                        }
                        break;
                    }
                }
                Received::Message(..) => {}
            }
        }
        self.buffer = buffer;
    }

    /// Sends the message again for which SCTP had no room.
    pub(super) fn retry(&mut self, number: u64) {
        let Some(this) = self.sockets.get_mut(&number) else { return };
        let Some((header, payload)) = this.flow.held.take() else { return };
        self.send_message(number, header, payload);
        let Some(this) = self.sockets.get_mut(&number) else { return };
        if this.flow.held.is_none() {
            // Also the end that was seen while the message was held.
            let data = EventData::new_u64(number);
            if epoll::add(&self.epoll, &this.pair, data, EventFlags::empty()).is_ok() {
                this.flow.watched = (false, false, false);
            }
        }
        self.watch(number);
    }

    fn send_message(&mut self, number: u64, mut header: Header, payload: Bytes) {
        let Some(this) = self.sockets.get(&number) else { return };
        if !header.has_info {
            let send = &this.settings.send;
            (header.stream, header.flags) = (send.stream, send.flags);
            (header.ppid, header.context) = (send.ppid, send.context);
            header.time_to_live = send.time_to_live;
        }
        if header.flags & flag::SEND_ALL != 0 {
            for association in this.associations.clone() {
                let _ = self.send_to(number, association, &header, payload.clone());
            }
            return;
        }
        let target = self.target(number, &header);
        let outcome = target.and_then(|to| self.send_to(number, to, &header, payload.clone()));
        let Some(this) = self.sockets.get_mut(&number) else { return };
        match outcome {
            Ok(true) => {}
            Ok(false) => this.flow.held = Some((header, payload)),
            Err(Failure(error)) => {
                // The call that sent it has returned: the next one that receives fails instead.
                this.fail(error);
                self.receive_messages(number);
            }
        }
    }

    /// The association that a message is for; begins it if necessary (RFC 6458 §3.1.4).
    fn target(&mut self, number: u64, header: &Header) -> Result<u32, Failure> {
        let this = self.sockets.get(&number).ok_or(Failure(ENOTCONN))?;
        if this.is_one_to_one() {
            if let Some(association) = this.association {
                return Ok(association);
            }
        } else if this.associations.contains(&header.association) {
            return Ok(header.association);
        }
        let Some(peer) = header.address else { return Err(Failure(ENOTCONN)) };
        let wanted: SocketAddr = (peer.ip().to_canonical(), peer.port()).into();
        match association_with(self, this, wanted) {
            Some(association) => Ok(association),
            // A message that ends an association begins none.
            None if header.flags & (flag::EOF | flag::ABORT) != 0 => Err(Failure(EINVAL)),
            None => self.connect(number, &[peer]),
        }
    }

    /// Sends a message. Returns whether SCTP had room for it.
    fn send_to(
        &mut self,
        number: u64,
        association: u32,
        header: &Header,
        payload: Bytes,
    ) -> Result<bool, Failure> {
        let Some(known) = self.associations.get_mut(&association) else {
            // The end of its socket informs the program.
            let is_one_to_one = self.sockets.get(&number).is_some_and(Socket::is_one_to_one);
            return if is_one_to_one { Ok(true) } else { Err(Failure(ENOTCONN)) };
        };
        if header.flags & flag::ABORT != 0 {
            let (port, id, now) = (known.port, known.id, self.now);
            if let Some(port) = self.ports.touch(port) {
                port.endpoint.abort(now, id, &payload);
            }
            return Ok(true);
        }
        if header.flags & flag::EOF != 0 && payload.is_empty() {
            self.shut_down(association);
            return Ok(true);
        }
        let reliability = match (header.flags & flag::POLICY, header.time_to_live) {
            (flag::RETRANSMISSIONS, most) => {
                Reliability::MaxRetransmissions(most.min(65_535) as u16)
            }
            (0 | flag::LIFETIME, millis) if millis != 0 => {
                Reliability::Timed(Duration::from_millis(millis.into()))
            }
            _ => Reliability::Full,
        };
        let mut message = OutboundMessage::new(header.stream, payload)
            .ppid(u32::from_be(header.ppid))
            .unordered(header.flags & flag::UNORDERED != 0)
            .reliability(reliability);
        message.immediate = header.flags & flag::SACK_IMMEDIATELY != 0;
        known.has_sent = true;
        known.last_used = self.now;
        let (port, id, now) = (known.port, known.id, self.now);
        let Some(port) = self.ports.touch(port) else { return Err(Failure(ENOTCONN)) };
        match port.endpoint.send(now, id, message) {
            Ok(_) => Ok(true),
            Err(SendError::BufferFull) => Ok(false),
            Err(SendError::TooLarge { .. }) => Err(Failure(EMSGSIZE)),
            Err(SendError::InvalidStream { .. } | SendError::Empty) => Err(Failure(EINVAL)),
            // The end of its socket, or a notification, informs the program.
            Err(_) if self.sockets.get(&number).is_some_and(Socket::is_one_to_one) => Ok(true),
            Err(_) => Err(Failure(ENOTCONN)),
        }
    }

    pub(super) fn shut_down(&mut self, association: u32) {
        let Some(known) = self.associations.get_mut(&association) else { return };
        known.is_closing = true;
        if known.streams.is_none() {
            return;
        }
        let (port, id, now) = (known.port, known.id, self.now);
        if let Some(port) = self.ports.touch(port) {
            port.endpoint.shutdown(now, id);
        }
    }

    /// Moves messages received by SCTP into the pair, until it is full.
    pub(super) fn receive_messages(&mut self, number: u64) {
        loop {
            let Some(this) = self.sockets.get_mut(&number) else { return };
            if !this.flush() {
                break;
            }
            let Some(&association) = this.readable.front() else { break };
            let Some(known) = self.associations.get_mut(&association) else {
                this.readable.pop_front();
                continue;
            };
            let (port, id) = (known.port, known.id);
            let now = self.now;
            let endpoint = self.ports.touch(port).map(|port| &mut port.endpoint);
            match endpoint.and_then(|endpoint| endpoint.receive(now, id)) {
                Some(message) => {
                    known.last_used = now;
                    let header = Header {
                        association,
                        stream: message.stream,
                        flags: u16::from(message.unordered),
                        ppid: message.ppid.to_be(),
                        address: Some(known.peer),
                        ..Header::default()
                    };
                    this.deliver_message(header, &message.payload);
                }
                None => {
                    this.readable.pop_front();
                    self.on_drained(association);
                }
            }
        }
        self.watch(number);
    }

    /// Called when all data received by an association is delivered: handles the end of the association.
    pub(super) fn on_drained(&mut self, association: u32) {
        let Some(known) = self.associations.get(&association) else { return };
        let Some(number) = known.socket else { return };
        let Some(this) = self.sockets.get_mut(&number) else { return };
        if this.readable.contains(&association) {
            return;
        }
        if known.closed.is_some() {
            self.finish(association);
        } else if known.peer_has_ended
            && this.is_one_to_one()
            && !this.flow.has_ended
            // Otherwise the data ends after that notification.
            && this.settings.events & Type::AssociationChange.bit() == 0
        {
            this.end(End::Data);
        }
    }

    /// Notifies the program that an association has ended, and removes it.
    fn finish(&mut self, association: u32) {
        let Some(known) = self.associations.remove(&association) else { return };
        self.requests.end_linger(association);
        self.numbers.remove(&(known.port, known.id.to_bits()));
        self.drop_messages(known.port, known.id);
        let Association {
            socket: Some(number), closed: Some(reason), streams, peer, failed, ..
        } = known
        else {
            return;
        };
        let Some(this) = self.sockets.get_mut(&number) else { return };
        let error = super::events::errno(&reason, streams.is_some());
        let change = match (error, streams) {
            (_, None) => Change::CannotStart,
            (0, Some(_)) => Change::ShutdownComplete,
            _ => Change::Lost,
        };
        if this.settings.events & Type::AssociationChange.bit() != 0 {
            let told = notifications::association_end(change, &reason, association);
            this.notify(association, peer, told);
        }
        for told in failed {
            this.notify(association, peer, told);
        }
        this.disown(association, peer);
        let waiting: Vec<_> =
            this.connecting.extract_if(.., |(of, _)| *of == association).collect();
        for (_, token) in &waiting {
            self.requests.answer(*token, &Err(Failure(error)), None);
        }
        if this.is_one_to_one() {
            // Also after a `connect` that has returned it, as in Linux.
            this.error = error;
            if streams.is_some() {
                if error != 0 {
                    let header = Header { kind: Kind::SocketError, ..Header::of_error(error) };
                    this.deliver(header, Bytes::new(), None);
                }
                // Linux shows neither an error nor the program's own end as the end of data.
                let is_own_end = this.flow.has_ended && !this.has_end_of_data();
                if error != 0 || is_own_end {
                    let kind = Kind::LastError;
                    let header = Header { kind, ..Header::of_error(ENOTCONN) };
                    this.deliver(header, Bytes::new(), None);
                    this.end(End::Sending);
                } else {
                    this.end(End::Data);
                }
            } else {
                this.state = State::Idle;
                this.association = None;
            }
        }
        this.flush();
        self.watch(number);
    }

    /// Called when the program has closed a socket: its associations end, with an ABORT if data was unread (RFC 6458
    /// §4.1.8).
    pub(super) fn close(&mut self, number: u64, has_unread: bool) {
        let Some(this) = self.sockets.remove(&number) else { return };
        let has_unread_data =
            has_unread && this.flow.may_have_unread_data || this.has_waiting_data();
        let aborts = this.settings.aborts_on_close || has_unread_data;
        for (_, token) in &this.connecting {
            self.requests.answer(*token, &Err(Failure(libc::ECONNABORTED)), None);
        }
        for association in &this.associations {
            let Some(known) = self.associations.get_mut(association) else { continue };
            known.socket = None;
            if known.closed.is_some() {
                self.finish(*association);
                continue;
            }
            let (port, id, now) = (known.port, known.id, self.now);
            let Some(port) = self.ports.touch(port) else { continue };
            if aborts || known.streams.is_none() && !known.has_sent {
                port.endpoint.abort(now, id, b"");
            } else if known.streams.is_none() {
                known.is_closing = true;
            } else {
                port.endpoint.shutdown(now, id);
            }
            if this.lingers() {
                self.requests.begin_linger(number, *association);
            }
        }
        if let Some(listener) = this.listening.accepted_from {
            self.on_accepted(listener, number);
        }
        if let Some(bound) = &this.bound {
            self.ports.release(bound.port, number);
        }
    }
}

/// The association of the socket with the peer that has this address, as the first or another one.
pub(super) fn association_with(engine: &Engine, socket: &Socket, peer: SocketAddr) -> Option<u32> {
    let is_open = |association: &u32| {
        engine.associations.get(association).is_some_and(|known| known.closed.is_none())
    };
    if let Some(found) = socket.peers.get(&peer).copied().filter(is_open) {
        return Some(found);
    }
    let port = socket.bound.as_ref()?.port;
    let endpoint = &engine.ports.get(&port)?.endpoint;
    let udp_port = transport_to(engine, peer.ip(), socket.settings.peer_port);
    let ids = endpoint.associations_with((peer.ip(), udp_port).into());
    let mut ids = ids.filter(|id| endpoint.remote_port(*id) == Some(peer.port()));
    ids.find_map(|id| {
        let association = engine.numbers.get(&(port, id.to_bits())).copied()?;
        socket.associations.contains(&association).then_some(association).filter(is_open)
    })
}

impl Socket {
    /// Queues a message of a peer for the program, in parts if it is large.
    fn deliver_message(&mut self, header: Header, payload: &Bytes) {
        let mut rest = payload.clone();
        while rest.len() > MAX_PART_BYTES {
            let part = rest.split_to(MAX_PART_BYTES);
            self.deliver(header, part, None);
        }
        self.deliver(Header { is_end: true, ..header }, rest, None);
    }
}
