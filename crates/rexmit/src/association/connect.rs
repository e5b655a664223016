//! Connecting by name: the addresses of the name are tried, each on a socket of its own.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use rexmit_core::Instant;
#[cfg(feature = "dtls")]
use rexmit_dtls::{Encryption, Identity, Trust};
use rexmit_sctp::EndpointConfig;
use tokio::net::{ToSocketAddrs, lookup_host};

use super::Association;
use crate::clock::now;
use crate::endpoint::Endpoint;
use crate::limits::{TimeLimits, within};
use crate::{BindError, ConnectError};

/// The most addresses of a name that are tried.
const MAX_TRIED: usize = 8;
/// The time after which the next address is tried (RFC 8305 §5). It suffices for the four round trips of a handshake at
/// 250 ms each, so that no second connection to a distant server is attempted.
const HEAD_START: Duration = Duration::from_secs(1);

type Attempt<'a> = Pin<Box<dyn Future<Output = Result<Association, ConnectError>> + Send + 'a>>;

impl Association {
    /// Begins an encrypted association with the server at `address`, with the default configuration
    /// (`interactive`, SCTP port 5000), and waits until it is established, 10 s at most. `trust` contains the
    /// fingerprint of the server's certificate; this side uses a new certificate.
    ///
    /// `address` is a socket address, or a name with a UDP port, as `"game.example:9899"`. The addresses of a
    /// name are tried in order, the next one when an attempt has failed or has lasted one second (compare RFC
    /// 8305). The first association that is established is returned; unfinished attempts are cancelled.
    ///
    /// Each association has a socket of its own. For several on one socket, for one that also accepts, and for other
    /// [`TimeLimits`], use [`Endpoint::bind`] and [`Endpoint::connect`].
    ///
    /// # Errors
    /// If the name cannot be resolved, or no address answers or accepts; the error is that of the last
    /// address.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    #[cfg(feature = "dtls")]
    pub async fn connect(
        address: impl ToSocketAddrs + Debug,
        trust: Trust,
    ) -> Result<Self, ConnectError> {
        let identity = Identity::generate().map_err(ConnectError::Identity)?;
        let encryption = Encryption::new(identity, trust);
        Self::connect_with(address, encryption, EndpointConfig::default()).await
    }

    /// As [`connect`](Self::connect), with a configuration ([`EndpointConfig`], or
    /// [`AssociationConfig`](crate::AssociationConfig) if only that differs) and an identity.
    /// [`EndpointConfig::port`] is the SCTP port of both sides.
    ///
    /// # Errors
    /// As [`connect`](Self::connect), or if the configuration is invalid.
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    #[cfg(feature = "dtls")]
    pub async fn connect_with(
        address: impl ToSocketAddrs + Debug,
        encryption: Encryption,
        config: impl Into<EndpointConfig>,
    ) -> Result<Self, ConnectError> {
        let bind = |any, config| Endpoint::bind(any, config, encryption.clone());
        connect_first(address, config.into(), bind).await
    }

    /// Begins an association that is not encrypted, with a peer that speaks plain SCTP in UDP: a host on the path can
    /// read, change and end it. For the arguments see [`connect_with`](Self::connect_with).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use rexmit::{Association, AssociationConfig, Endpoint};
    ///
    /// let server = Endpoint::listen_unencrypted("127.0.0.1:0", AssociationConfig::default()).await?;
    /// let profile = AssociationConfig::interactive_redundant();
    /// let association = Association::connect_unencrypted(server.local_addr(), profile).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`connect_with`](Self::connect_with).
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub async fn connect_unencrypted(
        address: impl ToSocketAddrs + Debug,
        config: impl Into<EndpointConfig>,
    ) -> Result<Self, ConnectError> {
        connect_first(address, config.into(), Endpoint::bind_unencrypted).await
    }
}

/// Begins an association with the first address that answers, on endpoints created by `bind`.
async fn connect_first(
    address: impl ToSocketAddrs + Debug,
    config: EndpointConfig,
    bind: impl Fn(SocketAddr, EndpointConfig) -> Result<Endpoint, BindError> + Sync,
) -> Result<Association, ConnectError> {
    let (name, start) = (in_words(&address), now());
    let unresolved = |source| ConnectError::Unresolved { name: name.clone(), source };
    let found = match within(TimeLimits::default().connect, lookup_host(address)).await {
        Some(found) => found.map_err(unresolved)?,
        None => return Err(unresolved(std::io::ErrorKind::TimedOut.into())),
    };
    let attempt = |remote| -> Attempt<'_> { Box::pin(connect_to(remote, &config, start, &bind)) };
    let attempts: VecDeque<_> = found.take(MAX_TRIED).map(attempt).collect();
    first_success(attempts)
        .await
        .unwrap_or_else(|| Err(unresolved(std::io::ErrorKind::NotFound.into())))
}

/// An address as the application gave it, without the quotes of a string.
pub(crate) fn in_words(address: &impl Debug) -> String {
    format!("{address:?}").trim_matches('"').to_owned()
}

/// Makes one attempt, until [`TimeLimits::connect`] after `start`.
async fn connect_to(
    remote: SocketAddr,
    config: &EndpointConfig,
    start: Instant,
    bind: &(impl Fn(SocketAddr, EndpointConfig) -> Result<Endpoint, BindError> + Sync),
) -> Result<Association, ConnectError> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut limits = TimeLimits::default();
    limits.connect = limits.connect.map(|limit| limit.saturating_sub(now() - start));
    let endpoint = bind((any, 0).into(), config.clone())?.with_time_limits(limits);
    let association = endpoint.connect(remote, config.port).await?;
    Ok(association.with_endpoint(endpoint))
}

/// The first attempt that succeeds, or the error of the last one; `None` without attempts. The next attempt begins
/// when one has failed or [`HEAD_START`] is over.
async fn first_success(
    mut waiting: VecDeque<Attempt<'_>>,
) -> Option<Result<Association, ConnectError>> {
    let mut running = Vec::from([waiting.pop_front()?]);
    loop {
        let head_start = (!waiting.is_empty()).then_some(HEAD_START);
        match within(head_start, next_finished(&mut running)).await {
            Some(Err(error)) if running.is_empty() && waiting.is_empty() => {
                return Some(Err(error));
            }
            Some(Ok(association)) => return Some(Ok(association)),
            Some(Err(_)) | None => running.extend(waiting.pop_front()),
        }
    }
}

/// The outcome of the next attempt that finishes; the attempt is removed.
async fn next_finished(running: &mut Vec<Attempt<'_>>) -> Result<Association, ConnectError> {
    poll_fn(|cx| {
        for index in 0..running.len() {
            if let Poll::Ready(outcome) = running[index].as_mut().poll(cx) {
                drop(running.swap_remove(index));
                return Poll::Ready(outcome);
            }
        }
        Poll::Pending
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_named_as_they_were_given() {
        assert_eq!(in_words(&"localhost"), "localhost");
        assert_eq!(in_words(&("localhost", 9899)), r#"("localhost", 9899)"#);
        assert_eq!(in_words(&SocketAddr::from(([127, 0, 0, 1], 9899))), "127.0.0.1:9899");
    }
}
