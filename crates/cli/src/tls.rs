//! The options of encryption.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rexmit::{Encryption, Fingerprint, Identity, Trust};

use crate::failure::{Failure, Kind};

/// Encryption of associations.
#[derive(Clone, Debug, Args)]
pub(crate) struct Tls {
    /// Do not encrypt. Required for peers that speak plain SCTP, and with several addresses or --raw. Otherwise
    /// associations are encrypted by DTLS 1.3; without --cert a new certificate is generated, and its fingerprint
    /// printed.
    #[arg(long, conflicts_with_all = ["fingerprints", "certificate", "key"])]
    unencrypted: bool,
    /// SHA-256 of the peer's certificate, in hexadecimal: other peers are refused. May be repeated. Without it any peer
    /// is accepted, which protects against eavesdroppers, but not against a man in the middle.
    #[arg(long = "fingerprint", value_name = "SHA256")]
    fingerprints: Vec<Fingerprint>,
    /// Certificate of this side, in PEM. Its dates and names are ignored.
    #[arg(long = "cert", value_name = "FILE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Private key of that certificate, in PEM: ECDSA on P-256 or P-384.
    #[arg(long = "key", value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,
}

impl Tls {
    /// Whether only certain peers are trusted.
    pub(crate) const fn names_peers(&self) -> bool {
        !self.fingerprints.is_empty()
    }

    /// `None` with --unencrypted.
    pub(crate) fn encryption(&self) -> Result<Option<Encryption>, Failure> {
        if self.unencrypted {
            return Ok(None);
        }
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Identity::from_pem(&read(certificate)?, &read(key)?)
                .map_err(|error| {
                    let files = format!("{} and {}", certificate.display(), key.display());
                    Failure::new(Kind::File, format!("{files}: {error}"))
                })?,
            _ => Identity::generate().map_err(|error| Failure::new(Kind::Failed, error))?,
        };
        let trust = match &self.fingerprints[..] {
            [] => Trust::anyone(),
            fingerprints => Trust::only(fingerprints.iter().copied()),
        };
        Ok(Some(Encryption::new(identity, trust)))
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    let advice = "`rexmit identity` makes a certificate and its key";
    let refused =
        |error| Failure::new(Kind::File, format!("{}: {error}; {advice}", file.display()));
    fs::read_to_string(file).map_err(refused)
}
