//! `listen` and `connect` transfer data unchanged.

use crate::process::{Rexmit, run};

/// Text with empty, short and very long lines, and no end of line at its end.
fn text(lines: usize, word: &str) -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..lines {
        let length = if number % 997 == 500 { 200_000 } else { number * 31 % 400 };
        let words = format!("{number} {word} ");
        text.extend(words.bytes().cycle().take(length));
        text.push(b'\n');
    }
    text.extend_from_slice(b"the end");
    text
}

/// Test data that contains every byte value in a scrambled order.
fn bytes(count: usize) -> Vec<u8> {
    let mut state = 1_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(count)
    .collect()
}

fn connect(address: &str, options: &str, input: Vec<u8>) -> Rexmit {
    let arguments = format!("connect {address} {options}");
    Rexmit::start(arguments.split_whitespace().map(String::from), input)
}

#[test]
fn a_text_arrives_as_it_was_and_both_sides_end() {
    let input = text(3000, "forth");
    let listener = Rexmit::listen_idle("listen 127.0.0.1:0");
    let ended = connect(&listener.1, "", input.clone()).end();
    assert_eq!(ended.text(), "");
    assert!(ended.stderr.contains("the peer is not verified: with --fingerprint "));
    let received = listener.0.end();
    assert!(received.status.success(), "{}", received.stderr);
    assert!(received.stdout == input, "{} of {}", received.stdout.len(), input.len());
}

/// The data of a second client would have no reader.
#[test]
fn a_second_client_is_refused() {
    let (listener, address) = Rexmit::listen_idle("listen 127.0.0.1:0");
    let mut first = Rexmit::start_idle(["connect", &address]);
    first.wait_for("not verified");
    connect(&address, "", b"lost".to_vec()).end().assert_failed(4, "rexmit: ");
    drop((first, listener));
}

#[test]
fn several_addresses_on_both_sides_are_several_paths() {
    let input = text(300, "over");
    let (listener, address) =
        Rexmit::listen_idle("listen 127.0.1.1:0 --unencrypted --local 127.0.2.1");
    let (ip, port) = address.split_once(':').unwrap();
    assert_eq!(ip, "127.0.1.1");
    let own = "--unencrypted --local 127.0.1.2 --local 127.0.2.2";
    let options = format!("--peer 127.0.2.1 {own}");
    connect(&address, &options, input.clone()).end().text();
    let received = listener.end();
    assert!(received.status.success(), "{}", received.stderr);
    assert!(received.stderr.contains(&format!(", 127.0.2.1:{port}, SCTP")), "{}", received.stderr);
    assert!(received.stdout == input, "{} of {}", received.stdout.len(), input.len());
}

#[test]
fn a_text_arrives_encrypted_at_the_peer_with_the_right_fingerprint_only() {
    let input = text(300, "secret");
    let (mut listener, address) = Rexmit::listen_idle("listen 127.0.0.1:0");
    let line = listener.next_line();
    let fingerprint = line.strip_prefix("fingerprint ").expect("a fingerprint").trim();
    let wrong = fingerprint.replace(['A', 'B', 'C', '1', '2', '3'], "0");
    let options = format!("--fingerprint {wrong}");
    let refused = connect(&address, &options, input.clone()).end();
    refused.assert_failed(4, &format!("the fingerprint {fingerprint}, which is not trusted"));
    let options = format!("--fingerprint {fingerprint}");
    let ended = connect(&address, &options, input.clone()).end();
    assert!(ended.status.success() && !ended.stderr.contains("not verified"), "{ended:?}");
    let received = listener.end();
    assert!(received.status.success(), "{}", received.stderr);
    assert!(received.stdout == input, "{} of {}", received.stdout.len(), input.len());
}

#[test]
fn files_arrive_both_ways_when_both_sides_stay_for_each_other() {
    let (forth, back) = (bytes(1_500_000), bytes(400_001));
    let options = "--binary --keep-open";
    let (listener, address) =
        Rexmit::listen(&format!("listen 127.0.0.1:0 {options}"), back.clone());
    let client = connect(&address, options, forth.clone()).end();
    let server = listener.end();
    assert!(client.status.success() && server.status.success(), "{client:?}");
    assert!(client.stdout == back, "{} of {}", client.stdout.len(), back.len());
    assert!(server.stdout == forth, "{} of {}", server.stdout.len(), forth.len());
}

#[test]
fn a_side_without_input_stays_open_for_the_peer() {
    let input = text(300, "one way");
    let (listener, address) = Rexmit::listen("listen 127.0.0.1:0", Vec::new());
    assert!(connect(&address, "", input.clone()).end().status.success());
    assert!(listener.end().stdout == input);

    let (listener, address) = Rexmit::listen("listen 127.0.0.1:0", input.clone());
    assert!(connect(&address, "", Vec::new()).end().stdout == input);
    assert!(listener.end().status.success());

    let (listener, address) = Rexmit::listen("listen 127.0.0.1:0", Vec::new());
    assert!(connect(&address, "", Vec::new()).end().status.success());
    assert!(listener.end().status.success());
}

