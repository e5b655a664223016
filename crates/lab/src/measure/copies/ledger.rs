//! Records of the units in each packet, the packets that carry each unit, and their outcomes.

use std::collections::VecDeque;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun};
use rexmit_netsim::network::PacketId;
use smallvec::SmallVec;

use super::answers::{Answers, Told};
use super::events::Events;
use super::statistics::CopyStatistics;
use super::unit::{Unit, UnitCopy};

/// The state of a [`CopyLedger`](super::CopyLedger).
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Packets with data that are in flight, in the order of sending.
    packets: VecDeque<Packet>,
    /// The number of the first of `units`.
    first: u64,
    /// Units with an open outcome, and those between them.
    units: VecDeque<Unit>,
    /// The cumulative acknowledgement: every unit up to this one is acknowledged.
    acknowledged: u64,
    answers: Answers,
    pub(super) events: Events,
    statistics: CopyStatistics,
}

#[derive(Debug)]
struct Packet {
    /// The sender's packet number.
    number: u64,
    /// The network's packet identifier, once the packet was sent.
    id: Option<PacketId>,
    /// Number of copies of this packet in flight.
    instances: u32,
    has_arrived: bool,
    /// The units in it: the lowest and highest of each run.
    runs: SmallVec<[(u64, u64); 2]>,
}

impl Ledger {
    /// Records that the sender has written packet `number`, which is sent next, over `path`.
    pub(super) fn on_written(&mut self, now: Instant, number: u64, path: u8, runs: &[SentRun]) {
        // Data that was written before and not sent is never sent.
        if self.packets.back().is_some_and(|packet| packet.id.is_none()) {
            self.end(self.packets.len() - 1);
        }
        self.packets.push_back(Packet {
            number,
            id: None,
            instances: 0,
            has_arrived: false,
            runs: runs.iter().map(|run| (run.lowest, run.highest)).collect(),
        });
        self.statistics.packets += 1;
        for run in runs {
            for unit in run.lowest..=run.highest {
                self.enter(now, (number, path), unit, run.cause);
            }
        }
    }

    /// Records that the packet written last also carries redundant copies.
    pub(super) fn on_copies_written(&mut self, now: Instant, number: u64, runs: &[(u64, u64)]) {
        let Some(packet) = self.packets.back_mut().filter(|packet| packet.number == number) else {
            return;
        };
        packet.runs.extend_from_slice(runs);
        for unit in runs.iter().flat_map(|&(lowest, highest)| lowest..=highest) {
            self.enter(now, (number, 0), unit, SendCause::Redundant);
        }
    }

    fn enter(&mut self, now: Instant, packet: (u64, u8), number: u64, cause: SendCause) {
        if cause == SendCause::New {
            if self.units.is_empty() {
                self.first = number;
            }
            // Units in between, if any, were abandoned before their first transmission.
            let count = (number + 1).saturating_sub(self.first) as usize;
            self.units.resize_with(count.max(self.units.len()), Unit::default);
            self.statistics.units += 1;
        }
        let Some(unit) = unit_of(&mut self.units, self.first, number) else { return };
        let event = match cause {
            SendCause::Timeout | SendCause::FastRetransmit => {
                self.events.on_copy(unit.path(), cause)
            }
            // The congestion window reacts to it as to a fast retransmit.
            SendCause::Probe => self.events.on_copy(unit.path(), SendCause::FastRetransmit),
            _ => None,
        };
        let first_answer = unit.first_answer;
        let copy = unit.on_written(now, packet, cause, event);
        if copy.had_arrived && cause != SendCause::Redundant {
            self.answers.on_repetition(first_answer);
        }
        self.statistics.of_number(&copy).sent[cause] += 1;
        self.judge(number);
    }

    /// Records that the sender's host sends a packet: the one written last, if that one was not sent yet.
    pub(super) fn on_sent(&mut self, id: PacketId) {
        if let Some(packet) = self.packets.back_mut().filter(|packet| packet.id.is_none()) {
            packet.id = Some(id);
            packet.instances = 1;
        }
    }

    /// Records that the network duplicates a packet.
    pub(super) fn on_duplicated(&mut self, id: PacketId) {
        match self.place(id) {
            Some(place) => self.packets[place].instances += 1,
            None => self.answers.on_duplicated(id),
        }
    }

    /// Records that a packet arrives undamaged. Returns whether it has data.
    pub(super) fn on_received(&mut self, now: Instant, id: PacketId) -> bool {
        let Some(place) = self.place(id) else {
            let told = self.answers.on_ended(id, true);
            self.on_answer_told(told);
            return false;
        };
        if !std::mem::replace(&mut self.packets[place].has_arrived, true) {
            self.settle(place, Some(now));
        }
        self.leave(place);
        true
    }

