//! Errors of identities and handshakes, with texts that say which side failed, and why.

use std::time::Duration;

use thiserror::Error;

use crate::Fingerprint;

/// Why a certificate and a key could not be used as an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The system gave no random numbers.
    #[error("no certificate can be generated: the system provides no random numbers")]
    Generation,
    /// The certificate cannot be read.
    #[error("the certificate cannot be read: it must be X.509, in DER or PEM")]
    Certificate,
    /// The private key cannot be read.
    #[error(
        "the private key cannot be read: it must be ECDSA on P-256 or P-384, as PKCS #8 or SEC 1, \
         in DER or PEM; RSA keys are not supported"
    )]
    PrivateKey,
    /// The private key is not that of the certificate.
    #[error("the private key is not that of the certificate")]
    Mismatch,
}

/// Why an encrypted connection failed or ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The certificate of the peer is not trusted here.
    #[error(
        "refused here: the peer's certificate has the fingerprint {0}, which is not trusted. If it is \
         the right peer, trust this fingerprint; if not, another host answers at its address"
    )]
    Untrusted(Fingerprint),
    /// The peer does not trust our certificate.
    #[error(
        "refused by the peer after the handshake: it does not trust our certificate, whose \
         fingerprint is {0}"
    )]
    RefusedByPeer(Fingerprint),
    /// The peer did not complete the handshake in time.
    #[error(
        "the peer did not complete the DTLS handshake within {:.1} s: check address and port, that it \
         is listening with encryption, too, that it accepts associations, and that it trusts our \
         certificate",
        .0.as_secs_f64()
    )]
    NoAnswer(Duration),
    /// The handshake failed.
    #[error("the DTLS handshake failed: {0}")]
    Failed(String),
    /// The peer has ended the connection.
    #[error("the peer has ended the DTLS connection")]
    EndedByPeer,
    /// No association used the connection.
    #[error("the DTLS connection was ended here: no association used it")]
    Idle,
    /// The peer began a new connection from the same address.
    #[error("the peer has begun another DTLS connection")]
    Replaced,
}
