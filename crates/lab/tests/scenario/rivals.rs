//! Rivals in scenarios: known quantities are measured, unknown ones are missing.

use rexmit_lab::scenario::{ExecuteError, execute};
use serde_json::json;

use crate::scenario;

#[test]
fn the_messages_and_packets_of_a_rival_are_measured_and_its_trace_is_not() {
    let plain = [("dcsctp", 20 + 12 + 16), ("sctp-proto", 48), ("kcp", 52)];
    let in_udp = [("dcsctp", 48 + 8), ("sctp-proto", 56), ("kcp", 52)];
    let plain = plain.map(|(transport, bytes)| (transport, "none", bytes));
    let in_udp = in_udp.map(|(transport, bytes)| (transport, "udp", bytes));
    for (transport, encapsulation, header_bytes) in plain.into_iter().chain(in_udp) {
        let game = json!({
            "traffic": "every 50ms size 100",
            "transport": transport,
            "encapsulation": encapsulation,
        });
        let scenario = scenario(json!({
            "duration": "100s",
            "network": { "forward": "delay 50ms" },
            "thin": { "game": game },
        }));
        let outcome = match execute(&scenario, 1) {
            Err(ExecuteError::NotBuilt(what)) => {
                return assert!(what.contains("--features rivals"));
            }
            outcome => outcome.unwrap(),
        };
        let of = |name: &str| outcome.quantities.get(&format!("game.{name}")).copied();
        assert_eq!(of("messages"), of("latency.p50").map(|_| 2000.0));
        assert_eq!(of("latency.max"), Some(50.0), "{transport}");
        // The handshake apart, a packet each.
        let packets = of("packets_per_message").unwrap();
        assert!((1.0..1.01).contains(&packets), "{transport}: {packets}");
        let bytes = of("wire_bytes_per_payload_byte").unwrap();
        let expected = f64::from(100 + header_bytes) / 100.0;
        assert!((expected..expected * 1.01).contains(&bytes), "{transport}: {bytes}");
        for unknown in ["retransmissions.all", "spurious_share", "timeouts", "rtt.mean", "units"] {
            assert_eq!(of(unknown), None, "{transport}");
        }
        let mut described = scenario.catalogue().quantities.into_iter();
        assert!(described.any(|described| described.name == "game.spurious_share"));
    }
}
