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
/// Reading and writing are tokio's [`AsyncRead`] and [`AsyncWrite`]. Unless much data is written, the calling
/// task sends: when `write` returns, the device has the packets that the windows allow. `shutdown` ends
/// writing (FIN); reading goes on until the peer has finished too.
///
/// Dropping it closes the connection in the background: written data is still delivered, and data that
/// arrives later is refused (RFC 9293 §3.6.1). [`abort`](Self::abort) ends it at once. Before the program
/// exits, [`Stack::shutdown`](super::Stack::shutdown) waits for both.
#[derive(Debug)]
pub struct TcpStream {
    handle: Arc<Handle>,
    established: Established,
}

impl TcpStream {
    pub(super) fn new(handle: Handle, established: Established) -> Self {
        Self { handle: Arc::new(handle), established }
    }

    /// The number of the connection in the stack's [trace events](super::Stack::set_trace). It may be used
    /// again after the connection has ended.
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

    /// Reads the data that has arrived. `Ok(0)` is the end of the peer's data, unless `into` is empty.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no data: [`readable`](Self::readable) waits for
    /// it. Otherwise how the connection ended.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.handle.try_read(into)
    }

    /// Writes as many bytes as the send buffer has room for, and returns their number.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if it is full: [`writable`](Self::writable) waits for room.
    /// Otherwise why nothing can be written any more.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.handle.try_write(bytes)
    }

    /// Waits until [`try_read`](Self::try_read) would not return `WouldBlock`. Several tasks may wait.
    pub async fn readable(&self) {
        self.handle.readable().await;
    }

    /// Waits until [`try_write`](Self::try_write) would not return `WouldBlock`. Several tasks may wait.
    pub async fn writable(&self) {
        self.handle.writable().await;
    }

    /// Ends writing, as `shutdown` does: a FIN is sent after the written data; reading continues.
    pub fn finish(&self) {
        self.handle.finish();
    }

    /// Two halves, for two tasks.
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        halves::split(self)
    }

    /// Resets the connection at once (RST); unacknowledged data may be lost.
    pub fn abort(&self) {
        self.handle.abort();
    }

    /// Waits until the connection has ended on both sides, and returns how. It does not end the connection
    /// itself.
    pub async fn closed(&self) -> CloseReason {
        self.handle.closed().await
    }

    /// How the connection ended; `None` if it has not.
    #[must_use]
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.close_reason()
    }

    /// The state of the connection (RFC 9293 §3.3.2).
    #[must_use]
    pub fn state(&self) -> State {
        self.handle.state()
    }

    /// Sets the mechanisms of the connection while it is thin. Has no effect on a connection that has ended.
    ///
    /// # Errors
    /// If a value is out of its range.
    pub fn set_thin(&self, thin: ThinConfig) -> Result<(), ThinError> {
        self.handle.set_thin(thin)
    }

    /// Counters and state of the connection; final once it has ended.
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
