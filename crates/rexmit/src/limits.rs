//! How long calls wait for a peer.

use std::pin::pin;
use std::time::Duration;

rexmit_core::config! {
    /// Time limits of the calls of an endpoint and its associations, or of a TCP stack, that wait for a peer.
    /// `None` waits until the protocol gives up.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TimeLimits {
        /// The limit of [`Endpoint::connect`](crate::Endpoint::connect),
        /// [`Stack::connect`](crate::tcp::Stack::connect) and their variants. Default 10 s. `None` leaves it
        /// to the association's `max_init_retransmits`, four minutes by default, or the connection's
        /// `max_syn_retransmits`, three minutes.
        pub connect: Option<Duration>,
        /// The limit of [`Endpoint::shutdown`](crate::Endpoint::shutdown),
        /// [`Association::shutdown`](crate::Association::shutdown) and
        /// [`Stack::shutdown`](crate::tcp::Stack::shutdown): without progress for this time, that is, if no peer has
        /// acknowledged anything, associations and connections are aborted, and unacknowledged data is lost.
        /// Default 5 s. An association whose last handle is dropped has no such limit.
        pub shutdown: Option<Duration>,
    }
}

impl TimeLimits {
    /// No limits: calls wait until the protocol gives up.
    pub const NONE: Self = Self { connect: None, shutdown: None };
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self { connect: Some(Duration::from_secs(10)), shutdown: Some(Duration::from_secs(5)) }
    }
}

/// Reason of the ABORT that ends a shutdown after its time limit.
#[cfg(feature = "udp")]
pub(crate) const SHUTDOWN_TOO_LONG: &[u8] = b"the shutdown took longer than its time limit";

/// Waits for `done`, for at most `limit`: `None` if it is not ready by then.
pub(crate) async fn within<T>(limit: Option<Duration>, done: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, done).await.ok(),
        None => Some(done.await),
    }
}

/// Waits for `done` as long as `left`, the number of bytes to be acknowledged, decreases within each `limit`: `None` if
/// it did not.
pub(crate) async fn while_it_falls<T>(
    limit: Option<Duration>,
    left: impl Fn() -> usize,
    done: impl Future<Output = T>,
) -> Option<T> {
    let mut done = pin!(done);
    let mut before = left();
    loop {
        if let Some(value) = within(limit, done.as_mut()).await {
            return Some(value);
        }
        let now = left();
        if now >= before {
            return None;
        }
        before = now;
    }
}
