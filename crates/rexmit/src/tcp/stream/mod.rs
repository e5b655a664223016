//! Streams: reading, writing and ending a connection.

mod halves;
mod handle;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rexmit_tcp::recovery::ThinConfig;
use rexmit_tcp::{CloseReason, ConnectionStatistics, State, ThinError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::entry::Established;
pub use halves::{OwnedReadHalf, OwnedWriteHalf};
pub(super) use handle::Handle;

/// A connection: bytes in order, both ways.
///
/// Reading and writing are tokio's [`AsyncRead`] and [`AsyncWrite`]. Unless a lot is written,
/// sending happens in the calling task: what the windows permit is with the device when `write`
/// returns. `shutdown` ends writing (FIN); reading goes on until the peer has finished too.
///
/// Dropping it closes the connection in the background: what was written is still delivered, what
/// still arrives is refused (RFC 9293 §3.6.1). [`abort`](Self::abort) ends it at once. Before the
/// program exits, [`Stack::shutdown`](super::Stack::shutdown) waits for both.
#[derive(Debug)]
pub struct TcpStream {
    handle: Arc<Handle>,
    established: Established,
}

impl TcpStream {
    pub(super) fn new(handle: Handle, established: Established) -> Self {
        Self { handle: Arc::new(handle), established }
    }

    /// The number that the stack's [trace events](super::Stack::set_trace) give it. It is used
    /// again after the connection is gone.
    #[must_use]
    pub fn trace_number(&self) -> u32 {
        self.handle.id().index()
    }

    /// This side's address and port.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.established.local
    }

    /// The peer's address and port.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.established.remote
    }

    /// Reads what has arrived, if anything has. `Ok(0)`, for a buffer that is not empty, is the end
    /// of the peer's data.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing is there:
    /// [`readable`](Self::readable) waits for it. Else how the connection ended.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.handle.try_read(into)
    }

    /// Writes what there is room for, if there is any.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) without any: [`writable`](Self::writable)
    /// waits for it. Else why nothing can be written any more.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.handle.try_write(bytes)
    }

    /// Waits until [`try_read`](Self::try_read) is worth a try. Several tasks may.
    pub async fn readable(&self) {
        self.handle.readable().await;
    }

    /// Waits until [`try_write`](Self::try_write) is worth a try. Several tasks may.
    pub async fn writable(&self) {
        self.handle.writable().await;
    }

    /// Ends writing, as `shutdown` does: FIN follows what was written, reading goes on.
    pub fn finish(&self) {
        self.handle.finish();
    }

    /// Two halves, for two tasks.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        halves::split(self)
    }

    /// Ends the connection at once, by RST: what was not acknowledged may be lost.
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// Waits until the connection has ended on both sides, and says how. That it ends is up to
    /// reading, writing and [`abort`](Self::abort).
    pub async fn closed(&self) -> CloseReason {
        self.handle.closed().await
    }

    /// How the connection ended, if it has.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.close_reason()
    }

    /// Its state (RFC 9293 §3.3.2).
    #[must_use]
    pub fn state(&self) -> State {
        self.handle.state()
    }

    /// Changes what is done about loss while the connection is thin, from now on.
    ///
    /// # Errors
    /// When the values make no sense; a connection that has ended takes them as it takes everything.
    pub fn set_thin(&self, thin: ThinConfig) -> Result<(), ThinError> {
        self.handle.set_thin(thin)
    }

    /// Traffic, losses and retransmissions so far, or until the end.
    #[must_use]
    pub fn statistics(&self) -> ConnectionStatistics {
        self.handle.statistics()
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.handle.poll_read(cx, into)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.handle.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(())) // Nothing waits here: what was written is the protocol's.
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.handle.finish();
        Poll::Ready(Ok(()))
    }
}
