//! Files written, read back, and refused.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::trace::{SendCause, SentRun, TraceEvent};
use rexmit_qlog::{About, Log, MAX_RECORD_BYTES, Passing, ReadError, Reader, VantagePoint};
use serde_json::{Value, json};

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const fn run(number: u64, cause: SendCause) -> SentRun {
    SentRun::new(number, number, cause)
}

const fn sent(packet: u64, runs: Vec<SentRun>) -> TraceEvent {
    TraceEvent::PacketSent { packet, path: 0, units: 1, bytes: 100, runs }
}

/// The events of an endpoint that sends two packets: the first is declared lost, and sent again with a copy.
fn events() -> Vec<(u64, TraceEvent)> {
    use SendCause::{FastRetransmit, New};
    let window = TraceEvent::Window { path: 0, cwnd: 4380, ssthresh: u64::MAX, flight: 100 };
    vec![
        (0, TraceEvent::Transmitted { bytes: 32 }),
        (10, TraceEvent::MessageNumbered { message: 0, stream: 3, sequence: (70, 70) }),
        (10, sent(0, vec![run(70, New)])),
        (10, window),
        (10, TraceEvent::Transmitted { bytes: 128 }),
        (20, sent(1, vec![run(71, New)])),
        (20, TraceEvent::Transmitted { bytes: 128 }),
        (120, TraceEvent::Arrived { bytes: 32 }),
        (120, TraceEvent::AckReceived { cumulative: 69, gaps: vec![(71, 71)] }),
        (120, TraceEvent::PacketAcked { packet: 1 }),
        (120, TraceEvent::PacketLost { packet: 0, cause: FastRetransmit }),
        (120, sent(2, vec![run(70, FastRetransmit)])),
        (120, TraceEvent::CopiesSent { packet: 2, path: 0, runs: vec![(71, 71)] }),
        (120, TraceEvent::Transmitted { bytes: 244 }),
        (300, TraceEvent::RetransmissionTimeout { path: 0, rto: Duration::from_secs(2) }),
    ]
}

fn written(events: &[(u64, TraceEvent)]) -> Vec<u8> {
    let file = File::default();
    let log = Log::new(
        file.clone(),
        &About::new("<b>\u{1b}[31m\u{1e}").begin(Instant::from_millis(5), 0.0),
    );
    let mut sink = log.sink();
    for (ms, event) in events {
        sink.record(Instant::from_millis(ms + 5), 4, event);
    }
    drop((log, sink));
    std::mem::take(&mut file.0.lock().unwrap())
}

fn records(file: &[u8]) -> Vec<Value> {
    let records = std::str::from_utf8(file).unwrap().split('\u{1e}').skip(1);
    records.map(|record| serde_json::from_str(record).unwrap()).collect()
}

#[test]
fn a_packet_has_its_length_its_frames_and_what_it_caused_after_it() {
    let records = records(&written(&events()));
    assert_eq!(records[0]["qlog_version"], "0.3");
    assert_eq!(records[0]["trace"]["common_fields"]["protocol_type"], json!(["SCTP"]));
    let names: Vec<_> =
        records[1..].iter().map(|record| record["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "transport:packet_sent",
            "rexmit:message_numbered",
            "transport:packet_sent",
            "recovery:metrics_updated",
            "transport:packet_sent",
            "transport:packet_received",
            "recovery:packet_lost",
            "transport:packet_sent",
            "rexmit:retransmission_timeout",
        ]
    );
    let data = |index: usize| &records[index]["data"];
    let control = json!({ "packet_type": "sctp-control", "packet_number": 0 });
    assert_eq!(data(1)["header"], control);
    assert_eq!(data(3)["raw"], json!({ "length": 128, "payload_length": 100 }));
    assert!(data(4).get("ssthresh").is_none(), "there is none yet");
    let ack = json!([{ "frame_type": "ack", "acked_ranges": [[1, 1]], "cumulative": 69, "gaps": [[71, 71]] }]);
    assert_eq!(data(6)["frames"], ack);
    assert_eq!(data(6)["header"]["packet_type"], data(3)["header"]["packet_type"]);
    assert_eq!(data(7)["header"], json!({ "packet_type": "sctp", "packet_number": 0 }));
    let frames = json!([
        { "frame_type": "copy", "first": 71, "last": 71, "cause": "redundant" },
        { "frame_type": "retransmission", "first": 70, "last": 70, "cause": "fast_retransmit" },
    ]);
    assert_eq!(data(8)["frames"], frames);
    assert_eq!(records[9]["time"], 300.0);
    assert_eq!(records[9]["group_id"], "4");
}

