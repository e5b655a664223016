//! RE-CONFIG and its parameters (RFC 6525 §3.1, §4).

use super::cursor::Cursor;
use super::frame::kind;
use super::param::{Params, RawParam, param_kind};
use super::sink::Sink;
use super::tlv::TlvError;
use super::u16_list::U16List;

/// The RE-CONFIG chunk (RFC 6525 §3.1).
///
/// Whether its parameters may be combined is not checked here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReConfig<'a> {
    params: Params<'a>,
}

impl<'a> ReConfig<'a> {
    pub(super) const fn new(value: &'a [u8]) -> Self {
        Self { params: Params::new(value) }
    }

    /// The parameters, in order.
    #[must_use]
    pub const fn params(&self) -> ReConfigParams<'a> {
        ReConfigParams { params: self.params }
    }
}

/// The parameters of a RE-CONFIG, in order: an iterator that ends after a framing error.
#[derive(Clone, Copy, Debug)]
pub struct ReConfigParams<'a> {
    params: Params<'a>,
}

impl<'a> Iterator for ReConfigParams<'a> {
    type Item = Result<ReConfigParam<'a>, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.params.next()?.and_then(|param| ReConfigParam::decode(&param)))
    }
}

impl std::iter::FusedIterator for ReConfigParams<'_> {}

/// One parameter of a RE-CONFIG (RFC 6525 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReConfigParam<'a> {
    /// The sender wants to reset its outgoing streams (RFC 6525 §4.1).
    OutgoingSsnResetRequest {
        /// Re-configuration Request Sequence Number.
        request_sequence: u32,
        /// Re-configuration Response Sequence Number: the number of the incoming request that this one answers;
        /// otherwise the next expected number minus one.
        response_sequence: u32,
        /// Sender's Last Assigned TSN.
        last_assigned_tsn: u32,
        /// The streams; an empty list means all.
        streams: U16List<'a>,
    },
    /// The sender asks the receiver to reset its outgoing streams (RFC 6525 §4.2).
    IncomingSsnResetRequest {
        /// Re-configuration Request Sequence Number.
        request_sequence: u32,
        /// The streams; an empty list means all.
        streams: U16List<'a>,
    },
    /// The sender asks to restart all TSNs and SSNs (RFC 6525 §4.3).
    SsnTsnResetRequest {
        /// Re-configuration Request Sequence Number.
        request_sequence: u32,
    },
    /// The result of a request (RFC 6525 §4.4).
    Response {
        /// Re-configuration Response Sequence Number: the request's sequence number.
        response_sequence: u32,
        /// The result.
        result: ReConfigResult,
        /// Sender's Next TSN and Receiver's Next TSN, in response to an SSN/TSN reset.
        next_tsns: Option<(u32, u32)>,
    },
    /// The sender wants more outgoing streams (RFC 6525 §4.5).
    AddOutgoingStreamsRequest {
        /// Re-configuration Request Sequence Number.
        request_sequence: u32,
        /// How many.
        new_streams: u16,
    },
    /// The sender asks the receiver to have more outgoing streams (RFC 6525 §4.6).
    AddIncomingStreamsRequest {
        /// Re-configuration Request Sequence Number.
        request_sequence: u32,
        /// How many.
        new_streams: u16,
    },
    /// A parameter of a type that is not defined for RE-CONFIG; see [`RawParam::unknown_action`].
    Unknown(RawParam<'a>),
}

impl<'a> ReConfigParam<'a> {
    fn decode(raw: &RawParam<'a>) -> Result<Self, TlvError> {
        let cursor = Cursor(raw.value);
        let param = match raw.kind {
            param_kind::OUTGOING_SSN_RESET_REQUEST => Self::decode_outgoing(cursor),
            param_kind::INCOMING_SSN_RESET_REQUEST => Self::decode_incoming(cursor),
            param_kind::SSN_TSN_RESET_REQUEST => Self::decode_ssn_tsn(cursor),
            param_kind::RE_CONFIG_RESPONSE => Self::decode_response(cursor),
            param_kind::ADD_OUTGOING_STREAMS_REQUEST => {
                decode_add(cursor).map(|(request_sequence, new_streams)| {
                    Self::AddOutgoingStreamsRequest { request_sequence, new_streams }
                })
            }
            param_kind::ADD_INCOMING_STREAMS_REQUEST => {
                decode_add(cursor).map(|(request_sequence, new_streams)| {
                    Self::AddIncomingStreamsRequest { request_sequence, new_streams }
                })
            }
            _ => Some(Self::Unknown(*raw)),
        };
        param.ok_or(TlvError::Value)
    }

    fn decode_outgoing(mut cursor: Cursor<'a>) -> Option<Self> {
        Some(Self::OutgoingSsnResetRequest {
            request_sequence: cursor.u32()?,
            response_sequence: cursor.u32()?,
            last_assigned_tsn: cursor.u32()?,
            streams: U16List::from_wire(cursor.0)?,
        })
    }

