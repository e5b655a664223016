//! Questions to the server, as the page and others ask them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Answer, Server};

fn settings() -> Value {
    json!({
        "rhythm": "every", "interval_ms": 40, "size": 120, "ordered": false, "rtt_ms": 80, "jitter_ms": 0,
        "loss_percent": 4, "burst_ms": 0, "rate_kbit": 0, "queue": 100, "duration_s": 30, "seeds": 2,
        "systems": ["rfc9260", "interactive"],
    })
}

/// `settings` with one value replaced.
fn with(name: &str, value: Value) -> Value {
    let mut settings = settings();
    settings[name] = value;
    settings
}

/// A number in the form of the page, with six digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap()
}

#[test]
fn the_file_gives_the_figures_of_the_page() {
    let server = Server::start();
    let found = server.run(&settings());
    let answer = &found["answer"];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab-file");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = server.post("/file", &settings());
    assert_eq!(file.status, 200, "{}", file.body);
    std::fs::write(folder.join("lab.toml"), &file.body).unwrap();
    let study = Command::new(env!("CARGO_BIN_EXE_rexmit"))
        .args(["study", "run", "./lab.toml", "--out", "out"])
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(study.status.success(), "{}", String::from_utf8_lossy(&study.stderr));
    let report = std::fs::read(folder.join("out/lab/report.json")).unwrap();
    let report: Value = serde_json::from_slice(&report).unwrap();
    let quantities = answer["quantities"].as_array().unwrap();
    let mut compared = 0;
    for (cell, of_study) in [0, 1].map(|at| (&answer["cells"][at], &report["cells"][at])) {
        assert_eq!(cell["point"], of_study["point"]);
        for (quantity, value) in quantities.iter().zip(cell["values"].as_array().unwrap()) {
            let expected = &of_study["quantities"][quantity["name"].as_str().unwrap()]["mean"];
            let expected = expected.as_f64().map(rounded);
            assert_eq!(value[0].as_f64(), expected, "{quantity}");
            compared += usize::from(expected.is_some());
        }
    }
    assert!(compared > 100, "{compared}");
    let loaded = server.ask(&server.head("/settings"), file.body.as_bytes());
    let loaded: Value = serde_json::from_str(&loaded.body).unwrap();
    for (name, value) in settings().as_object().unwrap() {
        let (value, loaded) = (value.as_f64(), loaded[name].as_f64());
        assert_eq!(loaded, value, "{name}");
    }
    assert_eq!(loaded["systems"], settings()["systems"]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn another_loss_rate_gives_other_figures_and_the_same_one_the_same() {
    let server = Server::start();
    let p99 = |found: &Value| found["answer"]["figures"][0]["groups"].clone();
    let first = server.run(&settings());
    assert!(p99(&first).as_array().is_some_and(|groups| groups.len() == 4), "{first}");
    assert_eq!(p99(&server.run(&settings())), p99(&first));
    assert_ne!(p99(&server.run(&with("loss_percent", json!(9)))), p99(&first));
}

#[test]
fn what_is_not_valid_is_refused_with_a_reason() {
    let server = Server::start();
    for (name, value, expected) in [
        ("loss_percent", json!(51), "Loss is 51 %"),
        ("interval_ms", json!(0), "Interval is 0 ms"),
        ("rhythm", json!({ "trace": "/etc/passwd" }), "no trace"),
        ("systems", json!(["tcp-cubic"]), "in order only"),
        ("systems", json!([]), "no system"),
        ("seeds", json!(1e9), "seeds"),
        ("size", json!(1e300), "size"),
        ("duration_s", json!(-1), "duration"),
        ("systems", json!(vec!["thin"; 20_000]), "twice"),
        ("systems", json!("<script>"), "systems"),
        ("color", json!(1), "unknown field"),
    ] {
        for path in ["/run", "/file"] {
            let answer = server.post(path, &with(name, value.clone()));
            let is_refused = answer.status == 400
                && answer.body.to_lowercase().contains(&expected.to_lowercase());
            // Serde names the type of a value that does not fit, and not the field.
            let is_of_type = answer.status == 400 && answer.body.contains("invalid");
            assert!(is_refused || is_of_type, "{name}: {answer:?}");
            // An answer that a browser takes for a page would run what was asked.
            assert!(answer.head.contains("text/plain") && answer.head.contains("nosniff"));
        }
    }
    assert_eq!(server.ask(&server.head("/settings"), b"title = 1").status, 400);
    assert_eq!(server.ask(&server.head("/settings"), b"\xff").status, 400);
    for deep in ["a = [", "a.", "a = { a = ", "[[a."] {
        assert_eq!(
            server.ask(&server.head("/settings"), deep.repeat(100_000).as_bytes()).status,
            400
        );
    }
    assert_eq!(server.ask(&server.head("/run"), &vec![b' '; 1100 * 1024]).status, 413);
    assert_eq!(server.ask(&server.head("/elsewhere"), b"").status, 404);
}

#[test]
fn other_sites_and_other_names_are_refused() {
    let server = Server::start();
    let host = server.address;
    let page = server.ask(&format!("GET / HTTP/1.1\r\nHost: {host}"), b"");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("frame-ancestors 'none'") && page.head.contains("nosniff"));
    assert_eq!(server.ask("GET / HTTP/1.1\r\nHost: rebound.example", b"").status, 421);
    let head = format!("POST /run HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json");
    let body = settings().to_string();
    let foreign = format!("{head}\r\nOrigin: http://evil.example");
    assert_eq!(server.ask(&foreign, body.as_bytes()).status, 403);
    let form = head.replace("application/json", "text/plain");
    assert_eq!(server.ask(&form, body.as_bytes()).status, 415);
}

/// A refused request closes its connection, although the client would keep it: it is not counted any more.
#[test]
fn refused_requests_occupy_no_connection() {
    let server = Server::start();
    let mut stream = server.send_on_kept("GET / HTTP/1.1\r\nHost: rebound.example", b"");
    // A connection that is kept is closed only after 30 s of silence.
    stream.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the connection is closed");
    assert!(answer.starts_with(b"HTTP/1.1 421"), "{}", String::from_utf8_lossy(&answer));
}

/// Settings with `runs` runs of 15,000 messages.
fn long(runs: usize) -> Value {
    let mut long = with("duration_s", json!(600));
    long["seeds"] = json!(runs / 2);
    long
}

/// The connection of a question that is begun, or waits: its first line contains `first`.
fn begin(server: &Server, settings: &Value, first: &str) -> TcpStream {
    let mut stream = server.send(&server.head("/run"), settings.to_string().as_bytes());
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(first) {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    stream
}

#[test]
fn a_question_that_was_left_ends_and_makes_room() {
    let server = Server::start();
    // The processor time of the whole question, and of one that is left at its beginning.
    let before = server.ticks();
    assert!(server.run(&long(20))["answer"].is_object());
    let whole = server.ticks() - before;
    let before = server.ticks();
    let left = begin(&server, &long(20), "\"done\":0");
    // The next one waits for its turn, and says so.
    let mut next = begin(&server, &settings(), "waiting");
    left.shutdown(Shutdown::Both).unwrap();
    let mut rest = String::new();
    next.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"answer\""), "{rest}");
    let used = server.ticks() - before;
    assert!(used < whole / 2, "{used} of {whole} ticks");
}

#[test]
fn more_questions_than_places_are_refused() {
    let server = Server::start();
    let mut accepted = Vec::new();
    let refused = loop {
        let body = long(40).to_string();
        let mut stream = server.send(&server.head("/run"), body.as_bytes());
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        match &status {
            b"HTTP/1.1 200" => accepted.push(stream),
            _ => break Answer::read(&mut (&status[..]).chain(stream)),
        }
        assert!(accepted.len() < 40, "there is no limit");
    };
    assert!(accepted.len() >= 16, "{}", accepted.len());
    assert_eq!(refused.status, 503);
    assert!(refused.body.contains("try again"), "{refused:?}");
}

#[test]
fn idle_connections_are_bounded_and_the_next_waits() {
    let server = Server::start();
    let idle: Vec<TcpStream> =
        (0..64).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    let mut next = TcpStream::connect(server.address).unwrap();
    let host = server.address;
    write!(next, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    next.set_read_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
    assert!(next.read(&mut [0]).is_err(), "it waits in the backlog");
    drop(idle);
    next.set_read_timeout(None).unwrap();
    assert_eq!(Answer::read(&mut next).status, 200);
}
