//! The relative duration of a run.

use std::time::Duration;

use rexmit_core::BitRate;

use rexmit_lab::scenario::{Clock, Scenario};

/// Packets on all links for each packet of messages, roughly: acknowledgements and retransmissions.
const OF_EACH: f64 = 2.5;

/// Packets per second of a saturated link without a rate limit, roughly.
const UNLIMITED: f64 = 10_000.0;

/// The size of a full packet in bits.
const PACKET: f64 = 8.0 * 1500.0;

/// Packets that a processor simulates per second, roughly.
const SIMULATED: f64 = 200_000.0;

/// Packets that could be simulated in the time that a packet takes inside a kernel, roughly.
const IN_KERNEL: f64 = 60.0;

/// The approximate number of packets in a run; for a run on real sockets or inside a kernel, the number that could
/// be simulated in its time.
#[must_use]
pub fn weight(scenario: &Scenario) -> f64 {
    if scenario.clock == Clock::Real {
        return scenario.duration.as_secs_f64() * SIMULATED;
    }
    let messages = OF_EACH * scenario.planned_packets();
    let is_filled = !scenario.bulk.is_empty() || !scenario.web.is_empty();
    let networks = std::iter::once(&scenario.network).chain(&scenario.second_network);
    let capacity: f64 =
        networks.map(|network| network.forward.rate.map_or(UNLIMITED, packets)).sum();
    let filling = if is_filled { capacity * scenario.duration.as_secs_f64() } else { 0.0 };
    let factor = if scenario.clock == Clock::Kernel { IN_KERNEL } else { 1.0 };
    (messages + filling) * factor
}

/// The approximate processor time of a run; for a run on real sockets, its duration.
#[must_use]
pub fn estimated_time(scenario: &Scenario) -> Duration {
    Duration::from_secs_f64(weight(scenario) / SIMULATED)
}

fn packets(rate: BitRate) -> f64 {
    rate.bits_per_second() as f64 / PACKET
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_run_weighs_more_than_a_thin_stream() {
        let of = |duration: &str, bulk: &str| on("virtual", duration, bulk);
        assert_eq!(of("2h", "{}"), 2.0 * of("1h", "{}"));
        assert!(of("1h", r#"{"greedy": {}}"#) > 2.0 * of("1h", "{}"));
        assert!(on("kernel", "1h", "{}") > 10.0 * of("1h", "{}"));
    }

    #[test]
    fn the_time_of_a_run_grows_with_its_messages() {
        let of = |traffic| estimated_time(&scenario("virtual", "1h", traffic, "{}")).as_secs_f64();
        let (seldom, often) = (of("every 250ms size 100"), of("every 250us size 100"));
        assert!((often / seldom / 1000.0 - 1.0).abs() < 0.01, "{seldom} s, {often} s");
    }

    fn on(clock: &str, duration: &str, bulk: &str) -> f64 {
        weight(&scenario(clock, duration, "every 250ms size 100", bulk))
    }

    fn scenario(clock: &str, duration: &str, traffic: &str, bulk: &str) -> Scenario {
        let text = format!(
            r#"{{"duration": "{duration}", "clock": "{clock}", "bulk": {bulk},
                    "network": {{"forward": "delay 50ms rate 1mbit"}},
                    "thin": {{"game": {{"traffic": "{traffic}"}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }
}
