//! The shared handle of a stream and its halves.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rexmit_tcp::recovery::ThinConfig;
use rexmit_tcp::{CloseReason, ConnectionId, ConnectionStatistics, State, ThinError};
use tokio::io::ReadBuf;
use tokio::task::coop::poll_proceed;

use crate::tcp::entry::{Cell, Entry};
use crate::tcp::state::Shared;

/// The owner of a connection: dropping it closes the connection.
pub(in crate::tcp) struct Handle {
    shared: Arc<Shared>,
    cell: Arc<Cell>,
}

impl Handle {
    pub(in crate::tcp) fn new(shared: Arc<Shared>, cell: Arc<Cell>) -> Self {
        Self { shared, cell }
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.cell.id
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // A task that never has to wait still yields to other tasks.
        let share = ready!(poll_proceed(cx));
        let unfilled = into.initialize_unfilled();
        if !unfilled.is_empty() {
            let received = ready!(self.receive(Some(cx), unfilled));
            share.made_progress();
            into.advance(received?);
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let share = ready!(poll_proceed(cx));
        let sent = ready!(self.send(Some(cx), bytes));
        share.made_progress();
        Poll::Ready(sent)
    }

    pub(super) fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        or_would_block(self.receive(None, into))
    }

    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(self.send(None, bytes))
    }

    fn receive(&self, cx: Option<&Context<'_>>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.shared.take_turn(|state, now| state.poll_receive(cx, now, self.id(), into))
    }

    fn send(&self, cx: Option<&Context<'_>>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.shared.take_turn(|state, now| state.poll_send(cx, now, self.id(), bytes))
    }

    pub(super) async fn readable(&self) {
        loop {
            let readable = self.cell.readable.notified();
            if self.look(|entry| entry.is_readable) {
                return;
            }
            readable.await;
        }
    }

    pub(super) async fn writable(&self) {
        loop {
            let writable = self.cell.writable.notified();
            if self.look(|entry| entry.is_writable) {
                return;
            }
            writable.await;
        }
    }

    /// Reads a property of the entry, which exists as long as a handle does.
    fn look(&self, is: impl FnOnce(&Entry) -> bool) -> bool {
        self.shared.lock().connections.get(&self.id()).is_none_or(is)
    }

    pub(super) fn finish(&self) {
        self.shared.with(|state, now| state.tcp.finish(now, self.id()));
    }

    pub(super) fn finish_on_drop(&self) {
        self.shared.with_on_drop(|state, now| state.tcp.finish(now, self.cell.id));
    }

    pub(super) fn abort(&self) {
        self.shared.with(|state, now| {
            // Written data that may be sent is sent before the RST, even if it was delayed.
            state.transmit(now);
            state.tcp.abort(now, self.id());
        });
    }

    pub(super) fn set_thin(&self, thin: ThinConfig) -> Result<(), ThinError> {
        self.shared.with(|state, now| match state.tcp.set_thin(now, self.id(), thin) {
            Err(ThinError::UnknownConnection) => Ok(()),
            result => result,
        })
    }

    pub(super) async fn closed(&self) -> CloseReason {
        loop {
            let changed = self.cell.changed.notified();
            if let Some(reason) = self.close_reason() {
                return reason;
            }
            changed.await;
        }
    }

    pub(super) fn close_reason(&self) -> Option<CloseReason> {
        self.shared.lock().connections.get(&self.id())?.closed
    }

    pub(super) fn state(&self) -> State {
        self.shared.lock().tcp.state(self.id()).unwrap_or(State::Closed)
    }

    pub(super) fn statistics(&self) -> ConnectionStatistics {
        self.shared.lock().connection_statistics(self.id())
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

fn or_would_block<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
