//! The receiving half: what has arrived, what was acknowledged of it, and what was offered
//! (RFC 9293 §3.3.1, receive sequence variables).

use super::context::Negotiated;
use super::window::{OfferedWindow, Room};
use crate::config::ConnectionConfig;
use crate::stream::ReceiveBuffer;

/// How far the peer's end of stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PeerFin {
    /// No FIN has arrived.
    Open,
    /// It has this sequence number; something before it is missing.
    Ahead(u64),
    /// Everything has arrived.
    Taken,
    /// The application knows.
    Told,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Inbound {
    /// IRS.
    pub(super) irs: u64,
    pub(super) buffer: ReceiveBuffer,
    pub(super) fin: PeerFin,
    pub(super) window: OfferedWindow,
    /// It is closed.
    pub(super) is_closed: bool,
    limit: usize,
    /// Last.ACK.sent (RFC 7323 §4.3).
    pub(super) last_ack_sent: u64,
    /// The largest payload seen: what the peer's full segments hold.
    pub(super) largest_payload: u64,
    /// What the next acknowledgement reports as a duplicate (RFC 2883).
    pub(super) duplicate: Option<(u64, u64)>,
    /// The application was told that there is something, and has not found it empty since.
    pub(super) is_readable_told: bool,
}

impl Default for Inbound {
    /// Before the peer's SYN.
    fn default() -> Self {
        Self {
            irs: 0,
            buffer: ReceiveBuffer::new(0, 0),
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
        // What a SYN-ACK offers is not scaled.
        let offered = limit.min(usize::from(u16::MAX)) as u64;
        let shift = agreed.window_scale.map_or(0, |(_, receive)| receive);
        Self {
            irs,
            buffer: ReceiveBuffer::new(irs + 1, config.max_held_segments),
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

    /// The sequence number after the last byte that is taken.
    pub(super) fn edge(&self) -> u64 {
        match self.fin {
            PeerFin::Ahead(fin) => self.window.edge().min(fin),
            _ => self.window.edge(),
        }
    }

    /// What there is room for, seen with segments of `mss`.
    pub(super) fn room(&self, mss: u32) -> Room {
        Room {
            rcv_nxt: self.rcv_nxt(),
            free: self.limit.saturating_sub(self.buffer.readable()),
            step: (self.limit as u64 / 2).min(mss.into()).max(1),
        }
    }
}
