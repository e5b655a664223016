//! Calls that change local addresses (RFC 5061) and shared keys (RFC 4895).

use std::net::IpAddr;

use rexmit_core::Instant;

use super::{AssociationId, Endpoint};
use crate::SharedKey;
use crate::association::OwnAddress;
use crate::config::{MAX_ADDRESSES, MAX_HOST_ADDRESSES, SourceAddresses};
use crate::error::{AddressError, KeyError};

impl Endpoint {
    /// Adds a local address to the association. Packets are sent from it once the peer has acknowledged it,
    /// which [`Event::AddressChanged`](crate::Event::AddressChanged) reports.
    ///
    /// The unspecified address stands for the address that the driver sends from, even behind a NAT.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn add_address(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.table.index_of(id.0).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Add(address)).map(drop)
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Removes a local address from the association: nothing is sent from it from now on, and unacknowledged
    /// data sent from it is retransmitted from another at once.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn delete_address(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.table.index_of(id.0).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Delete(address)).map(drop)
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Asks the peer to send to our address `address` while it works (RFC 5061 §4.2.4).
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn set_peer_primary(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.table.index_of(id.0).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Prefer(address)).map(drop)
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Replaces all local addresses by `address`, after the host has changed its network. One ASCONF, sent
    /// from `address`, adds it, asks the peer to send there, and deletes all others. Until the
    /// peer has acknowledged it, nothing else is sent.
    ///
    /// The unspecified address stands for the address that the driver sends from.
    ///
    /// # Errors
    /// See [`AddressError`].
    pub fn move_to(
        &mut self,
        now: Instant,
        id: AssociationId,
        address: IpAddr,
    ) -> Result<(), AddressError> {
        let index = self.table.index_of(id.0).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::MoveTo(address)).map(drop)
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Adds the local addresses of `addresses` that the association lacks, and deletes those that are not in it. Those
    /// that the peer cannot use, because of their scope, are left out; if no other is left, nothing is changed.
    ///
    /// Returns whether all changes were requested. If not, call this again with the same addresses after the peer has
    /// answered the request in progress; [`Event::AddressChanged`](crate::Event::AddressChanged) reports that.
    ///
    /// # Errors
    /// See [`AddressError`]; with [`TooManyChanges`](AddressError::TooManyChanges) some changes may have begun.
    pub fn follow_addresses(
        &mut self,
        now: Instant,
        id: AssociationId,
        addresses: &[IpAddr],
    ) -> Result<bool, AddressError> {
        let index = self.table.index_of(id.0).ok_or(AddressError::UnknownAssociation)?;
        self.call(now, index, |association, cx| {
            association.change_own_address(cx, OwnAddress::Follow(addresses))
        })
        .unwrap_or(Err(AddressError::UnknownAssociation))
    }

    /// Sets the addresses that new associations list, and who chooses those that packets are sent from, in place of
    /// [`EndpointConfig::addresses`](crate::EndpointConfig::addresses) and
    /// [`source_addresses`](crate::EndpointConfig::source_addresses). Existing associations are unchanged. With
    /// [`SourceAddresses::Routed`] there may be [`MAX_HOST_ADDRESSES`] of them; a peer is told of the first
    /// [`MAX_ADDRESSES`] in its scope.
    ///
    /// # Errors
    /// [`AddressError::TooManyAddresses`].
    pub fn set_addresses(
        &mut self,
        addresses: Vec<IpAddr>,
        source_addresses: SourceAddresses,
    ) -> Result<(), AddressError> {
        let limit = match source_addresses {
            SourceAddresses::Paired => MAX_ADDRESSES,
            SourceAddresses::Routed => MAX_HOST_ADDRESSES,
        };
        if addresses.len() > limit {
            return Err(AddressError::TooManyAddresses { limit });
        }
        self.config.addresses.clone_from(&addresses);
        self.config.source_addresses = source_addresses;
        self.around.addresses = addresses;
        self.around.source_addresses = source_addresses;
        Ok(())
    }

    /// Adds a shared key to the association, or replaces the one with the same number. The first key is used
    /// at once.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn set_shared_key(
        &mut self,
        now: Instant,
        id: AssociationId,
        key: SharedKey,
    ) -> Result<(), KeyError> {
        let index = self.table.index_of(id.0).ok_or(KeyError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.auth()?.set_key(key))
            .unwrap_or(Err(KeyError::UnknownAssociation))
    }

    /// Selects the key that authenticates outgoing chunks from now on.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn use_shared_key(
        &mut self,
        now: Instant,
        id: AssociationId,
        key_id: u16,
    ) -> Result<(), KeyError> {
        let index = self.table.index_of(id.0).ok_or(KeyError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.auth()?.use_key(key_id))
            .unwrap_or(Err(KeyError::UnknownAssociation))
    }

    /// Deletes a key that is not in use.
    ///
    /// # Errors
    /// See [`KeyError`].
    pub fn delete_shared_key(
        &mut self,
        now: Instant,
        id: AssociationId,
        key_id: u16,
    ) -> Result<(), KeyError> {
        let index = self.table.index_of(id.0).ok_or(KeyError::UnknownAssociation)?;
        self.call(now, index, |association, _| association.auth()?.delete_key(key_id))
            .unwrap_or(Err(KeyError::UnknownAssociation))
    }
}
