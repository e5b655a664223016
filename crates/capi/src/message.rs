//! Messages in and out.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use rexmit_sctp::recovery::Deadline;
use rexmit_sctp::{InboundMessage, OutboundMessage, Reliability};

use crate::status::rexmit_status::*;
use crate::status::{Failure, guard, slice};

/// The message may be delivered as soon as it is complete, out of the order of its stream.
pub const REXMIT_UNORDERED: u32 = 1;
/// The peer is asked to acknowledge its last chunk without delay (I bit, RFC 7053).
pub const REXMIT_IMMEDIATE: u32 = 2;
/// No limit; a value of `lifetime` and of `retransmissions`.
pub const REXMIT_UNLIMITED: u32 = u32::MAX;

/// Delivery options of a message. `REXMIT_DELIVERY` has the defaults: ordered and reliable, on stream 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_delivery {
    /// The outgoing stream.
    pub stream: u16,
    /// Reserved; must be 0.
    pub reserved: u16,
    /// Payload protocol identifier for the peer's application, in host byte order; 0 is unspecified.
    pub ppid: u32,
    /// REXMIT_UNORDERED and REXMIT_IMMEDIATE, or 0.
    pub flags: u32,
    /// The milliseconds after which the message is abandoned (RFC 3758 §4.1); REXMIT_UNLIMITED never abandons
    /// it.
    pub lifetime: u32,
    /// The retransmissions of a chunk after which the message is abandoned (RFC 7496 §3.1); REXMIT_UNLIMITED
    /// never abandons it. Only one of both may be limited.
    pub retransmissions: u32,
}

impl rexmit_delivery {
    pub(crate) fn message(self, payload: Bytes) -> Result<OutboundMessage, Failure> {
        let invalid = |text: &str| Err(Failure::new(REXMIT_INVALID_ARGUMENT, text));
        if self.flags & !(REXMIT_UNORDERED | REXMIT_IMMEDIATE) != 0 {
            return invalid("unknown flags of a message");
        }
        if self.reserved != 0 {
            return invalid("the reserved field of a message must be 0");
        }
        let reliability = match (self.lifetime, self.retransmissions) {
            (REXMIT_UNLIMITED, REXMIT_UNLIMITED) => Reliability::Full,
            (lifetime, REXMIT_UNLIMITED) => {
                Reliability::Timed(Duration::from_millis(lifetime.into()))
            }
            (REXMIT_UNLIMITED, most) => match u16::try_from(most) {
                Ok(most) => Reliability::MaxRetransmissions(most),
                Err(_) => return invalid("at most 65,535 retransmissions can be a limit"),
            },
            _ => {
                return invalid(
                    "only one of lifetime and retransmissions may be limited, and 0 is a limit: begin with REXMIT_DELIVERY(stream)",
                );
            }
        };
        Ok(OutboundMessage::new(self.stream, payload)
            .ppid(self.ppid)
            .unordered(self.flags & REXMIT_UNORDERED != 0)
            .immediate(self.flags & REXMIT_IMMEDIATE != 0)
            .reliability(reliability))
    }
}

/// A delivery with a deadline: `{REXMIT_DELIVERY(stream), milliseconds, probability}`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_timely_delivery {
    /// The stream, the order, and the other options of the delivery.
    pub delivery: rexmit_delivery,
    /// The milliseconds within which the message should arrive, more than 0. A late message is still delivered, unless
    /// its `lifetime` is over.
    pub within: u32,
    /// The probability with which it should arrive in time: more than 0 and less than 1, such as 0.999.
    pub probability: f64,
}

impl rexmit_timely_delivery {
    pub(crate) fn message(self, payload: Bytes) -> Result<OutboundMessage, Failure> {
        let deadline = deadline(self.within, self.probability)?;
        Ok(self.delivery.message(payload)?.deadline(Some(deadline)))
    }
}

/// A deadline of `within` milliseconds.
pub(crate) fn deadline(within: u32, probability: f64) -> Result<Deadline, Failure> {
    let invalid = |text: String| Err(Failure::new(REXMIT_INVALID_ARGUMENT, text));
    if !(probability > 0.0 && probability < 1.0) {
        return invalid(format!(
            "the probability of a deadline is {probability}; it must be above 0 and below 1"
        ));
    }
    if within == 0 {
        return invalid("a deadline is at least 1 ms".into());
    }
    Ok(Deadline::new(Duration::from_millis(within.into()), probability))
}

/// A part of a message to send.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_buffer {
    /// The bytes of this part.
    pub data: *const u8,
    /// How many.
    pub length: usize,
}

/// The parts of a message as one payload.
///
/// # Safety
/// `buffers` points to `count` buffers, each of which points to its bytes.
pub(crate) unsafe fn gather(
    buffers: *const rexmit_buffer,
    count: usize,
    limit: usize,
) -> Result<Bytes, Failure> {
    // SAFETY: As the caller promised.
    let buffers = unsafe { slice(buffers, count, "the buffers") }?;
    let mut length = 0_usize;
    for buffer in buffers {
        length = length.saturating_add(buffer.length);
    }
    if length > limit {
        let text = format!("the message has {length} bytes; at most {limit} are allowed");
        return Err(Failure::new(REXMIT_TOO_LARGE, text));
    }
    let mut payload = BytesMut::with_capacity(length);
    for buffer in buffers {
        // SAFETY: As the caller promised.
        payload.extend_from_slice(unsafe { slice(buffer.data, buffer.length, "a buffer") }?);
    }
    Ok(payload.freeze())
}

/// A message from the peer. Free it with `rexmit_message_free`.
#[repr(C)]
#[derive(Debug)]
pub struct rexmit_message {
    /// The bytes of the message.
    pub data: *const u8,
    /// How many.
    pub length: usize,
    /// Payload protocol identifier, as set by the peer's application.
    pub ppid: u32,
    /// The incoming stream.
    pub stream: u16,
    /// Whether the message was sent unordered.
    pub unordered: bool,
    /// The owner of the bytes; for `rexmit_message_free` only.
    pub owner: *mut rexmit_payload,
}

/// The owner of the bytes of a message.
#[derive(Debug)]
pub struct rexmit_payload(Bytes);

impl From<InboundMessage> for rexmit_message {
    fn from(message: InboundMessage) -> Self {
        let payload = Box::new(rexmit_payload(message.payload));
        Self {
            data: payload.0.as_ptr(),
            length: payload.0.len(),
            ppid: message.ppid,
            stream: message.stream,
            unordered: message.unordered,
            owner: Box::into_raw(payload),
        }
    }
}

/// Frees a message of `rexmit_receive`, and makes it empty, so that a second call does nothing. NULL is ignored.
///
/// # Safety
/// `message` is NULL, or points to a message of `rexmit_receive` or to zeros.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_message_free(message: *mut rexmit_message) {
    guard((), || {
        // SAFETY: As this function demands.
        let Some(message) = (unsafe { message.as_mut() }) else { return };
        let owner = std::mem::replace(&mut message.owner, std::ptr::null_mut());
        if !owner.is_null() {
            // SAFETY: It is a box that was given away with the message.
            drop(unsafe { Box::from_raw(owner) });
        }
        (message.data, message.length) = (std::ptr::null(), 0);
    });
}
