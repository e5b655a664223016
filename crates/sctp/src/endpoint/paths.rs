//! The calls of an application that knows of several ways to a peer.

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Route};

use super::{AssociationId, Endpoint};
use crate::association::{Association, Context, ways_to};
use crate::config::{AssociationConfig, MAX_ADDRESSES};
use crate::error::{ConnectError, PrimaryError};
use crate::statistics::PathStatistics;

impl Endpoint {
    /// As [`Self::connect_with`], over several ways to the peer: all of them count as confirmed, the
    /// first is tried first, and the one over which the peer answers is the primary path.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_over(
        &mut self,
        now: Instant,
        routes: &[Route],
        remote_port: u16,
        config: Arc<AssociationConfig>,
    ) -> Result<AssociationId, ConnectError> {
        config.validate()?;
        let is_taken = |route: &Route| self.lookup.by_address(route.remote, remote_port).is_some();
        if remote_port == 0 {
            return Err(ConnectError::PortZero);
        } else if !(1..=MAX_ADDRESSES).contains(&routes.len()) {
            return Err(ConnectError::Routes { limit: MAX_ADDRESSES });
        } else if routes.iter().any(is_taken) {
            return Err(ConnectError::AlreadyConnected);
        } else if self.table.len() >= self.config.max_associations {
            return Err(ConnectError::TooManyAssociations);
        }
        let identity = self.new_identity(remote_port);
        let id = AssociationId(self.table.next_key());
        let mut cx = Context { now, id, around: &mut self.around };
        let association = Association::connect(&mut cx, config, identity, routes);
        Ok(self.insert(now, association))
    }

    /// Holds back the INIT of an association that was just begun, until this is called with `false`: for the layer
    /// below, which may have a handshake of its own to complete first. Messages can be sent meanwhile, and wait. No
    /// timer of the association runs. Without effect once INIT was sent.
    pub fn hold_setup(&mut self, now: Instant, id: AssociationId, is_held: bool) {
        if let Some(index) = self.index_of(id) {
            self.call(now, index, |association, _| association.hold_setup(is_held));
        }
    }

    /// The ways to these addresses of a peer, for [`Self::connect_over`]: each from the one of our
    /// [addresses](crate::EndpointConfig::addresses) that has most in common with it, or from `local`.
    #[must_use]
    pub fn ways_to(&self, remotes: &[SocketAddr], local: SocketAddr) -> Vec<Route> {
        ways_to(remotes, &self.config.addresses, local)
    }

    /// Has data take `path`, by its number, while it works (RFC 9260 §11.1 SET PRIMARY).
    /// [`Event::DataPathChanged`](crate::Event::DataPathChanged) reports when they do.
    ///
    /// # Errors
    /// See [`PrimaryError`].
    pub fn set_primary(
        &mut self,
        now: Instant,
        id: AssociationId,
        path: u8,
    ) -> Result<(), PrimaryError> {
        let index = self.index_of(id).ok_or(PrimaryError::UnknownAssociation)?;
        self.call(now, index, |association, cx| association.set_primary(cx, path))
            .unwrap_or(Err(PrimaryError::UnknownAssociation))
    }

    /// The peer's SCTP port, while the id of the association is good.
    #[must_use]
    pub fn remote_port(&self, id: AssociationId) -> Option<u16> {
        self.table.find(id.0).map(|slot| slot.association.identity().remote_port)
    }

    /// The paths of the association, by number, while its id is good.
    #[must_use]
    pub fn paths(&self, id: AssociationId) -> Option<Vec<PathStatistics>> {
        self.table.find(id.0).map(|slot| slot.association.path_statistics())
    }
}