#[test]
fn what_a_graph_needs_is_read_back() {
    let read: Vec<_> =
        Reader::new(&written(&events())[..]).unwrap().collect::<Result<_, _>>().unwrap();
    let is_read = |event: &TraceEvent| {
        let is_of_graph = matches!(
            event,
            TraceEvent::PacketSent { .. }
                | TraceEvent::CopiesSent { .. }
                | TraceEvent::AckReceived { .. }
        );
        is_of_graph
            || matches!(
                event,
                TraceEvent::MessageNumbered { .. } | TraceEvent::RetransmissionTimeout { .. }
            )
    };
    let expected: Vec<_> = events().into_iter().filter(|(_, event)| is_read(event)).collect();
    let read: Vec<_> = read.into_iter().map(|it| (it.at, it.association, it.event)).collect();
    let expected: Vec<_> =
        expected.into_iter().map(|(ms, event)| (Instant::from_millis(ms), 4, event)).collect();
    assert_eq!(read, expected);
}

#[test]
fn times_never_decrease() {
    let event = || TraceEvent::State { state: "CLOSED" };
    let records = records(&written(&[(30, event()), (20, event()), (40, event())]));
    let times: Vec<_> =
        records[1..].iter().map(|record| record["time"].as_f64().unwrap()).collect();
    assert_eq!(times, [30.0, 30.0, 40.0]);
}

