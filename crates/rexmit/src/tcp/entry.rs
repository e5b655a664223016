//! The stack's state of a connection, in addition to the protocol's.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Waker};

use rexmit_tcp::{CloseReason, ConnectionId, ConnectionStatistics};
use tokio::sync::Notify;

/// The notifications of one connection, shared by its handles and its stack.
///
/// A task registers first, then looks at the state, then waits, so that it misses no change in between.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) id: ConnectionId,
    pub(super) readable: Notify,
    pub(super) writable: Notify,
    pub(super) changed: Notify,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) cell: Arc<Cell>,
    /// `None` while the peer has not answered.
    pub(super) established: Option<Established>,
    /// Why the connection ended; `None` before that.
    pub(super) closed: Option<CloseReason>,
    /// The last statistics, once it has ended.
    pub(super) statistics: Option<Box<ConnectionStatistics>>,
    /// Whether a read may succeed.
    pub(super) is_readable: bool,
    /// Whether a write may succeed.
    pub(super) is_writable: bool,
    /// The task in `poll_read`.
    pub(super) reader: Option<Waker>,
    /// The task in `poll_write`.
    pub(super) writer: Option<Waker>,
    /// Whether the last handle was dropped.
    pub(super) is_orphaned: bool,
}

/// The addresses and ports of an established connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Established {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

impl Entry {
    pub(super) fn new(id: ConnectionId, established: Option<Established>) -> Self {
        let (readable, writable, changed) = (Notify::new(), Notify::new(), Notify::new());
        Self {
            cell: Arc::new(Cell { id, readable, writable, changed }),
            established,
            closed: None,
            statistics: None,
            is_readable: false,
            is_writable: true,
            reader: None,
            writer: None,
            is_orphaned: false,
        }
    }

    /// The error of writing after the connection has ended.
    pub(super) fn write_error(&self) -> io::Error {
        self.closed.map_or(io::ErrorKind::BrokenPipe.into(), error)
    }

    /// Adds packets received after the end to the final statistics.
    pub(super) fn count_received_after_end(&mut self, len: usize) {
        if let Some(statistics) = self.statistics.as_deref_mut() {
            statistics.traffic.payload_delivered_bytes += len as u64;
            statistics.receive_buffered_bytes -= len;
        }
    }

    /// The error of reading if the connection ended before the peer's FIN.
    pub(super) fn read_error(&self) -> io::Error {
        self.closed.map_or(io::ErrorKind::ConnectionAborted.into(), error)
    }
}

/// Stores the waker of `cx` in `slot`, unless it is there already.
pub(super) fn register(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

/// The error that sockets return for a connection that ended for this reason.
fn error(reason: CloseReason) -> io::Error {
    let (kind, text) = match reason {
        CloseReason::Finished => (io::ErrorKind::BrokenPipe, "the connection is finished"),
        CloseReason::Aborted => (io::ErrorKind::ConnectionAborted, "aborted on this side"),
        CloseReason::Reset => (io::ErrorKind::ConnectionReset, "reset by the peer"),
        CloseReason::Refused => (io::ErrorKind::ConnectionRefused, "refused by the peer"),
        CloseReason::TimedOut => (io::ErrorKind::TimedOut, "the peer no longer answers"),
        CloseReason::ConnectTimedOut => (io::ErrorKind::TimedOut, "the peer did not answer"),
        _ => (io::ErrorKind::ConnectionAborted, "the connection has ended"),
    };
    io::Error::new(kind, text)
}