    fn decode_incoming(mut cursor: Cursor<'a>) -> Option<Self> {
        Some(Self::IncomingSsnResetRequest {
            request_sequence: cursor.u32()?,
            streams: U16List::from_wire(cursor.0)?,
        })
    }

    fn decode_ssn_tsn(mut cursor: Cursor<'a>) -> Option<Self> {
        let request_sequence = cursor.u32()?;
        cursor.end().map(|()| Self::SsnTsnResetRequest { request_sequence })
    }

    fn decode_response(mut cursor: Cursor<'a>) -> Option<Self> {
        let response_sequence = cursor.u32()?;
        let result = ReConfigResult::from(cursor.u32()?);
        let next_tsns = match cursor.0 {
            [] => None,
            _ => Some((cursor.u32()?, cursor.u32()?)),
        };
        cursor.end().map(|()| Self::Response { response_sequence, result, next_tsns })
    }

    fn encode(&self, sink: &mut Sink<'_>) {
        sink.tlv(self.kind(), |sink| match *self {
            Self::OutgoingSsnResetRequest {
                request_sequence,
                response_sequence,
                last_assigned_tsn,
                streams,
            } => {
                sink.put_u32(request_sequence);
                sink.put_u32(response_sequence);
                sink.put_u32(last_assigned_tsn);
                streams.encode(sink);
            }
            Self::IncomingSsnResetRequest { request_sequence, streams } => {
                sink.put_u32(request_sequence);
                streams.encode(sink);
            }
            Self::SsnTsnResetRequest { request_sequence } => sink.put_u32(request_sequence),
            Self::Response { response_sequence, result, next_tsns } => {
                sink.put_u32(response_sequence);
                sink.put_u32(result.into());
                if let Some((senders, receivers)) = next_tsns {
                    sink.put_u32(senders);
                    sink.put_u32(receivers);
                }
            }
            Self::AddOutgoingStreamsRequest { request_sequence, new_streams }
            | Self::AddIncomingStreamsRequest { request_sequence, new_streams } => {
                sink.put_u32(request_sequence);
                sink.put_u16(new_streams);
                sink.put_u16(0);
            }
            Self::Unknown(raw) => sink.put(raw.value),
        });
    }

    const fn kind(&self) -> u16 {
        match self {
            Self::OutgoingSsnResetRequest { .. } => param_kind::OUTGOING_SSN_RESET_REQUEST,
            Self::IncomingSsnResetRequest { .. } => param_kind::INCOMING_SSN_RESET_REQUEST,
            Self::SsnTsnResetRequest { .. } => param_kind::SSN_TSN_RESET_REQUEST,
            Self::Response { .. } => param_kind::RE_CONFIG_RESPONSE,
            Self::AddOutgoingStreamsRequest { .. } => param_kind::ADD_OUTGOING_STREAMS_REQUEST,
            Self::AddIncomingStreamsRequest { .. } => param_kind::ADD_INCOMING_STREAMS_REQUEST,
            Self::Unknown(raw) => raw.kind,
        }
    }
}

fn decode_add(mut cursor: Cursor<'_>) -> Option<(u32, u16)> {
    let request_sequence = cursor.u32()?;
    let new_streams = cursor.u16()?;
    let _reserved = cursor.u16()?;
    cursor.end().map(|()| (request_sequence, new_streams))
}

/// The result of a request (RFC 6525 §4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReConfigResult {
    /// Success: nothing to do.
    NothingToDo,
    /// Success: performed.
    Performed,
    /// Denied.
    Denied,
    /// Error: wrong SSN.
    WrongSsn,
    /// Error: a request is already in progress.
    AlreadyInProgress,
    /// Error: bad sequence number.
    BadSequenceNumber,
    /// In progress: the request is to be sent again.
    InProgress,
    /// A result above 6, which is not defined. Convert a `u32` with `from` to get the right variant.
    Other(u32),
}

impl From<u32> for ReConfigResult {
    fn from(code: u32) -> Self {
        match code {
            0 => Self::NothingToDo,
            1 => Self::Performed,
            2 => Self::Denied,
            3 => Self::WrongSsn,
            4 => Self::AlreadyInProgress,
            5 => Self::BadSequenceNumber,
            6 => Self::InProgress,
            other => Self::Other(other),
        }
    }
}

impl From<ReConfigResult> for u32 {
    fn from(result: ReConfigResult) -> Self {
        match result {
            ReConfigResult::NothingToDo => 0,
            ReConfigResult::Performed => 1,
            ReConfigResult::Denied => 2,
            ReConfigResult::WrongSsn => 3,
            ReConfigResult::AlreadyInProgress => 4,
            ReConfigResult::BadSequenceNumber => 5,
            ReConfigResult::InProgress => 6,
            ReConfigResult::Other(other) => other,
        }
    }
}

/// Appends a RE-CONFIG chunk.
pub(super) fn encode_re_config<'p>(
    sink: &mut Sink<'_>,
    params: impl IntoIterator<Item = ReConfigParam<'p>>,
) {
    sink.chunk(kind::RE_CONFIG, 0, |sink| {
        for param in params {
            param.encode(sink);
        }
    });
}
