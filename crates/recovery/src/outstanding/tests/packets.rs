use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::{AT, alone, bundled, new_unit, on_paths};
use crate::outstanding::sending::Carried;
use crate::outstanding::*;

fn packets() -> SentPackets {
    let mut packets = SentPackets { groups: vec![0; crate::MAX_GROUPS], ..SentPackets::default() };
    packets.add_path();
    packets
}

fn carried(unit: u64, group: u8) -> Carried {
    Carried { unit, bytes: 100, group }
}

#[test]
fn a_packet_ends_with_its_last_unit_in_flight() {
    let mut packets = packets();
    packets.begin(Instant::ZERO, alone(0), carried(7, 0));
    packets.add(carried(8, 0));
    assert_eq!(packets.flight(0), Flight { packets: 1, bytes: 200 });
    assert!(!packets.on_departed(0, 100, PacketNumber(0), Fate::Superseded).0);
    assert_eq!(packets.flight(0), Flight { packets: 1, bytes: 100 });
    packets.on_returned(0, 100, PacketNumber(0));
    assert!(!packets.on_departed(0, 100, PacketNumber(0), Fate::Superseded).0);
    assert_eq!(
        packets.on_departed(0, 100, PacketNumber(0), Fate::Acknowledged),
        (true, Some(Instant::ZERO))
    );
    assert_eq!(packets.flight(0), Flight::default());
    assert_eq!(packets.packet(PacketNumber(0)).unwrap().fate, Fate::Acknowledged);
}

#[test]
fn a_packet_is_in_flight_for_each_group_that_it_carries_something_of() {
    let mut packets = packets();
    let counts = |packets: &SentPackets| [0, 1, 2].map(|group| packets.packets_of(group));
    packets.begin(Instant::ZERO, alone(0), carried(1, 0));
    packets.begin(Instant::ZERO, alone(0), carried(2, 2));
    for (unit, group) in [(3, 0), (4, 2)] {
        packets.add(carried(unit, group));
    }
    assert_eq!(counts(&packets), [2, 0, 1]);
    packets.on_departed(0, 100, PacketNumber(1), Fate::Acknowledged);
    assert_eq!(counts(&packets), [2, 0, 1]);
    packets.on_departed(0, 100, PacketNumber(1), Fate::Acknowledged);
    packets.on_departed(0, 100, PacketNumber(1), Fate::Acknowledged);
    assert_eq!(counts(&packets), [1, 0, 0]);
    packets.on_departed(0, 100, PacketNumber(0), Fate::Acknowledged);
    assert_eq!(counts(&packets), [0, 0, 0]);
}

#[test]
fn ended_packets_are_forgotten_only_behind_nothing_in_flight() {
    let mut packets = packets();
    for unit in 0..3 {
        packets.begin(Instant::ZERO, alone(0), carried(unit, 0));
    }
    packets.on_departed(0, 100, PacketNumber(1), Fate::Lost(SendCause::FastRetransmit));
    packets.forget_ended();
    assert_eq!(packets.len(), 3);
    packets.on_departed(0, 100, PacketNumber(0), Fate::Acknowledged);
    packets.forget_ended();
    assert_eq!(packets.len(), 1);
    assert_eq!(packets.next_number(), PacketNumber(3));
    assert!(packets.packet(PacketNumber(1)).is_none());
    assert_eq!(packets.in_flight(0).map(|(n, _)| n.0).collect::<Vec<_>>(), [2]);
}

/// A message is abandoned while a packet with one of its units is built: the units that follow are counted.
#[test]
fn a_packet_whose_units_are_abandoned_before_it_is_full_goes_on() {
    for older in [0, 1] {
        let mut o = on_paths(1);
        o.send_over(0, older);
        let [abandoned, kept] = [0, 1].map(|_| o.send(AT(0), alone(0), new_unit(100, 0), 0).0);
        o.lose(kept, SendCause::Probe).expect("in flight");
        o.retransmit(AT(1), alone(0), abandoned, SendCause::Probe, false).expect("in flight");
        o.abandon(abandoned).expect("in flight");
        o.check_invariants();
        o.retransmit(AT(1), bundled(0), kept, SendCause::Probe, false).expect("lost");
        o.check_invariants();
        o.send(AT(1), bundled(0), new_unit(100, 0), 0);
        o.check_invariants();
        let flight = o.flight(0);
        assert_eq!((flight.packets as usize, flight.bytes), (older + 1, 100 * (older as u64 + 2)));
    }
}
