//! Handling of SCTP events: deliveries, notifications and the end of associations.

use std::net::SocketAddr;

use libc::{ECONNABORTED, ECONNREFUSED, ECONNRESET, ETIMEDOUT};
use rexmit_core::Machine;
use rexmit_recovery::PathState;
use rexmit_sctp::{AssociationId, CloseReason, Event, FailReason};

use super::Engine;
use super::notifications::{self, Change, Failed, Type};
use super::settings::Versions;
use super::socket::{Association, MAX_NOTIFICATIONS};
use crate::protocol::frame::{Header, Kind};
use crate::protocol::request::State;

/// The `errno` of calls on a socket after its association has ended; 0 after a graceful end.
pub(super) fn errno(reason: &CloseReason, was_connected: bool) -> i32 {
    match reason {
        CloseReason::AbortedByPeer { .. } if !was_connected => ECONNREFUSED,
        CloseReason::AbortedByPeer { .. } => ECONNRESET,
        CloseReason::Unreachable | CloseReason::ConnectTimedOut => ETIMEDOUT,
        CloseReason::Aborted { .. } => ECONNABORTED,
        CloseReason::Shutdown if !was_connected => ECONNABORTED,
        _ => 0,
    }
}

impl Engine {
    /// Acts upon the events of a port's endpoint.
    pub(super) fn take_events(&mut self, port: u16) {
        while let Some(found) = self.ports.get_mut(port) {
            let Some((id, event)) = found.endpoint.poll_event() else { return };
            self.on_event(port, id, event);
        }
    }

    fn on_event(&mut self, port: u16, id: AssociationId, event: Event) {
        if let Event::Connected { incoming: true, peer, outbound_streams, inbound_streams } = event
        {
            return self.on_incoming(port, id, peer, (outbound_streams, inbound_streams));
        }
        let Some(&association) = self.numbers.get(&(port, id.to_bits())) else {
            // One that was refused, perhaps with data that came along.
            return self.drop_messages(port, id);
        };
        match event {
            Event::Connected { outbound_streams, inbound_streams, .. } => {
                self.on_connected(association, (outbound_streams, inbound_streams));
            }
            Event::Readable => {
                let number = self.associations.get(&association).and_then(|known| known.socket);
                match number.and_then(|number| self.sockets.get_mut(&number)) {
                    Some(socket) => {
                        if !socket.readable.contains(&association) {
                            socket.readable.push_back(association);
                        }
                        self.receive_messages(number.unwrap_or_default());
                    }
                    // The program has closed it and cannot read this (RFC 6458 §4.1.8).
                    None => self.abort(port, id),
                }
            }
            Event::Writable => {
                let number = self.associations.get(&association).and_then(|known| known.socket);
                if let Some(number) = number {
                    self.retry(number);
                }
            }
            Event::PeerShutdown => {
                if let Some(known) = self.associations.get_mut(&association) {
                    known.peer_has_ended = true;
                }
                self.notify(association, Type::Shutdown, notifications::shutdown(association));
                self.on_drained(association);
            }
            Event::PeerRestarted => {
                let streams = self.associations.get(&association).and_then(|known| known.streams);
                let streams = streams.unwrap_or((0, 0));
                let told = notifications::association_change(Change::Restart, streams, association);
                self.notify(association, Type::AssociationChange, told);
            }
            Event::Closed(reason) => {
                if let Some(known) = self.associations.get_mut(&association) {
                    known.closed = Some(reason);
                    match known.socket {
                        Some(number) => {
                            self.retry(number);
                            self.on_closed(association, number);
                        }
                        None => self.forget(association),
                    }
                }
            }
            other => self.on_notification(association, other),
        }
    }

