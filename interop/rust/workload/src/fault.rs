//! Deliberate faults of a sender, which show that a receiver's verifier detects errors.

use std::str::FromStr;

/// The change to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The message is not sent.
    Lose,
    /// The message is sent twice.
    Duplicate,
    /// An ordered message is sent after the next ordered one of its stream.
    Swap,
    /// The last byte of the message is altered.
    Corrupt,
    /// The message is sent on the next stream.
    Misplace,
}

/// A fault, and the number of the message concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The change.
    pub kind: FaultKind,
    /// The number of the message; for [`FaultKind::Swap`], the first ordered one from it on.
    pub number: u32,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is no fault: lose, duplicate, swap, corrupt or misplace, ':NUMBER'")
        };
        let (kind, number) = text.split_once(':').ok_or_else(wrong)?;
        let kind = match kind {
            "lose" => FaultKind::Lose,
            "duplicate" => FaultKind::Duplicate,
            "swap" => FaultKind::Swap,
            "corrupt" => FaultKind::Corrupt,
            "misplace" => FaultKind::Misplace,
            _ => return Err(wrong()),
        };
        Ok(Self { kind, number: number.parse().map_err(|_| wrong())? })
    }
}
