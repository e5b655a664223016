//! The parameters of INIT and INIT ACK for authentication (RFC 4895 §3, §6.1).

use super::keys::HmacKind;
use crate::config::AssociationConfig;
use crate::wire::{
    Param, ParamsWriter, RawParam, TLV_HEADER_LEN, U16List, kind, may_be_authenticated, param_kind,
};

/// Bytes of a random number; another length is a violation (RFC 4895 §6.1).
pub(crate) const RANDOM_LEN: usize = 32;

/// The longest key vector of a peer: a cookie has to hold it. A peer with a longer vector counts as one without
/// authentication.
pub(crate) const MAX_VECTOR_BYTES: usize = 160;

/// The authentication parameters of a peer.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AuthOffer {
    vector: Box<[u8]>,
    kind: HmacKind,
    covers_all: bool,
}

impl std::fmt::Debug for AuthOffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthOffer").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl AuthOffer {
    /// The RANDOM, CHUNKS and HMAC-ALGO parameters, concatenated without padding.
    pub(crate) fn vector(&self) -> &[u8] {
        &self.vector
    }

    /// The hash function that the peer prefers among those that we support.
    pub(super) const fn kind(&self) -> HmacKind {
        self.kind
    }

    /// Whether the peer requires authentication of other chunks than ASCONF and ASCONF-ACK.
    pub(super) const fn covers_all(&self) -> bool {
        self.covers_all
    }

    /// The flags as a state cookie stores them, in addition to the key vector.
    pub(crate) const fn to_bits(&self) -> u8 {
        (matches!(self.kind, HmacKind::Sha256) as u8) | (self.covers_all as u8) << 1
    }

    /// The offer of the peer as stored in a state cookie.
    pub(crate) fn from_bits(bits: u8, vector: &[u8]) -> Self {
        let kind = if bits & 1 != 0 { HmacKind::Sha256 } else { HmacKind::Sha1 };
        Self { vector: vector.into(), kind, covers_all: bits & 2 != 0 }
    }
}

/// Gathers the parameters that an offer consists of; the first of each type counts.
#[derive(Default)]
pub(crate) struct OfferReader<'a> {
    random: Option<RawParam<'a>>,
    chunks: Option<RawParam<'a>>,
    hmacs: Option<(RawParam<'a>, Option<HmacKind>)>,
}

impl<'a> OfferReader<'a> {
    pub(crate) fn note(&mut self, raw: RawParam<'a>, param: &Param<'a>) {
        match param {
            Param::Random(_) => _ = self.random.get_or_insert(raw),
            Param::Chunks(_) => _ = self.chunks.get_or_insert(raw),
            Param::HmacAlgo(ids) => {
                self.hmacs.get_or_insert_with(|| (raw, ids.iter().find_map(HmacKind::of)));
            }
            _ => {}
        }
    }

    /// Whether the random number has a wrong length.
    pub(crate) fn is_violated(&self) -> bool {
        self.random.is_some_and(|random| random.value.len() != RANDOM_LEN)
    }

    /// The offer, if there is one that can be accepted.
    pub(crate) fn finish(self) -> Option<AuthOffer> {
        let (random, (hmacs, kind)) = (self.random?, self.hmacs?);
        let listed = self.chunks.map_or(&[][..], |chunks| chunks.value);
        let is_more = |chunk: &u8| may_be_authenticated(*chunk) && !is_about_addresses(*chunk);
        let chunks = self.chunks.map_or(&[][..], |chunks| chunks.bytes);
        let vector = [random.bytes, chunks, hmacs.bytes].concat();
        (vector.len() <= MAX_VECTOR_BYTES).then_some(AuthOffer {
            vector: vector.into(),
            kind: kind?,
            covers_all: listed.iter().any(is_more),
        })
    }
}

const fn is_about_addresses(chunk: u8) -> bool {
    matches!(chunk, kind::ASCONF | kind::ASCONF_ACK)
}

