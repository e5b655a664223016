//! An endpoint that follows the addresses of its host (RFC 5061).

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_sctp::{AddressError, MAX_ADDRESSES, SourceAddresses};

use super::Endpoint;
use super::protocol::Protocol;
use super::state::{Shared, State};
use crate::limits::within;
use crate::netlink::{Following, HostAddresses};

/// The interval at which changes that could not be made at once are requested again.
const RETRY: Duration = Duration::from_millis(500);

impl Endpoint {
    /// Follows the addresses of this host from now on: new associations list them, and when one is added or removed,
    /// established associations report that to their peers (RFC 5061), use it, or continue without it.
    /// [`Event::AddressChanged`](crate::Event::AddressChanged) reports each change.
    ///
    /// At most [`MAX_ADDRESSES`] addresses are used, the first that the kernel reports, without loopback and link-local
    /// addresses, and without those whose scope the peer does not share. An address stays while its interface is down:
    /// then another path takes over, as after any failure.
    ///
    /// Established associations change only if both sides have
    /// [`dynamic_addresses`](crate::AssociationConfig::dynamic_addresses). Reads rtnetlink(7) in the network namespace of
    /// the calling thread.
    ///
    /// # Errors
    /// `Unsupported` if the endpoint is encrypted, has several shards, or is bound to one address, or an error of the system.
    ///
    /// # Panics
    /// Outside a tokio runtime with its I/O and time drivers enabled.
    pub fn follow_addresses(&self) -> io::Result<()> {
        if let Some(reason) = self.cannot_follow() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let host = HostAddresses::open()?;
        let is_settled = self.shards.first().with(|state, now| state.follow(now, &host.usable()));
        let following = tokio::spawn(follow(Arc::downgrade(self.shards.first()), host, is_settled));
        self.shards.first().lock().life.following = Some(Following::new(following.abort_handle()));
        Ok(())
    }

    fn cannot_follow(&self) -> Option<&'static str> {
        if self.shards.are_several() {
            return Some("an endpoint with several shards does not follow addresses");
        }
        let state = self.shards.first().lock();
        if !matches!(state.sctp, Protocol::Unencrypted(_)) {
            return Some("an association over DTLS has one address");
        }
        let is_one = !state.local_addr.ip().is_unspecified();
        is_one.then_some("the endpoint is bound to one address, not to a wildcard")
    }
}

/// Follows the addresses until the endpoint ends or the kernel reports no more changes.
async fn follow(shared: Weak<Shared>, mut host: HostAddresses, mut is_settled: bool) {
    loop {
        let limit = (!is_settled).then_some(RETRY);
        if let Some(Err(_)) = within(limit, host.changed()).await {
            return;
        }
        let Some(shared) = shared.upgrade() else { return };
        is_settled = shared.with(|state, now| state.follow(now, &host.usable()));
    }
}

impl State {
    /// Makes all associations use these addresses of the host. Returns whether no further call is needed.
    fn follow(&mut self, now: Instant, host: &[IpAddr]) -> bool {
        let host = &host[..host.len().min(MAX_ADDRESSES)];
        // The host reports no more addresses than are allowed.
        let _ = self.sctp.set_addresses(host.to_vec(), SourceAddresses::Paired);
        let mut is_settled = true;
        for id in self.association_ids() {
            is_settled &= match self.sctp.follow_addresses(now, id, host) {
                Ok(is_settled) => is_settled,
                // An association that is being set up may have listed addresses that are gone.
                Err(AddressError::TooManyChanges { .. } | AddressError::NotEstablished) => false,
                Err(_) => true,
            };
        }
        is_settled
    }
}
