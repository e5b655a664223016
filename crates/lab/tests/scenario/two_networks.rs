//! Two networks between the same hosts, in exact time: 50 ms each way on both, and a message every 240 ms. The first
//! one fails at 2 s: message 7 and its acknowledgement have passed it, message 8 is sent at 2.12 s.

use rexmit_lab::scenario::RunOutcome;
use serde_json::{Value, json};

use crate::run;

fn failing(recovery: &Value) -> Value {
    json!({
        "duration": "4800ms",
        "rows": true,
        "network": {
            "forward": "delay 50ms",
            "changes": [{ "at": "2s", "forward": "loss 100%", "backward": "loss 100%" }],
        },
        "second_network": { "forward": "delay 50ms" },
        "thin": { "game": {
            "traffic": "every 240ms size 100",
            "recovery": recovery,
            "receiver": { "ack_delay": "0ms" },
        } },
    })
}

/// The latency of each message, from the intended sending to the application, in milliseconds.
fn took(outcome: &RunOutcome) -> Vec<Option<f64>> {
    outcome.messages.iter().map(|row| row.application_ms).collect()
}

/// The expected latencies: from each given message number on, messages arrive together at the given time, instead of 50
/// ms after they are sent.
fn arriving(at: &[(i32, f64)]) -> Vec<Option<f64>> {
    let time = |n: i32| {
        let known = at.iter().rev().find(|(from, _)| *from <= n);
        known.map_or(50.0, |(_, at)| (at - 200.0 - 240.0 * f64::from(n)).max(50.0))
    };
    (0..20).map(time).map(Some).collect()
}

#[track_caller]
fn values<const N: usize>(outcome: &RunOutcome, names: [&str; N]) -> [f64; N] {
    names.map(|name| outcome.quantities[name])
}

/// RFC 9260 §6.4, §8.2: the timer expires a second after message 8 was sent, and unacknowledged data is retransmitted
/// over the other path. New data is sent over the first until it has failed. Its window has room for message 13, whose
/// timer is 2 s; then 14 to 19 are sent in one packet, with a timer of 4 s.
#[test]
fn a_flow_of_sctp_has_an_address_on_both_and_repeats_over_the_second() {
    let outcome = run(failing(&json!({})), 1);
    assert_eq!(took(&outcome), arriving(&[(8, 3170.0), (13, 5370.0), (14, 9370.0)]));
    let names = ["path1.timeouts", "path1.packets", "path2.packets", "path2.retransmissions"];
    let names = names.map(|name| format!("game.{name}"));
    assert_eq!(values(&outcome, names.each_ref().map(String::as_str)), [3.0, 15.0, 3.0, 3.0]);
    assert_eq!(values(&outcome, ["game.path2.rtt.max", "game.path1.rtt.max"]), [100.0, 100.0]);
}

/// RFC 7829: after one error, new data is sent over the second path.
#[test]
fn with_potentially_failed_new_data_avoids_the_path_at_once() {
    let outcome = run(failing(&json!({ "sctp": { "potentially_failed_max_retrans": 0 } })), 1);
    assert_eq!(took(&outcome), arriving(&[(8, 3170.0)]));
    assert_eq!(values(&outcome, ["game.path1.timeouts", "game.path2.packets"]), [1.0, 8.0]);
}

#[test]
fn a_flow_may_be_over_one_of_them() {
    let mut scenario = failing(&json!({}));
    scenario["thin"]["game"]["over"] = "second".into();
    let outcome = run(scenario.clone(), 1);
    assert_eq!(took(&outcome), arriving(&[]));
    assert!(!outcome.quantities.contains_key("game.path1.packets"));
    assert_eq!(outcome.quantities["network.forward.packets"], 0.0);
    assert!(outcome.quantities["second_network.forward.packets"] > 20.0);
    scenario["thin"]["game"]["over"] = "first".into();
    scenario["drain"] = "10s".into();
    assert_eq!(took(&run(scenario, 1)).iter().filter(|time| time.is_none()).count(), 12);
}

