use crate::loss::*;

/// RFC 6582 §3.2 step 3: cwnd is deflated by the bytes that a partial ACK covers, and a packet is added back
/// if it covers at least one. The flight shrinks by the same bytes, so the room grows by that packet, or not
/// at all.
#[test]
fn a_partial_acknowledgement_makes_room_for_one_packet_at_most() {
    for (acked, room) in [(3000, 1000), (1000, 1000), (400, 0)] {
        let mut duplicates = DuplicateAcks::default();
        (0..5).for_each(|_| _ = duplicates.on_duplicate(1000, 9000));
        duplicates.on_recovery();
        assert_eq!(duplicates.departed(), 5000);
        duplicates.on_partial(acked, 1000);
        let in_network = (9000 - acked) - duplicates.departed();
        assert_eq!(in_network, 9000 - 5000 - room, "{acked} bytes");
    }
}

#[test]
fn no_more_departs_than_is_in_flight() {
    let mut duplicates = DuplicateAcks::default();
    (0..1000).for_each(|_| _ = duplicates.on_duplicate(1000, 3500));
    duplicates.on_recovery();
    assert_eq!(duplicates.departed(), 3500);
}

/// RFC 3042 §2: a packet for each of the first two.
#[test]
fn limited_transmit_is_two_packets_before_a_recovery() {
    let mut duplicates = DuplicateAcks::default();
    let allowed = [(); 4].map(|()| {
        duplicates.on_duplicate(1000, 9000);
        duplicates.limited_transmit(1000)
    });
    assert_eq!(allowed, [1000, 2000, 2000, 2000]);
    duplicates.on_recovery();
    assert_eq!(duplicates.limited_transmit(1000), 0);
}
