//! Times, addresses, payloads and numbers of Python, checked.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use bytes::Bytes;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString, PyTuple};
use rexmit_core::Instant;
use rexmit_sctp::recovery::Deadline;

/// The latest time, in seconds: nanoseconds fit 64 bits, with time for every timer after it.
const MAX_SECONDS: f64 = 9e9;
const NANOSECONDS: f64 = 1e9;

/// A whole number of Python, before it is known which ones are allowed. One beyond 128 bits is the nearest within.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) i128);

impl FromPyObject<'_, '_> for Whole {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let is_negative = value.lt(0)?;
                let nearest = if is_negative { i128::MIN } else { i128::MAX };
                Ok(Self(value.extract().unwrap_or(nearest)))
            }
            number => number.map(|number| Self(number.into())),
        }
    }
}

/// The same, for parameters with a default.
pub(crate) fn whole(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    value.extract::<Whole>().map(|it| it.0)
}

/// A number of Python. A whole one that is too large for a `float` is infinite.
#[derive(Clone, Copy)]
pub(crate) struct Real(pub(crate) f64);

impl FromPyObject<'_, '_> for Real {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<f64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                Ok(Self(if value.lt(0)? { f64::NEG_INFINITY } else { f64::INFINITY }))
            }
            number => number.map(Self),
        }
    }
}

/// A time of the caller's clock, in seconds.
pub(crate) fn instant(Real(now): Real) -> PyResult<Instant> {
    if (0.0..=MAX_SECONDS).contains(&now) {
        return Ok(Instant::from_nanos((now * NANOSECONDS) as u64));
    }
    let text = format!("now is {now}; it is in seconds, from 0, such as time.monotonic()");
    Err(PyValueError::new_err(text))
}

/// The time in seconds, rounded so that [`instant`] of it is not earlier.
pub(crate) fn seconds(at: Instant) -> f64 {
    let seconds = at.as_secs_f64().min(MAX_SECONDS);
    let is_early = ((seconds * NANOSECONDS) as u64) < at.as_nanos();
    if is_early { (seconds * (1.0 + 2.0 * f64::EPSILON)).min(MAX_SECONDS) } else { seconds }
}

/// A length of time in seconds; zero is allowed where it means "off".
pub(crate) fn duration(name: &str, Real(seconds): Real) -> PyResult<Duration> {
    if (0.0..=MAX_SECONDS).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(PyValueError::new_err(format!("{name} is {seconds}; it is in seconds, from 0")))
}

/// When a message should arrive, and with which probability; both are given, or neither.
pub(crate) fn deadline(
    within: Option<Real>,
    probability: Option<Real>,
) -> PyResult<Option<Deadline>> {
    let (within, probability) = match (within, probability) {
        (None, None) => return Ok(None),
        (Some(within), Some(probability)) => (duration("within", within)?, probability.0),
        _ => {
            let text = "a deadline has two parts: within=0.1, probability=0.999";
            return Err(PyValueError::new_err(text));
        }
    };
    if within.is_zero() {
        return Err(PyValueError::new_err("within is 0; it must be above 0, in seconds"));
    }
    if !(probability > 0.0 && probability < 1.0) {
        let text =
            format!("probability is {probability}; it must be above 0 and below 1, such as 0.999");
        return Err(PyValueError::new_err(text));
    }
    Ok(Some(Deadline::new(within, probability)))
}

/// Numbers from 0 on.
pub(crate) trait Unsigned: TryFrom<i128> + Display {
    /// The largest of them.
    const LARGEST: Self;
}

macro_rules! unsigned {
    ($($kind:ty)*) => {
        $(impl Unsigned for $kind {
            const LARGEST: Self = Self::MAX;
        })*
    };
}

unsigned!(u16 u32 u64 usize);

/// A whole number within the range of `T`.
pub(crate) fn number<T: Unsigned>(name: &str, value: i128) -> PyResult<T> {
    T::try_from(value).map_err(|_| {
        let is = match value {
            i128::MIN | i128::MAX => "out of range".to_owned(),
            value => value.to_string(),
        };
        PyValueError::new_err(format!("{name} is {is}; it must be from 0 to {}", T::LARGEST))
    })
}

/// An address as `socket` has it: `(host, port)`, or `(host, port, flow information, scope)` for IPv6. The host is numeric.
pub(crate) fn address(name: &str, value: &Bound<'_, PyAny>) -> PyResult<SocketAddr> {
    let shape = || {
        let text = format!(
            "{name} must be a tuple such as ('192.0.2.1', 9899), not {}",
            value.get_type().name().map_or_else(|_| "that".to_owned(), |name| name.to_string()),
        );
        PyTypeError::new_err(text)
    };
    let tuple = value.cast::<PyTuple>().map_err(|_| shape())?;
    if !matches!(tuple.len(), 2 | 4) {
        return Err(shape());
    }
    let host = tuple.get_item(0)?;
    let host = host.cast::<PyString>().map_err(|_| shape())?.to_string();
    let port = whole(&tuple.get_item(1)?).map_err(|_| shape())?;
    let port = number(&format!("the port of {name}"), port)?;
    let numeric = host.split('%').next().unwrap_or_default();
    let ip: IpAddr = numeric.parse().map_err(|_| {
        let text = format!(
            "{name} has the host {host:?}, which is no IP address: resolve names with getaddrinfo"
        );
        PyValueError::new_err(text)
    })?;
    match ip {
        IpAddr::V6(ip) if tuple.len() == 4 => {
            let scope = whole(&tuple.get_item(3)?).map_err(|_| shape())?;
            let scope = number(&format!("the scope of {name}"), scope)?;
            Ok(SocketAddrV6::new(ip, port, 0, scope).into())
        }
        ip => Ok(SocketAddr::new(ip, port)),
    }
}

/// The same, for `socket.sendto`.
pub(crate) fn address_to_python<'py>(
    py: Python<'py>,
    address: SocketAddr,
) -> PyResult<Bound<'py, PyAny>> {
    let host = address.ip().to_string();
    Ok(match address {
        SocketAddr::V4(v4) => (host, v4.port()).into_pyobject(py)?.into_any(),
        SocketAddr::V6(v6) => (host, v6.port(), 0_u32, v6.scope_id()).into_pyobject(py)?.into_any(),
    })
}

/// A copy of the bytes of a message.
pub(crate) fn payload(value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Bytes::copy_from_slice(bytes.as_bytes()));
    }
    if let Ok(array) = value.cast::<PyByteArray>() {
        return Ok(Bytes::from(array.to_vec()));
    }
    if value.is_instance_of::<PyMemoryView>() {
        let copy = value.call_method0("tobytes")?;
        return Ok(Bytes::copy_from_slice(copy.cast::<PyBytes>()?.as_bytes()));
    }
    let hint = if value.is_instance_of::<PyString>() { ": use .encode()" } else { "" };
    let text = format!(
        "data must be bytes, bytearray or memoryview, not {}{hint}",
        value.get_type().name()?
    );
    Err(PyTypeError::new_err(text))
}
