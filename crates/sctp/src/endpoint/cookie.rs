//! The state cookie: everything the responder would have to remember between INIT and COOKIE ECHO,
//! signed and given to the peer to keep (RFC 9260 §5.1.3, §5.1.5).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use rexmit_core::{Instant, Seed};
use sha2::Sha256;

use crate::association::{AuthOffer, Identity, PeerParameters, RANDOM_LEN};
use crate::config::MAX_ADDRESSES;

const MAC_LEN: usize = 32;

/// What a cookie holds.
#[derive(Clone, Debug)]
pub(super) struct StateCookie {
    pub(super) created: Instant,
    pub(super) lifetime: Duration,
    /// Where the INIT came from.
    pub(super) address: IpAddr,
    pub(super) identity: Identity,
    pub(super) peer: PeerParameters,
}

/// Signs cookies with a secret that changes with time; the one before the present still verifies.
#[derive(Debug)]
pub(super) struct CookieSigner {
    master: [u8; 32],
    secret_lifetime: Duration,
}

impl CookieSigner {
    pub(super) fn new(seed: &Seed, secret_lifetime: Duration) -> Self {
        let mut master = [0; 32];
        seed.split("state cookie").rng().fill(&mut master);
        Self { master, secret_lifetime }
    }

    fn epoch(&self, at: Instant) -> u64 {
        let lifetime = self.secret_lifetime.as_nanos().max(1);
        u64::try_from(u128::from(at.as_nanos()) / lifetime).unwrap_or(u64::MAX)
    }

    /// The keyed hash whose key is the secret of `epoch`, itself made from the master secret.
    fn mac(&self, epoch: u64) -> Hmac<Sha256> {
        let mut derive = keyed(&self.master);
        derive.update(&epoch.to_be_bytes());
        keyed(&derive.finalize().into_bytes())
    }

    pub(super) fn sign(&self, cookie: &StateCookie) -> Vec<u8> {
        let mut bytes = cookie.encode();
        let mut mac = self.mac(self.epoch(cookie.created));
        mac.update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes());
        bytes
    }

    /// The cookie in `bytes`, if this endpoint has signed it lately. Whether it has expired is for
    /// the caller to see.
    pub(super) fn verify(&self, now: Instant, bytes: &[u8]) -> Option<StateCookie> {
        let (content, signature) = bytes.split_at_checked(bytes.len().checked_sub(MAC_LEN)?)?;
        let cookie = StateCookie::decode(content)?;
        let (epoch, present) = (self.epoch(cookie.created), self.epoch(now));
        if cookie.created > now || present - epoch > 1 {
            return None;
        }
        let mut mac = self.mac(epoch);
        mac.update(content);
        mac.verify_slice(signature).ok()?;
        Some(cookie)
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length")
}

impl StateCookie {
    /// How long ago it expired, if it did.
    pub(super) fn staleness(&self, now: Instant) -> Option<Duration> {
        let age = now - self.created;
        age.checked_sub(self.lifetime).filter(|late| !late.is_zero())
    }

    /// Whether `address` is one of those that the INIT came from and told.
    pub(super) fn may_come_from(&self, address: IpAddr) -> bool {
        self.address == address || self.peer.addresses.contains(&address)
    }

    fn encode(&self) -> Vec<u8> {
        let (identity, peer) = (&self.identity, &self.peer);
        let mut bytes = Vec::with_capacity(160);
        bytes.extend_from_slice(&self.created.as_nanos().to_be_bytes());
        let lifetime_ms = u32::try_from(self.lifetime.as_millis()).unwrap_or(u32::MAX);
        for number in [
            lifetime_ms,
            identity.local_tag,
            identity.local_initial_tsn,
            identity.tie_tags.0,
            identity.tie_tags.1,
            peer.tag,
            peer.a_rwnd,
            peer.initial_tsn,
        ] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for number in
            [identity.local_port, identity.remote_port, peer.outbound_streams, peer.inbound_streams]
        {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes.push(
            u8::from(peer.supports_forward_tsn)
                | u8::from(peer.supports_re_config) << 1
                | u8::from(peer.supports_asconf) << 2
                | u8::from(peer.auth.is_some()) << 3,
        );
        if let Some(offer) = &peer.auth {
            bytes.extend_from_slice(&identity.random);
            bytes.push(offer.to_bits());
            // Its length is bounded where it is read.
            bytes.push(offer.vector().len() as u8);
            bytes.extend_from_slice(offer.vector());
        }
        for address in std::iter::once(self.address).chain(peer.addresses.iter().copied()) {
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

    fn decode(bytes: &[u8]) -> Option<Self> {
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
        while !rest.is_empty() && addresses.len() < MAX_ADDRESSES {
            addresses.push(take_address(&mut rest)?);
        }
        let [lifetime_ms, local_tag, local_initial_tsn, tie_local, tie_peer, tag, a_rwnd, tsn] =
            u32s;
        let [local_port, remote_port, outbound_streams, inbound_streams] = u16s;
        let identity = Identity {
            local_port,
            remote_port,
            local_tag,
            local_initial_tsn,
            tie_tags: (tie_local, tie_peer),
            random,
        };
        Some(Self {
            created,
            lifetime: Duration::from_millis(lifetime_ms.into()),
            address,
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
                auth,
            },
        })
    }
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
            address: IpAddr::from([192, 0, 2, 1]),
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
                auth: Some(AuthOffer::from_bits(3, &[11; 99])),
            },
        }
    }

    fn signer() -> CookieSigner {
        CookieSigner::new(&Seed::from_u64(1), Duration::from_secs(3600))
    }

    #[test]
    fn what_was_signed_comes_back_whole() {
        let created = Instant::from_millis(77);
        let signed = signer().sign(&cookie(created));
        let read = signer().verify(created, &signed).expect("our own cookie");
        assert_eq!(format!("{read:?}"), format!("{:?}", cookie(created)));
        assert_eq!(read.peer, cookie(created).peer);
    }

    #[test]
    fn any_change_of_a_bit_is_noticed() {
        let signed = signer().sign(&cookie(Instant::ZERO));
        for bit in 0..signed.len() * 8 {
            let mut forged = signed.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(signer().verify(Instant::ZERO, &forged).is_none(), "bit {bit}");
        }
        for len in 0..signed.len() {
            assert!(signer().verify(Instant::ZERO, &signed[..len]).is_none());
        }
        let other = CookieSigner::new(&Seed::from_u64(2), Duration::from_secs(3600));
        assert!(other.verify(Instant::ZERO, &signed).is_none());
    }

    #[test]
    fn a_secret_verifies_for_one_more_lifetime() {
        let hour = Instant::from_millis(3_600_000);
        let signed = signer().sign(&cookie(Instant::ZERO));
        assert!(signer().verify(hour, &signed).is_some());
        assert!(signer().verify(hour + Duration::from_secs(3600), &signed).is_none());
    }

    #[test]
    fn expires_after_its_lifetime() {
        let cookie = cookie(Instant::ZERO);
        assert_eq!(cookie.staleness(Instant::from_millis(60_000)), None);
        let late = Some(Duration::from_millis(1));
        assert_eq!(cookie.staleness(Instant::from_millis(60_001)), late);
    }
}
