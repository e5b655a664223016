//! Notifications (RFC 6458 §6.1), as bytes of Linux's `linux/sctp.h`.

use std::net::SocketAddr;

use rexmit_sctp::CloseReason;

use crate::protocol::address;

/// `sn_type`, and the bit of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Type {
    DataIo = 0x8000,
    AssociationChange,
    AddressChange,
    SendFailed,
    RemoteError,
    Shutdown,
    Authentication = 0x8008,
    StreamReset = 0x800A,
    /// `SCTP_SEND_FAILED_EVENT`, the one with the greatest number of those that Linux has.
    SendFailedEvent = 0x800D,
}

impl Type {
    /// The bit of this notification in [`Settings::events`](super::settings::Settings::events).
    pub(super) const fn bit(self) -> u16 {
        1 << (self as u16 & 0xF)
    }
}

/// `sac_state`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    Up,
    Lost,
    Restart,
    ShutdownComplete,
    CannotStart,
}

fn begin(kind: Type, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length);
    bytes.extend((kind as u16).to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend((length as u32).to_ne_bytes());
    bytes
}

/// `sctp_assoc_change` of an established association.
pub(super) fn association_change(
    change: Change,
    (outbound, inbound): (u16, u16),
    association: u32,
) -> Vec<u8> {
    let mut bytes = begin(Type::AssociationChange, 20);
    for number in [change as u16, 0, outbound, inbound] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(association.to_ne_bytes());
    bytes
}

/// `sctp_assoc_change` of an ended association, with the first cause of the peer's ABORT, if there was one.
pub(super) fn association_end(change: Change, reason: &CloseReason, association: u32) -> Vec<u8> {
    const USER_INITIATED: u16 = 12;
    let (cause, words): (u16, Option<&[u8]>) = match reason {
        CloseReason::AbortedByPeer { cause, reason } => (*cause, Some(reason)),
        CloseReason::Aborted { .. } => (USER_INITIATED, None),
        _ => (0, None),
    };
    let words = words.filter(|_| cause != 0);
    let info = words.map_or(0, |words| 4 + words.len());
    let mut bytes = begin(Type::AssociationChange, 20 + info);
    bytes.extend((change as u16).to_ne_bytes());
    bytes.extend(cause.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(association.to_ne_bytes());
    if let Some(words) = words {
        bytes.extend(cause.to_be_bytes());
        bytes.extend((info as u16).to_be_bytes());
        bytes.extend_from_slice(words);
    }
    bytes
}

/// The `sctp_authkey_event` that reports a peer without authentication (`SCTP_AUTH_NO_AUTH`).
pub(super) fn no_authentication(association: u32) -> Vec<u8> {
    const NO_AUTH: u32 = 2;
    let mut bytes = begin(Type::Authentication, 20);
    bytes.extend([0; 4]);
    bytes.extend(NO_AUTH.to_ne_bytes());
    bytes.extend(association.to_ne_bytes());
    bytes
}

/// `sctp_paddr_change`; `state` is `spc_state`.
pub(super) fn address_change(peer: SocketAddr, state: i32, association: u32) -> Vec<u8> {
    let mut bytes = begin(Type::AddressChange, 148);
    address::write_storage(Some(peer), &mut bytes);
    bytes.extend(state.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(association.to_ne_bytes());
    bytes
}

/// `sctp_remote_error`, without the chunk.
pub(super) fn remote_error(cause: u16, association: u32) -> Vec<u8> {
    let mut bytes = begin(Type::RemoteError, 16);
    bytes.extend(cause.to_be_bytes());
    bytes.extend([0; 2]);
    bytes.extend(association.to_ne_bytes());
    bytes
}

/// `sctp_shutdown_event`.
pub(super) fn shutdown(association: u32) -> Vec<u8> {
    let mut bytes = begin(Type::Shutdown, 12);
    bytes.extend(association.to_ne_bytes());
    bytes
}

/// `sctp_stream_reset_event`, for our streams if they are `outgoing`, otherwise for the peer's; none: all.
pub(super) fn stream_reset(
    streams: &[u16],
    (outgoing, was_performed): (bool, bool),
    association: u32,
) -> Vec<u8> {
    const INCOMING: u16 = 1;
    const OUTGOING: u16 = 2;
    const DENIED: u16 = 4;
    let mut bytes = begin(Type::StreamReset, 12 + 2 * streams.len());
    let direction = if outgoing { OUTGOING } else { INCOMING };
    let flags = direction | if was_performed { 0 } else { DENIED };
    bytes[2..4].copy_from_slice(&flags.to_ne_bytes());
    bytes.extend(association.to_ne_bytes());
    bytes.extend(streams.iter().flat_map(|stream| stream.to_ne_bytes()));
    bytes
}

/// The parameters and the payload of a message that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed<'a> {
    pub(super) stream: u16,
    pub(super) flags: u16,
    pub(super) ppid: u32,
    pub(super) was_begun: bool,
    pub(super) payload: &'a [u8],
}

/// `sctp_send_failed`, and `sctp_send_failed_event`.
pub(super) fn send_failed(kind: Type, failed: Failed<'_>, association: u32) -> Vec<u8> {
    let is_event = kind == Type::SendFailedEvent;
    let fixed = if is_event { 32 } else { 48 };
    let mut bytes = begin(kind, fixed + failed.payload.len());
    bytes[2..4].copy_from_slice(&u16::from(failed.was_begun).to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(failed.stream.to_ne_bytes());
    if is_event {
        bytes.extend(failed.flags.to_ne_bytes());
        bytes.extend(failed.ppid.to_ne_bytes());
        bytes.extend([0; 4]);
    } else {
        bytes.extend([0; 2]);
        bytes.extend(failed.flags.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(failed.ppid.to_ne_bytes());
        bytes.extend([0; 16]);
    }
    bytes.extend(association.to_ne_bytes());
    bytes.resize(fixed - 4, 0);
    bytes.extend(association.to_ne_bytes());
    bytes.extend_from_slice(failed.payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of Linux's structures, and their length fields.
    #[test]
    fn each_notification_has_the_length_that_it_says() {
        let failed = Failed { stream: 1, flags: 0, ppid: 0, was_begun: true, payload: b"text" };
        let peer = "[::1]:9".parse().expect("an address");
        let reason = bytes::Bytes::from_static(b"why");
        let aborted = CloseReason::AbortedByPeer { cause: 12, reason };
        let all = [
            (association_change(Change::Up, (1, 1), 3), 20),
            (association_end(Change::Lost, &CloseReason::Unreachable, 3), 20),
            (association_end(Change::Lost, &aborted, 3), 20 + 4 + 3),
            (no_authentication(3), 20),
            (address_change(peer, 0, 3), 148),
            (remote_error(1, 3), 16),
            (shutdown(3), 12),
            (stream_reset(&[1, 2], (true, true), 3), 12 + 4),
            (send_failed(Type::SendFailed, failed, 3), 48 + 4),
            (send_failed(Type::SendFailedEvent, failed, 3), 32 + 4),
        ];
        for (bytes, length) in all {
            assert_eq!(bytes.len(), length);
            let said = u32::from_ne_bytes(bytes[4..8].try_into().expect("4 bytes"));
            assert_eq!(said as usize, length);
        }
    }
}
