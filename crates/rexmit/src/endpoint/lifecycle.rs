//! How associations begin and end, seen from the endpoint.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Machine as _};
use rexmit_sctp::{AssociationConfig, AssociationId, CloseReason};

use super::entry::{Entry, Established};
use super::handover::Member;
use super::protocol::Happened;
#[cfg(feature = "dtls")]
use super::protocol::Protocol;
use super::state::State;
use super::wakes::Waiting;
use crate::ConnectError;
use crate::association::Cell;
use crate::event::Event;
use crate::log;

/// The reason that a peer gets whose association is not accepted.
const NOT_ACCEPTED: &[u8] = b"not accepted";

impl State {
    /// Begins an association with a peer that has these addresses, and sends the first packet of its
    /// set-up to the first.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        remotes: &[SocketAddr],
        port: u16,
        config: Arc<AssociationConfig>,
    ) -> Result<Arc<Cell>, ConnectError> {
        let Some(socket) = self.socket.as_ref().filter(|_| !self.life.is_closing) else {
            return Err(ConnectError::EndpointClosed);
        };
        let ways = self.sctp.routes_to(remotes, socket.local_addr());
        self.want_sizes(&config);
        let config = self.sctp.fitting(config);
        let id = self.sctp.connect_over(now, &ways, port, config)?;
        let cell = self.insert(id, None);
        // An error of the system for the first packet is reported now rather than after minutes; errors of earlier
        // packets do not count.
        self.outbox.forget_failure();
        self.transmit(now);
        if let &[remote] = remotes
            && let Some(error) = self.take_failure(remote)
        {
            self.sctp.abort(now, id, b"");
            self.associations.remove(&id);
            self.open -= 1;
            return Err(error);
        }
        Ok(cell)
    }

    /// The error for which the system did not send the first packet to `remote`, if any. ECONNREFUSED is left out,
    /// because it answers an earlier packet, perhaps of another attempt; see [`Refusals`](super::refusals::Refusals).
    pub(super) fn take_failure(&mut self, remote: SocketAddr) -> Option<ConnectError> {
        let failure = self.outbox.take_failure(remote);
        let source = failure.filter(|it| it.kind() != io::ErrorKind::ConnectionRefused)?;
        Some(ConnectError::Unreachable { local: self.local_addr, remote, source })
    }

    /// Whether associations of peers can still be accepted.
    pub(super) fn accepts(&self) -> bool {
        self.incoming.is_allowed && !self.life.is_closing
    }

    /// The next association that a peer has initiated. The caller becomes its owner.
    pub(super) fn accept(&mut self) -> Option<(Arc<Cell>, Established)> {
        let cell = self.incoming.waiting.pop_front()?;
        let established = self.associations.get(&cell.id)?.established?;
        Some((cell, established))
    }

    /// Shuts down an association in the background, after its last handle was dropped.
    pub(crate) fn release(&mut self, now: Instant, id: AssociationId) {
        let Some(entry) = self.associations.get_mut(&id) else { return };
        entry.is_orphaned = true;
        if entry.closed.is_some() {
            self.associations.remove(&id);
        } else if entry.established.is_some() {
            self.sctp.shutdown(now, id);
        } else {
            self.sctp.abort(now, id, b"");
        }
        self.discard_received(now, id);
    }

    /// Accepts no more associations, and aborts those that wait to be accepted.
    pub(super) fn stop_accepting(&mut self, now: Instant) {
        self.incoming.is_allowed = false;
        self.sctp.set_accept(false);
        for cell in std::mem::take(&mut self.incoming.waiting) {
            let Some(entry) = self.associations.get_mut(&cell.id) else { continue };
            if entry.closed.is_some() {
                self.release(now, cell.id); // It has ended already.
            } else {
                entry.is_orphaned = true;
                self.counts.not_accepted += 1;
                self.sctp.abort(now, cell.id, NOT_ACCEPTED);
            }
        }
        self.wakes.endpoint();
    }

    /// Accepts no more associations, and shuts down existing ones.
    pub(super) fn shut_down(&mut self, now: Instant) {
        self.life.is_closing = true;
        for cell in std::mem::take(&mut self.incoming.waiting) {
            self.release(now, cell.id);
        }
        for id in self.association_ids() {
            self.sctp.shutdown(now, id);
        }
        self.wakes.endpoint();
    }

    /// Accepts no more associations, and aborts existing ones.
    pub(super) fn abort(&mut self, now: Instant, reason: &[u8]) {
        self.life.is_closing = true;
        for cell in std::mem::take(&mut self.incoming.waiting) {
            self.release(now, cell.id);
        }
        for id in self.association_ids() {
            self.sctp.abort(now, id, reason);
        }
        self.wakes.endpoint();
    }

    /// Whether every association has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// Called when a handle of the endpoint is dropped.
    pub(super) fn release_handle(&mut self, now: Instant) {
        self.life.handles -= 1;
        if self.life.handles == 0 {
            self.life.is_closing = true;
            for cell in std::mem::take(&mut self.incoming.waiting) {
                self.release(now, cell.id);
            }
        }
    }

    /// Closes the socket once no handle and no association is left, here and on all shards, and everything is sent.
    pub(super) fn release_socket_at_end(&mut self) {
        if self.life.handles > 0 || !self.has_ended() || self.socket.is_none() {
            return;
        }
        if let Some(shard) = &self.shard {
            shard.leave();
        }
        let is_used = self.shard.as_ref().is_some_and(Member::is_group_in_use);
        if !is_used && !self.outbox.is_blocked() {
            self.release_socket();
            self.next_turn.driver.note_work(); // Its end.
        }
    }

    /// Closes the socket.
    pub(super) fn release_socket(&mut self) {
        self.refusals.release_socket();
        self.socket = None;
        if let Some(shard) = &self.shard {
            shard.end();
        }
    }

    /// Passes the protocol's events to the associations that they concern. Returns whether that may have
    /// caused more packets or events.
    pub(super) fn dispatch_events(&mut self, now: Instant) -> bool {
        let mut has_acted = false;
        while let Some(happened) = self.sctp.poll_event() {
            match happened {
                Happened::Association(id, event) => has_acted |= self.on_event(now, id, event),
                #[cfg(feature = "dtls")]
                Happened::Connection(remote, outcome) => {
                    log::secured(remote, &outcome);
                    if let Protocol::Encrypted(_, handshakes) = &mut self.sctp {
                        handshakes.report(remote, outcome.map(drop));
                    }
                    self.wakes.endpoint();
                    has_acted = true;
                }
            }
        }
        has_acted
    }

    fn on_event(&mut self, now: Instant, id: AssociationId, event: Event) -> bool {
        match event {
            Event::Connected { incoming, peer, outbound_streams, inbound_streams } => {
                let established = Established {
                    peer,
                    outbound_streams,
                    inbound_streams,
                    #[cfg(feature = "dtls")]
                    fingerprint: self.sctp.peer_fingerprint(peer),
                };
                // The association is not new if its peer has restarted, or if both sides began it.
                if incoming && !self.associations.contains_key(&id) {
                    return self.on_incoming(now, id, established);
                }
                self.on_connected(id, established);
            }
            Event::Readable => return self.on_readable(now, id),
            Event::Writable => self.wake(id, Waiting::Writable),
            Event::Closed(reason) => return self.on_closed(now, id, &reason),
            event => self.tell(id, event),
        }
        false
    }

    fn on_incoming(&mut self, now: Instant, id: AssociationId, established: Established) -> bool {
        if self.life.is_closing || self.incoming.waiting.len() >= self.incoming.max_waiting {
            self.counts.not_accepted += u64::from(!self.life.is_closing);
            if !self.life.is_closing {
                log::not_accepted(self.number(id), established.peer);
            }
            self.sctp.abort(now, id, NOT_ACCEPTED);
            return true;
        }
        log::established(self.number(id), established.peer, true);
        let cell = self.insert(id, Some(established));
        self.incoming.waiting.push_back(cell);
        self.wakes.endpoint();
        false
    }

    fn on_connected(&mut self, id: AssociationId, established: Established) {
        let number = self.number(id);
        if let Some(entry) = self.associations.get_mut(&id) {
            log::established(number, established.peer, false);
            entry.established = Some(established);
            self.wakes.association(&entry.cell, Waiting::Change);
        }
    }

    fn on_readable(&mut self, now: Instant, id: AssociationId) -> bool {
        match self.associations.get(&id) {
            Some(entry) if !entry.is_orphaned => {
                self.wakes.association(&entry.cell, Waiting::Readable);
                false
            }
            _ => self.discard_received(now, id),
        }
    }

    fn on_closed(&mut self, now: Instant, id: AssociationId, reason: &CloseReason) -> bool {
        let statistics = self.sctp.statistics(id).map(Box::new);
        let number = self.number(id);
        let Some(entry) = self.associations.get_mut(&id) else { return false };
        if entry.closed.replace(reason.clone()).is_some() {
            return false;
        }
        log::ended(number, reason);
        entry.statistics = statistics;
        self.open -= 1;
        entry.events.push(Event::Closed(reason.clone()));
        self.wakes.association(&entry.cell, Waiting::Change);
        let is_orphaned = entry.is_orphaned;
        if self.has_ended() {
            self.wakes.endpoint();
        }
        if !is_orphaned {
            return false;
        }
        self.associations.remove(&id);
        self.discard_received(now, id)
    }

    fn tell(&mut self, id: AssociationId, event: Event) {
        log::happened(self.number(id), &event);
        if let Some(entry) = self.associations.get_mut(&id)
            && !entry.is_orphaned
        {
            entry.events.push(event);
            self.wake(id, Waiting::Event);
        }
    }

    fn wake(&mut self, id: AssociationId, waiting: Waiting) {
        if let Some(entry) = self.associations.get(&id) {
            self.wakes.association(&entry.cell, waiting);
        }
    }

    /// Discards messages that will not be read, so that the peer can finish. Returns whether there were any.
    fn discard_received(&mut self, now: Instant, id: AssociationId) -> bool {
        let mut any = false;
        while self.sctp.receive(now, id).is_some() {
            any = true;
        }
        any
    }

    fn insert(&mut self, id: AssociationId, established: Option<Established>) -> Arc<Cell> {
        let cell = Arc::new(Cell::new(id));
        self.associations.insert(id, Entry::new(Arc::clone(&cell), established));
        self.open += 1;
        cell
    }

    /// Bytes of all associations that were sent or wait, and are not acknowledged.
    pub(super) fn send_buffered_bytes(&self) -> usize {
        let ids = self.associations.keys();
        let all = ids.filter_map(|&id| self.sctp.statistics(id));
        all.map(|statistics| statistics.send_buffered_bytes).sum()
    }

    /// The ids of all associations, in a fixed order.
    pub(super) fn association_ids(&self) -> Vec<AssociationId> {
        let mut ids: Vec<_> = self.associations.keys().copied().collect();
        ids.sort_unstable();
        ids
    }
}
