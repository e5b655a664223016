//! Authenticated chunks (RFC 4895): chunks after an AUTH chunk come from the host that set up the
//! association, or from a holder of a key that only both sides know.
//!
//! `offer` has the parameters of INIT and INIT ACK, `keys` the keys. An association has no state here if
//! authentication is disabled, or the peer does not support it. Association keys are computed when a chunk
//! first needs one, and dropped while the association is idle.

mod keys;
mod offer;

use crate::config::AssociationConfig;
use crate::error::KeyError;
use crate::wire::{self, PacketWriter, RawChunk, kind};

use keys::{HmacKind, KeyRing, Keyed, Mac};
pub use keys::{MAX_SHARED_KEYS, SharedKey};
pub(crate) use offer::{AuthOffer, MAX_VECTOR_BYTES, OfferReader, RANDOM_LEN, push_offer};

/// The authentication of the chunks of one association.
pub(crate) struct Auth {
    peer: AuthOffer,
    /// The keys of the application; without any, one empty key under 0.
    shared: Option<Box<KeyRing>>,
    /// The key that was used last, ready for use.
    ready: Option<Box<(u16, Keyed)>>,
}

/// Our part of the key material.
#[derive(Clone, Copy)]
pub(crate) struct Ours<'a> {
    pub(crate) config: &'a AssociationConfig,
    pub(crate) random: &'a [u8; RANDOM_LEN],
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// Why an AUTH and the chunks that it covers are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AuthError {
    /// The hash function was not offered.
    UnsupportedHmac(u16),
    /// The key is unknown, or the MAC is wrong.
    Forged,
}

impl Auth {
    /// The state after the handshake, from the offers of both sides.
    pub(crate) fn new(config: &AssociationConfig, peer: &AuthOffer) -> Box<Self> {
        Box::new(Self {
            peer: peer.clone(),
            shared: KeyRing::of(&config.authentication.keys),
            ready: None,
        })
    }

    /// The keyed hash of `key_id`; without shared keys there is one under 0 (RFC 4895 §6.1, §6.3).
    fn keyed(&mut self, ours: Ours<'_>, key_id: u16, kind: HmacKind) -> Option<&Keyed> {
        let is_ready = |ready: &(u16, Keyed)| ready.0 == key_id && ready.1.kind() == kind;
        if !self.ready.as_deref().is_some_and(is_ready) {
            let shared = match &self.shared {
                Some(ring) => ring.find(key_id)?.bytes(),
                None if key_id == 0 => &[],
                None => return None,
            };
            let own = offer::vector(ours.config, ours.random);
            let [small, large] = keys::in_order(&own, self.peer.vector());
            self.ready = Some(Box::new((key_id, Keyed::new(kind, &[shared, small, large]))));
        }
        self.ready.as_ref().map(|ready| &ready.1)
    }

    /// Whether the MAC in `auth`, an AUTH chunk, is correct for this chunk and `rest`, the chunks after it.
    pub(crate) fn verify(
        &mut self,
        ours: Ours<'_>,
        auth: &RawChunk<'_>,
        rest: &[u8],
    ) -> Result<(), AuthError> {
        let Ok(wire::Chunk::Auth(chunk)) = auth.decode() else { return Err(AuthError::Forged) };
        let kind = HmacKind::of(chunk.hmac_id).ok_or(AuthError::UnsupportedHmac(chunk.hmac_id))?;
        // Every MAC is a multiple of four bytes long, so that there is no padding.
        if chunk.mac.len() != kind.mac_len() {
            return Err(AuthError::Forged);
        }
        let keyed = self.keyed(ours, chunk.key_id, kind).ok_or(AuthError::Forged)?;
        let header = &auth.bytes[..wire::AUTH_HEADER_LEN];
        let is_right = keyed.verify([header, &[0; 32][..kind.mac_len()], rest], chunk.mac);
        if is_right { Ok(()) } else { Err(AuthError::Forged) }
    }

    /// The Shared Key Identifier of what we send.
    fn active(&self) -> u16 {
        self.shared.as_ref().map_or(0, |ring| ring.active())
    }

    /// The MAC of `bytes`, with the key that is in use.
    fn sign(&mut self, ours: Ours<'_>, bytes: &[u8]) -> Mac {
        let (active, kind) = (self.active(), self.peer.kind());
        self.keyed(ours, active, kind).map_or_else(Mac::default, |keyed| keyed.mac(bytes))
    }

    /// Begins a packet with AUTH, if the peer wants all chunks to be authenticated.
    pub(super) fn begin(&self, writer: &mut PacketWriter<'_>) {
        if self.peer.covers_all() {
            self.put(writer);
        }
    }

    /// Appends AUTH; [`Self::finish`] fills in the MAC of the chunks after it.
    pub(super) fn put(&self, writer: &mut PacketWriter<'_>) {
        let kind = self.peer.kind();
        writer.auth(self.active(), kind.id(), kind.mac_len());
    }

    /// Ends a packet: signs it if it begins with AUTH.
    pub(super) fn finish(&mut self, ours: Ours<'_>, writer: PacketWriter<'_>) {
        writer.finish_authenticated(|bytes| self.sign(ours, bytes));
    }

    /// The bytes that AUTH takes in every packet.
    pub(super) const fn overhead(&self) -> usize {
        if self.peer.covers_all() { wire::AUTH_HEADER_LEN + self.peer.kind().mac_len() } else { 0 }
    }

    /// Adds a shared key, or replaces the one with the same identifier.
    pub(crate) fn set_key(&mut self, key: SharedKey) -> Result<(), KeyError> {
        self.ready = None;
        match &mut self.shared {
            Some(ring) => return ring.set(key),
            None => self.shared = KeyRing::of(&[key]),
        }
        Ok(())
    }

    /// Authenticates chunks sent from now on with this key.
    pub(crate) fn use_key(&mut self, key_id: u16) -> Result<(), KeyError> {
        self.shared.as_mut().ok_or(KeyError::NoSuchKey)?.use_key(key_id)
    }

    /// Forgets a key that is not in use.
    pub(crate) fn delete_key(&mut self, key_id: u16) -> Result<(), KeyError> {
        self.ready = None;
        self.shared.as_mut().ok_or(KeyError::NoSuchKey)?.delete(key_id)
    }

    /// Releases memory whose content can be recomputed.
    pub(super) fn release_memory(&mut self) {
        self.ready = None;
    }
}

/// Whether chunks of this type are accepted only after an AUTH, given whether the peer `changes_addresses`. A
/// configured requirement applies also to peers without RFC 4895.
pub(super) fn must_be_authentic(
    config: &AssociationConfig,
    changes_addresses: bool,
    chunk: u8,
) -> bool {
    let is_about_addresses = matches!(chunk, kind::ASCONF | kind::ASCONF_ACK);
    (is_about_addresses && changes_addresses) || config.authentication.chunks.contains(&chunk)
}
