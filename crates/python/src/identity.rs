//! The identity of a host, and the peers it trusts: the classes `Identity` and `Trust`.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use rexmit_core::Seed;
use rexmit_dtls::{Fingerprint, IdentityError};

use crate::errors::{RexmitError, guarded};

/// 32 bytes of the system.
pub(crate) fn random() -> PyResult<Seed> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| RexmitError::new_err(error.to_string()))?;
    Ok(Seed::from_bytes(bytes))
}

/// A certificate and its private key: `generate` makes one, `from_pem` and `from_der` read one.
#[pyclass(frozen, module = "rexmit")]
pub(crate) struct Identity(rexmit_dtls::Identity);

fn refused(error: IdentityError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// PEM, as `str` or as the bytes of a file.
fn pem(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_string_lossy().into_owned());
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(String::from_utf8_lossy(bytes.as_bytes()).into_owned());
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("{name} must be PEM, as str or bytes, not {kind}")))
}

impl Identity {
    /// The identity that was given, or a new one.
    pub(crate) fn of(given: Option<&Bound<'_, PyAny>>) -> PyResult<rexmit_dtls::Identity> {
        let Some(given) = given else { return rexmit_dtls::Identity::generate().map_err(refused) };
        let identity = given.cast::<Self>().map_err(|_| {
            PyTypeError::new_err(
                "identity must be a rexmit.Identity: Identity.generate(), or from_pem",
            )
        })?;
        Ok(identity.get().0.clone())
    }
}

#[pymethods]
impl Identity {
    /// A new key on P-256 with a self-signed certificate.
    ///
    /// Returns
    /// -------
    /// Identity
    #[staticmethod]
    fn generate() -> PyResult<Self> {
        guarded(|| rexmit_dtls::Identity::generate().map(Self).map_err(refused))
    }

    /// Reads a certificate and its private key in PEM.
    ///
    /// Parameters
    /// ----------
    /// certificate : str or bytes
    ///     The certificate (X.509).
    /// private_key : str or bytes
    ///     Its key: ECDSA on P-256 or P-384, in PKCS #8 or SEC 1.
    ///
    /// Returns
    /// -------
    /// Identity
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     One of them is not valid, or the key is not that of the certificate.
    /// TypeError
    ///     One of them is neither text nor bytes.
    #[staticmethod]
    fn from_pem(certificate: &Bound<'_, PyAny>, private_key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (certificate, key) =
            (pem("certificate", certificate)?, pem("private_key", private_key)?);
        guarded(|| rexmit_dtls::Identity::from_pem(&certificate, &key).map(Self).map_err(refused))
    }

    /// Reads a certificate and its private key in DER.
    ///
    /// Parameters
    /// ----------
    /// certificate : bytes
    ///     The certificate (X.509), as `Identity.certificate` has it.
    /// private_key : bytes
    ///     Its key, as `Identity.private_key` has it.
    ///
    /// Returns
    /// -------
    /// Identity
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     One of them is not valid, or the key is not that of the certificate.
    #[staticmethod]
    fn from_der(certificate: &[u8], private_key: &[u8]) -> PyResult<Self> {
        guarded(|| {
            rexmit_dtls::Identity::from_der(certificate, private_key).map(Self).map_err(refused)
        })
    }

    /// The fingerprint by which peers authenticate this host: the SHA-256 of the certificate.
    #[getter]
    fn fingerprint(&self) -> PyResult<String> {
        guarded(|| Ok(self.0.fingerprint().to_string()))
    }

    /// The certificate in DER.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.0.certificate())))
    }

    /// The private key in DER. Keep it secret.
    #[getter]
    fn private_key<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.0.private_key())))
    }

    fn __repr__(&self) -> PyResult<String> {
        guarded(|| Ok(format!("<rexmit.Identity {}>", self.0.fingerprint())))
    }
}

/// Which peers an endpoint talks to, by the fingerprints of their certificates.
#[pyclass(frozen, module = "rexmit")]
pub(crate) struct Trust(rexmit_dtls::Trust);

fn fingerprint(value: &Bound<'_, PyAny>) -> PyResult<Fingerprint> {
    let text = value.cast::<PyString>().map_err(|_| {
        let kind = value.get_type().name();
        let kind = kind.map_or_else(|_| "that".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("a fingerprint is a str, not {kind}"))
    })?;
    let text = text.to_string_lossy();
    text.parse().map_err(|error| PyValueError::new_err(format!("{text:?}: {error}")))
}

impl Trust {
    /// A `Trust`, or the fingerprint of the only peer.
    pub(crate) fn of(given: &Bound<'_, PyAny>) -> PyResult<rexmit_dtls::Trust> {
        if let Ok(trust) = given.cast::<Self>() {
            return Ok(trust.get().0.clone());
        }
        if given.is_instance_of::<PyString>() {
            return Ok(rexmit_dtls::Trust::only([fingerprint(given)?]));
        }
        let kind = given.get_type().name()?;
        let text = format!(
            "trust must be the fingerprint of the peer's certificate, or a rexmit.Trust, not {kind}"
        );
        Err(PyTypeError::new_err(text))
    }
}

#[pymethods]
impl Trust {
    /// Trusts peers with these certificates alone.
    ///
    /// Parameters
    /// ----------
    /// *fingerprints : str
    ///     The SHA-256 of each certificate, as 32 hexadecimal bytes with colons between them.
    ///
    /// Returns
    /// -------
    /// Trust
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     One of them is no fingerprint.
    /// TypeError
    ///     One of them is no text.
    #[staticmethod]
    #[pyo3(signature = (*fingerprints))]
    fn only(fingerprints: &Bound<'_, PyTuple>) -> PyResult<Self> {
        guarded(|| {
            let all = fingerprints.iter().map(|it| fingerprint(&it));
            Ok(Self(rexmit_dtls::Trust::only(all.collect::<PyResult<Vec<_>>>()?)))
        })
    }

    /// Trusts any peer: data is encrypted, but a client does not know to whom.
    ///
    /// Returns
    /// -------
    /// Trust
    #[staticmethod]
    fn anyone() -> PyResult<Self> {
        guarded(|| Ok(Self(rexmit_dtls::Trust::anyone())))
    }

    fn __repr__(&self) -> PyResult<String> {
        guarded(|| Ok(format!("<rexmit.{:?}>", self.0)))
    }
}
