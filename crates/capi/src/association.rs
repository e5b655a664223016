//! Calls of an application on an association. Each call transmits at once, if the endpoint has a socket.

use std::sync::Arc;

use bytes::Bytes;
use rexmit_core::Instant;
use rexmit_sctp::{AssociationId, OutboundMessage, SharedKey};

use crate::address::{addresses, canonicalize, rexmit_address};
use crate::config::{profile, scheduling};
use crate::encryption::rexmit_fingerprint;
use crate::endpoint::{call, rexmit_endpoint};
use crate::message::{
    gather, rexmit_buffer, rexmit_delivery, rexmit_message, rexmit_timely_delivery,
};
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, Outcome, deref, slice, store};

/// Begins an association with the SCTP port `port` of the peer at `remotes`: one UDP address, or several of the same
/// host (one only with encryption). Messages can be sent at once. REXMIT_EVENT_CONNECTED or REXMIT_EVENT_CLOSED reports
/// the result. The only time limit is Max.Init.Retransmits: call `rexmit_abort` to stop earlier. With encryption, the
/// handshake of DTLS comes first, which has 10 s; if it fails or one side does not trust the other, the association is
/// REXMIT_CLOSED_ABORTED, and the text of REXMIT_EVENT_CLOSED says why.
///
/// ```c
/// rexmit_address server;
/// uint64_t association;
/// if (rexmit_address_parse("192.0.2.1:9899", &server) != REXMIT_OK ||
///     rexmit_connect(endpoint, rexmit_now(), &server, 1, 5000, &association) != REXMIT_OK)
///     fprintf(stderr, "%s\n", rexmit_endpoint_error(endpoint));
/// ```
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `remotes` points to `count` addresses, `association` to memory for the
/// result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_connect(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    remotes: *const rexmit_address,
    count: usize,
    port: u16,
    association: *mut u64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            store(association, u64::MAX, "where the association goes")?;
            let mut remotes = addresses(remotes, count)?;
            remotes.iter_mut().for_each(canonicalize);
            let local = endpoint.local_for(&remotes)?;
            let routes = endpoint.sctp.routes_to(&remotes, local);
            let config = Arc::clone(&endpoint.association);
            let id = endpoint.sctp.connect(now, &routes, port, &config)?;
            store(association, id.to_bits(), "where the association goes")
        })
    }
}

/// Accepts a message of `count` parts, such as a header and a body, for the peer. Events report its fate: failures always, success if the
/// configuration asks for it. The number of the message is written to `message`, which may be NULL.
///
/// ```c
/// static const uint8_t header[] = {1, 2}, body[] = "jump";
/// rexmit_buffer parts[] = {{header, sizeof header}, {body, sizeof body - 1}};
/// rexmit_delivery delivery = REXMIT_DELIVERY(3);
/// delivery.flags = REXMIT_UNORDERED;
/// if (rexmit_send(endpoint, rexmit_now(), association, &delivery, parts, 2, NULL) == REXMIT_BUFFER_FULL)
///     puts("the send buffer is full: wait for REXMIT_EVENT_WRITABLE");
/// ```
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `delivery` points to a delivery, `buffers` to `count` buffers, each of
/// which points to its bytes; `message` is NULL or points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_send(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    delivery: *const rexmit_delivery,
    buffers: *const rexmit_buffer,
    count: usize,
    message: *mut u64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        send(endpoint, now, association, buffers, count, message, |payload| {
            deref(delivery, "the delivery")?.message(payload)
        })
    }
}

/// As `rexmit_send`, for a message that should arrive within a time: copies of it are sent if that requires them, within
/// the budget of copies (`rexmit_config_set_copy_budget`). REXMIT_EVENT_INFEASIBLE reports that deadlines cannot be met.
/// Only profiles with mechanisms for thin streams send copies.
///
/// # Safety
/// As `rexmit_send`; `delivery` points to a delivery with a deadline.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_send_within(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    delivery: *const rexmit_timely_delivery,
    buffers: *const rexmit_buffer,
    count: usize,
    message: *mut u64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        send(endpoint, now, association, buffers, count, message, |payload| {
            deref(delivery, "the delivery")?.message(payload)
        })
    }
}

/// # Safety
/// As [`rexmit_send`].
unsafe fn send(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    buffers: *const rexmit_buffer,
    count: usize,
    message: *mut u64,
    make: impl FnOnce(Bytes) -> Result<OutboundMessage, Failure>,
) -> rexmit_status {
    // SAFETY: As the caller promised.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            let payload = gather(buffers, count, endpoint.association.messages.max_bytes)?;
            let id = AssociationId::from_bits(association);
            let accepted = endpoint.sctp.send(now, id, make(payload)?)?;
            if message.is_null() { Ok(()) } else { store(message, accepted.0, "the number") }
        })
    }
}

/// The next message from the peer, in the order of delivery; REXMIT_NOTHING if no message is left.
///
/// ```c
/// rexmit_message message;
/// while (rexmit_receive(endpoint, rexmit_now(), association, &message) == REXMIT_OK) {
///     printf("stream %u: %zu bytes\n", (unsigned)message.stream, message.length);
///     rexmit_message_free(&message);
/// }
/// ```
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `message` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_receive(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    message: *mut rexmit_message,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            if message.is_null() {
                return Err(Failure::null("the message"));
            }
            let received = endpoint.sctp.receive(now, AssociationId::from_bits(association));
            let received = received.ok_or_else(|| Failure::new(REXMIT_NOTHING, "no message"))?;
            store(message, received.into(), "the message")
        })
    }
}

