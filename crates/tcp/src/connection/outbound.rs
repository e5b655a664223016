//! The sending half: data of the application, the part that was sent, and the peer's window
//! (RFC 9293 §3.3.1, send sequence variables).

use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_core::serial::unwrap_u32;
use rexmit_core::trace::Tracer;
use rexmit_recovery::{Flight, LossRecovery, RecoveryConfig, SetupEvent, UnitState};

use super::context::Negotiated;
use super::handshake::Handshake;
use super::piece::Piece;
use super::retransmitted::Retransmitted;
use crate::config::ConnectionConfig;
use crate::stream::SendBuffer;
use crate::wire::MAX_SACK_BLOCKS;

/// A connection has one path.
pub(super) const PATH: u8 = 0;
/// The only group of TCP, which has one stream.
pub(super) const GROUP: u8 = 0;
/// The number of the first unit.
const FIRST_UNIT: u64 = 1;

/// The state of our FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fin {
    /// The application may send more.
    Open,
    /// The application has finished; the FIN was not sent yet.
    Queued,
    /// The FIN was sent.
    Sent,
}

/// The unit that probes a closed window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) unit: u64,
    /// When the probe was last sent.
    pub(super) sent_at: Instant,
    /// Whether an acknowledgement arrived since, with the window still closed.
    pub(super) is_refused: bool,
}

/// Probing a closed window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probing {
    pub(super) sent: Option<Probe>,
    /// Whether the next probe is to be sent.
    pub(super) is_due: bool,
    /// Whether an acknowledgement has confirmed, since the timer last expired, that the peer's window is closed.
    pub(super) is_closed_confirmed: bool,
}

/// The peer's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendWindow {
    /// The right edge of the window, SND.UNA + SND.WND at its last update.
    pub(super) end: u64,
    /// SEG.SEQ and SEG.ACK of the segment with the last window update (SND.WL1, SND.WL2).
    pub(super) told_by: (u64, u64),
    /// MAX.SND.WND.
    pub(super) largest: u64,
}

/// The sending half of a connection.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Data from SND.UNA on.
    pub(super) buffer: SendBuffer,
    pub(super) recovery: LossRecovery<Piece>,
    pub(super) snd_una: u64,
    pub(super) snd_nxt: u64,
    pub(super) window: SendWindow,
    /// Snd.Wind.Shift.
    pub(super) shift: u8,
    /// The most payload and options of a segment, in bytes.
    pub(super) mss: u32,
    /// The largest payload of a segment whose only option is timestamps.
    pub(super) segment_bytes: u32,
    /// Whether the peer sends SACK blocks.
    pub(super) has_reports: bool,
    /// The end of our stream.
    pub(super) fin: Fin,
    pub(super) probing: Probing,
    /// Consecutive timeouts without an answer.
    pub(super) unanswered: u32,
    /// Whether the application waits for room in the buffer.
    pub(super) is_writer_waiting: bool,
    /// The data that a duplicate report may concern; none before the first retransmission.
    pub(super) retransmitted: Option<Box<Retransmitted>>,
}

impl Outbound {
    pub(super) fn new(config: &ConnectionConfig, recovery: Arc<RecoveryConfig>, iss: u32) -> Self {
        let iss = (1 << 32) + u64::from(iss);
        let mss = u32::from(config.mss);
        Self {
            buffer: SendBuffer::new(iss + 1),
            recovery: LossRecovery::new(recovery, FIRST_UNIT, mss),
            snd_una: iss,
            snd_nxt: iss + 1,
            window: SendWindow { end: iss + 1, told_by: (0, 0), largest: 0 },
            shift: 0,
            mss,
            segment_bytes: mss,
            has_reports: false,
            fin: Fin::Open,
            probing: Probing::default(),
            unanswered: 0,
            is_writer_waiting: false,
            retransmitted: None,
        }
    }

    /// The sequence number after our SYN.
    pub(super) const fn first_sequence(&self) -> u64 {
        // Nothing else is in the sequence space before the SYN is acknowledged.
        self.snd_nxt
    }

    pub(super) const fn unwrap_ack(&self, acknowledgment: u32) -> u64 {
        unwrap_u32(self.snd_nxt, acknowledgment)
    }

    /// Called when the peer's MSS and scale are known.
    pub(super) fn on_agreed(&mut self, our_mss: u16, agreed: &Negotiated) {
        self.mss = u32::from(our_mss.min(agreed.peer_mss));
        self.segment_bytes = self.mss - if agreed.timestamps.is_some() { 12 } else { 0 };
        self.shift = agreed.window_scale.map_or(0, |(send, _)| send);
        self.has_reports = agreed.sack;
    }

