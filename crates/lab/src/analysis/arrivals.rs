//! Packets as the receiver got them, matched with those that were sent.

use std::collections::BTreeMap;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::data::Run;
use super::unit::{Fate, SentPacket, Unit};

/// The properties in which equal packets agree: their first number, the number after their last one, and the number of
/// runs.
type Key = (u64, u64, usize);

/// Arrivals of the packets of one direction.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Numbers of equal packets, in the order of sending.
    sent: FxHashMap<Key, Vec<usize>>,
    /// When packets with data arrived.
    arrived: Vec<(Duration, Key)>,
    /// The runs of each packet that was sent.
    runs: Vec<Vec<(u64, u64)>>,
    /// Whether packets were captured at the receiver, or with comments on losses.
    pub(super) are_known: bool,
    /// Packets that arrived more than once.
    pub(super) doubled: u64,
}

fn key(runs: &[Run]) -> Option<Key> {
    Some((runs.first()?.first, runs.last()?.end, runs.len()))
}

impl Arrivals {
    pub(super) fn on_sent(&mut self, packet: usize, runs: &[Run]) {
        let Some(key) = key(runs) else { return };
        self.sent.entry(key).or_default().push(packet);
        self.runs.push(runs.iter().map(|run| (run.first, run.end)).collect());
    }

    /// Records that a packet with these runs arrived.
    pub(super) fn on_arrived(&mut self, time: Duration, runs: &[Run]) {
        self.are_known = true;
        self.arrived.extend(key(runs).map(|key| (time, key)));
    }

    /// Finds the packet of each arrival, and the first arrival of each unit.
    ///
    /// Of several equal packets, an arrival belongs to the latest one that was sent at least the shortest delay before
    /// it: only a spurious retransmission is in flight together with its original.
    pub(super) fn settle(&mut self, packets: &mut [SentPacket], units: &mut BTreeMap<u64, Unit>) {
        let is_lost = |packet: &SentPacket| packet.fate == Fate::Lost;
        if !self.are_known && packets.iter().any(is_lost) {
            // A capture of the emulator has arrived packets at the time of their arrival.
            self.are_known = true;
            for packet in packets.iter_mut().filter(|packet| !is_lost(packet)) {
                packet.fate = Fate::Arrived(packet.time);
            }
        }
        let shortest = self.shortest_delay(packets);
        for (time, key) in std::mem::take(&mut self.arrived) {
            let Some(equal) = self.sent.get(&key) else { continue };
            let open = equal.iter().rev().copied().filter(|&n| packets[n].fate == Fate::Unseen);
            let found = open
                .clone()
                .find(|&n| packets[n].time + shortest <= time)
                .or_else(|| open.clone().find(|&n| packets[n].time <= time));
            match found {
                Some(packet) => packets[packet].fate = Fate::Arrived(time),
                None => self.doubled += 1,
            }
        }
        for (number, packet) in packets.iter().enumerate() {
            let Fate::Arrived(time) = packet.fate else { continue };
            for &(first, end) in &self.runs[number] {
                for (_, unit) in units.range_mut(first..end) {
                    if unit.arrived.is_none_or(|before| time < before.0) {
                        unit.arrived = Some((time, number));
                    }
                }
            }
        }
    }

    /// The shortest delay of packets that were sent once only.
    fn shortest_delay(&self, packets: &[SentPacket]) -> Duration {
        let delays =
            self.arrived.iter().filter_map(|(time, key)| match self.sent.get(key)?.as_slice() {
                [only] => time.checked_sub(packets[*only].time),
                _ => None,
            });
        delays.min().unwrap_or_default()
    }
}
