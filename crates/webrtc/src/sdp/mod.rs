//! Offers and answers (RFC 8866, RFC 8829) for data channels only (RFC 8841): one section `m=application`.
//!
//! A [`Description`] has what a side must know of its peer; the rest of the text is fixed. Parsing is strict:
//! required lines must occur once, in the form of their RFC, and an error names its line. Other attributes
//! are skipped.

mod candidate;
mod error;
mod parse;

use std::fmt;

use rexmit_dtls::Fingerprint;

pub use candidate::{Candidate, CandidateKind};
pub use error::{SdpError, SdpFault};

/// The longest description that is parsed, in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 32 * 1024;
/// The most candidates of a description; further ones are skipped.
pub const MAX_CANDIDATES: usize = 32;
/// The most fingerprints of a description.
pub const MAX_FINGERPRINTS: usize = 8;
/// The largest message that a peer accepts if its description does not say (RFC 8841 §6.1).
const DEFAULT_MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Which side begins the DTLS handshake (RFC 4145, RFC 8842 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Setup {
    /// Either side may: the value of an offer.
    ActPass,
    /// The author of the description is the DTLS client.
    Active,
    /// The author's peer is the DTLS client.
    Passive,
}

impl Setup {
    const fn name(self) -> &'static str {
        match self {
            Self::ActPass => "actpass",
            Self::Active => "active",
            Self::Passive => "passive",
        }
    }
}

/// An offer or an answer: the addresses and credentials of its author. Parsed from SDP, and displayed as SDP.
///
/// ```
/// # let offer = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
/// # m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:ufrag\r\n\
/// # a=ice-pwd:passwordpasswordpassword\r\na=fingerprint:sha-256 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:\
/// # 0F:00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F\r\na=setup:actpass\r\na=mid:0\r\na=sctp-port:5000\r\n";
/// use rexmit_webrtc::{Description, Setup};
///
/// let offer: Description = offer.parse()?;
/// assert_eq!(offer.setup, Setup::ActPass);
/// let error = "v=0\r\nm=audio\r\n".parse::<Description>().unwrap_err();
/// assert_eq!(error.line, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Description {
    /// The session's number, in `o=`.
    pub session: u64,
    /// The number of this description in the session, in `o=`: it increases with each description that differs.
    pub version: u64,
    /// The name of the section, which an answer repeats (RFC 5888).
    pub mid: String,
    /// ICE user name fragment (RFC 8839 §5.4).
    pub ufrag: String,
    /// ICE password.
    pub password: String,
    /// Whether its author is an ICE-lite agent (RFC 8445 §2.5).
    pub is_lite: bool,
    /// The SHA-256 fingerprints of certificates that the author may show; those of other hash functions are
    /// skipped.
    pub fingerprints: Vec<Fingerprint>,
    /// Which side begins the DTLS handshake.
    pub setup: Setup,
    /// SCTP port (RFC 8841 §5).
    pub sctp_port: u16,
    /// The largest message its author receives, in bytes; `usize::MAX` if it has no limit.
    pub max_message_bytes: usize,
    /// The UDP addresses of the author. Host names (mDNS) are skipped, because such a peer reveals its
    /// address with its first check.
    pub candidates: Vec<Candidate>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, line: fmt::Arguments<'_>| write!(f, "{line}\r\n");
        line(f, format_args!("v=0"))?;
        line(f, format_args!("o=- {} {} IN IP4 127.0.0.1", self.session, self.version))?;
        line(f, format_args!("s=-"))?;
        line(f, format_args!("t=0 0"))?;
        if self.is_lite {
            line(f, format_args!("a=ice-lite"))?;
        }
        line(f, format_args!("a=group:BUNDLE {}", self.mid))?;
        line(f, format_args!("m=application 9 UDP/DTLS/SCTP webrtc-datachannel"))?;
        line(f, format_args!("c=IN IP4 0.0.0.0"))?;
        line(f, format_args!("a=mid:{}", self.mid))?;
        for candidate in &self.candidates {
            line(f, format_args!("a={candidate}"))?;
        }
        line(f, format_args!("a=end-of-candidates"))?;
        line(f, format_args!("a=ice-ufrag:{}", self.ufrag))?;
        line(f, format_args!("a=ice-pwd:{}", self.password))?;
        for fingerprint in &self.fingerprints {
            line(f, format_args!("a=fingerprint:sha-256 {fingerprint}"))?;
        }
        line(f, format_args!("a=setup:{}", self.setup.name()))?;
        line(f, format_args!("a=sctp-port:{}", self.sctp_port))?;
        let limit = if self.max_message_bytes == usize::MAX { 0 } else { self.max_message_bytes };
        line(f, format_args!("a=max-message-size:{limit}"))
    }
}
