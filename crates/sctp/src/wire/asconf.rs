//! ASCONF and ASCONF-ACK with their parameters (RFC 5061 §4.1, §4.2).

use std::net::IpAddr;

use super::TLV_HEADER_LEN;
use super::cause::{Cause, Causes, CausesWriter};
use super::cursor::Cursor;
use super::frame::{ChunkError, kind};
use super::param::{Param, Params, RawParam, param_kind};
use super::sink::Sink;
use super::tlv::TlvError;

/// Requests to change the addresses of the sender (RFC 5061 §4.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asconf<'a> {
    /// Sequence Number.
    pub serial: u32,
    /// Address Parameter: an address of the sender that the receiver knows; unspecified if the receiver has
    /// to find the association in another way.
    pub address: IpAddr,
    params: Params<'a>,
}

impl<'a> Asconf<'a> {
    /// The requests, in order.
    #[must_use]
    pub const fn requests(&self) -> AsconfRequests<'a> {
        AsconfRequests { params: self.params }
    }

    pub(super) fn decode(value: &'a [u8]) -> Result<Self, ChunkError> {
        let mut cursor = Cursor(value);
        let serial = cursor.u32().ok_or(ChunkError::Length { kind: kind::ASCONF })?;
        let address = address_at(cursor.0).ok_or(ChunkError::NoAddress)?;
        let mut params = Params::new(cursor.0);
        params.next();
        Ok(Self { serial, address, params })
    }
}

/// The address in the address parameter at the start of `bytes`.
fn address_at(bytes: &[u8]) -> Option<IpAddr> {
    match Params::new(bytes).next()?.ok()?.decode().ok()? {
        Param::Ipv4(address) => Some(address.into()),
        Param::Ipv6(address) => Some(address.into()),
        _ => None,
    }
}

/// The requests of an ASCONF, in order: an iterator that ends after a framing error.
#[derive(Clone, Copy, Debug)]
pub struct AsconfRequests<'a> {
    params: Params<'a>,
}

impl<'a> Iterator for AsconfRequests<'a> {
    type Item = Result<AsconfRequest<'a>, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.params.next()?.and_then(|param| AsconfRequest::decode(&param)))
    }
}

impl std::iter::FusedIterator for AsconfRequests<'_> {}

/// One request of an ASCONF (RFC 5061 §4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsconfRequest<'a> {
    /// ASCONF-Request Correlation ID, repeated in the response.
    pub correlation: u32,
    /// The request.
    pub change: AsconfChange<'a>,
    /// The whole parameter, to be quoted in a refusal. Empty in a request to be written.
    pub bytes: &'a [u8],
}

/// A request of an ASCONF. An unspecified address stands for the one that the packet
/// comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsconfChange<'a> {
    /// Add IP Address (RFC 5061 §4.2.1).
    Add(IpAddr),
    /// Delete IP Address (RFC 5061 §4.2.2); unspecified: all but the one that the packet comes from.
    Delete(IpAddr),
    /// Set Primary IP Address (RFC 5061 §4.2.4).
    SetPrimary(IpAddr),
    /// A parameter of a type that is not defined for ASCONF. It cannot be written.
    Unknown(RawParam<'a>),
}

impl<'a> AsconfRequest<'a> {
    fn decode(raw: &RawParam<'a>) -> Result<Self, TlvError> {
        let mut cursor = Cursor(raw.value);
        let correlation = cursor.u32();
        let address = || exactly_address(cursor.0).ok_or(TlvError::Value);
        let change = match raw.kind {
            param_kind::ADD_IP_ADDRESS => AsconfChange::Add(address()?),
            param_kind::DELETE_IP_ADDRESS => AsconfChange::Delete(address()?),
            param_kind::SET_PRIMARY_ADDRESS => AsconfChange::SetPrimary(address()?),
            _ => AsconfChange::Unknown(*raw),
        };
        Ok(Self { correlation: correlation.unwrap_or(0), change, bytes: raw.bytes })
    }

    fn encode(&self, sink: &mut Sink<'_>) {
        let (kind, address) = match self.change {
            AsconfChange::Add(address) => (param_kind::ADD_IP_ADDRESS, address),
            AsconfChange::Delete(address) => (param_kind::DELETE_IP_ADDRESS, address),
            AsconfChange::SetPrimary(address) => (param_kind::SET_PRIMARY_ADDRESS, address),
            AsconfChange::Unknown(_) => return,
        };
        sink.tlv(kind, |sink| {
            sink.put_u32(self.correlation);
            Param::from(address).encode(sink);
        });
    }
}

/// The address in `bytes`, which are one address parameter.
fn exactly_address(bytes: &[u8]) -> Option<IpAddr> {
    let address = address_at(bytes)?;
    let len = TLV_HEADER_LEN + if address.is_ipv4() { 4 } else { 16 };
    (bytes.len() == len).then_some(address)
}

