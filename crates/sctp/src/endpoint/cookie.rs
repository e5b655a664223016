//! The state cookie: everything the responder would have to remember between INIT and COOKIE ECHO,
//! signed and given to the peer to keep (RFC 9260 §5.1.3, §5.1.5).
//!
//! The Tie-Tags in it are encrypted. In the clear they would be zero exactly if there is no association, and anyone
//! could find that out by an INIT.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::{Instant, Seed};

use super::cookie_secret::{EpochSecret, MAC_LEN, Secrets};
use crate::association::{AuthOffer, Identity, MAX_VECTOR_BYTES, PeerParameters, RANDOM_LEN};
use crate::config::MAX_ADDRESSES;

/// Bytes of an address and its type in a cookie.
const MAX_ADDRESS_LEN: usize = 1 + 16;
/// The length of the fixed part of a cookie in bytes: the time, eight numbers of 32 bits, four of 16 bits,
/// flags.
const FIXED_LEN: usize = 8 + 8 * 4 + 4 * 2 + 1;
/// The longest cookie that is ever signed; a longer one is refused without hashing.
pub(super) const MAX_COOKIE_LEN: usize = FIXED_LEN
    + (RANDOM_LEN + 2 + MAX_VECTOR_BYTES)
    + (1 + MAX_ADDRESSES) * MAX_ADDRESS_LEN
    + MAC_LEN;

/// The content of a cookie.
#[derive(Clone, Debug)]
pub(super) struct StateCookie {
    pub(super) created: Instant,
    pub(super) lifetime: Duration,
    /// Where the INIT came from, its UDP port included.
    pub(super) address: SocketAddr,
    pub(super) identity: Identity,
    pub(super) peer: PeerParameters,
}

/// Signs and verifies the cookies of one endpoint.
#[derive(Debug)]
pub(super) struct CookieSigner {
    secrets: Secrets,
    /// The SCTP port of the endpoint, to which its cookies are bound.
    local_port: u16,
}

impl CookieSigner {
    pub(super) fn new(seed: &Seed, secret_lifetime: Duration, local_port: u16) -> Self {
        Self { secrets: Secrets::new(seed, secret_lifetime), local_port }
    }

    pub(super) fn mix_entropy(&mut self, entropy: &[u8; 32]) {
        self.secrets.mix(entropy);
    }

    pub(super) fn sign(&mut self, cookie: &StateCookie) -> Vec<u8> {
        let secret = self.secrets.at(cookie.created);
        let mut bytes = cookie.encode(secret);
        let signature = secret.sign(&bytes);
        bytes.extend_from_slice(&signature);
        bytes
    }

    /// The cookie in `bytes`, if this endpoint has signed it with one of its last two secrets. The caller checks
    /// whether it has expired.
    pub(super) fn verify(&self, now: Instant, bytes: &[u8]) -> Option<StateCookie> {
        if bytes.len() > MAX_COOKIE_LEN {
            return None;
        }
        let (content, signature) = bytes.split_at_checked(bytes.len().checked_sub(MAC_LEN)?)?;
        let created = Instant::from_nanos(u64::from_be_bytes(*content.first_chunk()?));
        let secret = self.secrets.of(created, now)?;
        if !secret.verifies(content, signature) {
            return None;
        }
        StateCookie::decode(content, secret, self.local_port)
    }
}

/// The highest bit of the lifetime in milliseconds: 24 days fit below it.
const USES_ECN: u32 = 1 << 31;

impl StateCookie {
    /// How long ago the cookie expired, if it did.
    pub(super) fn staleness(&self, now: Instant) -> Option<Duration> {
        let age = now - self.created;
        age.checked_sub(self.lifetime).filter(|late| !late.is_zero())
    }

    /// Whether `address` is the source of the INIT, or one that it listed.
    pub(super) fn may_come_from(&self, address: IpAddr) -> bool {
        self.address.ip() == address || self.peer.addresses.contains(&address)
    }

    /// Whether these are the Verification Tags of the two ends.
    pub(super) const fn has_tags(&self, local: u32, peer: u32) -> bool {
        self.identity.local_tag == local && self.peer.tag == peer
    }

    /// The nonce of the encryption of a cookie: different for any two associations, so that no nonce is used
    /// twice with one secret.
    fn nonce(&self) -> [u8; 16] {
        nonce(self.created, self.identity.local_tag, self.identity.local_initial_tsn)
    }

