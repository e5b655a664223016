//! The protocol of an endpoint: SCTP, encrypted or not.

#[cfg(feature = "dtls")]
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use rexmit_core::{Ecn, Instant, Machine, Route};
#[cfg(feature = "dtls")]
use rexmit_dtls::{Fingerprint, HandshakeError};
use rexmit_sctp::{self as sctp, AssociationConfig, AssociationId, Event};

#[cfg(feature = "dtls")]
use super::handshakes::Handshakes;

/// SCTP, encrypted or not. It dereferences to the SCTP endpoint, but packets must be passed to it as a [`Machine`].
pub(crate) enum Protocol {
    Unencrypted(Box<sctp::Endpoint>),
    #[cfg(feature = "dtls")]
    Encrypted(Box<rexmit_dtls::Endpoint>, Handshakes),
}

/// An event of the protocol or its encryption.
pub(crate) enum Happened {
    Association(AssociationId, Event),
    /// An encrypted connection was established, or has ended.
    #[cfg(feature = "dtls")]
    Connection(SocketAddr, Result<Fingerprint, HandshakeError>),
}

impl Protocol {
    /// The configuration of an association, adapted to this endpoint: with encryption, smaller packets, for example.
    pub(super) fn fitting(&self, config: Arc<AssociationConfig>) -> Arc<AssociationConfig> {
        match self {
            Self::Unencrypted(_) => config,
            #[cfg(feature = "dtls")]
            Self::Encrypted(..) => Arc::new(rexmit_dtls::within_records(&config)),
        }
    }

    /// The certificate of the peer at `remote`.
    #[cfg(feature = "dtls")]
    pub(super) fn peer_fingerprint(&self, remote: SocketAddr) -> Option<Fingerprint> {
        match self {
            Self::Unencrypted(_) => None,
            Self::Encrypted(dtls, _) => dtls.peer(remote),
        }
    }
}

impl Deref for Protocol {
    type Target = sctp::Endpoint;

    fn deref(&self) -> &sctp::Endpoint {
        match self {
            Self::Unencrypted(sctp) => sctp,
            #[cfg(feature = "dtls")]
            Self::Encrypted(dtls, _) => dtls.sctp(),
        }
    }
}

impl DerefMut for Protocol {
    fn deref_mut(&mut self) -> &mut sctp::Endpoint {
        match self {
            Self::Unencrypted(sctp) => sctp,
            #[cfg(feature = "dtls")]
            Self::Encrypted(dtls, _) => dtls.sctp_mut(),
        }
    }
}

/// Calls the machine, whichever of the two it is.
macro_rules! either {
    ($protocol:expr, $machine:ident => $call:expr) => {
        match $protocol {
            Protocol::Unencrypted($machine) => $call,
            #[cfg(feature = "dtls")]
            Protocol::Encrypted($machine, _) => $call,
        }
    };
}

impl Machine for Protocol {
    type Event = Happened;

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        either!(self, machine => machine.handle_input(now, route, packet));
    }

    fn handle_input_with_ecn(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &[u8]) {
        either!(self, machine => machine.handle_input_with_ecn(now, route, ecn, packet));
    }

    fn handle_timeout(&mut self, now: Instant) {
        either!(self, machine => machine.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        either!(self, machine => machine.poll_transmit(now, packet))
    }

    fn transmit_ecn(&self) -> Ecn {
        either!(self, machine => machine.transmit_ecn())
    }

    fn poll_event(&mut self) -> Option<Happened> {
        match self {
            Self::Unencrypted(sctp) => {
                sctp.poll_event().map(|(id, event)| Happened::Association(id, event))
            }
            #[cfg(feature = "dtls")]
            Self::Encrypted(dtls, _) => loop {
                return Some(match dtls.poll_event()? {
                    rexmit_dtls::Event::Association(id, event) => Happened::Association(id, event),
                    rexmit_dtls::Event::Secured { remote, peer } => {
                        Happened::Connection(remote, Ok(peer))
                    }
                    rexmit_dtls::Event::Ended { remote, error } => {
                        Happened::Connection(remote, Err(error))
                    }
                    _ => continue,
                });
            },
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        either!(self, machine => machine.poll_timeout())
    }
}
