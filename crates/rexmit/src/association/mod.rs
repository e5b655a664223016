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
use crate::limits::{SHUTDOWN_TOO_LONG, within};
use crate::{SendError, TrySendError};
pub(crate) use cell::Cell;
pub use delivery::Delivery;
pub use stream::Stream;

/// A handle of an association with a peer.
///
/// Clones are handles of the same association; every method can be called from any of them, by
/// several tasks at once. Unless many messages are sent in a row, sending happens in the calling
/// task: the packet is with the system when the call returns, congestion and flow control
/// permitting.
///
/// Dropping the last handle of an open association shuts it down gracefully in the background, as long as the
/// tokio runtime runs: sent messages are still delivered, received ones are discarded. A program that is about to
/// end calls [`shutdown`](Self::shutdown) and waits for it. [`abort`](Self::abort) ends the association at once.
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

    /// The number that the endpoint's [trace events](crate::Endpoint::set_trace) give it. It is
    /// used again after the association is gone.
    #[must_use]
    pub fn trace_number(&self) -> u32 {
        self.cell().id.index()
    }

    /// Where the peer was when the association began.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.established.peer
    }

    /// The certificate that the peer has proved to be its own; `None` if the association is not encrypted.
    #[cfg(feature = "dtls")]
    #[must_use]
    pub const fn peer_fingerprint(&self) -> Option<rexmit_dtls::Fingerprint> {
        self.established.fingerprint
    }

    /// How many outgoing streams there are: 0 to one less than this.
    #[must_use]
    pub const fn outbound_streams(&self) -> u16 {
        self.established.outbound_streams
    }

    /// How many incoming streams there are.
    #[must_use]
    pub const fn inbound_streams(&self) -> u16 {
        self.established.inbound_streams
    }

    /// The outgoing stream `number`. Sending fails if there is no such stream.
    #[must_use]
    pub fn stream(&self, number: u16) -> Stream {
        Stream::new(self.clone(), number)
    }

    /// Sends a message, as soon as the send buffer has room for it.
    ///
    /// When it returns, the message is accepted: it will be delivered, or an
    /// [`Event::MessageFailed`] says that it was not. A peer drops a message that is larger than its own
    /// `max_message_bytes`, and does not report it: raise the limit on both sides. Dropping the future before that sends
    /// nothing.
    ///
    /// # Errors
    /// When the association is closing, or the message is one that cannot be sent.
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
    /// Who does not receive makes the peer wait once the receive buffer is full. Dropping the
    /// future loses nothing.
    pub async fn recv(&self) -> Option<InboundMessage> {
        self.recv_of(None).await
    }

    /// The next message of a stream with a [`ByteReader`](crate::ByteReader), or of all streams without.
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

    /// A message, if one has arrived.
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

    /// Ends [`add_reader`](Self::add_reader).
    fn remove_reader(&self, stream: u16) {
        let id = self.cell().id;
        let remove = |all: &mut Recipients| all.remove_reader(stream);
        self.handle.shared.with_on_drop(|state, _| state.change_recipients(id, remove));
    }

    /// The next event; `None` after [`Event::Closed`]. Each event goes to one of those who wait.
    ///
    /// Unread events are kept up to a limit, then counted: [`Event::Missed`].
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

    /// An event, if one is waiting.
    #[must_use]
    pub fn try_event(&self) -> Option<Event> {
        self.handle.shared.lock().associations.get_mut(&self.cell().id)?.events.pop()
    }

    /// Traffic, losses and retransmissions so far, or until the end.
    #[must_use]
    pub fn statistics(&self) -> AssociationStatistics {
        self.handle.shared.lock().association_statistics(self.cell().id)
    }

    /// Has data take `path` while it works: its place in the
    /// [paths](AssociationStatistics::paths). An [`Event::DataPathChanged`] says when they do.
    ///
    /// # Errors
    /// When there is no such path, or it is not confirmed.
    pub fn set_primary(&self, path: u8) -> Result<(), PrimaryError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_primary(now, id, path))
    }

    /// This host has `address`, too (RFC 5061). An [`Event::AddressChanged`] says when the peer knows,
    /// which is when it is sent from. The endpoint must be bound to a wildcard address.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.add_address(now, id, address))
    }

    /// This host has `address` no more: nothing leaves from it from now on, and what was under way leaves
    /// from another at once. An [`Event::AddressChanged`] says when the peer knows.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.delete_address(now, id, address))
    }

    /// Asks the peer to send to `address` of ours while it can.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_peer_primary(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_peer_primary(now, id, address))
    }

    /// This host is at `address` from now on, and nowhere else: it has changed its network; unspecified:
    /// wherever the system sends from. Everything is held back until the peer knows, and then goes on. An
    /// endpoint that is bound to one address changes that by [`Endpoint::rebind`](crate::Endpoint::rebind).
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn move_to(&self, address: IpAddr) -> Result<(), AddressError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.move_to(now, id, address))
    }

    /// Asks the peer to reset outgoing streams (RFC 6525), all of them if `streams` is empty. An
    /// [`Event::StreamsReset`] tells the outcome.
    ///
    /// # Errors
    /// When it cannot be asked for.
    pub fn reset_streams(&self, streams: &[u16]) -> Result<(), ResetError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.reset_streams(now, id, streams))
    }

    /// Changes what is done about loss while the association is thin, from now on; streams that were
    /// singled out by [`Stream::set_thin`] keep their own.
    ///
    /// # Errors
    /// When the association is gone, or the values make no sense.
    pub fn set_thin(&self, thin: ThinConfig) -> Result<(), ThinError> {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.set_thin(now, id, thin))
    }

    /// Schedules the streams by another rule from now on.
    ///
    /// # Errors
    /// When the association is gone.
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
    /// means that the peer received everything.
    ///
    /// After [`TimeLimits::shutdown`](crate::TimeLimits) (5 s by default) the association is aborted.
    ///
    /// Go on receiving meanwhile if the peer may be sending: it cannot finish otherwise.
    pub async fn shutdown(&self) -> CloseReason {
        let id = self.cell().id;
        let limit = self.handle.shared.with(|state, now| {
            state.sctp.shutdown(now, id);
            state.time_limits.shutdown
        });
        match within(limit, self.closed()).await {
            Some(reason) => reason,
            None => {
                self.abort(SHUTDOWN_TOO_LONG);
                self.closed().await
            }
        }
    }

    /// Ends the association at once, telling the peer `reason`. Messages that were not acknowledged
    /// fail.
    pub fn abort(&self, reason: &[u8]) {
        let id = self.cell().id;
        self.handle.shared.with(|state, now| state.sctp.abort(now, id, reason));
    }

    /// Waits until the association has ended, and says how.
    pub async fn closed(&self) -> CloseReason {
        loop {
            let changed = self.cell().changed.notified();
            if let Some(reason) = self.close_reason() {
                return reason;
            }
            changed.await;
        }
    }

    /// How the association ended, if it has.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.shared.lock().associations.get(&self.cell().id)?.closed.clone()
    }

    fn cell(&self) -> &Cell {
        &self.handle.cell
    }
}