    fn encode(&self, secret: &EpochSecret) -> Vec<u8> {
        let (identity, peer) = (&self.identity, &self.peer);
        let mut bytes = Vec::with_capacity(160);
        bytes.extend_from_slice(&self.created.as_nanos().to_be_bytes());
        let tie_tags = secret.encrypt_tie_tags(&self.nonce(), identity.tie_tags);
        let lifetime_ms = u32::try_from(self.lifetime.as_millis()).unwrap_or(u32::MAX);
        let ecn = if peer.uses_ecn { USES_ECN } else { 0 };
        for number in [
            lifetime_ms.min(USES_ECN - 1) | ecn,
            identity.local_tag,
            identity.local_initial_tsn,
            tie_tags.0,
            tie_tags.1,
            peer.tag,
            peer.a_rwnd,
            peer.initial_tsn,
        ] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for number in
            [self.address.port(), identity.remote_port, peer.outbound_streams, peer.inbound_streams]
        {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(
            u8::from(peer.supports_forward_tsn)
                | u8::from(peer.supports_re_config) << 1
                | u8::from(peer.supports_asconf) << 2
                | u8::from(peer.auth.is_some()) << 3
                | u8::from(peer.supports_i_data) << 4
                | u8::from(peer.supports_i_forward_tsn) << 5
                | u8::from(peer.accepts_zero_checksum) << 6
                | u8::from(peer.wants_ack_copies) << 7,
        );
        if let Some(offer) = &peer.auth {
            bytes.extend_from_slice(&identity.random);
            bytes.push(offer.to_bits());
            // Its length is bounded where it is read.
            bytes.push(offer.vector().len() as u8);
            bytes.extend_from_slice(offer.vector());
        }
        for address in std::iter::once(self.address.ip()).chain(peer.addresses.iter().copied()) {
            match address {
                IpAddr::V4(address) => {
                    bytes.push(4);
                    bytes.extend_from_slice(&address.octets());
                }
                IpAddr::V6(address) => {
                    bytes.push(6);
                    bytes.extend_from_slice(&address.octets());
                }
            }
        }
        bytes
    }

    fn decode(bytes: &[u8], secret: &EpochSecret, local_port: u16) -> Option<Self> {
        let mut rest = bytes;
        let created = Instant::from_nanos(u64::from_be_bytes(take(&mut rest)?));
        let mut u32s = [0; 8];
        for number in &mut u32s {
            *number = u32::from_be_bytes(take(&mut rest)?);
        }
        let mut u16s = [0; 4];
        for number in &mut u16s {
            *number = u16::from_be_bytes(take(&mut rest)?);
        }
        let [flags] = take(&mut rest)?;
        let mut random = [0; RANDOM_LEN];
        let mut auth = None;
        if flags & 8 != 0 {
            random = take(&mut rest)?;
            let [bits, len] = take(&mut rest)?;
            let (vector, tail) = rest.split_at_checked(len.into())?;
            auth = Some(AuthOffer::from_bits(bits, vector));
            rest = tail;
        }
        let address = take_address(&mut rest)?;
        let mut addresses = Vec::new();
        while !rest.is_empty() {
            addresses.push(take_address(&mut rest)?);
        }
        let [lifetime_ms, local_tag, local_initial_tsn, tie_local, tie_peer, tag, a_rwnd, tsn] =
            u32s;
        let [udp_port, remote_port, outbound_streams, inbound_streams] = u16s;
        let identity = Identity {
            local_port,
            remote_port,
            local_tag,
            local_initial_tsn,
            tie_tags: secret.encrypt_tie_tags(
                &nonce(created, local_tag, local_initial_tsn),
                (tie_local, tie_peer),
            ),
            random,
        };
        Some(Self {
            created,
            lifetime: Duration::from_millis((lifetime_ms & !USES_ECN).into()),
            address: SocketAddr::new(address, udp_port),
            identity,
            peer: PeerParameters {
                tag,
                a_rwnd,
                outbound_streams,
                inbound_streams,
                initial_tsn: tsn,
                addresses,
                supports_forward_tsn: flags & 1 != 0,
                supports_re_config: flags & 2 != 0,
                supports_asconf: flags & 4 != 0,
                supports_i_data: flags & 16 != 0,
                supports_i_forward_tsn: flags & 32 != 0,
                accepts_zero_checksum: flags & 64 != 0,
                wants_ack_copies: flags & 128 != 0,
                uses_ecn: lifetime_ms & USES_ECN != 0,
                auth,
            },
        })
    }
}

fn nonce(created: Instant, local_tag: u32, local_initial_tsn: u32) -> [u8; 16] {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&created.as_nanos().to_be_bytes());
    nonce[8..12].copy_from_slice(&local_tag.to_be_bytes());
    nonce[12..].copy_from_slice(&local_initial_tsn.to_be_bytes());
    nonce
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn take_address(rest: &mut &[u8]) -> Option<IpAddr> {
    let [kind] = take(rest)?;
    match kind {
        4 => Some(Ipv4Addr::from(take::<4>(rest)?).into()),
        6 => Some(Ipv6Addr::from(take::<16>(rest)?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(created: Instant) -> StateCookie {
        StateCookie {
            created,
            lifetime: Duration::from_secs(60),
            address: SocketAddr::from(([192, 0, 2, 1], 9899)),
            identity: Identity {
                local_port: 5000,
                remote_port: 6000,
                local_tag: 1,
                local_initial_tsn: 2,
                tie_tags: (3, 4),
                random: [10; RANDOM_LEN],
            },
            peer: PeerParameters {
                tag: 5,
                a_rwnd: 6,
                outbound_streams: 7,
                inbound_streams: 8,
                initial_tsn: 9,
                addresses: vec![IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])],
                supports_forward_tsn: true,
                supports_re_config: false,
                supports_asconf: true,
                supports_i_data: true,
                supports_i_forward_tsn: false,
                accepts_zero_checksum: true,
                uses_ecn: true,
                wants_ack_copies: true,
                auth: Some(AuthOffer::from_bits(3, &[11; 99])),
            },
        }
    }

    fn signer() -> CookieSigner {
        CookieSigner::new(&Seed::from_u64(1), Duration::from_secs(3600), 5000)
    }

    #[test]
    fn what_was_signed_comes_back_whole() {
        let created = Instant::from_millis(77);
        let mut signer = signer();
        let signed = signer.sign(&cookie(created));
        let read = signer.verify(created, &signed).expect("our own cookie");
        assert_eq!(format!("{read:?}"), format!("{:?}", cookie(created)));
        assert_eq!(read.peer, cookie(created).peer);
    }

    /// The cookie of a peer with so many addresses, and with the longest offer of AUTH.
    fn long_cookie(addresses: usize) -> StateCookie {
        let v6 = |n: usize| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n as u16]);
        let mut long = cookie(Instant::ZERO);
        long.address = SocketAddr::new(v6(0), 1);
        long.peer.addresses = (1..=addresses).map(v6).collect();
        long.peer.auth = Some(AuthOffer::from_bits(3, &[1; MAX_VECTOR_BYTES]));
        long
    }

