//! The clients of the emulator, each with its own socket towards the server.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rexmit_core::Instant;

use super::socket::RelaySocket;

/// An id is never used twice, so that a packet for a forgotten client does not reach another one.
pub(super) type ClientId = usize;

/// One client: its address, and the socket through which the relay exchanges its packets with the server.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    pub(super) socket: RelaySocket,
    last_active: Instant,
}

/// The clients that have recently sent to the emulator.
#[derive(Debug)]
pub(super) struct Clients {
    by_id: BTreeMap<ClientId, Client>,
    by_address: BTreeMap<SocketAddr, ClientId>,
    next_id: ClientId,
    max_clients: usize,
    idle_timeout: Duration,
    /// A lower bound of the time at which a client expires.
    next_expiry: Instant,
}

impl Clients {
    pub(super) fn new(first_id: ClientId, max_clients: usize, idle_timeout: Duration) -> Self {
        Self {
            by_id: BTreeMap::new(),
            by_address: BTreeMap::new(),
            next_id: first_id,
            max_clients,
            idle_timeout,
            next_expiry: Instant::FAR_FUTURE,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn client(&self, id: ClientId) -> Option<&Client> {
        self.by_id.get(&id)
    }

    /// The active client with this address.
    pub(super) fn find(&mut self, now: Instant, address: SocketAddr) -> Option<ClientId> {
        let id = *self.by_address.get(&address)?;
        self.touch(now, id);
        Some(id)
    }

    /// Adds a client; `None` if there are too many already.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        address: SocketAddr,
        open: impl FnOnce(ClientId) -> io::Result<RelaySocket>,
    ) -> io::Result<Option<ClientId>> {
        if self.len() >= self.max_clients {
            return Ok(None);
        }
        let id = self.next_id;
        let socket = open(id)?;
        self.next_id += 1;
        self.by_id.insert(id, Client { address, socket, last_active: now });
        self.by_address.insert(address, id);
        self.next_expiry = self.next_expiry.min(now + self.idle_timeout);
        Ok(Some(id))
    }

    /// Called when the client sent or received something: its idle time begins again.
    pub(super) fn touch(&mut self, now: Instant, id: ClientId) {
        if let Some(client) = self.by_id.get_mut(&id) {
            client.last_active = now;
        }
    }

    /// When [`expire`](Self::expire) is to be called again, if there are clients.
    pub(super) fn next_expiry(&self) -> Instant {
        self.next_expiry
    }

    /// Forgets the clients that have been idle for too long, which closes their sockets.
    pub(super) fn expire(&mut self, now: Instant) {
        if now < self.next_expiry {
            return;
        }
        let (timeout, by_address) = (self.idle_timeout, &mut self.by_address);
        self.by_id.retain(|_, client| {
            let stays = now < client.last_active + timeout;
            if !stays {
                by_address.remove(&client.address);
            }
            stays
        });
        // A quarter of the time-out bounds how often the whole table is looked through.
        let earliest = self.by_id.values().map(|client| client.last_active + timeout).min();
        self.next_expiry =
            earliest.map_or(Instant::FAR_FUTURE, |earliest| earliest.max(now + timeout / 4));
    }
}
