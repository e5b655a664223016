//! Measured durations in JSON: milliseconds as a number, in a field whose name ends in `_ms`.

use std::time::Duration;

#[cfg(feature = "serde")]
use serde::{Deserialize, Deserializer, Serializer};

/// `duration` in milliseconds, to the nanosecond.
#[must_use]
pub fn from_duration(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// For serde's `serialize_with`.
///
/// # Errors
/// Errors of the serializer.
#[cfg(feature = "serde")]
pub fn serialize<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(from_duration(*duration))
}

/// Like [`serialize`], but `None` is written as null.
///
/// # Errors
/// Errors of the serializer.
#[cfg(feature = "serde")]
pub fn serialize_optional<S: Serializer>(
    duration: &Option<Duration>,
    out: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => out.serialize_some(&from_duration(*duration)),
        None => out.serialize_none(),
    }
}

/// For serde's `deserialize_with`.
///
/// # Errors
/// If the value is not a number.
#[cfg(feature = "serde")]
pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(input)?;
    // The cast saturates: a negative number or NaN becomes zero.
    Ok(Duration::from_nanos((millis * 1e6).round() as u64))
}
