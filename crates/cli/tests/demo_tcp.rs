//! `rexmit demo --tcp`, where it is permitted.

use std::process::{Command, Output};

/// The error text if the machine does not permit devices or namespaces.
const NOT_PERMITTED: [&str; 4] =
    ["/dev/net/tun", "needs CAP_", "user namespace is refused", "/proc/sys writable"];

fn demo(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rexmit"));
    command.args(["demo", "--tcp"]).args(arguments);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_profile_delivers_every_message_to_the_kernel() {
    let link = ["--json", "--duration", "3s", "--rtt", "60ms", "--loss", "4%", "--seed", "3"];
    let output = demo(&link);
    let errors = text(&output.stderr);
    if !output.status.success() && NOT_PERMITTED.iter().any(|reason| errors.contains(reason)) {
        assert_eq!(errors.lines().count(), 1, "{errors}");
        rexmit_testkit::not_run(errors);
        return;
    }
    assert!(output.status.success(), "{errors}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = document["runs"].as_array().unwrap();
    let names: Vec<_> = runs.iter().map(|run| run["profile"].as_str().unwrap()).collect();
    let all = ["tcp-newreno", "tcp-sack", "tcp-thin", "tcp-thin-rdb"];
    assert_eq!(names[..4], all);
    assert_eq!(names[4..], ["tcp-interactive", "tcp-interactive-redundant"]);
    for run in runs {
        let count = |name: &str| run[name].as_u64().unwrap();
        assert!(count("messages") > 50 && count("undelivered") == 0, "{run}");
        // Every payload byte is in a packet with headers: IPv4, TCP and timestamps.
        assert!(count("wire_bytes") > count("payload_bytes") + 52 * count("packets") / 2, "{run}");
        let copies = run["retransmissions"]["redundant"].as_u64().unwrap();
        // Copies: bundled with the next segment, or of each retransmission.
        let has_copies = ["tcp-thin-rdb", "tcp-interactive-redundant"];
        assert!(copies == 0 || has_copies.iter().any(|name| run["profile"] == *name), "{run}");
        assert!(copies > 0 || run["profile"] != "tcp-thin-rdb", "{run}");
    }
}

#[test]
fn impossible_arguments_are_reported_in_one_line() {
    for (arguments, advice) in [
        (&["--profile", "rfc9260", "--json"][..], "is a profile of SCTP: leave out --tcp"),
        (&["--unordered"], "cannot be used with"),
    ] {
        let output = demo(arguments);
        let errors = text(&output.stderr);
        // Without permission that is said first.
        let is_refused = NOT_PERMITTED.iter().any(|reason| errors.contains(reason));
        assert!(!output.status.success() && (errors.contains(advice) || is_refused), "{errors}");
    }
}
