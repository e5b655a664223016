use crate::ProbeConfig;
use crate::thin::*;

const TIMED: ThinConfig = ThinConfig { probe_timer: Some(ProbeConfig::DEFAULT), ..ThinConfig::OFF };

fn groups(thin: ThinConfig) -> Groups {
    Groups::new(&Arc::new(RecoveryConfig { thin, ..RecoveryConfig::rfc9260() }))
}

fn inputs(in_flight: u32) -> ThinInputs {
    ThinInputs { in_flight, sent: 0, lost: 0, pttfr: 3, is_initial_slow_start: false }
}

#[test]
fn groups_have_mechanisms_of_their_own() {
    let mut groups = groups(ThinConfig::OFF);
    assert!(groups.is_one() && !groups.has_mechanisms && groups.probed == 0);
    let group = groups.add(TIMED, &RecoveryStatistics::default()).expect("there is room");
    assert_eq!((group, groups.count(), groups.is_one()), (1, 2, false));
    assert_eq!((groups.has_mechanisms, groups.probed, groups.yields), (true, 0b10, false));
    assert!(groups.config(1).probe_timer.is_some() && groups.config(0).probe_timer.is_none());
    let yielding =
        ThinConfig { queue_delay_limit: Some(std::time::Duration::from_millis(9)), ..TIMED };
    groups.set(0, yielding, &RecoveryStatistics::default());
    assert_eq!((groups.probed, groups.yields, groups.has_delayed_copies()), (0b11, true, false));
    groups.set(0, ThinConfig::OFF, &RecoveryStatistics::default());
    groups.set(1, ThinConfig::OFF, &RecoveryStatistics::default());
    assert_eq!((groups.has_mechanisms, groups.probed, groups.yields), (false, 0, false));
}

#[test]
fn there_is_an_end_of_groups() {
    let mut groups = groups(ThinConfig::OFF);
    for group in 1..MAX_GROUPS {
        assert_eq!(groups.add(TIMED, &RecoveryStatistics::default()).map(usize::from), Ok(group));
    }
    assert_eq!(groups.add(TIMED, &RecoveryStatistics::default()), Err(GroupLimit));
    assert_eq!(groups.probed, u32::MAX - 1);
}

/// The fast path for bulk data always agrees with the full test.
#[test]
fn the_upper_bound_of_a_thin_stream_agrees_with_the_test() {
    for test in [ThinTest::PacketsInFlight, ThinTest::Linux, ThinTest::Packets(9)] {
        for (sent, lost) in [(0, 0), (100, 50), (10, 10)] {
            let mut groups = groups(ThinConfig { test, ..TIMED });
            let statistics =
                RecoveryStatistics { packets: sent, packets_lost: lost, ..Default::default() };
            groups.refresh(&statistics);
            for in_flight in 0..40 {
                let inputs = ThinInputs { sent, lost, ..inputs(in_flight) };
                let is_thin = test.is_thin(&inputs);
                assert_eq!(test.explain(&inputs).is_thin, is_thin, "{test:?} {sent} {lost}");
                assert!(!(is_thin && groups.is_surely_thick(in_flight)), "{test:?} {sent} {lost}");
                assert!(
                    !(is_thin && groups.is_one() && groups.is_surely_thick(in_flight)),
                    "{test:?} {sent} {lost}"
                );
            }
        }
    }
}

#[test]
fn a_change_is_noted_once_and_the_first_look_is_none() {
    let mut groups = groups(TIMED);
    assert!(!groups.is_known_thick(100), "it was not looked at");
    let noted = [true, true, false, false, true].map(|is_thin| groups.note(0, is_thin));
    assert_eq!(noted, [Some(false), None, Some(true), None, Some(true)]);
    groups.note(0, false);
    assert!(groups.is_known_thick(100) && !groups.is_known_thick(3));
    groups.set(0, ThinConfig::OFF, &RecoveryStatistics::default());
    assert_eq!(groups.note(0, true), None, "no mechanism");
}
