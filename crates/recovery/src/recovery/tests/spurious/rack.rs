//! RACK's reordering window over the sender (RFC 8985 §6).

use super::{FULL, Sender};
use crate::{LossDetection, RecoveryConfig};

/// Senders of SCTP and of TCP with an SRTT of 100 ms; units 2 to 6 were sent at 100, 102, … ms.
fn sending() -> [Sender; 2] {
    let tcp = RecoveryConfig::tcp_profile("tcp-sack").expect("a profile");
    let tcp = RecoveryConfig { loss_detection: LossDetection::Rack, ..tcp };
    [RecoveryConfig::profile("rack").expect("a profile"), tcp].map(|config| {
        let mut s = Sender::wide(config);
        for n in 0..5 {
            s.at(100 + 2 * n).push(&[FULL]);
        }
        s
    })
}

impl Sender {
    /// Moves to `ms`, where RACK's timer may be due.
    fn tick(&mut self, ms: u64) -> bool {
        self.at(ms).timers();
        self.has_lost()
    }
}

/// 3 arrives after 100 ms; 2 is lost a quarter of a round trip after it should have arrived.
#[test]
fn data_that_does_not_arrive_within_the_window_is_lost() {
    for mut s in sending() {
        s.at(202).ack(1, &[(3, 3)]);
        assert!(!s.has_lost());
        assert_eq!(s.t3(), Some(225), "sent at 100, a round trip of 100, and 25");
        assert!(!s.tick(224));
        assert!(s.tick(225));
        assert_eq!(s.resend(), [2]);
        assert_eq!(s.recovery.statistics().fast_recoveries, 1);
        s.check();
    }
}

/// RFC 8985 §6.2 step 4: three above, and no reordering seen so far.
#[test]
fn three_above_make_a_loss_before_reordering_was_seen_and_not_after() {
    for mut s in sending() {
        for (ms, end) in [(202, 3), (204, 4)] {
            s.at(ms).ack(1, &[(3, end)]);
            assert!(!s.has_lost());
        }
        s.at(206).ack(1, &[(3, 5)]);
        assert_eq!(s.resend(), [2]);
    }
    for mut s in sending() {
        s.at(202).ack(1, &[(3, 3)]);
        s.at(203).ack(3, &[]); // 2 was late
        for n in 0..5 {
            s.at(210 + n).push(&[FULL]); // 7 to 11
        }
        s.at(310).ack(6, &[]);
        for (ms, end) in [(311, 8), (312, 9), (313, 10), (314, 11)] {
            s.at(ms).ack(6, &[(8, end)]);
        }
        assert!(!s.has_lost(), "four above, but time is not up");
        assert!(s.tick(400));
    }
}

/// A unit that arrives before time declares it lost is not retransmitted.
#[test]
fn data_that_arrives_in_time_is_not_retransmitted() {
    for mut s in sending() {
        s.at(202).ack(1, &[(3, 3)]);
        s.at(220).ack(6, &[]);
        assert!(!s.tick(300) && s.recovery.outstanding().is_empty());
        assert_eq!(s.recovery.statistics().retransmitted.total(), 0);
    }
}

/// RFC 8985 §6.2 step 4: 2 was retransmitted although it had arrived, and its report widens the window to half of the
/// round trip.
#[test]
fn a_duplicate_report_widens_the_window() {
    for mut s in sending() {
        s.at(202).ack(1, &[(3, 3)]);
        assert!(s.tick(225));
        assert_eq!(s.resend(), [2]);
        s.at(230).ack(6, &[]);
        s.at(325).report(2);
        s.at(330).push_full(1); // 7
        s.at(332).push_full(1);
        s.at(432).ack(6, &[(8, 8)]);
        assert!(!s.tick(479), "sent at 330, and a round trip of 100");
        assert!(s.tick(480));
        assert_eq!(s.events().total(), 0, "nothing but the window was asked for");
    }
}

/// RFC 8985 §3.1: unlike a count of reports, time shows a lost retransmission, too.
#[test]
fn a_lost_retransmission_is_found() {
    for mut s in sending() {
        for (ms, end) in [(202, 3), (204, 4), (206, 5)] {
            s.at(ms).ack(1, &[(3, end)]);
        }
        assert_eq!(s.resend(), [2]);
        s.at(208).ack(1, &[(3, 6)]);
        s.at(210).push_full(3);
        s.at(320).ack(1, &[(3, 9)]);
        assert_eq!(s.resend(), [2], "7 left after it, and has arrived");
    }
}
