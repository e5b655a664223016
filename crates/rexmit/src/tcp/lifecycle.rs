//! How connections begin and end, seen from the stack.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Machine as _};
use rexmit_tcp::{CloseReason, ConnectionConfig, ConnectionId, Event};
use tokio::sync::Notify;

use super::entry::{Cell, Entry, Established};
use super::error::{ConnectError, ListenError};
use super::state::{Listening, StackState};

impl StackState {
    /// Begins to listen. Returns the notification for tasks that wait to accept.
    pub(super) fn listen(
        &mut self,
        port: u16,
        config: Option<Arc<ConnectionConfig>>,
        backlog: usize,
    ) -> Result<Arc<Notify>, ListenError> {
        if self.device.is_none() || self.is_closing {
            return Err(ListenError::StackClosed);
        }
        self.tcp.listen(port, config).map_err(|source| ListenError::Refused { port, source })?;
        let waiting = Arc::new(Notify::new());
        let listening =
            Listening { incoming: VecDeque::new(), backlog, waiting: Arc::clone(&waiting) };
        self.listeners.insert(port, listening);
        Ok(waiting)
    }

    /// Closes the listener on `port`: connections not accepted are aborted.
    pub(super) fn stop_listening(&mut self, now: Instant, port: u16) {
        let Some(listening) = self.listeners.remove(&port) else { return };
        self.tcp.stop_listening(port);
        for id in listening.incoming {
            self.tcp.abort(now, id);
            self.release(now, id);
        }
        self.wakes.listener(&listening.waiting);
    }

    /// The next connection to `port`; the caller becomes its owner. `None` if none is waiting.
    ///
    /// # Errors
    /// If no further connection can arrive.
    pub(super) fn accept(&mut self, port: u16) -> Result<Option<(Arc<Cell>, Established)>, Closed> {
        let listening = self.listeners.get_mut(&port).ok_or(Closed)?;
        let Some(id) = listening.incoming.pop_front() else { return Ok(None) };
        let entry = self.connections.get(&id).ok_or(Closed)?;
        Ok(entry.established.map(|established| (Arc::clone(&entry.cell), established)))
    }

    /// Begins a connection and sends its SYN.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        config: Option<Arc<ConnectionConfig>>,
    ) -> Result<Arc<Cell>, ConnectError> {
        if self.device.is_none() || self.is_closing {
            return Err(ConnectError::StackClosed);
        }
        let id = match config {
            Some(config) => self.tcp.connect_with(now, local, remote, config),
            None => self.tcp.connect(now, local, remote),
        }?;
        let cell = self.insert(id, None);
        // An error of the system for the first packet is reported now rather than after minutes.
        self.transmit(now);
        if let Some(source) = self.take_failure(remote) {
            self.release(now, id);
            return Err(ConnectError::Unreachable { remote, source });
        }
        Ok(cell)
    }

    /// Called when the last handle of a connection is dropped: closes it gracefully, in the background.
    pub(super) fn release(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.connections.get_mut(&id) else { return };
        entry.is_orphaned = true;
        if entry.established.is_some() {
            self.tcp.close(now, id);
        } else {
            self.tcp.abort(now, id);
        }
        if entry.closed.is_some() {
            self.connections.remove(&id);
        }
    }

    /// Takes no more connections.
    pub(super) fn shut_down(&mut self, now: Instant) {
        self.is_closing = true;
        for port in self.listeners.keys().copied().collect::<Vec<_>>() {
            self.stop_listening(now, port);
        }
        self.wakes.stack();
    }

    /// Accepts no more connections, and aborts existing ones.
    pub(super) fn abort(&mut self, now: Instant) {
        self.shut_down(now);
        // A closed connection may still have unread data.
        let open = self.connections.values().filter(|entry| entry.closed.is_none());
        let mut ids: Vec<_> = open.map(|entry| entry.cell.id).collect();
        ids.sort_unstable(); // A fixed order.
        for id in ids {
            self.tcp.abort(now, id);
        }
    }

    /// Called when the last handle is dropped: no more connections are accepted or opened; existing ones
    /// continue until they end.
    pub(super) fn release_stack(&mut self, now: Instant) {
        self.shut_down(now);
        self.is_released = true;
    }

    /// Bytes of all connections that were sent or wait, and are not acknowledged.
    pub(super) fn send_buffered_bytes(&self) -> usize {
        let ids = self.connections.keys();
        let all = ids.filter_map(|&id| self.tcp.statistics(id));
        all.map(|statistics| statistics.send_buffered_bytes).sum()
    }

    /// Whether every connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// Releases the device once no handle and no connection is left.
    pub(super) fn release_device_at_end(&mut self) {
        if self.is_released && self.has_ended() && self.device.is_some() {
            self.device = None;
            self.next_turn.driver.note_work(); // Its end.
        }
    }

    /// Passes the protocol's events to the connections that they concern. Returns whether that may have
    /// caused more segments or events.
    pub(super) fn dispatch_events(&mut self, now: Instant) -> bool {
        let mut has_acted = false;
        while let Some((id, event)) = self.tcp.poll_event() {
            has_acted |= self.on_event(now, id, &event);
        }
        has_acted
    }

    fn on_event(&mut self, now: Instant, id: ConnectionId, event: &Event) -> bool {
        match *event {
            Event::Connected { incoming: true, local, remote } => {
                return self.on_incoming(now, id, Established { local, remote });
            }
            Event::Connected { incoming: false, local, remote } => {
                if let Some(entry) = self.connections.get_mut(&id) {
                    entry.established = Some(Established { local, remote });
                    self.wakes.changed(entry);
                }
            }
            Event::Readable => {
                if let Some(entry) = self.connections.get_mut(&id) {
                    self.wakes.readable(entry);
                }
            }
            Event::Writable => {
                if let Some(entry) = self.connections.get_mut(&id) {
                    self.wakes.writable(entry);
                }
            }
            Event::Closed(reason) => self.on_closed(id, reason),
            _ => {}
        }
        false
    }

    fn on_incoming(&mut self, now: Instant, id: ConnectionId, established: Established) -> bool {
        let listening = self.listeners.get_mut(&established.local.port());
        let Some(listening) = listening.filter(|it| it.incoming.len() < it.backlog) else {
            self.counts.not_accepted += 1;
            self.tcp.abort(now, id);
            return true;
        };
        listening.incoming.push_back(id);
        self.wakes.listener(&listening.waiting);
        self.insert(id, Some(established));
        false
    }

    fn on_closed(&mut self, id: ConnectionId, reason: CloseReason) {
        let statistics = self.tcp.statistics(id).map(Box::new);
        let Some(entry) = self.connections.get_mut(&id) else { return };
        if entry.closed.replace(reason).is_some() {
            return;
        }
        entry.statistics = statistics;
        (entry.is_readable, entry.is_writable) = (true, true);
        self.wakes.changed(entry);
        self.open -= 1;
        if entry.is_orphaned {
            self.connections.remove(&id);
        }
        if self.has_ended() {
            self.wakes.stack();
        }
    }

    fn insert(&mut self, id: ConnectionId, established: Option<Established>) -> Arc<Cell> {
        let entry = Entry::new(id, established);
        let cell = Arc::clone(&entry.cell);
        self.connections.insert(id, entry);
        self.open += 1;
        cell
    }
}

/// The listener is closed.
pub(super) struct Closed;
