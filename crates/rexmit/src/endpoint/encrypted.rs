//! Encrypted endpoints, and the DTLS handshakes before their associations.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Route, Seed};
use rexmit_dtls::{self as dtls, Encryption, HandshakeError};
use rexmit_sctp::EndpointConfig;

use super::handshakes::Handshakes;
use super::protocol::Protocol;
use super::shards::part;
use super::state::{Shared, State};
use super::{Endpoint, bind_shards, prepare};
use crate::limits::within;
use crate::{BindError, ConnectError};

/// A call that waits for a connection.
pub(super) struct Attempt {
    shared: Arc<Shared>,
    remote: SocketAddr,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.shared.with_on_drop(|state, _| {
            if let Protocol::Encrypted(_, handshakes) = &mut state.sctp {
                handshakes.leave(self.remote);
            }
        });
    }
}

impl Attempt {
    fn outcome(&self) -> Option<Result<(), HandshakeError>> {
        match &self.shared.lock().sctp {
            Protocol::Encrypted(_, handshakes) => handshakes.outcome(self.remote),
            Protocol::Unencrypted(_) => None,
        }
    }

    /// Waits until the connection is secured.
    pub(super) async fn secured(&self) -> Result<(), HandshakeError> {
        loop {
            let changed = self.shared.changed.notified();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            changed.await;
        }
    }

    /// Why the connection has ended; `None` if it has not.
    pub(super) fn error(&self) -> Option<HandshakeError> {
        self.outcome()?.err()
    }
}

impl State {
    /// Begins a DTLS connection with `remote`. Returns false if this endpoint does not encrypt.
    fn begin_handshake(&mut self, now: Instant, remote: SocketAddr) -> Result<bool, ConnectError> {
        let Some(socket) = self.socket.as_ref().filter(|_| !self.life.is_closing) else {
            return Err(ConnectError::EndpointClosed);
        };
        let local = socket.local_addr();
        let Protocol::Encrypted(dtls, handshakes) = &mut self.sctp else { return Ok(false) };
        dtls.begin_handshake(now, Route { local, remote });
        handshakes.wait_for(remote);
        // Errors of earlier packets do not count, as for the first packet of an association.
        self.outbox.forget_failure();
        self.transmit(now);
        let Some(error) = self.take_failure(remote) else { return Ok(true) };
        if let Protocol::Encrypted(_, handshakes) = &mut self.sctp {
            handshakes.leave(remote);
        }
        Err(error)
    }
}

impl Endpoint {
    /// An endpoint whose associations are encrypted, by DTLS 1.3 in UDP (RFC 8261), on `address`; its port is
    /// 0 for any. `encryption` has the identity of this host, and says which peers it trusts; both sides
    /// authenticate.
    ///
    /// With SCTP port 0 in `config` one is chosen from the dynamic range (RFC 6335 §6). To reach other
    /// machines, bind to a wildcard address, `0.0.0.0:0` or `[::]:0`: a socket on `127.0.0.1` reaches this
    /// machine only. A wildcard address serves all addresses of the machine; the one of IPv6 serves IPv4 too.
    ///
    /// An association has one address on either side; a NAT may change its port. With several
    /// [`shards`](EndpointConfig::shards) it may not: packets are steered by the peer's address and port, so that they reach
    /// another shard then, and the association ends when its peer is unreachable. Their limits of `encryption` are 0 or at least the
    /// number of shards, and each shard has an equal part.
    ///
    /// # Errors
    /// If the address cannot be bound, or the configuration is invalid.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O driver enabled.
    pub fn bind(
        address: SocketAddr,
        mut config: EndpointConfig,
        encryption: Encryption,
    ) -> Result<Self, BindError> {
        prepare(&mut config, address.ip())?;
        if config.addresses.len() > 1 {
            return Err(BindError::SeveralAddresses);
        }
        let shards = config.shards;
        let is_too_low = |limit| (1..shards).contains(&limit);
        if is_too_low(encryption.max_connections) || is_too_low(encryption.max_handshakes) {
            let reason = "`max_connections` or `max_handshakes` is below the number of shards";
            return Err(BindError::Shards { reason });
        }
        let (sockets, steering) = bind_shards(address, shards, false)?;
        let protocol = move |config, index, seed: &Seed| {
            let part = |limit| part(limit, index, shards);
            let encryption = encryption
                .clone()
                .max_handshakes(part(encryption.max_handshakes))
                .max_connections(part(encryption.max_connections));
            let dtls = dtls::Endpoint::new(config, encryption, seed)?;
            Ok(Protocol::Encrypted(Box::new(dtls), Handshakes::default()))
        };
        Self::with_sockets(sockets, steering, &config, protocol)
            .map_err(|error| BindError::new(address, error))
    }

    /// Establishes an encrypted connection with the first of `remotes`, and removes the others, because an
    /// association over DTLS has one path. `None` if this endpoint does not encrypt.
    pub(super) async fn begin_handshake(
        &self,
        remotes: &mut Vec<SocketAddr>,
        limit: Option<Duration>,
    ) -> Result<Option<Attempt>, ConnectError> {
        let Some(&remote) = remotes.first() else { return Ok(None) };
        let shared = self.shards.home(Some(remote));
        if !shared.with(|state, now| state.begin_handshake(now, remote))? {
            return Ok(None);
        }
        let attempt = Attempt { shared: Arc::clone(shared), remote };
        remotes.truncate(1);
        let failed = |source| ConnectError::Handshake { remote, source };
        match within(limit, attempt.secured()).await {
            Some(outcome) => outcome.map_err(failed)?,
            None => return Err(failed(HandshakeError::NoAnswer(limit.unwrap_or_default()))),
        }
        Ok(Some(attempt))
    }
}
