use std::time::Duration;

use crate::config::*;

#[test]
fn contradictory_bounds_are_refused() {
    let mut config = RecoveryConfig::rfc9260();
    config.rto.min = Duration::from_secs(61);
    assert!(config.validate().is_err());
}
