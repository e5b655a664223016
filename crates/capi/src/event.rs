//! Events of an endpoint, as C reads them.

use std::ffi::{CString, c_char};

use bytes::Bytes;
use rexmit_core::Machine;
use rexmit_sctp::{AddressChange, CloseReason, Event, FailReason, PathState};

use crate::address::rexmit_address;
use crate::endpoint::{call, rexmit_endpoint};
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, store, text};

/// The kind of an event. Later versions may add kinds: ignore those that you do not know.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_event_kind {
    /// An event that this version of the API does not describe.
    REXMIT_EVENT_OTHER = 0,
    /// The association is established: `connected`.
    REXMIT_EVENT_CONNECTED = 1,
    /// `rexmit_receive` has a message. Reported once until everything was received.
    REXMIT_EVENT_READABLE = 2,
    /// The send buffer has room again after REXMIT_BUFFER_FULL.
    REXMIT_EVENT_WRITABLE = 3,
    /// The last chunk of a message was sent: `message`.
    REXMIT_EVENT_MESSAGE_SENT = 4,
    /// Every chunk of a message is acknowledged: `message`.
    REXMIT_EVENT_MESSAGE_ACKNOWLEDGED = 5,
    /// A message failed: it will not be delivered, or may not have been delivered. Data: `message`.
    REXMIT_EVENT_MESSAGE_FAILED = 6,
    /// The peer has begun to shut down: it accepts no more messages.
    REXMIT_EVENT_PEER_SHUTDOWN = 7,
    /// The peer has restarted: unacknowledged messages have failed.
    REXMIT_EVENT_PEER_RESTARTED = 8,
    /// Outgoing streams were reset, or the peer refused: `streams`.
    REXMIT_EVENT_STREAMS_RESET = 9,
    /// The peer has reset its outgoing streams. Data: `streams`.
    REXMIT_EVENT_PEER_RESET_STREAMS = 10,
    /// The state of a path has changed. Data: `path`.
    REXMIT_EVENT_PATH_STATUS = 11,
    /// New data is sent over another path. Data: `path`.
    REXMIT_EVENT_DATA_PATH_CHANGED = 12,
    /// The peer has added an address. Data: `path`.
    REXMIT_EVENT_PEER_ADDRESS_ADDED = 13,
    /// The peer has deleted an address. Data: `path`.
    REXMIT_EVENT_PEER_ADDRESS_DELETED = 14,
    /// The peer has answered a change of our addresses. Data: `address_change`.
    REXMIT_EVENT_ADDRESS_CHANGED = 15,
    /// The peer reported an error: `code` (RFC 9260 §3.3.10).
    REXMIT_EVENT_PEER_ERROR = 16,
    /// The association has ended; this is its last event. Received messages can still be read; then the number becomes
    /// invalid. Data: `closed`.
    REXMIT_EVENT_CLOSED = 17,
    /// A message of the peer was dropped, although it was acknowledged: it is larger than `max_message_bytes`, or
    /// filled the receive buffer together with other incomplete messages. Data: `dropped`.
    REXMIT_EVENT_MESSAGE_DROPPED = 18,
    /// Messages sent from now on do not meet their deadline with the requested probability: it is shorter than the path's
    /// delay, or would need more copies than the budget has. Reported again only after it could be met for a while.
    /// Data: `infeasible`.
    REXMIT_EVENT_INFEASIBLE = 19,
}

/// Why an association ended.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_close_reason {
    /// Gracefully, with everything delivered.
    REXMIT_CLOSED_SHUTDOWN = 0,
    /// Aborted by us: by the application, or because the peer violated the protocol.
    REXMIT_CLOSED_ABORTED = 1,
    /// Aborted by the peer.
    REXMIT_CLOSED_ABORTED_BY_PEER = 2,
    /// The peer does not respond any more.
    REXMIT_CLOSED_UNREACHABLE = 3,
    /// The peer never answered.
    REXMIT_CLOSED_CONNECT_TIMED_OUT = 4,
    /// The association ended for another reason.
    REXMIT_CLOSED_OTHER = 5,
}

