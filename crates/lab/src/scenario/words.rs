//! Values that keep the text from which they were parsed.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::words::{UnitError, parse_duration, parse_size};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A `T` and the text from which it was parsed, which is its form in files.
///
/// ```
/// use rexmit_lab::scenario::{Time, Words};
/// let words: Words<Time> = "2h".parse()?;
/// assert_eq!(words.as_secs(), 7200);
/// assert_eq!(words.to_string(), "2h");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Words<T> {
    /// Shared by the runs of a study: the messages of a capture may be half a megabyte.
    words: Arc<str>,
    value: T,
}

impl<T> Words<T> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.words
    }
}

impl<T> Deref for Words<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: FromStr> FromStr for Words<T> {
    type Err = T::Err;

    fn from_str(words: &str) -> Result<Self, T::Err> {
        Ok(Self { words: words.into(), value: words.parse()? })
    }
}

impl<T> fmt::Display for Words<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl<T> Serialize for Words<T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.words)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Words<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let words = String::deserialize(from)?;
        words.parse().map_err(de::Error::custom)
    }
}

/// A time such as `250ms` or `2h`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Time(pub Duration);

impl Deref for Time {
    type Target = Duration;

    fn deref(&self) -> &Duration {
        &self.0
    }
}

impl FromStr for Time {
    type Err = UnitError;

    fn from_str(words: &str) -> Result<Self, UnitError> {
        parse_duration(words).map(Self)
    }
}

/// A number of bytes such as `64kb` or `1500b`; `kb` are 1024 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(words: &str) -> Result<Self, UnitError> {
        parse_size(words).map(Self)
    }
}
