use crate::rtt::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn unbounded() -> RtoConfig {
    RtoConfig { min: Duration::ZERO, ..RtoConfig::default() }
}

#[test]
fn first_sample_sets_srtt_and_half_of_it_as_variation() {
    let mut rtt = RttEstimator::default();
    assert_eq!(rtt.timeout(&unbounded()), MS(1000));
    rtt.on_sample(MS(100), &unbounded());
    assert_eq!(rtt.srtt(), Some(MS(100)));
    assert_eq!(rtt.timeout(&unbounded()), MS(100 + 4 * 50));
}

#[test]
fn later_samples_are_weighted_by_alpha_and_beta() {
    let mut rtt = RttEstimator::default();
    rtt.on_sample(MS(80), &unbounded());
    rtt.on_sample(MS(160), &unbounded());
    // RTTVAR = 3/4·40 + 1/4·|80−160| = 50; SRTT = 7/8·80 + 1/8·160 = 90.
    assert_eq!(rtt.srtt(), Some(MS(90)));
    assert_eq!(rtt.timeout(&unbounded()), MS(90 + 4 * 50));
}

#[test]
fn timeout_respects_its_bounds_and_variation_is_never_zero() {
    let config = RtoConfig::default();
    let mut rtt = RttEstimator::default();
    rtt.on_sample(MS(10), &config);
    assert_eq!(rtt.timeout(&config), MS(1000));
    rtt.on_sample(Duration::from_secs(3600), &config);
    assert_eq!(rtt.timeout(&config), MS(60_000));
    let mut still = RttEstimator::default();
    still.on_sample(Duration::ZERO, &unbounded());
    assert_eq!(still.timeout(&unbounded()), 4 * MS(1));
}
