//! Shared keys, and the association keys computed from them (RFC 4895 §6.1).

use std::cmp::Ordering;

use hmac::{Hmac, KeyInit, Mac as _};
use sha1::Sha1;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::KeyError;

/// The most shared keys of an association.
pub const MAX_SHARED_KEYS: usize = 8;

/// An endpoint pair shared key (RFC 4895 §6.1): a secret of both sides, and its number. Its bytes are
/// overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKey {
    id: u16,
    bytes: Zeroizing<Box<[u8]>>,
}

impl SharedKey {
    /// The key `bytes` under the Shared Key Identifier `id`.
    #[must_use]
    pub fn new(id: u16, bytes: &[u8]) -> Self {
        Self { id, bytes: Zeroizing::new(bytes.into()) }
    }

    /// The Shared Key Identifier.
    #[must_use]
    pub const fn id(&self) -> u16 {
        self.id
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedKey({}, …)", self.id)
    }
}

/// The shared keys of an association: at least one, one of which is in use.
pub(super) struct KeyRing {
    keys: Vec<SharedKey>,
    active: u16,
}

impl KeyRing {
    /// A ring of `keys` that uses the first; `None` without keys.
    pub(super) fn of(keys: &[SharedKey]) -> Option<Box<Self>> {
        let active = keys.first()?.id;
        Some(Box::new(Self { keys: keys.to_vec(), active }))
    }

    pub(super) const fn active(&self) -> u16 {
        self.active
    }

    pub(super) fn find(&self, id: u16) -> Option<&SharedKey> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// Adds a key, or replaces the one with the same number.
    pub(super) fn set(&mut self, key: SharedKey) -> Result<(), KeyError> {
        match self.keys.iter().position(|known| known.id == key.id) {
            Some(index) => self.keys[index] = key,
            None if self.keys.len() == MAX_SHARED_KEYS => {
                return Err(KeyError::TooMany { limit: MAX_SHARED_KEYS });
            }
            None => self.keys.push(key),
        }
        Ok(())
    }

    pub(super) fn use_key(&mut self, id: u16) -> Result<(), KeyError> {
        self.active = self.find(id).ok_or(KeyError::NoSuchKey)?.id;
        Ok(())
    }

    /// Forgets a key that is not in use.
    pub(super) fn delete(&mut self, id: u16) -> Result<(), KeyError> {
        if self.active == id {
            return Err(KeyError::InUse);
        }
        let index = self.keys.iter().position(|key| key.id == id).ok_or(KeyError::NoSuchKey)?;
        self.keys.remove(index);
        Ok(())
    }
}

/// A hash function (RFC 4895 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HmacKind {
    Sha1,
    Sha256,
}

impl HmacKind {
    /// The HMAC identifiers that we offer, in order of preference; SHA-1 is mandatory (RFC 4895 §6.1).
    pub(super) const OFFERED: [u16; 2] = [3, 1];

    pub(super) const fn of(id: u16) -> Option<Self> {
        match id {
            1 => Some(Self::Sha1),
            3 => Some(Self::Sha256),
            _ => None,
        }
    }

    /// The HMAC Identifier.
    pub(super) const fn id(self) -> u16 {
        match self {
            Self::Sha1 => 1,
            Self::Sha256 => 3,
        }
    }

    pub(super) const fn mac_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// A MAC; unused bytes are zero.
#[derive(Default)]
pub(super) struct Mac([u8; 32]);

impl AsRef<[u8]> for Mac {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A hash function with its key.
pub(super) enum Keyed {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl Keyed {
    /// A hash function keyed with the association key, which is the concatenation of `parts`: the shared key,
    /// then the key vectors in order.
    pub(super) fn new(kind: HmacKind, parts: &[&[u8]]) -> Self {
        let key = Zeroizing::new(parts.concat());
        let infallible = "HMAC takes keys of any length";
        match kind {
            HmacKind::Sha1 => Self::Sha1(Hmac::new_from_slice(&key).expect(infallible)),
            HmacKind::Sha256 => Self::Sha256(Hmac::new_from_slice(&key).expect(infallible)),
        }
    }

    pub(super) const fn kind(&self) -> HmacKind {
        match self {
            Self::Sha1(_) => HmacKind::Sha1,
            Self::Sha256(_) => HmacKind::Sha256,
        }
    }

    pub(super) fn mac(&self, bytes: &[u8]) -> Mac {
        let mut mac = Mac::default();
        match self {
            Self::Sha1(keyed) => {
                let hash = keyed.clone().chain_update(bytes).finalize().into_bytes();
                mac.0[..hash.len()].copy_from_slice(&hash);
            }
            Self::Sha256(keyed) => {
                let hash = keyed.clone().chain_update(bytes).finalize().into_bytes();
                mac.0.copy_from_slice(&hash);
            }
        }
        mac
    }

