//! RACK (RFC 8985 §6.2): a packet is lost if a packet sent later has arrived, and a round trip and the reordering window have
//! passed since it was sent. The tail loss probes of §7 are not implemented: thin streams have the probe timer.

use std::time::Duration;

use rexmit_core::Instant;

use crate::outstanding::PacketNumber;
use crate::probe::ProbeTimer;
use crate::state::State;

/// The minimum RTT is remembered for one to two of these periods.
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
/// `RACK.reo_wnd_persist`: the number of recoveries for which a window widened by duplicate reports is kept.
const PERSIST: u8 = 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Rack {
    /// The packet sent last among those that have arrived, and its round trip time: `RACK.segment`, `RACK.rtt`.
    newest: Option<(PacketNumber, Duration)>,
    /// `RACK.min_RTT`: the minimum of the current period and of the one before, and when the current one began.
    min_rtt: Option<(Duration, Duration, Instant)>,
    /// `RACK.reordering_seen` (step 3): a unit that was sent once arrived below an acknowledged one.
    pub(super) has_seen_reordering: bool,
    /// `RACK.dsack_round`: duplicate reports are ignored until this unit is acknowledged.
    round: Option<u64>,
    /// `RACK.reo_wnd_mult` minus one.
    extra: u32,
    persist: u8,
}

impl Rack {
    /// Steps 1 and 2: called when a unit of this packet is acknowledged for the first time. `is_ambiguous` if
    /// the packet was a retransmission, so that the original may be what arrived.
    pub(crate) fn on_arrived(
        &mut self,
        now: Instant,
        packet: PacketNumber,
        sent_at: Instant,
        is_ambiguous: bool,
    ) {
        let rtt = now - sent_at;
        if is_ambiguous && self.min_rtt().is_none_or(|min| rtt < min) {
            return;
        }
        if !is_ambiguous {
            self.take_min(now, rtt);
        }
        if self.newest.is_none_or(|(newest, ..)| packet > newest) {
            self.newest = Some((packet, rtt));
        }
    }

    pub(crate) fn has_newer(&self, packet: PacketNumber) -> bool {
        self.newest.is_some_and(|(newest, ..)| newest > packet)
    }

    fn take_min(&mut self, now: Instant, rtt: Duration) {
        self.min_rtt = Some(match self.min_rtt {
            None => (rtt, rtt, now),
            Some((current, _, since)) if now - since > MIN_RTT_LIFE => (rtt, current, now),
            Some((current, before, since)) => (current.min(rtt), before, since),
        });
    }

    fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|(current, before, _)| current.min(before))
    }

    /// Step 4: called when an ACK reports a duplicate, with units up to `highest` sent. Widens the window once per round trip.
    pub(crate) fn on_duplicate(&mut self, cumulative: u64, highest: u64) {
        if self.round.is_none_or(|round| cumulative >= round) {
            self.round = Some(highest);
            self.extra = self.extra.saturating_add(1);
            self.persist = PERSIST;
        }
    }

    /// Step 4: called when a recovery is over.
    pub(crate) const fn on_recovery_left(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.extra = 0;
        }
    }

    /// `RACK.reo_wnd`: zero while no reordering was seen, if `is_enough`: a recovery is in progress, or
    /// enough is acknowledged above a gap to begin one.
    fn window(&self, srtt: Duration, is_enough: bool) -> Duration {
        if !self.has_seen_reordering && is_enough {
            return Duration::ZERO;
        }
        let quarter = self.min_rtt().unwrap_or_default() / 4;
        quarter.saturating_mul(self.extra.saturating_add(1)).min(srtt)
    }

    /// The packet number below which packets are lost, and the age from which they are.
    fn limit(&self, srtt: Duration, is_enough: bool) -> Option<(PacketNumber, Duration)> {
        let (newest, rtt) = self.newest?;
        Some((newest, rtt + self.window(srtt, is_enough)))
    }

    /// Step 5: the packets of `path` that are lost by now, and when to look again.
    pub(super) fn expired<P>(
        &self,
        now: Instant,
        path: u8,
        state: &State<P>,
        probe: &ProbeTimer,
    ) -> (Vec<PacketNumber>, Instant) {
        let is_enough = state.fast_recovery.is_on_path(path)
            || has_acknowledged(state, path, state.config.missing_reports);
        let srtt = state.paths[path].timer.rtt().srtt().unwrap_or_default();
        let mut due = Vec::new(); // Allocates only when something is lost.
        let Some((newest, age)) = self.limit(srtt, is_enough) else {
            return (due, Instant::FAR_FUTURE);
        };
        let in_flight = state.outstanding.packets().in_flight(path);
        for (number, packet) in in_flight.take_while(|(number, _)| *number < newest) {
            if probe.covers(state, path, packet.groups) {
                continue; // The probe timer sees to it.
            }
            if packet.sent_at + age > now {
                return (due, packet.sent_at + age);
            }
            due.push(number);
        }
        (due, Instant::FAR_FUTURE)
    }
}

