//! The identity of this host, and the peers that it trusts.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use dimpl::DtlsCertificate;
use dimpl::crypto::{Buf, CryptoProvider};
use rexmit_core::Seed;
use sha2::{Digest as _, Sha256};

use crate::error::IdentityError;
use crate::self_signed::self_signed;

/// The fingerprint of a certificate, the SHA-256 of its DER, by which peers are authenticated.
///
/// Displayed and parsed as 32 bytes in hexadecimal with colons in between, as `openssl x509 -fingerprint
/// -sha256` prints it; parsing also accepts it without colons.
///
/// ```
/// use rexmit_dtls::{Fingerprint, Identity};
///
/// let fingerprint = Identity::generate()?.fingerprint();
/// assert_eq!(fingerprint.to_string().parse::<Fingerprint>()?, fingerprint);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        Self(Sha256::digest(certificate).into())
    }

    /// A fingerprint from its 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, byte) in self.0.iter().enumerate() {
            let colon = if n > 0 { ":" } else { "" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 32 bytes in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a fingerprint is the SHA-256 of a certificate: 64 hexadecimal digits, with or without colons"
)]
pub struct FingerprintError;

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digit = |c: char| c.to_digit(16).ok_or(FingerprintError);
        let digits = text.chars().filter(|&c| c != ':').map(digit);
        let digits = digits.collect::<Result<Vec<u32>, _>>()?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair.iter().fold(0, joined)).collect();
        let is_whole = digits.len() == 64;
        bytes.try_into().ok().filter(|_| is_whole).map(Self).ok_or(FingerprintError)
    }
}

/// A byte with another digit.
fn joined(byte: u8, digit: &u32) -> u8 {
    byte << 4 | *digit as u8
}

/// A certificate and its private key, by which peers authenticate this host.
///
/// Keys are ECDSA on P-256 or P-384; RSA keys are not supported. A clone is the same identity.
#[derive(Clone)]
pub struct Identity {
    certificate: Arc<DtlsCertificate>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// A new key on P-256 with a self-signed certificate.
    ///
    /// The fingerprint is new each time: a server that clients should recognize after a restart stores
    /// [`certificate_pem`](Self::certificate_pem) and [`private_key_pem`](Self::private_key_pem).
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn generate() -> Result<Self, IdentityError> {
        let mut entropy = [0; 32];
        let random = dimpl::crypto::rust_crypto::default_provider().secure_random;
        random.fill(&mut entropy).map_err(|_| IdentityError::Generation)?;
        Ok(Self::from_seed(&Seed::from_bytes(entropy)))
    }

    /// As [`generate`](Self::generate), with a key derived from `seed`, which must have full entropy on a
    /// real network.
    #[must_use]
    pub fn from_seed(seed: &Seed) -> Self {
        let made = self_signed(&mut seed.split("identity").rng());
        let fingerprint = Fingerprint::of(&made.certificate);
        Self { certificate: Arc::new(made), fingerprint }
    }

    /// A certificate (X.509) and its private key (PKCS #8 or SEC 1), both in DER.
    ///
    /// # Errors
    /// When one of them cannot be read, or the key is not that of the certificate.
    pub fn from_der(certificate: &[u8], private_key: &[u8]) -> Result<Self, IdentityError> {
        check(&dimpl::crypto::rust_crypto::default_provider(), certificate, private_key)?;
        let (certificate, private_key) = (certificate.to_vec(), private_key.to_vec());
        let fingerprint = Fingerprint::of(&certificate);
        let certificate = Arc::new(DtlsCertificate { certificate, private_key });
        Ok(Self { certificate, fingerprint })
    }