    /// Whether `mac` is the MAC of the concatenated `parts`. Takes constant time.
    pub(super) fn verify(&self, parts: [&[u8]; 3], mac: &[u8]) -> bool {
        macro_rules! verify {
            ($keyed:expr) => {
                parts
                    .into_iter()
                    .fold($keyed.clone(), |hash, part| hash.chain_update(part))
                    .verify_slice(mac)
                    .is_ok()
            };
        }
        match self {
            Self::Sha1(keyed) => verify!(keyed),
            Self::Sha256(keyed) => verify!(keyed),
        }
    }
}

/// Two key vectors, the numerically smaller one first; of equal numbers the shorter (RFC 4895 §6.1).
pub(super) fn in_order<'v>(a: &'v [u8], b: &'v [u8]) -> [&'v [u8]; 2] {
    let number = |vector: &'v [u8]| {
        let zeros = vector.iter().take_while(|&&byte| byte == 0).count();
        &vector[zeros..]
    };
    let (of_a, of_b) = (number(a), number(b));
    let order = of_a.len().cmp(&of_b.len()).then_with(|| of_a.cmp(of_b));
    match order.then_with(|| a.len().cmp(&b.len())) {
        Ordering::Greater => [b, a],
        Ordering::Less | Ordering::Equal => [a, b],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_ordered_as_numbers() {
        let table: [(&[u8], &[u8]); 5] =
            [(&[1], &[2]), (&[9], &[1, 0]), (&[0, 1], &[2]), (&[1], &[0, 1]), (&[0, 0, 5], &[6])];
        for (small, large) in table {
            assert_eq!(in_order(small, large), [small, large]);
            assert_eq!(in_order(large, small), [small, large]);
        }
    }

    /// RFC 2202 §3 and RFC 4231 §4.3, test case 2: the key in two parts, as in an association.
    #[test]
    fn macs_are_those_of_the_published_vectors() {
        let text = b"what do ya want for nothing?";
        let hex = |mac: &[u8]| mac.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let sha1 = "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79";
        let sha256 = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        for (kind, expected) in [(HmacKind::Sha1, sha1), (HmacKind::Sha256, sha256)] {
            let keyed = Keyed::new(kind, &[b"J", b"ef", b"e"]);
            let mac = keyed.mac(text);
            let mac = &mac.as_ref()[..kind.mac_len()];
            assert_eq!(hex(mac), expected);
            assert!(keyed.verify([&text[..3], &text[3..7], &text[7..]], mac));
            assert!(!keyed.verify([&text[..3], &text[3..7], &text[8..]], mac));
            assert_eq!((HmacKind::of(kind.id()), keyed.kind()), (Some(kind), kind));
        }
    }

    #[test]
    fn a_ring_has_a_key_in_use_and_a_limit() {
        assert!(KeyRing::of(&[]).is_none());
        let mut ring = KeyRing::of(&[SharedKey::new(7, b"a")]).unwrap();
        assert_eq!((ring.active(), ring.delete(7)), (7, Err(KeyError::InUse)));
        assert_eq!(
            (ring.use_key(8), ring.delete(8)),
            (Err(KeyError::NoSuchKey), Err(KeyError::NoSuchKey))
        );
        ring.set(SharedKey::new(8, b"b")).unwrap();
        assert_eq!((ring.use_key(8), ring.delete(7)), (Ok(()), Ok(())));
        (10..17).for_each(|id| ring.set(SharedKey::new(id, b"c")).unwrap());
        let one_more = ring.set(SharedKey::new(17, b"d"));
        assert_eq!(one_more, Err(KeyError::TooMany { limit: MAX_SHARED_KEYS }));
        ring.set(SharedKey::new(16, b"e")).expect("it is there");
        assert_eq!(ring.find(16).map(SharedKey::bytes), Some(&b"e"[..]));
    }

    /// Reads the memory of a key after it was dropped: it is in a buffer of the test, which still exists.
    #[test]
    fn a_key_that_is_dropped_overwrites_its_bytes() {
        use zeroize::Zeroize;
        let mut key = SharedKey::new(7, b"secret");
        key.bytes.zeroize(); // What dropping does.
        assert!(key.bytes().iter().all(|&byte| byte == 0));
        const fn overwrites_when_dropped<T: zeroize::ZeroizeOnDrop>(_: &T) {}
        overwrites_when_dropped(&key.bytes);
    }

    #[test]
    fn keys_are_not_shown() {
        assert_eq!(format!("{:?}", SharedKey::new(7, b"secret")), "SharedKey(7, …)");
    }
}