    /// Called when the peer's SYN, numbered `irs`, offers a window, which is not scaled.
    pub(super) fn on_syn(&mut self, irs: u64, window: u64) {
        self.window = SendWindow {
            end: self.snd_nxt + window,
            told_by: (irs, self.snd_nxt),
            largest: window,
        };
    }

    /// Called when our SYN is acknowledged. From now on data may be sent.
    pub(super) fn on_established(
        &mut self,
        now: Instant,
        handshake: &Handshake,
        tracer: &mut Tracer<'_>,
    ) {
        let done = SetupEvent::Done {
            packet: self.segment_bytes,
            was_repeated: handshake.was_repeated(),
            answered_after: handshake.answered_after(now),
        };
        self.recovery.on_setup(now, PATH, done, tracer);
    }

    /// The free part of the peer's window; zero if it was shrunk below the data sent.
    pub(super) const fn usable_window(&self) -> u64 {
        self.window.end.saturating_sub(self.snd_nxt)
    }

    /// The sequence number of a segment without data: SND.NXT, or the right edge of the window if data was
    /// sent beyond it, where the peer would not accept the segment (RFC 9293 §3.10.7.4, first check).
    pub(super) fn next_acceptable(&self) -> u64 {
        self.snd_nxt.min(self.window.end.max(self.snd_una))
    }

    /// Whether a retransmission of `piece` has to wait for data in flight: only one segment at a time is sent beyond
    /// the window, as its probe (RFC 9293 §3.8.6).
    pub(super) fn is_held_by_window(&self, piece: &Piece) -> bool {
        piece.end() > self.window.end && self.flight().packets > 0
    }

    /// The bytes that were not sent.
    pub(super) fn unsent(&self) -> u64 {
        self.buffer.end().saturating_sub(self.snd_nxt)
    }

    pub(super) fn is_finishing(&self) -> bool {
        self.fin != Fin::Open
    }

    pub(super) fn is_fin_acknowledged(&self) -> bool {
        self.fin == Fin::Sent && self.snd_una == self.snd_nxt
    }

    /// Whether there are bytes, or a FIN, that were never sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.fin != Fin::Sent && (self.unsent() > 0 || self.fin == Fin::Queued)
    }

    /// Whether nothing is queued or outstanding.
    pub(super) fn is_empty(&self) -> bool {
        self.recovery.outstanding().is_empty() && !self.has_unsent()
    }

    /// The flight as loss recovery counts it, in whole units.
    pub(super) fn flight(&self) -> Flight {
        self.recovery.outstanding().flight(PATH)
    }

    /// The bytes in flight, without those of the oldest unit that a partial ACK has covered.
    pub(super) fn bytes_in_flight(&self) -> u64 {
        let oldest = self.recovery.outstanding().unit(self.recovery.outstanding().cumulative() + 1);
        let oldest = oldest.filter(|unit| unit.state() == UnitState::InFlight);
        let covered = oldest.map_or(0, |unit| self.snd_una.saturating_sub(unit.payload.start));
        self.flight().bytes - covered
    }

    /// The most SACK blocks of a segment; `None` if SACK was not negotiated.
    pub(super) fn sack_limit(&self, has_timestamps: bool) -> Option<usize> {
        let limit = if has_timestamps { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
        self.has_reports.then_some(limit)
    }

    /// The oldest unit that is outstanding.
    pub(super) fn oldest(&self) -> Option<Piece> {
        self.recovery
            .outstanding()
            .unit(self.recovery.outstanding().cumulative() + 1)
            .map(|unit| unit.payload)
    }

    /// Called when the peer has dropped data that it had reported (reneging). Once loss recovery ignores its
    /// reports, so does the connection.
    pub(super) const fn on_reneged(&mut self) {
        self.has_reports &= self.recovery.outstanding().believes_reports();
    }

    /// Remembers retransmitted data, if the peer can report it.
    pub(super) fn note_retransmission(&mut self, piece: Piece, unit: u64) {
        if self.has_reports {
            self.retransmitted.get_or_insert_default().add(piece, unit);
        }
    }

    /// Drops all data, because nothing will be sent any more.
    pub(super) fn clear(&mut self) {
        self.recovery.drain(drop);
        self.buffer.clear();
        self.retransmitted = None;
        self.probing.sent = None;
        self.probing.is_due = false;
    }

    /// Releases memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.buffer.release_memory();
        self.recovery.release_memory();
        if self.recovery.outstanding().is_empty() {
            let next = self.snd_nxt;
            self.retransmitted
                .iter_mut()
                .for_each(|retransmitted| retransmitted.release_memory(next));
        }
    }
}
