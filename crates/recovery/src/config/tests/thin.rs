use crate::config::*;

#[test]
fn the_default_has_no_mechanism() {
    assert_eq!(ThinConfig::default(), ThinConfig::OFF);
    assert!(!ThinConfig::OFF.is_any() && ThinConfig::M1_TO_M4.is_any());
}

#[test]
fn a_queue_of_more_than_a_minute_is_refused() {
    let yielding = |seconds| ThinConfig {
        queue_delay_limit: Some(Duration::from_secs(seconds)),
        ..ThinConfig::INTERACTIVE
    };
    assert!(yielding(60).is_valid() && !yielding(61).is_valid());
}
