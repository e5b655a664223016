//! `emulate --tun`: programs over an emulated link. Each test uses its own network.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::{Ended, Rexmit, scratch};

/// The error text if the machine does not permit devices or namespaces.
const NOT_PERMITTED: [&str; 4] =
    ["/dev/net/tun", "needs CAP_", "user namespace is refused", "needs no privileges"];

/// Whether a run was refused because of a missing permission, which is printed.
fn is_refused(ended: &Ended) -> bool {
    let is_refused =
        !ended.status.success() && NOT_PERMITTED.iter().any(|reason| ended.stderr.contains(reason));
    if is_refused {
        rexmit_testkit::not_run(ended.stderr.trim());
    }
    is_refused
}

/// Whether a program is installed; prints a note if not.
fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok();
    if !has {
        rexmit_testkit::not_run(format_args!("{program} is not installed"));
    }
    has
}

/// `rexmit emulate --tun` in the network `10.93.N.0/24`, with further options and a command.
fn emulate(network: u8, words: &str, command: &[&str]) -> Rexmit {
    let options = format!("emulate --tun --tun-network 10.93.{network}.0/24 {words}");
    let options: Vec<_> = options.split_whitespace().map(ToOwned::to_owned).collect();
    let separator = (!command.is_empty()).then_some("--");
    let command = separator.into_iter().chain(command.iter().copied()).map(ToOwned::to_owned);
    Rexmit::start_idle(options.into_iter().chain(command))
}

/// Whether this machine has an address in that network.
fn is_there(network: u8) -> bool {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap();
    table.contains(&format!(" 10.93.{network}.1\n"))
}

/// Starts a server that answers one request per connection on all addresses, and returns its port.
fn responder(body: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let _request = lines.by_ref().take_while(|line| !line.is_empty()).count();
            let length = body.len();
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n");
            // The client may have disconnected.
            let _ = (&stream).write_all(&[head.as_bytes(), body].concat());
        }
    });
    port
}

#[test]
fn curl_takes_two_round_trips_of_the_link() {
    if !has("curl") || !has("tshark") {
        return;
    }
    let port = responder(b"a page of this machine");
    let file = scratch("tun.pcapng");
    let words = format!("--delay 50ms --json --pcap {}", file.display());
    let url = format!("http://10.93.1.1:{port}/");
    let curl = ["curl", "--silent", "--write-out", "\n%{time_total}\n", &url];
    let ended = emulate(1, &words, &curl).end();
    if is_refused(&ended) {
        return;
    }
    let text = ended.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "a page of this machine");
    // One round trip for the connection, one for the request.
    assert!(lines[1].parse::<f64>().unwrap() >= 0.2, "{text}");
    let report: Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!(report["near"][0], "10.93.1.2");
    assert_eq!(report["far"][0], "10.93.1.1");
    assert!(!is_there(1));
    assert_agrees(&report, &file);
}

/// Checks that the report and the capture count the same packets, and that all of them are complete.
fn assert_agrees(report: &Value, file: &Path) {
    let tshark = |filter: &str| {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(file).args(["-Y", filter]);
        tshark.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
        let output = tshark.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count() as u64
    };
    for (direction, interface) in [("forward", "to the far end"), ("backward", "to the near end")] {
        let counts = &report["statistics"][direction];
        let here = format!("frame.interface_name == \"{interface}\"");
        assert_eq!(counts["arrivals"]["delivered"], tshark(&here), "{report}");
        // Nothing was cut off by the end of the command.
        assert_eq!(counts["path"]["offered"], counts["arrivals"]["delivered"], "{report}");
    }
    let (all, good) =
        (tshark("tcp"), tshark("tcp.checksum.status == 1 && ip.checksum.status == 1"));
    assert!(all >= 9 && all == good, "{good} of {all} are good");
    assert_eq!(tshark("http.response.code == 200"), 1);
    assert_eq!(tshark("_ws.malformed"), 0);
}

#[test]
fn the_exit_status_and_the_signals_are_those_of_the_command() {
    let ended = emulate(2, "", &["sh", "-c", "exit 7"]).end();
    if is_refused(&ended) {
        return;
    }
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    assert!(ended.stderr.contains("lateness of packets") && ended.stdout.is_empty(), "{ended:?}");
    let ended = emulate(2, "", &["sh", "-c", "kill -KILL $$"]).end();
    assert_eq!(ended.status.code(), Some(128 + 9), "{ended:?}");
    emulate(2, "", &["no-such-program"]).end().assert_failed(127, "cannot run no-such-program");

    let script = "trap 'exit 5' TERM; echo ready >&2; while :; do sleep 0.02; done";
    let mut running = emulate(2, "", &["sh", "-c", script]);
    running.wait_for("ready");
    assert!(is_there(2));
    running.signal("TERM");
    assert_eq!(running.end().status.code(), Some(5));
    assert!(!is_there(2));
}

