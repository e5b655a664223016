//! Starting a server in one call: an address that may be a name, and a configuration that accepts
//! associations.

use std::fmt::Debug;
use std::net::SocketAddr;

#[cfg(feature = "dtls")]
use rexmit_dtls::{Encryption, Identity, Trust};
use rexmit_sctp::EndpointConfig;
use tokio::net::{ToSocketAddrs, lookup_host};

use super::Endpoint;
use crate::BindError;
use crate::association::in_words;

impl Endpoint {
    /// A server at `address` whose associations are encrypted, with the default configuration (`interactive`,
    /// SCTP port 5000). Clients authenticate it by the fingerprint of `identity`; it accepts any client.
    /// [`accept`](Self::accept) returns the next association.
    ///
    /// `address` is a socket address or a name with a UDP port, which is
    /// [`ENCAPSULATION_PORT`](crate::ENCAPSULATION_PORT) by convention, or 0 for any: `"0.0.0.0:9899"`,
    /// `"[::]:9899"` (IPv4 too), `"localhost:0"`. If a name has several addresses, the first that can be bound is
    /// used.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use rexmit::{Association, Endpoint, Identity, Trust};
    ///
    /// let identity = Identity::generate()?;
    /// let trust = Trust::only([identity.fingerprint()]);
    /// let server = Endpoint::listen("127.0.0.1:0", identity).await?;
    /// let client = Association::connect(server.local_addr(), trust).await?;
    /// client.stream(0).send("hello").await?;
    /// let accepted = server.accept().await.ok_or("the server was shut down")?;
    /// assert_eq!(accepted.recv().await.ok_or("the association has ended")?.payload, "hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// If the name cannot be resolved, or no address can be bound.
    ///
    /// # Panics
    /// Outside a tokio runtime with I/O and time enabled.
    #[cfg(feature = "dtls")]
    pub async fn listen(
        address: impl ToSocketAddrs + Debug,
        identity: Identity,
    ) -> Result<Self, BindError> {
        let encryption = Encryption::new(identity, Trust::anyone());
        Self::listen_with(address, encryption, EndpointConfig::default()).await
    }

    /// As [`listen`](Self::listen), with a configuration ([`EndpointConfig`], or
    /// [`AssociationConfig`](crate::AssociationConfig) if only that differs) and an `encryption` that says
    /// which clients are accepted. [`EndpointConfig::accept`] is set.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use rexmit::{AssociationConfig, Encryption, Endpoint, Identity, Trust};
    ///
    /// let known_client = Identity::generate()?;
    /// let encryption = Encryption::new(Identity::generate()?, Trust::only([known_client.fingerprint()]));
    /// let profile = AssociationConfig::interactive_redundant();
    /// let server = Endpoint::listen_with("127.0.0.1:0", encryption, profile).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`listen`](Self::listen), or if the configuration is invalid.
    ///
    /// # Panics
    /// As [`listen`](Self::listen).
    #[cfg(feature = "dtls")]
    pub async fn listen_with(
        address: impl ToSocketAddrs + Debug,
        encryption: Encryption,
        config: impl Into<EndpointConfig>,
    ) -> Result<Self, BindError> {
        let config = config.into().accept(true);
        bind_first(address, |address| Self::bind(address, config.clone(), encryption.clone())).await
    }

    /// A server without encryption, for peers that speak plain SCTP in UDP: a host on the path can read, change and
    /// end its associations. For the arguments see [`listen_with`](Self::listen_with).
    ///
    /// # Errors
    /// As [`listen_with`](Self::listen_with).
    ///
    /// # Panics
    /// As [`listen`](Self::listen).
    pub async fn listen_unencrypted(
        address: impl ToSocketAddrs + Debug,
        config: impl Into<EndpointConfig>,
    ) -> Result<Self, BindError> {
        let config = config.into().accept(true);
        bind_first(address, |address| Self::bind_unencrypted(address, config.clone())).await
    }
}

/// The first address of a name that can be bound.
async fn bind_first(
    address: impl ToSocketAddrs + Debug,
    bind: impl Fn(SocketAddr) -> Result<Endpoint, BindError>,
) -> Result<Endpoint, BindError> {
    let name = in_words(&address);
    let unresolved = |name, source| BindError::Unresolved { name, source };
    let found = match lookup_host(address).await {
        Ok(found) => found,
        Err(source) => return Err(unresolved(name, source)),
    };
    let mut failure = unresolved(name, std::io::ErrorKind::NotFound.into());
    for address in found {
        match bind(address) {
            Ok(endpoint) => return Ok(endpoint),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
