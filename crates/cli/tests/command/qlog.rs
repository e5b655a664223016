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

/// In the directory of its file, so that files of the same name in several directories have a page each.
#[test]
fn the_page_of_a_compressed_file_is_that_of_the_file_and_in_its_directory() {
    let directory = folder("qlog-gzip");
    simulated(&directory);
    let file = first_file(&directory, "one-path-");
    let told = run(&format!("trace page {}", file.display())).text();
    let page = |file: &Path| std::fs::read(file.with_added_extension("html")).unwrap();
    assert!(told.contains(&format!("The page: {}.html", file.display())), "{told}");
    let packed = file.with_added_extension("gz");
    let gzip = std::process::Command::new("gzip").arg("--keep").arg(&file).status().unwrap();
    assert!(gzip.success());
    run(&format!("trace page {}", packed.display())).text();
    assert!(page(&packed) == page(&file), "{told}");
}

#[test]
fn a_directory_with_files_of_an_earlier_run_is_refused_before_the_run() {
    let directory = folder("qlog-twice");
    std::fs::write(directory.join("notes.txt"), "").unwrap();
    simulated(&directory);
    let names = || std::fs::read_dir(&directory).unwrap().count();
    let before = names();
    run(&format!("demo --two-paths --json --qlog {}", directory.display()))
        .assert_failed(5, "of an earlier run: choose another directory with --qlog");
    assert_eq!(names(), before);
}

#[test]
fn a_file_that_cannot_be_written_to_its_end_is_a_failure_of_that_file() {
    let (listener, address) =
        Rexmit::listen("listen 127.0.0.1:0 --unencrypted --qlog /dev/full", Vec::new());
    let near = format!("connect {address} --unencrypted --qlog /dev/full");
    let near = Rexmit::start(near.split_whitespace(), b"one\n".to_vec()).end();
    near.assert_failed(5, "/dev/full cannot be written");
    listener.end().assert_failed(5, "/dev/full cannot be written");
}

/// The program that wrote it was killed, or the disk was full.
#[test]
fn a_file_that_ends_in_the_middle_has_a_page_of_what_is_there() {
    let directory = folder("qlog-cut");
    simulated(&directory);
    let content = std::fs::read(first_file(&directory, "one-path-")).unwrap();
    let cut = directory.join("cut.sqlog");
    for keep in [content.len() / 2, content.len() / 2 + 1, content.len() - 1] {
        std::fs::write(&cut, &content[..keep]).unwrap();
        let out = directory.join("cut.html");
        run(&format!("trace page {} --out {}", cut.display(), out.display())).text();
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
    run(&format!("trace page {}", link.display())).assert_failed(5, "a link's --qlog has no");
}

/// The sender of a load has what loss recovery did: its files and its page are of the losses that the link made.
#[test]
fn a_sender_over_a_lossy_link_writes_its_retransmissions() {
    let folder = folder("qlog-load");
    let (receiver, address) =
        Rexmit::listen_idle("perf recv --listen 127.0.0.1:0 --unencrypted --json");
    let relay = format!("emulate --listen 127.0.0.1:0 --to {address} --delay 10ms --loss 20%");
    let (relay, relayed) = Rexmit::listen_idle(&relay);
    let sent = run(&format!(
        "perf send --to {relayed} --unencrypted --connections 2 --interval 20ms --size 100 --duration 3s --json --qlog {}",
        folder.display()
    ))
    .json();
    assert!(sent["messages"].as_u64().unwrap() > 0, "{sent}");
    let mut retransmissions = 0;
    for number in 0..2 {
        let file = folder.join(format!("connection{number}.sqlog"));
        retransmissions +=
            std::fs::read_to_string(&file).unwrap().matches("\"retransmission\"").count();
        let out = folder.join(format!("connection{number}.html"));
        run(&format!("trace page {} --out {}", file.display(), out.display())).text();
    }
    assert!(retransmissions > 0);
    receiver.signal("INT");
    receiver.end();
    relay.signal("INT");
    relay.end();
}

/// Before it connects: else the peer would have an association that is aborted at once.
#[test]
fn connect_says_first_that_a_file_or_an_address_cannot_be_used() {
    run("connect 127.0.0.1:9 --qlog /nonexistent/x.sqlog").assert_failed(5, "/nonexistent/x.sqlog");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = taken.local_addr().unwrap();
    run(&format!("connect 127.0.0.1:9 --metrics {metrics}")).assert_failed(3, "choose another");
}