/// A disk that is full from the second write on.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += 1;
        if self.0 > 1 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_writing_is_told_once_and_ends_the_log_only() {
    let log = Log::new(Full(0), &About::new("t"));
    let told = Arc::new(Mutex::new(0));
    let count = Arc::clone(&told);
    log.on_failure(move |_| *count.lock().unwrap() += 1);
    let mut sink = log.sink();
    for n in 0..20_000 {
        sink.record(Instant::from_millis(n), 0, &TraceEvent::PacketSpurious { packet: n });
    }
    assert_eq!(log.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    log.finish().unwrap();
    assert_eq!(*told.lock().unwrap(), 1);
}

#[test]
fn what_waits_for_a_packet_is_bounded() {
    let file = File::default();
    let log = Log::new(file.clone(), &About::new("t"));
    let mut sink = log.sink();
    sink.record(Instant::ZERO, 0, &TraceEvent::Arrived { bytes: 32 });
    sink.record(Instant::ZERO, 0, &TraceEvent::AckReceived { cumulative: 1, gaps: Vec::new() });
    for packet in 0..100_000 {
        sink.record(Instant::ZERO, 0, &TraceEvent::PacketAcked { packet });
    }
    // 100,000 records of some 80 bytes; the last of them may still wait.
    assert!(file.0.lock().unwrap().len() > 6_000_000);
}

fn refusal(file: &[u8]) -> ReadError {
    match Reader::new(file) {
        Err(error) => error,
        Ok(reader) => reader.filter_map(Result::err).next().expect("an error"),
    }
}

#[test]
fn foreign_and_broken_files_are_refused_in_words() {
    let header = |version: &str, schema: &str| {
        format!(
            "\u{1e}{{\"qlog_version\":\"{version}\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"quinn\",\
             \"trace\":{{\"event_schemas\":[\"{schema}\"]}}}}\n"
        )
    };
    for nothing in ["", "\u{1e}", "{}", "\u{1e}{}\n", "\u{1e}[1]\n", "\0\0\0"] {
        assert!(matches!(refusal(nothing.as_bytes()), ReadError::NotQlog), "{nothing:?}");
    }
    assert!(matches!(refusal(&vec![b'x'; 3 * MAX_RECORD_BYTES]), ReadError::NotQlog));
    let foreign = refusal(header("0.3", "urn:ietf:params:qlog:events:quic").as_bytes());
    assert!(
        foreign.to_string().contains("of another program (its title is \"quinn\")"),
        "{foreign}"
    );
    assert!(matches!(refusal(header("0.4", "").as_bytes()), ReadError::Version(_)));

    let ours = header("0.3", "urn:rexmit:qlog:events");
    let broken = [
        "\u{1e}{\"time\":1}\n",
        "\u{1e}{\"time\":-1,\"name\":\"a:b\",\"data\":{}}\n",
        "\u{1e}{\"time\":1e300,\"name\":\"a:b\",\"data\":{}}\n",
        "\u{1e}{\"time\":1,\"name\":\"a:b\",\"group_id\":\"x\",\"data\":{}}\n",
        "\u{1e}{\"time\":1,\"name\":\"transport:packet_sent\",\"data\":{}}\n",
        "{\"time\":1}\n",
    ];
    for record in broken {
        let error = refusal((ours.clone() + record).as_bytes());
        assert!(matches!(error, ReadError::Broken { number: 2, .. }), "{record}: {error}");
    }
    let long = format!("{ours}\u{1e}{{\"time\":\"{}\"}}\n", "1".repeat(2 * MAX_RECORD_BYTES));
    assert!(matches!(refusal(long.as_bytes()), ReadError::TooLong(2)));
    let deep = format!("{ours}\u{1e}{}\n", "[".repeat(500_000));
    assert!(matches!(refusal(deep.as_bytes()), ReadError::Broken { .. }));
}

#[test]
fn a_record_that_was_not_written_to_its_end_ends_the_file() {
    let whole = written(&events());
    for cut in 1..30 {
        let read = Reader::new(&whole[..whole.len() - cut]).unwrap().collect::<Result<Vec<_>, _>>();
        assert!(!read.unwrap().is_empty());
    }
}

/// Any damage gives events or an error, and never a panic.
#[test]
fn damaged_files_are_read_or_refused() {
    let whole = written(&events());
    for at in 0..whole.len() {
        for byte in [0, 0x1e, b'\n', b'"', b'9', 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            if let Ok(reader) = Reader::new(&damaged[..]) {
                reader.for_each(drop);
            }
        }
    }
}

#[test]
fn packets_of_a_link_have_numbers_in_each_direction_and_their_losses() {
    let file = File::default();
    let log = Log::new(
        file.clone(),
        &About::new("link").protocol("udp").vantage_point(VantagePoint::Network),
    );
    let seen =
        [(true, None), (false, None), (true, Some("lost")), (false, Some("lost")), (true, None)];
    for (ms, (is_forward, dropped)) in (0..).zip(seen) {
        let packet = match dropped {
            None => Passing::delivered(is_forward, 100),
            Some(cause) => Passing::dropped(is_forward, 100, cause),
        };
        log.pass(Instant::from_millis(ms), &packet);
    }
    log.finish().unwrap();
    let records = records(&file.0.lock().unwrap());
    assert_eq!(records[0]["trace"]["vantage_point"]["flow"], "client");
    let shown = |record: &Value| {
        let number = record["data"]["header"]["packet_number"].as_u64().unwrap();
        (record["name"].as_str().unwrap().to_owned(), number)
    };
    let shown: Vec<_> = records[1..].iter().map(shown).collect();
    let expected = [
        ("transport:packet_sent", 0),
        ("transport:packet_received", 0),
        ("transport:packet_sent", 1),
        ("recovery:packet_lost", 1),
        ("transport:packet_dropped", 1),
        ("transport:packet_sent", 2),
    ];
    assert_eq!(shown, expected.map(|(name, number)| (name.to_owned(), number)));
}
