//! Runs whose outcome is computed by hand: 100 bytes every 240 ms, 50 ms each way, and exactly the named packets are
//! lost. The acknowledgement of a message arrives 100 ms after it was sent, and the timeout is 1 s.

use rexmit_lab::scenario::RunOutcome;
use serde_json::{Value, json};

use crate::run;

/// Twenty messages after two packets of the handshake; the packets `lost` are lost.
fn twenty(lost: &str) -> Value {
    json!({
        "duration": "4800ms",
        "rows": true,
        "network": { "forward": format!("delay 50ms {lost}"), "backward": "delay 50ms" },
        "thin": { "game": {
            "traffic": "every 240ms size 100",
            "profile": "lksctp",
            "receiver": { "ack_delay": "0ms" },
            "late": ["100ms", "1s"],
        } },
    })
}

/// Whether the quantity `name` is `expected`, up to rounding.
#[track_caller]
fn is(outcome: &RunOutcome, name: &str, expected: f64) {
    let value = outcome.quantities.get(name).unwrap_or_else(|| panic!("no {name}"));
    assert!((value - expected).abs() <= expected * 1e-9, "{name} is {value}, not {expected}");
}

/// The latency of each message in milliseconds, to the receiver and to the application.
fn took(outcome: &RunOutcome) -> [Vec<Option<f64>>; 2] {
    let rows = &outcome.messages;
    [
        rows.iter().map(|row| row.transport_ms).collect(),
        rows.iter().map(|row| row.application_ms).collect(),
    ]
}

/// The latencies of messages that wait for message 3, whose own latency is `repaired` ms.
fn waiting_for_message_3(repaired: f64) -> [Vec<Option<f64>>; 2] {
    let application = |n: i32| match n {
        3.. => Some((repaired - 240.0 * f64::from(n - 3)).max(50.0)),
        _ => Some(50.0),
    };
    let transport = |n: i32| Some(if n == 3 { repaired } else { 50.0 });
    [(0..20).map(transport).collect(), (0..20).map(application).collect()]
}

#[test]
fn without_loss_every_message_takes_the_delay_of_the_path() {
    let outcome = run(twenty(""), 1);
    assert_eq!(took(&outcome), [vec![Some(50.0); 20], vec![Some(50.0); 20]]);
    for name in ["latency.mean", "latency.max", "transport_latency.mean", "bytes_latency.max"] {
        is(&outcome, &format!("game.{name}"), 50.0);
    }
    is(&outcome, "game.messages", 20.0);
    for name in ["mean", "min", "max"] {
        is(&outcome, &format!("game.traffic.payload.{name}"), 100.0);
    }
    for name in ["mean", "min", "max", "p1", "p50", "p99"] {
        is(&outcome, &format!("game.traffic.interarrival.{name}"), 240.0);
    }
    is(&outcome, "game.traffic.packets_per_second", 1000.0 / 240.0);
    let none = ["undelivered", "timeouts", "retransmissions.all", "loss_share", "late_share.100ms"];
    none.iter().for_each(|name| is(&outcome, &format!("game.{name}"), 0.0));
    is(&outcome, "game.rtx0.count", 20.0);
    // The last one leaves 40 ms before the end and arrives after it.
    is(&outcome, "game.goodput", 19.0 * 800.0 / 4.8);
    let bytes = outcome.quantities["game.wire_bytes_per_payload_byte"] * 2000.0;
    is(&outcome, "game.wire_rate", bytes * 8.0 / 4.8);
    // Both directions of the link, counted at the hosts.
    let packets =
        ["forward", "backward"].map(|way| outcome.quantities[&format!("network.{way}.packets")]);
    assert!(packets[1] > 20.0, "an acknowledgement per message: {packets:?}");
    is(&outcome, "game.two_way.packets_per_message", (packets[0] + packets[1]) / 20.0);
    is(&outcome, "game.arrived_wire_rate", (bytes - 148.0) * 8.0 / 4.8);
    assert_eq!(outcome.distributions["game.goodput_bins"].counts, [29, 19]);
    assert_eq!(outcome.distributions["game.goodput_bins"].values, [0.0, 8000.0]);
    assert!(!outcome.quantities.contains_key("game.rtx1.mean"), "there was none");
    let rtt = &outcome.series["game.rtt"];
    assert!(rtt.values.iter().all(|&rtt| rtt == 100.0), "{rtt:?}");
    assert_eq!(outcome.series["game.rto"].values.last(), Some(&1000.0));
    // Connecting takes two round trips.
    let meant: Vec<_> = outcome.messages.iter().map(|row| (row.intended_s * 1e3).round()).collect();
    assert_eq!(meant, (0..20).map(|n| 200.0 + 240.0 * f64::from(n)).collect::<Vec<_>>());
}

