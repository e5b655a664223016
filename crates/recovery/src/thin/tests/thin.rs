use crate::thin::*;

fn inputs(in_flight: u32, (sent, lost): (u64, u64)) -> ThinInputs {
    ThinInputs { in_flight, sent, lost, pttfr: 3, is_initial_slow_start: false }
}

/// Petlund 2009 §5.1: four packets without loss; one more at 20 %, eight at 50 %.
#[test]
fn the_bound_grows_with_the_loss_rate() {
    let most = |sent, lost| {
        let is_thin = |&n: &u32| ThinTest::default().is_thin(&inputs(n, (sent, lost)));
        (0..100).take_while(is_thin).last()
    };
    let table = [((0, 0), 4), ((100, 0), 4), ((100, 19), 4), ((100, 20), 5), ((2, 1), 8)];
    for ((sent, lost), bound) in table {
        assert_eq!(most(sent, lost), Some(bound), "{lost} of {sent}");
    }
    assert_eq!(most(3, 3), Some(99), "every packet was lost: thin, however many");
}

#[test]
fn linux_asks_for_fewer_than_four_outside_the_initial_slow_start() {
    let is_thin = |in_flight, is_initial_slow_start| {
        let inputs = ThinInputs { is_initial_slow_start, ..inputs(in_flight, (100, 50)) };
        ThinTest::Linux.is_thin(&inputs)
    };
    assert!(is_thin(0, false) && is_thin(3, false));
    assert!(!is_thin(4, false) && !is_thin(0, true));
}

#[test]
fn no_stream_is_thin_with_more_in_flight_than_the_most() {
    for sent in 0..40 {
        for (lost, pttfr) in (0..=sent).flat_map(|lost| [(lost, 1), (lost, 3), (lost, 255)]) {
            let most = ThinTest::most_when_thin(pttfr, sent, lost);
            let is_thin = |test: ThinTest, in_flight, sent| {
                test.is_thin(&ThinInputs { pttfr, ..inputs(in_flight, (sent, lost)) })
            };
            // It is detected by the exact test, too, unless the other allows more.
            assert!(is_thin(ThinTest::PacketsInFlight, most, sent) || most == 3);
            for more in [1, 2, 100].map(|more| most.saturating_add(more)) {
                let is_any = [ThinTest::PacketsInFlight, ThinTest::Linux]
                    .iter()
                    .any(|test| (sent..sent + 3).any(|sent| is_thin(*test, more, sent)));
                assert!(!is_any || most == u32::MAX, "{more} with {lost} of {sent}");
            }
        }
    }
}

#[test]
fn the_figures_explain_the_verdict() {
    let told = ThinTest::default().explain(&inputs(5, (100, 20)));
    assert_eq!((told.is_thin, told.in_flight, told.loss_rate), (true, 5, 0.2));
    assert!((told.bound - 5.0).abs() < 1e-9);
}
