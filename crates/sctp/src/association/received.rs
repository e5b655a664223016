//! Which TSNs have arrived, and when a SACK is due (RFC 9260 §6.2, §6.7).

use rexmit_core::RangeSet;

use crate::config::AssociationConfig;

/// The most duplicate TSNs reported in one SACK.
pub(super) const MAX_DUPLICATES: usize = 32;
/// How far above the cumulative TSN a chunk may be. A gap block's offset has 16 bits. Half of that range also keeps the
/// SSNs of a stream, each of which uses a TSN, within half of their number space, so that a later one is never mistaken
/// for an earlier one.
const MAX_TSN_AHEAD: u64 = i16::MAX as u64;

/// What to do with a received TSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    New,
    Duplicate,
    /// The TSN is refused: it is too far ahead, or would open one gap too many.
    BeyondLimit,
}

/// The TSNs received, unwrapped, and the state of their acknowledgement.
#[derive(Debug)]
pub(super) struct Received {
    cumulative: u64,
    above: RangeSet,
    /// Reported with the next SACK.
    duplicates: Vec<u32>,
    /// Packets with DATA since the last SACK.
    unacknowledged_packets: u8,
    /// Whether nothing was received yet: the first DATA is acknowledged at once (RFC 9260 §5.1).
    is_first: bool,
    packet: PacketNotes,
}

/// The results of the packet being processed.
#[derive(Clone, Copy, Debug, Default)]
struct PacketNotes {
    has_data: bool,
    is_urgent: bool,
    had_gap: bool,
}

/// When the packet just processed is to be acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SackDue {
    No,
    Now,
    Delayed,
}

impl Received {
    /// The state before the first DATA chunk, whose TSN will be `first`.
    pub(super) fn new(first: u64) -> Self {
        Self {
            cumulative: first - 1,
            above: RangeSet::new(),
            duplicates: Vec::new(),
            unacknowledged_packets: 0,
            is_first: true,
            packet: PacketNotes::default(),
        }
    }

    /// The cumulative TSN: every TSN up to this one has arrived.
    pub(super) const fn cumulative(&self) -> u64 {
        self.cumulative
    }

    /// The highest TSN that has arrived.
    pub(super) fn highest(&self) -> u64 {
        self.above.max().unwrap_or(self.cumulative)
    }

    pub(super) fn has_gap(&self) -> bool {
        !self.above.is_empty()
    }

    /// Whether received data is not acknowledged yet.
    pub(super) fn is_unacknowledged(&self) -> bool {
        self.unacknowledged_packets > 0 || !self.duplicates.is_empty()
    }

    /// The number of ranges above the cumulative TSN.
    pub(super) fn gap_block_count(&self) -> usize {
        self.above.range_count()
    }

    /// The ranges above the cumulative TSN as offsets from it, lowest first.
    pub(super) fn gap_ack_blocks(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        let offset = |tsn: u64| u16::try_from(tsn - self.cumulative).unwrap_or(u16::MAX);
        self.above.iter().map(move |range| (offset(*range.start()), offset(*range.end())))
    }

    /// Packets with DATA since the last SACK.
    pub(super) const fn unacknowledged_packets(&self) -> u8 {
        self.unacknowledged_packets
    }

    pub(super) fn duplicates(&self) -> &[u32] {
        &self.duplicates
    }

    /// Called before a received packet is processed.
    pub(super) fn begin_packet(&mut self) {
        self.packet = PacketNotes { had_gap: self.has_gap(), ..PacketNotes::default() };
    }

    /// Records `tsn`, which the current packet carries, and returns what to do with it; `immediate` is its I
    /// bit.
    pub(super) fn on_tsn(
        &mut self,
        tsn: u64,
        immediate: bool,
        limits: &AssociationConfig,
    ) -> Arrival {
        self.packet.has_data = true;
        self.packet.is_urgent |= immediate;
        if tsn <= self.cumulative || self.above.contains(tsn) {
            self.packet.is_urgent = true;
            if self.duplicates.len() < MAX_DUPLICATES {
                self.duplicates.push(tsn as u32);
            }
            return Arrival::Duplicate;
        }
        let opens_range = tsn != self.cumulative + 1
            && !self.above.contains(tsn - 1)
            && !self.above.contains(tsn + 1);
        let is_beyond = tsn - self.cumulative > MAX_TSN_AHEAD
            || (opens_range && self.above.range_count() >= limits.buffers.max_gap_ranges);
        if is_beyond {
            self.packet.is_urgent = true;
            return Arrival::BeyondLimit;
        }
        Arrival::New
    }

    /// Records that `tsn`, which is new, was accepted.
    pub(super) fn record(&mut self, tsn: u64) {
        if tsn == self.cumulative + 1 {
            self.cumulative = tsn;
            self.pass_contiguous();
        } else {
            self.above.insert(tsn);
        }
    }

