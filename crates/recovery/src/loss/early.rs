//! Early Fast Retransmit of FreeBSD 6.2: what could have been acknowledged by now, and was not, leaves
//! again while the window is not used up (Petlund 2009 §2).

use std::time::Duration;

use crate::RttEstimator;

/// How long after its first sending a packet is waited for: SRTT + RTTVAR. `None` without a
/// measurement.
pub(crate) fn patience(rtt: &RttEstimator) -> Option<Duration> {
    match *rtt {
        RttEstimator::Unmeasured => None,
        RttEstimator::Measured { srtt, rttvar, .. } => Some(srtt + rttvar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RtoConfig;

    #[test]
    fn waits_for_the_round_trip_and_its_variation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(patience(&rtt), None);
        rtt.on_sample(Duration::from_millis(100), &RtoConfig::default());
        assert_eq!(patience(&rtt), Some(Duration::from_millis(150)));
    }
}
