//! State restored after a spurious event (RR-SCTP §4.2, RFC 4015 §3.1).

use super::super::unbounded;
use super::{FULL, Sender};
use crate::{RecoveryConfig, RttSource, SpuriousConfig, SpuriousResponse};

/// A timeout over units from 2 on, of which the first is retransmitted.
fn timed_out(s: &mut Sender, packets: usize) {
    s.push_full(packets);
    s.expire();
    assert_eq!(s.resend(), [2]);
}

/// ssthresh becomes the window before; the window itself does not jump.
#[test]
fn slow_start_leads_back_to_the_window_before() {
    let mut s = Sender::detecting();
    s.push_full(20);
    // The first report still grows the window, by a packet.
    s.overtake(2, 5);
    s.resend();
    assert_eq!((s.cwnd(), s.ssthresh()), (10_500, 10_500));
    s.ack(21, &[]);
    s.report(2);
    assert_eq!((s.cwnd(), s.ssthresh(), s.events().undone), (10_500, 21_000, 1));
    s.push_full(21);
    let mut grown = Vec::new();
    for unit in 22..=41 {
        s.ack(unit, &[]);
        s.push_full(1);
        grown.push(s.cwnd());
    }
    assert_eq!(grown[..11], (11..=21).map(|n| n * 1000 + 500).collect::<Vec<_>>()[..]);
    assert_eq!(grown[19], 21_500, "then a packet per window");
}

#[test]
fn a_detector_that_only_counts_restores_nothing() {
    let spurious = SpuriousConfig::OFF
        .duplicates(Some(SpuriousResponse::Count))
        .f_rto(Some(SpuriousResponse::Undo));
    let mut s = Sender::wide(RecoveryConfig { spurious, ..RecoveryConfig::rfc9260() });
    timed_out(&mut s, 10);
    s.ack(11, &[]);
    s.report(2);
    assert_eq!((s.events().timeouts, s.events().undone), (1, 0));
    assert_eq!(s.ssthresh(), 10_000);
}

#[test]
fn a_window_that_is_above_the_one_before_is_left_as_it_is() {
    let mut s = Sender::detecting();
    timed_out(&mut s, 10);
    s.ack(11, &[]);
    s.recovery.state.paths[0].window = super::wide(21);
    let ssthresh = s.ssthresh();
    s.report(2);
    assert_eq!((s.events().timeouts, s.events().undone), (1, 0));
    assert_eq!((s.cwnd(), s.ssthresh()), (21_000, ssthresh));
}

/// A delay that outlasts two timeouts: back to before the first, if that was spurious, too.
#[test]
fn timeouts_over_the_same_lead_back_to_before_the_first() {
    let mut s = Sender::detecting();
    timed_out(&mut s, 10);
    s.expire();
    assert_eq!(s.resend(), [2]);
    s.ack(11, &[]);
    s.report(2);
    assert_eq!(s.events().total(), 0);
    s.report(2);
    assert_eq!((s.events().timeouts, s.ssthresh()), (1, 20_000));
}

/// Units 2 and 3 were retransmitted in the first event. It is not known that 3 had arrived.
#[test]
fn an_earlier_event_that_is_open_is_not_undone() {
    let mut s = Sender::detecting();
    s.push_full(20);
    for end in 4..=6 {
        s.ack(1, &[(4, end)]);
    }
    assert_eq!(s.resend(), [2]);
    s.ack(1, &[(4, 18)]);
    assert_eq!(s.resend(), [3]);
    // 3 has arrived, or its copy has.
    s.ack(1, &[(3, 18)]);
    s.expire();
    assert_eq!(s.resend(), [2]);
    s.ack(21, &[]);
    s.report(2);
    s.report(2);
    assert_eq!((s.events().timeouts, s.ssthresh()), (1, 10_500), "to before the timeout");
}

/// A loss that a redundant copy repaired is a loss.
#[test]
fn a_loss_in_between_is_not_undone() {
    let mut s = Sender::detecting();
    let thin =
        crate::ThinConfig { bundling: Some(crate::BundlingConfig::ONE), ..crate::ThinConfig::OFF };
    s.recovery.set_thin(Some(0), thin).expect("there is such a group");
    timed_out(&mut s, 1);
    s.ack(2, &[]);
    s.push(&[100]);
    s.push_with_copies(false);
    let packets = s.recovery.statistics().packets_repaired;
    s.ack(4, &[]);
    assert_eq!(s.recovery.statistics().packets_repaired, packets + 1);
    s.report(2);
    assert_eq!(s.events().total(), 0);
}

/// RFC 4015 §3.1 step 11: SRTT 100, RTTVAR 50 before; G is 1 ms.
#[test]
fn the_first_round_trip_after_a_spurious_timeout_starts_the_estimate_anew() {
    for (sample, rto) in [(400_u64, 400 + 4 * 200_u128), (60, 102 + 4 * 50)] {
        let spurious = SpuriousConfig::DUPLICATES;
        let mut config = RecoveryConfig { spurious, ..RecoveryConfig::rfc9260() };
        unbounded(&mut config);
        let mut s = Sender::wide(config);
        s.push_full(2);
        assert_eq!(s.expire(), 400);
        s.resend();
        s.at(410).ack(3, &[]);
        s.at(420).report(2);
        assert_eq!(s.rto_ms(), 600, "backed off until then");
        s.at(1000).push(&[FULL]);
        s.at(1000 + sample).ack(4, &[]);
        assert_eq!(s.rto_ms(), rto, "after {sample} ms");
        // Only the first.
        s.at(2000).push(&[FULL]);
        s.at(2000 + sample).ack(5, &[]);
        assert!(s.rto_ms() < rto);
    }
}

/// A sample from a packet sent before the spurious retransmission is an ordinary sample.
#[test]
fn a_round_trip_from_before_the_timeout_does_not_start_it_anew() {
    let spurious = SpuriousConfig::DUPLICATES;
    let mut config = RecoveryConfig { spurious, ..RecoveryConfig::rfc9260() };
    unbounded(&mut config);
    let mut s = Sender::wide(config);
    s.push_full(1);
    assert_eq!(s.expire(), 400);
    s.resend();
    s.at(410).ack(2, &[]);
    s.at(420).report(2);
    let rtt = std::time::Duration::from_millis(400);
    let (now, tracer) = (s.now, &mut rexmit_core::trace::Tracer::off());
    s.recovery.on_rtt_sample(now, 0, rtt, RttSource::Heartbeat, tracer);
    // SRTT 137.5, RTTVAR 112.5.
    assert_eq!(s.rto_ms(), 587);
    s.at(1000).push(&[FULL]);
    s.at(1400).ack(3, &[]);
    assert_eq!(s.rto_ms(), 400 + 4 * 200);
}

/// RFC 9438 §4.9: CUBIC's W_max and K are restored.
#[test]
fn cubic_gets_back_what_it_knew() {
    let cubic = RecoveryConfig::tcp_profile("tcp-cubic").expect("a profile");
    let spurious = SpuriousConfig::DUPLICATES;
    let mut s = Sender::with(|config| *config = RecoveryConfig { spurious, ..cubic });
    s.push_full(10);
    s.at(100).overtake(1, 4);
    assert_eq!((s.resend(), s.ssthresh()), (vec![1], 7000));
    s.ack(10, &[]);
    s.report(1);
    assert_eq!((s.events().undone, s.ssthresh()), (1, 10_000));
    assert!(format!("{:?}", s.window(0)).contains("w_max: None"), "there was no loss");
}
