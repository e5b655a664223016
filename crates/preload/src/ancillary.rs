//! Ancillary data of messages (RFC 6458 §5.3).

use rexmit_sockets::protocol::IPPROTO_SCTP;
use rexmit_sockets::protocol::frame::Header;

use crate::{Errno, Outcome};

/// Types of `sctp_cmsg_type`.
mod kind {
    pub(super) const INIT: i32 = 0;
    pub(super) const SNDRCV: i32 = 1;
    pub(super) const SNDINFO: i32 = 2;
    pub(super) const RCVINFO: i32 = 3;
    pub(super) const NXTINFO: i32 = 4;
    pub(super) const PRINFO: i32 = 5;
    pub(super) const AUTHINFO: i32 = 6;
    pub(super) const DSTADDRV4: i32 = 7;
    pub(super) const DSTADDRV6: i32 = 8;
}

/// Bytes of a `cmsghdr`; its data is aligned to 8.
const HEADER: usize = 16;
/// The bits of `sinfo_flags` that name a policy (RFC 7496 §4).
const POLICY: u16 = 0x30;
/// All flags of `sinfo_flags` that a message may have: unordered, abort, SACK at once, to all associations, end, and policies.
const FLAGS: u16 = 1 | 4 | 8 | 0x40 | 0x200 | POLICY;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|part| part.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|part| part.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// Reads from the control messages how to send, and stores it in `header`.
pub(crate) fn read(mut control: &[u8], header: &mut Header) -> Outcome<()> {
    while control.len() >= HEADER {
        let length = usize::from_ne_bytes(control[..8].try_into().unwrap_or_default());
        let (level, kind) = (u32_at(control, 8) as i32, u32_at(control, 12) as i32);
        let body = control.get(HEADER..length).ok_or(Errno(libc::EINVAL))?;
        if level == IPPROTO_SCTP {
            read_one(kind, body, header)?;
        }
        control = control.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    Ok(())
}

/// Whether Linux takes ancillary data of this kind with this content.
fn is_valid(kind: i32, body: &[u8]) -> bool {
    let has_flags_of = |at, all: u16| u16_at(body, at) & !all == 0;
    match kind {
        kind::SNDRCV => body.len() == 32 && has_flags_of(4, FLAGS),
        kind::SNDINFO => body.len() == 16 && has_flags_of(2, FLAGS),
        kind::PRINFO => body.len() == 8 && has_flags_of(0, POLICY),
        kind::INIT => body.len() == 8,
        kind::AUTHINFO => body.len() == 2,
        kind::DSTADDRV4 | kind::DSTADDRV6 => true,
        _ => false,
    }
}

fn read_one(kind: i32, body: &[u8], header: &mut Header) -> Outcome<()> {
    if !is_valid(kind, body) {
        return Err(Errno(libc::EINVAL));
    }
    let policy = header.flags & POLICY;
    match kind {
        kind::SNDRCV => {
            (header.stream, header.flags) = (u16_at(body, 0), u16_at(body, 4));
            (header.ppid, header.context) = (u32_at(body, 8), u32_at(body, 12));
            (header.time_to_live, header.association) = (u32_at(body, 16), u32_at(body, 28));
            header.has_info = true;
        }
        kind::SNDINFO => {
            (header.stream, header.flags) = (u16_at(body, 0), u16_at(body, 2) | policy);
            (header.ppid, header.context) = (u32_at(body, 4), u32_at(body, 8));
            header.association = u32_at(body, 12);
            header.has_info = true;
        }
        kind::PRINFO => {
            header.flags = header.flags & !POLICY | u16_at(body, 0) & POLICY;
            header.time_to_live = u32_at(body, 4);
        }
        // Further addresses of the peer, whose first one is that of the message, are not used. SCTP_INIT has no effect on an
        // association that exists; authentication is off.
        _ => {}
    }
    Ok(())
}

/// The control messages of a received message.
pub(crate) struct Control {
    bytes: [u8; Self::MOST],
    length: usize,
    room: usize,
    is_cut: bool,
}

impl Control {
    /// The size of all control messages: their headers, and padded bodies of 28, 28 and 32 bytes.
    const MOST: usize = 3 * (HEADER + 32);

    /// Control messages for a buffer with `room` bytes.
    pub(crate) fn new(room: usize) -> Self {
        let room = room.min(Self::MOST);
        Self { bytes: [0; Self::MOST], length: 0, room, is_cut: false }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Whether a control message was left out for lack of room (`MSG_CTRUNC`).
    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn add(&mut self, kind: i32, body: &[u8]) {
        let room = self.room - self.length;
        let length = (HEADER + body.len()).min(room);
        self.is_cut |= length < HEADER + body.len();
        // As the kernel, which writes as much of it as there is room for.
        let Some(body) = length.checked_sub(HEADER).map(|length| &body[..length]) else { return };
        let at = &mut self.bytes[self.length..self.length + length];
        at[..8].copy_from_slice(&length.to_ne_bytes());
        at[8..12].copy_from_slice(&IPPROTO_SCTP.to_ne_bytes());
        at[12..16].copy_from_slice(&kind.to_ne_bytes());
        at[HEADER..].copy_from_slice(body);
        self.length += length.next_multiple_of(8).min(room);
    }

    /// `SCTP_SNDRCV` (RFC 6458 §5.3.2).
    pub(crate) fn add_sndrcv(&mut self, header: &Header) {
        let mut body = [0; 32];
        body[..2].copy_from_slice(&header.stream.to_ne_bytes());
        body[4..6].copy_from_slice(&header.flags.to_ne_bytes());
        body[8..12].copy_from_slice(&header.ppid.to_ne_bytes());
        body[12..16].copy_from_slice(&header.context.to_ne_bytes());
        body[28..].copy_from_slice(&header.association.to_ne_bytes());
        self.add(kind::SNDRCV, &body);
    }

    /// `SCTP_RCVINFO` (RFC 6458 §5.3.5).
    pub(crate) fn add_rcvinfo(&mut self, header: &Header) {
        let mut body = [0; 28];
        body[..2].copy_from_slice(&header.stream.to_ne_bytes());
        body[4..6].copy_from_slice(&header.flags.to_ne_bytes());
        body[8..12].copy_from_slice(&header.ppid.to_ne_bytes());
        body[20..24].copy_from_slice(&header.context.to_ne_bytes());
        body[24..].copy_from_slice(&header.association.to_ne_bytes());
        self.add(kind::RCVINFO, &body);
    }

    /// `SCTP_NXTINFO` (RFC 6458 §5.3.6) for the message with this header and length.
    pub(crate) fn add_nxtinfo(&mut self, next: &Header, bytes: usize) {
        let mut body = [0; 16];
        body[..2].copy_from_slice(&next.stream.to_ne_bytes());
        body[2..4].copy_from_slice(&next.flags.to_ne_bytes());
        body[4..8].copy_from_slice(&next.ppid.to_ne_bytes());
        body[8..12].copy_from_slice(&(bytes as u32).to_ne_bytes());
        body[12..].copy_from_slice(&next.association.to_ne_bytes());
        self.add(kind::NXTINFO, &body);
    }
}