    #[test]
    fn the_longest_cookie_has_the_length_that_is_allowed() {
        let mut signer = signer();
        let signed = signer.sign(&long_cookie(MAX_ADDRESSES));
        assert_eq!(signed.len(), MAX_COOKIE_LEN);
        assert!(signer.verify(Instant::ZERO, &signed).is_some());
    }

    /// A longer cookie is refused before anything is computed, even if its signature and its content are correct.
    #[test]
    fn a_longer_cookie_is_refused() {
        let mut signer = signer();
        let signed = signer.sign(&long_cookie(MAX_ADDRESSES + 1));
        assert!(signed.len() > MAX_COOKIE_LEN);
        assert!(signer.verify(Instant::ZERO, &signed).is_none());
    }

    /// The cookies of two INITs for a port without an association cannot be distinguished from those for a port with
    /// one.
    #[test]
    fn tie_tags_cannot_be_read_from_a_cookie() {
        let mut signer = signer();
        let mut ties = |tie_tags, local_tag| {
            let mut cookie = cookie(Instant::ZERO);
            cookie.identity = Identity { tie_tags, local_tag, ..cookie.identity };
            let signed = signer.sign(&cookie);
            let read = signer.verify(Instant::ZERO, &signed).expect("our own cookie");
            assert_eq!(read.identity.tie_tags, tie_tags);
            <[u8; 8]>::try_from(&signed[20..28]).unwrap()
        };
        let seen = [ties((0, 0), 1), ties((0, 0), 2), ties((7, 8), 3), ties((7, 8), 4)];
        for (n, one) in seen.iter().enumerate() {
            assert!(one.iter().any(|&byte| byte != 0), "{seen:?}");
            assert!(seen[..n].iter().all(|other| other != one), "{seen:?}");
        }
    }

    #[test]
    fn any_change_of_a_bit_is_noticed() {
        let mut signer = signer();
        let signed = signer.sign(&cookie(Instant::ZERO));
        for bit in 0..signed.len() * 8 {
            let mut forged = signed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(signer.verify(Instant::ZERO, &forged).is_none(), "bit {bit}");
        }
        for len in 0..signed.len() {
            assert!(signer.verify(Instant::ZERO, &signed[..len]).is_none());
        }
        let mut other = CookieSigner::new(&Seed::from_u64(2), Duration::from_secs(3600), 5000);
        other.sign(&cookie(Instant::ZERO));
        assert!(other.verify(Instant::ZERO, &signed).is_none());
    }

    #[test]
    fn a_secret_verifies_for_one_more_lifetime() {
        let hour = Instant::from_millis(3_600_000);
        for signs_later in [false, true] {
            let mut signer = signer();
            let signed = signer.sign(&cookie(Instant::ZERO));
            if signs_later {
                signer.sign(&cookie(hour));
            }
            assert!(signer.verify(hour, &signed).is_some());
            assert!(signer.verify(hour + Duration::from_secs(3600), &signed).is_none());
        }
    }

    #[test]
    fn expires_after_its_lifetime() {
        let cookie = cookie(Instant::ZERO);
        assert_eq!(cookie.staleness(Instant::from_millis(60_000)), None);
        let late = Some(Duration::from_millis(1));
        assert_eq!(cookie.staleness(Instant::from_millis(60_001)), late);
    }
}