/// Whether at least `units` units that were sent over `path` are acknowledged above the cumulative point.
fn has_acknowledged<P>(state: &State<P>, path: u8, units: u8) -> bool {
    let (outstanding, units) = (&state.outstanding, usize::from(units));
    let acknowledged = outstanding.acknowledged();
    let is_of_path =
        |&unit: &u64| outstanding.unit(unit).is_some_and(|unit| unit.last().path == path);
    let of_path = acknowledged.iter().rev().flat_map(Iterator::rev).filter(is_of_path);
    of_path.take(units).count() == units
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const SRTT: Duration = Duration::from_millis(100);

    /// A packet that was sent at 0 arrives with a round trip of 80 ms.
    fn rack() -> Rack {
        let mut rack = Rack::default();
        arrive(&mut rack, 80, 1, 0, false);
        rack
    }

    fn arrive(rack: &mut Rack, ms: u64, packet: u64, sent_ms: u64, is_ambiguous: bool) {
        let [now, sent_at] = [ms, sent_ms].map(Instant::from_millis);
        rack.on_arrived(now, PacketNumber(packet), sent_at, is_ambiguous);
    }

    /// RFC 8985 §6.2 step 4.
    #[test]
    fn the_window_is_a_quarter_of_the_shortest_round_trip_or_none_before_reordering() {
        let mut rack = rack();
        assert_eq!(rack.limit(SRTT, false), Some((PacketNumber(1), MS(100))));
        assert_eq!(rack.limit(SRTT, true), Some((PacketNumber(1), MS(80))));
        rack.has_seen_reordering = true;
        assert_eq!(rack.limit(SRTT, true), Some((PacketNumber(1), MS(100))));
    }

    /// RFC 8985 §6.2 step 4: linear, once per round, up to SRTT, for 16 recoveries.
    #[test]
    fn duplicates_widen_the_window_once_per_round() {
        let mut rack = rack();
        rack.has_seen_reordering = true;
        let window = |rack: &Rack| rack.window(SRTT, false);
        rack.on_duplicate(10, 20);
        rack.on_duplicate(19, 30);
        assert_eq!(window(&rack), MS(40));
        rack.on_duplicate(20, 30);
        assert_eq!(window(&rack), MS(60));
        (3..9).for_each(|round| rack.on_duplicate(10 * round, 10 * (round + 1)));
        assert_eq!(window(&rack), SRTT);
        (0..15).for_each(|_| rack.on_recovery_left());
        assert_eq!(window(&rack), SRTT);
        rack.on_recovery_left();
        assert_eq!(window(&rack), MS(20));
    }

    /// RFC 8985 §6.2 step 2, second condition.
    #[test]
    fn data_that_arrives_sooner_than_a_round_trip_after_it_was_repeated_is_not_the_copy() {
        let mut rack = rack();
        arrive(&mut rack, 279, 5, 200, true);
        assert_eq!(rack.limit(SRTT, false), Some((PacketNumber(1), MS(100))));
        arrive(&mut rack, 280, 5, 200, true);
        assert_eq!(rack.limit(SRTT, false), Some((PacketNumber(5), MS(100))));
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten() {
        let mut rack = rack();
        for (packet, second) in [(2, 11), (3, 22)] {
            let sent_at = second * 1000;
            arrive(&mut rack, sent_at + 200, packet, sent_at, false);
        }
        assert_eq!(rack.window(Duration::from_secs(1), false), MS(50));
    }
}
