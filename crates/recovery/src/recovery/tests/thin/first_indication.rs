//! M4: the first indication of a loss.

use rexmit_core::trace::SendCause;

use super::*;
use crate::UnitState;
use crate::recovery::tests::BASE;

const M4: ThinConfig = ThinConfig { first_indication: true, ..ThinConfig::OFF };

/// The number of SACKs, each for one more unit, after which unit 1 is retransmitted.
fn reports_needed(thin: ThinConfig, packets: u64, profile: fn(&mut RecoveryConfig)) -> Option<u64> {
    let mut s = Sender::with(|config| {
        profile(config);
        config.thin = thin;
        config.max_burst = None;
    });
    (0..packets).for_each(|_| s.push(&[SMALL]));
    (1..packets).find(|&n| {
        s.at(100 + 10 * n).ack(0, &[(2, 1 + n)]);
        !s.resend().is_empty()
    })
}

fn scoreboard(config: &mut RecoveryConfig) {
    *config = RecoveryConfig::tcp_profile("tcp-sack").expect("a profile");
}

/// Petlund 2009 §5.4.
#[test]
fn m4_takes_one_report_while_thin() {
    for profile in [(|_| ()) as fn(&mut RecoveryConfig), scoreboard] {
        assert_eq!(reports_needed(M4, 4, profile), Some(1));
        assert_eq!(reports_needed(ThinConfig::OFF, 4, profile), Some(3));
        assert_eq!(reports_needed(ThinConfig::OFF, 3, profile), None);
        // Of six packets five are in flight after the first report, and four after the second.
        assert_eq!(reports_needed(M4, 6, profile), Some(2));
        assert_eq!(reports_needed(M4, 9, profile), Some(3), "thick: six are in flight");
    }
}

#[test]
fn m4_is_a_fast_retransmit_in_everything_else() {
    let mut s = Sender::thin(M4);
    (0..3).for_each(|_| s.push(&[SMALL]));
    s.at(100).ack(0, &[(2, 2)]);
    assert_eq!(s.state(1), Some(UnitState::Lost(SendCause::FastRetransmit)));
    assert!(s.is_in_fast_recovery());
    assert_eq!(s.resend(), [1]);
    // RFC 9260 §7.2.4 rule 5: it had its fast retransmit.
    s.at(110).ack(0, &[(2, 3)]);
    assert_eq!(s.resend(), []);
    assert_eq!(s.recovery.statistics().retransmitted.fast_retransmit, 1);
}

/// T2 without SACK: the first duplicate acknowledgement.
#[test]
fn the_first_duplicate_is_enough_while_thin() {
    let needed = |thin, packets: usize| {
        let mut s = Sender::with(|config| {
            *config = RecoveryConfig::tcp_profile("tcp-newreno").expect("a profile");
            config.thin = thin;
        });
        (0..packets).for_each(|_| s.push(&[SMALL]));
        (1..=5).find(|_| {
            s.duplicates(1);
            s.recovery
                .outstanding()
                .unit(BASE + 1)
                .is_some_and(|unit| unit.state() != UnitState::InFlight)
        })
    };
    assert_eq!(needed(M4, 4), Some(1));
    assert_eq!(needed(M4, 5), Some(3));
    assert_eq!(needed(ThinConfig::OFF, 4), Some(3));
}
