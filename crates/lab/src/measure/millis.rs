//! Durations as milliseconds in JSON, which is what people and `jq` expect of a latency.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// `duration` in milliseconds, to the nanosecond.
pub(crate) fn from_duration(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

pub(crate) fn serialize<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(from_duration(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let millis = f64::deserialize(input)?;
    // The cast saturates: a negative number or NaN becomes zero.
    Ok(Duration::from_nanos((millis * 1e6).round() as u64))
}
