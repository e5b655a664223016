//! The probe timer on paths that change: a longer round trip, delayed ACKs, or a unit that never arrives.

use std::collections::{BTreeMap, BTreeSet};

use rexmit_core::Instant;
use rexmit_core::trace::Tracer;

use super::*;
use crate::TimeoutKind;

/// A sender, and a receiver whose ACK of each packet arrives a round trip after it was sent, in
/// microseconds. Lost is what `is_lost` says of the time, a unit, and how often it was sent before.
struct World {
    sender: Sender,
    is_lost: fn(u64, u64, u32) -> bool,
    round_trip: fn(u64) -> u64,
    /// When the last new unit is sent.
    stops_at: u64,
    /// The delay of ACKs, which acknowledge every second packet or come after it; with zero each packet is
    /// acknowledged at once.
    sack_delay: u64,
    on_the_way: BTreeMap<(u64, u64), Vec<u64>>,
    arrived: BTreeSet<u64>,
    cumulative: u64,
    owed_at: Option<u64>,
    packets: u64,
    /// When each unit was sent, in order.
    left: BTreeMap<u64, Vec<u64>>,
    timeouts: u32,
}

impl World {
    fn new(profile: &str, round_trip: fn(u64) -> u64) -> Self {
        let named = RecoveryConfig::profile(profile).expect("a known profile");
        Self {
            sender: Sender::with(|config| *config = named),
            is_lost: |_, _, _| false,
            round_trip,
            stops_at: u64::MAX,
            sack_delay: 0,
            on_the_way: BTreeMap::new(),
            arrived: BTreeSet::new(),
            cumulative: 0,
            owed_at: None,
            packets: 0,
            left: BTreeMap::new(),
            timeouts: 0,
        }
    }

    /// Sends a unit every `interval`, for `seconds`.
    fn run(&mut self, interval: u64, seconds: u64) {
        let (mut next, mut unit) = (0, 0);
        loop {
            let timer = self.sender.recovery.next_timeout();
            let timer = timer.map(|at| at.as_nanos().div_ceil(1000));
            let arrival = self.on_the_way.keys().next().map(|&(at, _)| at);
            let new = Some(next).filter(|&us| us <= self.stops_at);
            let times = [new, timer, arrival, self.owed_at];
            let us = times.into_iter().flatten().min().unwrap_or(u64::MAX);
            if us > seconds * 1_000_000 {
                return;
            }
            self.sender.now = self.sender.now.max(Instant::from_nanos(us * 1000));
            self.sender.recovery.begin_opportunity();
            self.receive(us);
            self.expire();
            if new.is_some_and(|new| new <= us) {
                next += interval;
                unit += 1;
                self.sender.push(&[SMALL]);
                self.leave(us, vec![unit]);
            }
            loop {
                let again = self.sender.resend();
                if again.is_empty() {
                    break;
                }
                self.leave(us, again);
            }
        }
    }

    fn leave(&mut self, us: u64, units: Vec<u64>) {
        let is_lost = units.iter().any(|&unit| {
            let left = self.left.entry(unit).or_default();
            left.push(us);
            (self.is_lost)(us, unit, left.len() as u32 - 1)
        });
        if !is_lost {
            self.packets += 1;
            self.on_the_way.insert((us + (self.round_trip)(us), self.packets), units);
        }
    }

    fn receive(&mut self, us: u64) {
        while let Some(first) = self.on_the_way.first_entry().filter(|first| first.key().0 <= us) {
            let mut is_in_order = true;
            for unit in first.remove() {
                let is_new = unit > self.cumulative && self.arrived.insert(unit);
                is_in_order &= is_new && unit == self.cumulative + 1;
                if !is_new {
                    self.sender.report(unit);
                }
                while self.arrived.remove(&(self.cumulative + 1)) {
                    self.cumulative += 1;
                }
            }
            let is_second = self.owed_at.is_some();
            if is_in_order && self.arrived.is_empty() && !is_second && self.sack_delay > 0 {
                self.owed_at = Some(us + self.sack_delay);
            } else {
                self.answer();
            }
        }
        if self.owed_at.is_some_and(|at| at <= us) {
            self.answer();
        }
    }

