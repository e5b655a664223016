//! Invariants of units, packets and sums, which hold after every transition; checked in debug builds.

use super::repeats::Repeats;
use super::{Outstanding, UnitState};

/// When the invariants are checked next: once per as many transitions as there are units, so that a check
/// adds a constant to the cost of a transition.
#[derive(Clone, Debug, Default)]
pub(super) struct Checks {
    left: usize,
    #[cfg(test)]
    visits: std::cell::Cell<u64>,
}

#[cfg(test)]
impl Checks {
    /// Counts the lookups of units, which are the cost of an acknowledgement.
    pub(super) fn count_visit(&self) {
        self.visits.update(|visits| visits + 1);
    }
}

#[cfg(test)]
impl<P> Outstanding<P> {
    pub(crate) const fn visits(&self) -> &std::cell::Cell<u64> {
        &self.checks.visits
    }
}

impl<P> Outstanding<P> {
    pub(super) fn check_now_and_then(&mut self) {
        if self.checks.left == 0 {
            self.check_invariants();
            self.checks.left = self.units.len();
        }
        self.checks.left = self.checks.left.saturating_sub(1);
    }

    /// # Panics
    /// If a sum is not that of the units.
    pub(crate) fn check_invariants(&self) {
        #[cfg(test)]
        let visits = self.checks.visits.get();
        for (path, index) in self.paths.iter().zip(0..) {
            let on_path = || self.units_from(0).filter(move |(_, u)| u.path == index);
            let outstanding = || on_path().filter(|(_, u)| u.is_outstanding());
            assert_eq!(path.outstanding, outstanding().count() as u32, "units of path {index}");
            let lowest = outstanding().map(|(unit, _)| unit).min();
            assert!(lowest.is_none_or(|unit| unit >= path.earliest), "earliest of path {index}");
            let lost = on_path().filter(|(_, u)| matches!(u.state, UnitState::Lost(_)));
            assert!(
                lost.map(|(unit, _)| unit).eq(path.lost.iter().copied()),
                "lost on path {index}"
            );
            let last_over = || self.units_from(0).filter(move |(_, u)| u.last_sent.path == index);
            let awaiting = last_over().filter(|(_, u)| matches!(u.state, UnitState::Lost(_)));
            assert_eq!(path.awaiting, awaiting.count() as u32, "awaiting of path {index}");
            let user_bytes = last_over().filter(|(_, u)| u.is_outstanding());
            let user_bytes: u64 = user_bytes.map(|(_, u)| u64::from(u.user_bytes)).sum();
            assert_eq!(path.user_bytes, user_bytes, "user bytes of path {index}");
            let in_flight = on_path().filter(|(_, u)| u.is_in_flight());
            let bytes: u64 = in_flight.map(|(_, u)| u64::from(u.bytes)).sum();
            let flight = self.packets.flight(index);
            assert_eq!(flight.bytes, bytes, "bytes in flight on path {index}");
            for (number, packet) in self.packets.in_flight(index) {
                let carried = self.units_from(packet.lowest);
                let carried = carried.take_while(|(unit, _)| *unit <= packet.highest);
                let units = carried.filter(|(_, unit)| unit.is_in_flight_in(number)).count();
                assert_eq!(usize::from(packet.in_flight), units, "units in {number:?}");
            }
            let packets = self.packets.in_flight(index).count();
            assert_eq!(flight.packets as usize, packets, "packets in flight on path {index}");
        }
        let sum = |state: fn(&UnitState) -> bool| -> u64 {
            self.units.iter().filter(|u| state(&u.state)).map(|u| u64::from(u.user_bytes)).sum()
        };
        assert_eq!(self.user_bytes_in_flight, sum(|state| *state == UnitState::InFlight));
        assert_eq!(self.user_bytes_lost, sum(|state| matches!(state, UnitState::Lost(_))));
        assert_eq!(self.bytes, self.units.iter().map(|u| u64::from(u.bytes)).sum::<u64>());
        let of_units: usize =
            self.units.iter().filter_map(|u| u.repeats()).map(Repeats::open).sum();
        let remembered = of_units + self.history.remembered_of_delivered();
        assert_eq!(self.history.remembered, remembered, "transmissions remembered");
        #[cfg(test)]
        self.checks.visits.set(visits);
    }
}