    /// Handles events that only cause notifications.
    fn on_notification(&mut self, association: u32, event: Event) {
        match event {
            Event::PathStatus { address, state, .. } => {
                let state = match state {
                    PathState::Active => 0,
                    PathState::PotentiallyFailed => 6,
                    PathState::Removed => 2,
                    _ => 1,
                };
                self.on_address(association, address, state);
            }
            Event::DataPathChanged { address, .. } => self.on_address(association, address, 4),
            Event::PeerAddressAdded { address, .. } => self.on_address(association, address, 3),
            Event::PeerAddressDeleted { address, .. } => self.on_address(association, address, 2),
            Event::StreamsReset { streams, performed } => {
                let told = notifications::stream_reset(&streams, (true, performed), association);
                self.notify(association, Type::StreamReset, told);
            }
            Event::PeerResetStreams(streams) => {
                let told = notifications::stream_reset(&streams, (false, true), association);
                self.notify(association, Type::StreamReset, told);
            }
            Event::PeerError(cause) => {
                let told = notifications::remote_error(cause, association);
                self.notify(association, Type::RemoteError, told);
            }
            Event::MessageFailed { was_begun, message, reason, .. } => {
                let failed = Failed {
                    stream: message.stream,
                    flags: u16::from(message.unordered),
                    ppid: message.ppid.to_be(),
                    was_begun,
                    payload: &message.payload,
                };
                for kind in [Type::SendFailed, Type::SendFailedEvent] {
                    let told = notifications::send_failed(kind, failed, association);
                    if reason == FailReason::AssociationEnded {
                        notify_at_end(self, association, kind, told);
                    } else {
                        self.notify(association, kind, told);
                    }
                }
            }
            _ => {}
        }
    }

    /// Called when an association has ended. Messages that arrived before are delivered first.
    fn on_closed(&mut self, association: u32, number: u64) {
        if let Some(socket) = self.sockets.get_mut(&number)
            && !socket.readable.contains(&association)
        {
            socket.readable.push_back(association);
        }
        self.receive_messages(number);
    }

    /// Forgets an ended association that no program refers to.
    fn forget(&mut self, association: u32) {
        if let Some(known) = self.associations.remove(&association) {
            self.requests.end_linger(association);
            self.numbers.remove(&(known.port, known.id.to_bits()));
            self.drop_messages(known.port, known.id);
        }
    }

    /// Drops the unread messages of an ended association, which SCTP would keep until they are received.
    pub(super) fn drop_messages(&mut self, port: u16, id: AssociationId) {
        let now = self.now;
        if let Some(port) = self.ports.touch(port) {
            while port.endpoint.receive(now, id).is_some() {}
        }
    }

    fn abort(&mut self, port: u16, id: AssociationId) {
        let now = self.now;
        if let Some(port) = self.ports.touch(port) {
            port.endpoint.abort(now, id, b"");
        }
    }

    fn notify(&mut self, association: u32, kind: Type, told: Vec<u8>) {
        let Some(known) = self.associations.get(&association) else { return };
        let (Some(number), peer) = (known.socket, known.peer) else { return };
        if let Some(socket) = self.sockets.get_mut(&number)
            && socket.settings.events & kind.bit() != 0
        {
            socket.notify(association, peer, told);
            self.receive_messages(number);
        }
    }

    fn on_address(&mut self, association: u32, address: SocketAddr, state: i32) {
        let Some(known) = self.associations.get(&association) else { return };
        let address = (address.ip(), known.remote_port).into();
        let told = notifications::address_change(address, state, association);
        self.notify(association, Type::AddressChange, told);
    }

    fn tell_up(&mut self, association: u32, streams: (u16, u16)) {
        let told = notifications::association_change(Change::Up, streams, association);
        self.notify(association, Type::AssociationChange, told);
        let told = notifications::no_authentication(association);
        self.notify(association, Type::Authentication, told);
        self.begin_autoclose(association);
    }

