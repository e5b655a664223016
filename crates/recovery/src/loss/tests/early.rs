use std::time::Duration;

use crate::loss::early::{LEAST_WAIT, early_wait};
use crate::{RtoConfig, RttEstimator};

#[test]
fn waits_for_the_round_trip_and_its_variation() {
    let mut rtt = RttEstimator::default();
    assert_eq!(early_wait(&rtt), None);
    rtt.on_sample(Duration::from_millis(100), &RtoConfig::default());
    assert_eq!(early_wait(&rtt), Some(LEAST_WAIT));
    let mut rtt = RttEstimator::default();
    rtt.on_sample(Duration::from_millis(300), &RtoConfig::default());
    assert_eq!(early_wait(&rtt), Some(Duration::from_millis(600)));
}
