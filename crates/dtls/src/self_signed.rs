//! A certificate for a new key, signed by that key (RFC 5280, in DER).

use dimpl::DtlsCertificate;
use dimpl::crypto::Buf;
use p256::SecretKey;
use rexmit_core::Rng;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const GENERALIZED_TIME: u8 = 0x18;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// ecdsa-with-SHA256, id-ecPublicKey, secp256r1, commonName.
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const SECP256R1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// One value in DER.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [high, low] = (content.len() as u16).to_be_bytes();
    let header = match content.len() {
        0..0x80 => vec![tag, low],
        0x80..0x100 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [header, content].concat()
}

/// A key on P-256 and its certificate. The certificate has no name and does not expire: peers identify it by its
/// fingerprint.
pub(crate) fn self_signed(rng: &mut Rng) -> DtlsCertificate {
    let secret = secret_key(rng);
    let algorithm = der(SEQUENCE, &[&der(OID, &[EC_PUBLIC_KEY]), &der(OID, &[SECP256R1])]);
    let public_key = der(BIT_STRING, &[&[0], &secret.public_key().to_sec1_bytes()]);
    // RFC 5915 in RFC 5208.
    let scalar = der(OCTET_STRING, &[&secret.to_bytes()]);
    let private_key = der(SEQUENCE, &[&der(INTEGER, &[&[1]]), &scalar, &der(0xa1, &[&public_key])]);
    let private_key = der(OCTET_STRING, &[&private_key]);
    let private_key = der(SEQUENCE, &[&der(INTEGER, &[&[0]]), &algorithm, &private_key]);

    let signed_with = der(SEQUENCE, &[&der(OID, &[ECDSA_WITH_SHA256])]);
    let mut serial = [0; 16];
    rng.fill(&mut serial);
    serial[0] = serial[0] & 0x7f | 0x40; // Positive, and as short as it gets.
    let name = der(SEQUENCE, &[&der(OID, &[COMMON_NAME]), &der(UTF8_STRING, &[b"rexmit"])]);
    let name = der(SEQUENCE, &[&der(SET, &[&name])]);
    // RFC 5280 §4.1.2.5: no well-defined expiration date.
    let until = der(GENERALIZED_TIME, &[b"99991231235959Z"]);
    let validity = der(SEQUENCE, &[&der(UTC_TIME, &[b"700101000000Z"]), &until]);
    let subject_key = der(SEQUENCE, &[&algorithm, &public_key]);
    let serial = der(INTEGER, &[&serial]);
    let parts = [&serial[..], &signed_with, &name, &validity, &name, &subject_key];
    let to_be_signed = der(SEQUENCE, &parts);

    let provider = dimpl::crypto::rust_crypto::default_provider();
    let key = provider.key_provider.load_private_key(&private_key);
    let mut key = key.expect("a key that was just written");
    let (mut signature, hash) = (Buf::new(), key.hash_algorithm());
    key.sign(&to_be_signed, hash, &mut signature).expect("a key on P-256 signs");
    let signature = der(BIT_STRING, &[&[0], &signature]);
    let certificate = der(SEQUENCE, &[&to_be_signed, &signed_with, &signature]);
    DtlsCertificate { certificate, private_key }
}

fn secret_key(rng: &mut Rng) -> SecretKey {
    loop {
        let mut bytes = [0; 32];
        rng.fill(&mut bytes);
        // One in 2³² is not below the order of the curve.
        if let Ok(key) = SecretKey::from_slice(&bytes) {
            return key;
        }
    }
}
