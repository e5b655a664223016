use crate::spurious::episodes::*;

const ACK: Arrival = Arrival {
    advanced_to: None,
    highest_newly_acked: None,
    has_acked_original: false,
    highest_sent: 20,
    has_new: true,
};

/// Step 2: an acknowledgement up to 11 of the 20 units sent.
fn probing() -> FRto {
    let mut f_rto = FRto::Repeating;
    assert!(!f_rto.on_ack(ACK), "without advance it waits on");
    assert!(!f_rto.on_ack(Arrival { advanced_to: Some(11), ..ACK }));
    assert_eq!(f_rto, FRto::Probing { packets_left: 2, highest: 20 });
    f_rto
}

/// RFC 5682 §3.1 step 3.
#[test]
fn what_left_before_the_timeout_tells_it_was_spurious_unless_new_data_are_covered() {
    let original = Arrival {
        has_acked_original: true,
        highest_newly_acked: Some(12),
        highest_sent: 22,
        ..ACK
    };
    assert!(probing().on_ack(original));
    assert!(!probing().on_ack(Arrival { highest_newly_acked: Some(21), ..original }));
    assert!(!probing().on_ack(Arrival { has_acked_original: false, ..original }));
}

/// RFC 5682 §3.1 step 2 a, and b with nothing new to send.
#[test]
fn everything_acknowledged_or_nothing_new_leaves_it_to_the_usual_recovery() {
    for ack in [
        Arrival { advanced_to: Some(20), ..ACK },
        Arrival { advanced_to: Some(11), has_new: false, ..ACK },
    ] {
        let mut f_rto = FRto::Repeating;
        assert!(!f_rto.on_ack(ack));
        assert_eq!(f_rto, FRto::Off);
    }
}

#[test]
fn two_packets_of_new_data_leave() {
    let mut f_rto = probing();
    f_rto.on_sent_new();
    assert!(!f_rto.is_waiting());
    f_rto.on_sent_new();
    assert!(f_rto.is_waiting() && f_rto.prefers_new());
}
