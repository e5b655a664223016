use crate::rtt::*;

#[test]
fn doubles_up_to_its_maximum_and_collapses_with_a_sample() {
    let config = RtoConfig::default();
    let mut timer = RtoTimer::new(&config);
    let seen: Vec<u64> = (0..8)
        .map(|_| {
            let rto = timer.rto().as_secs();
            timer.on_timeout(&config);
            rto
        })
        .collect();
    assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
    timer.on_sample(Duration::from_millis(100), &config);
    assert_eq!((timer.rto(), timer.backoffs()), (Duration::from_secs(1), 0));
}

/// Petlund 2009 §5.2: only the lower bound differs; the backoff and RTO.Max are the same.
#[test]
fn another_lower_bound_changes_nothing_else() {
    let config = RtoConfig::default();
    let min = Duration::from_millis(200);
    let mut timer = RtoTimer::new(&config);
    assert_eq!(timer.rto_within(min, &config), config.initial);
    timer.on_timeout(&config);
    assert_eq!(timer.rto_within(min, &config), 2 * config.initial);
    for (sample, base) in [(20, 200), (100, 300), (600, 1800)] {
        let mut timer = RtoTimer::new(&config);
        timer.on_sample(Duration::from_millis(sample), &config);
        let within: Vec<_> = (0..9)
            .map(|_| {
                let within = timer.rto_within(min, &config).as_millis() as u64;
                timer.on_timeout(&config);
                within
            })
            .collect();
        let doubled: Vec<_> = (0..9).map(|n| (base << n).min(60_000)).collect();
        assert_eq!(within, doubled, "after a sample of {sample} ms");
        let standard = RtoTimer { backoffs: 3, ..timer.clone() };
        assert_eq!(standard.rto_within(config.min, &config).as_millis() as u64, 8 * base.max(1000));
    }
}
