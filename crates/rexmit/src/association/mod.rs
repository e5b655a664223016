//! Associations: handles to send, receive, listen to events and end.

pub(crate) mod bytes;
mod cell;
mod connect;
mod delivery;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rexmit_sctp::recovery::ThinConfig;
use rexmit_sctp::{
    AddressError, AssociationStatistics, CloseReason, InboundMessage, MessageId, OutboundMessage,
    PrimaryError, PriorityError, ResetError, Scheduling, ThinError,
};

use crate::endpoint::{Endpoint, Established, Received, Recipients, Shared};
use crate::event::Event;
use crate::limits::{SHUTDOWN_TOO_LONG, while_it_falls};
use crate::{SendError, TrySendError};
pub(crate) use cell::Cell;
pub(crate) use connect::in_words;
pub use delivery::Delivery;
pub use stream::Stream;

/// A handle of an association with a peer.
///
/// Clones are handles of the same association; every method can be called from any of them, by several tasks
/// at once. Unless many messages are sent in a row, the calling task sends: if congestion and flow control
/// allow, the operating system has the packet when the call returns.
///
/// Dropping the last handle of an open association shuts it down gracefully in the background, as long as the
/// tokio runtime runs: sent messages are still delivered, received ones are discarded. A program should await
/// [`shutdown`](Self::shutdown) before it exits. [`abort`](Self::abort) ends the association at once.
#[derive(Clone, Debug)]
pub struct Association {
    handle: Arc<Handle>,
    established: Established,
    /// The endpoint that serves this association only: it answers the peer as long as there is a handle.
    _endpoint: Option<Arc<Endpoint>>,
}

/// The state shared by the clones; dropped with the last clone.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    cell: Arc<Cell>,
}

impl Handle {
    /// The owner of the association: dropping it releases the association.
    pub(crate) fn new(shared: Arc<Shared>, cell: Arc<Cell>) -> Self {
        Self { shared, cell }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with_on_drop(|state, now| state.release(now, self.cell.id));
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.cell.id.fmt(f)
    }
}

impl Association {
    pub(crate) fn new(handle: Handle, established: Established) -> Self {
        Self { handle: Arc::new(handle), established, _endpoint: None }
    }

    /// The association as the owner of its endpoint.
    fn with_endpoint(self, endpoint: Endpoint) -> Self {
        Self { _endpoint: Some(Arc::new(endpoint)), ..self }
    }

    /// The number of the association in the endpoint's [trace events](crate::Endpoint::set_trace). It may be
    /// used again after the association has ended.
    #[must_use]
    pub fn trace_number(&self) -> u32 {
        self.handle.shared.lock().number(self.cell().id)
    }