    fn answer(&mut self) {
        self.owed_at = None;
        let mut blocks: Vec<(u64, u64)> = Vec::new();
        for &unit in &self.arrived {
            match blocks.last_mut() {
                Some((_, last)) if *last + 1 == unit => *last = unit,
                _ => blocks.push((unit, unit)),
            }
        }
        self.sender.ack(self.cumulative, &blocks);
    }

    fn expire(&mut self) {
        let (recovery, now) = (&mut self.sender.recovery, self.sender.now);
        while recovery.on_timeout(now, TimeoutKind::Loss, &mut Tracer::off()).is_some() {
            self.timeouts += 1;
        }
    }

    /// How long each unit waited for its first retransmission, of those that had one.
    fn waits(&self) -> Vec<u64> {
        self.left.values().filter(|left| left.len() > 1).map(|left| left[1] - left[0]).collect()
    }
}

/// The round trip grows from 20 to 500 ms: nothing is lost, and no ACK is unambiguous.
#[test]
fn a_path_that_becomes_longer_at_once_is_not_flooded() {
    for interval in [50_000, 100_000, 250_000] {
        let mut world =
            World::new("interactive", |us| if us < 10_000_000 { 20_000 } else { 500_000 });
        world.run(interval, 18);
        let again: usize = world.left.values().map(|left| left.len() - 1).sum();
        let new = 8_000_000 / interval as usize;
        assert!((1..new).contains(&again), "{again} repeated, {new} new");
    }
}

/// Nothing arrives for 600 ms, and nothing new follows: a packet of it is retransmitted within a round trip after
/// that, however many units are repeated by then, and the rest once that is acknowledged.
#[test]
fn a_burst_of_losses_puts_no_retransmission_off() {
    const BURST: std::ops::Range<u64> = 10_000_000..10_600_000;
    let mut world = World::new("interactive", |_| 100_000);
    world.is_lost = |us, _, _| BURST.contains(&us);
    world.stops_at = BURST.end - 1;
    world.run(50_000, 20);
    let lost = world.left.values().filter(|left| BURST.contains(&left[0]));
    let waits: Vec<_> = lost
        .map(|left| {
            left.iter().find(|&&us| !BURST.contains(&us)).expect("it was retransmitted") - BURST.end
        })
        .collect();
    assert_eq!(waits.len(), 12);
    assert!(waits[..10].iter().all(|wait| *wait < 103_000), "{waits:?}");
    assert!(waits[10..].iter().all(|wait| *wait == waits[0] + 100_000), "{waits:?}");
}

#[test]
fn a_unit_that_never_arrives_is_left_to_t3() {
    for round_trip in [|_| 1_000, |_| 20_000, |_| 100_000] {
        let mut world = World::new("interactive", round_trip);
        world.is_lost = |_, unit, _| unit == 20;
        world.run(250_000, 30);
        let left = world.left[&20].len() as u32;
        assert!(world.timeouts > 5, "{} expiries", world.timeouts);
        assert!(left <= 16 + world.timeouts, "{left} times, {} of them by T3", world.timeouts);
    }
}

/// Three losses of a lone unit, where a second is less than two round trips.
#[test]
fn a_long_round_trip_has_the_timer_as_well() {
    let mut world = World::new("interactive", |_| 900_000);
    world.is_lost = |_, unit, before| unit == 9 && before < 3;
    world.run(5_000_000, 60);
    let waits: Vec<_> = world.left[&9].windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits.len(), 3);
    assert!(waits.iter().all(|wait| *wait < 1_050_000), "{waits:?}");
    assert_eq!(world.timeouts, 0);
}

/// Every twentieth unit is lost: reports by later packets are waited for no longer than without the timer.
#[test]
fn where_acks_are_delayed_later_packets_show_a_loss() {
    let waits = |profile| {
        let mut world = World::new(profile, |_| 100_000);
        world.sack_delay = 200_000;
        world.is_lost = |_, unit, before| unit > 100 && unit % 20 == 0 && before == 0;
        world.run(50_000, 60);
        let waits = world.waits();
        waits[waits.len() / 2]
    };
    let (timed, rack) = (waits("interactive"), waits("rack"));
    assert!(timed <= rack, "{timed} µs, {rack} µs by RACK alone");
}