/// Why a message failed.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_fail_reason {
    /// The message did not fail.
    REXMIT_FAILED_NOT = 0,
    /// The lifetime of the message was over.
    REXMIT_FAILED_EXPIRED = 1,
    /// The message reached its limit of retransmissions.
    REXMIT_FAILED_RETRANSMISSION_LIMIT = 2,
    /// The peer allows fewer streams than were requested.
    REXMIT_FAILED_NO_SUCH_STREAM = 3,
    /// The association ended, or the peer restarted, before it was acknowledged.
    REXMIT_FAILED_ASSOCIATION_ENDED = 4,
    /// The message failed for another reason.
    REXMIT_FAILED_OTHER = 5,
}

/// The state of a path.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_path_state {
    /// The path is not confirmed, and carries no data (RFC 9260 §5.4).
    REXMIT_PATH_UNCONFIRMED = 0,
    /// The path works.
    REXMIT_PATH_ACTIVE = 1,
    /// The path may have failed (RFC 7829).
    REXMIT_PATH_POTENTIALLY_FAILED = 2,
    /// The path does not work.
    REXMIT_PATH_INACTIVE = 3,
    /// The path was removed.
    REXMIT_PATH_REMOVED = 4,
}

use rexmit_close_reason::*;
use rexmit_event_kind::*;
use rexmit_fail_reason::*;
use rexmit_path_state::*;

/// The data of REXMIT_EVENT_CONNECTED.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_connected {
    /// The peer's address.
    pub peer: rexmit_address,
    /// The number of outgoing streams, which are numbered from 0.
    pub outbound_streams: u16,
    /// The number of incoming streams, which are numbered from 0.
    pub inbound_streams: u16,
    /// Whether the peer initiated the association.
    pub incoming: bool,
}

/// The data of events of a message.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_message_event {
    /// The number that `rexmit_send` returned.
    pub id: u64,
    /// The message, if it failed; else NULL.
    pub data: *const u8,
    /// Length of the message, in bytes.
    pub length: usize,
    /// Why the message failed.
    pub reason: rexmit_fail_reason,
    /// The stream of the message.
    pub stream: u16,
    /// Whether a part of it was sent.
    pub was_begun: bool,
}

/// The data of REXMIT_EVENT_MESSAGE_DROPPED.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_dropped_event {
    /// Payload protocol identifier of the message.
    pub ppid: u32,
    /// The stream of the message.
    pub stream: u16,
    /// Whether the message was sent unordered.
    pub unordered: bool,
}

/// The data of stream resets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_streams_event {
    /// The streams; an empty list means all.
    pub streams: *const u16,
    /// The number of streams in the list.
    pub count: usize,
    /// Whether the reset was performed.
    pub performed: bool,
}

/// The data of events of paths.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_path_event {
    /// The peer's address.
    pub address: rexmit_address,
    /// The new state.
    pub state: rexmit_path_state,
    /// The number of the path.
    pub path: u8,
}

/// The data of REXMIT_EVENT_ADDRESS_CHANGED.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_address_change_event {
    /// The address; unspecified as in RFC 5061 §4.2.4.
    pub address: rexmit_address,
    /// The cause for which the change was refused (RFC 5061 §4.3), or 0.
    pub refused: u16,
    /// Whether the address was added (1), deleted (2) or preferred (3).
    pub what: u8,
}

/// The data of REXMIT_EVENT_CLOSED.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_closed_event {
    /// The reason in English.
    pub text: *const c_char,
    /// Why.
    pub reason: rexmit_close_reason,
    /// The first cause code of the peer's ABORT, or 0.
    pub cause: u16,
}

/// The data of REXMIT_EVENT_INFEASIBLE.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct rexmit_infeasible_event {
    /// The probability of being in time at the present loss rate.
    pub achievable: f64,
}

/// The data of an event, by its kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub union rexmit_event_data {
    /// The data of REXMIT_EVENT_CONNECTED.
    pub connected: rexmit_connected,
    /// The data of events of a message.
    pub message: rexmit_message_event,
    /// The data of stream resets.
    pub streams: rexmit_streams_event,
    /// The data of events of paths and of the peer's addresses.
    pub path: rexmit_path_event,
    /// The data of REXMIT_EVENT_ADDRESS_CHANGED.
    pub address_change: rexmit_address_change_event,
    /// The cause code of REXMIT_EVENT_PEER_ERROR.
    pub code: u16,
    /// The data of REXMIT_EVENT_CLOSED.
    pub closed: rexmit_closed_event,
    /// The data of REXMIT_EVENT_MESSAGE_DROPPED.
    pub dropped: rexmit_dropped_event,
    /// The data of REXMIT_EVENT_INFEASIBLE.
    pub infeasible: rexmit_infeasible_event,
    /// Reserved for the data of later events.
    pub reserved: [u64; 16],
}

