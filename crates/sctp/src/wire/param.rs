//! Parameters of INIT, INIT ACK and the heartbeats (RFC 9260 §3.2.1, §3.3.2.1, §3.3.3.1, §3.3.5;
//! RFC 3758 §3.1; RFC 4895 §3; RFC 5061 §4.2.7). Those of RE-CONFIG are [`super::ReConfigParam`], those
//! of ASCONF [`super::AsconfRequest`] and [`super::AsconfAnswer`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::cursor::Cursor;
use super::frame::UnknownAction;
use super::sink::Sink;
use super::tlv::{TlvError, split_tlv};
use super::u16_list::U16List;

/// Parameter types.
pub mod param_kind {
    /// Heartbeat Info (RFC 9260 §3.3.5).
    pub const HEARTBEAT_INFO: u16 = 1;
    /// IPv4 Address (RFC 9260 §3.3.2.1.1).
    pub const IPV4: u16 = 5;
    /// IPv6 Address (RFC 9260 §3.3.2.1.2).
    pub const IPV6: u16 = 6;
    /// State Cookie (RFC 9260 §3.3.3.1.1).
    pub const STATE_COOKIE: u16 = 7;
    /// Unrecognized Parameter (RFC 9260 §3.3.3.1.2).
    pub const UNRECOGNIZED_PARAMETER: u16 = 8;
    /// Cookie Preservative (RFC 9260 §3.3.2.1.3).
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    /// Host Name Address (RFC 9260 §3.3.2.1.4).
    pub const HOST_NAME: u16 = 11;
    /// Supported Address Types (RFC 9260 §3.3.2.1.5).
    pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
    /// Outgoing SSN Reset Request (RFC 6525 §4.1).
    pub const OUTGOING_SSN_RESET_REQUEST: u16 = 13;
    /// Incoming SSN Reset Request (RFC 6525 §4.2).
    pub const INCOMING_SSN_RESET_REQUEST: u16 = 14;
    /// SSN/TSN Reset Request (RFC 6525 §4.3).
    pub const SSN_TSN_RESET_REQUEST: u16 = 15;
    /// Re-configuration Response (RFC 6525 §4.4).
    pub const RE_CONFIG_RESPONSE: u16 = 16;
    /// Add Outgoing Streams Request (RFC 6525 §4.5).
    pub const ADD_OUTGOING_STREAMS_REQUEST: u16 = 17;
    /// Add Incoming Streams Request (RFC 6525 §4.6).
    pub const ADD_INCOMING_STREAMS_REQUEST: u16 = 18;
    /// ECN Capable (RFC 9260 §3.3.2, RFC 4960 appendix A).
    pub const ECN_CAPABLE: u16 = 0x8000;
    /// Zero Checksum Acceptable (RFC 9653 §4).
    pub const ZERO_CHECKSUM_ACCEPTABLE: u16 = 0x8001;
    /// Random (RFC 4895 §3.1).
    pub const RANDOM: u16 = 0x8002;
    /// Chunk List (RFC 4895 §3.2).
    pub const CHUNKS: u16 = 0x8003;
    /// Requested HMAC Algorithm (RFC 4895 §3.3).
    pub const HMAC_ALGO: u16 = 0x8004;
    /// Supported Extensions (RFC 5061 §4.2.7).
    pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
    /// ACK Copies Requested: of this library, in a range that IANA has not assigned. Receivers that do not know it
    /// skip it without a report, as the two high bits say (RFC 9260 §3.2.1).
    pub const ACK_COPIES_REQUESTED: u16 = 0xBF41;
    /// Forward-TSN-Supported (RFC 3758 §3.1).
    pub const FORWARD_TSN_SUPPORTED: u16 = 0xC000;
    /// Add IP Address (RFC 5061 §4.2.1).
    pub const ADD_IP_ADDRESS: u16 = 0xC001;
    /// Delete IP Address (RFC 5061 §4.2.2).
    pub const DELETE_IP_ADDRESS: u16 = 0xC002;
    /// Error Cause Indication (RFC 5061 §4.2.3).
    pub const ERROR_CAUSE_INDICATION: u16 = 0xC003;
    /// Set Primary IP Address (RFC 5061 §4.2.4).
    pub const SET_PRIMARY_ADDRESS: u16 = 0xC004;
    /// Success Indication (RFC 5061 §4.2.5).
    pub const SUCCESS_INDICATION: u16 = 0xC005;
}

/// The error detection method of DTLS below SCTP (RFC 9653 §6).
pub const SCTP_OVER_DTLS: u32 = 1;

