//! Why a description is refused.

use thiserror::Error;

/// A description that cannot be used, and where.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line} of the session description: {fault}")]
#[non_exhaustive]
pub struct SdpError {
    /// Counted from 1; the last line if something is missing.
    pub line: usize,
    /// The fault.
    pub fault: SdpFault,
}

/// A fault of a line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum SdpFault {
    /// Longer than [`MAX_DESCRIPTION_BYTES`](crate::MAX_DESCRIPTION_BYTES).
    #[error("it is longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// Not `x=value`, or of a type that RFC 8866 does not know.
    #[error("it is not of the form <type>=<value> with a type of RFC 8866")]
    Syntax,
    /// The first lines are `v=0`, `o=` and `s=`.
    #[error("`{expected}` must be here (RFC 8866 §5)")]
    Order {
        /// The line that is missing.
        expected: &'static str,
    },
    /// There are other sections than one for data channels.
    #[error(
        "only data channels are offered here: exactly one `m=application <port> UDP/DTLS/SCTP webrtc-datachannel`"
    )]
    Media,
    /// The value has not the form that its RFC demands.
    #[error("the value of `{attribute}` is malformed")]
    Malformed {
        /// The attribute.
        attribute: &'static str,
    },
    /// It is there twice.
    #[error("`{attribute}` is there a second time")]
    Repeated {
        /// The attribute.
        attribute: &'static str,
    },
    /// It is not there.
    #[error("`{attribute}` is missing")]
    Missing {
        /// The attribute.
        attribute: &'static str,
    },
    /// More than [`MAX_FINGERPRINTS`](crate::MAX_FINGERPRINTS).
    #[error("there are more than {limit} fingerprints")]
    TooManyFingerprints {
        /// The limit.
        limit: usize,
    },
}
