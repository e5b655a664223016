//! How much a scenario is to send, estimated before it runs.

use rexmit_core::{Instant, Seed};

use super::problem::Problems;
use super::spec::Scenario;
use super::traffic::Traffic;
use super::words::{Time, Words};

/// Largest number of packets that the messages of one run may need, estimated by
/// [`Scenario::planned_packets`]: hours of processor time.
pub const MAX_PLANNED_PACKETS: f64 = 1e9;

/// Messages of a flow by which the rest of it is estimated.
const SAMPLED: usize = 1000;

/// Bytes of a message that a packet has, roughly.
const PACKET_BYTES: usize = 1400;

impl Scenario {
    /// The number of packets that the messages of all thin and UDP flows need if nothing is lost, roughly: the whole of
    /// a flow is taken to be like its first messages. Bulk and web flows are not counted: links limit these.
    #[must_use]
    pub fn planned_packets(&self) -> f64 {
        let thin = self.thin.values().map(|flow| (&flow.traffic, &flow.start, flow.connections()));
        let udp = self.udp.values().map(|flow| (&flow.traffic, &flow.start, 1));
        let of_flow =
            |(traffic, start, connections): (&Words<Traffic>, &Option<Words<Time>>, _)| {
                let begin = start.as_ref().map_or(Instant::ZERO, |start| Instant::ZERO + ***start);
                let seconds = (self.end() - begin).as_secs_f64();
                packets_per_second(traffic) * seconds * f64::from(connections)
            };
        thin.chain(udp).map(of_flow).sum()
    }
}

/// The mean rate of the first messages; 0 if they are all due at once.
fn packets_per_second(traffic: &Traffic) -> f64 {
    let Ok(source) = traffic.source(&Seed::from_u64(0)) else { return 0.0 };
    let (mut packets, mut first, mut last) = (0, None, Instant::ZERO);
    for (at, bytes) in source.take(SAMPLED) {
        first = first.or(Some(at));
        last = at;
        packets += bytes.div_ceil(PACKET_BYTES).max(1);
    }
    let Some(first) = first else { return 0.0 };
    let seconds = (last - first).as_secs_f64();
    // The packets of the last message begin the next interval.
    let share = (SAMPLED - 1) as f64 / SAMPLED as f64;
    if seconds > 0.0 { packets as f64 * share / seconds } else { 0.0 }
}

/// Refuses a scenario that would run for days.
pub(super) fn find(scenario: &Scenario, problems: &mut Problems) {
    let planned = scenario.planned_packets();
    if planned > MAX_PLANNED_PACKETS {
        let what = format!(
            "about {planned:.1e} packets of messages in {}: a run has at most {MAX_PLANNED_PACKETS:.0e}; \
             make it shorter, have fewer connections or messages, or divide it into runs with other seeds",
            scenario.duration
        );
        problems.add("duration", what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(duration: &str, traffic: &str, connections: u32) -> Scenario {
        let text = format!(
            r#"{{"duration": "{duration}", "network": {{"forward": "delay 50ms"}},
                 "thin": {{"game": {{"traffic": "{traffic}", "connections": {connections}}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn packets_are_estimated_by_rate_size_and_connections() {
        let of = |duration, traffic, connections| {
            scenario(duration, traffic, connections).planned_packets()
        };
        for (estimate, expected) in [
            (of("1h", "every 250ms size 100", 1), 14_400.0),
            (of("2h", "every 250ms size 100", 3), 86_400.0),
            (of("1h", "every 250ms size 4200", 1), 43_200.0),
            (of("1s", "rate 8mbit size 1000", 1), 1000.0),
        ] {
            assert!((estimate / expected - 1.0).abs() < 0.001, "{estimate}, not {expected}");
        }
        let poisson = of("1h", "poisson 250ms size 100", 1);
        assert!((poisson / 14_400.0 - 1.0).abs() < 0.1, "{poisson}");
    }

    #[test]
    fn a_run_of_too_many_messages_is_refused() {
        assert!(scenario("27h", "every 100us size 100", 1).validate().is_ok());
        for (duration, traffic, connections) in
            [("2000h", "every 100us size 100", 1), ("27h", "every 100us size 100", 1024)]
        {
            let wrong = scenario(duration, traffic, connections).validate().unwrap_err();
            assert_eq!(wrong.len(), 1);
            assert_eq!(wrong[0].path, "duration");
            assert!(wrong[0].what.contains("a run has at most 1e9"), "{}", wrong[0]);
        }
    }
}
