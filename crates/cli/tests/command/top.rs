//! `--metrics` and `rexmit top`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::process::{Rexmit, run};

/// Where a program serves its metrics, which it says on standard error.
fn metrics_of(program: &mut Rexmit) -> String {
    let line = program.next_line();
    let address =
        line.strip_prefix("metrics at http://").and_then(|it| it.strip_suffix("/metrics\n"));
    address.unwrap_or_else(|| panic!("{line}")).to_owned()
}

/// A receiver's metrics, read by `top` while messages arrive; its own figures say how many.
#[test]
fn top_shows_the_associations_of_a_receiver() {
    let arguments = "perf recv --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --unencrypted --json";
    let (mut receiver, address) = Rexmit::listen_idle(arguments);
    let metrics = metrics_of(&mut receiver);
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
    run("top https://127.0.0.1:1/metrics --once").assert_failed(2, "use http://");
}

/// The sender has an endpoint for each connection; `top` shows them together, with what the loss of the link cost.
#[test]
fn top_shows_the_losses_of_a_sender_with_several_endpoints() {
    let (receiver, address) =
        Rexmit::listen_idle("perf recv --listen 127.0.0.1:0 --unencrypted --json");
    let relay = format!("emulate --listen 127.0.0.1:0 --to {address} --delay 5ms --loss 20%");
    let (relay, relayed) = Rexmit::listen_idle(&relay);
    let arguments = format!(
        "perf send --to {relayed} --unencrypted --connections 3 --interval 10ms --size 100 --duration 60s \
         --profile interactive-redundant --metrics 127.0.0.1:0"
    );
    let mut sender = Rexmit::start_idle(arguments.split_whitespace());
    let metrics = metrics_of(&mut sender);
    sender.wait_for("connections set up");
    let sum = |sample: &serde_json::Value, what: fn(&serde_json::Value) -> f64| -> f64 {
        sample["associations"].as_array().unwrap().iter().map(what).sum()
    };
    let rows = loop {
        let sample = run(&format!("top {metrics} --once --json")).json();
        assert_eq!(
            (sample["open"].as_u64(), sample["associations"].as_array().map(Vec::len)),
            (Some(3), Some(3))
        );
        let lost = sum(&sample, |row| row["packets_lost"].as_f64().unwrap());
        let copies = sum(&sample, |row| row["redundant_copies"].as_f64().unwrap());
        let causes = |row: &serde_json::Value| {
            row["retransmissions"]
                .as_object()
                .unwrap()
                .values()
                .filter_map(serde_json::Value::as_f64)
                .sum::<f64>()
        };
        if lost > 0.0 && copies > 0.0 && sum(&sample, causes) > 0.0 {
            break sample["associations"].clone();
        }
    };
    let numbers: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| row["association"].clone()).collect();
    for number in ["0.0", "1.0", "2.0"] {
        assert!(numbers.iter().any(|it| it == number), "{numbers:?}");
    }
    for program in [sender, receiver, relay] {
        program.signal("INT");
        program.end();
    }
}

/// `localhost` may be an IPv6 address on which nothing listens.
#[test]
fn top_finds_the_page_by_a_name_a_port_or_a_url() {
    let arguments = "listen 127.0.0.1:0 --unencrypted --metrics 127.0.0.1:0";
    let (mut listener, _) = Rexmit::listen_idle(arguments);
    let (_, port) = metrics_of(&mut listener)
        .rsplit_once(':')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    for place in ["localhost:", "", "http://localhost:", "http://127.0.0.1:"] {
        let table = run(&format!("top {place}{port} --once")).text();
        assert!(table.starts_with("0 associations open\n"), "{place}: {table}");
    }
    let table = run(&format!("top http://127.0.0.1:{port}/metrics --once")).text();
    assert!(table.starts_with("0 associations open\n"), "{table}");
    run(&format!("top http://127.0.0.1:{port}/other --once")).assert_failed(4, "404 Not Found");
}

/// Answers one request with `answer`, and returns the request.
fn serve_once(answer: &'static str) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = vec![0; 1024];
        let len = stream.read(&mut request).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(&request[..len]).into_owned()
    });
    (address, thread)
}

/// Of HTTP/1.0, whose answers have no chunks: and a page of something else is not shown as one without associations.
#[test]
fn top_refuses_a_page_that_is_cut_or_of_another_program() {
    for (answer, expected) in [
        ("HTTP/1.0 200 OK\r\n\r\nnode_load1 0.5\n", "it is not a page of rexmit's metrics"),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 99\r\n\r\nrexmit_associations 1\n",
            "ended after 22 of 99",
        ),
    ] {
        let (address, server) = serve_once(answer);
        run(&format!("top {address} --once")).assert_failed(4, expected);
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /metrics HTTP/1.0\r\n"), "{request}");
    }
}

/// A server that accepts and then sends `piece` whenever it can, until the reader goes away.
fn serve_without_end(piece: &'static [u8]) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
        while stream.write_all(piece).is_ok() && !piece.is_empty() {}
        // Nothing more is said; the reader ends the connection.
        let _ = stream.read(&mut [0; 1]);
    });
    (address, thread)
}

#[test]
fn top_ends_although_the_server_does_not() {
    let (endless, one) = serve_without_end(&[b'x'; 4096]);
    run(&format!("top {endless} --once")).assert_failed(4, "the page is longer than");
    let (silent, other) = serve_without_end(b"");
    run(&format!("top {silent} --once")).assert_failed(4, "no complete answer within");
    one.join().unwrap();
    other.join().unwrap();
}

/// An interrupt ends it at once, also while it waits for an answer: with success, as an interrupt is how it ends.
#[test]
fn top_is_interrupted_while_it_waits_for_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let top = Rexmit::start_idle(["top", &address]);
    let (mut stream, _) = listener.accept().unwrap();
    assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
    top.signal("INT");
    let ended = top.end();
    assert_eq!((ended.status.code(), ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn top_says_when_the_program_has_ended() {
    let (mut listener, _) =
        Rexmit::listen_idle("listen 127.0.0.1:0 --unencrypted --metrics 127.0.0.1:0");
    let metrics = metrics_of(&mut listener);
    let top = Rexmit::start_idle(["top", &metrics, "--json"]);
    top.wait_for_output();
    listener.signal("INT");
    listener.end();
    let ended = top.end();
    ended.assert_failed(4, "the program has ended");
}

/// Readers that send nothing or do not read the answer occupy their places for a few seconds, and nothing else.
#[test]
fn readers_that_hang_do_not_stop_the_program() {
    let (mut listener, address) =
        Rexmit::listen_idle("listen 127.0.0.1:0 --unencrypted --metrics 127.0.0.1:0");
    let metrics = metrics_of(&mut listener);
    let hanging: Vec<_> = (0..40)
        .map(|number| {
            let mut stream = TcpStream::connect(&metrics).unwrap();
            if number % 2 == 0 {
                stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            }
            stream
        })
        .collect();
    let input = b"hello\n".to_vec();
    Rexmit::start(["connect", &address, "--unencrypted"], input.clone()).end().text();
    let ended = listener.end();
    assert_eq!(ended.stdout, input);
    drop(hanging);
}
