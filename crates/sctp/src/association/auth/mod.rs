//! Authenticated chunks (RFC 4895): what is under an AUTH chunk comes from who set the association up,
//! or from who has a key that only both sides know.
//!
//! `offer` is what INIT and INIT ACK say, `keys` the keys and what is made of them. Off, or with a peer
//! that does not speak it, an association keeps nothing of it; keys are made when a chunk first needs one,
//! and forgotten while the association is idle.

mod keys;
mod offer;

use super::{Association, Context, Next};
use crate::config::AssociationConfig;
use crate::error::KeyError;
use crate::wire::{self, COMMON_HEADER_LEN, DATA_HEADER_LEN, PacketWriter, RawChunk, kind};

use keys::{HmacKind, KeyRing, Keyed, Mac};
pub use keys::{MAX_SHARED_KEYS, SharedKey};
pub(crate) use offer::{AuthOffer, OfferReader, RANDOM_LEN, may_be_asked_for, push_offer};

/// What authenticates the chunks of one association.
pub(crate) struct Auth {
    peer: AuthOffer,
    /// What the application has given; none is one empty key under 0.
    shared: Option<Box<KeyRing>>,
    /// The key that was used last, ready for use.
    ready: Option<Box<(u16, Keyed)>>,
}

/// What our side of the keys is made of.
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

/// Why what an AUTH covers is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AuthError {
    /// The hash function is none of those that were offered.
    UnsupportedHmac(u16),
    /// No such key, or the MAC is wrong.
    Forged,
}

impl Auth {
    /// What both sides have offered.
    pub(crate) fn new(config: &AssociationConfig, peer: &AuthOffer) -> Box<Self> {
        Box::new(Self { peer: peer.clone(), shared: KeyRing::of(&config.shared_keys), ready: None })
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

    /// Whether `auth`, an AUTH chunk, is right for itself and `rest`, all that follows.
    pub(crate) fn verify(
        &mut self,
        ours: Ours<'_>,
        (auth, rest): (&RawChunk<'_>, &[u8]),
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
}

impl Association {
    /// Whether the peer may send chunks of this type only under an AUTH. Whoever asks for that does so
    /// of peers, too, that do not speak RFC 4895.
    pub(super) fn must_be_authentic(&self, chunk: u8) -> bool {
        let is_about_addresses = matches!(chunk, kind::ASCONF | kind::ASCONF_ACK);
        (is_about_addresses && self.supports_asconf)
            || self.config.authenticated_chunks.contains(&chunk)
    }

    /// AUTH, with all that follows it in its packet (RFC 4895 §6.3).
    pub(super) fn on_auth(
        &mut self,
        cx: &mut Context<'_>,
        raw: &RawChunk<'_>,
        rest: &[u8],
    ) -> Next {
        let ours = Ours { config: &self.config, random: &self.identity.random };
        let Some(auth) = &mut self.auth else { return self.on_unknown_chunk(raw) };
        match auth.verify(ours, (raw, rest)) {
            Ok(()) => return Next::Continue,
            Err(AuthError::UnsupportedHmac(id)) => {
                self.owed.error(super::transmit::OwedError::UnsupportedHmac(id));
            }
            Err(AuthError::Forged) => {}
        }
        cx.around.statistics.unauthenticated += 1;
        Next::Stop
    }

    /// A chunk that should stand under an AUTH (RFC 4895 §6.3). An ASCONF takes the rest of its packet
    /// with it (RFC 5061 §5.2 D5).
    pub(super) fn on_unauthenticated(&self, cx: &mut Context<'_>, chunk: u8) -> Next {
        cx.around.statistics.unauthenticated += 1;
        if chunk == kind::ASCONF { Next::Stop } else { Next::Continue }
    }

    /// Whether AUTH is right for the rest of a packet that begins with it: for what an endpoint looks
    /// at before the association does.
    pub(crate) fn is_authentic(&mut self, auth: &RawChunk<'_>, rest: &[u8]) -> bool {
        let ours = Ours { config: &self.config, random: &self.identity.random };
        self.auth.as_mut().is_some_and(|own| own.verify(ours, (auth, rest)).is_ok())
    }

    /// Begins a packet with AUTH, if the peer wants all chunks to be authenticated.
    pub(super) fn begin_authentic(&self, writer: &mut PacketWriter<'_>) {
        if self.auth.as_ref().is_some_and(|auth| auth.peer.covers_all()) {
            self.put_auth(writer);
        }
    }

    /// Appends AUTH; [`Self::finish_packet`] signs what follows.
    pub(super) fn put_auth(&self, writer: &mut PacketWriter<'_>) {
        if let Some(auth) = &self.auth {
            let kind = auth.peer.kind();
            writer.auth(auth.active(), kind.id(), kind.mac_len());
        }
    }

    /// Ends a packet: signs it if it begins with AUTH.
    pub(super) fn finish_packet(&mut self, writer: PacketWriter<'_>) {
        let ours = Ours { config: &self.config, random: &self.identity.random };
        match &mut self.auth {
            Some(auth) => writer.finish_authenticated(|bytes| auth.sign(ours, bytes)),
            None => writer.finish(),
        };
    }

    /// The largest payload of a DATA chunk beside what must stand in its packet.
    pub(super) fn max_fragment(&self) -> usize {
        let auth = self.auth.as_ref().filter(|auth| auth.peer.covers_all());
        let len = auth.map_or(0, |auth| wire::AUTH_HEADER_LEN + auth.peer.kind().mac_len());
        (self.config.max_packet_bytes & !3) - COMMON_HEADER_LEN - DATA_HEADER_LEN - len
    }

    /// The application has another key for the peer, or changes one.
    pub(crate) fn set_shared_key(&mut self, key: SharedKey) -> Result<(), KeyError> {
        let auth = self.auth.as_mut().ok_or(KeyError::NotSupported)?;
        auth.ready = None;
        match &mut auth.shared {
            Some(ring) => return ring.set(key),
            None => auth.shared = KeyRing::of(&[key]),
        }
        Ok(())
    }

    /// What is sent from now on is authenticated with this key.
    pub(crate) fn use_shared_key(&mut self, key_id: u16) -> Result<(), KeyError> {
        let auth = self.auth.as_mut().ok_or(KeyError::NotSupported)?;
        auth.shared.as_mut().ok_or(KeyError::NoSuchKey)?.use_key(key_id)
    }

    /// Forgets a key that is not in use.
    pub(crate) fn delete_shared_key(&mut self, key_id: u16) -> Result<(), KeyError> {
        let auth = self.auth.as_mut().ok_or(KeyError::NotSupported)?;
        auth.ready = None;
        auth.shared.as_mut().ok_or(KeyError::NoSuchKey)?.delete(key_id)
    }

    /// Gives back what can be made again.
    pub(super) fn release_keys(&mut self) {
        self.auth.iter_mut().for_each(|auth| auth.ready = None);
    }
}
