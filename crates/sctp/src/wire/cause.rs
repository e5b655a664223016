//! Error causes of ERROR, ABORT and ASCONF-ACK (RFC 9260 §3.3.10, RFC 4895 §4, RFC 5061 §4.3).

use std::net::IpAddr;

use super::cursor::Cursor;
use super::param::Param;
use super::sink::Sink;
use super::tlv::{Tlv, TlvError, split_tlv};
use super::u16_list::U16List;

/// Cause codes (RFC 9260 §3.3.10).
mod code {
    pub(super) const INVALID_STREAM_IDENTIFIER: u16 = 1;
    pub(super) const MISSING_MANDATORY_PARAMETER: u16 = 2;
    pub(super) const STALE_COOKIE: u16 = 3;
    pub(super) const OUT_OF_RESOURCE: u16 = 4;
    pub(super) const UNRESOLVABLE_ADDRESS: u16 = 5;
    pub(super) const UNRECOGNIZED_CHUNK_TYPE: u16 = 6;
    pub(super) const INVALID_MANDATORY_PARAMETER: u16 = 7;
    pub(super) const UNRECOGNIZED_PARAMETERS: u16 = 8;
    pub(super) const NO_USER_DATA: u16 = 9;
    pub(super) const COOKIE_RECEIVED_WHILE_SHUTTING_DOWN: u16 = 10;
    pub(super) const RESTART_WITH_NEW_ADDRESSES: u16 = 11;
    pub(super) const USER_INITIATED_ABORT: u16 = 12;
    pub(super) const PROTOCOL_VIOLATION: u16 = 13;
    pub(super) const DELETE_LAST_ADDRESS: u16 = 0xA0;
    pub(super) const RESOURCE_SHORTAGE: u16 = 0xA1;
    pub(super) const DELETE_SOURCE_ADDRESS: u16 = 0xA2;
    pub(super) const ILLEGAL_ASCONF_ACK: u16 = 0xA3;
    pub(super) const NOT_AUTHORIZED: u16 = 0xA4;
    pub(super) const UNSUPPORTED_HMAC: u16 = 0x105;
}

