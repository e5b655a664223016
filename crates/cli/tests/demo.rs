//! `rexmit demo` with a short duration.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rexmit"));
    command.arg("demo").args(arguments);
    command
}

fn demo(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The path of a file that does not exist yet, for one test.
fn fresh(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// An empty directory of one test.
fn fresh_directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).unwrap();
    path
}

#[test]
fn prints_a_table_and_writes_a_report_that_needs_nothing_else() {
    let report = fresh("demo.html");
    let file = report.to_str().unwrap();
    let short = ["--duration", "2s", "--rtt", "20ms", "--loss", "2%", "--seed", "5"];
    let output = demo(&[&short[..], &["--profile", "rfc9260,lksctp", "--report", file]].concat());
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{errors}");
    assert_eq!(errors, "", "no progress bar without a terminal");
    let rows: Vec<Vec<&str>> = printed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.first().is_some_and(|&word| word == "rfc9260" || word == "lksctp"))
        .collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["rfc9260", "lksctp"]);
    assert!(rows.iter().all(|row| row.len() == 13 && row[1] == rows[0][1]), "{printed}");
    assert!(!printed.contains("not delivered"), "{printed}");
    for said in ["With rfc9260, half of the messages", "Timing error", file] {
        assert!(printed.contains(said), "{printed}");
    }
    let page = std::fs::read_to_string(&report).unwrap();
    assert!(page.contains("default-src 'none'") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("\"worst_stall\""));
    std::fs::remove_file(report).unwrap();
}

#[test]
fn prints_one_json_document_and_writes_no_file_unless_asked() {
    let directory = fresh_directory("demo-json");
    let output = command(&["--json", "--duration", "1s", "--rtt", "20ms", "--loss", "0"])
        .args(["--profile", "freebsd", "--unordered", "--trace", "bzflag-tcp"])
        .current_dir(&directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["runs"][0]["profile"], "freebsd");
    assert_eq!(document["runs"][0]["undelivered"], 0);
    assert_eq!(document["runs"][0]["retransmissions"]["timeout"], 0);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    std::fs::remove_dir(directory).unwrap();
}

/// One way takes 10 ms and a round trip 20: only copies that are sent without waiting for an ACK meet 15 ms.
#[test]
fn with_a_deadline_interactive_sends_copies() {
    let copies_of = |deadline: &[&str]| {
        let link = ["--json", "--duration", "2s", "--rtt", "20ms", "--loss", "5%", "--unordered"];
        let output = demo(&[&link[..], &["--profile", "rfc9260,interactive"], deadline].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let number = |of: &serde_json::Value| of.as_u64().expect("it is a number");
        let copies = |run: usize| number(&document["runs"][run]["retransmissions"]["redundant"]);
        (copies(0), copies(1), number(&document["runs"][1]["messages"]))
    };
    let (plain, interactive, _) = copies_of(&[]);
    assert_eq!((plain, interactive), (0, 0));
    let (plain, in_time, messages) = copies_of(&["--deadline", "15ms"]);
    assert!(in_time > messages / 2, "{in_time} copies of {messages} messages");
    assert_eq!(plain, 0, "only the interactive profiles have deadlines");
}

#[test]
fn errors_state_the_remedy_and_no_report_is_written() {
    let directory = fresh_directory("demo-errors");
    for (arguments, code, advice) in [
        (&["--profile", "reno"][..], 2, "there are rfc9260"),
        (&["--trace", "quake"], 2, "crossfire"),
        (&["--duration", "1000s"], 2, "choose a shorter duration"),
        (&["--loss", "0.05"], 2, "%"),
        (&["--burst", "0.1"], 2, "at least"),
        (&["--report", "/nonexistent/demo.html"], 5, "--report"),
        (&["--trace", "/dev/null"], 5, "/dev/null"),
    ] {
        let output = command(arguments).current_dir(&directory).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(advice), "{arguments:?}: {errors}");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "{arguments:?}");
    }
    std::fs::remove_dir(directory).unwrap();
}

/// The comparison is in virtual time: minutes take a moment, and the same seed gives the same figures.
#[test]
fn two_paths_are_compared_when_one_fails() {
    let report = fresh("two-paths.html");
    let file = report.to_str().unwrap();
    let arguments = ["--two-paths", "--duration", "2min", "--seed", "7"];
    let output = demo(&[&arguments[..], &["--report", file]].concat());
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for way in ["failover ", "failover-pf ", "all-paths ", "all-paths-pf ", "one-path "] {
        assert!(printed.contains(&format!("\n{way}")), "{printed}");
    }
    assert!(printed.contains("of which the first fails at 60 s"), "{printed}");
    assert!(printed.contains("With failover-pf, 1 in 1000 waited"), "{printed}");
    assert!(std::fs::read_to_string(&report).unwrap().contains("\"worst_stall\""));
    std::fs::remove_file(report).unwrap();
    let json = || text(&demo(&[&arguments[..], &["--json"]].concat()).stdout);
    assert_eq!(json(), json());
    let refused = demo(&["--two-paths", "--tcp"]);
    assert_eq!(refused.status.code(), Some(2));
}