/// Runs a call that concerns an association.
///
/// # Safety
/// As [`call`].
unsafe fn of(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    act: impl FnOnce(&mut rexmit_endpoint, Instant, AssociationId) -> Outcome,
) -> rexmit_status {
    // SAFETY: As the caller promised.
    unsafe {
        call(endpoint, now, |endpoint, now| {
            let id = endpoint.known(association)?;
            act(endpoint, now, id)
        })
    }
}

/// Ends the association gracefully: everything accepted on both sides is still delivered.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_shutdown(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            endpoint.sctp.shutdown(now, id);
            Ok(())
        })
    }
}

/// Aborts the association at once; the peer gets the reason (`length` bytes, of which at most 400 are sent).
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_abort(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    reason: *const u8,
    length: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            endpoint.sctp.abort(now, id, slice(reason, length, "the reason")?);
            Ok(())
        })
    }
}

/// Resets outgoing streams to sequence number 0 (RFC 6525); an empty list resets all.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_reset_streams(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    streams: *const u16,
    count: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.reset_streams(now, id, slice(streams, count, "the streams")?)?)
        })
    }
}

/// The fingerprint of the certificate that the peer of an association has proved to own. REXMIT_NOT_FOUND
/// without encryption, and before REXMIT_EVENT_CONNECTED.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; `fingerprint` points to memory for the result.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_peer_fingerprint(
    endpoint: *mut rexmit_endpoint,
    association: u64,
    fingerprint: *mut rexmit_fingerprint,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        call(endpoint, 0, |endpoint, _| {
            let id = endpoint.known(association)?;
            let statistics = endpoint.sctp.statistics(id);
            let paths = statistics.iter().flat_map(|all| &all.paths);
            let peer = paths.filter_map(|path| endpoint.sctp.peer(path.remote)).next();
            let missing = || Failure::new(REXMIT_NOT_FOUND, "the peer has shown no certificate");
            store(fingerprint, peer.ok_or_else(missing)?.into(), "the fingerprint")
        })
    }
}

/// Sets the priority of an outgoing stream, initially 256. With REXMIT_PRIORITY the stream with the higher
/// value is sent first; with REXMIT_WEIGHTED_FAIR_QUEUEING it is the weight (RFC 8260 §3). It applies to
/// chunks sent from now on.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_priority(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    stream: u16,
    priority: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.set_priority(now, id, stream, priority)?)
        })
    }
}

/// Changes the scheduler of the outgoing streams to one of `enum rexmit_scheduling`.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_scheduling(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    number: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.set_scheduling(now, id, scheduling(number)?)?)
        })
    }
}

/// Sets the mechanisms of the association while it is thin to those of this profile (`enum rexmit_profile`).
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_thin(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    number: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.set_thin(now, id, profile(number)?.recovery.thin)?)
        })
    }
}

/// Singles out an outgoing stream: whether it is thin depends on its own packets in flight only, and its
/// mechanisms are those of this profile (`enum rexmit_profile`). At most 31 streams can be singled out in the
/// life of an association.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_stream_thin(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    stream: u16,
    number: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            let thin = profile(number)?.recovery.thin;
            Ok(endpoint.sctp.set_stream_thin(now, id, stream, Some(thin))?)
        })
    }
}

/// Ends `rexmit_set_stream_thin`: chunks that the stream sends from now on count as the association's again.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_unset_stream_thin(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    stream: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.set_stream_thin(now, id, stream, None)?)
        })
    }
}

/// Makes this path the primary path, which carries new data while it works.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_primary(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    path: u8,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.set_primary(now, id, path)?)
        })
    }
}

/// Asks the peer to send to this local address while it works (RFC 5061 §4.2.4). REXMIT_EVENT_ADDRESS_CHANGED reports
/// the result.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_peer_primary(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    address: *const rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            let address = deref(address, "the address")?.to_socket()?;
            Ok(endpoint.sctp.set_peer_primary(now, id, address.ip())?)
        })
    }
}

/// Adds a local address (RFC 5061). REXMIT_EVENT_ADDRESS_CHANGED reports the result.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_add_address(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    address: *const rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            let address = deref(address, "the address")?.to_socket()?;
            Ok(endpoint.sctp.add_address(now, id, address.ip())?)
        })
    }
}

/// Removes a local address (RFC 5061). REXMIT_EVENT_ADDRESS_CHANGED reports the result.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_delete_address(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    address: *const rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            let address = deref(address, "the address")?.to_socket()?;
            Ok(endpoint.sctp.delete_address(now, id, address.ip())?)
        })
    }
}

/// Replaces all local addresses by this one (RFC 5061), after the host has changed its network.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_move_to(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    address: *const rexmit_address,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            let address = deref(address, "the address")?.to_socket()?;
            Ok(endpoint.sctp.move_to(now, id, address.ip())?)
        })
    }
}

/// Sets a shared key of `length` bytes for authenticated chunks (RFC 4895).
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_set_shared_key(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    key_id: u16,
    key: *const u8,
    length: usize,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            let key = SharedKey::new(key_id, slice(key, length, "the key")?);
            Ok(endpoint.sctp.set_shared_key(now, id, key)?)
        })
    }
}

/// Authenticates outgoing chunks with this key from now on.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_use_shared_key(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    key_id: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.use_shared_key(now, id, key_id)?)
        })
    }
}

/// Deletes a shared key that is not in use.
///
/// # Safety
/// `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
/// as many elements as its length says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_delete_shared_key(
    endpoint: *mut rexmit_endpoint,
    now: u64,
    association: u64,
    key_id: u16,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        of(endpoint, now, association, |endpoint, now, id| {
            Ok(endpoint.sctp.delete_shared_key(now, id, key_id)?)
        })
    }
}
