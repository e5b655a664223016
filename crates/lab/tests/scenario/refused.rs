//! Scenarios that cannot be run, and their error messages.

use rexmit_lab::scenario::{ExecuteError, Scenario, execute};
use serde_json::{Value, json};

use crate::scenario;

/// A scenario with `value` at `path`, whose parts are separated by dots.
fn with(path: &str, value: Value) -> Value {
    let mut document = json!({
        "duration": "1min",
        "network": { "forward": "delay 50ms" },
        "thin": { "game": { "traffic": "every 250ms size 100" } },
    });
    let mut place = &mut document;
    for name in path.split('.') {
        place = &mut place[name];
    }
    *place = value;
    document
}

#[test]
fn an_invalid_scenario_is_refused_when_it_is_read() {
    let refused = |path: &str, value: Value, expected: &str| {
        let error = serde_json::from_value::<Scenario>(with(path, value)).unwrap_err().to_string();
        assert!(error.contains(expected), "{path}: {error}");
    };
    refused("thim", json!({}), "unknown field `thim`, expected one of `duration`, `drain`");
    refused("duration", json!("long"), "`long` does not begin with a number");
    refused("network.forward", json!("dealy 5ms"), "unknown word `dealy`: expected delay");
    refused(
        "thin.game.traffic",
        json!("trace quake"),
        "expected bzflag-tcp, crossfire, ssh or vnc",
    );
    refused(
        "thin.game.transport",
        json!("udp"),
        "unknown variant `udp`, expected one of `sctp`, `tcp`",
    );
    refused("thin.game.sack", json!(1), "unknown field `sack`, expected one of `traffic`");
    let linear = json!({ "thin": { "linear": 6 } });
    refused("thin.game.recovery", linear, "unknown field `linear`, expected one of `test`");
    let delay = json!({ "sack_delay": "1s" });
    refused("thin.game.receiver", delay, "expected one of `profile`, `ack_delay`");
    refused("bulk.greedy.send_buffer", json!("64"), "`64` needs one of the units b, kb");
    refused("network.changes", json!([{ "when": "1s" }]), "unknown field `when`, expected one of");
}

#[test]
fn everything_that_is_impossible_is_found_at_once() {
    let thin = "every 250ms size 100";
    let problems = scenario(json!({
        "duration": "0s",
        "bin": "0s",
        "network": { "forward": "delay 50ms", "changes": [{ "at": "1s" }] },
        "thin": {
            "game": {
                "traffic": thin,
                "profile": "tcp-sack",
                "recovery": { "missing_reports": 0 },
                "start": "1min",
            },
            "network": { "traffic": thin, "receiver": { "ack_delay": "1s" } },
            "two words": { "traffic": thin, "mtu": "100b" },
            "tcp": { "traffic": thin, "transport": "tcp", "encapsulation": "udp" },
        },
        "bulk": { "game": {} },
        "web": { "clients": { "mean_bytes": 10.0 } },
    }))
    .validate()
    .unwrap_err();
    let expected = [
        ("duration", "the duration must be above zero"),
        ("bin", "the length of a bin must be above zero"),
        ("network.changes.0", "nothing changes: give `forward`, `backward` or both"),
        ("thin.game.profile", "there is no profile `tcp-sack`; did you mean `"),
        ("thin.game", "zero missing reports"),
        ("thin.game.start", "it must be before the end, 0s"),
        ("thin.network", "this name is already used"),
        ("thin.tcp.encapsulation", "it is for SCTP"),
        ("thin.network.receiver", "SACK delay is above 500 ms"),
        ("thin.two words", "letters, digits, `-` and `_` only"),
        ("thin.two words", "max_packet_bytes is 80; it must be from 512"),
        ("bulk.game", "this name is already used"),
        ("web.clients.mean_bytes", "a mean of 10 is impossible between 1000 and"),
    ];
    for (path, what) in expected {
        let found = problems.iter().any(|p| p.path == path && p.what.contains(what));
        assert!(found, "{path}: {what} is not in {problems:#?}");
    }
    let is_expected = |path: &str| expected.iter().any(|(expected, _)| *expected == path);
    assert!(problems.iter().all(|problem| is_expected(&problem.path)), "{problems:#?}");
}

#[test]
fn what_is_impossible_does_not_run() {
    let refused = |path: &str, value: Value, expected: &str| {
        let error = execute(&scenario(with(path, value)), 1).unwrap_err();
        assert!(matches!(error, ExecuteError::Scenario(_)));
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    let words = "thin.game.profile: there is no profile `none`; did you mean `";
    refused("thin.game.profile", json!("none"), words);
    refused("thin", json!({}), "thin: there is no flow: add one of");
}

#[test]
fn settings_of_two_networks_must_be_consistent() {
    let problems = |second: bool, over: &str, transport: &str| {
        let mut document = with("thin.game.over", json!(over));
        document["thin"]["game"]["transport"] = transport.into();
        if second {
            document["second_network"] =
                json!({ "forward": "delay 1ms", "changes": [{ "at": "1s" }] });
        }
        let problems = scenario(document).validate().unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let only = "thin.game.over: there is one network: give `second_network`, or leave it out";
    assert_eq!(problems(false, "second", "sctp"), [only]);
    let changes = "second_network.changes.0: nothing changes: give `forward`, `backward` or both";
    let both = "thin.game.over: `both` is for SCTP: choose `first` or `second`";
    assert_eq!(problems(true, "both", "tcp"), [changes, both]);
    assert_eq!(problems(true, "both", "sctp"), [changes]);
}

#[test]
fn rivals_are_refused_what_they_do_not_have() {
    let problems = scenario(json!({
        "duration": "1min",
        "network": { "forward": "delay 50ms" },
        "thin": {
            "game": {
                "traffic": "every 250ms size 100",
                "transport": "kcp",
                "profile": "thin",
                "unordered": true,
                "mtu": "1000b",
            },
        },
        "bulk": { "greedy": { "transport": "quinn" } },
    }));
    let problems = problems.validate().unwrap_err();
    let found = |path: &str, what: &str| {
        let mut known = problems.iter();
        assert!(known.any(|p| p.path == path && p.what.contains(what)), "{path}: {problems:?}");
    };
    found("thin.game.profile", "no profile `thin`: choose turbo");
    found("thin.game.unordered", "it delivers in order only");
    found("thin.game.mtu", "not supported by rivals");
    found("bulk.greedy.transport", "rivals carry thin flows only");
}

#[test]
fn a_bound_that_is_not_known_is_refused() {
    let problems = |forward: &str, traffic: &str, bound: &str| {
        let scenario = scenario(json!({
            "duration": "1min",
            "network": { "forward": forward },
            "thin": { "game": { "traffic": traffic, "bounds": [bound] } },
        }));
        scenario.validate().err().map(|problems| problems[0].to_string())
    };
    let even = "every 50ms size 100";
    assert_eq!(problems("delay 50ms loss burst 5% 30ms", even, "bundled"), None);
    let refused = problems("delay 50ms loss gemodel 1% 10%", even, "reactive").unwrap();
    assert!(refused.contains("thin.game.bounds: bounds are defined for uniform loss"), "{refused}");
    let refused = problems("delay 50ms", "poisson 50ms size 100", "bundled").unwrap();
    assert!(refused.contains("constant intervals"), "{refused}");
}