#[test]
fn a_peer_that_ends_before_the_input_does_is_a_failure() {
    let (listener, address) = Rexmit::listen("listen 127.0.0.1:0", b"enough\n".to_vec());
    let endless = std::io::repeat(b'x');
    let client = Rexmit::start_reading(["connect", &address, "--binary"], endless);
    let ended = client.end();
    ended.assert_failed(4, "the peer ended the association before all of the input was sent");
    assert_eq!(ended.stdout, b"enough\n");
    assert!(listener.end().status.success());
}

#[test]
fn a_lossy_link_loses_nothing() {
    let input = text(800, "lossy");
    let listener = Rexmit::listen_idle("listen 127.0.0.1:0");
    let (emulator, address) = Rexmit::listen(
        &format!(
            "emulate --listen 127.0.0.1:0 --to {} --delay 2ms --jitter 1ms --distribution normal \
             --loss 2% --reorder 5% --duplicate 2% --corrupt 1% --seed 3 --json",
            listener.1
        ),
        Vec::new(),
    );
    let ended = connect(&address, "--json", input.clone()).end();
    assert!(ended.status.success(), "{ended:?}");
    let received = listener.0.end();
    assert!(received.stdout == input, "{} of {}", received.stdout.len(), input.len());

    emulator.signal("TERM");
    let report = emulator.end().json();
    let packets = report["packets"].as_u64().unwrap();
    let dropped = report["dropped"].as_u64().unwrap();
    assert!(dropped > 0 && dropped < packets, "{report}");
    let forward = &report["statistics"]["forward"];
    for fate in ["lost_uniform", "duplicated", "corrupted"] {
        assert!(forward["path"][fate].as_u64().unwrap() > 0, "{fate}: {report}");
    }
    let statistics = ended.stderr.lines().last().unwrap();
    let statistics: serde_json::Value = serde_json::from_str(statistics).unwrap();
    assert_eq!(statistics["payload_accepted_bytes"], input.len());
    assert!(statistics["recovery"]["packets_lost"].as_u64().unwrap() > 0, "{statistics}");
}

/// A program that reads them need not separate them from texts.
#[test]
fn statistics_can_be_written_to_a_file_of_their_own() {
    let listener = Rexmit::listen_idle("listen 127.0.0.1:0");
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/statistics of carry.json");
    let options = ["connect", &listener.1, "--verbose", &format!("--json={file}")];
    let ended = Rexmit::start(options.map(String::from), b"hello\n".to_vec()).end();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains("the association is closed"), "{}", ended.stderr);
    assert!(!ended.stderr.contains('{'), "{}", ended.stderr);
    let statistics: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(statistics["payload_accepted_bytes"], 6);
}

#[test]
fn each_direction_of_a_link_can_be_its_own() {
    let listener = Rexmit::listen_idle("listen 127.0.0.1:0");
    let arguments = ["emulate", "--listen", "127.0.0.1:0", "--to", &listener.1, "--loss", "3%"];
    let own = ["--backward", "loss 0% duplicate 100%", "--json"];
    let (emulator, address) = Rexmit::listen_with(arguments.into_iter().chain(own));
    assert!(connect(&address, "", text(500, "own")).end().status.success());
    assert!(listener.0.end().status.success());
    emulator.signal("INT");
    let statistics = &emulator.end().json()["statistics"];
    let count = |direction: &str, name: &str| statistics[direction]["path"][name].as_u64().unwrap();
    assert!(count("forward", "lost_uniform") > 0);
    assert_eq!(count("forward", "duplicated"), 0);
    assert_eq!(count("backward", "lost_uniform"), 0);
    assert_eq!(count("backward", "duplicated"), count("backward", "offered"));
}

#[test]
fn an_interrupt_aborts_and_both_sides_say_so() {
    let (mut listener, address) = Rexmit::listen_idle("listen 127.0.0.1:0 --verbose");
    let client = connect(&address, "--keep-open", b"first\n".to_vec());
    listener.wait_for("the peer reset incoming streams");
    client.signal("INT");
    client.end().assert_failed(130, "interrupted: the association was aborted");
    let ended = listener.end();
    ended.assert_failed(4, "the peer aborted the association: interrupted");
    assert_eq!(ended.stdout, b"first\n");
}

#[test]
fn a_failed_emulator_ends_and_reports_its_error() {
    let text = run("emulate --listen 127.0.0.1:0 --to 127.0.0.1:9 --duration 50ms").text();
    assert!(text.contains("forward") && text.contains("lateness of packets"), "{text}");
}