    /// A chunk of the packet was refused: the sender must know the window at once
    /// (RFC 9260 §6.2).
    pub(super) fn note_refused(&mut self) {
        self.packet.is_urgent = true;
    }

    /// Treats everything up to `cumulative` as received (FORWARD-TSN). Returns whether that is new.
    pub(super) fn skip_to(&mut self, cumulative: u64) -> bool {
        self.packet.has_data = true;
        self.packet.is_urgent = true;
        if cumulative <= self.cumulative {
            return false;
        }
        self.cumulative = cumulative;
        self.above.remove_below(cumulative + 1);
        self.pass_contiguous();
        true
    }

    fn pass_contiguous(&mut self) {
        if let Some(range) = self.above.first().filter(|r| *r.start() == self.cumulative + 1) {
            self.cumulative = *range.end();
            self.above.remove_below(self.cumulative + 1);
        }
    }

    /// Called after a received packet was processed. Returns whether a SACK is due.
    ///
    /// With DAC (delayed ACKs for several paths), a gap does not make a SACK due, because packets of
    /// different paths overtake each other.
    pub(super) fn end_packet(&mut self, config: &AssociationConfig, has_dac: bool) -> SackDue {
        let notes = std::mem::take(&mut self.packet);
        if !notes.has_data {
            return SackDue::No;
        }
        self.unacknowledged_packets = self.unacknowledged_packets.saturating_add(1);
        let is_first = std::mem::take(&mut self.is_first);
        let is_due = notes.is_urgent
            || (!has_dac && (notes.had_gap || self.has_gap()))
            || is_first
            || self.unacknowledged_packets >= config.sack.every
            || config.sack.delay.is_zero();
        if is_due { SackDue::Now } else { SackDue::Delayed }
    }

    /// Called when a SACK with all received TSNs was written.
    pub(super) fn on_sack_sent(&mut self) {
        self.unacknowledged_packets = 0;
        self.duplicates.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(received: &mut Received, tsns: &[u64]) -> SackDue {
        let config = AssociationConfig::rfc9260();
        received.begin_packet();
        for &tsn in tsns {
            if received.on_tsn(tsn, false, &config) == Arrival::New {
                received.record(tsn);
            }
        }
        received.end_packet(&config, false)
    }

    #[test]
    fn acknowledges_the_first_packet_then_every_second() {
        let mut received = Received::new(100);
        assert_eq!(take(&mut received, &[100, 101]), SackDue::Now);
        received.on_sack_sent();
        assert_eq!(take(&mut received, &[102]), SackDue::Delayed);
        assert_eq!(take(&mut received, &[103]), SackDue::Now);
        assert_eq!(received.cumulative(), 103);
    }

    #[test]
    fn acknowledges_at_once_while_there_is_a_gap_and_when_it_closes() {
        let mut received = Received::new(100);
        take(&mut received, &[100]);
        received.on_sack_sent();
        assert_eq!(take(&mut received, &[102]), SackDue::Now);
        assert_eq!(received.gap_ack_blocks().collect::<Vec<_>>(), [(2, 2)]);
        received.on_sack_sent();
        assert_eq!(take(&mut received, &[101]), SackDue::Now);
        assert_eq!((received.cumulative(), received.has_gap()), (102, false));
    }

    #[test]
    fn reports_a_duplicate_at_once_and_no_more_than_the_limit() {
        let mut received = Received::new(100);
        take(&mut received, &[100]);
        received.on_sack_sent();
        assert_eq!(take(&mut received, &[100]), SackDue::Now);
        assert_eq!(received.duplicates(), [100]);
        for _ in 0..2 * MAX_DUPLICATES {
            take(&mut received, &[100]);
        }
        assert_eq!(received.duplicates().len(), MAX_DUPLICATES);
    }

    #[test]
    fn gap_ranges_and_distance_are_limited_but_gaps_can_always_be_filled() {
        let config = AssociationConfig::rfc9260().max_gap_ranges(2);
        let mut received = Received::new(100);
        for tsn in [102, 104] {
            assert_eq!(received.on_tsn(tsn, false, &config), Arrival::New);
            received.record(tsn);
        }
        assert_eq!(received.on_tsn(106, false, &config), Arrival::BeyondLimit);
        assert_eq!(received.on_tsn(105, false, &config), Arrival::New);
        assert_eq!(received.on_tsn(103, false, &config), Arrival::New);
        assert_eq!(received.on_tsn(100, false, &config), Arrival::New);
        assert_eq!(received.on_tsn(99 + 32_768, false, &config), Arrival::BeyondLimit);
    }
}
