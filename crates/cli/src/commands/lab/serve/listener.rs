//! Accepted connections: their number is limited, and one on which nothing is answered for some time is closed.

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
    /// The time without a byte of an answer after which a connection is closed: the time in which a request has to arrive,
    /// however its bytes are spread. An answer that takes longer needs lines meanwhile.
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
    /// The longest time without a byte of an answer.
    longest: Duration,
    /// Ends when no byte was written for so long.
    silence: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    /// What `polled` is, or an error if it waits and nothing was written for too long.
    fn timed<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
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
        if polled.is_ready() {
            let longest = self.longest;
            self.silence.set(sleep(longest));
        }
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
    use tokio::time::timeout;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    /// More than the buffers of both sockets hold.
    const PAGE: usize = 32 << 20;

    /// Far more than any step takes.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// A server for one connection at a time, which lasts for `silence` without a byte of an answer.
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
        let read = timeout(PATIENCE, client.read_to_end(&mut answer));
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
    fn a_slow_request_is_served() {
        block_on(async {
            let address = serve_one(Duration::from_secs(10)).await;
            assert!(answer(address, 5, Duration::from_millis(100)).await > PAGE);
        });
    }

    /// Each byte comes soon after the one before, but the request takes too long.
    #[test]
    fn a_request_without_end_makes_room() {
        block_on(async {
            let address = serve_one(Duration::from_millis(500)).await;
            let mut endless = TcpStream::connect(address).await.unwrap();
            endless.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
            let bytes = async {
                while endless.write_all(b"x").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            assert!(timeout(PATIENCE, bytes).await.is_ok(), "the connection is closed");
            assert!(answer(address, 0, Duration::ZERO).await > PAGE);
        });
    }

    /// An answer may take longer than that in all, if it is read.
    #[test]
    fn a_slow_reader_gets_all() {
        block_on(async {
            let silence = Duration::from_millis(1500);
            let mut client = TcpStream::connect(serve_one(silence).await).await.unwrap();
            client.write_all(REQUEST).await.unwrap();
            let (mut pauses, mut piece, mut read) = (0, vec![0; PAGE / 16], 0);
            while let Ok(len @ 1..) = client.read(&mut piece).await {
                read += len;
                // For longer than the silence in all.
                if pauses < 10 {
                    tokio::time::sleep(silence / 5).await;
                    pauses += 1;
                }
            }
            assert!(read > PAGE && pauses == 10, "{read}");
        });
    }
}