    /// As [`from_der`](Self::from_der), in PEM. Of several certificates only the first is used: a chain would be
    /// useless, because peers compare the fingerprint of the first certificate only.
    ///
    /// # Errors
    /// As [`from_der`](Self::from_der).
    pub fn from_pem(certificate: &str, private_key: &str) -> Result<Self, IdentityError> {
        let certificate = pem_block(certificate, |label| label == "CERTIFICATE");
        let key = pem_block(private_key, |label| label.ends_with("PRIVATE KEY"));
        let certificate = certificate.ok_or(IdentityError::Certificate)?;
        Self::from_der(&certificate, &key.ok_or(IdentityError::PrivateKey)?)
    }

    /// The fingerprint of the certificate, which peers have to trust.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The certificate in DER.
    #[must_use]
    pub fn certificate(&self) -> &[u8] {
        &self.certificate.certificate
    }

    /// The private key in DER (PKCS #8 if it was generated). Keep it secret.
    #[must_use]
    pub fn private_key(&self) -> &[u8] {
        &self.certificate.private_key
    }

    /// The certificate in PEM (RFC 7468 §5), as [`from_pem`](Self::from_pem) reads it.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        to_pem("CERTIFICATE", self.certificate())
    }

    /// The private key in PEM (RFC 7468 §10; RFC 5915 §4 if it was passed in that form). Keep it secret.
    #[must_use]
    pub fn private_key_pem(&self) -> String {
        let key = self.private_key();
        to_pem(if is_sec1(key) { "EC PRIVATE KEY" } else { "PRIVATE KEY" }, key)
    }

    pub(crate) fn for_library(&self) -> DtlsCertificate {
        (*self.certificate).clone()
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

/// Checks that the key belongs to the certificate, by a signature.
fn check(provider: &CryptoProvider, certificate: &[u8], key: &[u8]) -> Result<(), IdentityError> {
    const MESSAGE: &[u8] = b"rexmit";
    let key = provider.key_provider.load_private_key(key);
    let mut key = key.map_err(|_| IdentityError::PrivateKey)?;
    let (hash, algorithm, mut signature) = (key.hash_algorithm(), key.algorithm(), Buf::new());
    key.sign(MESSAGE, hash, &mut signature).map_err(|_| IdentityError::PrivateKey)?;
    let verifier = provider.signature_verification;
    let verified = verifier.verify_signature(certificate, MESSAGE, &signature, hash, algorithm);
    verified.map_err(|error| match error {
        dimpl::CryptoError::CertificateParseFailed => IdentityError::Certificate,
        _ => IdentityError::Mismatch,
    })
}

fn to_pem(label: &str, der: &[u8]) -> String {
    pem_rfc7468::encode_string(label, pem_rfc7468::LineEnding::LF, der).unwrap_or_default()
}

/// Whether a private key has the form of RFC 5915 (SEC 1): an OCTET STRING follows its version, 1.
fn is_sec1(der: &[u8]) -> bool {
    let header = if der.get(1).is_some_and(|len| len & 0x80 != 0) { 3 } else { 2 };
    der.get(header..header + 4) == Some(&[2, 1, 1, 4])
}

/// The content of the first block of a PEM text (RFC 7468) whose label is `wanted`.
fn pem_block(text: &str, wanted: impl Fn(&str) -> bool) -> Option<Vec<u8>> {
    let mut lines = text.lines().map(str::trim);
    let label =
        |line: &str| Some(line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?.to_owned());
    let label = lines.by_ref().find_map(|line| label(line).filter(|label| wanted(label)))?;
    let end = format!("-----END {label}-----");
    let mut content = String::new();
    loop {
        match lines.next()? {
            line if line == end => return base64(&content),
            line => content.push_str(line),
        }
    }
}

/// Decodes Base64 (RFC 4648 §4).
fn base64(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// The peers that an endpoint trusts, whichever side initiates the connection. Both sides show a certificate and prove
/// that they have its key; this value defines which certificates are trusted.
///
/// Certificates are compared by their fingerprints only: issuers, names and dates of expiry are ignored, and
/// there are no root certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Fingerprints of the trusted certificates; `None` trusts any certificate.
    fingerprints: Option<Arc<[Fingerprint]>>,
}

impl Trust {
    /// Trusts only peers with these certificates.
    #[must_use]
    pub fn only(fingerprints: impl IntoIterator<Item = Fingerprint>) -> Self {
        Self { fingerprints: Some(fingerprints.into_iter().collect()) }
    }

    /// Trusts any peer: for a server whose clients are not known beforehand. A client that trusts anyone is
    /// protected against passive eavesdroppers only: a host on the path can impersonate the server.
    #[must_use]
    pub const fn anyone() -> Self {
        Self { fingerprints: None }
    }

    /// Whether a peer with this certificate is trusted.
    #[must_use]
    pub fn includes(&self, fingerprint: Fingerprint) -> bool {
        self.fingerprints.as_ref().is_none_or(|all| all.contains(&fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_shown_and_without_colons() {
        let fingerprint = Fingerprint::of(b"certificate");
        let shown = fingerprint.to_string();
        assert_eq!(shown.len(), 32 * 3 - 1);
        assert_eq!(shown.parse(), Ok(fingerprint));
        assert_eq!(shown.replace(':', "").to_lowercase().parse(), Ok(fingerprint));
        for wrong in ["", "12", &shown[..93], &format!("{shown}:00"), &shown.replace('A', "x")] {
            if wrong != shown {
                assert_eq!(wrong.parse::<Fingerprint>(), Err(FingerprintError), "{wrong}");
            }
        }
    }

    fn pem(label: &str, der: &[u8]) -> String {
        format!("Bag Attributes\n{}", to_pem(label, der))
    }

    #[test]
    fn an_identity_is_read_as_it_was_stored() {
        let identity = Identity::generate().unwrap();
        let (certificate, key) = (identity.certificate(), identity.private_key());
        let same = Identity::from_der(certificate, key).unwrap();
        assert_eq!(same.fingerprint(), identity.fingerprint());
        let key = pem("PRIVATE KEY", key);
        let same = Identity::from_pem(&pem("CERTIFICATE", certificate), &key).unwrap();
        assert_eq!(same.fingerprint(), identity.fingerprint());
        let same =
            Identity::from_pem(&identity.certificate_pem(), &identity.private_key_pem()).unwrap();
        assert_eq!(same.private_key(), identity.private_key());
        assert!(identity.private_key_pem().starts_with("-----BEGIN PRIVATE KEY-----\n"));
        // RFC 5915 §3, without the optional parts.
        let sec1 = [&[0x30, 37, 2, 1, 1, 4, 32][..], &[7; 32]].concat();
        assert!(is_sec1(&sec1) && !is_sec1(identity.private_key()));
        assert!(!format!("{identity:?}").contains("private"));
    }

    #[test]
    fn a_mismatched_key_or_certificate_is_refused_by_name() {
        let (one, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let refused = |certificate: &[u8], key: &[u8]| {
            Identity::from_der(certificate, key).map(drop).unwrap_err()
        };
        assert_eq!(refused(one.certificate(), other.private_key()), IdentityError::Mismatch);
        assert_eq!(refused(one.certificate(), b"no key"), IdentityError::PrivateKey);
        assert_eq!(refused(b"no certificate", one.private_key()), IdentityError::Certificate);
        let key = pem("PRIVATE KEY", one.private_key());
        assert_eq!(Identity::from_pem(&key, &key).map(drop), Err(IdentityError::Certificate));
        let certificate = pem("CERTIFICATE", one.certificate());
        let swapped = Identity::from_pem(&certificate, &certificate);
        assert_eq!(swapped.map(drop), Err(IdentityError::PrivateKey));
    }

    #[test]
    fn trust_is_by_fingerprint() {
        let [one, other] = [b"one", b"two"].map(|it| Fingerprint::of(it));
        assert!(Trust::anyone().includes(one));
        assert!(Trust::only([one]).includes(one));
        assert!(!Trust::only([one]).includes(other));
        assert!(!Trust::only([]).includes(one));
    }
}
