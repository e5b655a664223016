//! An endpoint with or without encryption, decided at run time: for bindings to other languages.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};

use rexmit_core::{Ecn, Instant, Machine, Route, Seed};
use rexmit_sctp::{
    AssociationConfig, AssociationId, ConfigError, ConnectError, EndpointConfig, Event,
};

use crate::{Encryption, Endpoint, Fingerprint};

/// SCTP, encrypted or not: a [`Machine`] with the same calls and events in either case.
///
/// It dereferences to the SCTP endpoint, for the calls of an application; packets, and
/// [`connect`](Self::connect), must go through this type. If a handshake fails, the abort reason of the
/// association says why.
#[derive(Debug)]
pub enum MaybeEncrypted {
    /// DTLS 1.3.
    Encrypted(Box<Endpoint>),
    /// Plain SCTP.
    Unencrypted(Box<rexmit_sctp::Endpoint>),
}

impl MaybeEncrypted {
    /// An endpoint with this configuration, without encryption if `encryption` is `None`.
    ///
    /// # Errors
    /// As [`Endpoint::new`].
    pub fn new(
        config: EndpointConfig,
        encryption: Option<Encryption>,
        seed: &Seed,
    ) -> Result<Self, ConfigError> {
        Ok(match encryption {
            Some(encryption) => Self::Encrypted(Box::new(Endpoint::new(config, encryption, seed)?)),
            None => Self::Unencrypted(Box::new(rexmit_sctp::Endpoint::new(config, seed)?)),
        })
    }

    /// Begins an association; see [`Endpoint::connect`].
    ///
    /// # Errors
    /// See [`ConnectError`]; with encryption there must be one route.
    pub fn connect(
        &mut self,
        now: Instant,
        routes: &[Route],
        remote_port: u16,
        config: &std::sync::Arc<AssociationConfig>,
    ) -> Result<AssociationId, ConnectError> {
        match self {
            Self::Encrypted(dtls) => match routes {
                [route] => dtls.connect(now, *route, remote_port, config),
                _ => Err(ConnectError::Routes { limit: 1 }),
            },
            Self::Unencrypted(sctp) => sctp.connect_over(now, routes, remote_port, config.clone()),
        }
    }

    /// Sets the configuration of associations that peers set up from now on; with encryption, [adapted to
    /// records](crate::within_records).
    ///
    /// # Errors
    /// If a value of `config` is out of range.
    pub fn set_association_config(
        &mut self,
        config: std::sync::Arc<AssociationConfig>,
    ) -> Result<(), ConfigError> {
        match self {
            Self::Encrypted(dtls) => {
                let config = crate::within_records(&config).into();
                dtls.sctp_mut().set_association_config(config)
            }
            Self::Unencrypted(sctp) => sctp.set_association_config(config),
        }
    }

    /// The fingerprint of this endpoint's certificate; `None` without encryption.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::Encrypted(dtls) => Some(dtls.fingerprint()),
            Self::Unencrypted(_) => None,
        }
    }

    /// The fingerprint of the peer at `remote`, if the connection with it is secured.
    #[must_use]
    pub fn peer(&self, remote: SocketAddr) -> Option<Fingerprint> {
        match self {
            Self::Encrypted(dtls) => dtls.peer(remote),
            Self::Unencrypted(_) => None,
        }
    }
}

impl Deref for MaybeEncrypted {
    type Target = rexmit_sctp::Endpoint;

    fn deref(&self) -> &rexmit_sctp::Endpoint {
        match self {
            Self::Encrypted(dtls) => dtls.sctp(),
            Self::Unencrypted(sctp) => sctp,
        }
    }
}

impl DerefMut for MaybeEncrypted {
    fn deref_mut(&mut self) -> &mut rexmit_sctp::Endpoint {
        match self {
            Self::Encrypted(dtls) => dtls.sctp_mut(),
            Self::Unencrypted(sctp) => sctp,
        }
    }
}

impl Machine for MaybeEncrypted {
    type Event = (AssociationId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        match self {
            Self::Encrypted(dtls) => dtls.handle_input(now, route, packet),
            Self::Unencrypted(sctp) => sctp.handle_input(now, route, packet),
        }
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        match self {
            Self::Encrypted(dtls) => dtls.handle_input_with_ecn(now, route, ecn, packet),
            Self::Unencrypted(sctp) => sctp.handle_input_with_ecn(now, route, ecn, packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Encrypted(dtls) => dtls.handle_timeout(now),
            Self::Unencrypted(sctp) => sctp.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        match self {
            Self::Encrypted(dtls) => dtls.poll_transmit(now, packet),
            Self::Unencrypted(sctp) => sctp.poll_transmit(now, packet),
        }
    }

    fn transmit_ecn(&self) -> Ecn {
        match self {
            Self::Encrypted(dtls) => dtls.transmit_ecn(),
            Self::Unencrypted(sctp) => sctp.transmit_ecn(),
        }
    }

    fn poll_event(&mut self) -> Option<(AssociationId, Event)> {
        match self {
            Self::Encrypted(dtls) => loop {
                if let crate::Event::Association(id, event) = dtls.poll_event()? {
                    return Some((id, event));
                }
            },
            Self::Unencrypted(sctp) => sctp.poll_event(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Encrypted(dtls) => dtls.poll_timeout(),
            Self::Unencrypted(sctp) => sctp.poll_timeout(),
        }
    }
}
