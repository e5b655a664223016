//! Random operations, compared with a model without sums that counts each figure from the units.

use std::collections::BTreeSet;

use rexmit_core::{Rng, Seed};

use super::*;

const PATHS: u8 = 3;
const GROUPS: u8 = 3;

#[derive(Clone, Debug)]
struct ModelUnit {
    bytes: u32,
    group: u8,
    state: UnitState,
    path: u8,
    sent_over: u8,
    packet: usize,
    transmissions: u16,
}

#[derive(Clone, Debug)]
struct ModelPacket {
    path: u8,
    in_flight: u16,
    groups: Vec<u8>,
    is_in_flight: bool,
}

/// The model of [`Outstanding`].
struct Model {
    first: u64,
    units: VecDeque<ModelUnit>,
    packets: Vec<ModelPacket>,
    reported: BTreeSet<u64>,
}

struct Run {
    o: Outstanding<u64>,
    model: Model,
    rng: Rng,
}

impl ModelUnit {
    fn user_bytes(&self) -> u64 {
        u64::from(self.bytes.saturating_sub(OVERHEAD))
    }

    fn is_lost(&self) -> bool {
        matches!(self.state, UnitState::Lost(_))
    }

    fn is_in_flight(&self) -> bool {
        self.state == UnitState::InFlight
    }
}

impl Model {
    fn next(&self) -> u64 {
        self.first + self.units.len() as u64
    }

    fn unit(&mut self, number: u64) -> &mut ModelUnit {
        &mut self.units[(number - self.first) as usize]
    }

    fn all(&self) -> impl Iterator<Item = (u64, &ModelUnit)> {
        (self.first..).zip(&self.units)
    }

    fn numbers(&self, is_it: impl Fn(&ModelUnit) -> bool) -> Vec<u64> {
        self.all().filter(|(_, unit)| is_it(unit)).map(|(number, _)| number).collect()
    }

    fn sum(&self, is_it: impl Fn(&ModelUnit) -> bool) -> u64 {
        self.units.iter().filter(|unit| is_it(unit)).map(ModelUnit::user_bytes).sum()
    }

    /// Puts a unit into the newest packet, or a new one.
    fn put(&mut self, group: u8, place: Placement) -> usize {
        if place.starts_packet {
            let new = ModelPacket {
                path: place.path,
                in_flight: 0,
                groups: Vec::new(),
                is_in_flight: true,
            };
            self.packets.push(new);
        }
        let packet = self.packets.last_mut().expect("one was begun");
        packet.in_flight += 1;
        packet.groups.push(group);
        self.packets.len() - 1
    }

    /// Removes a unit in flight from its packet, which ends with its last unit.
    fn depart(&mut self, number: u64) {
        let packet = self.unit(number).packet;
        let packet = &mut self.packets[packet];
        if packet.is_in_flight {
            packet.in_flight -= 1;
            packet.is_in_flight = packet.in_flight > 0;
        }
    }

    /// Returns a unit to flight in the packet in which it was last sent.
    fn come_back(&mut self, number: u64) {
        let unit = self.unit(number);
        (unit.path, unit.state) = (unit.sent_over, UnitState::InFlight);
        let packet = unit.packet;
        self.packets[packet].in_flight += u16::from(self.packets[packet].is_in_flight);
    }
}

impl Run {
    fn new(seed: u64) -> Self {
        let model = Model {
            first: FIRST,
            units: VecDeque::new(),
            packets: Vec::new(),
            reported: BTreeSet::new(),
        };
        Self { o: on_paths(PATHS), model, rng: Seed::from_u64(seed).rng() }
    }

    fn one_of(&mut self, units: &[u64]) -> Option<u64> {
        let index = self.rng.below((units.len() as u64).max(1)) as usize;
        units.get(index).copied()
    }

    /// Where to put the next unit: into a packet of its own, or the newest one while no unit of that has
    /// arrived.
    fn place(&mut self) -> Placement {
        let open = self.model.packets.last().filter(|packet| packet.is_in_flight);
        match open.map(|packet| packet.path).filter(|_| self.rng.chance(0.4)) {
            Some(path) => bundled(path),
            None => alone(self.rng.below(PATHS.into()) as u8),
        }
    }

