//! `rexmit compare`: programs inside a kernel. If `scripts/kernel-host` has built none, only the error message is
//! tested.

use serde_json::Value;

use crate::process::{Ended, Rexmit, scratch};

/// A program that, depending on its arguments, carries lines over TCP, sends over UDP and writes stamps, or answers one
/// request per run.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import os, socket, sys, time
role, way = sys.argv[1], os.path.basename(sys.argv[0]).split("-")[1]
if way == "absent":
    sys.exit("there is nothing to serve")
address = (os.environ["REXMIT_SERVER"], 7000)

def stamp(word, number):
    with open(os.environ["REXMIT_STAMPS"], "a") as file:
        file.write(f"{word} {number}\n")

if way == "stamps":
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if role == "server":
        udp.bind(address)
        while True:
            stamp("received", int(udp.recv(100)))
    for number in range(100):
        stamp("sent", number)
        udp.sendto(str(number).encode(), address)
        time.sleep(0.05)
elif role == "server":
    listener = socket.create_server(address)
    while True:
        connection, _ = listener.accept()
        if way == "runs":
            connection.sendall(b"done")
            connection.close()
            continue
        for line in connection.makefile():
            print(line, end="", flush=True)
else:
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if way == "runs":
        sys.exit(0 if connection.recv(100) == b"done" else 1)
    if way == "crash":
        print("it has crashed", file=sys.stderr)
        sys.exit(3)
    if way == "deaf":
        time.sleep(1000)
    for line in sys.stdin.buffer:
        connection.sendall(line)
"#;

/// The program, with the arguments for this way of carrying messages.
fn program(way: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let file = scratch(&format!("compare-{way}-program.py"));
    std::fs::write(&file, PROGRAM).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

/// Runs `rexmit compare` to its end; `None` without a kernel.
fn compare(way: &str, carry: &str, more: &[&str]) -> Option<Ended> {
    let cache = scratch("compare-cache").display().to_string();
    let program = program(way);
    let fixed = ["compare", &program, "--carry", carry, "--seeds", "1", "--cache", &cache];
    let ended = Rexmit::start(fixed.into_iter().chain(more.iter().copied()), Vec::new()).end();
    if ended.stderr.contains("there is no kernel to run this in") {
        rexmit_testkit::not_run(ended.stderr.trim());
        return None;
    }
    Some(ended)
}

fn yours(ended: &Ended) -> Value {
    let row = ended.json()["rows"][0].clone();
    assert_eq!(row["system"], "yours");
    row
}

#[test]
fn without_a_kernel_it_says_how_to_build_one() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rexmit"));
    command.env("REXMIT_KERNEL", "/nowhere/linux").args(["compare", "./nothing", "--seeds", "1"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("scripts/kernel-host builds one"));
}

#[test]
fn wrong_arguments_are_refused_before_anything_runs() {
    let failed = |more: &[&str], what| {
        let all = ["compare", "./nothing"].into_iter().chain(more.iter().copied());
        Rexmit::start(all, Vec::new()).end().assert_failed(2, what);
    };
    failed(&["--against", "interctive"], "did you mean `interactive`?");
    failed(&["--link", "delay 50ms los 5%"], "los");
    failed(&["--traffic", "every 50ms size 5"], "16 bytes at least");
    failed(&["--fail-above", "p98=1s"], "p99=250ms");
    failed(&["--server", "x", "--client", "y"], "cannot be used with");
}

#[test]
fn lines_cross_a_link_without_loss_in_its_delay_and_the_same_seed_gives_the_same_figures() {
    let more = ["--link", "delay 50ms", "--duration", "5s", "--json", "--fail-above", "p99=51ms"];
    let Some(ended) = compare("lines", "lines", &more) else { return };
    assert!(ended.status.success(), "{ended:?}");
    let row = yours(&ended);
    let [p50, max] = ["p50", "max"].map(|name| row["latency_ms"][name].as_f64().unwrap());
    assert!((50.0..50.1).contains(&p50) && max < 51.0, "{row}");
    assert_eq!(row["undelivered"], 0.0);
    let lossy = ["--duration", "10s", "--json"];
    let both = [(); 2].map(|()| compare("lines", "lines", &lossy).expect("there was a kernel"));
    assert_eq!(both[0].stdout, both[1].stdout);
    let max = yours(&both[0])["latency_ms"]["max"].as_f64().unwrap();
    assert!(max > 150.0, "a lost segment was repeated after {max} ms");
}

#[test]
fn a_limit_that_is_exceeded_is_an_exit_code() {
    let more = ["--duration", "5s", "--fail-above", "p99=10ms"];
    let Some(ended) = compare("lines", "lines", &more) else { return };
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("at most 10.0 ms: EXCEEDED"), "{said}");
}

#[test]
fn programs_can_report_their_messages() {
    let Some(ended) = compare("stamps", "stamps", &["--duration", "5s", "--json"]) else { return };
    let row = yours(&ended);
    let [p50, p90] = ["p50", "p90"].map(|name| row["latency_ms"][name].as_f64().unwrap());
    assert!((50.0..50.1).contains(&p50) && p90 < 50.1, "{row}");
    // Lost datagrams are not retransmitted, 5 of 100 on average, so the maximum latency is undefined.
    assert!(row["latency_ms"]["max"].is_null(), "{row}");
    assert!((0.005..0.15).contains(&row["undelivered"].as_f64().unwrap()), "{row}");
}

#[test]
fn a_client_can_be_run_for_each_message() {
    let more =
        ["--link", "delay 50ms", "--traffic", "every 1s size 4", "--duration", "5s", "--json"];
    let Some(ended) = compare("runs", "runs", &more) else { return };
    let p50 = yours(&ended)["latency_ms"]["p50"].as_f64().unwrap();
    // The server accepts after one and a half round trips, and its answer takes half of one.
    assert!((200.0..205.0).contains(&p50), "{p50}");
}

#[test]
fn a_client_that_reads_nothing_ends_the_run_and_is_explained() {
    let Some(ended) = compare("deaf", "lines", &["--duration", "60s"]) else { return };
    ended.assert_failed(1, "none of 1177 messages was delivered, and");
}

#[test]
fn a_client_that_fails_is_explained() {
    let Some(ended) = compare("crash", "lines", &["--duration", "5s"]) else { return };
    ended.assert_failed(1, "the client ended: exit status: 3\nclient: it has crashed");
}

#[test]
fn a_server_that_ends_at_once_is_explained() {
    let Some(ended) = compare("absent", "lines", &[]) else { return };
    ended.assert_failed(
        1,
        "the server ended at once (exit status: 1): server: there is nothing to serve",
    );
}
