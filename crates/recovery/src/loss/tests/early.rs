use std::time::Duration;

use crate::loss::early::{LEAST_WAIT, early_wait};
use crate::{RtoConfig, RttEstimator};

#[test]
fn waits_for_the_round_trip_and_its_variation() {
    let config = RtoConfig::OF_2006;
    let mut rtt = RttEstimator::default();
    assert_eq!(early_wait(&rtt, &config), Duration::from_millis(750), "a quarter of RTO.Initial");
    rtt.on_sample(Duration::from_millis(100), &config);
    assert_eq!(early_wait(&rtt, &config), LEAST_WAIT);
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Duration::from_millis(300), &config);
    assert_eq!(early_wait(&rtt, &config), Duration::from_millis(600));
}
