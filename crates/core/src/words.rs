//! Quantities as text in netem's notation: `50ms`, `5%`, `10mbit`, `64kb`; and their form in
//! configuration files.

use std::time::Duration;

use thiserror::Error;

use crate::BitRate;

/// An invalid text for a quantity.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{0}` does not begin with a number")]
    NoNumber(String),
    /// The unit is missing, or is not an allowed one.
    #[error("`{value}` needs one of the units {units}")]
    WrongUnit {
        /// The invalid text.
        value: String,
        /// The expected form.
        units: &'static str,
    },
    /// The value is outside the allowed range.
    #[error("`{value}` is out of range: {range}")]
    OutOfRange {
        /// The invalid text.
        value: String,
        /// The allowed values.
        range: &'static str,
    },
}

const DURATIONS: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const RATES: [(&str, f64); 8] = [
    ("bit", 1.0),
    ("kbit", 1e3),
    ("mbit", 1e6),
    ("gbit", 1e9),
    // As in tc, `bps` is bytes per second.
    ("bps", 8.0),
    ("kbps", 8e3),
    ("mbps", 8e6),
    ("gbps", 8e9),
];
const SIZES: [(&str, f64); 4] =
    [("b", 1.0), ("kb", 1024.0), ("mb", 1024.0 * 1024.0), ("gb", 1024.0 * 1024.0 * 1024.0)];

/// A time such as `50ms`, `1.5s`, `200us`, `10ns`, `5min`, `2h`, or a plain `0`.
///
/// # Errors
/// Another form, a missing unit, a negative value or one over 100 days.
pub fn parse_duration(value: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(value)?;
    let factor = factor(value, number, unit, &DURATIONS, "ns, us, ms, s, min, h")?;
    let nanos = in_range(value, number * factor, 100.0 * 86_400e9, "0 to 100 days")?;
    Ok(Duration::from_nanos(nanos.round() as u64))
}

/// A probability in percent, such as `5%` or `0.1%`, as a number from 0 to 1; or a plain `0`.
///
/// # Errors
/// Another form, a missing `%`, a value outside of 0 % to 100 %.
pub fn parse_probability(value: &str) -> Result<f64, UnitError> {
    let (number, unit) = split(value)?;
    let factor = factor(value, number, unit, &[("%", 0.01)], "%")?;
    in_range(value, number * factor, 1.0, "0% to 100%")
}

/// A rate such as `10mbit` or `64kbit`; as in tc, `bps` and its multiples count bytes.
///
/// # Errors
/// Another form, a missing unit, zero, or more than 1000 Gbit/s.
pub fn parse_rate(value: &str) -> Result<BitRate, UnitError> {
    const RANGE: &str = "1bit to 1000gbit";
    let (number, unit) = split(value)?;
    let factor = factor(value, number, unit, &RATES, "bit, kbit, mbit, gbit, bps, kbps, mbps")?;
    let bits = in_range(value, number * factor, 1e12, RANGE)?;
    BitRate::new(bits.round() as u64)
        .ok_or_else(|| UnitError::OutOfRange { value: value.to_owned(), range: RANGE })
}

/// A size in bytes such as `1500b`, `64kb`, `1mb` (powers of 1024), or a plain `0`.
///
/// # Errors
/// Another form, a missing unit, or more than 1 TB.
pub fn parse_size(value: &str) -> Result<usize, UnitError> {
    let (number, unit) = split(value)?;
    let factor = factor(value, number, unit, &SIZES, "b, kb, mb, gb")?;
    Ok(in_range(value, number * factor, 1e12, "0 to 1tb")?.round() as usize)
}

/// `duration` in the largest unit, up to seconds, in which it is an integer: the inverse of
/// [`parse_duration`].
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    match duration.as_nanos() {
        0 => "0s".to_owned(),
        n if n % 1_000_000_000 == 0 => format!("{}s", n / 1_000_000_000),
        n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
        n if n % 1000 == 0 => format!("{}us", n / 1000),
        n => format!("{n}ns"),
    }
}

fn split(value: &str) -> Result<(f64, &str), UnitError> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let number = value[..end].parse().map_err(|_| UnitError::NoNumber(value.to_owned()))?;
    Ok((number, value[end..].trim()))
}

fn factor(
    value: &str,
    number: f64,
    unit: &str,
    known: &[(&str, f64)],
    units: &'static str,
) -> Result<f64, UnitError> {
    if unit.is_empty() && number == 0.0 {
        return Ok(1.0);
    }
    let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
    found.map(|&(_, factor)| factor).ok_or(UnitError::WrongUnit { value: value.to_owned(), units })
}

fn in_range(value: &str, number: f64, most: f64, range: &'static str) -> Result<f64, UnitError> {
    if number <= most {
        Ok(number)
    } else {
        Err(UnitError::OutOfRange { value: value.to_owned(), range })
    }
}