/// A parameter of a received chunk, not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawParam<'a> {
    /// The parameter type, as in [`param_kind`].
    pub kind: u16,
    /// The value, without padding.
    pub value: &'a [u8],
    /// The whole parameter with its header, without padding, as a report of an unknown one quotes it.
    pub bytes: &'a [u8],
}

impl<'a> RawParam<'a> {
    /// Decodes the parameter.
    ///
    /// # Errors
    /// [`TlvError::Value`] if its length does not fit its type.
    pub fn decode(&self) -> Result<Param<'a>, TlvError> {
        let value = self.value;
        let param = match self.kind {
            param_kind::HEARTBEAT_INFO => Some(Param::HeartbeatInfo(value)),
            param_kind::IPV4 => exactly(value).map(|a: [u8; 4]| Param::Ipv4(a.into())),
            param_kind::IPV6 => exactly(value).map(|a: [u8; 16]| Param::Ipv6(a.into())),
            param_kind::STATE_COOKIE => Some(Param::StateCookie(value)),
            param_kind::UNRECOGNIZED_PARAMETER => Some(Param::UnrecognizedParameter(value)),
            param_kind::COOKIE_PRESERVATIVE => {
                exactly(value).map(|a| Param::CookiePreservative(u32::from_be_bytes(a)))
            }
            param_kind::HOST_NAME => Some(Param::HostName(value)),
            param_kind::SUPPORTED_ADDRESS_TYPES => {
                U16List::from_wire(value).map(Param::SupportedAddressTypes)
            }
            param_kind::ECN_CAPABLE => exactly(value).map(|[]: [u8; 0]| Param::EcnCapable),
            param_kind::ZERO_CHECKSUM_ACCEPTABLE => {
                exactly(value).map(|a| Param::ZeroChecksumAcceptable(u32::from_be_bytes(a)))
            }
            param_kind::RANDOM => Some(Param::Random(value)),
            param_kind::CHUNKS => Some(Param::Chunks(value)),
            param_kind::HMAC_ALGO => U16List::from_wire(value).map(Param::HmacAlgo),
            param_kind::SUPPORTED_EXTENSIONS => Some(Param::SupportedExtensions(value)),
            // With a value it is another parameter, and unknown.
            param_kind::ACK_COPIES_REQUESTED if value.is_empty() => Some(Param::AckCopiesRequested),
            param_kind::FORWARD_TSN_SUPPORTED => {
                exactly(value).map(|[]: [u8; 0]| Param::ForwardTsnSupported)
            }
            _ => Some(Param::Unknown),
        };
        param.ok_or(TlvError::Value)
    }

    /// The action for an unknown parameter type.
    #[must_use]
    pub const fn unknown_action(&self) -> UnknownAction {
        UnknownAction::of((self.kind >> 8) as u8)
    }
}

/// `value` if it is `N` bytes long.
fn exactly<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    let mut cursor = Cursor(value);
    let array = cursor.array()?;
    cursor.end().map(|()| array)
}

