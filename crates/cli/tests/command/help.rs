//! Every subcommand helps, with an example and its exit codes.

use crate::process::run;

const SUBCOMMANDS: [&str; 23] = [
    "demo",
    "listen",
    "connect",
    "perf",
    "perf recv",
    "perf send",
    "perf bulk",
    "perf bulk recv",
    "perf bulk send",
    "emulate",
    "proxy",
    "study",
    "study list",
    "study show",
    "study run",
    "study verify",
    "study plan",
    "study exec",
    "trace",
    "trace stats",
    "profiles",
    "completions",
    "man",
];

#[test]
fn every_help_has_an_example_and_the_exit_codes() {
    for subcommand in SUBCOMMANDS {
        let help = run(&format!("{subcommand} --help")).text();
        let (_, example) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{help}"));
        assert!(example.contains(&format!("rexmit {subcommand}")), "{help}");
        assert!(example.contains("Exit codes"), "{help}");
    }
    let help = run("--help").text();
    assert!(help.contains("Exit codes:\n  0  done\n  1  failed"), "{help}");
    let listed = help.split("Commands:\n").nth(1).unwrap().lines().take_while(|l| !l.is_empty());
    // What a line goes on with is indented further.
    for line in listed.filter_map(|line| line.strip_prefix("  ").filter(|l| !l.starts_with(' '))) {
        let name = line.split_whitespace().next().unwrap();
        assert!(name == "help" || SUBCOMMANDS.contains(&name), "{name} is not tested");
    }
}

#[test]
fn completions_and_manual_pages_know_the_subcommands() {
    for shell in ["bash", "fish", "zsh"] {
        let script = run(&format!("completions {shell}")).text();
        assert!(script.contains("emulate") && script.contains("interval"), "{shell}");
    }
    let page = run("man").text();
    assert!(page.contains(".TH rexmit 1") && page.contains("emulate"), "{page}");
    assert!(run("man perf send").text().contains("interval"));
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(run("--version").text(), format!("rexmit {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn profiles_are_told_field_by_field() {
    let text = run("profiles").text();
    assert!(text.contains("rfc9260") && text.contains("lksctp"), "{text}");
    let json = run("profiles lksctp --json").json();
    assert_eq!(json[0]["name"], "lksctp");
    assert_eq!(json[0]["recovery"]["missing_reports"], 3);
    assert_eq!(json[0]["recovery"]["rto"]["initial"], "3s");
    assert!(text.contains("tcp-thin-rdb") && text.contains("thin.linear_timeouts"), "{text}");
    run("profiles fast").assert_failed(2, "there is no profile `fast`: there are rfc9260");
}

#[test]
fn two_profiles_are_told_apart() {
    let text = run("profiles lksctp thin").text();
    assert!(text.contains("M1: RTO.Min while thin") && !text.contains("rto.initial"), "{text}");
    let json = run("profiles freebsd freebsd-efr --json").json();
    let want = serde_json::json!({"name": "early_retransmit", "values": ["off", "on"]});
    assert_eq!(json["differences"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["differences"][0]["name"], want["name"]);
    assert_eq!(json["differences"][0]["values"], want["values"]);
    assert!(run("profiles thin thin").text().contains("are the same"));
    run("profiles thin fast").assert_failed(2, "there is no profile `fast`");
}