#[test]
fn nothing_is_left_after_a_kill() {
    let mut running = emulate(3, "", &["sh", "-c", "echo pid $$ >&2; exec sleep 1000"]);
    let pid = loop {
        let line = running.next_line();
        if let Some(pid) = line.strip_prefix("pid ") {
            break pid.trim().to_owned();
        }
        if NOT_PERMITTED.iter().any(|reason| line.contains(reason)) {
            rexmit_testkit::not_run(line);
            return;
        }
    };
    assert!(is_there(3));
    running.signal("KILL");
    running.end();
    assert!(!is_there(3));
    // The kernel informs the command; the test hangs if not.
    let is_running = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // An ended process may still be a zombie.
        stat.contains("sleep") && !stat.contains(") Z ")
    };
    while is_running() {
        std::thread::yield_now();
    }
}

#[test]
fn without_a_command_it_prints_how_to_use_the_link_until_it_is_stopped() {
    let mut running = emulate(4, "--json", &[]);
    let line = running.next_line();
    if NOT_PERMITTED.iter().any(|reason| line.contains(reason)) {
        rexmit_testkit::not_run(line);
        return;
    }
    assert!(line.starts_with("link up: near end 10.93.4.2, far end 10.93.4.1 (tun"), "{line}");
    let line = running.next_line();
    let (_, nsenter) = line.trim().split_once("sudo ").unwrap();
    let words: Vec<_> = nsenter.strip_suffix(" COMMAND").unwrap().split_whitespace().collect();
    let port = responder(b"hello");
    let connect = format!("exec 3<>/dev/tcp/10.93.4.1/{port}");
    let near = Command::new(words[0]).args(&words[1..]).args(["bash", "-c", &connect]).status();
    assert!(near.unwrap().success());
    // The next command gets a new link.
    let ended = emulate(4, "", &["true"]).end();
    ended.assert_failed(3, "10.93.4.1 is taken: tun");
    assert!(ended.stderr.contains("choose another network with --tun-network"), "{ended:?}");
    running.signal("TERM");
    let report = running.end().json();
    assert!(report["statistics"]["forward"]["path"]["offered"].as_u64().unwrap() > 0);
    assert!(!is_there(4));
}

/// Runs it without the privileges of root.
fn unprivileged(arguments: &[&str]) -> Option<Ended> {
    if !has("setpriv") {
        return None;
    }
    let output = Command::new("setpriv")
        .args(["--bounding-set", "-sys_admin,-net_admin", env!("CARGO_BIN_EXE_rexmit")])
        .args(arguments)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if stderr.contains("setpriv:") {
        rexmit_testkit::not_run(stderr);
        return None;
    }
    Some(Ended { status: output.status, stdout: output.stdout, stderr })
}

#[test]
fn a_server_and_its_client_need_no_privileges() {
    if !has("curl") || !has("python3") {
        return;
    }
    let folder = scratch("served");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("page"), "served at the far end\n").unwrap();
    let serve = format!("exec python3 -m http.server 8000 --directory {}", folder.display());
    let options = ["emulate", "--tun", "--delay", "5ms", "--serve", &serve];
    // One over IPv4, one over IPv6.
    let urls = ["http://10.90.0.1:8000/page", "http://[fd90:9090::1]:8000/page"];
    for (url, bind) in urls.into_iter().zip(["0.0.0.0", "::"]) {
        let serve = format!("{serve} --bind {bind}");
        let mut options = options.to_vec();
        options[5] = &serve;
        let command = ["--", "curl", "--silent", url];
        let Some(ended) = unprivileged(&[&options[..], &command].concat()) else { return };
        // Where there is a driver and namespaces are granted, nothing else may be missing.
        assert!(!ended.stderr.contains("needs CAP_"), "{ended:?}");
        if is_refused(&ended) {
            return;
        }
        assert_eq!(ended.text(), "served at the far end\n", "{ended:?}");
    }
    // A server that ends before the command is started is reported.
    let dead = ["emulate", "--tun", "--serve", "exit 3", "--", "true"];
    let ended = unprivileged(&dead).unwrap();
    ended.assert_failed(1, "the server of --serve ended at once: exit status: 3");
}

#[test]
fn a_missing_privilege_is_named_with_what_grants_it() {
    let Some(ended) = unprivileged(&["emulate", "--tun", "--", "true"]) else { return };
    ended.assert_failed(3, "sudo setcap cap_net_admin,cap_sys_admin+ep /");
    assert!(ended.stderr.contains("with --serve 'COMMAND' it needs no privileges"), "{ended:?}");
}

#[test]
fn wrong_arguments_of_the_link() {
    let run = |words: &str| crate::process::run(&format!("emulate {words}"));
    run("--tun --listen 127.0.0.1:0 --to 127.0.0.1:1").assert_failed(2, "cannot be used with");
    run("--listen 127.0.0.1:0 --to 127.0.0.1:1 -- true").assert_failed(2, "require --tun");
    run("--listen 127.0.0.1:0 --to 127.0.0.1:1 --mtu 1400").assert_failed(2, "require --tun");
    run("").assert_failed(2, "--listen");
    run("--tun --tun-network 10.0.0.0/31").assert_failed(2, "its prefix must be from 1 to 30");
    run("--tun --tun-network 10.0.0.0/24,10.0.1.0/24").assert_failed(2, "one IPv4");
    let ended = run("--tun --far-netns no-such-namespace -- true");
    if !is_refused(&ended) {
        ended.assert_failed(3, "there is no network namespace no-such-namespace");
    }
}