/// Background traffic on each of two bottlenecks, with edges; the flow over both networks passes both.
#[test]
fn each_network_has_its_own_bottleneck() {
    let bulk = |over: &str| json!({ "transport": "tcp", "over": over });
    let scenario = json!({
        "duration": "10s",
        "network": { "forward": "delay 45ms rate 4mbit limit 50", "edge": "delay 5ms" },
        "second_network": { "forward": "delay 45ms rate 2mbit limit 50", "edge": "delay 5ms" },
        "thin": { "game": { "traffic": "every 240ms size 100" } },
        "bulk": { "first": bulk("first"), "second": bulk("second") },
    });
    let outcome = run(scenario, 1);
    let goodput = values(&outcome, ["first.goodput", "second.goodput"]);
    assert!((3.0e6..4.0e6).contains(&goodput[0]), "{goodput:?}");
    assert!((1.5e6..2.0e6).contains(&goodput[1]), "{goodput:?}");
    let rtt = values(&outcome, ["game.path1.rtt.mean", "game.path2.rtt.mean"]);
    assert!(rtt.iter().all(|&rtt| rtt >= 100.0), "{rtt:?}");
    assert_eq!(outcome.quantities["game.undelivered"], 0.0);
}

/// 45 ms between the routers, 5 ms between sender and router and another 5 ms between router and receiver, in both
/// directions; only the goodput of the background flow is measured.
#[test]
fn receivers_may_have_an_edge_and_background_flows_measure_goodput_only() {
    let network = |receiver: &str| {
        let path = "delay 45ms rate 10mbit limit 50";
        json!({ "forward": path, "edge": "delay 5ms", "receiver_edge": receiver })
    };
    let scenario = json!({
        "duration": "5s",
        "network": network("delay 5ms"),
        "second_network": network("delay 15ms"),
        "thin": { "game": {
            "traffic": "every 240ms size 100",
            "receiver": { "ack_delay": "0ms" },
        } },
        "bulk": { "back": { "transport": "tcp", "over": "second", "background": true } },
    });
    let outcome = run(scenario, 1);
    let rtt = outcome.quantities["game.path1.rtt.p50"];
    assert!((110.0..111.0).contains(&rtt), "{rtt}");
    let of_background: Vec<_> =
        outcome.quantities.keys().filter(|name| name.starts_with("back.")).collect();
    assert_eq!(of_background, ["back.goodput"]);
    assert!(outcome.quantities["back.goodput"] > 5e6);
}

/// Of 16,000 messages every 250 ms, the share that misses a deadline with this probability.
fn late_share(profile: &str, within: &str, probability: f64, networks: [&str; 2]) -> f64 {
    let outcome = run(
        json!({
            "duration": "4000s",
            "network": { "forward": networks[0] },
            "second_network": { "forward": networks[1] },
            "thin": { "game": {
                "traffic": "every 250ms fast 50ppm size 100",
                "over": if profile == "interactive" { "first" } else { "both" },
                "unordered": true,
                "profile": profile,
                "recovery": { "thin": { "deadline": { "within": within, "probability": probability } } },
            } },
        }),
        1,
    );
    outcome.quantities["game.deadline.late_share"]
}

/// The deadline leaves 20 ms for a copy, and bursts of losses last 100 ms: over the same network it is lost, too, over the other
/// one in 5 % of the cases.
#[test]
fn copies_for_a_deadline_take_the_other_network() {
    let path = "delay 50ms loss burst 5% 100ms";
    let [one, both] = ["interactive", "interactive-multipath"]
        .map(|profile| late_share(profile, "70ms", 0.99, [path, path]));
    assert!(one > 0.03, "{one} over one network");
    assert!(both < 0.008, "{both} over both");
}

/// Copies do not take the other network if they would be late there. New messages do not, either: over that one all would
/// arrive about when a lost one does that is repaired over it.
#[test]
fn copies_for_a_deadline_stay_on_a_network_that_is_faster() {
    let networks = ["delay 15ms loss 0.6%", "delay 300ms"];
    let late = late_share("interactive-multipath", "40ms", 0.999, networks);
    assert!(late < 0.003, "{late}");
}
