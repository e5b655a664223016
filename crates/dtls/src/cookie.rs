//! Cookies (RFC 9147 §5.1): a peer proves that it receives at its address before any state is kept for it.
//!
//! The library keeps a state for each ClientHello that it answers, with the cookie's secret in it. Here that state is
//! dropped after the answer, and recreated when the cookie is returned: the second ClientHello contains all of the
//! first ([`ClientHello::first`]). The library gets the cookie from its HMAC provider. Ours returns a [cookie](Cookies)
//! that depends on the peer's address and the time.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use dimpl::CryptoError;
use dimpl::crypto::{CryptoProvider, HashAlgorithm, HmacProvider};
use hmac::{Hmac, KeyInit as _, Mac as _};
use rexmit_core::{Instant, Seed};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::record::ClientHello;

/// The library's part of a cookie.
const COOKIE_BYTES: usize = 32;
/// Bytes of the cookie that contain its creation time in seconds.
const TIME_BYTES: usize = 8;
/// Lifetime of a cookie.
const LIFETIME: Duration = Duration::from_secs(30);

/// A cookie in the form that the library uses.
pub(crate) type Cookie = [u8; COOKIE_BYTES];

/// Creates cookies, and verifies those that are returned.
pub(crate) struct Cookies {
    key: Zeroizing<[u8; 32]>,
}

impl Cookies {
    pub(crate) fn new(seed: &Seed) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        seed.split("DTLS cookies").rng().fill(&mut *key);
        Self { key }
    }

    /// The cookie for a first ClientHello.
    pub(crate) fn make(&self, now: Instant, peer: SocketAddr, hello: &ClientHello<'_>) -> Cookie {
        let made = now.as_nanos() / 1_000_000_000;
        self.signed(made.to_be_bytes(), peer, hello)
    }

    /// Whether a ClientHello has a valid cookie of ours for `peer`.
    pub(crate) fn accepts(&self, now: Instant, peer: SocketAddr, hello: &ClientHello<'_>) -> bool {
        let Some((made, _)) = hello.cookie().and_then(|it| it.split_first_chunk::<TIME_BYTES>())
        else {
            return false;
        };
        let seconds = now.as_nanos() / 1_000_000_000;
        let age = seconds.checked_sub(u64::from_be_bytes(*made));
        let expected = self.signed(*made, peer, hello);
        // Compared in constant time, so that the duration reveals nothing to an attacker.
        let differs = |(a, b): (&u8, &u8)| a ^ b;
        let difference = hello.cookie().unwrap_or_default().iter().zip(&expected).map(differs);
        hello.cookie().is_some_and(|it| it.len() == COOKIE_BYTES)
            && difference.fold(0, |all, one| all | one) == 0
            && age.is_some_and(|age| age <= LIFETIME.as_secs())
    }

    fn signed(&self, made: [u8; TIME_BYTES], peer: SocketAddr, hello: &ClientHello<'_>) -> Cookie {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.key).expect("a key of any length");
        let ip = match peer.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        mac.update(&made);
        mac.update(&ip.octets());
        mac.update(&peer.port().to_be_bytes());
        mac.update(&hello.first());
        let mut cookie = [0; COOKIE_BYTES];
        cookie[..TIME_BYTES].copy_from_slice(&made);
        let tag = mac.finalize().into_bytes();
        cookie[TIME_BYTES..].copy_from_slice(&tag[..COOKIE_BYTES - TIME_BYTES]);
        cookie
    }
}

thread_local! {
    /// The cookie for the library's current call, and the client random that it belongs to.
    static CURRENT: Cell<Option<([u8; 32], Cookie)>> = const { Cell::new(None) };
}

/// Calls the library; during the call, its HMAC provider returns `cookie` for the client with this random.
pub(crate) fn with_cookie<R>(random: &[u8], cookie: Cookie, act: impl FnOnce() -> R) -> R {
    CURRENT.set(random.try_into().ok().map(|random| (random, cookie)));
    let result = act();
    CURRENT.set(None);
    result
}

/// The library's cryptography, with our cookies.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider { hmac_provider: &OurCookies, ..crate::signing::provider() }
}

/// The library's HMAC provider, except that the HMAC of a client's random is our cookie.
#[derive(Debug)]
struct OurCookies;

impl HmacProvider for OurCookies {
    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        if let Some((random, cookie)) = CURRENT.get()
            && data == random
            && hash == HashAlgorithm::SHA256
            && out.len() >= COOKIE_BYTES
        {
            out[..COOKIE_BYTES].copy_from_slice(&cookie);
            return Ok(COOKIE_BYTES);
        }
        dimpl::crypto::rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}
