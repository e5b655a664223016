//! Counting of missing reports by itself (RFC 9260 §7.2.4).

use crate::loss::MissingReports;

fn report(missing: &mut MissingReports, bound: u64) -> Vec<u64> {
    crate::loss::report(&mut missing.overtaken, bound, false, |_| Some((1, 3)))
}

#[test]
fn the_third_report_makes_a_loss_and_only_below_the_newest_acknowledgement() {
    let mut missing = MissingReports::default();
    missing.count_reports_of(10, 0);
    missing.count_reports_of(12, 0);
    assert_eq!(report(&mut missing, 12), []);
    assert_eq!(report(&mut missing, 14), []);
    assert_eq!(report(&mut missing, 15), [10]);
    assert_eq!(report(&mut missing, 16), [12]);
    assert_eq!(report(&mut missing, 17), []);
}

#[test]
fn an_acknowledged_unit_is_never_lost() {
    let mut missing = MissingReports::default();
    missing.count_reports_of(10, 2);
    missing.count_reports_of(11, 2);
    missing.count_reports_of(12, 2);
    missing.forget(12);
    missing.forget(10);
    assert_eq!(report(&mut missing, 20), [11]);
}

/// A unit declared lost is counted until it is acknowledged, over several transmissions.
#[test]
fn a_lost_unit_is_counted_further_if_that_is_asked_for() {
    let mut missing = MissingReports::default();
    missing.count_reports_of(10, 0);
    let mut lost = Vec::new();
    for _ in 0..5 {
        lost.extend(crate::loss::report(&mut missing.overtaken, 20, true, |_| Some((1, 3))));
    }
    assert_eq!((&lost[..], missing.overtaken[&10].in_all()), (&[10][..], 5));
    missing.count_reports_of(10, 0); // It was retransmitted, and may be lost once more.
    (0..3).for_each(|_| {
        lost.extend(crate::loss::report(&mut missing.overtaken, 20, true, |_| Some((1, 3))));
    });
    assert_eq!((lost, missing.forget(10)), (vec![10, 10], Some(8)));
    assert_eq!(missing.forget(10), None);
}