#[test]
fn one_loss_is_repaired_by_the_third_report() {
    let outcome = run(twenty("loss list 5"), 1);
    // Message 6 reports it for the third time, 720 ms later.
    assert_eq!(took(&outcome), waiting_for_message_3(720.0 + 100.0 + 50.0));
    is(&outcome, "game.latency.mean", (16.0 * 50.0 + 870.0 + 630.0 + 390.0 + 150.0) / 20.0);
    is(&outcome, "game.latency.max", 870.0);
    is(&outcome, "game.transport_latency.mean", (19.0 * 50.0 + 870.0) / 20.0);
    is(&outcome, "game.late_share.100ms", 4.0 / 20.0);
    is(&outcome, "game.transport_late_share.100ms", 1.0 / 20.0);
    is(&outcome, "game.late_share.1s", 0.0);
    is(&outcome, "game.had_late.100ms", 1.0);
    is(&outcome, "game.had_late.1s", 0.0);
    is(&outcome, "game.rtx0.count", 19.0);
    is(&outcome, "game.rtx1.count", 1.0);
    is(&outcome, "game.rtx1.mean", 870.0);
    is(&outcome, "game.rtx1.share.fast_retransmit", 1.0);
    is(&outcome, "game.rtx1.spurious_share", 0.0);
    is(&outcome, "game.retransmissions.fast_retransmit", 1.0);
    is(&outcome, "game.retransmissions.all", 1.0);
    is(&outcome, "game.nth_retransmission.1.mean", 820.0);
    is(&outcome, "game.timeouts", 0.0);
    is(&outcome, "game.loss_share", 1.0 / 21.0);
    // Both copies are offered, of which one arrives.
    let bytes = outcome.quantities["game.wire_bytes_per_payload_byte"] * 2000.0;
    is(&outcome, "game.wire_rate", bytes * 8.0 / 4.8);
    is(&outcome, "game.arrived_wire_rate", (bytes - 2.0 * 148.0) * 8.0 / 4.8);
}

#[test]
fn a_retransmission_that_is_lost_waits_for_the_timer() {
    // The retransmission is the packet after message 6.
    let outcome = run(twenty("loss list 5,9"), 1);
    assert_eq!(took(&outcome), waiting_for_message_3(820.0 + 1000.0 + 50.0));
    is(&outcome, "game.rtx2.count", 1.0);
    is(&outcome, "game.rtx2.max", 1870.0);
    is(&outcome, "game.rtx2.share.timeout", 1.0);
    is(&outcome, "game.rtx1.count", 0.0);
    is(&outcome, "game.rtx1.sent", 1.0);
    is(&outcome, "game.nth_retransmission.2.max", 1820.0);
    is(&outcome, "game.timeouts", 1.0);
    is(&outcome, "game.collapses", 1.0);
    is(&outcome, "game.loss_share", 2.0 / 22.0);
}

#[test]
fn unordered_messages_do_not_wait() {
    let mut scenario = twenty("loss list 5");
    scenario["thin"]["game"]["unordered"] = true.into();
    let [transport, application] = took(&run(scenario, 1));
    assert_eq!(transport, waiting_for_message_3(870.0)[0]);
    assert_eq!(application, transport);
}

#[test]
fn tcp_repairs_by_the_third_duplicate_acknowledgement() {
    // The handshake ends with the packet that has the first message.
    let mut scenario = twenty("loss list 4");
    let game = &mut scenario["thin"]["game"];
    game["transport"] = "tcp".into();
    game["profile"] = "tcp-sack".into();
    let outcome = run(scenario, 1);
    assert_eq!(took(&outcome), waiting_for_message_3(870.0));
    is(&outcome, "game.rtx1.share.fast_retransmit", 1.0);
    is(&outcome, "game.timeouts", 0.0);
}

#[test]
fn messages_on_a_dead_path_count_as_undelivered_and_late() {
    let mut scenario = twenty("");
    scenario["network"]["changes"] = json!([{ "at": "2s", "forward": "loss 100%" }]);
    scenario["drain"] = "10s".into();
    let outcome = run(scenario, 1);
    // Messages leave 200 ms after the beginning and every 240 ms from then on.
    is(&outcome, "game.messages", 20.0);
    is(&outcome, "game.undelivered", 12.0);
    is(&outcome, "game.late_share.1s", 12.0 / 20.0);
    is(&outcome, "game.latency.max", 50.0);
    is(&outcome, "game.rtx0.count", 8.0);
    let rows = &outcome.messages;
    assert!(rows[..8].iter().all(|row| row.application_ms == Some(50.0)));
    assert!(rows[8..].iter().all(|row| row.application_ms.is_none() && row.transport_ms.is_none()));
}

