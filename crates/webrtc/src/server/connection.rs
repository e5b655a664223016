//! A connection with one peer, as async calls.

use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_sctp::AssociationStatistics;
use tokio::sync::Notify;

use super::Shared;
use crate::{
    Agent, Candidate, ChannelConfig, ChannelId, Event, Message, OfferError, OpenError, PeerId,
    SendError, TrySendError,
};

/// The calls that wait for an event or for room, of one peer.
#[derive(Default)]
pub(super) struct Waiters {
    /// Notified when there is an event; a single task waits.
    pub(super) event: Notify,
    /// Notified when there is room in the send buffer; any number of tasks wait.
    pub(super) room: Notify,
}

/// A connection with one peer. Dropping it ends it.
///
/// Messages wait in the receive buffer of SCTP until [`event`](Self::event) is called: if the application
/// reads no events, flow control slows the peer down.
pub struct Connection {
    sender: Sender,
}

/// Sends on a connection, and restarts ICE, also from other tasks than the one that reads its events.
#[derive(Clone)]
pub struct Sender {
    shared: Arc<Shared>,
    id: PeerId,
    waiters: Arc<Waiters>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("id", &self.sender.id).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Sender {
    fn call<R>(&self, act: impl FnOnce(&mut Agent, Instant) -> R) -> Option<R> {
        let now = self.shared.now();
        let result = self.shared.lock().peers.call(self.id, |agent| act(agent, now));
        self.shared.changed.notify_one();
        result
    }

    /// Sends a message, as soon as the send buffer has room.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(&self, channel: ChannelId, message: Message) -> Result<(), SendError> {
        loop {
            // Before the attempt, so that nothing is missed in between.
            let room = self.waiters.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            match self.try_send(channel, &message) {
                Err(TrySendError::Full) => room.await,
                Err(TrySendError::Refused(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Sends a message if the send buffer has room.
    ///
    /// # Errors
    /// See [`TrySendError`].
    pub fn try_send(&self, channel: ChannelId, message: &Message) -> Result<(), TrySendError> {
        let sent = self.call(|agent, now| agent.send(now, channel, message));
        sent.unwrap_or(Err(SendError::NoSuchChannel.into()))
    }

    /// Applies the answer to an offer, the first one or one of [`restart_ice`](Self::restart_ice).
    ///
    /// # Errors
    /// If it cannot be parsed, or does not fit the offer.
    pub fn accept(&self, answer: &str) -> Result<(), OfferError> {
        let answer = answer.parse()?;
        let accepted = self.call(|agent, now| agent.accept(now, &answer));
        accepted.unwrap_or(Err(OfferError::NotWaiting))
    }

    /// Restarts ICE, and returns the offer: see [`Agent::restart_ice`].
    ///
    /// # Errors
    /// If there is no connection.
    pub fn restart_ice(&self) -> Result<String, OfferError> {
        let offer = self.call(Agent::restart_ice);
        Ok(offer.unwrap_or(Err(OfferError::NoConnection))?.to_string())
    }

    /// Answers an offer of the peer for this connection, an ICE restart: see [`Agent::answer_again`].
    ///
    /// # Errors
    /// If it cannot be parsed, or is not for this connection.
    pub fn answer_again(&self, offer: &str) -> Result<String, OfferError> {
        let offer = offer.parse()?;
        let answer = self.call(|agent, now| agent.answer_again(now, &offer));
        Ok(answer.unwrap_or(Err(OfferError::NoConnection))?.to_string())
    }
}

impl Connection {
    pub(super) fn new(shared: Arc<Shared>, id: PeerId, waiters: Arc<Waiters>) -> Self {
        Self { sender: Sender { shared, id, waiters } }
    }

    /// See [`Sender::accept`].
    ///
    /// # Errors
    /// If the answer cannot be parsed, or does not fit the offer.
    pub fn accept(&self, answer: &str) -> Result<(), OfferError> {
        self.sender.accept(answer)
    }

    /// See [`Agent::restart_ice`].
    ///
    /// # Errors
    /// If there is no connection.
    pub fn restart_ice(&self) -> Result<String, OfferError> {
        self.sender.restart_ice()
    }

    /// See [`Agent::answer_again`].
    ///
    /// # Errors
    /// If the offer cannot be parsed, or is not for this connection.
    pub fn answer_again(&self, offer: &str) -> Result<String, OfferError> {
        self.sender.answer_again(offer)
    }

    /// Adds an address at which the peer may be reached (trickle ICE, RFC 8838).
    pub fn add_candidate(&self, candidate: &Candidate) {
        self.sender.call(|agent, now| agent.add_candidate(now, candidate));
    }

    /// The next event; `None` after [`Event::Closed`]. [`Event::Writable`] is not reported;
    /// [`send`](Self::send) waits for it.
    pub async fn event(&mut self) -> Option<Event> {
        let Sender { shared, id, waiters } = &self.sender;
        loop {
            {
                let mut inner = shared.lock();
                let event = inner.peers.poll_event_of(*id);
                let is_gone =
                    event.is_none() && inner.peers.agent(*id).is_none_or(Agent::is_drained);
                drop(inner);
                match event {
                    Some(Event::Writable) => continue,
                    Some(event) => {
                        // A received message makes room for the peer.
                        shared.changed.notify_one();
                        return Some(event);
                    }
                    None if is_gone => return None,
                    None => {}
                }
            }
            waiters.event.notified().await;
        }
    }

    /// A handle to send from other tasks.
    #[must_use]
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Opens a channel: see [`Agent::open`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(&self, config: ChannelConfig) -> Result<ChannelId, OpenError> {
        let opened = self.sender.call(|agent, now| agent.open(now, config));
        opened.unwrap_or(Err(OpenError::Closed))
    }

    /// See [`Sender::send`].
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn send(&self, channel: ChannelId, message: Message) -> Result<(), SendError> {
        self.sender.send(channel, message).await
    }

    /// See [`Sender::try_send`].
    ///
    /// # Errors
    /// See [`TrySendError`].
    pub fn try_send(&self, channel: ChannelId, message: &Message) -> Result<(), TrySendError> {
        self.sender.try_send(channel, message)
    }

    /// Closes a channel: see [`Agent::close_channel`].
    pub fn close_channel(&self, channel: ChannelId) {
        self.sender.call(|agent, now| agent.close_channel(now, channel));
    }

    /// Bytes that a channel has accepted and not sent.
    #[must_use]
    pub fn buffered_amount(&self, channel: ChannelId) -> usize {
        self.sender.call(|agent, _| agent.buffered_amount(channel)).unwrap_or(0)
    }

    /// See [`Agent::set_buffered_amount_low_threshold`].
    pub fn set_buffered_amount_low_threshold(&self, channel: ChannelId, bytes: usize) {
        self.sender.call(|agent, _| agent.set_buffered_amount_low_threshold(channel, bytes));
    }

    /// Closes the connection. [`Event::Closed`] is reported once it is closed.
    pub fn close(&self) {
        self.sender.call(Agent::close);
    }

    /// Whether data is sent by a TURN server: see [`Agent::is_relayed`].
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        self.sender.call(|agent, _| agent.is_relayed()).unwrap_or(false)
    }

    /// Counters of the association; `None` before it exists.
    #[must_use]
    pub fn statistics(&self) -> Option<AssociationStatistics> {
        self.sender.call(|agent, _| agent.statistics()).flatten()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Sender { shared, id, waiters } = &self.sender;
        let now = shared.now();
        let mut inner = shared.lock();
        inner.peers.forget(now, *id);
        inner.waiters.remove(id);
        drop(inner);
        waiters.room.notify_waiters();
        shared.changed.notify_one();
    }
}
