//! Encryption by DTLS 1.3 (RFC 8261): the identity of an endpoint, and the peers that it trusts.

use std::ffi::c_char;

use rexmit_dtls::{Encryption, Fingerprint, Identity, IdentityError, Trust};

use crate::config::{rexmit_config, set};
use crate::message::rexmit_buffer;
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, Outcome, deref, guard, slice, store, words};

/// Bytes of a fingerprint as a text, the zero byte at its end included.
pub const REXMIT_FINGERPRINT_TEXT: usize = 96;

/// The fingerprint (SHA-256) of a certificate, by which peers are authenticated.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct rexmit_fingerprint {
    /// The digest.
    pub bytes: [u8; 32],
}

impl From<Fingerprint> for rexmit_fingerprint {
    fn from(fingerprint: Fingerprint) -> Self {
        Self { bytes: *fingerprint.as_bytes() }
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        Self::new(REXMIT_CONFIG, error.to_string())
    }
}

/// The identity and trust of an endpoint, as far as they were set.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    identity: Option<Identity>,
    trusted: Vec<Fingerprint>,
    trusts_anyone: bool,
}

impl Parties {
    /// The encryption of an endpoint; `None` if neither identity nor trust was set.
    pub(crate) fn encryption(
        &self,
        max_associations: usize,
    ) -> Result<Option<Encryption>, Failure> {
        let trust = match (self.trusts_anyone, self.trusted.as_slice()) {
            (true, _) => Trust::anyone(),
            (false, []) if self.identity.is_none() => return Ok(None),
            (false, []) => {
                let text = "the endpoint has an identity and trusts no peer: call rexmit_config_trust or \
                            rexmit_config_trust_anyone";
                return Err(Failure::new(REXMIT_CONFIG, text));
            }
            (false, trusted) => Trust::only(trusted.iter().copied()),
        };
        let identity = self.identity.clone().map_or_else(Identity::generate, Ok)?;
        let encryption = Encryption::new(identity, trust);
        // A connection lasts some seconds longer than its associations, and must not take the place of a new one.
        let max_connections = encryption.max_connections.max(max_associations);
        Ok(Some(encryption.max_connections(max_connections)))
    }

    fn identity(&self) -> Result<&Identity, Failure> {
        let missing = || Failure::new(REXMIT_NOT_FOUND, "the configuration has no identity");
        self.identity.as_ref().ok_or_else(missing)
    }
}

/// Encryption: endpoints have a new identity, a key on P-256 with a self-signed certificate. A server that
/// clients should recognize after a restart stores it (`rexmit_config_certificate`,
/// `rexmit_config_private_key`).
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_generate_identity(
    config: *mut rexmit_config,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            config.parties.identity = Some(Identity::generate()?);
            Ok(())
        })
    }
}

/// Encryption: endpoints have the identity of a certificate (X.509) and its private key (ECDSA on P-256 or P-384, PKCS #8
/// or SEC 1), both as texts in PEM.
///
/// # Safety
/// `config` came from `rexmit_config_new`; the others are texts that end with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_identity_pem(
    config: *mut rexmit_config,
    certificate: *const c_char,
    private_key: *const c_char,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let certificate = words(certificate, "the certificate")?;
            let identity = Identity::from_pem(certificate, words(private_key, "the private key")?)?;
            config.parties.identity = Some(identity);
            Ok(())
        })
    }
}

/// As `rexmit_config_set_identity_pem`, in DER.
///
/// # Safety
/// `config` came from `rexmit_config_new`; the others point to buffers, which point to their bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_identity_der(
    config: *mut rexmit_config,
    certificate: *const rexmit_buffer,
    private_key: *const rexmit_buffer,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let certificate = deref(certificate, "the certificate")?;
            let certificate = slice(certificate.data, certificate.length, "the certificate")?;
            let key = deref(private_key, "the private key")?;
            let key = slice(key.data, key.length, "the private key")?;
            config.parties.identity = Some(Identity::from_der(certificate, key)?);
            Ok(())
        })
    }
}

