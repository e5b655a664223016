//! The private key of the identity, parsed when a connection signs. Parsing computes the public key, which takes a hundred times as
//! long as the rest of the answer to a first ClientHello, and that is never signed.

use std::fmt;

use dimpl::CryptoError;
use dimpl::crypto::{
    Buf, CryptoProvider, HashAlgorithm, KeyProvider, OID_P256, OID_P384, SignatureAlgorithm,
    SigningKey, rust_crypto,
};
use zeroize::Zeroizing;

/// The hashes with which either curve can sign.
const HASHES: [HashAlgorithm; 2] = [HashAlgorithm::SHA256, HashAlgorithm::SHA384];

/// The library's provider of keys, except that keys which name their curve are parsed later. They were verified when the
/// identity was made.
#[derive(Debug)]
struct ParsedLater;

impl KeyProvider for ParsedLater {
    fn load_private_key(&self, key: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        let names = |oid: &[u8]| key.windows(oid.len()).any(|it| it == oid);
        let hash = match (names(OID_P256.as_bytes()), names(OID_P384.as_bytes())) {
            (true, false) => HashAlgorithm::SHA256,
            (false, true) => HashAlgorithm::SHA384,
            _ => return parse(key),
        };
        Ok(Box::new(Key { der: Zeroizing::new(key.to_vec()), hash, parsed: None }))
    }
}

/// The library's cryptography, with such keys.
pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider { key_provider: &ParsedLater, ..rust_crypto::default_provider() }
}

fn parse(key: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
    rust_crypto::default_provider().key_provider.load_private_key(key)
}

struct Key {
    der: Zeroizing<Vec<u8>>,
    hash: HashAlgorithm,
    parsed: Option<Box<dyn SigningKey>>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

impl SigningKey for Key {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        let key = match &mut self.parsed {
            Some(key) => key,
            none => none.insert(parse(&self.der)?),
        };
        key.sign(data, hash, out)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.hash
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &HASHES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key on P-384 in PKCS #8 (RFC 5208 §5, RFC 5915 §3).
    fn p384() -> Vec<u8> {
        let element = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let scalar = element(0x04, &[7; 48]);
        let key = element(0x30, &[&[0x02, 1, 1], &scalar[..]].concat());
        let ec_public_key = [0x06, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01];
        let curve = element(0x06, OID_P384.as_bytes());
        let algorithm = element(0x30, &[&ec_public_key[..], &curve].concat());
        element(0x30, &[&[0x02, 1, 0], &algorithm[..], &element(0x04, &key)].concat())
    }

    #[test]
    fn a_key_signs_as_one_that_was_parsed_at_once() {
        let p256 = crate::Identity::from_seed(&rexmit_core::Seed::from_u64(1));
        for der in [p256.private_key(), &p384()] {
            let mut later = ParsedLater.load_private_key(der).unwrap();
            let mut at_once = parse(der).unwrap();
            assert!(format!("{later:?}").starts_with("Key"), "{later:?}");
            assert_eq!(later.hash_algorithm(), at_once.hash_algorithm());
            assert_eq!(later.algorithm(), at_once.algorithm());
            assert_eq!(later.supported_hash_algorithms(), at_once.supported_hash_algorithms());
            for _ in 0..2 {
                let (mut of_later, mut of_other) = (Buf::new(), Buf::new());
                later.sign(b"data", later.hash_algorithm(), &mut of_later).unwrap();
                at_once.sign(b"data", at_once.hash_algorithm(), &mut of_other).unwrap();
                assert_eq!(&of_later[..], &of_other[..], "signatures are deterministic (RFC 6979)");
            }
        }
        assert!(ParsedLater.load_private_key(b"no key").is_err());
    }
}