/// An event. The memory that it points to is valid until the next call of `rexmit_endpoint_poll_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct rexmit_event {
    /// The association.
    pub association: u64,
    /// The kind of the event.
    pub kind: rexmit_event_kind,
    /// The data of the event, by its kind.
    pub data: rexmit_event_data,
}

/// The memory that the latest event points to.
#[derive(Debug, Default)]
pub(crate) struct Held {
    payload: Bytes,
    streams: Vec<u16>,
    text: CString,
}

/// Reads the next event; REXMIT_NOTHING if none is left.
///
/// ```c
/// rexmit_event event;
/// while (rexmit_endpoint_poll_event(endpoint, &event) == REXMIT_OK) {
///     switch (event.kind) {
///     case REXMIT_EVENT_CONNECTED:
///         puts("connected");
///         break;
///     case REXMIT_EVENT_CLOSED:
///         puts(event.data.closed.text);
///         break;
///     default:
///         break;
///     }
/// }
/// ```
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `event` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_endpoint_poll_event(
    endpoint: *mut rexmit_endpoint,
    event: *mut rexmit_event,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, 0, |endpoint, _| {
            if event.is_null() {
                return Err(Failure::null("the event"));
            }
            let read = endpoint.sctp.poll_event();
            let (id, read) = read.ok_or_else(|| Failure::new(REXMIT_NOTHING, "no event"))?;
            let (kind, data) = endpoint.held.show(read);
            store(event, rexmit_event { association: id.to_bits(), kind, data }, "the event")
        })
    }
}

impl Held {
    /// Converts an event, and keeps the memory that it refers to.
    fn show(&mut self, event: Event) -> (rexmit_event_kind, rexmit_event_data) {
        let mut data = rexmit_event_data { reserved: [0; 16] };
        let kind = match event {
            Event::Connected { incoming, peer, outbound_streams, inbound_streams } => {
                let peer = peer.into();
                data.connected =
                    rexmit_connected { peer, outbound_streams, inbound_streams, incoming };
                REXMIT_EVENT_CONNECTED
            }
            Event::Readable => REXMIT_EVENT_READABLE,
            Event::Writable => REXMIT_EVENT_WRITABLE,
            Event::PeerShutdown => REXMIT_EVENT_PEER_SHUTDOWN,
            Event::PeerRestarted => REXMIT_EVENT_PEER_RESTARTED,
            Event::StreamsReset { streams, performed } => {
                data.streams = self.streams(streams, performed);
                REXMIT_EVENT_STREAMS_RESET
            }
            Event::PeerResetStreams(streams) => {
                data.streams = self.streams(streams, true);
                REXMIT_EVENT_PEER_RESET_STREAMS
            }
            Event::AddressChanged { change, refused } => {
                let Some((what, address)) = address_change(change) else {
                    return (REXMIT_EVENT_OTHER, data);
                };
                let refused = refused.unwrap_or(0);
                data.address_change =
                    rexmit_address_change_event { address: address.into(), refused, what };
                REXMIT_EVENT_ADDRESS_CHANGED
            }
            Event::MessageDropped { stream, ppid, unordered } => {
                data.dropped = rexmit_dropped_event { ppid, stream, unordered };
                REXMIT_EVENT_MESSAGE_DROPPED
            }
            Event::Infeasible { achievable_ppm } => {
                let achievable = f64::from(achievable_ppm) / 1e6;
                data.infeasible = rexmit_infeasible_event { achievable };
                REXMIT_EVENT_INFEASIBLE
            }
            Event::PeerError(code) => {
                data.code = code;
                REXMIT_EVENT_PEER_ERROR
            }
            Event::Closed(reason) => {
                data.closed = self.closed(&reason);
                REXMIT_EVENT_CLOSED
            }
            other => {
                if let Some((kind, path)) = path_event(&other) {
                    data.path = path;
                    kind
                } else if let Some((kind, message)) = self.message(other) {
                    data.message = message;
                    kind
                } else {
                    REXMIT_EVENT_OTHER
                }
            }
        };
        (kind, data)
    }

