//! The configuration of a proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;

use crate::recovery::RecoveryConfig;
use crate::tcp::{ConnectionConfig, KeepAlive, StackConfig};

/// Connections of the stack beyond [`ProxyConfig::max_connections`]: half-open ones, and those that
/// are being refused.
const SPARE_CONNECTIONS: usize = 1024;

config! {
    /// The configuration of a proxy.
    #[derive(Clone, Debug)]
    pub struct ProxyConfig {
        /// Where the service listens.
        pub upstream: SocketAddr,
        /// Recovery profile towards the clients. Default
        /// [`tcp_interactive`](RecoveryConfig::tcp_interactive).
        pub recovery: RecoveryConfig,
        /// Clients at one time; more are reset. Default 1024.
        pub max_connections: usize,
        /// Silence in both directions after which both sides are reset. Default `None`: it is up to
        /// them.
        pub idle_timeout: Option<Duration>,
        /// Time limit for the service to accept. Default 5 s.
        pub connect_timeout: Duration,
        /// How long clients may go on once the proxy is to stop; then they are reset. Default 30 s.
        pub drain: Duration,
        /// Bytes that wait in each of a connection's buffers at most: to be sent and received, towards
        /// the client and towards the service. Default 256 KiB.
        pub buffer_bytes: usize,
        /// Whether the service is told the client's address first, by the PROXY protocol, version 2.
        /// Default false: a service that does not expect it takes it for the client's data.
        pub proxy_protocol: bool,
        /// Where clients connect to, which the PROXY protocol names as the destination. Default `None`: the stack's own
        /// address and port.
        pub listened: Option<SocketAddr>,
    }
}

impl ProxyConfig {
    /// The defaults, for this service.
    #[must_use]
    pub fn new(upstream: SocketAddr) -> Self {
        Self {
            upstream,
            recovery: RecoveryConfig::tcp_interactive(),
            max_connections: 1024,
            idle_timeout: None,
            connect_timeout: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            buffer_bytes: 256 * 1024,
            proxy_protocol: false,
            listened: None,
        }
    }

    /// The clients' connections. Nothing is held back to be sent with more (the service's own TCP
    /// has had that choice), and clients that vanished are found out.
    #[must_use]
    pub fn connection(&self) -> ConnectionConfig {
        ConnectionConfig::default()
            .recovery(self.recovery.clone())
            .nagle(false)
            .send_buffer_bytes(self.buffer_bytes)
            .receive_buffer_bytes(self.buffer_bytes)
            .keep_alive(Some(KeepAlive::default()))
    }

    /// A stack for a proxy.
    #[must_use]
    pub fn stack(&self) -> StackConfig {
        StackConfig::default()
            .connection(Arc::new(self.connection()))
            .max_connections(self.max_connections.saturating_add(SPARE_CONNECTIONS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_a_valid_stack() {
        let config = ProxyConfig::new("127.0.0.1:22".parse().unwrap());
        assert_eq!(config.stack().validate(), Ok(()));
        let connection = config.connection();
        assert_eq!(Some(connection.recovery), RecoveryConfig::tcp_profile("tcp-interactive"));
    }
}
