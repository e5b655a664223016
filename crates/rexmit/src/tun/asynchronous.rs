//! A TUN device on a tokio runtime.

use std::io;
use std::ops::Deref;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Batch, Tun};

/// A TUN device that wakes a task when packets have arrived.
///
/// Sending does not wait: the kernel accepts a packet at once, or drops it as a full network would.
#[derive(Debug)]
pub struct AsyncTun(AsyncFd<Tun>);

impl AsyncTun {
    /// Registers `tun` with the current runtime.
    ///
    /// # Errors
    /// When the process has no file descriptor left.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver enabled.
    pub fn new(tun: Tun) -> io::Result<Self> {
        // SAFETY: the device owns its descriptor, which is open and is neither replaced nor closed
        // before the device is dropped.
        Ok(Self(unsafe { AsyncFd::register_with_interest(tun, Interest::READABLE) }?))
    }

    /// Ready once packets have arrived; `batch` then contains at least one.
    ///
    /// # Errors
    /// The error of the system, for instance that the interface is down.
    pub fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let result = guard.get_inner().receive_batch(batch);
            if !batch.is_full() {
                // Everything that was there; more is reported anew.
                guard.clear_ready();
            }
            match result {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Waits for packets.
    ///
    /// # Errors
    /// As [`poll_receive`](Self::poll_receive).
    pub async fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_receive(cx, batch)).await
    }

    /// Sends one packet, with header and payload in separate slices, as [`Tun::send_parts`].
    ///
    /// # Errors
    /// As [`Tun::send_parts`].
    pub fn try_send(&self, header: &[u8], payload: &[u8]) -> io::Result<()> {
        self.0.get_ref().send_parts(header, payload)
    }
}

impl Deref for AsyncTun {
    type Target = Tun;
    fn deref(&self) -> &Tun {
        self.0.get_ref()
    }
}
