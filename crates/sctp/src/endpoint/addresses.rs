//! The calls of an application whose host gets and loses addresses (RFC 5061), and that shares keys with
//! its peers (RFC 4895).

use std::net::IpAddr;

use rexmit_core::Instant;

use super::{AssociationId, Endpoint};
use crate::SharedKey;
use crate::association::OwnAddress;
use crate::error::{AddressError, KeyError};

impl Endpoint {
    /// This host has `address`, too, for this association. It is sent from once the peer has
    /// acknowledged it, which [`Event::AddressChanged`](crate::Event::AddressChanged) tells.
    ///
    /// An unspecified address stands for the one that the driver sends from, whatever that is: also for
    /// its address behind a translator.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.index_of(id).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Add(address))
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// This host has `address` no more, or does not want to be reached there: nothing leaves from it from
    /// now on, and what was under way from it and is not acknowledged leaves from another at once.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.index_of(id).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Delete(address))
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Asks the peer to send to `address` of ours while it can (RFC 5061 §4.2.4).
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_peer_primary(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.index_of(id).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Prefer(address))
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// This host is at `address` from now on, and nowhere else: it has changed its network. One ASCONF,
    /// which leaves from there, adds the address, asks for data to go there, and deletes all others;
    /// nothing else leaves until the peer has acknowledged it, and everything after.
    ///
    /// An unspecified address stands for the one that the driver sends from.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn move_to(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.index_of(id).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::MoveTo(address))
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Tells peers of associations to come these addresses, in place of those of
    /// [`EndpointConfig::addresses`](crate::EndpointConfig::addresses).
    ///
    /// # Errors
    /// [`AddressError::TooManyAddresses`].
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) -> Result<(), AddressError> {
        if addresses.len() > crate::MAX_ADDRESSES {
            return Err(AddressError::TooManyAddresses { limit: crate::MAX_ADDRESSES });
        }
        self.config.addresses.clone_from(&addresses);
        self.around.addresses = addresses;
        Ok(())
    }

    /// Gives the association a key, or changes the one of this number. The first one is used at once.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn set_shared_key(
        &mut self,
        now: Instant,
        id: AssociationId,
        key: SharedKey,
    ) -> Result<(), KeyError> {
        let index = self.index_of(id).ok_or(KeyError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.auth()?.set_key(key))
            .unwrap_or(Err(KeyError::UnknownAssociation))
    }

    /// Chunks are authenticated with this key from now on.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn use_shared_key(
        &mut self,
        now: Instant,
        id: AssociationId,
        key_id: u16,
    ) -> Result<(), KeyError> {
        let index = self.index_of(id).ok_or(KeyError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.auth()?.use_key(key_id))
            .unwrap_or(Err(KeyError::UnknownAssociation))
    }

    /// Forgets a key that is not in use.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn delete_shared_key(
        &mut self,
        now: Instant,
        id: AssociationId,
        key_id: u16,
    ) -> Result<(), KeyError> {
        let index = self.index_of(id).ok_or(KeyError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.auth()?.delete_key(key_id))
            .unwrap_or(Err(KeyError::UnknownAssociation))
    }
}
