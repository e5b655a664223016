//! `--qlog`: the files that simulations and the demo write, the page of `rexmit trace page`, and qvis.

use std::path::{Path, PathBuf};

use crate::process::{Rexmit, run, scratch};
use crate::qvis;

/// A directory of one test's own.
fn folder(name: &str) -> PathBuf {
    let path = scratch(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Files of runs in virtual time.
fn simulated(directory: &Path) {
    run(&format!(
        "demo --two-paths --duration 10s --json --report {}/report.html --qlog {}",
        directory.display(),
        directory.display()
    ))
    .json();
}

fn first_file(directory: &Path, begins: &str) -> PathBuf {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut files: Vec<_> = files.filter(|it| name(it).starts_with(begins)).collect();
    files.sort();
    files.into_iter().next().unwrap_or_else(|| panic!("no file {begins}…"))
}

#[test]
fn the_demo_writes_a_file_for_each_server_and_the_same_ones_again() {
    let [one, other] = ["qlog-one", "qlog-other"].map(folder);
    simulated(&one);
    simulated(&other);
    for way in ["failover-client0", "all-paths-pf-client0", "one-path-client0"] {
        let name = format!("{way}.sqlog");
        let file = std::fs::read(one.join(&name)).unwrap();
        assert!(file.starts_with(b"\x1e{"), "{name}");
        assert!(
            file == std::fs::read(other.join(&name)).unwrap(),
            "{name} differs in the same run"
        );
    }
}

#[test]
fn a_run_of_a_study_has_a_file_for_each_sender_and_the_same_result() {
    let directory = folder("qlog-study");
    let plan = run("study plan petlund2009-fig8a --seeds 1").text();
    let document = directory.join("run.json");
    std::fs::write(&document, plan.lines().next().unwrap()).unwrap();
    let plain = run(&format!("study exec {}", document.display())).json();
    let logs = directory.join("logs");
    let logged =
        run(&format!("study exec {} --qlog {}", document.display(), logs.display())).json();
    assert_eq!(plain, logged, "a log changes nothing");
    let out = directory.join("page.html");
    let file = first_file(&logs, "thin-");
    let told = run(&format!("trace page {} --out {}", file.display(), out.display())).text();
    assert!(told.contains("packets with data"), "{told}");
}

#[test]
fn the_page_of_a_trace_has_its_longest_waits() {
    let directory = folder("qlog-page");
    simulated(&directory);
    let out = directory.join("page.html");
    let file = first_file(&directory, "one-path-");
    let told = run(&format!("trace page {} --out {}", file.display(), out.display())).text();
    assert!(told.contains("association 0: ") && told.contains("the longest wait "), "{told}");
    let page = std::fs::read_to_string(out).unwrap();
    assert!(page.contains("\"is_by_ack\":true"), "{told}");
}

#[test]
fn the_page_of_a_capture_has_its_longest_waits() {
    let directory = folder("qlog-capture");
    let out = directory.join("page.html");
    let capture = format!("{}/../../traces/ssh.pcap.gz", env!("CARGO_MANIFEST_DIR"));
    let told = run(&format!("trace page {capture} --out {}", out.display())).text();
    assert!(told.contains("flow 0, from the server: "), "{told}");
}

#[test]
fn files_of_others_are_refused_in_words_that_a_terminal_can_show() {
    let directory = folder("qlog-refused");
    let header = |title: &str| {
        format!(
            "\u{1e}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"{title}\",\
             \"trace\":{{\"vantage_point\":{{\"type\":\"client\"}}}}}}\n"
        )
    };
    let cases = [
        (header("\\u001b[2Jx\\u0007"), "of another program"),
        ("{\"qlog_version\": \"0.3\"}".into(), "JSON text sequences"),
        (String::new(), "no qlog file"),
        ("\u{1e}{}\n".into(), "no qlog file"),
        ("neither".into(), "is no capture"),
    ];
    for (number, (content, expected)) in cases.into_iter().enumerate() {
        let file = directory.join(format!("{number}.sqlog"));
        std::fs::write(&file, content).unwrap();
        let ended = Rexmit::start(["trace", "page", &file.display().to_string()], Vec::new()).end();
        assert_eq!(ended.status.code(), Some(5), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(ended.stderr.chars().all(|c| c == '\n' || !c.is_control()), "{:?}", ended.stderr);
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_told_before_the_run() {
    let directory = folder("qlog-unwritable");
    let file = directory.join("file");
    std::fs::write(&file, "").unwrap();
    let arguments =
        ["demo", "--json", "--qlog", &file.join("logs").display().to_string()].map(str::to_owned);
    let ended = Rexmit::start(arguments, Vec::new()).end();
    assert_eq!(ended.status.code(), Some(5), "{}", ended.stderr);
    assert!(ended.stderr.contains("--qlog"), "{}", ended.stderr);
}

/// The issue's own check: a file of the demo in qvis, which reports no error and draws what is in it.
#[test]
fn qvis_opens_a_file_of_the_demo() {
    let Some(qvis) = qvis::Qvis::find() else { return };
    let directory = folder("qlog-qvis");
    run(&format!(
        "demo --duration 3s --loss 10% --profile interactive-redundant --json --report {}/report.html --qlog {}",
        directory.display(),
        directory.display()
    ))
    .json();
    qvis.check(&directory.join("interactive-redundant.sqlog"));
}

/// A receiver's metrics, read by `top` while messages arrive; its own figures say how many.
#[test]
fn top_shows_the_associations_of_a_receiver() {
    let arguments = "perf recv --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --unencrypted --json";
    let (mut receiver, address) = Rexmit::listen_idle(arguments);
    let line = receiver.next_line();
    let metrics =
        line.strip_prefix("metrics at http://").and_then(|it| it.strip_suffix("/metrics\n"));
    let metrics = metrics.unwrap_or_else(|| panic!("{line}")).to_owned();
    let sender = format!(
        "perf send --to {address} --unencrypted --connections 3 --interval 20ms --size 100 --duration 6s"
    );
    let sender = Rexmit::start(sender.split_whitespace(), Vec::new());
    let sample = loop {
        let sample = run(&format!("top {metrics} --once --json")).json();
        let rows = sample["associations"].as_array().unwrap();
        let has_messages =
            |row: &serde_json::Value| row["messages_received"].as_f64().unwrap() > 0.0;
        if rows.len() == 3 && rows.iter().all(has_messages) && sample.get("latency_ms").is_some() {
            break sample;
        }
    };
    assert_eq!(sample["open"], 3);
    assert!(sample["latency_ms"]["0.999"].as_f64().unwrap() > 0.0, "{sample}");
    for row in sample["associations"].as_array().unwrap() {
        assert!(row["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{row}");
    }
    let table = run(&format!("top {metrics} --once")).text();
    assert!(table.starts_with("3 associations open; latency of messages, ms: p50 "), "{table}");
    assert_eq!(table.lines().filter(|line| line.contains("127.0.0.1:")).count(), 3, "{table}");
    sender.end();
    receiver.end();
}

#[test]
fn top_says_what_is_wrong_with_an_address() {
    run("top 127.0.0.1:1 --once").assert_failed(4, "does the program run with --metrics");
    run("top nowhere --once").assert_failed(2, "give the address and port");
}

#[test]
fn the_emulator_and_both_ends_write_files_that_are_qlog() {
    let folder = folder("qlog-ends");
    let [link, near, far] =
        ["link", "near", "far"].map(|name| folder.join(format!("{name}.sqlog")));
    let far_end = format!("listen 127.0.0.1:0 --unencrypted --qlog {}", far.display());
    let (listener, address) = Rexmit::listen(&far_end, Vec::new());
    let relay = format!(
        "emulate --listen 127.0.0.1:0 --to {address} --delay 5ms --qlog {}",
        link.display()
    );
    let (relay, relayed) = Rexmit::listen_idle(&relay);
    let near_end = format!("connect {relayed} --unencrypted --qlog {}", near.display());
    let input = b"one\ntwo\nthree\n".to_vec();
    Rexmit::start(near_end.split_whitespace(), input.clone()).end().text();
    assert_eq!(listener.end().stdout, input);
    relay.signal("INT");
    assert!(relay.end().status.success());
    let names = |file: &Path| -> Vec<String> {
        let text = std::fs::read_to_string(file).unwrap();
        let records = text.split('\u{1e}').skip(2);
        let record = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        records.map(|text| record(text)["name"].as_str().unwrap().to_owned()).collect()
    };
    for file in [&link, &near, &far] {
        for name in ["transport:packet_sent", "transport:packet_received"] {
            assert!(
                names(file).iter().any(|it| it == name),
                "{}: {:?}",
                file.display(),
                names(file)
            );
        }
    }
    let out = folder.join("near.html");
    let told = run(&format!("trace page {} --out {}", near.display(), out.display())).text();
    assert!(told.contains("association 0: "), "{told}");
    run(&format!("trace page {}", link.display()))
        .assert_failed(5, "no data was sent and acknowledged");
}
