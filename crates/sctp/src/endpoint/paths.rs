//! Calls that concern the paths to a peer.

use std::net::SocketAddr;
use std::sync::Arc;

use rexmit_core::{Instant, Route};

use super::{AssociationId, Endpoint};
use crate::association::{Association, Context, routes_to};
use crate::config::{AssociationConfig, MAX_ADDRESSES};
use crate::error::{ConnectError, PrimaryError};
use crate::statistics::PathStatistics;

impl Endpoint {
    /// As [`Self::connect_with`], over several paths: all of them count as confirmed, INIT is sent over the
    /// first, and the path of the peer's answer becomes the primary one.
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
        let mut cx = Context::new(now, id, &mut self.around);
        let association = Association::connect(&mut cx, config, identity, routes);
        Ok(self.insert(now, association))
    }

    /// Holds back the INIT of a new association until this is called again with `false`, for a lower layer
    /// that has a handshake of its own to complete. Messages can be given to [`send`](Self::send) meanwhile;
    /// no timer of the association runs. Has no effect once INIT was sent.
    pub fn hold_setup(&mut self, now: Instant, id: AssociationId, is_held: bool) {
        if let Some(index) = self.table.index_of(id.0) {
            self.call(now, index, |association, _| association.hold_setup(is_held));
        }
    }

    /// The routes to these addresses of a peer, for [`Self::connect_over`]. Each begins at the one of our
    /// [addresses](crate::EndpointConfig::addresses) that has the longest common prefix with the peer's, or
    /// otherwise at `local`.
    #[must_use]
    pub fn routes_to(&self, remotes: &[SocketAddr], local: SocketAddr) -> Vec<Route> {
        routes_to(remotes, &self.config.addresses, local)
    }

    /// Makes the path with number `path` the primary path, which carries new data while it works (RFC 9260
    /// §11.1 SET PRIMARY). [`Event::DataPathChanged`](crate::Event::DataPathChanged) reports the change.
    ///
    /// # Errors
    /// See [`PrimaryError`].
    pub fn set_primary(
        &mut self,
        now: Instant,
        id: AssociationId,
        path: u8,
    ) -> Result<(), PrimaryError> {
        let index = self.table.index_of(id.0).ok_or(PrimaryError::UnknownAssociation)?;
        self.call(now, index, |association, cx| association.set_primary(cx, path))
            .unwrap_or(Err(PrimaryError::UnknownAssociation))
    }

    /// The peer's SCTP port; `None` if the id is invalid.
    #[must_use]
    pub fn remote_port(&self, id: AssociationId) -> Option<u16> {
        self.table.find(id.0).map(|slot| slot.association.identity().remote_port)
    }

    /// The paths of the association, by number; `None` if the id is invalid.
    #[must_use]
    pub fn paths(&self, id: AssociationId) -> Option<Vec<PathStatistics>> {
        self.table.find(id.0).map(|slot| slot.association.path_statistics())
    }
}