/// One error cause (RFC 9260 §3.3.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause<'a> {
    /// DATA arrived on this stream, which does not exist (§3.3.10.1).
    InvalidStreamIdentifier(u16),
    /// Types of the parameters that INIT or INIT ACK lacks (§3.3.10.2).
    MissingMandatoryParameter(U16List<'a>),
    /// The State Cookie has expired (§3.3.10.3).
    StaleCookie {
        /// Measure of Staleness in microseconds; 0 if the sender does not give it.
        measure_of_staleness_us: u32,
    },
    /// The sender lacks a resource (§3.3.10.4).
    OutOfResource,
    /// The address parameter that cannot be resolved, header included (§3.3.10.5).
    UnresolvableAddress(&'a [u8]),
    /// The chunk of a type that the sender does not know, header included (§3.3.10.6).
    UnrecognizedChunkType(&'a [u8]),
    /// A mandatory parameter of INIT or INIT ACK has an invalid value (§3.3.10.7).
    InvalidMandatoryParameter,
    /// The parameters that the sender does not know, headers included (§3.3.10.8);
    /// [`super::Params::new`] reads them.
    UnrecognizedParameters(&'a [u8]),
    /// A DATA chunk had no user data (§3.3.10.9).
    NoUserData {
        /// The TSN of the chunk.
        tsn: u32,
    },
    /// COOKIE ECHO arrived in the SHUTDOWN-ACK-SENT state (§3.3.10.10).
    CookieReceivedWhileShuttingDown,
    /// The address parameters that a restart would add, headers included (§3.3.10.11);
    /// [`super::Params::new`] reads them.
    RestartWithNewAddresses(&'a [u8]),
    /// The application's reason for the abort (§3.3.10.12).
    UserInitiatedAbort(&'a [u8]),
    /// A violation that no other cause describes, with text from the sender (§3.3.10.13).
    ProtocolViolation(&'a [u8]),
    /// The quoted request would delete the last address (RFC 5061 §4.3.1).
    DeleteLastAddress(&'a [u8]),
    /// The sender lacks a resource for the quoted request (RFC 5061 §4.3.2).
    ResourceShortage(&'a [u8]),
    /// The quoted request would delete the address that it came from (RFC 5061 §4.3.3).
    DeleteSourceAddress(&'a [u8]),
    /// An ASCONF-ACK without a matching ASCONF (RFC 5061 §4.3.4).
    IllegalAsconfAck,
    /// The quoted request is refused by policy (RFC 5061 §4.3.5).
    NotAuthorized(&'a [u8]),
    /// AUTH has this HMAC identifier, which was not offered (RFC 4895 §4).
    UnsupportedHmac(u16),
    /// A cause with a code that is not one of the above.
    Unknown {
        /// The cause code.
        code: u16,
        /// The cause-specific information.
        value: &'a [u8],
    },
}

impl<'a> Cause<'a> {
    fn decode(tlv: &Tlv<'a>) -> Result<Self, TlvError> {
        let value = tlv.value;
        let cause = match tlv.kind {
            code::INVALID_STREAM_IDENTIFIER => invalid_stream_identifier(value),
            code::MISSING_MANDATORY_PARAMETER => missing_mandatory_parameter(value),
            code::STALE_COOKIE => exactly_u32(value)
                .map(|staleness| Self::StaleCookie { measure_of_staleness_us: staleness }),
            code::OUT_OF_RESOURCE => empty(value, Self::OutOfResource),
            code::UNRESOLVABLE_ADDRESS => Some(Self::UnresolvableAddress(value)),
            code::UNRECOGNIZED_CHUNK_TYPE => Some(Self::UnrecognizedChunkType(value)),
            code::INVALID_MANDATORY_PARAMETER => empty(value, Self::InvalidMandatoryParameter),
            code::UNRECOGNIZED_PARAMETERS => Some(Self::UnrecognizedParameters(value)),
            code::NO_USER_DATA => exactly_u32(value).map(|tsn| Self::NoUserData { tsn }),
            code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN => {
                empty(value, Self::CookieReceivedWhileShuttingDown)
            }
            code::RESTART_WITH_NEW_ADDRESSES => Some(Self::RestartWithNewAddresses(value)),
            code::USER_INITIATED_ABORT => Some(Self::UserInitiatedAbort(value)),
            code::PROTOCOL_VIOLATION => Some(Self::ProtocolViolation(value)),
            code::DELETE_LAST_ADDRESS => Some(Self::DeleteLastAddress(value)),
            code::RESOURCE_SHORTAGE => Some(Self::ResourceShortage(value)),
            code::DELETE_SOURCE_ADDRESS => Some(Self::DeleteSourceAddress(value)),
            code::ILLEGAL_ASCONF_ACK => empty(value, Self::IllegalAsconfAck),
            code::NOT_AUTHORIZED => Some(Self::NotAuthorized(value)),
            code::UNSUPPORTED_HMAC => exactly_u16(value).map(Self::UnsupportedHmac),
            code => Some(Self::Unknown { code, value }),
        };
        cause.ok_or(TlvError::Value)
    }

    /// The cause code (RFC 9260 §3.3.10).
    #[must_use]
    pub const fn code(&self) -> u16 {
        match *self {
            Self::InvalidStreamIdentifier(_) => code::INVALID_STREAM_IDENTIFIER,
            Self::MissingMandatoryParameter(_) => code::MISSING_MANDATORY_PARAMETER,
            Self::StaleCookie { .. } => code::STALE_COOKIE,
            Self::OutOfResource => code::OUT_OF_RESOURCE,
            Self::UnresolvableAddress(_) => code::UNRESOLVABLE_ADDRESS,
            Self::UnrecognizedChunkType(_) => code::UNRECOGNIZED_CHUNK_TYPE,
            Self::InvalidMandatoryParameter => code::INVALID_MANDATORY_PARAMETER,
            Self::UnrecognizedParameters(_) => code::UNRECOGNIZED_PARAMETERS,
            Self::NoUserData { .. } => code::NO_USER_DATA,
            Self::CookieReceivedWhileShuttingDown => code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN,
            Self::RestartWithNewAddresses(_) => code::RESTART_WITH_NEW_ADDRESSES,
            Self::UserInitiatedAbort(_) => code::USER_INITIATED_ABORT,
            Self::ProtocolViolation(_) => code::PROTOCOL_VIOLATION,
            Self::DeleteLastAddress(_) => code::DELETE_LAST_ADDRESS,
            Self::ResourceShortage(_) => code::RESOURCE_SHORTAGE,
            Self::DeleteSourceAddress(_) => code::DELETE_SOURCE_ADDRESS,
            Self::IllegalAsconfAck => code::ILLEGAL_ASCONF_ACK,
            Self::NotAuthorized(_) => code::NOT_AUTHORIZED,
            Self::UnsupportedHmac(_) => code::UNSUPPORTED_HMAC,
            Self::Unknown { code, .. } => code,
        }
    }

    fn encode(&self, sink: &mut Sink<'_>) {
        sink.tlv(self.code(), |sink| match *self {
            Self::InvalidStreamIdentifier(stream) => {
                sink.put_u16(stream);
                sink.put_u16(0);
            }
            Self::MissingMandatoryParameter(kinds) => {
                // More than a chunk can hold does not fit the sink either.
                sink.put_u32(u32::try_from(kinds.len()).unwrap_or(u32::MAX));
                kinds.encode(sink);
            }
            Self::StaleCookie { measure_of_staleness_us: word }
            | Self::NoUserData { tsn: word } => {
                sink.put_u32(word);
            }
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieReceivedWhileShuttingDown
            | Self::IllegalAsconfAck => {}
            Self::UnsupportedHmac(hmac_id) => sink.put_u16(hmac_id),
            Self::UnresolvableAddress(value)
            | Self::UnrecognizedChunkType(value)
            | Self::UnrecognizedParameters(value)
            | Self::RestartWithNewAddresses(value)
            | Self::UserInitiatedAbort(value)
            | Self::ProtocolViolation(value)
            | Self::DeleteLastAddress(value)
            | Self::ResourceShortage(value)
            | Self::DeleteSourceAddress(value)
            | Self::NotAuthorized(value)
            | Self::Unknown { value, .. } => sink.put(value),
        });
    }
}

fn invalid_stream_identifier<'a>(value: &[u8]) -> Option<Cause<'a>> {
    let mut cursor = Cursor(value);
    let stream = cursor.u16()?;
    let _reserved = cursor.u16()?;
    cursor.end().map(|()| Cause::InvalidStreamIdentifier(stream))
}

fn missing_mandatory_parameter(value: &[u8]) -> Option<Cause<'_>> {
    let mut cursor = Cursor(value);
    let count = usize::try_from(cursor.u32()?).ok()?;
    let kinds = cursor.bytes(count.checked_mul(2)?)?;
    cursor.end()?;
    U16List::from_wire(kinds).map(Cause::MissingMandatoryParameter)
}

fn exactly_u32(value: &[u8]) -> Option<u32> {
    let mut cursor = Cursor(value);
    let word = cursor.u32()?;
    cursor.end().map(|()| word)
}

fn exactly_u16(value: &[u8]) -> Option<u16> {
    let mut cursor = Cursor(value);
    let number = cursor.u16()?;
    cursor.end().map(|()| number)
}

fn empty<'a>(value: &[u8], cause: Cause<'a>) -> Option<Cause<'a>> {
    value.is_empty().then_some(cause)
}

/// The error causes of a chunk, in order: an iterator that ends after a framing error.
///
/// Two lists are equal if they give the same causes; padding does not count.
#[derive(Clone, Copy, Default, Debug)]
pub struct Causes<'a> {
    rest: &'a [u8],
}

impl<'a> Causes<'a> {
    /// The causes in `bytes`, the value of an ERROR or ABORT.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Causes<'a> {
    type Item = Result<Cause<'a>, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let tlv = split_tlv(&mut self.rest)?;
        Some(tlv.and_then(|tlv| Cause::decode(&tlv)))
    }
}

impl std::iter::FusedIterator for Causes<'_> {}

impl PartialEq for Causes<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl Eq for Causes<'_> {}

/// Appends error causes to a chunk that is being written.
///
/// Each method returns whether there was room; a cause that does not fit is left out entirely, and a smaller
/// one may still follow.
pub struct CausesWriter<'s, 'b> {
    sink: &'s mut Sink<'b>,
}

impl<'s, 'b> CausesWriter<'s, 'b> {
    pub(super) const fn new(sink: &'s mut Sink<'b>) -> Self {
        Self { sink }
    }

    /// Appends `cause`.
    pub fn push(&mut self, cause: &Cause<'_>) -> bool {
        self.sink.whole(|sink| cause.encode(sink))
    }

    /// Appends those of `causes` that can be read and fit.
    pub(super) fn push_all(&mut self, causes: Causes<'_>) {
        for cause in causes.flatten() {
            self.push(&cause);
        }
    }

    /// Appends one Unrecognized Parameters cause that quotes each of `params`, given complete and without padding as in
    /// [`super::RawParam::bytes`] (RFC 9260 §3.3.10.8).
    pub fn push_unrecognized_parameters<'p>(
        &mut self,
        params: impl IntoIterator<Item = &'p [u8]>,
    ) -> bool {
        self.sink.whole(|sink| {
            sink.tlv(code::UNRECOGNIZED_PARAMETERS, |sink| {
                for param in params {
                    sink.pad();
                    sink.put(param);
                }
            });
        })
    }

    /// Appends one Restart of an Association with New Addresses cause (RFC 9260 §3.3.10.11).
    pub fn push_restart_with_new_addresses(
        &mut self,
        addresses: impl IntoIterator<Item = IpAddr>,
    ) -> bool {
        self.sink.whole(|sink| {
            sink.tlv(code::RESTART_WITH_NEW_ADDRESSES, |sink| {
                for address in addresses {
                    Param::from(address).encode(sink);
                }
            });
        })
    }
}
