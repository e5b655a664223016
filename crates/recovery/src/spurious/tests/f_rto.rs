use crate::spurious::Acknowledged;
use crate::spurious::episodes::FRto;

const ACK: Acknowledged =
    Acknowledged { advanced_to: None, highest_newly_acked: None, has_new: true, echo: None };

/// The verdict with 20 units sent, or 22 after F-RTO's new data.
fn judge(f_rto: &mut FRto, ack: Acknowledged, has_acked_original: bool, sent: u64) -> bool {
    f_rto.on_ack(&ack, has_acked_original, sent)
}

/// Step 2: an acknowledgement up to 11 of the 20 units sent.
fn probing() -> FRto {
    let mut f_rto = FRto::Repeating;
    assert!(!judge(&mut f_rto, ACK, false, 20), "without advance it waits on");
    assert!(!judge(&mut f_rto, Acknowledged { advanced_to: Some(11), ..ACK }, false, 20));
    assert_eq!(f_rto, FRto::Probing { packets_left: 2, highest: 20 });
    f_rto
}

/// RFC 5682 §3.1 step 3.
#[test]
fn data_sent_before_the_timeout_shows_it_was_spurious_unless_new_data_are_covered() {
    let covers = |unit, has_acked_original| {
        let ack = Acknowledged { highest_newly_acked: Some(unit), ..ACK };
        judge(&mut probing(), ack, has_acked_original, 22)
    };
    assert!(covers(12, true));
    assert!(!covers(21, true));
    assert!(!covers(12, false));
}

/// RFC 5682 §3.1 step 2 a, and b with nothing new to send.
#[test]
fn everything_acknowledged_or_nothing_new_leaves_it_to_the_usual_recovery() {
    for ack in [
        Acknowledged { advanced_to: Some(20), ..ACK },
        Acknowledged { advanced_to: Some(11), has_new: false, ..ACK },
    ] {
        let mut f_rto = FRto::Repeating;
        assert!(!judge(&mut f_rto, ack, false, 20));
        assert_eq!(f_rto, FRto::Off);
    }
}

#[test]
fn two_packets_of_new_data_are_sent() {
    let mut f_rto = probing();
    f_rto.on_sent_new();
    assert!(!f_rto.is_waiting());
    f_rto.on_sent_new();
    assert!(f_rto.is_waiting() && f_rto.prefers_new());
}