    fn on_connected(&mut self, association: u32, streams: (u16, u16)) {
        let Some(known) = self.associations.get_mut(&association) else { return };
        known.streams = Some(streams);
        if known.is_closing {
            self.shut_down(association);
        }
        let known = self.associations.get(&association);
        let Some(number) = known.and_then(|known| known.socket) else { return };
        let Some(socket) = self.sockets.get_mut(&number) else { return };
        if socket.is_one_to_one() {
            socket.state = State::Connected;
        }
        let waiting = socket.connecting.extract_if(.., |(of, _)| *of == association);
        for (_, token) in waiting.collect::<Vec<_>>() {
            let value = association.to_ne_bytes().to_vec();
            self.requests.answer(token, &Ok(value), None);
        }
        self.tell_up(association, streams);
        self.watch(number);
    }

    /// A peer has set up an association with a listener.
    fn on_incoming(
        &mut self,
        port_number: u16,
        id: AssociationId,
        peer: SocketAddr,
        streams: (u16, u16),
    ) {
        let Some(port) = self.ports.get(&port_number) else { return };
        let remote_port = port.endpoint.remote_port(id).unwrap_or(0);
        let paths = port.endpoint.paths(id).unwrap_or_default();
        let Some(listener) = port.listener else { return self.abort(port_number, id) };
        let Some(socket) = self.sockets.get(&listener) else { return self.abort(port_number, id) };
        let (style, is_ipv6) = (socket.name.style, socket.name.is_ipv6);
        let mut settings = socket.settings.clone();
        // Linux does not pass it on.
        settings.versions = if is_ipv6 { Versions::Both } else { settings.versions };
        let is_one_to_one = socket.is_one_to_one();
        if is_one_to_one && socket.is_backlog_full() {
            return self.abort(port_number, id);
        }
        let local = paths.first().map_or(socket.any(), |path| path.local.ip());
        let (peer, local) = ((peer.ip(), remote_port).into(), (local, port_number).into());
        let mut accepted = None;
        if is_one_to_one {
            match self.new_socket(style, is_ipv6, settings) {
                Ok(made) => accepted = Some(made),
                Err(_) => return self.abort(port_number, id),
            }
        }
        self.last_number = self.last_number.wrapping_add(1).max(3);
        let association = self.last_number;
        let known = Association {
            port: port_number,
            id,
            socket: Some(listener),
            remote_port,
            peer,
            streams: Some(streams),
            peer_has_ended: false,
            is_closing: false,
            has_sent: false,
            autoclose: None,
            last_used: self.now,
            closed: None,
            failed: Vec::new(),
        };
        self.associations.insert(association, known);
        self.numbers.insert((port_number, id.to_bits()), association);
        let Some(socket) = self.sockets.get_mut(&listener) else { return };
        if let Some((made, theirs)) = accepted {
            let header = Header {
                kind: Kind::Accepted,
                is_end: true,
                address: Some(peer),
                ..Header::default()
            };
            socket.deliver(header, bytes::Bytes::new(), Some(theirs));
            socket.listening.unaccepted.insert(made);
            let has_room = !socket.is_backlog_full();
            if let Some(port) = self.ports.touch(port_number) {
                port.endpoint.set_accept(has_room);
            }
            if let Some(new) = self.sockets.get_mut(&made) {
                new.listening.accepted_from = Some(listener);
            }
            self.give(association, made, local, peer);
            self.watch(made);
        } else {
            socket.own(association, peer);
        }
        self.receive_messages(listener);
        self.tell_up(association, streams);
    }
}

/// Has the program notified once it is notified that the association has ended.
fn notify_at_end(engine: &mut Engine, association: u32, kind: Type, told: Vec<u8>) {
    let Some(known) = engine.associations.get_mut(&association) else { return };
    let socket = known.socket.and_then(|number| engine.sockets.get(&number));
    let is_wanted = socket.is_some_and(|socket| socket.settings.events & kind.bit() != 0);
    if is_wanted && known.failed.len() < MAX_NOTIFICATIONS {
        known.failed.push(told);
    }
}
