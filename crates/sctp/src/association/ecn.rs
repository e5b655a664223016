//! Explicit congestion notification (RFC 3168; its chunks: RFC 4960 appendix A).
//!
//! A router marks a packet (CE). Its receiver sends ECNE with each SACK until CWR reports that the window was reduced, and
//! the sender sends CWR with the next DATA. The two directions are independent.

use rexmit_core::serial::{Serial, unwrap_u32};
use rexmit_core::{Ecn, Instant};
use rexmit_recovery::CongestionEcho;

use super::context::{Context, Recovery};
use crate::statistics::CongestionMarks;
use crate::wire::{CHUNK_HEADER_LEN, PacketWriter};

/// Bytes of ECNE and of CWR.
const CHUNK_LEN: usize = CHUNK_HEADER_LEN + 4;
/// How many packets with new DATA say that they may be marked before one is acknowledged: a path may drop all that do (RFC
/// 9000 §13.4.2). Until then retransmissions do not say so.
const MAX_UNCONFIRMED: u8 = 10;
/// After so many timeouts in a row on a path its packets do not say so either.
const MAX_TIMEOUTS: u32 = 2;

/// The state of ECN of an association whose ends both use it.
#[derive(Debug)]
pub(super) struct CongestionNotification {
    /// The lowest TSN of the packet that was marked last, until CWR covers it.
    marked: Option<u32>,
    packet: MarkedPacket,
    /// Our first TSN, unwrapped.
    first: u64,
    /// The TSN that CWR is to report.
    reduced: Option<u32>,
    /// What CWR reported last, and when.
    reported: Option<(u32, Instant)>,
    /// By path.
    passages: Vec<Passage>,
    /// The cumulative TSN of the latest SACK, unwrapped.
    cumulative: u64,
    counters: CongestionMarks,
}

/// The packet being processed.
#[derive(Clone, Copy, Debug, Default)]
struct MarkedPacket {
    is_marked: bool,
    lowest_tsn: Option<u32>,
}

/// Whether packets that may be marked arrive over a path.
#[derive(Clone, Copy, Debug, Default)]
struct Passage {
    is_confirmed: bool,
    /// Packets with new DATA that were sent to find out.
    sent: u8,
    /// The first and the last TSN in them, unwrapped.
    tsns: Option<(u64, u64)>,
}

/// The DATA of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSent {
    pub(super) path: u8,
    /// Timeouts and unanswered HEARTBEATs of the path in a row.
    pub(super) errors: u32,
    /// The first and the last new TSN, unwrapped, if there are any.
    pub(super) new: Option<(u64, u64)>,
}

impl CongestionNotification {
    /// The state before our first DATA chunk, whose TSN will be `first`.
    pub(super) fn new(first: u64) -> Self {
        Self {
            marked: None,
            packet: MarkedPacket::default(),
            first,
            reduced: None,
            reported: None,
            passages: Vec::new(),
            cumulative: first - 1,
            counters: CongestionMarks::default(),
        }
    }

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

    /// Processes ECNE: the window is reduced once per window of data, and CWR is due, once per round trip for the same reduction.
    pub(super) fn on_ecne(&mut self, cx: &mut Context<'_>, recovery: &mut Recovery, tsn: u32) {
        let unit = unwrap_u32(recovery.outstanding().cumulative(), tsn);
        if unit < self.first {
            return;
        }
        let Some(reduced) = CongestionEcho { unit }.answer(recovery, &mut cx.tracer()) else {
            return;
        };
        self.counters.echoes_received += 1;
        let reduced = reduced as u32;
        let rtt = recovery.paths()[recovery.paths().data_path()].timer().rtt().srtt();
        let is_on_its_way = self
            .reported
            .is_some_and(|(tsn, at)| tsn == reduced && cx.now - at < rtt.unwrap_or_default());
        if !is_on_its_way {
            self.reduced = Some(reduced);
        }
    }

    /// Called when data up to `cumulative`, unwrapped, was acknowledged. `paths` are those over which it was certainly sent, if
    /// nothing of it was sent twice: bit `n` is path `n`.
    pub(super) fn on_acknowledged(&mut self, cumulative: u64, paths: u64) {
        let before = std::mem::replace(&mut self.cumulative, cumulative);
        if before == cumulative {
            return;
        }
        for (path, passage) in self.passages.iter_mut().enumerate() {
            let is_answered = |(first, last)| first <= cumulative && before < last;
            passage.is_confirmed |=
                paths & (1 << path) != 0 && passage.tsns.is_some_and(is_answered);
        }
    }

    /// The field of the packet with this DATA.
    pub(super) fn field_of(&mut self, data: DataSent) -> Ecn {
        let path = usize::from(data.path);
        if self.passages.len() <= path {
            self.passages.resize_with(path + 1, Passage::default);
        }
        let passage = &mut self.passages[path];
        if data.errors >= MAX_TIMEOUTS {
            *passage = Passage::default();
            return Ecn::NotEct;
        }
        if passage.is_confirmed {
            return Ecn::Ect0;
        }
        let Some((first, last)) = data.new.filter(|_| passage.sent < MAX_UNCONFIRMED) else {
            return Ecn::NotEct;
        };
        passage.sent += 1;
        passage.tsns = Some((passage.tsns.map_or(first, |(first, _)| first), last));
        Ecn::Ect0
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

    /// Bytes of CWR, if it is to go before the next DATA.
    pub(super) const fn answer_len(&self) -> usize {
        if self.reduced.is_some() { CHUNK_LEN } else { 0 }
    }

    /// Writes CWR before DATA.
    pub(super) fn write_cwr(&mut self, now: Instant, writer: &mut PacketWriter<'_>) {
        if let Some(tsn) = self.reduced.filter(|&tsn| writer.cwr(tsn)) {
            self.reduced = None;
            self.reported = Some((tsn, now));
        }
    }

    pub(super) const fn counters(&self) -> CongestionMarks {
        self.counters
    }
}