    fn step(&mut self) {
        match self.rng.below(20) {
            0..5 => self.send(),
            5..8 => self.retransmit(),
            8..11 => self.acknowledge(),
            11..14 => self.lose(),
            14 => self.return_lost(),
            15 => self.move_lost(),
            16 => self.abandon(),
            17 => self.advance(),
            18 => self.renege(),
            _ => self.settle(),
        }
    }

    fn send(&mut self) {
        let number = self.model.next();
        if self.rng.chance(0.1) {
            assert_eq!(self.o.skip(number), number);
            let packet = usize::MAX;
            let (state, bytes, transmissions) = (UnitState::Abandoned, 0, 0);
            let (group, path, sent_over) = (0, 0, 0);
            let unit = ModelUnit { bytes, group, state, path, sent_over, packet, transmissions };
            return self.model.units.push_back(unit);
        }
        let place = self.place();
        let (bytes, group) =
            (OVERHEAD + self.rng.below(100) as u32, self.rng.below(GROUPS.into()) as u8);
        let was_idle = self.model.numbers(|unit| is_outstanding_on(unit, place.path)).is_empty();
        let sent = self.o.send(AT(0), place, new_unit(bytes, group), number);
        assert_eq!(sent, (number, was_idle));
        let packet = self.model.put(group, place);
        let (path, sent_over) = (place.path, place.path);
        let (state, transmissions) = (UnitState::InFlight, 1);
        let unit = ModelUnit { bytes, group, state, path, sent_over, packet, transmissions };
        self.model.units.push_back(unit);
    }

    fn retransmit(&mut self) {
        let all = self.model.numbers(|_| true);
        let Some(number) = self.one_of(&all) else { return };
        let known = self.model.unit(number).clone();
        let place = self.place();
        let newest = self.model.packets.len().checked_sub(1);
        if !place.starts_packet && Some(known.packet) == newest {
            return; // It is in that packet.
        }
        let sent = self.o.retransmit(AT(0), place, number, SendCause::Timeout, false);
        let is_outstanding = known.is_lost() || known.is_in_flight();
        assert_eq!(sent.is_some(), is_outstanding);
        let Some(sent) = sent else { return };
        assert_eq!((sent.was_in_flight, sent.before.path), (known.is_in_flight(), known.sent_over));
        assert_eq!(sent.moved.map(|it| (it.from, it.to)), move_of(known.path, place.path));
        if known.is_in_flight() {
            self.model.depart(number);
        }
        let packet = self.model.put(known.group, place);
        let unit = self.model.unit(number);
        (unit.path, unit.sent_over, unit.packet) = (place.path, place.path, packet);
        unit.state = UnitState::InFlight;
        unit.transmissions += 1;
    }

    fn acknowledge(&mut self) {
        let all = self.model.numbers(|_| true);
        let Some(number) = self.one_of(&all).filter(|&number| number > self.model.first) else {
            return; // The first arrives with the cumulative point.
        };
        let mut new = Runs::new();
        self.o.add_acknowledged(number, number, &mut new);
        assert_eq!(new.is_empty(), !self.model.reported.insert(number));
        self.acknowledge_one(number);
    }

    fn acknowledge_one(&mut self, number: u64) {
        let known = self.model.unit(number).clone();
        let acked = self.o.acknowledge(number);
        assert_eq!(acked.is_some(), known.is_lost() || known.is_in_flight());
        let Some(acked) = acked else { return };
        assert_eq!((acked.bytes, acked.path), (known.bytes, known.path));
        assert_eq!(acked.is_first_transmission, known.transmissions == 1);
        assert_eq!(acked.was_in_flight, known.is_in_flight());
        if known.is_in_flight() {
            self.model.depart(number);
        }
        self.model.unit(number).state = UnitState::Acknowledged;
    }