/// The chunk types that peers are asked to authenticate.
fn asked_for(config: &AssociationConfig) -> Vec<u8> {
    let mut chunks = config.authentication.chunks.clone();
    if config.extensions.dynamic_addresses {
        chunks.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// Writes our offer for a peer, if any.
pub(crate) fn push_offer(
    params: &mut ParamsWriter<'_, '_>,
    config: &AssociationConfig,
    random: &[u8; RANDOM_LEN],
) {
    if config.offers_authentication() {
        params.push(&Param::Random(random));
        params.push(&Param::Chunks(&asked_for(config)));
        params.push(&Param::HmacAlgo(U16List::from(&HmacKind::OFFERED[..])));
    }
}

/// Our own key vector: the parameters of [`push_offer`], without padding.
pub(super) fn vector(config: &AssociationConfig, random: &[u8; RANDOM_LEN]) -> Vec<u8> {
    let mut vector = Vec::new();
    let mut put = |kind: u16, value: &[u8]| {
        let len = (TLV_HEADER_LEN + value.len()) as u16;
        vector.extend_from_slice(&kind.to_be_bytes());
        vector.extend_from_slice(&len.to_be_bytes());
        vector.extend_from_slice(value);
    };
    put(param_kind::RANDOM, random);
    put(param_kind::CHUNKS, &asked_for(config));
    let hmacs = HmacKind::OFFERED.map(u16::to_be_bytes);
    put(param_kind::HMAC_ALGO, hmacs.as_flattened());
    vector
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Chunk, Header, Init, Packet, PacketWriter, Params};

    /// The offer that a peer reads from the parameters written by `push`.
    fn read(push: impl FnOnce(&mut ParamsWriter<'_, '_>)) -> (bool, Option<AuthOffer>) {
        let header = Header { source_port: 1, destination_port: 1, verification_tag: 0 };
        let init = Init {
            initiate_tag: 1,
            a_rwnd: 1500,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: 1,
            params: Params::default(),
        };
        let mut buffer = Vec::new();
        let mut writer = PacketWriter::new(&mut buffer, 1500, header);
        writer.init(&init, push);
        writer.finish();
        let packet = Packet::parse(&buffer).unwrap();
        let Ok(Chunk::Init(init)) = packet.chunks().next().unwrap().unwrap().decode() else {
            panic!("no INIT")
        };
        let mut reader = OfferReader::default();
        for raw in init.params().flatten() {
            reader.note(raw, &raw.decode().unwrap());
        }
        (reader.is_violated(), reader.finish())
    }

    /// Both sides must compute the same key: the peer reads the bytes that we use ourselves, with
    /// an odd number of chunks, too, where the wire has padding.
    #[test]
    fn our_vector_is_what_the_peer_reads() {
        for chunks in [vec![], vec![kind::DATA], vec![kind::DATA, kind::SACK, kind::SACK]] {
            let config = AssociationConfig {
                authentication: crate::AuthenticationConfig { chunks, ..Default::default() },
                ..AssociationConfig::rfc9260()
            };
            let random = [7; RANDOM_LEN];
            let (_, offer) = read(|params| push_offer(params, &config, &random));
            let offer = offer.expect("an offer");
            assert_eq!(offer.vector(), vector(&config, &random));
            assert_eq!(offer.kind(), HmacKind::Sha256);
            assert_eq!(offer.covers_all(), !config.authentication.chunks.is_empty());
            assert_eq!(AuthOffer::from_bits(offer.to_bits(), offer.vector()), offer);
        }
    }

    #[test]
    fn an_offer_is_whole_or_none() {
        let hmacs = |ids: &'static [u16]| Param::HmacAlgo(U16List::from(ids));
        let random = [1; RANDOM_LEN];
        let with = |params: &[Param<'_>]| {
            read(|writer| params.iter().for_each(|param| assert!(writer.push(param))))
        };
        assert_eq!(with(&[]), (false, None));
        assert_eq!(with(&[Param::Random(&random)]), (false, None));
        assert_eq!(with(&[hmacs(&[1])]), (false, None));
        assert_eq!(with(&[Param::Random(&random), hmacs(&[2, 4])]), (false, None));
        assert!(with(&[Param::Random(&[1; 31]), hmacs(&[1])]).0, "31 bytes");
        let kind = |ids| with(&[Param::Random(&random), hmacs(ids)]).1.map(|offer| offer.kind());
        assert_eq!(kind(&[1]), Some(HmacKind::Sha1));
        assert_eq!(kind(&[4, 3, 1]), Some(HmacKind::Sha256));
        // The limit `MAX_VECTOR_BYTES`.
        let list = [0; 255];
        let len = MAX_VECTOR_BYTES - RANDOM_LEN - 2 - 3 * TLV_HEADER_LEN;
        let of = |len| with(&[Param::Random(&random), Param::Chunks(&list[..len]), hmacs(&[1])]).1;
        assert_eq!(of(len).map(|offer| offer.vector().len()), Some(MAX_VECTOR_BYTES));
        assert_eq!(of(len + 1), None);
    }

    #[test]
    fn only_what_can_be_authenticated_is_asked_for() {
        let random = [1; RANDOM_LEN];
        let asks = |chunks: &[u8]| {
            let params = [
                Param::Random(&random),
                Param::Chunks(chunks),
                Param::HmacAlgo(U16List::from(&[1][..])),
            ];
            let (_, offer) = read(|w| params.iter().for_each(|param| assert!(w.push(param))));
            offer.expect("an offer").covers_all()
        };
        assert!(!asks(&[kind::ASCONF, kind::ASCONF_ACK]));
        assert!(!asks(&[kind::INIT, kind::INIT_ACK, kind::SHUTDOWN_COMPLETE, kind::AUTH]));
        assert!(asks(&[kind::ASCONF, kind::COOKIE_ECHO]));
    }
}
