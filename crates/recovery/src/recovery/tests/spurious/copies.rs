//! Copies of units that were not declared lost: their reports prove neither a spurious
//! event nor a network that duplicates.

use super::Sender;
use crate::{RecoveryConfig, ThinConfig};

/// Unit 2 is sent, then unit 3 with a copy of it; then the timer expires over both.
fn copied_and_repeated() -> Sender {
    let rr = RecoveryConfig::profile("rr").expect("a profile");
    let thin = ThinConfig { bundling: Some(crate::BundlingConfig::ONE), ..ThinConfig::OFF };
    let mut s = Sender::wide(RecoveryConfig { thin, ..rr });
    s.push(&[100]);
    s.push_with_copies(false);
    s.expire();
    assert_eq!(s.resend(), [2, 3]);
    s.ack(3, &[]);
    s
}

#[test]
fn the_report_of_a_copy_on_purpose_proves_nothing() {
    let mut s = copied_and_repeated();
    s.report(3);
    s.report(2);
    assert_eq!(s.events().total(), 0, "of 2 one redundant copy is explained");
    s.report(2);
    assert_eq!((s.events().timeouts, s.events().unexplained_duplicates), (1, 0));
    s.report(2);
    assert_eq!(s.events().unexplained_duplicates, 1, "a fourth copy was not ours");
}

/// The redundant copy may have arrived first, so the delay of the unit proves no reordering.
#[test]
fn nothing_is_learned_of_reordering_from_copied_units() {
    let mut s = copied_and_repeated();
    (0..3).for_each(|_| s.report(2));
    assert_eq!(s.recovery.path_figures(0).reordering.extent, 0);
}

/// lksctp bundles outstanding units; unit 7 is not declared lost by the fast retransmit of 2.
#[test]
fn data_that_a_retransmission_bundles_is_no_part_of_the_episode() {
    let lksctp = RecoveryConfig::profile("lksctp").expect("a profile");
    let rr = RecoveryConfig::profile("rr").expect("a profile");
    let mut s =
        Sender::wide(RecoveryConfig { spurious: rr.spurious, thin: ThinConfig::OFF, ..lksctp });
    for _ in 0..6 {
        s.push(&[100]);
    }
    for end in 4..=6 {
        s.ack(1, &[(4, end)]);
    }
    // Both are lost; 7 is bundled.
    assert_eq!(s.resend_bundled(), [vec![2, 3], vec![7]]);
    s.ack(7, &[]);
    s.report(7);
    assert_eq!(s.events().total(), 0);
    s.report(2);
    s.report(3);
    assert_eq!((s.events().fast_retransmits, s.events().unexplained_duplicates), (1, 0));
}
