//! What a proxy is to be like.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::recovery::{RecoveryConfig, TCP_PROFILES};
use crate::tcp::{ConnectionConfig, KeepAlive, StackConfig};

/// The profiles for thin streams, best first; the last one is always there.
const PREFERRED: [&str; 3] = ["tcp-thin-rdb", "tcp-thin", "tcp-sack"];
/// Connections of the stack beyond [`ProxyConfig::max_connections`]: half-open ones, and those that
/// are being refused.
const SPARE_CONNECTIONS: usize = 1024;

/// What a proxy is to be like.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where the service listens.
    pub upstream: SocketAddr,
    /// What is done about loss towards the clients.
    pub recovery: RecoveryConfig,
    /// Clients at one time; more are reset. Default 1024.
    pub max_connections: usize,
    /// Silence in both directions after which both sides are reset. Default `None`: it is up to
    /// them.
    pub idle_timeout: Option<Duration>,
    /// How long the service may take to accept. Default 5 s.
    pub connect_timeout: Duration,
    /// How long clients may go on once the proxy is to stop; then they are reset. Default 30 s.
    pub drain: Duration,
    /// Bytes that wait in each of a connection's buffers at most: to be sent and received, towards
    /// the client and towards the service. Default 256 KiB.
    pub buffer_bytes: usize,
    /// Whether the service is told the client's address first, by the PROXY protocol, version 2.
    /// Default false: a service that does not expect it takes it for the client's data.
    pub proxy_protocol: bool,
}

/// There is no profile of this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no TCP profile `{name}`, but {}", known())]
pub struct UnknownProfile {
    /// The name.
    pub name: String,
}

fn known() -> String {
    TCP_PROFILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The name of the profile that serves thin streams best.
#[must_use]
pub fn best_profile() -> &'static str {
    let is_there = |name: &&&str| RecoveryConfig::tcp_profile(name).is_some();
    PREFERRED.iter().find(is_there).copied().unwrap_or("tcp-sack")
}

impl ProxyConfig {
    /// The defaults, for this service and with the recovery of this TCP profile.
    ///
    /// # Errors
    /// When there is no such profile.
    pub fn new(upstream: SocketAddr, profile: &str) -> Result<Self, UnknownProfile> {
        let recovery = RecoveryConfig::tcp_profile(profile)
            .ok_or_else(|| UnknownProfile { name: profile.into() })?;
        Ok(Self {
            upstream,
            recovery,
            max_connections: 1024,
            idle_timeout: None,
            connect_timeout: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            buffer_bytes: 256 * 1024,
            proxy_protocol: false,
        })
    }

    /// The clients' connections. Nothing is held back to be sent with more (the service's own TCP
    /// has had that choice), and clients that vanished are found out.
    #[must_use]
    pub fn connection(&self) -> ConnectionConfig {
        ConnectionConfig {
            recovery: self.recovery.clone(),
            nagle: false,
            send_buffer_bytes: self.buffer_bytes,
            receive_buffer_bytes: self.buffer_bytes,
            keep_alive: Some(KeepAlive::default()),
            ..ConnectionConfig::default()
        }
    }

    /// A stack for a proxy.
    #[must_use]
    pub fn stack(&self) -> StackConfig {
        StackConfig {
            connection: Arc::new(self.connection()),
            max_connections: self.max_connections.saturating_add(SPARE_CONNECTIONS),
            ..StackConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_profile_exists_and_others_are_refused_with_a_list() {
        let upstream = "127.0.0.1:22".parse().unwrap();
        let config = ProxyConfig::new(upstream, best_profile()).unwrap();
        assert_eq!(config.stack().validate(), Ok(()));
        let error = ProxyConfig::new(upstream, "lksctp").unwrap_err();
        assert!(error.to_string().contains("tcp-sack"), "{error}");
    }
}
