//! The configuration of a proxy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::config;

use crate::recovery::RecoveryConfig;
use crate::tcp::{ConnectionConfig, KeepAlive, StackConfig};

/// Connections of the stack beyond [`ProxyConfig::max_connections`]: half-open ones, and those being refused.
const SPARE_CONNECTIONS: usize = 1024;

config! {
    /// The configuration of a proxy.
    #[derive(Clone, Debug)]
    pub struct ProxyConfig {
        /// The address of the service.
        pub upstream: SocketAddr,
        /// Recovery profile towards the clients. Default
        /// [`tcp_interactive`](RecoveryConfig::tcp_interactive).
        pub recovery: RecoveryConfig,
        /// The most clients at one time; further ones are reset. Default 1024.
        pub max_connections: usize,
        /// After this time without data in both directions, both sides are reset; `None` never does. Default
        /// `None`.
        pub idle_timeout: Option<Duration>,
        /// Time limit for the connection to the service. Default 5 s.
        pub connect_timeout: Duration,
        /// How long clients may continue after the proxy was asked to stop; then they are reset. Default 30
        /// s.
        pub drain: Duration,
        /// The size in bytes of each of a connection's four buffers: to send and received, towards the client
        /// and towards the service. Default 256 KiB.
        pub buffer_bytes: usize,
        /// Whether the service first gets the client's address, by the PROXY protocol, version 2. Default false: a
        /// service that does not expect this header would treat it as data of the client.
        pub proxy_protocol: bool,
        /// The address that clients connect to, which the PROXY protocol reports as the destination. Default
        /// `None`: the stack's own address and port.
        pub public_address: Option<SocketAddr>,
    }
}

impl ProxyConfig {
    /// The default configuration for the service at `upstream`.
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
            public_address: None,
        }
    }

    /// The configuration of connections with clients: without Nagle's algorithm (the service's own TCP has
    /// applied it), and with keep-alives, so that vanished clients are detected.
    #[must_use]
    pub fn connection(&self) -> ConnectionConfig {
        ConnectionConfig::default()
            .recovery(self.recovery.clone())
            .nagle(false)
            .send_buffer_bytes(self.buffer_bytes)
            .receive_buffer_bytes(self.buffer_bytes)
            .keep_alive(Some(KeepAlive::default()))
    }

    /// The configuration of a stack for the proxy.
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
