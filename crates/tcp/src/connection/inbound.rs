//! The receiving half: data received, acknowledged, and the window advertised (RFC 9293 §3.3.1, receive
//! sequence variables).

use super::context::Negotiated;
use super::window::{OfferedWindow, Room};
use crate::config::ConnectionConfig;
use crate::error::ReceiveError;
use crate::stream::ReceiveBuffer;
use crate::wire::Options;

/// The state of the peer's FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PeerFin {
    /// No FIN has arrived.
    Open,
    /// A FIN with this sequence number has arrived, and data before it is missing.
    Ahead(u64),
    /// The FIN and all data before it have arrived.
    Taken,
    /// The application has read the end of the data.
    Told,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(super) struct Inbound {
    /// IRS.
    pub(super) irs: u64,
    pub(super) buffer: ReceiveBuffer,
    pub(super) fin: PeerFin,
    pub(super) window: OfferedWindow,
    /// Whether the window is closed.
    pub(super) is_closed: bool,
    limit: usize,
    /// Last.ACK.sent (RFC 7323 §4.3).
    pub(super) last_ack_sent: u64,
    /// The largest payload received, the size of the peer's full segments.
    pub(super) largest_payload: u64,
    /// The duplicate that the next acknowledgement reports (RFC 2883).
    pub(super) duplicate: Option<(u64, u64)>,
    /// Whether `Readable` was reported, and the application has not emptied the buffer since.
    pub(super) is_readable_told: bool,
}

impl Default for Inbound {
    /// The state before the peer's SYN.
    fn default() -> Self {
        Self {
            irs: 0,
            buffer: ReceiveBuffer::new(0, 0, 0),
            fin: PeerFin::Open,
            window: OfferedWindow::new(0, 0),
            is_closed: false,
            limit: 0,
            last_ack_sent: 0,
            largest_payload: 0,
            duplicate: None,
            is_readable_told: false,
        }
    }
}

impl Inbound {
    pub(super) fn new(config: &ConnectionConfig, agreed: &Negotiated) -> Self {
        let irs = (1 << 32) + u64::from(agreed.irs);
        let limit = config.receive_buffer_bytes;
        // The window of a SYN-ACK is not scaled.
        let offered = limit.min(usize::from(u16::MAX)) as u64;
        let shift = agreed.window_scale.map_or(0, |(_, receive)| receive);
        Self {
            irs,
            buffer: ReceiveBuffer::new(
                irs + 1,
                config.receive_buffer_bytes,
                config.max_held_segments,
            ),
            window: OfferedWindow::new(irs + 1 + offered, shift),
            limit,
            last_ack_sent: irs + 1,
            ..Self::default()
        }
    }

    /// RCV.NXT.
    pub(super) fn rcv_nxt(&self) -> u64 {
        let fin = matches!(self.fin, PeerFin::Taken | PeerFin::Told);
        self.buffer.next() + u64::from(fin)
    }

    /// The sequence number after the last byte that is accepted: the right edge of the window, or the FIN.
    pub(super) fn edge(&self) -> u64 {
        match self.fin {
            PeerFin::Ahead(fin) => self.window.edge().min(fin),
            _ => self.window.edge(),
        }
    }

    /// The room in the receive buffer, for segments of `mss`.
    pub(super) fn room(&self, mss: u32) -> Room {
        Room {
            rcv_nxt: self.rcv_nxt(),
            free: self.limit.saturating_sub(self.buffer.readable()),
            step: (self.limit as u64 / 2).min(mss.into()).max(1),
        }
    }

    /// Whether bytes, or the end of the peer's data, wait for the application, unless it has closed the
    /// connection.
    pub(super) fn has_unread(&self, is_orphan: bool) -> bool {
        !is_orphan && (self.buffer.readable() > 0 || self.fin == PeerFin::Taken)
    }

    /// Records that data of an unacceptable segment, from `seq` to `end`, had been received before, so that
    /// the next ACK reports it as a duplicate (RFC 2883 §4). Returns whether any of it had.
    pub(super) fn note_duplicate(&mut self, seq: u64, end: u64) -> bool {
        let end = end.min(self.buffer.next());
        let is_known = seq < end;
        if is_known {
            self.duplicate = Some((seq, end));
        }
        is_known
    }

    /// The result of reading from an empty buffer: 0 at the end of the data, or an error.
    pub(super) fn receive_nothing(&mut self, has_ended: bool) -> Result<usize, ReceiveError> {
        match self.fin {
            PeerFin::Taken | PeerFin::Told => {
                self.fin = PeerFin::Told;
                Ok(0)
            }
            _ if has_ended => Err(ReceiveError::Ended),
            _ => {
                self.is_readable_told = false;
                Err(ReceiveError::Empty)
            }
        }
    }

    /// The bytes of the SACK option of the next segment, with at most `limit` blocks.
    pub(super) fn report_len(&self, limit: Option<usize>) -> u32 {
        if self.duplicate.is_none() && !self.buffer.has_gap() {
            return 0;
        }
        let mut options = Options::default();
        let is_told = self.fill_report(&mut options, limit, u32::MAX);
        if is_told { options.wire_len() as u32 } else { 0 }
    }

    /// Adds the blocks that fit into `room` bytes, at most `limit`; returns whether these are all.
    pub(super) fn report(
        &mut self,
        options: &mut Options,
        limit: Option<usize>,
        room: u32,
    ) -> bool {
        if self.duplicate.is_none() && !self.buffer.has_gap() {
            return true;
        }
        let is_told = self.fill_report(options, limit, room);
        if is_told {
            self.duplicate = None;
        }
        is_told
    }

    /// Adds a duplicate first, then the range that contains the duplicate, if that range is beyond a gap (RFC 2883 §4),
    /// then the other ranges beyond gaps (RFC 2018 §4).
    fn fill_report(&self, options: &mut Options, limit: Option<usize>, room: u32) -> bool {
        let Some(limit) = limit else { return true };
        let most = limit.min(blocks_that_fit(room));
        if most == 0 {
            return false;
        }
        let mut left = most;
        if let Some((start, end)) = self.duplicate {
            options.sack.push(start as u32, end as u32);
            left -= 1;
        }
        self.buffer.report(left, &mut options.sack);
        true
    }
}

/// The number of SACK blocks that `room` bytes of options hold.
const fn blocks_that_fit(room: u32) -> usize {
    (room.saturating_sub(4) / 8) as usize
}
