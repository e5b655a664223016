//! Every subcommand helps, with an example and its exit codes.

use crate::process::run;

const SUBCOMMANDS: [&str; 32] = [
    "advise",
    "demo",
    "listen",
    "connect",
    "identity",
    "lab",
    "lab serve",
    "perf",
    "perf recv",
    "perf send",
    "perf bulk",
    "perf bulk recv",
    "perf bulk send",
    "emulate",
    "proxy",
    "study",
    "compare",
    "study list",
    "study show",
    "study run",
    "study verify",
    "study plan",
    "study exec",
    "run",
    "trace",
    "top",
    "trace stats",
    "trace analyse",
    "trace page",
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
    // Continuation lines are indented further.
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
fn profiles_are_listed_on_one_screen_and_shown_field_by_field() {
    let list = run("profiles").text();
    assert!(list.lines().count() <= 30, "{} lines", list.lines().count());
    assert!(list.lines().all(|line| line.chars().count() <= 130), "{list}");
    let json = run("profiles --json").json();
    for profile in json.as_array().expect("a list") {
        let name = profile["name"].as_str().expect("a name");
        assert!(list.contains(&format!("\n  {name} ")), "{name} is not in {list}");
    }
    let text = run("profiles thin tcp-thin-rdb").text();
    assert!(text.starts_with("thin: ") && text.contains("\ntcp-thin-rdb: "), "{text}");
    let json = run("profiles lksctp --json").json();
    assert_eq!(json[0]["name"], "lksctp");
    assert_eq!(json[0]["recovery"]["missing_reports"], 3);
    assert_eq!(json[0]["recovery"]["rto"]["initial"], "3s");
    assert!(text.contains("thin.linear_timeouts"), "{text}");
    run("profiles fast").assert_failed(2, "there is no profile `fast`: there are rfc9260");
    run("profiles interactiv").assert_failed(2, "did you mean `interactive`?");
}

#[test]
fn two_profiles_are_compared_field_by_field() {
    let text = run("profiles --diff lksctp thin").text();
    assert!(text.contains("M1: RTO.Min while thin") && !text.contains("rto.initial"), "{text}");
    let json = run("profiles --diff freebsd freebsd-efr --json").json();
    let want = serde_json::json!({
        "name": "loss_detection",
        "values": [
            r#"{ missing_reports = { early_retransmit = false, reordering = "fixed" } }"#,
            r#"{ missing_reports = { early_retransmit = true, reordering = "fixed" } }"#,
        ],
    });
    assert_eq!(json["differences"].as_array().map(Vec::len), Some(1), "{json}");
    assert_eq!(json["differences"][0]["name"], want["name"]);
    assert_eq!(json["differences"][0]["values"], want["values"]);
    assert!(run("profiles --diff thin thin").text().contains("are the same"));
    run("profiles --diff thin fast").assert_failed(2, "there is no profile `fast`");
}