/// Answers to the requests of an ASCONF (RFC 5061 §4.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AsconfAck<'a> {
    /// Sequence Number of the ASCONF.
    pub serial: u32,
    params: Params<'a>,
}

impl<'a> AsconfAck<'a> {
    /// The answers, in order. A request without an answer was performed, unless one before it was refused
    /// (RFC 5061 §4.1.2).
    #[must_use]
    pub const fn answers(&self) -> AsconfAnswers<'a> {
        AsconfAnswers { params: self.params }
    }

    pub(super) fn decode(value: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor(value);
        Some(Self { serial: cursor.u32()?, params: Params::new(cursor.0) })
    }
}

/// The answers of an ASCONF-ACK, in order: an iterator that ends after a framing error.
#[derive(Clone, Copy, Debug)]
pub struct AsconfAnswers<'a> {
    params: Params<'a>,
}

impl<'a> Iterator for AsconfAnswers<'a> {
    type Item = Result<AsconfAnswer<'a>, TlvError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.params.next()?.and_then(|param| AsconfAnswer::decode(&param)))
    }
}

impl std::iter::FusedIterator for AsconfAnswers<'_> {}

/// One answer of an ASCONF-ACK (RFC 5061 §4.2.3, §4.2.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsconfAnswer<'a> {
    /// The request was refused.
    Refused {
        /// The request's Correlation ID.
        correlation: u32,
        /// Why.
        causes: Causes<'a>,
    },
    /// The request was done.
    Done {
        /// The request's Correlation ID.
        correlation: u32,
    },
    /// A parameter of a type that is not defined for ASCONF-ACK. It cannot be written.
    Unknown(RawParam<'a>),
}

impl<'a> AsconfAnswer<'a> {
    fn decode(raw: &RawParam<'a>) -> Result<Self, TlvError> {
        let mut cursor = Cursor(raw.value);
        let mut correlation = || cursor.u32().ok_or(TlvError::Value);
        Ok(match raw.kind {
            param_kind::ERROR_CAUSE_INDICATION => {
                let correlation = correlation()?;
                Self::Refused { correlation, causes: Causes::new(cursor.0) }
            }
            param_kind::SUCCESS_INDICATION => {
                let correlation = correlation()?;
                cursor.end().ok_or(TlvError::Value)?;
                Self::Done { correlation }
            }
            _ => Self::Unknown(*raw),
        })
    }
}

/// Appends an ASCONF.
pub(super) fn encode_asconf<'p>(
    sink: &mut Sink<'_>,
    serial: u32,
    address: IpAddr,
    requests: impl IntoIterator<Item = AsconfRequest<'p>>,
) {
    sink.chunk(kind::ASCONF, 0, |sink| {
        sink.put_u32(serial);
        Param::from(address).encode(sink);
        for request in requests {
            request.encode(sink);
        }
    });
}

/// Appends an ASCONF-ACK.
pub(super) fn encode_asconf_ack(
    sink: &mut Sink<'_>,
    serial: u32,
    answers: impl FnOnce(&mut AnswersWriter<'_, '_>),
) {
    sink.chunk(kind::ASCONF_ACK, 0, |sink| {
        sink.put_u32(serial);
        answers(&mut AnswersWriter { sink });
    });
}

/// Appends answers to an ASCONF-ACK that is being written.
///
/// Each method returns whether there was room; an answer that does not fit is left out entirely.
pub struct AnswersWriter<'s, 'b> {
    sink: &'s mut Sink<'b>,
}

impl AnswersWriter<'_, '_> {
    /// Appends that the request was refused with the error `cause`.
    pub fn refused(&mut self, correlation: u32, cause: &Cause<'_>) -> bool {
        self.put_refused(correlation, |causes| _ = causes.push(cause))
    }

    /// Appends that the request was performed. Only required after an earlier request was refused.
    pub fn done(&mut self, correlation: u32) -> bool {
        self.sink.whole(|sink| {
            sink.tlv(param_kind::SUCCESS_INDICATION, |sink| sink.put_u32(correlation));
        })
    }

    /// Appends a decoded answer; [`AsconfAnswer::Unknown`] is not written.
    pub(super) fn push(&mut self, answer: &AsconfAnswer<'_>) -> bool {
        match *answer {
            AsconfAnswer::Refused { correlation, causes } => {
                self.put_refused(correlation, |writer| writer.push_all(causes))
            }
            AsconfAnswer::Done { correlation } => self.done(correlation),
            AsconfAnswer::Unknown(_) => false,
        }
    }

    fn put_refused(
        &mut self,
        correlation: u32,
        causes: impl FnOnce(&mut CausesWriter<'_, '_>),
    ) -> bool {
        self.sink.whole(|sink| {
            sink.tlv(param_kind::ERROR_CAUSE_INDICATION, |sink| {
                sink.put_u32(correlation);
                let before = sink.len();
                causes(&mut CausesWriter::new(sink));
                if sink.len() == before {
                    sink.give_up();
                }
            });
        })
    }
}