    /// Records that a packet is dropped, or arrives damaged.
    pub(super) fn on_dropped(&mut self, id: PacketId) {
        if let Some(place) = self.place(id) {
            return self.leave(place);
        }
        let told = self.answers.on_ended(id, false);
        self.on_answer_told(told);
    }

    /// Records that the receiver sends a packet with an acknowledgement.
    pub(super) fn on_answer_sent(&mut self, id: PacketId) {
        let told = self.answers.on_sent(id);
        self.on_answer_told(Some(told));
    }

    fn on_answer_told(&mut self, told: Option<Told>) {
        let Some(Told { units, first }) = told else { return };
        for number in units {
            if let Some(unit) = unit_of(&mut self.units, self.first, number) {
                unit.first_answer = first;
            }
        }
    }

    /// Records that everything up to `cumulative` is acknowledged: it will not be retransmitted.
    pub(super) fn on_acknowledged(&mut self, cumulative: u64) {
        self.acknowledged = self.acknowledged.max(cumulative);
        self.forget_settled();
    }

    /// The statistics so far, as if no packet in flight were lost.
    pub(super) fn statistics(&self) -> CopyStatistics {
        let (mut statistics, mut events) = (self.statistics.clone(), self.events.clone());
        for unit in &self.units {
            unit.judge_rest(|copy, is_spurious| {
                book(&mut statistics, &mut events, copy, is_spurious);
            });
        }
        statistics.spurious_classes += self.answers.statistics();
        statistics.events = events.statistics();
        statistics
    }

    /// The number of packets stored, ACKs included, and of units.
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.packets.len() + self.answers.kept(), self.units.len())
    }

    /// The index of a packet with data. Packets are in the order of their numbers.
    fn place(&self, id: PacketId) -> Option<usize> {
        let is_before = |packet: &Packet| packet.id.is_some_and(|other| other < id);
        let place = self.packets.partition_point(is_before);
        self.packets.get(place).filter(|packet| packet.id == Some(id)).map(|_| place)
    }

    /// Records that one copy of a packet is no longer in flight.
    fn leave(&mut self, place: usize) {
        let packet = &mut self.packets[place];
        packet.instances -= 1;
        if packet.instances == 0 {
            self.end(place);
        }
    }

    fn end(&mut self, place: usize) {
        if !self.packets[place].has_arrived {
            self.statistics.packets_lost += 1;
            self.settle(place, None);
        }
        self.packets.remove(place);
    }

    /// Records the outcome for the data in a packet.
    fn settle(&mut self, place: usize, arrived: Option<Instant>) {
        let packet = self.packets[place].number;
        let runs = std::mem::take(&mut self.packets[place].runs); // Not needed again.
        for number in runs.iter().flat_map(|&(lowest, highest)| lowest..=highest) {
            let Some(unit) = unit_of(&mut self.units, self.first, number) else { continue };
            if let Some((copy, latency)) = unit.on_ended(packet, arrived) {
                let of_number = self.statistics.of_number(&copy);
                of_number.latency.record(latency);
                of_number.delivered[copy.cause] += 1;
                self.statistics.latency_by_cause[copy.cause].record(latency);
                self.answers.on_unit_arrived(number);
            }
            self.judge(number);
        }
        self.forget_settled();
    }

    fn judge(&mut self, number: u64) {
        let Self { statistics, events, units, first, .. } = self;
        if let Some(unit) = unit_of(units, *first, number) {
            unit.judge(|copy, is_spurious| book(statistics, events, copy, is_spurious));
        }
        self.events.forget_settled();
    }

    fn forget_settled(&mut self) {
        while self.first <= self.acknowledged && self.units.front().is_some_and(Unit::is_judged) {
            self.units.pop_front();
            self.first += 1;
        }
    }
}

/// Counts whether `copy` was spurious.
fn book(statistics: &mut CopyStatistics, events: &mut Events, copy: &UnitCopy, is_spurious: bool) {
    statistics.of_number(copy).spurious[copy.cause] += u64::from(is_spurious);
    // Retransmissions of units that had arrived are classified by their ACKs.
    let is_unseen = is_spurious && !copy.had_arrived && copy.cause != SendCause::Redundant;
    statistics.spurious_classes.premature += u64::from(is_unseen);
    if let Some(event) = copy.event {
        events.on_judged(event, !is_spurious);
    }
}

