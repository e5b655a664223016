//! Listeners: accepting connections initiated by peers.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;

use super::lifecycle::Closed;
use super::owner::Owner;
use super::stream::{Handle, TcpStream};

/// The default of the most connections of a listener that wait to be accepted;
/// [`listen_with`](super::Stack::listen_with) sets another number.
pub const DEFAULT_BACKLOG: usize = 1024;

/// Accepts connections to one port.
///
/// Dropping it ends listening: connections that were not accepted are aborted, accepted ones continue. A listener keeps
/// its stack alive.
pub struct TcpListener {
    owner: Arc<Owner>,
    port: u16,
    waiting: Arc<Notify>,
}

impl TcpListener {
    pub(super) fn new(owner: Arc<Owner>, port: u16, waiting: Arc<Notify>) -> Self {
        Self { owner, port, waiting }
    }

    /// The port on which it listens, at every address of the stack.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The next connection, established, and the peer's address. Several tasks may wait for it;
    /// dropping the future loses nothing.
    ///
    /// # Errors
    /// [`NotConnected`](io::ErrorKind::NotConnected) once the stack has been shut down.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        // A loop that always finds a connection yields to other tasks.
        tokio::task::coop::consume_budget().await;
        loop {
            let waiting = self.waiting.notified();
            let accepted = self.owner.shared.lock().accept(self.port);
            match accepted {
                Ok(Some((cell, established))) => {
                    let handle = Handle::new(Arc::clone(&self.owner.shared), cell);
                    return Ok((TcpStream::new(handle, established), established.remote));
                }
                Ok(None) => waiting.await,
                Err(Closed) => {
                    return Err(io::Error::new(
                        io::ErrorKind::NotConnected,
                        "the stack is shut down",
                    ));
                }
            }
        }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.owner.shared.with_on_drop(|state, now| state.stop_listening(now, self.port));
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpListener").field("port", &self.port).finish_non_exhaustive()
    }
}
