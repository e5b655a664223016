//! How long calls wait for a peer.

use std::time::Duration;

rexmit_core::config! {
    /// Time limits of the calls of an endpoint and its associations, or of a TCP stack, that wait for a peer. `None` waits as long as
    /// the protocol does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TimeLimits {
        /// Of [`Endpoint::connect`](crate::Endpoint::connect), [`Stack::connect`](crate::tcp::Stack::connect) and their
        /// variants: 10 s. Without a limit the association's `max_init_retransmits` decides, which is four minutes by
        /// default, or the connection's `max_syn_retransmits`, three minutes.
        pub connect: Option<Duration>,
        /// Of [`Endpoint::shutdown`](crate::Endpoint::shutdown) and
        /// [`Association::shutdown`](crate::Association::shutdown): 5 s, then the association is aborted
        /// and messages that were not acknowledged fail. Of [`Stack::shutdown`](crate::tcp::Stack::shutdown), too:
        /// connections that are left are reset. To end an association after a lot of data
        /// on a slow path needs more. An association whose last handle is dropped has no such limit.
        pub shutdown: Option<Duration>,
    }
}

impl TimeLimits {
    /// Calls wait as long as the protocol does.
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

/// Waits for `done`, for `limit` at most: `None` if it was not done by then.
pub(crate) async fn within<T>(limit: Option<Duration>, done: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, done).await.ok(),
        None => Some(done.await),
    }
}
