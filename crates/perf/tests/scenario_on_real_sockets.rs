//! Short scenarios on real sockets. Times depend on the machine, and are not checked.

use std::collections::BTreeSet;

use rexmit_lab::scenario::{ExecuteError, RunOutcome, Scenario};
use rexmit_perf::execute;

fn scenario(thin: &str) -> Scenario {
    let text = format!(
        r#"{{"duration": "2s", "clock": "real", "rows": true,
            "network": {{"forward": "delay 10ms loss 10%"}},
            "thin": {{"game": {{"traffic": "every 100ms size 60", "connections": 5, {thin}}}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

/// Checks the measurements of [`scenario`] that do not depend on the machine's speed.
fn check(scenario: &Scenario, outcome: &RunOutcome) {
    let of = |name: &str| outcome.quantities[name];
    // The connections begin 0, 200, … 800 ms after the first, and send until 2 s.
    let messages = 20.0 + 18.0 + 16.0 + 14.0 + 12.0;
    assert_eq!((of("game.messages"), of("game.undelivered")), (messages, 0.0));
    let latencies = &outcome.distributions["game.latency"];
    assert_eq!(latencies.counts.iter().sum::<u64>() as f64, messages);
    assert_eq!(outcome.messages.len() as f64, messages);
    // No message takes less than the delay of the link.
    assert!(outcome.messages.iter().all(|row| row.application_ms.unwrap() >= 10.0));
    assert!(of("network.forward.packets") >= messages / 5.0, "some carry several");
    assert!(of("game.wire_bytes_per_payload_byte") > 1.0);
    assert!(of("network.forward.loss_share") > 0.0, "what loses nothing tests nothing");
    assert!(of("game.retransmissions.all") > 0.0);
    assert!(of("game.spurious.all") <= of("game.retransmissions.all"));
    assert!(outcome.series.contains_key("game.cwnd") && of("game.rtt.mean") > 20.0);

    let catalogue = scenario.catalogue();
    let listed = |all: &[rexmit_lab::scenario::Described]| -> BTreeSet<String> {
        all.iter().map(|described| described.name.clone()).collect()
    };
    let quantities = listed(&catalogue.quantities);
    assert!(outcome.quantities.keys().all(|name| quantities.contains(name)));
    let distributions = listed(&catalogue.distributions);
    assert!(outcome.distributions.keys().all(|name| distributions.contains(name)));
    let series = listed(&catalogue.series);
    assert!(outcome.series.keys().all(|name| series.contains(name)));
}

#[test]
fn messages_cross_real_sockets_over_sctp() {
    let scenario = scenario(r#""profile": "lksctp""#);
    check(&scenario, &execute(&scenario, 3).unwrap());
}

#[test]
fn messages_need_not_wait_for_each_other_on_real_sockets() {
    let scenario = scenario(r#""profile": "thin", "unordered": true"#);
    check(&scenario, &execute(&scenario, 3).unwrap());
}

#[test]
fn messages_cross_real_devices_over_tcp() {
    let scenario = scenario(r#""transport": "tcp", "profile": "tcp-thin""#);
    match execute(&scenario, 3) {
        Ok(outcome) => check(&scenario, &outcome),
        Err(ExecuteError::NotPermitted(why)) => rexmit_testkit::not_run(why),
        Err(error) => panic!("{error}"),
    }
}

/// A quantity has the same name with either clock. A run in real time lacks some quantities, and has some of its own.
#[test]
fn a_catalogue_says_what_its_clock_can_measure() {
    let real = scenario(r#""late": ["100ms"]"#);
    let simulated = Scenario { clock: Default::default(), ..real.clone() };
    let names = |scenario: &Scenario| -> BTreeSet<String> {
        scenario.catalogue().quantities.into_iter().map(|described| described.name).collect()
    };
    let (real, simulated) = (names(&real), names(&simulated));
    let machine = |name: &&String| name.contains("lateness");
    assert_eq!(real.difference(&simulated).filter(machine).count(), 11);
    assert!(real.difference(&simulated).all(|name| machine(&name)));
    for name in ["late_share.100ms", "nth_retransmission.1.mean", "timeouts", "spurious.timeout"] {
        assert!(real.contains(&format!("game.{name}")), "{name}");
    }
    for name in ["rtx1.mean", "transport_latency.p99", "loss_share", "transport_late_share.100ms"] {
        let name = format!("game.{name}");
        assert!(!real.contains(&name) && simulated.contains(&name), "{name}");
    }
}

#[test]
fn scenarios_impossible_on_real_sockets_are_refused() {
    let refused = |from: &str, to: &str| -> Vec<String> {
        let text = serde_json::to_string(&scenario(r#""profile": "lksctp""#)).unwrap();
        assert!(text.contains(from), "{text}");
        let scenario: Scenario = serde_json::from_str(&text.replace(from, to)).unwrap();
        scenario.validate().unwrap_err().into_iter().map(|problem| problem.path).collect()
    };
    let path = r#""forward":"delay 10ms loss 10%""#;
    let changes = format!(r#"{path},"changes":[{{"at":"1s","forward":"delay 20ms"}}]"#);
    assert_eq!(refused(path, &changes), ["network.changes"]);
    let edge = format!(r#"{path},"edge":"delay 1ms""#);
    assert_eq!(refused(path, &edge), ["network.edge"]);
    let edge = format!(r#"{path},"receiver_edge":"delay 1ms""#);
    assert_eq!(refused(path, &edge), ["network.receiver_edge"]);
    let second = r#""second_network":{"forward":"delay 10ms"},"thin":{"#;
    assert_eq!(refused(r#""thin":{"#, second)[0], "second_network");
    let flows = r#""bulk":{"greedy":{}},"thin":{"#;
    assert_eq!(refused(r#""thin":{"#, flows), ["bulk"]);
    let second = r#""thin":{"chat":{"traffic":"every 1s size 10"},"#;
    assert_eq!(refused(r#""thin":{"#, second), ["thin"]);
    let size = r#""every 100ms size 60""#;
    assert_eq!(refused(size, r#""every 1us size 60""#), ["thin.game.traffic"]);
    for connections in ["0", "1025"] {
        let to = format!(r#""connections":{connections}"#);
        assert_eq!(refused(r#""connections":5"#, &to), ["thin.game.connections"]);
    }
}