/// A parameter, decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Param<'a> {
    /// The information that the sender of a HEARTBEAT gets back (RFC 9260 §3.3.5).
    HeartbeatInfo(&'a [u8]),
    /// An address of the sender (RFC 9260 §3.3.2.1.1).
    Ipv4(Ipv4Addr),
    /// An address of the sender (RFC 9260 §3.3.2.1.2).
    Ipv6(Ipv6Addr),
    /// The State Cookie, in INIT ACK (RFC 9260 §3.3.3.1.1).
    StateCookie(&'a [u8]),
    /// A parameter of the INIT that the sender of the INIT ACK does not know, header included
    /// (RFC 9260 §3.3.3.1.2). [`Params::new`] reads it.
    UnrecognizedParameter(&'a [u8]),
    /// How much longer the State Cookie should live, in milliseconds (RFC 9260 §3.3.2.1.3).
    CookiePreservative(u32),
    /// A host name with its terminating zero, which is answered with an ABORT
    /// (RFC 9260 §3.3.2.1.4).
    HostName(&'a [u8]),
    /// Address types that the sender supports, as in [`param_kind`] (RFC 9260 §3.3.2.1.5).
    SupportedAddressTypes(U16List<'a>),
    /// The sender uses ECN (RFC 9260 §3.3.2, RFC 4960 appendix A).
    EcnCapable,
    /// The sender accepts packets without a checksum if the lower layer protects them by this error detection
    /// method, such as [`SCTP_OVER_DTLS`] (RFC 9653 §4).
    ZeroChecksumAcceptable(u32),
    /// The sender's random number: 32 bytes (RFC 4895 §3.1).
    Random(&'a [u8]),
    /// Types of the chunks that the sender accepts only if they are authenticated (RFC 4895 §3.2).
    Chunks(&'a [u8]),
    /// HMAC identifiers that the sender supports, in descending order of preference (RFC 4895 §3.3).
    HmacAlgo(U16List<'a>),
    /// Types of the chunks of the extensions that the sender supports (RFC 5061 §4.2.7).
    SupportedExtensions(&'a [u8]),
    /// The sender requests a second copy of each SACK of its thin streams.
    AckCopiesRequested,
    /// The sender supports FORWARD-TSN (RFC 3758 §3.1).
    ForwardTsnSupported,
    /// A parameter of another type; see [`RawParam::unknown_action`]. It cannot be written by
    /// [`ParamsWriter::push`]; [`ParamsWriter::push_raw`] writes any type.
    Unknown,
}

impl From<IpAddr> for Param<'_> {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::Ipv4(address),
            IpAddr::V6(address) => Self::Ipv6(address),
        }
    }
}

impl Param<'_> {
    pub(super) fn encode(&self, sink: &mut Sink<'_>) {
        match *self {
            Self::HeartbeatInfo(value) => put(sink, param_kind::HEARTBEAT_INFO, value),
            Self::Ipv4(address) => put(sink, param_kind::IPV4, &address.octets()),
            Self::Ipv6(address) => put(sink, param_kind::IPV6, &address.octets()),
            Self::StateCookie(value) => put(sink, param_kind::STATE_COOKIE, value),
            Self::UnrecognizedParameter(value) => {
                put(sink, param_kind::UNRECOGNIZED_PARAMETER, value);
            }
            Self::CookiePreservative(ms) => {
                put(sink, param_kind::COOKIE_PRESERVATIVE, &ms.to_be_bytes());
            }
            Self::HostName(value) => put(sink, param_kind::HOST_NAME, value),
            Self::SupportedAddressTypes(types) => {
                sink.tlv(param_kind::SUPPORTED_ADDRESS_TYPES, |sink| types.encode(sink));
            }
            Self::EcnCapable => put(sink, param_kind::ECN_CAPABLE, &[]),
            Self::ZeroChecksumAcceptable(method) => {
                put(sink, param_kind::ZERO_CHECKSUM_ACCEPTABLE, &method.to_be_bytes());
            }
            Self::Random(value) => put(sink, param_kind::RANDOM, value),
            Self::Chunks(value) => put(sink, param_kind::CHUNKS, value),
            Self::HmacAlgo(ids) => sink.tlv(param_kind::HMAC_ALGO, |sink| ids.encode(sink)),
            Self::SupportedExtensions(value) => put(sink, param_kind::SUPPORTED_EXTENSIONS, value),
            Self::AckCopiesRequested => put(sink, param_kind::ACK_COPIES_REQUESTED, &[]),
            Self::ForwardTsnSupported => put(sink, param_kind::FORWARD_TSN_SUPPORTED, &[]),
            Self::Unknown => {}
        }
    }
}

fn put(sink: &mut Sink<'_>, kind: u16, value: &[u8]) {
    sink.tlv(kind, |sink| sink.put(value));
}

/// The parameters of a chunk, in order: an iterator that ends after a framing error.
///
/// Two lists are equal if they give the same parameters; padding does not count.
#[derive(Clone, Copy, Default, Debug)]
pub struct Params<'a> {
    rest: &'a [u8],
}

impl<'a> Params<'a> {
    /// The parameters in `bytes`, which begin with the header of the first one, as do the quotes in an
    /// Unrecognized Parameter and in error causes with addresses.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = Result<RawParam<'a>, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let tlv = split_tlv(&mut self.rest)?;
        Some(tlv.map(|tlv| RawParam { kind: tlv.kind, value: tlv.value, bytes: tlv.bytes }))
    }
}

impl std::iter::FusedIterator for Params<'_> {}

impl PartialEq for Params<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl Eq for Params<'_> {}

/// Appends parameters to a chunk that is being written.
///
/// Each method returns whether there was room; a parameter that does not fit is left out entirely, and a
/// smaller one may still follow.
pub struct ParamsWriter<'s, 'b> {
    sink: &'s mut Sink<'b>,
}

impl<'s, 'b> ParamsWriter<'s, 'b> {
    pub(super) const fn new(sink: &'s mut Sink<'b>) -> Self {
        Self { sink }
    }

    /// Appends `param`. [`Param::Unknown`] appends nothing.
    pub fn push(&mut self, param: &Param<'_>) -> bool {
        self.sink.whole(|sink| param.encode(sink))
    }

    /// Appends `param` unchanged, whatever its type.
    pub fn push_raw(&mut self, param: &RawParam<'_>) -> bool {
        self.sink.whole(|sink| put(sink, param.kind, param.value))
    }
}