/// Durations as text (`"50ms"`) in configuration files: `#[serde(with = "words::duration")]`.
#[cfg(feature = "serde")]
pub mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes `duration` in the format of [`format_duration`](super::format_duration).
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&super::format_duration(*duration))
    }

    /// Reads a text in the format of [`parse_duration`](super::parse_duration).
    ///
    /// # Errors
    /// Errors of the deserializer, and text that is no duration.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        super::parse_duration(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// As [`duration`], for an optional duration: `#[serde(with = "words::optional_duration")]`.
#[cfg(feature = "serde")]
pub mod optional_duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes the duration in the format of [`format_duration`](super::format_duration), and `None` as `off`: a field that
    /// is missing may have another default.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::duration::serialize(duration, out),
            None => out.serialize_str("off"),
        }
    }

    /// Reads a text in the format of [`parse_duration`](super::parse_duration); `off` and a missing
    /// value give `None`.
    ///
    /// # Errors
    /// Errors of the deserializer, and text that is no duration.
    pub fn deserialize<'de, D>(from: D) -> Result<Option<Duration>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(from)?.filter(|text| text != "off");
        text.map(|text| super::parse_duration(&text).map_err(D::Error::custom)).transpose()
    }
}

/// An optional value, with `off` for `None`: `#[serde(with = "words::or_off")]`.
#[cfg(feature = "serde")]
pub mod or_off {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::value::{self, StrDeserializer};
    use serde::de::{Deserialize, Deserializer, Error, IntoDeserializer, Visitor};
    use serde::{Serialize, Serializer};

    struct OrOff<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OrOff<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value or `off`")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
            if word == "off" {
                return Ok(None);
            }
            // The plain error of serde: others add places to their text.
            let value: StrDeserializer<'_, value::Error> = word.into_deserializer();
            let value = T::deserialize(value);
            value.map(Some).map_err(|error| E::custom(format!("{error}, or `off`")))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
            T::deserialize(number.into_deserializer()).map(Some)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
            T::deserialize(number.into_deserializer()).map(Some)
        }
    }

    /// Writes the value, and `None` as `off`: a field that is missing may have another default.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(out),
            None => out.serialize_str("off"),
        }
    }

    /// Reads the value, a number or a word; `off` and a missing value give `None`.
    ///
    /// # Errors
    /// Errors of the deserializer, and any other word.
    pub fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        from.deserialize_any(OrOff(PhantomData))
    }
}

/// As [`or_off`], for a table: `#[serde(with = "words::table_or_off")]`. Mistakes in the table are reported as those of
/// any other one.
#[cfg(feature = "serde")]
pub mod table_or_off {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

    pub use super::or_off::serialize;

    struct OrOff<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OrOff<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table or `off`")
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
            if word == "off" {
                return Ok(None);
            }
            Err(E::custom(format!("`{word}` is neither a table nor `off`")))
        }

        fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(table)).map(Some)
        }
    }

    /// Reads the table; `off` and a missing value give `None`.
    ///
    /// # Errors
    /// Errors of the deserializer, and any other word.
    pub fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        from.deserialize_any(OrOff(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_netem_values() {
        assert_eq!(parse_duration("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("200us"), Ok(Duration::from_micros(200)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(parse_probability("5%"), Ok(0.05));
        assert_eq!(parse_probability("100 %"), Ok(1.0));
        assert_eq!(parse_rate("10mbit"), Ok(BitRate::new(10_000_000).unwrap()));
        assert_eq!(parse_rate("1KBPS"), Ok(BitRate::new(8000).unwrap()));
        assert_eq!(parse_size("64kb"), Ok(65_536));
    }

    #[test]
    fn errors_describe_the_mistake() {
        assert_eq!(parse_duration("fast"), Err(UnitError::NoNumber("fast".into())));
        assert_eq!(parse_duration("-5ms"), Err(UnitError::NoNumber("-5ms".into())));
        assert_eq!(parse_duration(""), Err(UnitError::NoNumber(String::new())));
        assert!(matches!(parse_duration("50"), Err(UnitError::WrongUnit { .. })));
        assert!(matches!(parse_probability("0.05"), Err(UnitError::WrongUnit { .. })));
        assert!(matches!(parse_probability("101%"), Err(UnitError::OutOfRange { .. })));
        assert!(matches!(parse_rate("0mbit"), Err(UnitError::OutOfRange { .. })));
        assert!(matches!(parse_rate("0.1bit"), Err(UnitError::OutOfRange { .. })));
        assert!(matches!(parse_duration("1e9s"), Err(UnitError::WrongUnit { .. })));
        assert!(matches!(parse_duration("99999999s"), Err(UnitError::OutOfRange { .. })));
        assert_eq!(
            parse_rate("10").unwrap_err().to_string(),
            "`10` needs one of the units bit, kbit, mbit, gbit, bps, kbps, mbps"
        );
    }

    #[test]
    fn durations_survive_formatting() {
        for nanos in [0, 1, 999, 1000, 1_500_000, 50_000_000, 3_000_000_000, 1_000_000_001] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }
}