    fn lose(&mut self) {
        let in_flight = self.model.numbers(ModelUnit::is_in_flight);
        let Some(number) = self.one_of(&in_flight) else { return };
        let lost = self.o.lose(number, SendCause::Timeout).expect("it is in flight");
        let known = self.model.unit(number).clone();
        assert_eq!((lost.path, lost.sent_over), (known.path, known.sent_over));
        self.model.depart(number);
        self.model.unit(number).state = UnitState::Lost(SendCause::Timeout);
    }

    fn return_lost(&mut self) {
        let lost = self.model.numbers(ModelUnit::is_lost);
        let Some(number) = self.one_of(&lost) else { return };
        let moved = self.o.return_lost(number);
        let unit = self.model.unit(number);
        assert_eq!(moved.map(|it| (it.from, it.to)), move_of(unit.path, unit.sent_over));
        self.model.come_back(number);
    }

    fn move_lost(&mut self) {
        let lost = self.model.numbers(ModelUnit::is_lost);
        let Some(number) = self.one_of(&lost) else { return };
        let to = self.rng.below(PATHS.into()) as u8;
        let was_idle = self.model.numbers(|unit| is_outstanding_on(unit, to)).is_empty();
        let moved = self.o.move_to(number, to);
        let unit = self.model.unit(number);
        let want = move_of(unit.path, to).map(|(from, to)| (from, to, was_idle));
        assert_eq!(moved.map(|it| (it.from, it.to, it.was_idle)), want);
        unit.path = to;
    }

    fn abandon(&mut self) {
        let all = self.model.numbers(|_| true);
        let Some(number) = self.one_of(&all) else { return };
        let known = self.model.unit(number).clone();
        let abandoned = self.o.abandon(number);
        let is_outstanding = known.is_lost() || known.is_in_flight();
        assert_eq!(abandoned.map(|it| it.was_lost), is_outstanding.then_some(known.is_lost()));
        if known.is_in_flight() {
            self.model.depart(number);
        }
        self.model.unit(number).state = UnitState::Abandoned;
    }

    /// The cumulative point passes some units.
    fn advance(&mut self) {
        let count = self.rng.below(6).min(self.model.units.len() as u64);
        for _ in 0..count {
            let first = self.model.first;
            self.acknowledge_one(first);
            let unit = self.o.deliver_first().expect("it was sent");
            assert_eq!(unit.payload, first);
            self.model.units.pop_front();
            self.model.first += 1;
        }
        self.o.forget_passed();
        let first = self.model.first;
        self.model.reported.retain(|&unit| unit >= first);
    }

    fn renege(&mut self) {
        let is_shown =
            self.model.units.front().is_some_and(|unit| unit.state == UnitState::Acknowledged);
        let kept: Vec<u64> =
            self.model.reported.iter().copied().filter(|_| self.rng.chance(0.5)).collect();
        let dropped = self.o.check_reneging(kept.iter().map(|&unit| (unit, unit)));
        if !is_shown {
            return assert_eq!(dropped, []);
        }
        let reported = std::mem::replace(&mut self.model.reported, kept.into_iter().collect());
        let want: Vec<u64> = reported.difference(&self.model.reported).copied().collect();
        assert_eq!(dropped, want);
        for number in want {
            if self.model.unit(number).state == UnitState::Acknowledged {
                self.model.come_back(number);
            }
        }
    }

    fn settle(&mut self) {
        self.o.forget_ended();
        for path in 0..PATHS {
            self.o.advance_earliest(path);
            let outstanding = self.model.numbers(|unit| is_outstanding_on(unit, path));
            let earliest = outstanding.first().copied().unwrap_or(self.model.next());
            assert_eq!(self.o.on(path).earliest, earliest);
        }
        if self.rng.chance(0.01) {
            let mut count = 0;
            self.o.drain(|_| count += 1);
            assert_eq!(count, self.model.units.len());
            self.model.first = self.model.next();
            self.model.units.clear();
            self.model.packets.clear();
            self.model.reported.clear();
        }
    }

