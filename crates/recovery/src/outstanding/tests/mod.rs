//! Outstanding data alone: each transition, the memory of repeated transmissions, and random operations
//! compared with a naive model.

mod packets;

mod model;
mod repeats;
mod transitions;

use super::*;

const FIRST: u64 = 100;
const AT: fn(u64) -> Instant = Instant::from_millis;
/// Header and padding of a unit.
const OVERHEAD: u32 = 16;

fn on_paths(paths: u8) -> Outstanding<u64> {
    let mut outstanding = Outstanding::new(FIRST);
    (0..paths).for_each(|_| outstanding.add_path());
    outstanding
}

const fn new_unit(bytes: u32, group: u8) -> NewUnit {
    NewUnit {
        bytes,
        user_bytes: bytes - OVERHEAD,
        group,
        is_probe: false,
        is_ordered: false,
        due: None,
    }
}

const fn alone(path: u8) -> Placement {
    Placement { path, starts_packet: true, trial: None }
}

const fn bundled(path: u8) -> Placement {
    Placement { path, starts_packet: false, trial: None }
}

impl Outstanding<u64> {
    /// Sends `count` units of 100 bytes over `path`, each in a packet of its own.
    fn send_over(&mut self, path: u8, count: usize) {
        for _ in 0..count {
            let payload = self.next_unit();
            self.send(AT(0), alone(path), new_unit(100, 0), payload);
            self.check_invariants();
        }
    }

    fn state(&self, unit: u64) -> UnitState {
        self.unit(unit).expect("it is not delivered").state()
    }

    fn fate(&self, packet: u64) -> Option<Fate> {
        self.packets.packet(PacketNumber(packet)).map(|packet| packet.fate)
    }

    /// The cumulative point passes everything up to `unit`.
    fn deliver_through(&mut self, unit: u64) {
        while self.cumulative() < unit {
            self.acknowledge(self.first);
            self.deliver_first().expect("it was sent");
        }
        self.forget_passed();
        self.check_invariants();
    }
}
