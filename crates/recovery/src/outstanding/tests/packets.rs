use rexmit_core::Instant;
use rexmit_core::trace::SendCause;

use super::alone;
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