    fn compare(&self) {
        let (o, model) = (&self.o, &self.model);
        o.check_invariants();
        assert_eq!((o.cumulative() + 1, o.next_unit()), (model.first, model.next()));
        let states = |o: &Outstanding<u64>| {
            o.units_from(0).map(|(_, unit)| unit.state()).collect::<Vec<_>>()
        };
        assert_eq!(states(o), model.units.iter().map(|unit| unit.state).collect::<Vec<_>>());
        for ((_, unit), known) in o.units_from(0).zip(&model.units) {
            assert_eq!((unit.path, unit.transmissions()), (known.path, known.transmissions));
        }
        let bytes: u64 = model.units.iter().map(|unit| u64::from(unit.bytes)).sum();
        assert_eq!(o.bytes(), bytes);
        assert_eq!(o.user_bytes_in_flight(), model.sum(ModelUnit::is_in_flight));
        let arriving = model.sum(|unit| unit.is_in_flight() || unit.is_lost());
        assert_eq!(o.user_bytes_to_arrive(), arriving);
        assert_eq!(o.has_lost(), !model.numbers(ModelUnit::is_lost).is_empty());
        let half = model.first + model.units.len() as u64 / 2;
        let later = |unit: &u64| *unit >= half;
        assert_eq!(
            o.lost_anywhere(half),
            model.numbers(ModelUnit::is_lost).into_iter().find(later)
        );
        assert!(o.acknowledged().iter().flatten().eq(model.reported.iter().copied()));
        let above = model.reported.range(half + 1..).count();
        assert_eq!(usize::from(o.acknowledged_above(half)), above);
        for group in 0..GROUPS {
            let of_group = |p: &&ModelPacket| p.is_in_flight && p.groups.contains(&group);
            let packets = model.packets.iter().filter(of_group).count();
            assert_eq!(o.packets().packets_of(group) as usize, packets, "of group {group}");
        }
        (0..PATHS).for_each(|path| self.compare_path(path));
    }

    fn compare_path(&self, path: u8) {
        let (o, model) = (&self.o, &self.model);
        let in_flight = |unit: &ModelUnit| unit.is_in_flight() && unit.path == path;
        let bytes = model.units.iter().filter(|unit| in_flight(unit));
        let bytes: u64 = bytes.map(|unit| u64::from(unit.bytes)).sum();
        let packets = model.packets.iter().filter(|p| p.is_in_flight && p.path == path).count();
        assert_eq!(o.flight(path), Flight { packets: packets as u32, bytes });
        let lost = model.numbers(|unit| unit.is_lost() && unit.path == path);
        assert_eq!(
            (o.on(path).first_lost(), o.on(path).has_lost()),
            (lost.first().copied(), !lost.is_empty())
        );
        let mut awaiting: Vec<u64> = o.awaiting(path).collect();
        awaiting.sort_unstable();
        assert_eq!(awaiting, model.numbers(|unit| unit.is_lost() && unit.sent_over == path));
        assert_eq!(o.on(path).is_awaiting(), !awaiting.is_empty());
        let outstanding = model.numbers(|unit| is_outstanding_on(unit, path));
        assert_eq!(o.on(path).outstanding as usize, outstanding.len());
        let earliest = outstanding.first();
        assert!(earliest.is_none_or(|&earliest| o.on(path).earliest <= earliest));
        let of_path =
            |unit: &ModelUnit| (unit.is_in_flight() || unit.is_lost()) && unit.sent_over == path;
        assert_eq!(o.on(path).user_bytes, model.sum(of_path));
    }
}

fn is_outstanding_on(unit: &ModelUnit, path: u8) -> bool {
    (unit.is_in_flight() || unit.is_lost()) && unit.path == path
}

fn move_of(from: u8, to: u8) -> Option<(u8, u8)> {
    (from != to).then_some((from, to))
}

#[test]
fn every_figure_is_that_of_a_model_without_sums() {
    for seed in 0..100 {
        let mut run = Run::new(seed);
        for _ in 0..300 {
            run.step();
            run.compare();
        }
    }
}
