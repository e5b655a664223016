//! Connections: at most a certain number at a time, and none for long on which nothing is transmitted.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// The limits of a listener.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Connections at a time; others wait in the backlog of the socket.
    pub(super) connections: usize,
    /// The time without a byte after which a connection is closed. An answer that takes longer needs lines meanwhile.
    pub(super) silence: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 64, silence: Duration::from_secs(30) }
    }
}

/// A listener within [`Limits`].
pub(super) struct Limited {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    silence: Duration,
}

impl Limited {
    pub(super) fn new(listener: TcpListener, limits: Limits) -> Self {
        let Limits { connections, silence } = limits;
        Self { listener, permits: Arc::new(Semaphore::new(connections)), silence }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.expect("the semaphore is never closed");
        let (stream, address) = Listener::accept(&mut self.listener).await;
        let silence = Box::pin(sleep(self.silence));
        (Connection { stream, longest: self.silence, silence, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that is counted until it is dropped.
pub(super) struct Connection {
    stream: TcpStream,
    /// The longest time without a byte.
    longest: Duration,
    /// Ends when no byte has been transmitted for so long.
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// What `polled` is, or an error if it waits and nothing was transmitted for too long.
    fn timed<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.silence.as_mut().reset(sleep(self.longest).deadline());
            return polled;
        }
        ready!(self.silence.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.timed(polled, context)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(polled, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    /// More than the buffers of both sockets hold.
    const PAGE: usize = 32 << 20;

    /// Far more than any step takes.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A server for one connection at a time, which lasts for `silence` without a byte.
    async fn serve_one(silence: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(|| async { vec![b'x'; PAGE] }));
        let limited = Limited::new(listener, Limits { connections: 1, silence });
        tokio::spawn(axum::serve(limited, router).into_future());
        address
    }

    /// The number of bytes of the answer to a request, whose first `pauses` bytes are sent one by one.
    async fn answer(address: SocketAddr, pauses: usize, pause: Duration) -> usize {
        let mut client = TcpStream::connect(address).await.unwrap();
        for byte in &REQUEST[..pauses] {
            client.write_all(&[*byte]).await.unwrap();
            tokio::time::sleep(pause).await;
        }
        client.write_all(&REQUEST[pauses..]).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut answer));
        read.await.map_or(0, |read| read.unwrap_or(0))
    }

    fn block_on(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
    }

    #[test]
    fn a_silent_connection_makes_room() {
        // One without a request, with a part of it, and one that reads nothing of the answer.
        for begin in [&b""[..], b"GET / HT", REQUEST] {
            block_on(async {
                let address = serve_one(Duration::from_millis(100)).await;
                let mut silent = TcpStream::connect(address).await.unwrap();
                silent.write_all(begin).await.unwrap();
                assert!(answer(address, 0, Duration::ZERO).await > PAGE, "{begin:?}");
            });
        }
    }

    #[test]
    fn a_slow_connection_lasts() {
        block_on(async {
            let address = serve_one(Duration::from_secs(2)).await;
            assert!(answer(address, 5, Duration::from_millis(500)).await > PAGE);
        });
    }
}
