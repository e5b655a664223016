//! The two halves of a stream, which different tasks can own.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Handle, TcpStream};
use crate::tcp::entry::Established;

/// The reading half of a [`TcpStream`]. The connection lives as long as one of the halves.
#[derive(Debug)]
pub struct OwnedReadHalf {
    handle: Arc<Handle>,
    established: Established,
}

/// The writing half of a [`TcpStream`]. Dropping it ends writing, as `shutdown` does.
#[derive(Debug)]
pub struct OwnedWriteHalf {
    handle: Arc<Handle>,
    established: Established,
}

pub(super) fn split(stream: TcpStream) -> (OwnedReadHalf, OwnedWriteHalf) {
    let TcpStream { handle, established } = stream;
    let read = OwnedReadHalf { handle: Arc::clone(&handle), established };
    (read, OwnedWriteHalf { handle, established })
}

impl OwnedReadHalf {
    /// The peer's address and port.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.established.remote
    }
}

impl OwnedWriteHalf {
    /// The peer's address and port.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.established.remote
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        self.handle.finish_on_drop();
    }
}

impl AsyncRead for OwnedReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.handle.poll_read(cx, into)
    }
}

impl AsyncWrite for OwnedWriteHalf {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.handle.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.handle.finish();
        Poll::Ready(Ok(()))
    }
}
