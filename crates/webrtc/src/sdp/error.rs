//! Errors of descriptions.

use thiserror::Error;

/// Why a description cannot be parsed, and in which line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line} of the session description: {fault}")]
#[non_exhaustive]
pub struct SdpError {
    /// The number of the line, from 1; the last line if something is missing.
    pub line: usize,
    /// The fault.
    pub fault: SdpFault,
}

/// A fault of a line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SdpFault {
    /// The description is longer than [`MAX_DESCRIPTION_BYTES`](crate::MAX_DESCRIPTION_BYTES).
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The line is not `x=value`, or of a type that RFC 8866 does not define.
    #[error("it is not of the form <type>=<value> with a type of RFC 8866")]
    Syntax,
    /// The first lines are not `v=0`, `o=` and `s=`.
    #[error("`{expected}` must be here (RFC 8866 §5)")]
    Order {
        /// The line that is missing.
        expected: &'static str,
    },
    /// The description does not consist of exactly one section for data channels.
    #[error(
        "only data channels are offered here: exactly one `m=application <port> UDP/DTLS/SCTP webrtc-datachannel`"
    )]
    Media,
    /// The value does not have the form that its RFC requires.
    #[error("the value of `{attribute}` is malformed")]
    Malformed {
        /// The attribute.
        attribute: &'static str,
    },
    /// A line occurs twice that may occur once.
    #[error("`{attribute}` occurs twice")]
    Repeated {
        /// The attribute.
        attribute: &'static str,
    },
    /// A required line is missing.
    #[error("`{attribute}` is missing")]
    Missing {
        /// The attribute.
        attribute: &'static str,
    },
    /// There are more than [`MAX_FINGERPRINTS`](crate::MAX_FINGERPRINTS) fingerprints.
    #[error("there are more than {limit} fingerprints")]
    TooManyFingerprints {
        /// The limit.
        limit: usize,
    },
}