/// Stores a part of the identity in `part`.
///
/// # Safety
/// As [`rexmit_config_certificate`].
unsafe fn show(
    config: *mut rexmit_config,
    shown: *mut rexmit_buffer,
    part: impl FnOnce(&Identity) -> &[u8],
) -> rexmit_status {
    // SAFETY: As the caller promised.
    unsafe {
        set(config, |config| {
            let bytes = part(config.parties.identity()?);
            let buffer = rexmit_buffer { data: bytes.as_ptr(), length: bytes.len() };
            store(shown, buffer, "where it goes")
        })
    }
}

/// The certificate of the identity in DER. Valid until the identity is changed or the configuration is freed.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `certificate` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_certificate(
    config: *mut rexmit_config,
    certificate: *mut rexmit_buffer,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { show(config, certificate, Identity::certificate) }
}

/// The private key of the identity in DER. Keep it secret. Valid as long as the certificate.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `private_key` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_private_key(
    config: *mut rexmit_config,
    private_key: *mut rexmit_buffer,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { show(config, private_key, Identity::private_key) }
}

/// The fingerprint of this configuration's certificate, which peers have to trust; REXMIT_NOT_FOUND without
/// an identity.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `fingerprint` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_fingerprint(
    config: *mut rexmit_config,
    fingerprint: *mut rexmit_fingerprint,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let own = config.parties.identity()?.fingerprint();
            store(fingerprint, own.into(), "the fingerprint")
        })
    }
}

/// Encryption: endpoints trust peers with this certificate, in addition to earlier ones. An endpoint without
/// an identity generates one.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `fingerprint` points to a fingerprint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_trust(
    config: *mut rexmit_config,
    fingerprint: *const rexmit_fingerprint,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let bytes = deref(fingerprint, "the fingerprint")?.bytes;
            config.parties.trusted.push(Fingerprint::from_bytes(bytes));
            Ok(())
        })
    }
}

/// Encryption: endpoints trust every peer, for a server whose clients are not known beforehand. A client that
/// trusts anyone is protected against passive eavesdroppers only: a host on the path can impersonate the
/// server.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_trust_anyone(config: *mut rexmit_config) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            config.parties.trusts_anyone = true;
            Ok(())
        })
    }
}

/// Reads a fingerprint: 64 hexadecimal digits, with or without colons, as `openssl x509 -fingerprint -sha256` prints it.
///
/// # Safety
/// `text` is a text that ends with a zero byte; `fingerprint` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_fingerprint_parse(
    text: *const c_char,
    fingerprint: *mut rexmit_fingerprint,
) -> rexmit_status {
    let parse = || -> Outcome {
        // SAFETY: As this function demands.
        let parsed = unsafe { words(text, "the text") }?.parse::<Fingerprint>();
        let parsed =
            parsed.map_err(|error| Failure::new(REXMIT_INVALID_ARGUMENT, error.to_string()))?;
        // SAFETY: As this function demands.
        unsafe { store(fingerprint, parsed.into(), "the fingerprint") }
    };
    guard(REXMIT_INTERNAL, || parse().map_or_else(|failure| failure.status, |()| REXMIT_OK))
}

/// Writes a fingerprint as a text of REXMIT_FINGERPRINT_TEXT bytes, the zero byte at its end included. REXMIT_TOO_LARGE if
/// it does not fit `capacity`.
///
/// # Safety
/// `fingerprint` points to a fingerprint, `text` to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_fingerprint_format(
    fingerprint: *const rexmit_fingerprint,
    text: *mut c_char,
    capacity: usize,
) -> rexmit_status {
    guard(REXMIT_INTERNAL, || {
        // SAFETY: As this function demands.
        let Ok(fingerprint) = (unsafe { deref(fingerprint, "the fingerprint") }) else {
            return REXMIT_INVALID_ARGUMENT;
        };
        if text.is_null() {
            return REXMIT_INVALID_ARGUMENT;
        } else if capacity < REXMIT_FINGERPRINT_TEXT {
            return REXMIT_TOO_LARGE;
        }
        let shown = Fingerprint::from_bytes(fingerprint.bytes).to_string();
        // SAFETY: It has 95 bytes, and a zero byte follows.
        unsafe {
            text.cast::<u8>().copy_from_nonoverlapping(shown.as_ptr(), shown.len());
            text.add(shown.len()).write(0);
        }
        REXMIT_OK
    })
}
