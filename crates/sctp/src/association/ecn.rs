//! Explicit congestion notification (RFC 3168; its chunks: RFC 4960 appendix A).
//!
//! A router marks a packet (CE). Its receiver sends ECNE with each SACK until CWR reports that the window was reduced, and
//! the sender sends CWR with the next DATA. The two directions are independent.

use rexmit_core::Ecn;
use rexmit_core::serial::{Serial, unwrap_u32};
use rexmit_recovery::CongestionEcho;

use super::context::{Context, Recovery};
use crate::statistics::CongestionMarks;
use crate::wire::{CHUNK_HEADER_LEN, PacketWriter};

/// Bytes of ECNE and of CWR.
const CHUNK_LEN: usize = CHUNK_HEADER_LEN + 4;
/// How many packets with DATA say that they may be marked before one is acknowledged: a path may drop all that do (RFC
/// 9000 §13.4.2).
const MAX_UNCONFIRMED: u8 = 10;

/// The state of ECN of an association whose ends both use it.
#[derive(Debug, Default)]
pub(super) struct CongestionNotification {
    /// The lowest TSN of the packet that was marked last, until CWR covers it.
    marked: Option<u32>,
    packet: MarkedPacket,
    /// The TSN that CWR is to report.
    reduced: Option<u32>,
    passage: Passage,
    counters: CongestionMarks,
}

/// The packet being processed.
#[derive(Clone, Copy, Debug, Default)]
struct MarkedPacket {
    is_marked: bool,
    lowest_tsn: Option<u32>,
}

/// Whether packets that may be marked arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Passage {
    /// So many of them were sent, and none was acknowledged.
    Unconfirmed(u8),
    Confirmed,
}

impl Default for Passage {
    fn default() -> Self {
        Self::Unconfirmed(0)
    }
}

impl CongestionNotification {
    /// Called before a received packet is processed, which a router has marked or not.
    pub(super) const fn begin_packet(&mut self, is_marked: bool) {
        self.packet = MarkedPacket { is_marked, lowest_tsn: None };
    }

    /// Called for each DATA or I-DATA chunk of the packet.
    pub(super) fn on_data(&mut self, tsn: u32) {
        let lowest = self.packet.lowest_tsn.filter(|&lowest| Serial(lowest).is_before(Serial(tsn)));
        self.packet.lowest_tsn = lowest.or(Some(tsn));
    }

    /// Called after the packet was processed. Returns whether it was marked, and the sender is to be told at once.
    pub(super) fn end_packet(&mut self) -> bool {
        let Some(tsn) = self.packet.lowest_tsn.filter(|_| self.packet.is_marked) else {
            return false;
        };
        self.counters.marks_received += 1;
        self.marked = Some(tsn);
        true
    }

    /// Processes CWR.
    pub(super) fn on_cwr(&mut self, tsn: u32) {
        self.marked = self.marked.filter(|&marked| Serial(marked).is_after(Serial(tsn)));
    }

    /// Processes ECNE: the window is reduced once per window of data, and CWR is due.
    pub(super) fn on_ecne(&mut self, cx: &mut Context<'_>, recovery: &mut Recovery, tsn: u32) {
        let unit = unwrap_u32(recovery.outstanding().cumulative(), tsn);
        let Some(reduced) = CongestionEcho { unit }.answer(recovery, &mut cx.tracer()) else {
            return;
        };
        self.counters.echoes_received += 1;
        self.reduced = Some(reduced as u32);
    }

    /// Called when data was acknowledged of which nothing had been sent twice.
    pub(super) fn on_acknowledged(&mut self) {
        if matches!(self.passage, Passage::Unconfirmed(sent) if (1..MAX_UNCONFIRMED).contains(&sent))
        {
            self.passage = Passage::Confirmed;
        }
    }

    /// The field of the packet with DATA that is sent next.
    pub(super) const fn field_with_data(&mut self) -> Ecn {
        match &mut self.passage {
            Passage::Confirmed => Ecn::Ect0,
            Passage::Unconfirmed(MAX_UNCONFIRMED..) => Ecn::NotEct,
            Passage::Unconfirmed(sent) => {
                *sent += 1;
                Ecn::Ect0
            }
        }
    }

    /// Bytes of ECNE, if it is to go with the next SACK.
    pub(super) const fn echo_len(&self) -> usize {
        if self.marked.is_some() { CHUNK_LEN } else { 0 }
    }

    /// Writes ECNE before a SACK.
    pub(super) fn write_echo(&self, writer: &mut PacketWriter<'_>) {
        if let Some(tsn) = self.marked {
            writer.ecne(tsn);
        }
    }

    /// Writes CWR before DATA.
    pub(super) fn write_cwr(&mut self, writer: &mut PacketWriter<'_>) {
        self.reduced = self.reduced.filter(|&tsn| !writer.cwr(tsn));
    }

    pub(super) const fn counters(&self) -> CongestionMarks {
        self.counters
    }
}