fn unit_of(units: &mut VecDeque<Unit>, first: u64, number: u64) -> Option<&mut Unit> {
    units.get_mut(usize::try_from(number.checked_sub(first)?).ok()?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::KindStatistics;
    use super::*;

    /// Records that the sender writes packet `packet` with these units, all for one cause.
    fn write(ledger: &mut Ledger, packet: u64, (lowest, highest): (u64, u64), cause: SendCause) {
        let now = Instant::from_millis(packet);
        ledger.on_written(now, packet, 0, &[SentRun::new(lowest, highest, cause)]);
    }

    /// Records that the packet is sent; the network's numbers are ten times the sender's.
    fn send(ledger: &mut Ledger, packet: u64, units: (u64, u64), cause: SendCause) {
        write(ledger, packet, units, cause);
        ledger.on_sent(PacketId(10 * packet));
        // A packet without data.
        ledger.on_sent(PacketId(10 * packet + 1));
    }

    fn receive(ledger: &mut Ledger, packet: u64) {
        ledger.on_received(Instant::from_millis(100), PacketId(10 * packet));
    }

    #[test]
    fn one_copy_of_a_duplicated_packet_may_be_lost() {
        for is_lost_first in [true, false] {
            let mut ledger = Ledger::default();
            send(&mut ledger, 1, (7, 8), SendCause::New);
            ledger.on_duplicated(PacketId(10));
            if is_lost_first {
                ledger.on_dropped(PacketId(10));
                assert_eq!(ledger.statistics().delivered(), 0);
            }
            receive(&mut ledger, 1);
            if !is_lost_first {
                ledger.on_dropped(PacketId(10));
            }
            let statistics = ledger.statistics();
            assert_eq!((statistics.delivered(), statistics.packets_lost), (2, 0));
            assert_eq!(ledger.kept(), (0, 2), "not acknowledged");
            ledger.on_acknowledged(8);
            assert_eq!(ledger.kept(), (0, 0));
        }
    }

    #[test]
    fn other_packets_do_not_affect_it() {
        let mut ledger = Ledger::default();
        send(&mut ledger, 1, (7, 7), SendCause::New);
        for id in [0, 5, 11, 20] {
            ledger.on_dropped(PacketId(id));
            ledger.on_duplicated(PacketId(id));
            ledger.on_received(Instant::ZERO, PacketId(id));
        }
        assert_eq!((ledger.statistics().delivered(), ledger.kept()), (0, (1, 1)));
    }

    /// Units that are abandoned before they are sent have numbers, but are not counted.
    #[test]
    fn units_that_were_never_sent_are_not_counted() {
        let mut ledger = Ledger::default();
        send(&mut ledger, 1, (7, 7), SendCause::New);
        send(&mut ledger, 2, (10, 10), SendCause::New);
        receive(&mut ledger, 2);
        ledger.on_acknowledged(9);
        let statistics = ledger.statistics();
        assert_eq!((statistics.units, statistics.delivered(), ledger.kept()), (2, 1, (1, 4)));
        // 7 was given up, too, but its packet may still arrive.
        receive(&mut ledger, 1);
        assert_eq!((ledger.statistics().delivered(), ledger.kept()), (2, (0, 1)));
        ledger.on_acknowledged(10);
        send(&mut ledger, 3, (13, 13), SendCause::New);
        assert_eq!(ledger.kept(), (1, 1));
    }

    #[test]
    fn unsent_data_is_lost_on_abort() {
        let mut ledger = Ledger::default();
        write(&mut ledger, 1, (7, 7), SendCause::New);
        send(&mut ledger, 2, (7, 7), SendCause::Timeout);
        receive(&mut ledger, 2);
        let statistics = ledger.statistics();
        assert_eq!((statistics.packets_lost, statistics.spurious().total()), (1, 0));
        assert_eq!(statistics.by_retransmission[1].latency.mean(), Some(Duration::from_millis(99)));
    }

    /// A window that stays closed is probed indefinitely.
    #[test]
    fn memory_does_not_grow_with_the_retransmissions_of_a_unit() {
        for is_first_lost in [true, false] {
            let mut ledger = Ledger::default();
            send(&mut ledger, 1, (7, 7), SendCause::New);
            if is_first_lost {
                ledger.on_dropped(PacketId(10));
            } else {
                receive(&mut ledger, 1);
            }
            for packet in 2..10_000 {
                send(&mut ledger, packet, (7, 7), SendCause::WindowProbe);
                ledger.on_dropped(PacketId(10 * packet));
                assert!(ledger.units[0].is_judged());
            }
            let expected = if is_first_lost { 0 } else { 9998 };
            assert_eq!(ledger.statistics().spurious()[SendCause::WindowProbe], expected);
        }
    }

    /// Units 1 to 3 are sent, the last packet arrives, and an episode declares 1 and 2 lost; `lost` really
    /// is.
    fn event(lost: Option<u64>, kind: SendCause) -> Ledger {
        let mut ledger = Ledger::default();
        (1..=3).for_each(|n| send(&mut ledger, n, (n, n), SendCause::New));
        receive(&mut ledger, 3);
        ledger.events.begin(0, kind);
        send(&mut ledger, 4, (1, 2), kind);
        for n in 1..=2 {
            if lost == Some(n) {
                ledger.on_dropped(PacketId(10 * n));
            } else {
                receive(&mut ledger, n);
            }
        }
        ledger
    }

    #[test]
    fn an_event_is_spurious_if_nothing_in_it_was_lost() {
        let counts = |events, spurious, detected, mistaken| KindStatistics {
            events,
            spurious,
            detected,
            mistaken,
        };
        for (lost, is_told, expected) in [
            (None, false, counts(1, 1, 0, 0)),
            (None, true, counts(1, 1, 1, 0)),
            (Some(1), false, counts(1, 0, 0, 0)),
            (Some(2), true, counts(1, 0, 0, 1)),
        ] {
            let mut ledger = event(lost, SendCause::FastRetransmit);
            if is_told {
                ledger.events.on_told(0);
            }
            receive(&mut ledger, 4);
            let events = ledger.statistics().events;
            let none = KindStatistics::default();
            assert_eq!((events.fast_retransmits, events.timeouts), (expected, none));
            // Its later outcome changes nothing, so it is removed.
            ledger.events.begin(0, SendCause::Timeout);
            assert_eq!(ledger.statistics().events.fast_retransmits, expected);
            assert_eq!(ledger.statistics().events.timeouts, counts(1, 1, 0, 0));
            assert_eq!(ledger.events.kept(), 1);
        }
    }

    /// A loss is known only when the last copy has reached its end.
    #[test]
    fn an_event_waits_for_its_copies() {
        let mut ledger = event(None, SendCause::Timeout);
        send(&mut ledger, 5, (4, 4), SendCause::New);
        ledger.events.begin(0, SendCause::Timeout);
        send(&mut ledger, 6, (4, 4), SendCause::Timeout);
        assert_eq!(ledger.events.kept(), 1, "the first is known");
        assert_eq!(ledger.statistics().events.timeouts.spurious, 2, "4 is not lost yet");
        ledger.events.on_told(0);
        assert_eq!(ledger.events.kept(), 1);
        ledger.on_dropped(PacketId(50));
        receive(&mut ledger, 6);
        assert_eq!(ledger.events.kept(), 0);
        let timeouts = ledger.statistics().events.timeouts;
        assert_eq!((timeouts.events, timeouts.spurious, timeouts.mistaken), (2, 1, 1));
    }

    /// An episode belongs to the path over which the units that it declared lost were sent.
    #[test]
    fn a_retransmission_over_another_path_belongs_to_the_event_of_its_original_path() {
        let mut ledger = Ledger::default();
        let leave = |ledger: &mut Ledger, packet: u64, path, unit, cause| {
            let run = SentRun::new(unit, unit, cause);
            ledger.on_written(Instant::from_millis(packet), packet, path, &[run]);
            ledger.on_sent(PacketId(10 * packet));
        };
        leave(&mut ledger, 1, 0, 1, SendCause::New);
        leave(&mut ledger, 2, 1, 2, SendCause::New);
        ledger.events.begin(0, SendCause::FastRetransmit);
        ledger.events.begin(1, SendCause::Timeout);
        leave(&mut ledger, 3, 1, 1, SendCause::FastRetransmit);
        ledger.on_dropped(PacketId(10));
        leave(&mut ledger, 4, 0, 2, SendCause::Timeout);
        [2, 3, 4].into_iter().for_each(|packet| receive(&mut ledger, packet));
        ledger.events.on_told(1);
        let events = ledger.statistics().events;
        assert_eq!((events.fast_retransmits.spurious, events.timeouts.detected), (0, 1));
        // Its last transmission was over path 1.
        ledger.events.begin(1, SendCause::Timeout);
        leave(&mut ledger, 5, 0, 1, SendCause::Timeout);
        ledger.on_dropped(PacketId(50));
        assert_eq!(ledger.statistics().events.timeouts.spurious, 2);
    }
}
