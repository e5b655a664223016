//! `perf`: every message occurs once and in order, in the record and in the figures.

use std::collections::BTreeMap;

use crate::process::{Rexmit, run, scratch, wait_for_lines};

struct Row {
    connection: u32,
    sequence: u64,
    sent: u64,
    received: u64,
}

fn rows(name: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(scratch(name)).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("conn,seq,send_ns,recv_ns"));
    lines
        .map(|line| {
            let numbers: Vec<u64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            let [connection, sequence, sent, received] = numbers[..] else { panic!("{line}") };
            Row { connection: connection as u32, sequence, sent, received }
        })
        .collect()
}

#[test]
fn thin_streams_arrive_once_and_in_order() {
    let out = scratch("thin.csv");
    let (receiver, address) = Rexmit::listen(
        &format!("perf recv --listen 127.0.0.1:0 --json --out {}", out.display()),
        Vec::new(),
    );
    let sent = run(&format!(
        "perf send --to {address} --connections 10 --interval 50ms --size 120 --duration 2s --json"
    ));
    let (sent, received) = (sent.json(), receiver.end().json());
    let messages = 10 * 2000 / 50;
    assert_eq!(sent["messages"], messages);
    assert_eq!((&sent["undelivered"], &sent["broken"]), (&0.into(), &0.into()));
    assert_eq!(sent["payload_bytes"], messages * 120);
    // Each message is at least its payload and the headers of DATA, SCTP, UDP and IP.
    let price = sent["wire_bytes_per_payload_byte"].as_f64().unwrap();
    assert!(price > f64::from(120 + 16 + 12 + 8 + 20) / 120.0, "{sent}");
    assert_eq!(received["messages"], messages);
    for count in ["missing", "overtaken", "foreign"] {
        assert_eq!(received[count], 0, "{received}");
    }
    assert!(received["latency"]["p99.9_ms"].as_f64().unwrap() > 0.0);

    let rows = rows("thin.csv");
    assert_eq!(rows.len(), messages as usize);
    assert!(rows.is_sorted_by_key(|row| row.received), "in the order of delivery");
    let mut connections: BTreeMap<u32, Vec<&Row>> = BTreeMap::new();
    rows.iter().for_each(|row| connections.entry(row.connection).or_default().push(row));
    assert!(connections.keys().copied().eq(0..10));
    let start = connections[&0][0].sent;
    for (number, rows) in connections {
        assert!(rows.iter().map(|row| row.sequence).eq(0..2000 / 50), "connection {number}");
        // When it was meant to be sent is exact, whatever the machine does.
        for row in rows {
            let due = u64::from(number) * 5_000_000 + row.sequence * 50_000_000;
            assert_eq!(row.sent - start, due, "connection {number}, {}", row.sequence);
            assert!(row.received > row.sent);
        }
    }
}

#[test]
fn an_interrupted_receiver_keeps_its_record() {
    let out = scratch("interrupted.csv");
    let (receiver, address) = Rexmit::listen(
        &format!("perf recv --listen 127.0.0.1:0 --out {}", out.display()),
        Vec::new(),
    );
    let arguments =
        format!("perf send --to {address} --connections 3 --interval 10ms --poisson --unordered");
    let sender = Rexmit::start_idle(arguments.split_whitespace());
    wait_for_lines(&out, 10);
    receiver.signal("INT");
    let text = receiver.end().text();
    sender.end().assert_failed(4, "3 connections broke");
    let shown = text.lines().find_map(|line| line.strip_prefix("messages")).unwrap();
    assert_eq!(shown.trim().parse(), Ok(rows("interrupted.csv").len()), "{text}");
    assert!(text.contains("latency p99.9 (ms)"), "{text}");
}

#[test]
fn an_interrupted_sender_delivers_what_it_has_sent() {
    let out = scratch("delivered.csv");
    let (receiver, address) = Rexmit::listen(
        &format!("perf recv --listen 127.0.0.1:0 --json --out {}", out.display()),
        Vec::new(),
    );
    let arguments = format!("perf send --to {address} --interval 5ms --json");
    let sender = Rexmit::start_idle(arguments.split_whitespace());
    wait_for_lines(&out, 10);
    sender.signal("TERM");
    let (sent, received) = (sender.end().json(), receiver.end().json());
    assert_eq!(sent["undelivered"], 0);
    assert_eq!(received["messages"], sent["messages"]);
}

#[test]
fn bulk_counts_the_same_on_both_sides() {
    let (receiver, address) =
        Rexmit::listen("perf bulk recv --listen 127.0.0.1:0 --json", Vec::new());
    let sent = run(&format!(
        "perf bulk send --to {address} --connections 2 --size 10kb --duration 300ms --json"
    ));
    let (sent, received) = (sent.json(), receiver.end().json());
    assert_eq!(sent["connections"], 2);
    assert!(sent["messages"].as_u64().unwrap() > 0);
    for count in ["connections", "messages", "payload_bytes"] {
        assert_eq!(sent[count], received[count], "{count}");
    }
    assert_eq!(sent["payload_bytes"], sent["messages"].as_u64().unwrap() * 10_240);
    assert!(received["goodput_bits_per_second"].as_f64().unwrap() > 0.0);
}