/// The classes of spurious data units, as counts; `sent` is the number of all data units.
fn classes(outcome: &RunOutcome, sent: f64) -> [f64; 4] {
    let of = |name: &str| outcome.quantities[&format!("game.{name}_share")] * sent;
    assert!((of("spurious") - outcome.quantities["game.spurious.all"]).abs() < 1e-9);
    ["premature", "crossed", "unacknowledged", "redundant"].map(|name| of(name).round())
}

/// The last message arrives, but its acknowledgement, the 22nd packet back, is lost: the message is retransmitted after
/// 1 s.
#[test]
fn unacknowledged_spurious_retransmissions_are_a_class_of_their_own() {
    let mut scenario = twenty("");
    scenario["network"]["backward"] = "delay 50ms loss list 21".into();
    let outcome = run(scenario, 1);
    is(&outcome, "game.spurious.timeout", 1.0);
    assert_eq!(classes(&outcome, 21.0), [0.0, 0.0, 1.0, 0.0]);
}

/// From 4.79 s on the backward delay is 2 s. The last message arrives at 4.81 s and is retransmitted at 5.76 s, while
/// its acknowledgement is in flight.
#[test]
fn a_retransmission_before_the_ack_arrives_is_premature() {
    let mut scenario = twenty("");
    scenario["network"]["changes"] = json!([{ "at": "4790ms", "backward": "delay 2s" }]);
    let outcome = run(scenario.clone(), 1);
    assert_eq!(classes(&outcome, 21.0), [1.0, 0.0, 0.0, 0.0]);
    // The ACK of the message before is lost, too; the timer of that message expires at 5.52 s, and both are
    // retransmitted.
    scenario["network"]["backward"] = "delay 50ms loss list 20".into();
    let outcome = run(scenario, 1);
    assert_eq!(classes(&outcome, 22.0), [1.0, 1.0, 0.0, 0.0]);
}

/// Every message except the first is sent with a copy of the previous one, which has arrived.
#[test]
fn redundant_copies_are_not_premature_retransmissions() {
    let mut scenario = twenty("");
    scenario["thin"]["game"]["traffic"] = "every 80ms size 100".into();
    scenario["duration"] = "1600ms".into();
    scenario["thin"]["game"]["recovery"] = json!({ "thin": { "bundling": { "packets": 1 } } });
    let outcome = run(scenario, 1);
    is(&outcome, "game.spurious.redundant", 19.0);
    assert_eq!(classes(&outcome, 39.0), [0.0, 0.0, 0.0, 19.0]);
}

/// The times of the retransmissions of a message that is never acknowledged, in seconds.
fn retransmissions(linear_timeouts: &serde_json::Value) -> Vec<f64> {
    let outcome = run(
        json!({
            "duration": "65s",
            "drain": "80s",
            "network": {
                "forward": "delay 50ms",
                "changes": [{ "at": "40s", "forward": "loss 100%" }],
            },
            "thin": { "game": {
                "traffic": "every 30s size 100",
                "profile": "lksctp",
                "recovery": { "thin": { "linear_timeouts": linear_timeouts } },
                "receiver": { "ack_delay": "0ms" },
            } },
        }),
        1,
    );
    let time = |n| outcome.quantities.get(&format!("game.nth_retransmission.{n}.max"));
    (1..=10).map_while(time).map(|ms| ms / 1000.0).collect()
}

#[test]
fn timeouts_double_or_do_not() {
    assert_eq!(retransmissions(&"off".into()), [1.0, 3.0, 7.0, 15.0, 31.0, 63.0]);
    assert_eq!(retransmissions(&6.into())[..8], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0]);
}

#[test]
fn udp_is_counted_and_not_repaired() {
    let outcome = run(
        json!({
            "duration": "10s",
            "network": { "forward": "delay 50ms loss list 3,4" },
            "udp": { "probe": { "traffic": "rate 8kbit size 100" } },
        }),
        1,
    );
    is(&outcome, "probe.packets", 100.0);
    is(&outcome, "probe.loss_share", 0.02);
    is(&outcome, "probe.goodput", 98.0 * 800.0 / 10.0);
    is(&outcome, "probe.delay.mean", 50.0);
    is(&outcome, "network.forward.loss_share", 0.02);
}