    /// An event of a message.
    fn message(&mut self, event: Event) -> Option<(rexmit_event_kind, rexmit_message_event)> {
        let plain = |id: u64| rexmit_message_event {
            id,
            data: std::ptr::null(),
            length: 0,
            reason: REXMIT_FAILED_NOT,
            stream: 0,
            was_begun: true,
        };
        match event {
            Event::MessageSent(id) => Some((REXMIT_EVENT_MESSAGE_SENT, plain(id.0))),
            Event::MessageAcknowledged(id) => {
                Some((REXMIT_EVENT_MESSAGE_ACKNOWLEDGED, plain(id.0)))
            }
            Event::MessageFailed { id, reason, was_begun, message } => {
                self.payload = message.payload;
                let failed = rexmit_message_event {
                    data: self.payload.as_ptr(),
                    length: self.payload.len(),
                    reason: fail_reason(reason),
                    stream: message.stream,
                    was_begun,
                    ..plain(id.0)
                };
                Some((REXMIT_EVENT_MESSAGE_FAILED, failed))
            }
            _ => None,
        }
    }

    fn streams(&mut self, streams: Vec<u16>, performed: bool) -> rexmit_streams_event {
        self.streams = streams;
        let (streams, count) = (self.streams.as_ptr(), self.streams.len());
        rexmit_streams_event { streams, count, performed }
    }

    fn closed(&mut self, closed: &CloseReason) -> rexmit_closed_event {
        let (reason, cause) = match closed {
            CloseReason::Shutdown => (REXMIT_CLOSED_SHUTDOWN, 0),
            CloseReason::Aborted { .. } => (REXMIT_CLOSED_ABORTED, 0),
            CloseReason::AbortedByPeer { cause, .. } => (REXMIT_CLOSED_ABORTED_BY_PEER, *cause),
            CloseReason::Unreachable => (REXMIT_CLOSED_UNREACHABLE, 0),
            CloseReason::ConnectTimedOut => (REXMIT_CLOSED_CONNECT_TIMED_OUT, 0),
            _ => (REXMIT_CLOSED_OTHER, 0),
        };
        self.text = text(&closed.to_string());
        rexmit_closed_event { text: self.text.as_ptr(), reason, cause }
    }
}

/// An event of a path, or of an address of the peer.
fn path_event(event: &Event) -> Option<(rexmit_event_kind, rexmit_path_event)> {
    let (kind, path, address, state) = match *event {
        Event::PathStatus { path, address, state } => {
            (REXMIT_EVENT_PATH_STATUS, path, address, path_state(state))
        }
        Event::DataPathChanged { path, address } => {
            (REXMIT_EVENT_DATA_PATH_CHANGED, path, address, REXMIT_PATH_ACTIVE)
        }
        Event::PeerAddressAdded { path, address } => {
            (REXMIT_EVENT_PEER_ADDRESS_ADDED, path, address, REXMIT_PATH_UNCONFIRMED)
        }
        Event::PeerAddressDeleted { path, address } => {
            (REXMIT_EVENT_PEER_ADDRESS_DELETED, path, address, REXMIT_PATH_REMOVED)
        }
        _ => return None,
    };
    Some((kind, rexmit_path_event { address: address.into(), state, path }))
}

fn fail_reason(reason: FailReason) -> rexmit_fail_reason {
    match reason {
        FailReason::Expired => REXMIT_FAILED_EXPIRED,
        FailReason::RetransmissionLimit => REXMIT_FAILED_RETRANSMISSION_LIMIT,
        FailReason::NoSuchStream => REXMIT_FAILED_NO_SUCH_STREAM,
        FailReason::AssociationEnded => REXMIT_FAILED_ASSOCIATION_ENDED,
        _ => REXMIT_FAILED_OTHER,
    }
}

pub(crate) fn path_state(state: PathState) -> rexmit_path_state {
    match state {
        PathState::Unconfirmed => REXMIT_PATH_UNCONFIRMED,
        PathState::Active => REXMIT_PATH_ACTIVE,
        PathState::PotentiallyFailed => REXMIT_PATH_POTENTIALLY_FAILED,
        PathState::Removed => REXMIT_PATH_REMOVED,
        // A state that the header does not have carries no data.
        _ => REXMIT_PATH_INACTIVE,
    }
}

fn address_change(change: AddressChange) -> Option<(u8, std::net::IpAddr)> {
    match change {
        AddressChange::Added(address) => Some((1, address)),
        AddressChange::Deleted(address) => Some((2, address)),
        AddressChange::Preferred(address) => Some((3, address)),
        _ => None,
    }
}