    /// The peer's address when the association began.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.established.peer
    }

    /// The fingerprint of the certificate that the peer has proved to own; `None` if the association is not
    /// encrypted.
    #[cfg(feature = "dtls")]
    #[must_use]
    pub const fn peer_fingerprint(&self) -> Option<rexmit_dtls::Fingerprint> {
        self.established.fingerprint
    }

    /// The number of outgoing streams, which are numbered from 0.
    #[must_use]
    pub const fn outbound_streams(&self) -> u16 {
        self.established.outbound_streams
    }

    /// The number of incoming streams, which are numbered from 0.
    #[must_use]
    pub const fn inbound_streams(&self) -> u16 {
        self.established.inbound_streams
    }

    /// The outgoing stream `number`. Sending on it fails if there is no such stream.
    #[must_use]
    pub fn stream(&self, number: u16) -> Stream {
        Stream::new(self.clone(), number)
    }

    /// Sends a message, as soon as the send buffer has room for it.
    ///
    /// When it returns, the message is accepted: it will be delivered, or [`Event::MessageFailed`] reports
    /// that it was not. A peer drops a message that is larger than its own `max_message_bytes` without
    /// telling this side: raise the limit on both sides. If the future is dropped before it is ready, nothing
    /// is sent.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(&self, message: OutboundMessage) -> Result<MessageId, SendError> {
        loop {
            let writable = self.cell().writable.notified();
            match self.try_send(message.clone()) {
                Ok(id) => return Ok(id),
                Err(TrySendError::Full) => writable.await,
                Err(TrySendError::Refused(error)) => return Err(error),
            }
        }
    }

    /// Sends a message if the send buffer has room for it.
    ///
    /// # Errors
    /// As [`send`](Self::send), and [`TrySendError::Full`].
    pub fn try_send(&self, message: OutboundMessage) -> Result<MessageId, TrySendError> {
        let id = self.cell().id;
        let result = self.handle.shared.take_turn(|state, now| state.send(now, id, message));
        result.map_err(TrySendError::from_protocol)
    }

    /// Receives the next message; `None` once the association has ended and everything that had
    /// arrived was received. [`closed`](Self::closed) then says how it ended.
    ///
    /// If the application does not receive, the peer has to wait when the receive buffer is full. Dropping
    /// the future loses no message.
    pub async fn recv(&self) -> Option<InboundMessage> {
        self.recv_of(None).await
    }

    /// The next message for the [`ByteReader`](crate::ByteReader) of a stream or, with `None`, of all streams without a
    /// reader.
    async fn recv_of(&self, stream: Option<u16>) -> Option<InboundMessage> {
        loop {
            let readable = self.cell().readable.notified();
            match self.receive(stream) {
                Received::Message(message) => return Some(message),
                Received::End => return None,
                Received::Nothing => readable.await,
            }
        }
    }

    /// The next message; `None` if no message is available now, or the association has ended.
    #[must_use]
    pub fn try_recv(&self) -> Option<InboundMessage> {
        match self.receive(None) {
            Received::Message(message) => Some(message),
            Received::Nothing | Received::End => None,
        }
    }

    fn receive(&self, stream: Option<u16>) -> Received {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.receive(now, id, stream))
    }

    /// Messages of `stream` are for a [`ByteReader`](crate::ByteReader) from now on.
    fn add_reader(&self, stream: u16) {
        let id = self.cell().id;
        self.handle
            .shared
            .with(|state, _| state.change_recipients(id, |all| all.add_reader(stream)));
    }

    /// Undoes [`add_reader`](Self::add_reader).
    fn remove_reader(&self, stream: u16) {
        let id = self.cell().id;
        let remove = |all: &mut Recipients| all.remove_reader(stream);
        self.handle.shared.with_on_drop(|state, _| state.change_recipients(id, remove));
    }

    /// The next event; `None` after [`Event::Closed`]. If several tasks wait, each event goes to one of them.
    ///
    /// Unread events are stored up to a limit ([`event`](crate::event)); further ones are counted by
    /// [`Event::EventsDropped`].
    pub async fn event(&self) -> Option<Event> {
        loop {
            let event = self.cell().event.notified();
            let id = self.cell().id;
            {
                let mut state = self.handle.shared.lock();
                let entry = state.associations.get_mut(&id)?;
                match entry.events.pop() {
                    Some(event) => return Some(event),
                    None if entry.closed.is_some() => return None,
                    None => {}
                }
            }
            event.await;
        }
    }

    /// The next event; `None` if no event is available now.
    #[must_use]
    pub fn try_event(&self) -> Option<Event> {
        self.handle.shared.lock().associations.get_mut(&self.cell().id)?.events.pop()
    }

    /// Counters and state of the association; final once it has ended.
    #[must_use]
    pub fn statistics(&self) -> AssociationStatistics {
        self.handle.shared.lock().association_statistics(self.cell().id)
    }

    /// Makes `path`, an index into [`paths`](AssociationStatistics::paths), the primary path, which carries
    /// new data while it works. [`Event::DataPathChanged`] reports the change.
    ///
    /// # Errors
    /// If there is no such path, or it is not confirmed.
    pub fn set_primary(&self, path: u8) -> Result<(), PrimaryError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_primary(now, id, path))
    }

    /// Adds a local address (RFC 5061). It is used for sending once the peer has acknowledged it, which
    /// [`Event::AddressChanged`] reports. The endpoint must be bound to a wildcard address.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.add_address(now, id, address))
    }

    /// Removes a local address: nothing is sent from it from now on, and unacknowledged data is retransmitted
    /// from another at once. [`Event::AddressChanged`] reports when the peer has acknowledged it.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.delete_address(now, id, address))
    }

    /// Asks the peer to send to our address `address` while it works (RFC 5061 §4.2.4).
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_peer_primary(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_peer_primary(now, id, address))
    }

    /// Replaces all local addresses by `address`, after the host has changed its network; unspecified: the
    /// address that the system sends from. Data is held back until the peer has acknowledged the change. For
    /// an endpoint that is bound to one address use [`Endpoint::rebind`](crate::Endpoint::rebind).
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn move_to(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.move_to(now, id, address))
    }

    /// Resets outgoing streams to sequence number 0 (RFC 6525); all of them if `streams` is empty.
    /// [`Event::StreamsReset`] reports the result.
    ///
    /// # Errors
    /// See [`ResetError`].
    pub fn reset_streams(&self, streams: &[u16]) -> Result<(), ResetError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.reset_streams(now, id, streams))
    }

    /// Sets the mechanisms of the association while it is thin. Streams singled out by [`Stream::set_thin`]
    /// keep theirs.
    ///
    /// # Errors
    /// If the association has ended, or a value is out of its range.
    pub fn set_thin(&self, thin: ThinConfig) -> Result<(), ThinError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_thin(now, id, thin))
    }

    /// Changes the stream scheduler.
    ///
    /// # Errors
    /// If the association has ended.
    pub fn set_scheduling(&self, scheduling: Scheduling) -> Result<(), PriorityError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_scheduling(now, id, scheduling))
    }

    pub(crate) fn set_stream_priority(
        &self,
        stream: u16,
        priority: u16,
    ) -> Result<(), PriorityError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_priority(now, id, stream, priority))
    }

    pub(crate) fn set_stream_thin(
        &self,
        stream: u16,
        thin: Option<ThinConfig>,
    ) -> Result<(), ThinError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_stream_thin(now, id, stream, thin))
    }

    /// Ends the association gracefully: all messages sent before, by this side and by the peer, are delivered first.
    /// Returns the close reason when it has ended; only [`CloseReason::Shutdown`]
    /// means that the peer received everything, of which it drops messages that are larger than it takes.
    ///
    /// After [`TimeLimits::shutdown`](crate::TimeLimits) (5 s by default) without progress the association is aborted.
    ///
    /// Continue to receive meanwhile if the peer may be sending: otherwise it cannot finish.
    pub async fn shutdown(&self) -> CloseReason {
        let id = self.cell().id;
        let limit = self.handle.shared.with(|state, now| {
            state.sctp.shutdown(now, id);
            state.life.time_limits.shutdown
        });
        let left = || self.statistics().send_buffered_bytes;
        match while_it_falls(limit, left, self.closed()).await {
            Some(reason) => reason,
            None => {
                self.abort(SHUTDOWN_TOO_LONG);
                self.closed().await
            }
        }
    }

    /// Aborts the association at once; the peer gets `reason` (its first 400 bytes). Unacknowledged messages
    /// fail.
    pub fn abort(&self, reason: &[u8]) {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.abort(now, id, reason));
    }

    /// Waits until the association has ended, and returns how.
    pub async fn closed(&self) -> CloseReason {
        loop {
            let changed = self.cell().changed.notified();
            if let Some(reason) = self.close_reason() {
                return reason;
            }
            changed.await;
        }
    }

    /// How the association ended; `None` if it has not.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.shared.lock().associations.get(&self.cell().id)?.closed.clone()
    }

    fn cell(&self) -> &Cell {
        &self.handle.cell
    }
}