#[test]
fn an_edge_path_applies_to_one_flow_only() {
    let flow = |edge: &str| {
        json!({
            "traffic": "every 240ms size 100",
            "receiver": { "ack_delay": "0ms" },
            "edge": format!("delay {edge}"),
        })
    };
    let outcome = run(
        json!({
            "duration": "10s",
            "network": { "forward": "delay 50ms" },
            "thin": { "near": flow("1ms"), "far": flow("30ms") },
        }),
        1,
    );
    is(&outcome, "near.latency.max", 51.0);
    is(&outcome, "far.latency.max", 80.0);
    is(&outcome, "far.rtt.max", 160.0);
}

/// A greedy flow of full packets over a path with a round trip of 100 ms that sends one packet per millisecond, and
/// delays packet 42 (data unit 41) until four later ones have passed.
fn overtaken(profile: &str) -> Value {
    json!({
        "duration": "5s",
        "network": {
            "forward": "delay 50ms rate 12mbit hold 42 4",
            "backward": "delay 50ms",
        },
        "bulk": { "greedy": {
            "profile": profile,
            "mtu": "1500b",
            "receiver": { "ack_delay": "0ms", "receive_buffer": "64kb" },
        } },
    })
}

#[test]
fn spurious_events_are_counted_apart_from_those_that_the_sender_detects() {
    for (profile, detected) in [("rfc9260", 0.0), ("rr", 1.0)] {
        let outcome = run(overtaken(profile), 1);
        for kind in ["fast_retransmit", "all"] {
            let is =
                |what: &str, value| is(&outcome, &format!("greedy.events.{kind}{what}"), value);
            for (what, count) in [("", 1.0), (".spurious", 1.0), (".mistaken", 0.0)] {
                is(what, count);
            }
            is(".detected", detected);
            is(".detected_share", detected);
        }
        is(&outcome, "greedy.events.timeout", 0.0);
        is(&outcome, "greedy.spurious.all", 1.0);
        let sequence = &outcome.series["greedy.sequence"].values;
        let units = outcome.quantities["greedy.units"];
        assert_eq!(sequence.len() as f64, units + 1.0, "one left twice");
        assert_eq!(sequence[..42], (1..=42).map(f64::from).collect::<Vec<_>>());
        assert!(sequence[42..].contains(&41.0), "the one that was held back");
        assert_eq!(sequence.iter().copied().fold(0.0, f64::max), units);
        // The histogram of reordering contains a packet that needed a fifth missing report.
        let learned = outcome.series.get("greedy.missing_reports").map(|it| it.values.clone());
        assert_eq!(learned, (detected > 0.0).then(|| vec![5.0]), "{profile}");
    }
}

#[test]
fn an_event_with_a_real_loss_is_not_spurious() {
    let mut scenario = overtaken("rr");
    scenario["network"]["forward"] = "delay 50ms rate 12mbit loss list 42".into();
    let outcome = run(scenario, 1);
    is(&outcome, "greedy.events.fast_retransmit", 1.0);
    is(&outcome, "greedy.events.fast_retransmit.spurious", 0.0);
    assert!(!outcome.quantities.contains_key("greedy.events.fast_retransmit.detected_share"));
}

/// With ordered delivery, the data after a packet that is 200 ms late would fill the receiver's window.
#[test]
fn unordered_bulk_is_not_held_back() {
    let goodput = |is_unordered: bool| {
        let mut scenario = overtaken("rr");
        scenario["network"]["forward"] = "delay 50ms rate 12mbit reorder 10% 200ms".into();
        scenario["bulk"]["greedy"]["unordered"] = is_unordered.into();
        run(scenario, 1).quantities["greedy.goodput"]
    };
    let (ordered, unordered) = (goodput(false), goodput(true));
    assert!(unordered > 1.3 * ordered, "{ordered} and {unordered}");
}

/// A message has 148 bytes over IP, and 156 in UDP: 1 ms each at their rates.
#[test]
fn udp_around_sctp_is_carried_and_counted() {
    let [plain, in_udp] = [("none", 1184), ("udp", 1248)].map(|(encapsulation, rate)| {
        let mut scenario = twenty(&format!("rate {rate}kbit"));
        scenario["thin"]["game"]["encapsulation"] = encapsulation.into();
        let outcome = run(scenario, 1);
        assert_eq!(took(&outcome), [vec![Some(51.0); 20], vec![Some(51.0); 20]]);
        outcome
    });
    let of = |name: &str| [&plain, &in_udp].map(|outcome| outcome.quantities[name]);
    let [packets, as_many] = of("game.packets_per_message").map(|each| each * 20.0);
    assert_eq!(packets, as_many);
    let [plain_bytes, bytes] = of("game.wire_bytes_per_payload_byte").map(|each| each * 2000.0);
    assert!((bytes - plain_bytes - 8.0 * packets).abs() < 1e-6, "{plain_bytes} and {bytes}");
}
